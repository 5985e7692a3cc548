//! Names of databases and tables as the file system spells them.
//!
//! ASCII letters, digits and `_` stand for themselves; `@` and two characters stand for the letters of some scripts, in
//! both cases; `@` and four hexadecimal digits for everything else. A name that is a device's on Windows (`con`, `aux`,
//! `lpt1`) ends in `@@@`. `#` therefore only separates: `t#P#p0#SP#s1` is a subpartition's file, `#sql-...` a temporary
//! table's.

use super::file_name_letters::decode_pair;

/// A file's stem taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TableFileName {
    pub(super) table: String,
    /// Partition, or `partition/subpartition`.
    pub(super) partition: Option<String>,
}

impl TableFileName {
    /// `None` for a temporary table, a half-made partition or an auxiliary table of a full-text index.
    pub(super) fn parse(stem: &str) -> Option<TableFileName> {
        let mut parts = stem.split('#');
        let table = decode(parts.next()?);
        let rest: Vec<&str> = parts.collect();
        if table.is_empty() || is_fulltext_auxiliary(&table) {
            return None;
        }
        let partition = match rest[..] {
            [] => None,
            [p, partition] if p.eq_ignore_ascii_case("p") => Some(decode(partition)),
            [p, partition, sp, sub] if p.eq_ignore_ascii_case("p") && sp.eq_ignore_ascii_case("sp") => {
                Some(format!("{}/{}", decode(partition), decode(sub)))
            }
            _ => return None,
        };
        Some(TableFileName { table, partition })
    }
}

/// `FTS_0000000000000433_CONFIG` and the like: a table id in 16 digits, then what it is for.
fn is_fulltext_auxiliary(table: &str) -> bool {
    let digits =
        table.get(..4).filter(|prefix| prefix.eq_ignore_ascii_case("fts_")).and_then(|_| table.get(4..20));
    digits.is_some_and(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
        && table.as_bytes().get(20) == Some(&b'_')
}

/// What follows the name of a device.
const AFTER_DEVICE: &str = "@@@";

/// The name behind a file name. What does not decode stands for itself.
pub(super) fn decode(file_name: &str) -> String {
    // An `@` of the name itself would be written `@0040`.
    let spelled = file_name.strip_suffix(AFTER_DEVICE).filter(|name| !name.is_empty()).unwrap_or(file_name);
    let characters: Vec<char> = spelled.chars().collect();
    let mut name = String::with_capacity(file_name.len());
    let mut at = 0;
    while at < characters.len() {
        let rest = &characters[at..];
        let decoded = match rest {
            ['@', a, b, c, d, ..] => hexadecimal([*a, *b, *c, *d])
                .map(|decoded| (decoded, 5))
                .or_else(|| decode_pair(*a, *b).map(|decoded| (decoded, 3))),
            ['@', a, b, ..] => decode_pair(*a, *b).map(|decoded| (decoded, 3)),
            _ => None,
        };
        let (character, used) = decoded.unwrap_or((rest[0], 1));
        name.push(character);
        at += used;
    }
    name
}

fn hexadecimal(digits: [char; 4]) -> Option<char> {
    let mut code = 0;
    for digit in digits {
        code = code << 4 | digit.to_digit(16)?;
    }
    char::from_u32(code)
}

/// `p0` or `p0#SP#s1` as `p0` or `p0/s1`.
pub(super) fn decode_partition(file_name: &str) -> String {
    match file_name.split('#').collect::<Vec<&str>>()[..] {
        [partition, sp, sub] if sp.eq_ignore_ascii_case("sp") => {
            format!("{}/{}", decode(partition), decode(sub))
        }
        _ => decode(file_name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_behind_file_names() {
        for (file_name, name) in [
            ("plain_1", "plain_1"),
            ("my@002dtable", "my-table"),
            ("a@0020b@0023", "a b#"),
            ("@1o@0P", "ü\u{c9}"),
            ("@65e5@672c", "日本"),
            ("caf@0p", "café"),
            ("@", "@"),
            ("@0", "@0"),
            ("@zz", "@zz"),
            ("@d800", "@d800"),
            ("con@@@", "con"),
            ("LPT1@@@", "LPT1"),
            ("@@@", "@@@"),
        ] {
            assert_eq!(decode(file_name), name, "{file_name}");
        }
    }

    #[test]
    fn file_names_of_tables_are_told_from_other_files() {
        let parsed = |stem: &str| TableFileName::parse(stem).map(|name| (name.table, name.partition));
        assert_eq!(parsed("t"), Some(("t".to_owned(), None)));
        assert_eq!(parsed("t@0023#P#p0"), Some(("t#".to_owned(), Some("p0".to_owned()))));
        assert_eq!(parsed("aux@@@#P#nul@@@"), Some(("aux".to_owned(), Some("nul".to_owned()))));
        assert_eq!(parsed("t#p#p0#sp#p0sp1"), Some(("t".to_owned(), Some("p0/p0sp1".to_owned()))));
        for stem in [
            "#sql-ib12-34",
            "t#P#p0#TMP#",
            "t#P#p0#REN#",
            "FTS_0000000000000433_CONFIG",
            "fts_0000000000000433_00000000000004a1_index_1",
            "",
        ] {
            assert_eq!(parsed(stem), None, "{stem}");
        }
        assert!(parsed("fts_notes").is_some());
    }
}
