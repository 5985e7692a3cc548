//! The known collations of both servers, by name.
//!
//! `data/single-byte.zst` has the weights of single-byte collations, one after the other: length of the name, name, the
//! first weight of each of 256 bytes, the second weight of each or 0. MariaDB's `..._nopad_...` collations have the
//! weights of those that pad. Not known are those for one language over Unicode, those over East Asian sets that are
//! not binary, and `tis620_thai_ci`, `cp1250_czech_cs` and `latin2_czech_cs`.

use std::collections::HashMap;
use std::sync::{LazyLock, OnceLock};

use crate::collation::{Rule, SingleByteWeights};
use crate::weights::{
    Family, GENERAL, GENERAL_5_0, UNICODE_4_0_0, UNICODE_5_2_0, UNICODE_9_0_0, UNICODE_14_0_0,
};
use crate::{Charset, Collation, Server};

type Names = HashMap<String, Collation>;

static MYSQL: LazyLock<Names> = LazyLock::new(|| names(Server::MySql));
static MARIADB: LazyLock<Names> = LazyLock::new(|| names(Server::MariaDb));

const UNICODE_SETS: [&str; 6] = ["utf8mb4", "utf8mb3", "ucs2", "utf16", "utf16le", "utf32"];
const EAST_ASIAN_SETS: [&str; 9] =
    ["big5", "cp932", "eucjpms", "euckr", "gb18030", "gb2312", "gbk", "sjis", "ujis"];
const SINGLE_BYTE_SETS: [&str; 26] = [
    "armscii8", "ascii", "cp1250", "cp1251", "cp1256", "cp1257", "cp850", "cp852", "cp866", "dec8",
    "geostd8", "greek", "hebrew", "hp8", "keybcs2", "koi8r", "koi8u", "latin1", "latin2", "latin5", "latin7",
    "macce", "macroman", "swe7", "tis620", "binary",
];
/// Suffixes of collations that compare the first, the first two, the first and the third, or all levels.
const LEVELS: [(&str, &[usize]); 4] =
    [("ai_ci", &[0]), ("as_ci", &[0, 1]), ("ai_cs", &[0, 2]), ("as_cs", &[0, 1, 2])];

static SINGLE_BYTE: LazyLock<Vec<(String, SingleByteWeights)>> = LazyLock::new(|| {
    let data = crate::unpack(include_bytes!("../data/single-byte.zst"));
    let mut rest = data.as_slice();
    let mut tables = Vec::new();
    while let Some(table) = single_byte(&mut rest) {
        tables.push(table);
    }
    tables
});

fn single_byte(rest: &mut &[u8]) -> Option<(String, SingleByteWeights)> {
    let (length, after) = rest.split_first()?;
    let (name, after) = after.split_at_checked(usize::from(*length))?;
    let (first, after) = after.split_first_chunk::<256>()?;
    let (second, after) = after.split_first_chunk::<256>()?;
    *rest = after;
    let weights = SingleByteWeights { first: *first, second: *second, codes: OnceLock::new() };
    Some((String::from_utf8(name.to_vec()).ok()?, weights))
}

/// The collation that `server` calls `name`, in lower case.
pub(crate) fn lookup(server: Server, name: &str) -> Option<&'static Collation> {
    let names = match server {
        Server::MySql => &MYSQL,
        Server::MariaDb => &MARIADB,
    };
    names.get(name)
}

/// All known names of `server`.
pub(crate) fn all(server: Server) -> impl Iterator<Item = &'static str> {
    let names = match server {
        Server::MySql => &MYSQL,
        Server::MariaDb => &MARIADB,
    };
    names.keys().map(String::as_str)
}

fn names(server: Server) -> Names {
    let mut names = Adder { server, names: Names::new() };
    for set in UNICODE_SETS {
        names.add(set, "bin", Rule::CodePoints);
        names.unicode(set, "general", &GENERAL);
        if set != "utf16le" {
            names.unicode(set, "unicode", &UNICODE_4_0_0);
            names.unicode(set, "unicode_520", &UNICODE_5_2_0);
        }
        if set == "utf8mb3" || set == "ucs2" {
            names.add(set, "general_mysql500_ci", Rule::Unicode(&GENERAL_5_0, &[0]));
        }
        if set != "utf16le" && server == Server::MariaDb {
            for (suffix, levels) in LEVELS {
                names.insert(
                    set,
                    format!("{set}_uca1400_{suffix}"),
                    Rule::Unicode(&UNICODE_14_0_0, levels),
                    true,
                );
                let name = format!("{set}_uca1400_nopad_{suffix}");
                names.insert(set, name, Rule::Unicode(&UNICODE_14_0_0, levels), false);
            }
        }
    }
    let family = if server == Server::MySql { &UNICODE_9_0_0 } else { &UNICODE_14_0_0 };
    for (suffix, levels) in LEVELS.into_iter().filter(|(suffix, _)| *suffix != "ai_cs") {
        names.insert("utf8mb4", format!("utf8mb4_0900_{suffix}"), Rule::Unicode(family, levels), false);
    }
    let binary = if server == Server::MySql { Rule::Bytes } else { Rule::CodePoints };
    names.insert("utf8mb4", "utf8mb4_0900_bin".to_owned(), binary, false);
    for set in EAST_ASIAN_SETS.into_iter().chain(SINGLE_BYTE_SETS) {
        names.add(set, "bin", Rule::Bytes);
    }
    for (name, weights) in SINGLE_BYTE.iter() {
        if let Some((set, suffix)) = name.split_once('_') {
            names.add(set, suffix, Rule::SingleByte(weights));
        }
    }
    names.names
}

struct Adder {
    server: Server,
    names: Names,
}

impl Adder {
    /// `SET_FAMILY_ci` and the form of it that does not pad.
    fn unicode(&mut self, set: &str, family: &str, weights: &'static LazyLock<Family>) {
        self.add(set, &format!("{family}_ci"), Rule::Unicode(weights, &[0]));
    }

    /// `SET_SUFFIX` and, on MariaDB, the form of it that does not pad.
    fn add(&mut self, set: &str, suffix: &str, rule: Rule) {
        self.insert(set, format!("{set}_{suffix}"), rule, true);
        if self.server == Server::MariaDb {
            let name = match suffix.rsplit_once('_') {
                Some((stem, kind)) => format!("{set}_{stem}_nopad_{kind}"),
                None => format!("{set}_nopad_{suffix}"),
            };
            self.insert(set, name, rule, false);
        }
    }

    fn insert(&mut self, set: &str, name: String, rule: Rule, pads: bool) {
        if let Some(charset) = Charset::lookup(set) {
            self.names.insert(name, Collation { charset, rule, pads });
        }
    }
}
