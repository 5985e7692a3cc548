//! How documents compare with one another and with values.

use std::cmp::Ordering;

use super::super::datum::Datum;
use super::super::{Kind, Refusal};
use super::document::{Json, JsonText};
use super::key::number_key;

/// How two documents, or a document and a value, compare; `None` if that gives NULL.
pub(in super::super) fn order(
    left: (&Datum, &Kind),
    right: (&Datum, &Kind),
    mysql: bool,
) -> Result<Option<Ordering>, Refusal> {
    if !mysql {
        // MariaDB compares what an extracted string says with a text.
        let said = |(value, kind): (&Datum, &Kind)| -> Result<Option<String>, Refusal> {
            let Some(text) = value.text(kind)? else { return Ok(None) };
            Ok(match (kind, serde_json::from_str::<String>(&text)) {
                (Kind::Json, Ok(inner)) => Some(inner),
                _ => Some(text),
            })
        };
        let (Some(a), Some(b)) = (said(left)?, said(right)?) else { return Ok(None) };
        let collating = left.1.collating().compared(&right.1.collating(), "=")?;
        return collating.compare(&a, &b).map(Some);
    }
    documents(&value(left)?, &value(right)?).map(Some)
}

/// A value as MySQL compares it with a document: a text is a string.
fn value((value, kind): (&Datum, &Kind)) -> Result<Json, Refusal> {
    let text = value.text(kind)?.unwrap_or_default();
    match kind {
        Kind::Json => Json::printed(&text),
        kind if kind.is_number() => match value.number(kind)? {
            Some(super::super::datum::Number::Double(number)) => {
                Ok(Json::Number(super::document::double_spelling(number)))
            }
            _ => Ok(Json::Number(text)),
        },
        _ => Ok(Json::Text(JsonText::new(&text))),
    }
}

/// Types in their order.
fn rank(document: &Json) -> u8 {
    match document {
        Json::Null => 0,
        Json::Number(_) => 1,
        Json::Text(_) => 2,
        Json::Object(_) => 3,
        Json::Array(_) => 4,
        Json::Truth(_) => 5,
    }
}

pub(super) fn documents(left: &Json, right: &Json) -> Result<Ordering, Refusal> {
    Ok(match (left, right) {
        (Json::Number(a), Json::Number(b)) => number_key(a)?.cmp(&number_key(b)?),
        (Json::Text(a), Json::Text(b)) => a.text.cmp(&b.text),
        (Json::Truth(a), Json::Truth(b)) => a.cmp(b),
        (Json::Array(a), Json::Array(b)) => {
            for (a, b) in a.iter().zip(b) {
                let order = documents(a, b)?;
                if order.is_ne() {
                    return Ok(order);
                }
            }
            a.len().cmp(&b.len())
        }
        (Json::Object(_), Json::Object(_)) => match left.equals(right) {
            true => Ordering::Equal,
            false => return Err(Refusal::new("the order of JSON objects")),
        },
        (left, right) => rank(left).cmp(&rank(right)),
    })
}
