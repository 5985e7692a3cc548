//! A value stored into a column's type, as the servers assign it.
//!
//! Numbers round half away from zero into integers and decimals (a DOUBLE to the nearest even integer),
//! texts are the number that they begin with, dates the number of their digits. A virtual value that does
//! not fit is cut or the nearest that does: reading is never strict.

use datafusion::arrow::datatypes::i256;
use tanada_collation::{Charset, Encoded};
use tanada_innodb::ColumnType;

use super::datum::{Datum, Decimal, Number};
use super::node::{Node, Typed};
use super::syntax::Syntax;
use super::{Kind, Refusal, Rules, calendar, choices, conversions, dates};

/// Whether values of this type can be stored into such a column at all.
pub(super) fn check(value: &Typed, column_type: &ColumnType) -> Result<(), Refusal> {
    let kind = &value.kind;
    let refused = || {
        let name = crate::relation::types::mysql_type(column_type);
        Err(Refusal::new(format!("{kind} stored as {name}")))
    };
    let is_text = matches!(kind, Kind::Text(_));
    if !is_number(column_type)
        && matches!(kind, Kind::Decimal { scale: 1.. })
        && has_fraction_of_second(value)
    {
        return Err(Refusal::new("the digits of a date or time as a number, as text"));
    }
    let fits = match column_type {
        _ if *kind == Kind::Null => true,
        ColumnType::Integer { .. } | ColumnType::Decimal { .. } => {
            kind.is_number() || is_text || kind.is_temporal() || matches!(kind, Kind::Json | Kind::Choice(_))
        }
        ColumnType::Float | ColumnType::Double => {
            kind.is_number() || is_text || kind.is_temporal() || matches!(kind, Kind::Choice(_))
        }
        ColumnType::Bit { .. } => {
            matches!(kind, Kind::Year | Kind::Bit { .. } | Kind::Float) || is_plain_number(kind) || is_text
        }
        ColumnType::Year => is_plain_number(kind) || matches!(kind, Kind::Year | Kind::Float) || is_text,
        ColumnType::Date | ColumnType::DateTime { .. } => {
            matches!(kind, Kind::Date | Kind::DateTime { .. } | Kind::Year)
                || is_plain_number(kind)
                || is_text
        }
        ColumnType::Time { .. } => {
            matches!(kind, Kind::Date | Kind::Time { .. } | Kind::DateTime { .. } | Kind::Year)
                || is_plain_number(kind)
                || is_text
        }
        ColumnType::Char { .. } | ColumnType::VarChar { .. } | ColumnType::Text { .. } => !matches!(
            kind,
            Kind::Bytes | Kind::Hex | Kind::Bit { .. } | Kind::Float | Kind::Double { decimals: Some(_) }
        ),
        ColumnType::Binary { .. } | ColumnType::VarBinary { .. } | ColumnType::Blob { .. } => {
            !matches!(kind, Kind::Bit { .. } | Kind::Float | Kind::Json | Kind::Double { decimals: Some(_) })
        }
        ColumnType::Enum { .. } => {
            is_text || matches!(kind, Kind::Choice(_) | Kind::Year) || is_plain_number(kind)
        }
        ColumnType::Set { .. } => is_text || *kind == Kind::Year || is_plain_number(kind),
        ColumnType::Json => *kind == Kind::Json,
        _ => false,
    };
    if fits { Ok(()) } else { refused() }
}

/// Whether a moment with fractions of a second is in an expression: as a number it has digits of these only where they
/// are not all 0.
fn has_fraction_of_second(expression: &Typed) -> bool {
    (expression.kind.is_temporal() && expression.kind.fsp() > 0)
        || match &expression.node {
            Node::Input(..) | Node::Result(_) | Node::Literal(_) => false,
            Node::Call(_, operands) | Node::Logical(_, operands) | Node::Coalesce(operands) => {
                operands.iter().any(has_fraction_of_second)
            }
            // It is a value of the column's type.
            Node::Stored(..) => false,
            Node::Branch(_, inner) | Node::Truth(inner) => has_fraction_of_second(inner),
            Node::Case(whens, otherwise) => {
                let results = whens.iter().map(|(_, result)| result).chain(otherwise.as_deref());
                results.into_iter().any(has_fraction_of_second)
            }
        }
}

/// Whether a column holds numbers or dates.
fn is_number(column_type: &ColumnType) -> bool {
    matches!(
        column_type,
        ColumnType::Integer { .. }
            | ColumnType::Decimal { .. }
            | ColumnType::Float
            | ColumnType::Double
            | ColumnType::Bit { .. }
            | ColumnType::Year
            | ColumnType::Date
            | ColumnType::Time { .. }
            | ColumnType::DateTime { .. }
    )
}

fn is_plain_number(kind: &Kind) -> bool {
    matches!(kind, Kind::Int { .. } | Kind::Decimal { .. } | Kind::Double { .. })
}

/// Whether the servers may store other digits than the type says of a DECIMAL that is stored as text: a COALESCE stores
/// those of the operand that it gives.
pub(super) fn hides_digits(syntax: &Syntax, kind: &Kind, column_type: &ColumnType) -> bool {
    const SHOWS_DIGITS: [&str; 11] =
        ["+", "-", "*", "/", "%", "mod", "div", "negative", "abs", "round", "truncate"];
    let shows_digits = match syntax {
        Syntax::Call(name, _) => SHOWS_DIGITS.contains(&name.as_str()),
        Syntax::Case(..) => false,
        _ => true,
    };
    !is_number(column_type) && !shows_digits && matches!(kind, Kind::Decimal { scale: 1.. })
}

/// Whether a value is a zero that was computed and is stored as text: it shows digits after the point or not, by the
/// server, the operator and what it is put into.
pub(super) fn is_unclear(expression: &Typed, value: &Datum, column_type: &ColumnType) -> bool {
    let is_number = matches!(
        column_type,
        ColumnType::Integer { .. } | ColumnType::Decimal { .. } | ColumnType::Float | ColumnType::Double
    );
    let computed = !matches!(expression.node, Node::Input(..) | Node::Literal(_));
    computed && !is_number && matches!(value, Datum::Decimal(number) if number.is_zero())
}

/// `value` as the column shows it.
///
/// # Errors
/// If what the server stores is not known.
pub(super) fn stored(
    value: Datum,
    kind: &Kind,
    column_type: &ColumnType,
    rules: &Rules,
) -> Result<Datum, Refusal> {
    if value.is_null() {
        return Ok(Datum::Null);
    }
    let mysql = rules.mysql;
    match column_type {
        ColumnType::Integer { bytes, unsigned } => integer(&value, kind, *bytes, *unsigned),
        ColumnType::Decimal { precision, scale, unsigned } => {
            let number = match value.number_to_store(kind)? {
                Stored::Number(Number::Double(number)) => decimal_of_double(number)?,
                Stored::Number(number) => number.to_decimal().ok_or_else(Refusal::digits)?,
                Stored::Text(text) => Decimal::prefix(&text).ok_or_else(Refusal::digits)?,
            };
            let number = number.rounded(*scale)?.clamped(*precision)?;
            Ok(Datum::Decimal(if *unsigned {
                if number.signum() < 0 { Decimal { unscaled: i256::ZERO, ..number } } else { number }
            } else {
                number
            }))
        }
        ColumnType::Double => Ok(Datum::Double(as_double(&value, kind)?)),
        ColumnType::Float => match (&value, as_double(&value, kind)?) {
            (Datum::Float(number), _) => Ok(Datum::Float(*number)),
            (_, number) if (number as f32).is_finite() => Ok(Datum::Float(number as f32)),
            _ => Err(Refusal::new("a FLOAT out of range")),
        },
        ColumnType::Bit { bits } => choices::bits(&value, kind, *bits),
        ColumnType::Year => year(&value, kind),
        // MySQL rounds a fraction of a second up into the next day, MariaDB cuts it.
        ColumnType::Date => {
            let micros = conversions::to_fsp(dates::moment_to_store(&value, kind, rules)?, 0, mysql);
            Ok(Datum::Date(micros.div_euclid(calendar::DAY)))
        }
        ColumnType::DateTime { fsp, .. } => {
            let micros = dates::moment_to_store(&value, kind, rules)?;
            Ok(Datum::DateTime(conversions::to_fsp(micros, *fsp, mysql)))
        }
        ColumnType::Time { fsp, .. } => {
            let micros = dates::time_to_store(&value, kind, rules)?;
            match conversions::to_fsp(micros.abs(), *fsp, mysql) * micros.signum() {
                micros if micros.abs() <= calendar::MAX_TIME => Ok(Datum::Time(micros)),
                _ => Err(Refusal::new("a TIME out of range")),
            }
        }
        ColumnType::Enum { elements } => choices::element(&value, kind, elements),
        ColumnType::Set { elements } => choices::elements(&value, kind, elements, mysql),
        ColumnType::Json => Ok(value),
        _ => string(&value, kind, column_type),
    }
}

/// A YEAR of two digits is one of this century or the last; what is no year becomes 0000.
fn year(value: &Datum, kind: &Kind) -> Result<Datum, Refusal> {
    let text = match (value, kind) {
        (Datum::Text(text), Kind::Text(_)) => Some(text.trim_start()),
        _ => None,
    };
    let number = match text {
        // A text of zeros is the year 2000, one without digits is none.
        Some(text) => match Decimal::prefix(text).ok_or_else(Refusal::digits)?.saturated() {
            0 if text.starts_with(['+', '-', '.']) && text.contains('0') || text.contains("0.") => {
                return Err(Refusal::new(format!("the year '{text}'")));
            }
            0 if text.starts_with('0') => 2000,
            number => number,
        },
        None => choices::cut(value, kind)?,
    };
    Ok(Datum::UInt(match number {
        1901..=2155 => number as u64,
        1..=69 => number as u64 + 2000,
        70..=99 => number as u64 + 1900,
        _ => 0,
    }))
}

enum Stored {
    Number(Number),
    Text(String),
}

impl Datum {
    /// As it is stored into a number: a text is read digit by digit, not as a double.
    fn number_to_store(&self, kind: &Kind) -> Result<Stored, Refusal> {
        match (self, kind) {
            (Datum::Text(text), Kind::Text(_)) => Ok(Stored::Text(text.clone())),
            // A document that is a number.
            (Datum::Text(text), Kind::Json)
                if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-') =>
            {
                Ok(Stored::Text(text.clone()))
            }
            (_, Kind::Json) => Err(Refusal::new("this document stored as a number")),
            (value, kind) => match value.number(kind)? {
                Some(number) => Ok(Stored::Number(number)),
                None => Err(Refusal::new("NULL as a number")),
            },
        }
    }
}

fn as_double(value: &Datum, kind: &Kind) -> Result<f64, Refusal> {
    let number = value.number(kind)?.map_or(0.0, Number::to_f64);
    if number == 0.0 && number.is_sign_negative() {
        return Err(Refusal::new("a negative zero"));
    }
    if number.is_finite() { Ok(number) } else { Err(Refusal::new("a DOUBLE out of range")) }
}

/// The shortest digits that read back as the double.
fn decimal_of_double(number: f64) -> Result<Decimal, Refusal> {
    Decimal::of_double(number).ok_or_else(Refusal::digits)
}

fn integer(value: &Datum, kind: &Kind, bytes: u8, unsigned: bool) -> Result<Datum, Refusal> {
    let number = match value.number_to_store(kind)? {
        Stored::Number(Number::Whole(number)) => number,
        Stored::Number(Number::Exact(number)) if kind.is_temporal() => conversions::without_fraction(number)?,
        Stored::Number(Number::Exact(number)) => number.saturated(),
        Stored::Number(Number::Double(number)) => {
            let rounded = number.round_ties_even();
            // Beyond 64 bits the nearest number that fits is stored whichever it is.
            rounded.clamp(-1e30, 1e30) as i128
        }
        Stored::Text(text) if has_two_points(&text) => return Err(Refusal::new("a number with two points")),
        Stored::Text(text) => Decimal::prefix(&text).ok_or_else(Refusal::digits)?.saturated(),
    };
    let bits = 8 * u32::from(bytes);
    let (least, most) =
        if unsigned { (0, (1i128 << bits) - 1) } else { (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1) };
    let number = number.clamp(least, most);
    Ok(if unsigned { Datum::UInt(number as u64) } else { Datum::Int(number as i64) })
}

/// Whether a text begins with digits and two points, of which MariaDB reads another number.
fn has_two_points(text: &str) -> bool {
    let number = text.trim_start().trim_start_matches(['-', '+']);
    let end = number.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(number.len());
    number[..end].matches('.').count() > 1
}

fn string(value: &Datum, kind: &Kind, column_type: &ColumnType) -> Result<Datum, Refusal> {
    match column_type {
        ColumnType::Char { length, collation } | ColumnType::VarChar { length, collation } => {
            let text = text_for(value, kind, &collation.charset)?;
            let cut: String = text.chars().take(*length as usize).collect();
            if cut.len() < text.len() && matches!(kind, Kind::Double { .. } | Kind::Float) {
                return Err(Refusal::new("a number that is longer than its column"));
            }
            Ok(Datum::Text(match column_type {
                ColumnType::Char { .. } => cut.trim_end_matches(' ').to_string(),
                _ => cut,
            }))
        }
        ColumnType::Text { length_bytes, collation } => {
            let text = text_for(value, kind, &collation.charset)?;
            match text.len() as u64 >> (8 * u32::from(*length_bytes)) {
                0 => Ok(Datum::Text(text)),
                _ => Err(Refusal::new("a text that is longer than its column")),
            }
        }
        ColumnType::Binary { length } | ColumnType::VarBinary { length } => {
            let length = *length as usize;
            let mut bytes = bytes_of(value, kind)?;
            if bytes.len() > length && matches!(kind, Kind::Double { .. } | Kind::Float) {
                return Err(Refusal::new("a number that is longer than its column"));
            }
            bytes.truncate(length);
            if matches!(column_type, ColumnType::Binary { .. }) {
                bytes.resize(length, 0);
            }
            Ok(Datum::Bytes(bytes))
        }
        ColumnType::Blob { length_bytes } => {
            let bytes = bytes_of(value, kind)?;
            match bytes.len() as u64 >> (8 * u32::from(*length_bytes)) {
                0 => Ok(Datum::Bytes(bytes)),
                _ => Err(Refusal::new("a value that is longer than its column")),
            }
        }
        _ => Err(Refusal::new("a column of this type")),
    }
}

/// The text, if the column's character set has all of its letters.
fn text_for(value: &Datum, kind: &Kind, charset: &str) -> Result<String, Refusal> {
    let text = text_to_store(value, kind)?;
    let has_all = match charset {
        "utf8mb4" | "utf16" | "utf16le" | "utf32" => true,
        "utf8mb3" | "utf8" | "ucs2" => text.chars().all(|letter| letter <= '\u{ffff}'),
        name => text.is_ascii() || comes_back(&text, name),
    };
    if has_all { Ok(text) } else { Err(Refusal::new(format!("letters in {charset}"))) }
}

/// Whether a character set has all letters of a text.
fn comes_back(text: &str, charset: &str) -> bool {
    let Some(charset) = Charset::lookup(charset) else { return false };
    let Encoded::Bytes(bytes) = charset.encode(text) else { return false };
    charset.decode(&bytes).is_some_and(|back| back == text)
}

fn bytes_of(value: &Datum, kind: &Kind) -> Result<Vec<u8>, Refusal> {
    match value {
        Datum::Bytes(bytes) => Ok(bytes.clone()),
        value => kind.collating().bytes(&text_to_store(value, kind)?),
    }
}

/// The text that is stored of a value. MariaDB stores all digits of a quotient, of which a query shows some.
fn text_to_store(value: &Datum, kind: &Kind) -> Result<String, Refusal> {
    match value {
        Datum::Decimal(number) => Ok(number.text()),
        value => Ok(value.text(kind)?.unwrap_or_default()),
    }
}
