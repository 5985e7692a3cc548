//! Types of expressions, as far as they decide what is computed.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};
use tanada_collation::{Charset, Encoded};
use tanada_innodb::{Collation, ColumnType};

use super::Refusal;

/// The type of an expression.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Kind {
    Null,
    Int {
        unsigned: bool,
    },
    Year,
    Bit {
        bits: u8,
    },
    /// With as many digits after the point as its text shows.
    Decimal {
        scale: u8,
    },
    /// Its text shows `decimals` digits after the point, or as many as the number has.
    Double {
        decimals: Option<u8>,
    },
    Float,
    Text(Collating),
    /// ENUM and SET: a text, and another number.
    Choice(Choice),
    Bytes,
    /// A literal of hexadecimal digits or bits: bytes that count as an unsigned integer.
    Hex,
    Date,
    Time {
        fsp: u8,
    },
    DateTime {
        fsp: u8,
    },
    /// A stored TIMESTAMP, a moment of UTC. It is planned as the DATETIME that the session's clock shows.
    Timestamp {
        fsp: u8,
    },
    /// JSON of MySQL, and what MariaDB's functions of documents give.
    Json,
}

/// What an ENUM or SET may be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Choice {
    pub collating: Collating,
    pub elements: Vec<String>,
    pub is_set: bool,
}

impl Choice {
    /// The number of an ENUM's element, or the bits of a SET's; 0 of an empty text. `None` if it is no element.
    pub(super) fn number(&self, text: &str) -> Option<u64> {
        if text.is_empty() {
            return Some(0);
        }
        let place = |text: &str| self.elements.iter().position(|element| element == text);
        if !self.is_set {
            return place(text).map(|at| at as u64 + 1);
        }
        let mut bits = 0;
        for part in text.split(',') {
            bits |= 1u64.checked_shl(u32::try_from(place(part)?).ok()?)?;
        }
        Some(bits)
    }
}

/// How a text compares, and how its bytes are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Collating {
    /// The collation; `None` if it is not known.
    pub collation: Option<String>,
    /// The character set; `None` if it is not known.
    pub charset: Option<String>,
    /// 0 with COLLATE, 1 of a column, 2 of a literal, 3 of a number.
    pub strength: u8,
}

impl Collating {
    /// Of a literal.
    pub(crate) fn literal(charset: Option<String>) -> Collating {
        Collating { collation: None, charset, strength: 2 }
    }

    /// Of the text of a number or date.
    pub(super) fn number() -> Collating {
        Collating { collation: None, charset: None, strength: 3 }
    }

    fn column(collation: &Collation) -> Collating {
        let (name, charset) = (Some(collation.name.clone()), Some(collation.charset.clone()));
        Collating { collation: name, charset, strength: 1 }
    }

    /// Of what two texts are put together to.
    pub(super) fn merged(&self, other: &Collating) -> Collating {
        match self.strength.cmp(&other.strength) {
            Ordering::Less => self.clone(),
            Ordering::Greater => other.clone(),
            Ordering::Equal => Collating {
                collation: self.collation.clone().filter(|_| self.collation == other.collation),
                charset: self.charset.clone().filter(|_| self.charset == other.charset),
                strength: self.strength,
            },
        }
    }

    /// The bytes of `text` in its character set.
    pub(super) fn bytes(&self, text: &str) -> Result<Vec<u8>, Refusal> {
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

    /// The text of `bytes` in its character set.
    pub(super) fn text(&self, bytes: &[u8]) -> Result<String, Refusal> {
        let name = self.charset.as_deref().unwrap_or("utf8mb4");
        let text = Charset::lookup(name).and_then(|charset| Some(charset.decode(bytes)?.into_owned()));
        text.ok_or_else(|| Refusal::new("bytes that are no text"))
    }

    /// Whether letters compare without case; `None` if that is not known.
    pub(super) fn folds(&self, mysql: bool) -> Option<bool> {
        if let Some(collation) = self.known(mysql) {
            return Some(collation.compare("a", "A").is_eq());
        }
        match self.class() {
            Class::Binary { .. } => Some(false),
            Class::Folded { .. } => Some(true),
            Class::Unknown => None,
        }
    }

    /// The collation of a server, if it is known.
    fn known(&self, mysql: bool) -> Option<&'static tanada_collation::Collation> {
        let server = if mysql { tanada_collation::Server::MySql } else { tanada_collation::Server::MariaDb };
        tanada_collation::Collation::lookup(server, self.collation.as_deref()?)
    }

    fn class(&self) -> Class {
        let Some(name) = self.collation.as_deref() else { return Class::Unknown };
        let rest = name.split_once('_').map_or("", |(_, rest)| rest);
        match rest {
            "0900_bin" => Class::Binary { pads: false },
            "bin" => Class::Binary { pads: true },
            "nopad_bin" => Class::Binary { pads: false },
            "general_ci" => Class::Folded { pads: true, by_weights: false },
            "swedish_ci" if self.charset.as_deref() == Some("latin1") => {
                Class::Folded { pads: true, by_weights: false }
            }
            "0900_ai_ci" => Class::Folded { pads: false, by_weights: true },
            "unicode_ci" | "unicode_520_ci" | "uca1400_ai_ci" => {
                Class::Folded { pads: true, by_weights: true }
            }
            _ => Class::Unknown,
        }
    }

    /// Compares two texts.
    ///
    /// # Errors
    /// If the order is not known of letters that decide.
    pub(super) fn compare(&self, left: &str, right: &str, mysql: bool) -> Result<Ordering, Refusal> {
        if left == right {
            return Ok(Ordering::Equal);
        }
        if let Some(collation) = self.known(mysql) {
            return Ok(collation.compare(left, right));
        }
        match self.class() {
            Class::Binary { pads } => {
                let is_utf8 = self.charset.as_deref().is_some_and(|charset| charset.starts_with("utf8"));
                let is_ascii = left.is_ascii() && right.is_ascii();
                if !(is_utf8 || is_ascii) {
                    return Err(Refusal::new("the order of letters of its character set"));
                }
                Ok(padded(left.as_bytes(), right.as_bytes(), pads))
            }
            Class::Folded { pads, by_weights } => folded(left, right, pads, by_weights),
            Class::Unknown => {
                let ways = [
                    Ok(padded(left.as_bytes(), right.as_bytes(), true)),
                    Ok(padded(left.as_bytes(), right.as_bytes(), false)),
                    folded(left, right, true, true),
                    folded(left, right, false, true),
                ];
                let [first, rest @ ..] = ways;
                let first = first?;
                for other in rest {
                    if other? != first {
                        return Err(Refusal::new("texts that compare differently by collation"));
                    }
                }
                Ok(first)
            }
        }
    }

    /// Whether two texts are equal, which is known of more texts than their order.
    ///
    /// # Errors
    /// If it is not known.
    pub(super) fn equals(&self, left: &str, right: &str, mysql: bool) -> Result<bool, Refusal> {
        if let Some(collation) = self.known(mysql) {
            return Ok(collation.compare(left, right).is_eq());
        }
        let is_plain = |text: &str| text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        let Class::Folded { pads, .. } = self.class() else {
            return self.compare(left, right, mysql).map(Ordering::is_eq).or_else(|refusal| {
                // What differs without case and spaces differs in every collation.
                let core = |text: &str| text.trim_end_matches(' ').to_ascii_uppercase();
                match is_plain(left) && is_plain(right) && core(left) != core(right) {
                    true => Ok(false),
                    false => Err(refusal),
                }
            });
        };
        if left == right {
            return Ok(true);
        }
        if !is_plain(left) || !is_plain(right) {
            return Err(Refusal::new("the order of letters that are not ASCII"));
        }
        let cut = |text: &str| if pads { text.trim_end_matches(' ').to_string() } else { text.to_string() };
        Ok(cut(left).eq_ignore_ascii_case(&cut(right)))
    }
}

/// What a collation does to ASCII.
enum Class {
    Binary {
        pads: bool,
    },
    /// Without case; `by_weights` if punctuation is ordered by the Unicode collation algorithm.
    Folded {
        pads: bool,
        by_weights: bool,
    },
    Unknown,
}

fn padded(left: &[u8], right: &[u8], pads: bool) -> Ordering {
    let common = left.len().min(right.len());
    let start = left[..common].cmp(&right[..common]);
    if !pads || start.is_ne() {
        return start.then(left.len().cmp(&right.len()));
    }
    let rest = |bytes: &[u8]| bytes[common..].iter().find(|byte| **byte != b' ').map(|byte| byte.cmp(&b' '));
    match (rest(left), rest(right)) {
        (Some(order), _) => order,
        (None, Some(order)) => order.reverse(),
        (None, None) => Ordering::Equal,
    }
}

/// Printable ASCII without case.
fn folded(left: &str, right: &str, pads: bool, by_weights: bool) -> Result<Ordering, Refusal> {
    let is_plain = |text: &str| text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    if !is_plain(left) || !is_plain(right) {
        return Err(Refusal::new("the order of letters that are not ASCII"));
    }
    let cut = |text: &str| {
        let text = if pads { text.trim_end_matches(' ') } else { text };
        text.to_ascii_uppercase().into_bytes()
    };
    let (left, right) = (cut(left), cut(right));
    let differing = left.iter().zip(&right).find(|(left, right)| left != right);
    let Some((a, b)) = differing else {
        let order = left.len().cmp(&right.len());
        // In a collation that pads, what follows is compared with a space.
        let longer = if order.is_lt() { &right } else { &left };
        let next = longer.get(left.len().min(right.len()));
        let is_clear = !pads || order.is_eq() || by_weights || next.is_some_and(|byte| *byte > b' ');
        return if is_clear { Ok(order) } else { Err(Refusal::new("the order of spaces")) };
    };
    let is_common = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b' ';
    match by_weights && !(is_common(a) && is_common(b)) {
        true => Err(Refusal::new("the order of punctuation")),
        false => Ok(a.cmp(b)),
    }
}

impl Kind {
    /// The type of a column's values.
    pub(crate) fn of_column(column_type: &ColumnType) -> Result<Kind, Refusal> {
        Ok(match column_type {
            ColumnType::Integer { unsigned, .. } => Kind::Int { unsigned: *unsigned },
            ColumnType::Decimal { scale, .. } => Kind::Decimal { scale: *scale },
            ColumnType::Float => Kind::Float,
            ColumnType::Double => Kind::Double { decimals: None },
            ColumnType::Bit { bits } => Kind::Bit { bits: *bits },
            ColumnType::Year => Kind::Year,
            ColumnType::Date => Kind::Date,
            ColumnType::Time { fsp, .. } => Kind::Time { fsp: *fsp },
            ColumnType::DateTime { fsp, .. } => Kind::DateTime { fsp: *fsp },
            ColumnType::Timestamp { fsp, .. } => Kind::Timestamp { fsp: *fsp },
            ColumnType::Char { collation, .. }
            | ColumnType::VarChar { collation, .. }
            | ColumnType::Text { collation, .. } => Kind::Text(Collating::column(collation)),
            ColumnType::Binary { .. } | ColumnType::VarBinary { .. } | ColumnType::Blob { .. } => Kind::Bytes,
            ColumnType::Json => Kind::Json,
            ColumnType::Enum { elements } | ColumnType::Set { elements } => Kind::Choice(Choice {
                collating: Collating { collation: None, charset: None, strength: 1 },
                elements: elements.clone(),
                is_set: matches!(column_type, ColumnType::Set { .. }),
            }),
            other => {
                return Err(Refusal::new(format!(
                    "a column of type {}",
                    crate::relation::types::mysql_type(other)
                )));
            }
        })
    }

    /// Whether values of this type are numbers.
    pub(super) fn is_number(&self) -> bool {
        matches!(
            self,
            Kind::Int { .. }
                | Kind::Year
                | Kind::Bit { .. }
                | Kind::Decimal { .. }
                | Kind::Double { .. }
                | Kind::Float
        )
    }

    /// Whether values of this type are dates or times.
    pub(crate) fn is_temporal(&self) -> bool {
        matches!(self, Kind::Date | Kind::Time { .. } | Kind::DateTime { .. } | Kind::Timestamp { .. })
    }

    /// Fractional digits of a time.
    pub(super) fn fsp(&self) -> u8 {
        match self {
            Kind::Time { fsp } | Kind::DateTime { fsp } | Kind::Timestamp { fsp } => *fsp,
            _ => 0,
        }
    }

    /// Digits after the point of an exact number; `None` for a double or what becomes one.
    pub(super) fn scale(&self) -> Option<u8> {
        match self {
            Kind::Null | Kind::Int { .. } | Kind::Year | Kind::Bit { .. } | Kind::Date | Kind::Hex => Some(0),
            Kind::Decimal { scale } => Some(*scale),
            Kind::Time { fsp } | Kind::DateTime { fsp } | Kind::Timestamp { fsp } => Some(*fsp),
            _ => None,
        }
    }

    /// How its text compares.
    pub(super) fn collating(&self) -> Collating {
        match self {
            Kind::Text(collating) | Kind::Choice(Choice { collating, .. }) => collating.clone(),
            Kind::Json => Collating {
                collation: Some("utf8mb4_bin".to_string()),
                charset: Some("utf8mb4".to_string()),
                strength: 1,
            },
            _ => Collating::number(),
        }
    }

    /// Digits after the point that a double computed of it shows; `None` for as many as it has.
    pub(super) fn decimals(&self) -> Option<u8> {
        match self {
            Kind::Double { decimals } => *decimals,
            Kind::Choice(_) => None,
            kind => kind.scale(),
        }
    }

    /// Whether values are texts or bytes.
    pub(super) fn is_string(&self) -> bool {
        matches!(self, Kind::Text(_) | Kind::Choice(_) | Kind::Bytes | Kind::Hex | Kind::Json)
    }

    /// Whether its text is bytes of no character set.
    pub(super) fn is_binary(&self) -> bool {
        matches!(self, Kind::Bytes | Kind::Hex | Kind::Bit { .. })
    }

    /// The one type that both sides of an IF, COALESCE or GREATEST become.
    pub(super) fn common(&self, other: &Kind, mysql: bool) -> Result<Kind, Refusal> {
        use Kind::{Bit, Choice, Date, DateTime, Decimal, Double, Float, Int, Json, Null, Text, Time, Year};
        let mixed = || Refusal::new(format!("{self:?} mixed with {other:?}"));
        let text = |left: &Kind, right: &Kind| match left.is_binary() || right.is_binary() {
            true => Kind::Bytes,
            false => Text(left.collating().merged(&right.collating())),
        };
        Ok(match (self, other) {
            // MariaDB's ENUMs out of an IF are texts.
            (Null, Choice(choice)) | (Choice(choice), Null) if !mysql => Text(choice.collating.clone()),
            (Null, other) | (other, Null) => other.clone(),
            (Choice(left), Choice(_)) if self == other && !mysql => Text(left.collating.clone()),
            (Bit { .. }, Bit { .. }) if mysql => return Err(mixed()),
            (Bit { .. }, Bit { .. }) => Int { unsigned: true },
            (left, right) if left == right && !matches!(left, Text(_)) => left.clone(),
            // MySQL makes a BIT beside a number bytes in some places.
            (Bit { .. }, number) | (number, Bit { .. }) if number.is_number() && mysql => return Err(mixed()),
            (Json, number) | (number, Json) if !number.is_string() => return Err(mixed()),
            (Int { .. } | Year | Bit { .. }, Int { .. } | Year | Bit { .. }) => match (self, other) {
                (Int { unsigned }, Year | Bit { .. }) | (Year | Bit { .. }, Int { unsigned }) => {
                    if *unsigned { Int { unsigned: true } } else { Decimal { scale: 0 } }
                }
                (Int { .. }, Int { .. }) => Decimal { scale: 0 },
                _ => Int { unsigned: true },
            },
            // Of MySQL's FLOAT beside an integer the order matters.
            (Float, Int { .. } | Year) | (Int { .. } | Year, Float) if mysql => return Err(mixed()),
            (left, right)
                if left.is_number()
                    && right.is_number()
                    && (matches!(left, Double { .. } | Float) || matches!(right, Double { .. } | Float)) =>
            {
                let decimals = left.decimals().zip(right.decimals()).map(|(left, right)| left.max(right));
                Double { decimals }
            }
            (left, right) if left.is_number() && right.is_number() => {
                Decimal { scale: left.scale().unwrap_or(0).max(right.scale().unwrap_or(0)) }
            }
            (Time { fsp: left }, Time { fsp: right }) => Time { fsp: *left.max(right) },
            (DateTime { .. } | Date, DateTime { .. } | Date) => DateTime { fsp: self.fsp().max(other.fsp()) },
            (Date | DateTime { .. }, Time { .. }) | (Time { .. }, Date | DateTime { .. }) => {
                return Err(mixed());
            }
            (left, right) => text(left, right),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collating(collation: &str) -> Collating {
        let charset = collation.split_once('_').map(|(charset, _)| charset.to_string());
        Collating { collation: Some(collation.to_string()), charset, strength: 1 }
    }

    #[test]
    fn a_stored_timestamp_keeps_its_digits() {
        let text = crate::expression::datum::Datum::DateTime(1_500_000).text(&Kind::Timestamp { fsp: 3 });
        assert_eq!(text, Ok(Some("1970-01-01 00:00:01.500".to_string())));
    }

    #[test]
    fn texts_compare_by_collation() {
        let compare = |name: &str, left: &str, right: &str| collating(name).compare(left, right, true).ok();
        assert_eq!(compare("utf8mb4_bin", "a", "A"), Some(Ordering::Greater));
        assert_eq!(compare("utf8mb4_bin", "a", "a  "), Some(Ordering::Equal));
        assert_eq!(compare("utf8mb4_0900_ai_ci", "a", "A"), Some(Ordering::Equal));
        assert_eq!(compare("utf8mb4_0900_ai_ci", "a", "a "), Some(Ordering::Less));
        assert_eq!(compare("utf8mb4_general_ci", "a_b", "aZb"), Some(Ordering::Greater));
        assert_eq!(compare("utf8mb4_general_ci", "é", "e"), Some(Ordering::Equal));
        assert_eq!(collating("utf8mb4_0900_ai_ci").equals("a_b", "azb", true), Ok(false));
    }

    #[test]
    fn literals_compare_by_an_unknown_collation() {
        let literal = Collating::literal(None);
        assert_eq!(literal.compare("a", "a", true).unwrap(), Ordering::Equal);
        assert_eq!(literal.compare("a", "b", true).unwrap(), Ordering::Less);
        assert!(literal.compare("a", "A", true).is_err());
        assert!(literal.compare("a", "B", true).is_err());
        assert_eq!(literal.equals("a", "B", true), Ok(false));
    }
}
