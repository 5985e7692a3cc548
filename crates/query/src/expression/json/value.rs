//! Values as documents, and documents as values.

use super::super::conversions::letters_of;
use super::super::datum::{Datum, double_prefix, integer_prefix};
use super::super::node::{Node, Typed};
use super::super::strings::ascii;
use super::super::{Kind, Refusal, calendar};
use super::document::{Json, JsonText, Parsed, double_spelling, object, parse};
use super::text_kind;
use crate::text::{double_text, float_text};

pub(super) fn function(name: &str, operands: &[Typed], mysql: bool) -> Result<Option<Typed>, Refusal> {
    let operands = operands.to_vec();
    Ok(Some(match (name, operands.len()) {
        ("json_array", _) => {
            let of = Values::of(&operands, mysql)?;
            Typed::call(Kind::Json, operands, move |values| {
                let elements = values.iter().enumerate().map(|(at, value)| of.document(at, value));
                Ok(Datum::Text(Json::Array(elements.collect::<Result<_, _>>()?).spelled()))
            })
        }
        ("json_object", count) if count % 2 == 0 => {
            let of = Values::of(&operands, mysql)?;
            Typed::call(Kind::Json, operands, move |values| {
                let mut members = Vec::new();
                for (at, pair) in values.chunks_exact(2).enumerate() {
                    let name = match pair[0].text(&of.kinds[2 * at])? {
                        Some(name) => name,
                        None if mysql => return Err(Refusal::new("a name that is NULL")),
                        None => String::new(),
                    };
                    members.push((JsonText::new(&name), of.document(2 * at + 1, &pair[1])?));
                }
                Ok(Datum::Text(object(members, mysql).spelled()))
            })
        }
        ("json_quote", 1) => {
            let kind = operands[0].kind.clone();
            let result = match (&kind, mysql) {
                (Kind::Text(_) | Kind::Choice(_) | Kind::Null, _) => text_kind(&kind, mysql),
                (_, true) => return Err(Refusal::new(format!("JSON_QUOTE of {kind}"))),
                (Kind::Json, _) => text_kind(&kind, mysql),
                _ if kind.is_temporal() || matches!(kind, Kind::Bytes | Kind::Hex) => ascii(),
                // MariaDB quotes no numbers.
                _ => return Ok(Some(Typed::call(ascii(), operands, |_| Ok(Datum::Null)))),
            };
            Typed::call(result, operands, move |values| {
                let text = letters_of(&values[0], &kind, kind.is_binary())?;
                Ok(text.map_or(Datum::Null, |text| Datum::Text(Json::Text(JsonText::new(&text)).spelled())))
            })
        }
        _ => return Ok(None),
    }))
}

/// How operands become documents.
pub(super) struct Values {
    pub kinds: Vec<Kind>,
    truths: Vec<bool>,
    mysql: bool,
}

impl Values {
    pub(super) fn of(operands: &[Typed], mysql: bool) -> Result<Values, Refusal> {
        for operand in operands {
            // A column of MariaDB's JSON is a document, a text of the same collation is not.
            if let (Kind::Text(collating), Node::Input(..), false) = (&operand.kind, &operand.node, mysql)
                && collating.collation.as_deref() == Some("utf8mb4_bin")
            {
                return Err(Refusal::new("a column that may be of JSON or of text"));
            }
        }
        Ok(Values {
            kinds: operands.iter().map(|operand| operand.kind.clone()).collect(),
            truths: operands.iter().map(|operand| matches!(operand.node, Node::Truth(_))).collect(),
            mysql,
        })
    }

    /// The operand at a position as a document.
    pub(super) fn document(&self, at: usize, value: &Datum) -> Result<Json, Refusal> {
        let kind = &self.kinds[at];
        if self.truths[at] && !value.is_null() {
            return Ok(Json::Truth(value.condition(kind)? == Some(true)));
        }
        let text = |text: &str| Ok(Json::Text(JsonText::new(text)));
        match (value, kind) {
            (Datum::Null, _) => Ok(Json::Null),
            (Datum::Text(inner), Kind::Json) => Json::printed(inner),
            (Datum::Double(number), _) if self.mysql => Ok(Json::Number(double_spelling(*number))),
            (Datum::Float(number), _) if self.mysql => Ok(Json::Number(double_spelling((*number).into()))),
            (Datum::Double(number), Kind::Double { decimals: None }) => {
                Ok(Json::Number(double_text(*number)))
            }
            (Datum::Float(number), _) => Ok(Json::Number(float_text(*number))),
            (_, Kind::Bit { .. } | Kind::Bytes | Kind::Hex) => Err(Refusal::new(format!("{kind} as JSON"))),
            (Datum::UInt(year), Kind::Year) if self.mysql => Ok(Json::Number(year.to_string())),
            (Datum::DateTime(micros), _) if self.mysql => text(&calendar::date_time_text(*micros, 6)),
            (Datum::Time(micros), _) if self.mysql => text(&calendar::time_text(*micros, 6)),
            (value, kind) => match (value.text(kind)?, kind.is_number()) {
                (Some(number), true) => Ok(Json::Number(number)),
                (Some(inner), false) => text(&inner),
                (None, _) => Ok(Json::Null),
            },
        }
    }
}

/// CAST of a value to JSON: a text is read, other values become documents.
pub(in super::super) fn cast(of: Typed) -> Result<Typed, Refusal> {
    let values = Values::of(std::slice::from_ref(&of), true)?;
    let kind = of.kind.clone();
    Ok(Typed::call(Kind::Json, vec![of], move |row| {
        if row[0].is_null() {
            return Ok(Datum::Null);
        }
        if let (Datum::Text(text), Kind::Text(_)) = (&row[0], &kind) {
            return match parse(text, true)? {
                Parsed::Document(document) => Ok(Datum::Text(document.spelled())),
                Parsed::Invalid => {
                    Err(Refusal::new("a text that is no JSON, which is an error of the server"))
                }
            };
        }
        Ok(Datum::Text(values.document(0, &row[0])?.spelled()))
    }))
}

/// A document as a number: of a number its own, of a text what it begins with, 1 of true; else 0.
pub(in super::super) fn number(text: &str) -> Result<f64, Refusal> {
    let text = text.trim();
    Ok(match text.as_bytes().first() {
        Some(b'"') => match serde_json::from_str::<String>(text) {
            Ok(inner) => double_prefix(&inner),
            Err(_) => return Err(Refusal::new("a damaged JSON string")),
        },
        Some(b't') => 1.0,
        _ => double_prefix(text),
    })
}

/// A document as an integer.
pub(in super::super) fn integer(text: &str) -> Result<i128, Refusal> {
    match text {
        "true" => Ok(1),
        "false" => Ok(0),
        _ if text.starts_with(['{', '[']) => Ok(0),
        _ if text.starts_with('"') => Ok(integer_prefix(text.trim_matches('"'))),
        _ => match text.parse::<f64>() {
            Ok(number) if text.contains(['.', 'e']) && number.abs() < 9e18 => Ok(number.trunc() as i128),
            Ok(_) if text.parse::<i64>().is_ok() || text.parse::<u64>().is_ok() => Ok(integer_prefix(text)),
            Ok(_) => Err(Refusal::new("a document of a number out of the range of BIGINT as an integer")),
            Err(_) => Err(Refusal::new("this document as an integer")),
        },
    }
}
