//! How a text compares: its collation, its character set, and how strongly they are meant.
//!
//! Where texts of two collations meet, the servers decide by coercibility, and so does [`Collating::merged`]:
//!
//! | coercibility | of                                            |
//! |--------------|-----------------------------------------------|
//! | 0            | `COLLATE`                                     |
//! | 1            | texts of columns of different collations      |
//! | 2            | a column, a variable, CAST                    |
//! | 3            | USER(), DATABASE(), VERSION()                 |
//! | 4            | a literal, a function of literals             |
//! | 5            | the text of a number or date                  |
//! | 6            | NULL                                          |
//!
//! The least wins. Of two that are equal a collation by bytes wins, else there is none: the servers refuse to compare
//! such texts (MySQL lets the collation of a third text decide, which is refused here). A character set of Unicode wins
//! over another one.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};
use tanada_collation::{Charset, Collation, Encoded, Pattern, Server};

use super::{Connection, Refusal};

/// How a text compares, and how its bytes are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Collating {
    /// The collation; `None` if it is not known, as that of a literal in a column's expression.
    pub collation: Option<String>,
    /// The character set; `None` if it is not known.
    pub charset: Option<String>,
    /// The coercibility.
    pub strength: u8,
    /// Whether it may have other letters than ASCII and is no constant, by MariaDB's knowledge: such a text is not
    /// brought into the narrower character set of a stronger one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wide: bool,
}

/// Coercibility with COLLATE.
pub(crate) const EXPLICIT: u8 = 0;
/// Coercibility of texts that have no common collation.
pub(crate) const NONE: u8 = 1;
/// Coercibility of a column.
pub(crate) const IMPLICIT: u8 = 2;
/// Coercibility of a literal.
pub(crate) const COERCIBLE: u8 = 4;
/// Coercibility of a number.
pub(crate) const NUMERIC: u8 = 5;

impl Collating {
    /// Of a literal of an unknown connection.
    pub(crate) fn literal(charset: Option<String>) -> Collating {
        Collating { collation: None, charset, strength: COERCIBLE, wide: false }
    }

    /// Of a literal of a query.
    pub(crate) fn connection(connection: &Connection) -> Collating {
        Collating::named(connection.collation, COERCIBLE)
    }

    /// Of the text of a number or date.
    pub(crate) fn number() -> Collating {
        Collating { collation: None, charset: None, strength: NUMERIC, wide: false }
    }

    /// Of the collation `name`.
    pub(crate) fn named(name: &str, strength: u8) -> Collating {
        let charset = name.split_once('_').map_or(name, |(charset, _)| charset);
        Collating {
            collation: Some(name.to_string()),
            charset: Some(charset.to_string()),
            strength,
            wide: false,
        }
    }

    /// Of the default collation of a character set; not known if there is none.
    pub(crate) fn of_charset(charset: &str, connection: &Connection, strength: u8) -> Collating {
        match connection.default_of(charset) {
            Some(name) => Collating { strength, ..Collating::column(&name, connection.server) },
            None => Collating { collation: None, charset: Some(charset.to_string()), strength, wide: false },
        }
    }

    /// Of a column's collation on `server`.
    pub(crate) fn column(name: &str, server: Server) -> Collating {
        // MariaDB gives MySQL's names to weights of its own.
        let own = match (server, name.strip_prefix("utf8mb4_0900_")) {
            (Server::MariaDb, Some("bin")) => Some("utf8mb4_nopad_bin".to_string()),
            (Server::MariaDb, Some(rest)) => Some(format!("utf8mb4_uca1400_nopad_{rest}")),
            _ => None,
        };
        Collating::named(own.as_deref().unwrap_or(name), IMPLICIT)
    }

    /// Of a text in `charset`, if that is known, with `COLLATE name` on `server`.
    pub(crate) fn collate(name: &str, charset: Option<String>, server: Server) -> Collating {
        let own = Collating::column(name, server);
        Collating { charset: charset.or(own.charset), strength: EXPLICIT, ..own }
    }

    /// Of what two texts are put together to, or are compared by.
    pub(crate) fn merged(&self, other: &Collating) -> Collating {
        let (strong, weak) = if other.strength < self.strength { (other, self) } else { (self, other) };
        if strong.strength < weak.strength {
            let narrow = strong.is_narrower_than(weak) && (weak.strength <= IMPLICIT || weak.wide);
            return if narrow { Collating::without_any() } else { strong.clone() };
        }
        match (strong.collation == weak.collation, &strong.charset, &weak.charset) {
            (true, _, _) => Collating {
                charset: strong.charset.clone().filter(|_| strong.charset == weak.charset),
                ..strong.clone()
            },
            // One that is not known of a literal is the connection's, as the other one's.
            _ if strong.collation.is_none() && strong.strength >= COERCIBLE => weak.clone(),
            _ if weak.collation.is_none() && weak.strength >= COERCIBLE => strong.clone(),
            _ if strong.collation.is_none() || weak.collation.is_none() => Collating {
                collation: None,
                charset: strong.charset.clone().filter(|_| strong.charset == weak.charset),
                strength: strong.strength,
                wide: false,
            },
            (_, Some(own), Some(others)) if own != others => {
                match (weak.is_narrower_than(strong), strong.is_narrower_than(weak)) {
                    (true, _) => strong.clone(),
                    (_, true) => weak.clone(),
                    _ => Collating::without_any(),
                }
            }
            _ if strong.strength == EXPLICIT => Collating::without_any(),
            _ if strong.is_binary() => strong.clone(),
            _ if weak.is_binary() => weak.clone(),
            (_, Some(charset), _) => Collating::named(&format!("{charset}_bin"), NONE),
            _ => Collating::without_any(),
        }
    }

    /// Of what texts are put together to.
    ///
    /// # Errors
    /// If the servers do not mix them.
    pub(crate) fn mixed(&self, other: &Collating, operation: &str) -> Result<Collating, Refusal> {
        let merged = self.merged(other);
        match merged.strength == NONE && merged.collation.is_none() {
            true => Err(self.illegal_mix(other, operation)),
            false => Ok(merged),
        }
    }

    /// How texts of both are compared.
    ///
    /// # Errors
    /// If the servers do not compare them.
    pub(crate) fn compared(&self, other: &Collating, operation: &str) -> Result<Collating, Refusal> {
        let merged = self.merged(other);
        match merged.strength == NONE {
            true => Err(self.illegal_mix(other, operation)),
            false => Ok(merged),
        }
    }

    fn illegal_mix(&self, other: &Collating, operation: &str) -> Refusal {
        let strengths = ["EXPLICIT", "NONE", "IMPLICIT", "SYSCONST", "COERCIBLE", "NUMERIC", "IGNORABLE"];
        let show = |own: &Collating| {
            let strength = strengths.get(usize::from(own.strength)).unwrap_or(&"NONE");
            format!("({},{strength})", own.collation.as_deref().unwrap_or("none"))
        };
        Refusal::new(format!(
            "Illegal mix of collations {} and {} for operation '{operation}'",
            show(self),
            show(other)
        ))
    }

    fn without_any() -> Collating {
        Collating { collation: None, charset: None, strength: NONE, wide: false }
    }

    /// Whether the other's character set has all characters of this one, and more.
    fn is_narrower_than(&self, other: &Collating) -> bool {
        let (Some(own), Some(others)) = (self.charset.as_deref(), other.charset.as_deref()) else {
            return false;
        };
        let rank = |charset: &str| match charset {
            "utf8mb4" | "utf16" | "utf16le" | "utf32" => 2,
            "utf8mb3" | "utf8" | "ucs2" => 1,
            _ => 0,
        };
        rank(own) < rank(others)
    }

    /// Whether it compares by bytes or code points.
    pub(crate) fn is_binary(&self) -> bool {
        self.collation.as_deref().is_some_and(|name| name == "binary" || name.ends_with("_bin"))
    }

    /// The bytes of `text` in its character set.
    pub(crate) fn bytes(&self, text: &str) -> Result<Vec<u8>, Refusal> {
        let Some(name) = self.charset.as_deref() else {
            return match text.is_ascii() {
                true => Ok(text.as_bytes().to_vec()),
                false => Err(Refusal::new("bytes of a text in its character set")),
            };
        };
        match Charset::lookup(name).map(|charset| charset.encode(text)) {
            Some(Encoded::Bytes(bytes)) => Ok(bytes.into_owned()),
            _ => Err(Refusal::new("bytes of a text in its character set")),
        }
    }

    /// The text with question marks for what its character set lacks.
    pub(crate) fn held(&self, text: &str) -> Result<String, Refusal> {
        let Some(name) = self.charset.as_deref() else { return Ok(text.to_string()) };
        let unknown = || Refusal::new("bytes of a text in its character set");
        let charset = Charset::lookup(name).ok_or_else(unknown)?;
        let is_held = |text: &str| match charset.encode(text) {
            Encoded::Bytes(_) => Ok(true),
            Encoded::Absent => Ok(false),
            _ => Err(unknown()),
        };
        if text.is_ascii() || is_held(text)? {
            return Ok(text.to_string());
        }
        let mut held = String::with_capacity(text.len());
        for letter in text.chars() {
            held.push(if is_held(letter.encode_utf8(&mut [0; 4]))? { letter } else { '?' });
        }
        Ok(held)
    }

    /// The text of `bytes` in its character set.
    pub(crate) fn text(&self, bytes: &[u8]) -> Result<String, Refusal> {
        let name = self.charset.as_deref().unwrap_or("utf8mb4");
        let text = Charset::lookup(name).and_then(|charset| Some(charset.decode(bytes)?.into_owned()));
        text.ok_or_else(|| Refusal::new("bytes that are no text"))
    }

    /// Whether letters compare without case; `None` if that is not known.
    pub(crate) fn folds(&self) -> Option<bool> {
        let collation = self.known().ok().flatten()?;
        Some(collation.compare("a", "A").is_eq())
    }

    /// The collation itself; `None` if this text has none that is known.
    ///
    /// # Errors
    /// If its order is not known here.
    pub(crate) fn known(&self) -> Result<Option<&'static Collation>, Refusal> {
        let Some(name) = self.collation.as_deref() else { return Ok(None) };
        // Other names mean the same order on both servers.
        let server = if name.starts_with("utf8mb4_0900_") { Server::MySql } else { Server::MariaDb };
        match Collation::lookup(server, name) {
            Some(collation) => Ok(Some(collation)),
            None => Err(Refusal::new(format!("the collation {name}, whose order is not known"))),
        }
    }

    /// Compares two texts.
    ///
    /// # Errors
    /// If the order is not known.
    pub(crate) fn compare(&self, left: &str, right: &str) -> Result<Ordering, Refusal> {
        if left == right {
            return Ok(Ordering::Equal);
        }
        match self.known()? {
            Some(collation) => {
                self.check_characters(collation, left)?;
                self.check_characters(collation, right)?;
                Ok(collation.compare(left, right))
            }
            None => agreed(|collation| collation.compare(left, right)),
        }
    }

    /// Whether two texts are equal, which is known of more texts than their order.
    ///
    /// # Errors
    /// If it is not known.
    pub(crate) fn equals(&self, left: &str, right: &str) -> Result<bool, Refusal> {
        match self.collation {
            Some(_) => self.compare(left, right).map(Ordering::is_eq),
            None if left == right => Ok(true),
            None => agreed(|collation| collation.compare(left, right).is_eq()),
        }
    }

    /// Whether `text` is LIKE `pattern`.
    ///
    /// # Errors
    /// If it is not known.
    pub(crate) fn like(&self, text: &str, pattern: &str, escape: Option<char>) -> Result<bool, Refusal> {
        match self.known()? {
            Some(collation) => {
                self.check_characters(collation, text)?;
                self.check_characters(collation, pattern)?;
                Ok(Pattern::new(collation, pattern, escape).matches(text))
            }
            None => agreed(|collation| Pattern::new(collation, pattern, escape).matches(text)),
        }
    }

    /// Where `part` is in `text`, in characters before it.
    ///
    /// # Errors
    /// If it is not known.
    pub(crate) fn find(
        &self,
        server: Server,
        text: &str,
        part: &str,
        from: usize,
    ) -> Result<Option<usize>, Refusal> {
        match self.known()? {
            Some(collation) => {
                self.check_characters(collation, text)?;
                self.check_characters(collation, part)?;
                Ok(collation.find(server, text, part, from))
            }
            None => agreed(|collation| collation.find(server, text, part, from)),
        }
    }

    /// The number of the element of a list that equals `element`; elements stand between commas.
    ///
    /// # Errors
    /// If it is not known.
    pub(crate) fn find_in_set(&self, element: &str, list: &str) -> Result<Option<usize>, Refusal> {
        match self.known()? {
            Some(collation) => {
                self.check_characters(collation, element)?;
                self.check_characters(collation, list)?;
                Ok(collation.find_in_set(element, list))
            }
            None => agreed(|collation| collation.find_in_set(element, list)),
        }
    }

    /// The servers refuse what the collation's character set does not have.
    fn check_characters(&self, collation: &Collation, text: &str) -> Result<(), Refusal> {
        match collation.holds(text) {
            true => Ok(()),
            false => Err(Refusal::new(format!(
                "Cannot convert string '{text}' to {}",
                self.charset.as_deref().unwrap_or("its character set")
            ))),
        }
    }
}

/// What all collations say that a literal may have.
fn agreed<T: PartialEq>(of: impl Fn(&Collation) -> T) -> Result<T, Refusal> {
    let refusal = || Refusal::new("texts that compare differently by collation");
    let names = [
        (Server::MySql, "utf8mb4_0900_ai_ci"),
        (Server::MySql, "utf8mb4_0900_as_cs"),
        (Server::MariaDb, "utf8mb4_general_ci"),
        (Server::MariaDb, "utf8mb4_uca1400_ai_ci"),
        (Server::MariaDb, "utf8mb4_unicode_ci"),
        (Server::MariaDb, "utf8mb4_bin"),
        (Server::MariaDb, "utf8mb4_nopad_bin"),
        (Server::MariaDb, "latin1_swedish_ci"),
    ];
    let mut answers = names.into_iter().map(|(server, name)| Collation::lookup(server, name).map(&of));
    let first = answers.next().flatten().ok_or_else(refusal)?;
    match answers.all(|answer| answer.as_ref() == Some(&first)) {
        true => Ok(first),
        false => Err(refusal()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str) -> Collating {
        Collating::column(name, Server::MariaDb)
    }

    #[test]
    fn texts_compare_by_collation() {
        let compare =
            |name: &str, left: &str, right: &str| Collating::named(name, 2).compare(left, right).ok();
        assert_eq!(compare("utf8mb4_bin", "a", "A"), Some(Ordering::Greater));
        assert_eq!(compare("utf8mb4_bin", "a", "a  "), Some(Ordering::Equal));
        assert_eq!(compare("utf8mb4_0900_ai_ci", "a", "A"), Some(Ordering::Equal));
        assert_eq!(compare("utf8mb4_0900_ai_ci", "a", "a "), Some(Ordering::Less));
        assert_eq!(compare("utf8mb4_general_ci", "a_b", "aZb"), Some(Ordering::Greater));
        assert_eq!(compare("utf8mb4_0900_ai_ci", "a_b", "aZb"), Some(Ordering::Less));
        assert_eq!(compare("utf8mb4_general_ci", "é", "e"), Some(Ordering::Equal));
        assert_eq!(compare("latin1_swedish_ci", "é", "E "), Some(Ordering::Equal));
    }

    #[test]
    fn unknown_collations_and_characters_are_refused() {
        assert!(Collating::named("utf8mb4_swedish_ci", 2).compare("a", "b").is_err());
        assert!(Collating::named("latin1_swedish_ci", 2).compare("a", "日").is_err());
        assert!(Collating::named("utf8mb3_general_ci", 2).compare("a", "😀").is_err());
    }

    #[test]
    fn literals_compare_by_an_unknown_collation() {
        let literal = Collating::literal(None);
        assert_eq!(literal.compare("a", "a"), Ok(Ordering::Equal));
        assert_eq!(literal.compare("a", "b"), Ok(Ordering::Less));
        assert!(literal.compare("a", "A").is_err());
        assert!(literal.compare("a", "B").is_err());
        assert_eq!(literal.equals("a", "B"), Ok(false));
    }

    #[test]
    fn coercibility_decides_between_collations() {
        // Answers of MariaDB 10.11 and MySQL 9.7; `None` where both refuse `=`.
        let (general, binary, unicode) =
            (column("utf8mb4_general_ci"), column("utf8mb4_bin"), column("utf8mb4_unicode_ci"));
        let (latin1, latin2, utf8mb3) =
            (column("latin1_swedish_ci"), column("latin2_general_ci"), column("utf8mb3_general_ci"));
        let literal = Collating::connection(&Connection::new(Server::MySql));
        let explicit = |name: &str| Collating::named(name, EXPLICIT);
        for (left, right, expected) in [
            (&general, &binary, Some("utf8mb4_bin")),
            (&general, &unicode, None),
            (&general, &literal, Some("utf8mb4_general_ci")),
            (&latin1, &literal, Some("latin1_swedish_ci")),
            (&latin1, &general, Some("utf8mb4_general_ci")),
            (&latin1, &latin2, None),
            (&latin1, &column("latin1_bin"), Some("latin1_bin")),
            (&utf8mb3, &general, Some("utf8mb4_general_ci")),
            (&utf8mb3, &latin1, Some("utf8mb3_general_ci")),
            (&general, &explicit("utf8mb4_bin"), Some("utf8mb4_bin")),
            (&latin1, &explicit("utf8mb4_bin"), Some("utf8mb4_bin")),
            (&general, &explicit("latin1_bin"), None),
            (&explicit("utf8mb4_unicode_ci"), &explicit("utf8mb4_bin"), None),
            (&Collating::number(), &general, Some("utf8mb4_general_ci")),
        ] {
            for (left, right) in [(left, right), (right, left)] {
                let compared = left.compared(right, "=").ok().and_then(|compared| compared.collation);
                assert_eq!(compared.as_deref(), expected, "{left:?} {right:?}");
            }
        }
        let both = general.mixed(&unicode, "concat");
        assert_eq!(both, Ok(Collating::named("utf8mb4_bin", NONE)));
        assert!(latin1.mixed(&latin2, "concat").is_err());
    }

    #[test]
    fn names_of_mysql_mean_other_weights_on_mariadb() {
        let name = "utf8mb4_0900_ai_ci";
        let own = Collating::column(name, Server::MariaDb).collation;
        assert_eq!(own.as_deref(), Some("utf8mb4_uca1400_nopad_ai_ci"));
        assert_eq!(Collating::column(name, Server::MySql).collation.as_deref(), Some(name));
    }
}
