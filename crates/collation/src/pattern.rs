//! `LIKE`: patterns of `%` and `_`, matched character by character.
//!
//! Both servers compare one character of the pattern with one of the text: expansions and contractions do not count
//! (`'ß' LIKE 'ss'` is false where `'ß' = 'ss'` is true), nor does padding.

mod ascii;

use ascii::Segment;

use crate::Collation;
use crate::collation::Rule;
use crate::weights::{Found, GENERAL, GENERAL_5_0};

/// A pattern of `LIKE`, ready to be matched.
#[derive(Debug, Clone)]
pub struct Pattern<'a> {
    collation: &'a Collation,
    parts: Vec<Part>,
    /// What stands between the `%`, for texts of ASCII.
    segments: Vec<Segment>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Part {
    /// A character, and the ASCII characters that are the same to the collation: bit `n` is character `n`.
    Character(char, u128),
    /// `_`
    One,
    /// `%`
    Any,
}

impl<'a> Pattern<'a> {
    /// Reads `pattern`. A character after `escape` stands for itself; an escape at the end matches nothing.
    ///
    /// ```
    /// use tanada_collation::{Collation, Pattern, Server};
    /// let general = Collation::lookup(Server::MariaDb, "utf8mb4_general_ci").ok_or("unknown")?;
    /// assert!(Pattern::new(general, "CAF_%", Some('\\')).matches("café"));
    /// assert!(!Pattern::new(general, r"caf\_", Some('\\')).matches("café"));
    /// # Ok::<(), &str>(())
    /// ```
    pub fn new(collation: &'a Collation, pattern: &str, escape: Option<char>) -> Pattern<'a> {
        let itself = |character: char| Part::Character(character, collation.same_ascii(character));
        let mut parts = Vec::new();
        let mut characters = pattern.chars();
        while let Some(character) = characters.next() {
            let part = match character {
                character if Some(character) == escape => itself(characters.next().unwrap_or(character)),
                '%' => Part::Any,
                '_' => Part::One,
                character => itself(character),
            };
            if part != Part::Any || parts.last() != Some(&Part::Any) {
                parts.push(part);
            }
        }
        let segments = parts.split(|part| *part == Part::Any).map(Segment::new).collect();
        Pattern { collation, parts, segments }
    }

    /// Whether the whole of `text` matches.
    pub fn matches(&self, text: &str) -> bool {
        if text.is_ascii() {
            return ascii::matches(&self.segments, text.as_bytes());
        }
        self.matches_characters(text)
    }

    fn matches_characters(&self, text: &str) -> bool {
        let mut rest = text.chars();
        let mut part = 0;
        // Where to go on when what follows the last `%` does not match: that part, and the text behind a longer run.
        let mut retry: Option<(usize, std::str::Chars<'_>)> = None;
        loop {
            let fits = match self.parts.get(part) {
                Some(Part::Any) => {
                    part += 1;
                    if part == self.parts.len() {
                        return true;
                    }
                    retry = Some((part, rest.clone()));
                    continue;
                }
                None if rest.as_str().is_empty() => return true,
                None => false,
                Some(own) => match (own, rest.next()) {
                    // A longer run leaves less text.
                    (_, None) => return false,
                    (Part::Character(_, same), Some(next)) if next.is_ascii() => {
                        same >> u32::from(next) & 1 == 1
                    }
                    (Part::Character(own, _), Some(next)) => self.collation.same_character(*own, next),
                    _ => true,
                },
            };
            if fits {
                part += 1;
                continue;
            }
            let Some((from, behind)) = &mut retry else { return false };
            if behind.next().is_none() {
                return false;
            }
            (part, rest) = (*from, behind.clone());
        }
    }
}

impl Collation {
    /// Whether `LIKE` takes `a` for `b`.
    pub fn same_character(&self, a: char, b: char) -> bool {
        if a == b {
            return true;
        }
        match self.rule {
            Rule::CodePoints | Rule::Bytes => false,
            Rule::Unicode(family, levels) => {
                let is_general = std::ptr::eq(family, &GENERAL) || std::ptr::eq(family, &GENERAL_5_0);
                let mut text = [[0; 4]; 2];
                let [first, second] = &mut text;
                let (first, second) = (a.encode_utf8(first), b.encode_utf8(second));
                levels.iter().all(|level| {
                    // The other families know characters of computed weights by their code points.
                    let is_listed = |character: char| {
                        let found = family.level(*level).map(|level| level.find(character));
                        is_general || matches!(found, Some(Found::Listed(_)))
                    };
                    is_listed(a)
                        && is_listed(b)
                        && family.weights(*level, first).eq(family.weights(*level, second))
                })
            }
            Rule::SingleByte(weights) => {
                let mut text = [[0; 4]; 2];
                let [first, second] = &mut text;
                let (first, second) = (a.encode_utf8(first), b.encode_utf8(second));
                let of = |text: &str| self.stored(text).into_owned();
                weights.of(of(first).into_iter()).eq(weights.of(of(second).into_iter()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Server::{self, MariaDb, MySql};

    fn matches(server: Server, name: &str, text: &str, pattern: &str) -> bool {
        let collation = Collation::lookup(server, name).unwrap_or_else(|| panic!("{name}"));
        Pattern::new(collation, pattern, Some('\\')).matches(text)
    }

    proptest::proptest! {
        #[test]
        fn ascii_matches_as_characters_do(
            pattern in r"[ae%_S\x01 ßé]{0,8}",
            text in r"[aAeEsS\x01\x02 ]{0,12}",
            chosen in 0usize..7,
        ) {
            let (server, name) = [
                (MariaDb, "utf8mb4_general_ci"),
                (MariaDb, "utf8mb4_uca1400_as_ci"),
                (MariaDb, "utf8mb4_unicode_ci"),
                (MySql, "utf8mb4_0900_ai_ci"),
                (MySql, "latin1_german2_ci"),
                (MySql, "latin1_bin"),
                (MySql, "utf8mb4_0900_as_cs"),
            ][chosen];
            let collation = Collation::lookup(server, name).unwrap_or_else(|| panic!("{name}"));
            let pattern = Pattern::new(collation, &pattern, None);
            let text: String = text;
            assert_eq!(pattern.matches(&text), pattern.matches_characters(&text));
        }
    }

    #[test]
    fn characters_know_their_ascii_equals() {
        for server in [MariaDb, MySql] {
            for name in Collation::names(server) {
                let collation = Collation::lookup(server, name).unwrap_or_else(|| panic!("{name}"));
                for own in "\0\x01 -0AasSvVwWzZßéſKＡ①".chars() {
                    let same = collation.same_ascii(own);
                    for other in '\0'..='\x7f' {
                        let is_same = same >> u32::from(other) & 1 == 1;
                        assert_eq!(is_same, collation.same_character(own, other), "{name} {own:?} {other:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn patterns_match_whole_texts() {
        let general = |text, pattern| matches(MariaDb, "utf8mb4_general_ci", text, pattern);
        for (text, pattern) in [
            ("abc", "a%"),
            ("abc", "%b%"),
            ("abc", "a%%c"),
            ("", ""),
            ("", "%"),
            ("a%c", r"a\%c"),
            ("aab", "%ab"),
            ("abcabd", "%ab_"),
            ("abcabd", "a%b%d"),
            (r"a\", r"A\\"),
            (r"a\", r"a\"),
        ] {
            assert!(general(text, pattern), "{text} {pattern}");
        }
        for (text, pattern) in
            [("abc", "%b"), ("abc", "a_"), ("abc", r"a\%c"), ("", "_"), ("a ", "a"), ("a", r"a\")]
        {
            assert!(!general(text, pattern), "{text} {pattern}");
        }
    }

    #[test]
    fn characters_match_as_on_the_servers() {
        // Answers of MariaDB 10.11 and 11.8 and of MySQL 9.7.
        for (server, name, text, pattern, expected) in [
            (MariaDb, "utf8mb4_general_ci", "é", "e", true),
            (MariaDb, "utf8mb4_general_ci", "ß", "ss", false),
            (MariaDb, "utf8mb4_general_ci", "ß", "s", true),
            (MariaDb, "utf8mb4_general_ci", "😀", "😁", true),
            (MariaDb, "utf8mb4_unicode_ci", "😀", "😁", false),
            (MariaDb, "utf8mb4_unicode_ci", "ß", "ss", false),
            (MariaDb, "utf8mb4_unicode_ci", "æ", "ae", false),
            (MariaDb, "utf8mb4_unicode_ci", "a\0", "a", false),
            (MariaDb, "utf8mb4_unicode_ci", "e\u{301}", "e_", true),
            (MariaDb, "utf8mb4_bin", "ab", "A_", false),
            (MariaDb, "utf8mb4_bin", "é", "_", true),
            (MariaDb, "utf8mb4_uca1400_as_ci", "a", "A", true),
            (MariaDb, "utf8mb4_uca1400_as_ci", "a", "á", false),
            (MariaDb, "utf8mb4_uca1400_ai_cs", "a", "á", false),
            (MySql, "utf8mb4_0900_ai_ci", "Ｅ", "e", true),
            (MySql, "utf8mb4_0900_ai_ci", "①", "1", true),
            (MySql, "utf8mb4_0900_ai_ci", "ß", "s", false),
            (MySql, "utf8mb4_0900_ai_ci", "æ", "a_", false),
            (MySql, "utf8mb4_0900_as_cs", "a", "A", false),
            (MySql, "utf8mb4_0900_as_ci", "a", "á", false),
            (MySql, "latin1_swedish_ci", "Ä", "ä", true),
            (MySql, "latin1_swedish_ci", "Ä", "a", false),
            (MySql, "latin1_german2_ci", "ß", "ss", false),
            (MySql, "latin1_german2_ci", "ß", "s", false),
        ] {
            assert_eq!(matches(server, name, text, pattern), expected, "{name} {text} {pattern}");
        }
    }
}
