//! `LOCATE` and `FIND_IN_SET`: a text within another.
//!
//! - With a single-byte set both servers compare byte by byte.
//! - MariaDB compares as many bytes of the text as the part has: `LOCATE('e', 'é')` is 0 in an accent-insensitive
//!   collation, because `é` has two.
//! - MySQL asks from each character on whether the weights of the rest begin with those of the part, at every level:
//!   `LOCATE('ss', 'ß')` is 1.

use crate::collation::Rule;
use crate::{Collation, Server};

impl Collation {
    /// The number of characters in `text` before the first place where `part` is found from character `from` on.
    pub fn find(&self, server: Server, text: &str, part: &str, from: usize) -> Option<usize> {
        let mut at = text.char_indices().map(|(at, _)| at).chain([text.len()]).enumerate().skip(from);
        if part.is_empty() {
            return at.next().map(|(number, _)| number);
        }
        let bare = self.without_padding();
        let found = |rest: &str| match (self.rule, server) {
            (Rule::SingleByte(_), _) => self.begins_character_by_character(rest, part),
            (Rule::CodePoints | Rule::Bytes, _) => rest.starts_with(part),
            (Rule::Unicode(..), Server::MariaDb) => {
                rest.get(..part.len()).is_some_and(|rest| bare.compare(rest, part).is_eq())
            }
            (Rule::Unicode(family, levels), Server::MySql) => levels.iter().all(|level| {
                let mut weights = family.weights(*level, rest);
                family.weights(*level, part).all(|weight| weights.next() == Some(weight))
            }),
        };
        at.find(|(_, at)| *at < text.len() && found(&text[*at..])).map(|(number, _)| number)
    }

    /// The number, from 1 on, of the element of `list` that equals `element`; elements stand between commas.
    pub fn find_in_set(&self, element: &str, list: &str) -> Option<usize> {
        if list.is_empty() || element.contains(',') {
            return None;
        }
        let bare = self.without_padding();
        list.split(',').position(|own| bare.compare(own, element).is_eq()).map(|at| at + 1)
    }

    fn begins_character_by_character(&self, text: &str, part: &str) -> bool {
        let mut text = text.chars();
        part.chars().all(|own| text.next().is_some_and(|next| self.same_character(own, next)))
    }

    /// The same collation, in which trailing spaces count.
    fn without_padding(&self) -> Collation {
        Collation { pads: false, ..*self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Server::{MariaDb, MySql};

    fn collation(server: Server, name: &str) -> &'static Collation {
        Collation::lookup(server, name).unwrap_or_else(|| panic!("{name}"))
    }

    #[test]
    fn parts_are_found_as_on_the_servers() {
        // Answers of `LOCATE(part, text)` on MariaDB 10.11 and 11.8 and on MySQL 9.7, 0 where there is none.
        for (server, name, part, text, expected) in [
            (MariaDb, "utf8mb4_general_ci", "e", "é", 0),
            (MariaDb, "utf8mb4_general_ci", "É", "café", 4),
            (MariaDb, "utf8mb4_general_ci", "CAFE", "café", 0),
            (MariaDb, "utf8mb4_general_ci", "a ", "a", 0),
            (MariaDb, "utf8mb4_general_ci", "", "", 1),
            (MariaDb, "utf8mb4_general_ci", "s", "aß", 0),
            (MariaDb, "utf8mb4_unicode_ci", "ss", "ß", 1),
            (MariaDb, "utf8mb4_unicode_ci", "ß", "ss", 1),
            (MariaDb, "utf8mb4_bin", "É", "café", 0),
            (MariaDb, "utf8mb4_bin", "fé", "café", 3),
            (MariaDb, "utf8mb4_uca1400_as_cs", "É", "café", 0),
            (MariaDb, "utf8mb4_uca1400_as_ci", "É", "café", 4),
            (MySql, "utf8mb4_0900_ai_ci", "ss", "ß", 1),
            (MySql, "utf8mb4_0900_ai_ci", "s", "aßb", 2),
            (MySql, "utf8mb4_0900_ai_ci", "sx", "ßx", 0),
            (MySql, "utf8mb4_0900_ai_ci", "ß", "strasse", 5),
            (MySql, "utf8mb4_0900_ai_ci", "cafe", "xcafé", 2),
            (MySql, "utf8mb4_0900_as_ci", "e", "café", 4),
            (MySql, "utf8mb4_0900_as_ci", "ca", "Cáca", 1),
            (MySql, "utf8mb4_0900_as_cs", "ca", "Caca", 3),
            (MySql, "utf8mb4_0900_as_cs", "E", "café", 0),
            (MySql, "utf8mb4_general_ci", "s", "aß", 2),
            (MySql, "latin1_swedish_ci", "É", "cafe", 4),
        ] {
            let found = collation(server, name).find(server, text, part, 0).map_or(0, |at| at + 1);
            assert_eq!(found, expected, "{name} {part} {text}");
        }
        let general = collation(MariaDb, "utf8mb4_general_ci");
        assert_eq!(general.find(MariaDb, "abcb", "B", 2), Some(3));
        assert_eq!(general.find(MariaDb, "abc", "", 3), Some(3));
        assert_eq!(general.find(MariaDb, "abc", "", 4), None);
    }

    #[test]
    fn elements_are_found_without_padding() {
        for (name, element, list, expected) in [
            ("utf8mb4_general_ci", "A", "b,a", Some(2)),
            ("utf8mb4_general_ci", "a ", "b,a", None),
            ("utf8mb4_general_ci", "é", "b,e,f", Some(2)),
            ("utf8mb4_general_ci", "", "a,,b", Some(2)),
            ("utf8mb4_general_ci", "", "", None),
            ("utf8mb4_general_ci", "", ",a", Some(1)),
            ("utf8mb4_general_ci", "a,b", "a,b", None),
            ("utf8mb4_unicode_ci", "ss", "b,ß", Some(2)),
            ("utf8mb4_bin", "a ", "b,a", None),
        ] {
            let found = collation(MariaDb, name).find_in_set(element, list);
            assert_eq!(found, expected, "{name} {element} {list}");
        }
    }
}
