//! Orders of each kind of collation, and sort keys against comparison.

use std::cmp::Ordering;

use proptest::prelude::*;

use super::*;
use crate::ComparedKey;

fn collation(server: Server, name: &str) -> &'static Collation {
    Collation::lookup(server, name).unwrap_or_else(|| panic!("{name}"))
}

fn key(collation: &Collation, text: &str) -> Vec<u8> {
    let mut key = Vec::new();
    collation.sort_key(text, &mut key);
    key
}

#[test]
fn a_name_means_another_order_on_another_server() {
    // Hangul syllables weigh as their letters in Unicode 9.0.0 on MySQL, and as one character on MariaDB.
    let (han, hangul) = ("\u{4e00}", "\u{ac00}");
    for (server, order) in [(Server::MySql, Ordering::Less), (Server::MariaDb, Ordering::Greater)] {
        assert_eq!(collation(server, "utf8mb4_0900_ai_ci").compare(hangul, han), order);
    }
}

/// Answers of MariaDB 10.11 on rows that were inserted through UTF-8.
#[test]
fn characters_of_two_byte_sequences_are_told_apart() {
    for (name, texts) in [("cp932_bin", "?~①Ⅷ㈱∵∪￢ソ髙纊"), ("eucjpms_bin", "?①Ⅷ㈱∵∪￢ソ")]
    {
        let collation = collation(Server::MariaDb, name);
        let mut keys: Vec<_> =
            texts.chars().map(|character| key(collation, &character.to_string())).collect();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), texts.chars().count(), "{name}");
    }
    let collation = collation(Server::MariaDb, "cp932_bin");
    // 0x875B is before 0xEE5A, which repeats 0xFAAF.
    assert_eq!(collation.compare("Ⅷ", "髙"), Ordering::Less);
    assert_eq!(collation.compare("∵", "Ⅷ"), Ordering::Less);
}

#[test]
fn padding_counts_as_spaces() {
    for (name, order) in [
        ("utf8mb4_general_ci", Ordering::Equal),
        ("utf8mb4_uca1400_as_cs", Ordering::Equal),
        ("utf8mb4_bin", Ordering::Equal),
        ("latin1_swedish_ci", Ordering::Equal),
        ("latin1_swedish_nopad_ci", Ordering::Less),
        ("utf8mb4_uca1400_nopad_ai_ci", Ordering::Less),
        ("utf8mb4_0900_bin", Ordering::Less),
    ] {
        let collation = collation(Server::MariaDb, name);
        assert_eq!(collation.compare("a", "a  "), order, "{name}");
        assert_eq!(key(collation, "a").cmp(&key(collation, "a  ")), order, "{name}");
    }
    let padded = collation(Server::MySql, "utf8mb4_bin");
    for (less, greater) in [("a\t", "a"), ("a", "a!"), ("a  \t", "a"), ("a   b", "a  b"), ("a b", "ab")] {
        assert!(padded.compare(less, greater).is_lt(), "{less:?} {greater:?}");
        assert!(key(padded, less) < key(padded, greater), "{less:?} {greater:?}");
    }
}

#[test]
fn accents_and_case_count_where_the_name_says_so() {
    for (suffix, accent, case) in [("ai_ci", false, false), ("as_ci", true, false), ("as_cs", true, true)] {
        for (server, family) in [(Server::MySql, "0900"), (Server::MariaDb, "uca1400")] {
            let collation = collation(server, &format!("utf8mb4_{family}_{suffix}"));
            assert_eq!(collation.compare("resume", "résumé").is_ne(), accent, "{family} {suffix}");
            assert_eq!(collation.compare("a", "A").is_ne(), case, "{family} {suffix}");
            // An accent decides before the case of an earlier letter.
            assert_eq!(collation.compare("Ab", "áb").is_lt(), accent, "{family} {suffix}");
        }
    }
}

#[test]
fn contractions_weigh_as_one_in_unicode_14() {
    let collation = collation(Server::MariaDb, "utf8mb4_uca1400_ai_ci");
    // Thai vowels that are written before their consonant sort after it.
    assert!(collation.compare("\u{e40}\u{e02}", "\u{e02}\u{e41}").is_lt());
    assert!(collation.compare("\u{dd9}\u{dcf}\u{dca}", "\u{ddd}").is_eq());
}

#[test]
fn later_levels_are_padded_in_unicode_14() {
    let collation = collation(Server::MariaDb, "utf8mb4_uca1400_nopad_ai_cs");
    assert!(collation.compare("\u{653}", "").is_eq());
    assert!(collation.compare("a", "a ").is_lt());
    assert!(collation.compare("a", "A").is_lt());
}

#[test]
fn single_byte_collations_go_by_their_table() {
    let swedish = collation(Server::MySql, "latin1_swedish_ci");
    assert!(swedish.compare("étÉ", "ETe").is_eq());
    for pair in ["zå", "åä", "äö"] {
        let mut letters = pair.chars().map(String::from);
        let (Some(a), Some(b)) = (letters.next(), letters.next()) else { panic!("{pair}") };
        assert!(swedish.compare(&a, &b).is_lt(), "{pair}");
    }
    assert!(swedish.compare("ü", "y").is_eq());
    assert!(collation(Server::MySql, "latin1_german2_ci").compare("Straße", "STRASSE").is_eq());
}

#[test]
fn stored_strings_compare_as_their_texts() {
    let compare = |name, a: &[u8], b: &[u8]| collation(Server::MariaDb, name).compare_stored(a, b);
    assert_eq!(compare("utf8mb4_nopad_bin", b"a  ", b"a"), Ordering::Greater);
    assert_eq!(compare("utf8mb4_bin", b"a  ", b"a"), Ordering::Equal);
    assert_eq!(compare("latin1_swedish_ci", b"\xe9", b"E "), Ordering::Equal);
    assert_eq!(compare("utf16_unicode_ci", b"\0\xe9", b"\0E"), Ordering::Equal);
    assert_eq!(compare("sjis_bin", b"\x81\x60", b"\x81\x61"), Ordering::Less);
}

#[test]
fn unknown_collations_are_not_found() {
    for name in ["utf8mb4_swedish_ci", "tis620_thai_ci", "latin2_czech_cs", "utf8mb4_ja_0900_as_cs", ""] {
        assert!(Collation::lookup(Server::MySql, name).is_none(), "{name}");
    }
    assert!(Collation::lookup(Server::MySql, "utf8mb4_general_nopad_ci").is_none());
    assert!(Collation::lookup(Server::MySql, "UTF8_general_ci").is_some());
}

#[test]
fn every_data_file_is_whole() {
    for server in [Server::MySql, Server::MariaDb] {
        for name in Collation::names(server) {
            if let Rule::Unicode(family, levels) = collation(server, name).rule {
                assert!(levels.iter().all(|level| family.level(*level).is_some()), "{name}");
            }
        }
    }
    let german = collation(Server::MariaDb, "latin1_german2_ci");
    assert!(matches!(german.rule, Rule::SingleByte(_)));
}

/// Characters that share weights, carry accents, expand, contract, are ignored, or weigh as spaces or less.
const LETTERS: &str = " \t\n!aAbBlLzZéÉäßæÆ?·\u{a0}\u{2003}\u{301}\u{308}\u{0}\u{1f}\u{7f}\u{e40}\u{e01}\u{e02}\u{dd9}\u{dcf}\u{dca}\
    中가각ｱアぁИ\u{306}яŁ😀\u{20000}\u{11131}\u{11127}";

fn text() -> impl Strategy<Value = String> {
    let letters: Vec<char> = LETTERS.chars().collect();
    let letter = prop_oneof![
        8 => prop::sample::select(letters),
        1 => Just(' '),
        1 => prop::char::range('\0', '\u{ffff}'),
        1 => any::<char>(),
    ];
    prop::collection::vec(letter, 0..8).prop_map(|letters| letters.into_iter().collect())
}

/// That keys of texts, and comparison with a key, are in the order of the texts.
fn check_keys(name: &str, server: Server, [a, b]: [&str; 2]) -> Result<(), TestCaseError> {
    let collation = collation(server, name);
    let expected = collation.compare(a, b);
    if let Rule::Unicode(family, levels) = collation.rule {
        let by_weights = levels.iter().map(|level| collation.at_level(family, *level, a, b));
        let by_weights = by_weights.fold(Ordering::Equal, Ordering::then);
        prop_assert_eq!(expected, by_weights, "{} {:?} {:?}", name, a, b);
    }
    let keys = [a, b].map(|text| key(collation, text));
    prop_assert_eq!(keys[0].cmp(&keys[1]), expected, "{} {:?} {:?} {:02x?}", name, a, b, keys);
    let compared = ComparedKey::new(collation, &keys[1]);
    let found = compared.order_of(a, &mut vec![7]);
    prop_assert_eq!(found, expected, "{} {:?} with the key of {:?} {:02x?}", name, a, b, keys);
    Ok(())
}

proptest! {
    #[test]
    fn sort_keys_compare_as_their_texts(a in text(), b in text(), common in text()) {
        let longer = [common.clone() + &a, common.clone() + &b];
        for server in [Server::MySql, Server::MariaDb] {
            for name in Collation::names(server) {
                let is_single_byte = matches!(collation(server, name).rule, Rule::SingleByte(_) | Rule::Bytes);
                if is_single_byte && !name.starts_with("latin1") && !name.starts_with("sjis") {
                    continue;
                }
                check_keys(name, server, [&a, &b])?;
                check_keys(name, server, [&longer[0], &longer[1]])?;
                check_keys(name, server, [&longer[0], &common])?;
            }
        }
    }
    #[test]
    fn sort_keys_of_ascii_compare_as_their_texts(a in "[\\t !A-Ca-c~]{0,6}", b in "[\\t !A-Ca-c~]{0,6}") {
        for server in [Server::MySql, Server::MariaDb] {
            for name in Collation::names(server) {
                check_keys(name, server, [&a, &b])?;
            }
        }
    }
    #[test]
    fn sort_keys_of_stored_strings_are_those_of_their_texts(text in "[\\t !A-Ca-cäß~]{0,6}") {
        for server in [Server::MySql, Server::MariaDb] {
            for name in Collation::names(server) {
                let collation = collation(server, name);
                if let Encoded::Bytes(stored) = collation.charset.encode(&text) {
                    let mut own = Vec::new();
                    collation.sort_key_of_stored(&stored, &mut own);
                    prop_assert_eq!(own, key(collation, &text), "{} {:?}", name, text);
                }
            }
        }
    }
}

/// What comparison and keys take for granted: of ASCII alone nothing contracts.
#[test]
fn contractions_of_ascii_go_on_with_other_characters() {
    let mut found = 0;
    for server in [Server::MySql, Server::MariaDb] {
        for name in Collation::names(server) {
            if let Rule::Unicode(family, _) = collation(server, name).rule {
                let pairs = (0..0x80u8)
                    .flat_map(|first| (0..0x80u8).map(move |second| [first, second].map(char::from)));
                for [first, second] in pairs {
                    let rest = String::from_iter([second, 'a', 'b']);
                    assert!(family.contraction(first, &rest).is_none(), "{name} {first:?} {second:?}");
                }
                found += usize::from(family.has_contractions_of_ascii());
            }
        }
    }
    assert!(found > 0);
}

/// Answers of MariaDB 11.8.
#[test]
fn ascii_contracts_with_what_follows() {
    let collation = collation(Server::MariaDb, "utf8mb4_uca1400_ai_ci");
    assert_eq!(collation.compare("l\u{b7}", "\u{140}"), Ordering::Equal);
    assert_eq!(collation.compare("al\u{b7}a", "aL\u{b7}b"), Ordering::Less);
}

#[test]
fn keys_of_ascii_are_about_as_long_as_their_texts() {
    let text = "Name 123 of some street";
    for (name, more) in [
        ("utf8mb4_general_ci", 1),
        ("utf8mb4_unicode_ci", 1),
        ("utf8mb4_0900_ai_ci", 0),
        ("latin1_swedish_ci", 1),
        ("utf8mb4_bin", 1),
        ("utf8mb4_uca1400_nopad_ai_ci", 0),
    ] {
        let collation = collation(Server::MariaDb, name);
        assert_eq!(key(collation, text).len(), text.len() + more, "{name}");
    }
}
