//! Types of expressions, as far as they decide what is computed.

use std::fmt;

use serde::{Deserialize, Serialize};
use tanada_innodb::schema::Server;
use tanada_innodb::{Column, ColumnType};

use super::Refusal;
use super::collating::{Collating, IMPLICIT};

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
    /// A column with ZEROFILL, or YEAR(2): its text has zeros before the number, to a width, if it is known. Functions
    /// take it as one of both (`expression::padded`).
    Padded {
        of: Box<Kind>,
        width: Option<u8>,
    },
}

impl fmt::Display for Kind {
    /// In the words of messages.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Null => "NULL",
            Kind::Int { unsigned: false } => "an integer",
            Kind::Int { unsigned: true } => "an unsigned integer",
            Kind::Year => "a YEAR",
            Kind::Bit { .. } => "a BIT",
            Kind::Decimal { .. } => "a DECIMAL",
            Kind::Double { .. } => "a DOUBLE",
            Kind::Float => "a FLOAT",
            Kind::Text(_) => "a text",
            Kind::Choice(choice) if choice.is_set => "a SET",
            Kind::Choice(_) => "an ENUM",
            Kind::Bytes => "bytes",
            Kind::Hex => "a hexadecimal literal",
            Kind::Date => "a DATE",
            Kind::Time { .. } => "a TIME",
            Kind::DateTime { .. } => "a DATETIME",
            Kind::Timestamp { .. } => "a TIMESTAMP",
            Kind::Json => "a document",
            Kind::Padded { .. } => "a number that is printed with zeros before it",
        })
    }
}

/// What an ENUM or SET may be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Choice {
    pub collating: Collating,
    pub elements: Vec<String>,
    pub is_set: bool,
}

impl Choice {
    /// Whether an element is empty, as is the text of 0: texts do not tell them apart.
    pub(crate) fn has_empty_element(&self) -> bool {
        self.elements.iter().any(String::is_empty)
    }

    /// The number of an ENUM's element, or the bits of a SET's; 0 of an empty text. `None` if it is no element, or may
    /// be one of two.
    pub(super) fn number(&self, text: &str) -> Option<u64> {
        // An empty element of a SET may not be seen beside others either.
        if (text.is_empty() || self.is_set) && self.has_empty_element() {
            return None;
        }
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

impl Kind {
    /// The type of the values of a column of `server`.
    pub(crate) fn of(column: &Column, server: Server) -> Result<Kind, Refusal> {
        let mut kind = Kind::of_column(&column.column_type, server)?;
        if let (Kind::Choice(choice), Some(collation)) = (&mut kind, &column.declaration.collation) {
            choice.collating = Collating::column(&collation.name, server);
        }
        let display = column.display;
        // FLOAT(M,D) computes with the double that it is, and shows its digits.
        if let (Kind::Float | Kind::Double { .. }, Some(decimals)) = (&kind, display.decimals) {
            kind = Kind::Double { decimals: Some(decimals) };
        }
        Ok(match display.width {
            Some(_) if display.zerofill || kind == Kind::Year => {
                Kind::Padded { of: Box::new(kind), width: display.width }
            }
            _ => kind,
        })
    }

    /// The type of the values of a type of columns of `server`, without what its column says of digits, zeros and
    /// collations.
    pub(crate) fn of_column(column_type: &ColumnType, server: Server) -> Result<Kind, Refusal> {
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
            | ColumnType::Text { collation, .. } => Kind::Text(Collating::column(&collation.name, server)),
            ColumnType::Binary { .. } | ColumnType::VarBinary { .. } | ColumnType::Blob { .. } => Kind::Bytes,
            ColumnType::Json => Kind::Json,
            ColumnType::Enum { elements } | ColumnType::Set { elements } => Kind::Choice(Choice {
                collating: Collating { collation: None, charset: None, strength: IMPLICIT, wide: false },
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
    pub(crate) fn fsp(&self) -> u8 {
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
            Kind::Json => Collating::named("utf8mb4_bin", IMPLICIT),
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
    pub(crate) fn common(&self, other: &Kind, mysql: bool) -> Result<Kind, Refusal> {
        use Kind::{Bit, Choice, Date, DateTime, Decimal, Double, Float, Int, Json, Null, Text, Time, Year};
        let mixed = || Refusal::new(format!("{self} mixed with {other}"));
        let text = |left: &Kind, right: &Kind| match left.is_binary() || right.is_binary() {
            true => Ok(Kind::Bytes),
            false => left.collating().mixed(&right.collating(), "coalesce").map(Text),
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
                (Int { unsigned: false }, Year) | (Year, Int { unsigned: false }) => Int { unsigned: false },
                (Int { unsigned }, Year | Bit { .. }) | (Year | Bit { .. }, Int { unsigned }) => {
                    if *unsigned { Int { unsigned: true } } else { Decimal { scale: 0 } }
                }
                (Int { .. }, Int { .. }) => Decimal { scale: 0 },
                _ => Int { unsigned: true },
            },
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
            (left, right) => text(left, right)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_timestamp_keeps_its_digits() {
        let text = crate::expression::datum::Datum::DateTime(1_500_000).text(&Kind::Timestamp { fsp: 3 });
        assert_eq!(text, Ok(Some("1970-01-01 00:00:01.500".to_string())));
    }
}
