//! How a pair of types is compared.

use std::cmp::Ordering;

use super::super::collating::Collating;
use super::super::conversions::bytes_of;
use super::super::datum::{Datum, Decimal, Number};
use super::super::node::{Node, Typed};
use super::super::{Kind, Refusal, Rules, dates, json, notes};

/// How two types are compared.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Way {
    Numbers {
        as_doubles: bool,
    },
    /// Years, of which a constant may have two digits.
    Years,
    /// Doubles of a fixed number of digits, which are equal if they differ by less than this.
    Near(f64),
    Texts(Collating),
    Bytes,
    Dates(dates::DateWay),
    /// Documents of MySQL; in MariaDB an extracted part with a text.
    Documents,
}

impl Way {
    /// The way of two numbers that show a fixed number of digits each: doubles are equal within half a digit behind the
    /// longer of them.
    pub(super) fn within_digits(self, left: &Kind, right: &Kind) -> Way {
        let decimals = |kind: &Kind| kind.decimals().filter(|_| kind.is_number());
        match (&self, decimals(left).zip(decimals(right))) {
            (Way::Numbers { as_doubles: true }, Some((left, right))) => {
                Way::Near(5.0 / 10f64.powi(i32::from(left.max(right)) + 1))
            }
            _ => self,
        }
    }
}

/// The way of comparing these values; `None` if one of them is NULL.
pub(super) fn of(
    left: &Typed,
    right: &Typed,
    operation: &str,
    rules: &Rules,
) -> Result<Option<Way>, Refusal> {
    if left.kind == Kind::Null || right.kind == Kind::Null {
        return Ok(None);
    }
    if let Some(way) = dates::date_way(left, right, rules)? {
        return Ok(Some(Way::Dates(way)));
    }
    let is_text = |kind: &Kind| matches!(kind, Kind::Text(_) | Kind::Choice(_));
    Ok(Some(match (&left.kind, &right.kind) {
        (Kind::Json, _) | (_, Kind::Json) => documents(left, right, rules)?,
        (a, b) if is_text(a) && is_text(b) => Way::Texts(a.collating().compared(&b.collating(), operation)?),
        (Kind::Year, _) | (_, Kind::Year) => years(left, right),
        (Kind::Choice(_), number) | (number, Kind::Choice(_)) if number.is_number() => {
            Way::Numbers { as_doubles: number.scale().is_none() }
        }
        (Kind::Hex, number) | (number, Kind::Hex) if number.is_number() => {
            Way::Numbers { as_doubles: number.scale().is_none() }
        }
        (a, b) if a.is_number() && b.is_number() => of_numbers(a, b),
        (a, _) if a.is_number() => number_with_text(left, right, rules),
        (_, b) if b.is_number() => number_with_text(right, left, rules),
        _ => Way::Bytes,
    }))
}

fn uncomparable(left: &Typed, right: &Typed) -> Refusal {
    Refusal::new(format!("a comparison of {} with {}", left.kind, right.kind))
}

fn years(left: &Typed, right: &Typed) -> Way {
    let pair = [(left, right), (right, left)];
    let short = pair.iter().any(|(year, other)| {
        year.kind == Kind::Year && matches!(year.node, Node::Input(..)) && other.is_constant()
    });
    match short {
        true => Way::Years,
        false => of_numbers(&left.kind, &right.kind),
    }
}

/// The way of two numbers.
pub(super) fn of_numbers(left: &Kind, right: &Kind) -> Way {
    Way::Numbers { as_doubles: left.scale().is_none() || right.scale().is_none() }
}

/// MariaDB reads a constant text beside an exact number as an exact number, MySQL beside a column or a DECIMAL.
fn number_with_text(number: &Typed, text: &Typed, rules: &Rules) -> Way {
    let is_exact = match &number.kind {
        Kind::Bit { .. } => false,
        Kind::Decimal { .. } => true,
        kind => kind.scale().is_some() && (!rules.mysql || matches!(number.node, Node::Input(..))),
    };
    Way::Numbers { as_doubles: !(is_exact && text.is_constant()) }
}

fn documents(left: &Typed, right: &Typed, rules: &Rules) -> Result<Way, Refusal> {
    let other = if left.kind == Kind::Json { right } else { left };
    if rules.mysql && matches!(other.node, Node::Truth(_)) {
        return Err(uncomparable(left, right));
    }
    match &other.kind {
        Kind::Json if rules.mysql => Ok(Way::Documents),
        Kind::Text(_) | Kind::Choice(_) => Ok(Way::Documents),
        Kind::Json => Ok(Way::Texts(other.kind.collating())),
        kind if kind.is_number() && rules.mysql => Ok(Way::Documents),
        kind if kind.is_number() => Ok(Way::Numbers { as_doubles: true }),
        _ => Err(uncomparable(left, right)),
    }
}

/// A number as it takes part in an exact comparison: rounded to the digits of its type.
fn exact(value: &Datum, kind: &Kind, rounds: bool) -> Result<Option<Decimal>, Refusal> {
    match (value, kind) {
        (Datum::Text(text), Kind::Text(_)) => {
            notes::constant(text);
            Decimal::prefix(text).ok_or_else(Refusal::digits).map(Some)
        }
        (Datum::Decimal(number), Kind::Decimal { scale }) if rounds && number.scale > *scale => {
            number.rounded(*scale).map(Some)
        }
        _ => Ok(value.number(kind)?.and_then(Number::to_decimal)),
    }
}

/// Compares two values that are not NULL; `None` if the comparison gives NULL.
pub(super) fn order(
    way: &Way,
    left: (&Datum, &Kind),
    right: (&Datum, &Kind),
    rules: &Rules,
) -> Result<Option<Ordering>, Refusal> {
    Ok(Some(match way {
        Way::Numbers { as_doubles: false } => {
            // Beside a text all digits of a quotient count.
            let rounds = !left.1.is_string() && !right.1.is_string();
            match (exact(left.0, left.1, rounds)?, exact(right.0, right.1, rounds)?) {
                (Some(a), Some(b)) => a.compare(b)?,
                _ => return by_doubles(left, right),
            }
        }
        Way::Numbers { .. } => return by_doubles(left, right),
        Way::Near(tolerance) => match (left.0.number(left.1)?, right.0.number(right.1)?) {
            (Some(a), Some(b)) => {
                let (a, b) = (a.to_f64(), b.to_f64());
                match a == b || (a - b).abs() < *tolerance {
                    true => Ordering::Equal,
                    false => return Ok(a.partial_cmp(&b)),
                }
            }
            _ => return Ok(None),
        },
        Way::Years => match (year(left)?, year(right)?) {
            (Some(a), Some(b)) => a.compare(b)?,
            _ => return by_doubles(left, right),
        },
        Way::Texts(collating) => match (left.0.text(left.1)?, right.0.text(right.1)?) {
            (Some(a), Some(b)) => collating.compare(&a, &b)?,
            _ => return Ok(None),
        },
        Way::Bytes => match (bytes_of(left.0, left.1)?, bytes_of(right.0, right.1)?) {
            (Some(a), Some(b)) => a.cmp(&b),
            _ => return Ok(None),
        },
        Way::Dates(way) => return dates::date_order(*way, left, right, rules),
        Way::Documents => return json::order(left, right, rules.mysql),
    }))
}

fn by_doubles(left: (&Datum, &Kind), right: (&Datum, &Kind)) -> Result<Option<Ordering>, Refusal> {
    notes::comparing(|| match (left.0.number(left.1)?, right.0.number(right.1)?) {
        (Some(a), Some(b)) => Ok(a.to_f64().partial_cmp(&b.to_f64())),
        _ => Ok(None),
    })
}

/// A year, or a constant that is compared with one: of two digits it is of 1970 to 2069.
fn year((value, kind): (&Datum, &Kind)) -> Result<Option<Decimal>, Refusal> {
    let number = match (exact(value, kind, true)?, value.number(kind)?) {
        (Some(number), _) => number,
        (None, Some(Number::Double(number))) => match Decimal::of_double(number.round_ties_even()) {
            Some(number) => number,
            None => return Ok(None),
        },
        _ => return Ok(None),
    };
    if *kind == Kind::Year {
        return Ok(Some(number));
    }
    let is_text =
        matches!(value, Datum::Text(text) if text.starts_with(|digit: char| digit.is_ascii_digit()));
    let number = number.rounded(0)?;
    let added = match number.saturated() {
        0 if is_text => 2000,
        1..=69 => 2000,
        70..=99 => 1900,
        _ => 0,
    };
    number.plus(Decimal::whole(added)).map(Some)
}
