//! The collations of MySQL and MariaDB: number or name -> [`Collation`].
//!
//! Most numbers follow rules, so the table is short: the Unicode families repeat one list of languages from a base
//! number, MariaDB's NO PAD collations are the padded ones plus 1024, and its UCA 14.0.0 collations (10.10 on) are
//! computed from 2048 on.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::Collation;
use super::collation_table::{CHARSETS, COLLATIONS, FAMILIES, LANGUAGES, UCA0900, UCA1400, UCA1400_CHARSETS};

const NOPAD: u16 = 1024;
const UCA1400_FIRST: u16 = 2048;

impl Collation {
    /// The collation with the server's number `id`.
    ///
    /// ```
    /// use tanada_innodb::Collation;
    /// assert_eq!(Collation::with_id(45).map(|c| c.name), Some("utf8mb4_general_ci".to_owned()));
    /// assert_eq!(Collation::with_id(9999), None);
    /// ```
    pub fn with_id(id: u16) -> Option<Collation> {
        let name = name_of(id)?;
        let charset = charset_of(&name);
        let (_, min_bytes, max_bytes, _) = CHARSETS.iter().find(|row| row.0 == charset)?;
        Some(Collation {
            id,
            charset: charset.to_owned(),
            min_bytes: *min_bytes,
            max_bytes: *max_bytes,
            name,
        })
    }

    /// The collation called `name`, in any case; `utf8_...` is `utf8mb3_...`.
    pub fn with_name(name: &str) -> Option<Collation> {
        static NUMBERS: LazyLock<HashMap<String, u16>> = LazyLock::new(|| {
            // Where one name has two numbers, the lower one is the older and means the same characters.
            all_ids().rev().filter_map(|id| Some((name_of(id)?, id))).collect()
        });
        let mut name = name.to_ascii_lowercase().replace("_croatian_mysql561_", "_croatian_");
        if let Some(rest) = name.strip_prefix("utf8_") {
            name = format!("utf8mb3_{rest}");
        }
        Collation::with_id(*NUMBERS.get(&name)?)
    }

    /// The default collation of a character set, for text that names no collation. `utf8mb4` differs by server.
    pub fn default_of(charset: &str, server: super::Server) -> Option<Collation> {
        let charset = charset.to_ascii_lowercase();
        match charset.as_str() {
            "utf8mb4" if server == super::Server::MySql => Collation::with_id(255),
            "utf8" => Collation::with_id(33),
            _ => CHARSETS.iter().find(|row| row.0 == charset).and_then(|row| Collation::with_id(row.3)),
        }
    }

    /// The `binary` pseudo collation.
    pub fn binary() -> Collation {
        Collation {
            id: 63,
            name: "binary".to_owned(),
            charset: "binary".to_owned(),
            max_bytes: 1,
            min_bytes: 1,
        }
    }
}

fn all_ids() -> impl DoubleEndedIterator<Item = u16> {
    (1..2 * NOPAD).chain(UCA1400_FIRST..UCA1400_FIRST + ((UCA1400_CHARSETS.len() as u16) << 8))
}

fn charset_of(collation: &str) -> &str {
    collation.split('_').next().unwrap_or(collation)
}

fn name_of(id: u16) -> Option<String> {
    if id >= UCA1400_FIRST {
        return uca1400_name(id);
    }
    if id > NOPAD {
        return nopad_name(&name_of(id - NOPAD)?);
    }
    if let Some((_, name)) = COLLATIONS.iter().find(|row| row.0 == id) {
        return Some((*name).to_owned());
    }
    if let Some((_, language)) = UCA0900.iter().find(|row| row.0 == id) {
        return Some(format!("utf8mb4_{language}"));
    }
    let (first, charset) = FAMILIES.iter().rev().find(|row| row.0 <= id)?;
    let language = LANGUAGES.get(usize::from(id - first))?;
    Some(format!("{charset}_{language}_ci"))
}

/// `latin1_swedish_ci` -> `latin1_swedish_nopad_ci`. MySQL's own NO PAD collations have no such twin.
fn nopad_name(padded: &str) -> Option<String> {
    if padded.contains("_0900_") || padded == "binary" {
        return None;
    }
    let (stem, kind) = padded.rsplit_once('_')?;
    Some(format!("{stem}_nopad_{kind}"))
}

/// Bits from the low end: case sensitive, accent sensitive, NO PAD, language (5 bits), character set.
fn uca1400_name(id: u16) -> Option<String> {
    let offset = id - UCA1400_FIRST;
    let charset = UCA1400_CHARSETS.get(usize::from(offset >> 8))?;
    let language = UCA1400.get(usize::from(offset >> 3 & 31))?;
    let language = (*language)?;
    let separator = if language.is_empty() { "" } else { "_" };
    let nopad = if offset & 4 != 0 { "_nopad" } else { "" };
    let accent = if offset & 2 != 0 { "as" } else { "ai" };
    let case = if offset & 1 != 0 { "cs" } else { "ci" };
    Some(format!("{charset}_uca1400{separator}{language}{nopad}_{accent}_{case}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Server;

    #[test]
    fn numbers_name_what_the_servers_name() {
        for (id, name, charset, min_bytes, max_bytes) in [
            (8, "latin1_swedish_ci", "latin1", 1, 1),
            (33, "utf8mb3_general_ci", "utf8mb3", 1, 3),
            (46, "utf8mb4_bin", "utf8mb4", 1, 4),
            (54, "utf16_general_ci", "utf16", 2, 4),
            (61, "utf32_bin", "utf32", 4, 4),
            (63, "binary", "binary", 1, 1),
            (128, "ucs2_unicode_ci", "ucs2", 2, 2),
            (123, "utf16_unicode_520_ci", "utf16", 2, 4),
            (215, "utf8mb3_vietnamese_ci", "utf8mb3", 1, 3),
            (224, "utf8mb4_unicode_ci", "utf8mb4", 1, 4),
            (245, "utf8mb4_croatian_ci", "utf8mb4", 1, 4),
            (248, "gb18030_chinese_ci", "gb18030", 1, 4),
            (255, "utf8mb4_0900_ai_ci", "utf8mb4", 1, 4),
            (309, "utf8mb4_0900_bin", "utf8mb4", 1, 4),
            (1032, "latin1_swedish_nopad_ci", "latin1", 1, 1),
            (1070, "utf8mb4_nopad_bin", "utf8mb4", 1, 4),
        ] {
            let collation = Collation::with_id(id).unwrap_or_else(|| panic!("{id}"));
            let found = (
                collation.name.as_str(),
                collation.charset.as_str(),
                collation.min_bytes,
                collation.max_bytes,
            );
            {
                assert_eq!(found, (name, charset, min_bytes, max_bytes), "{id}");
                assert_eq!(Collation::with_name(name).map(|c| c.id), Some(id), "{name}");
            }
        }
    }

    #[test]
    fn numbers_without_a_collation_are_unknown() {
        for id in [0, 17, 100, 125, 152, 184, 216, 272, 400, 1024, 1024 + 63, 1024 + 255, 65535] {
            assert_eq!(Collation::with_id(id), None, "{id}");
        }
    }

    #[test]
    fn every_charset_has_its_default() {
        for row in CHARSETS {
            let collation = Collation::default_of(row.0, Server::MariaDb).unwrap();
            assert_eq!(collation.charset, row.0);
        }
        assert_eq!(Collation::default_of("utf8mb4", Server::MySql).unwrap().id, 255);
        assert_eq!(Collation::default_of("UTF8", Server::MariaDb).unwrap().id, 33);
    }
}
