//! Calls of queries: names as the syntax tree has them (see `binding::lower`), operands with their types.
//!
//! A name may have more behind a colon: the type of a CAST, the unit of an interval, a collation.

use super::collating::{COERCIBLE, Collating};
use super::datum::{Datum, Number};
use super::node::{Node, Typed};
use super::syntax::CastType;
use super::{Kind, Refusal, Rules, arithmetic, cast, dates, floating, padded, plan};

/// The expression `name(operands)`.
///
/// # Errors
/// If it is not computed exactly here.
pub(crate) fn call(name: &str, operands: Vec<Typed>, rules: &Rules) -> Result<Typed, Refusal> {
    let has_padded = padded::is_among(&operands);
    let operands = floating::spelled(name, padded::resolved(name, operands, rules)?, rules)?;
    let is_wide = !rules.mysql && is_wide(name, &operands);
    let mut typed = planned(name, operands, rules)?;
    if let Kind::Text(own) = &mut typed.kind {
        own.wide = is_wide;
    }
    Ok(padded::given(name, has_padded, typed, rules))
}

/// Functions whose results MariaDB takes for texts of any letters, though they have ASCII alone.
const OF_ANY_LETTERS: [&str; 11] =
    ["md5", "sha", "sha1", "sha2", "bin", "oct", "conv", "format", "inet_ntoa", "json_type", "json_quote"];

/// Functions whose results are ASCII whatever their operands are.
const OF_ASCII: [&str; 4] = ["hex", "to_base64", "date_format", "time_format"];

/// Whether MariaDB does not know that a text is ASCII, nor what it is before there are rows.
fn is_wide(name: &str, operands: &[Typed]) -> bool {
    let has_any_letters = |of: &Typed| match (&of.kind, of.literal()) {
        (_, Some(Datum::Text(text))) => !text.is_ascii(),
        (Kind::Text(own), _) => own.wide,
        _ => false,
    };
    !operands.iter().all(Typed::is_constant)
        && (OF_ANY_LETTERS.contains(&name)
            || !OF_ASCII.contains(&name) && !name.contains(':') && operands.iter().any(has_any_letters))
}

fn planned(name: &str, mut operands: Vec<Typed>, rules: &Rules) -> Result<Typed, Refusal> {
    if let Some((of, rest)) = name.split_once(':') {
        return match (of, operands.as_slice()) {
            ("cast", [_]) => cast::cast(operands.remove(0), &cast_type(rest)?, rules),
            ("collate", [_]) => collated(operands.remove(0), rest, rules),
            ("literal", [text]) => dates::literal(rest, literal_text(text)?, rules),
            ("hex", [_]) => {
                let mut of = operands.remove(0);
                of.kind = if rest == "0x" || rules.mysql { Kind::Hex } else { Kind::Bytes };
                Ok(of)
            }
            ("text", [text]) => {
                let written = literal_text(text)?;
                let is_other = !written.is_ascii() && !rest.starts_with("utf8") && rest != "binary";
                if is_other && rules.literals().is_some() {
                    let collating = Collating::of_charset(rest, &rules.connection, COERCIBLE);
                    let literal = Node::Literal(Datum::Text(collating.text(written.as_bytes())?));
                    return Ok(Typed { node: literal, kind: Kind::Text(collating) });
                }
                introduced(plan::literal_text(written, Some(rest), false)?, rest, rules)
            }
            ("date_add" | "date_sub", [_, _]) => {
                let (count, date) = (operands.remove(1), operands.remove(0));
                dates::shifted(date, count, rest, of == "date_sub", rules)
            }
            _ => Err(Refusal::new(format!("{of} of {} values", operands.len()))),
        };
    }
    match (name, operands.as_slice()) {
        ("number", [text]) => plan::number(literal_text(text)?, rules),
        ("ranking", [of]) => Ok(Typed { node: of.node.clone(), kind: Kind::Int { unsigned: rules.mysql } }),
        ("double of", [of]) if of.kind.is_string() => {
            Err(Refusal::new("Numeric datatype is required for percentile_cont function"))
        }
        ("double of", [_]) => {
            let double = CastType { name: "double".to_string(), numbers: Vec::new(), charset: None };
            cast::cast(operands.remove(0), &double, rules)
        }
        ("median of", [_]) => Ok(median(operands.remove(0))),
        ("average of", [_, _]) => {
            let (count, sum) = (operands.remove(1), operands.remove(0));
            arithmetic::average(sum, count, rules)
        }
        ("number of", [_]) => Ok(number_of(operands.remove(0), rules.mysql)),
        ("condition", [_]) => {
            Ok(Typed { node: Node::Logical(false, operands), kind: Kind::Int { unsigned: false } })
        }
        ("->" | "->>", _) if !rules.mysql => Err(Refusal::new("an operator that MariaDB does not have")),
        ("xor", [_, _]) => {
            let (right, left) = (operands.remove(1), operands.remove(0));
            Ok(arithmetic::logic("xor", left, right))
        }
        ("case" | "case of aggregate", [_, _, ..]) => case(operands, rules),
        _ => plan::called(name, operands, rules),
    }
}

/// A literal in a character set compares by the default collation of that set.
fn introduced(literal: Typed, charset: &str, rules: &Rules) -> Result<Typed, Refusal> {
    let collating = Collating::of_charset(charset, &rules.connection, COERCIBLE);
    Ok(Typed { kind: Kind::Text(collating), ..literal })
}

fn literal_text(of: &Typed) -> Result<&str, Refusal> {
    match of.literal() {
        Some(Datum::Text(text)) => Ok(text),
        _ => Err(Refusal::new("a literal without a text")),
    }
}

/// `name:numbers:charset`.
fn cast_type(written: &str) -> Result<CastType, Refusal> {
    let mut parts = written.split(':');
    let mut next = || parts.next().unwrap_or_default();
    let (name, numbers, charset) = (next().to_string(), next(), next());
    let numbers = numbers.split(',').filter(|number| !number.is_empty()).map(str::parse);
    let numbers = numbers.collect::<Result<_, _>>().map_err(|_| Refusal::new("the length of a CAST"))?;
    let charset = Some(charset.to_string()).filter(|charset| !charset.is_empty());
    Ok(CastType { name, numbers, charset })
}

fn collated(mut of: Typed, name: &str, rules: &Rules) -> Result<Typed, Refusal> {
    let own = Collating::column(name, rules.server());
    if !matches!(of.kind, Kind::Text(_) | Kind::Choice(_)) {
        let is_number = matches!(of.kind, Kind::Int { .. } | Kind::Decimal { .. } | Kind::Double { .. });
        if !(is_number || of.kind.is_temporal()) || own.charset.as_deref() != Some("utf8mb4") {
            return Err(Refusal::new("COLLATE of what is no text"));
        }
        let text = CastType { name: "char".to_string(), numbers: Vec::new(), charset: None };
        of = cast::cast(of, &text, rules)?;
    }
    let charset = of.kind.collating().charset;
    if let (Some(own), Some(charset)) = (&own.charset, &charset)
        && own != charset
    {
        return Err(Refusal::new(format!("COLLATION '{name}' is not valid for CHARACTER SET '{charset}'")));
    }
    of.kind = Kind::Text(Collating::collate(name, of.kind.collating().charset, rules.server()));
    Ok(of)
}

/// CASE of conditions, each followed by a result, and the result otherwise.
fn case(operands: Vec<Typed>, rules: &Rules) -> Result<Typed, Refusal> {
    let mut common = plan::Common::none();
    let (mut whens, mut operands) = (Vec::new(), operands.into_iter());
    let mut otherwise = None;
    while let Some(first) = operands.next() {
        let result = match operands.next() {
            Some(result) => {
                whens.push((first, result.clone()));
                result
            }
            None => {
                otherwise = Some(first.clone());
                first
            }
        };
        common = common.with(&result, rules.mysql)?;
    }
    Ok(plan::conditional(whens, otherwise, common.kind, rules))
}

/// Digits after the point of MariaDB's MEDIAN, and the greatest number that its type holds.
const MEDIAN_DIGITS: u8 = 10;
const MAX_MEDIAN: f64 = 1e8;

/// A median as MariaDB keeps it.
fn median(of: Typed) -> Typed {
    let kind = Kind::Double { decimals: Some(MEDIAN_DIGITS) };
    Typed::call(kind, vec![of], |values| {
        let unit = 10_f64.powi(MEDIAN_DIGITS.into());
        Ok(match values.first() {
            Some(Datum::Double(number)) => {
                let number = number.clamp(-MAX_MEDIAN, MAX_MEDIAN);
                Datum::Double((number * unit).round_ties_even() / unit + 0.0)
            }
            _ => Datum::Null,
        })
    })
}

/// The number that an aggregate of numbers takes of a value: a text's is a double, a date's its digits. To MariaDB that
/// of an ENUM or SET is an integer.
fn number_of(of: Typed, mysql: bool) -> Typed {
    let from = of.kind.clone();
    let kind = match &from {
        Kind::Choice(_) if !mysql => Kind::Int { unsigned: true },
        Kind::Text(_) | Kind::Choice(_) | Kind::Json | Kind::Bytes => Kind::Double { decimals: None },
        Kind::Year | Kind::Bit { .. } | Kind::Hex => Kind::Int { unsigned: true },
        Kind::Date | Kind::Time { fsp: 0 } | Kind::DateTime { fsp: 0 } | Kind::Timestamp { fsp: 0 } => {
            Kind::Int { unsigned: false }
        }
        Kind::Time { fsp } | Kind::DateTime { fsp } | Kind::Timestamp { fsp } => {
            Kind::Decimal { scale: *fsp }
        }
        other => other.clone(),
    };
    let unsigned = kind == Kind::Int { unsigned: true };
    let is_double = matches!(kind, Kind::Double { .. });
    Typed::call(kind, vec![of], move |values| {
        let Some(value) = values.first() else { return Ok(Datum::Null) };
        Ok(match value.number(&from)? {
            None => Datum::Null,
            Some(number) if is_double => Datum::Double(number.to_f64()),
            Some(Number::Whole(number)) => arithmetic::whole(number, unsigned)?,
            Some(Number::Exact(number)) => Datum::Decimal(number),
            Some(Number::Double(number)) => Datum::Double(number),
        })
    })
}
