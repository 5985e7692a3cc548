//! Documents of MariaDB, which are texts. One that is read or changed compares as the text that it comes from, one that
//! is made of values as what these are put together to. A column is a document where its check says so.

use datafusion::arrow::datatypes::Field;
use datafusion::common::Result;

use super::field::JSON_COLLATION;
use super::rule::Argument;
use super::unsupported;
use crate::expression::{Collating, Kind, Rules};
use crate::relation::types::DOCUMENT;

/// The collation of columns of type JSON.
const OF_COLUMNS: &str = "utf8mb4_bin";

/// The collation of the document that a function gives; `None` if it compares by bytes.
pub(super) fn collation(name: &str, operands: &[Argument], rules: &Rules) -> Result<Option<String>> {
    if !name.starts_with("json_") {
        return Ok(None);
    }
    let own = match (name, operands) {
        ("json_array" | "json_object", operands) => {
            let mut whole = Collating::connection(&rules.connection);
            let mut is_first = true;
            for operand in operands {
                let Some(own) = of_operand(operand) else { continue };
                whole = match is_first {
                    true => own,
                    false => whole.mixed(&own, name).map_err(|refusal| unsupported(name, &refusal))?,
                };
                is_first = false;
            }
            whole
        }
        (_, [document, ..]) => match of_operand(document) {
            Some(own) => own,
            None => return Ok(None),
        },
        _ => return Ok(None),
    };
    Ok(own.collation.filter(|collation| collation != OF_COLUMNS))
}

/// Functions that put values into documents, and those that give one of their operands.
const TAKES_DOCUMENTS: [&str; 14] = [
    "json_array",
    "json_object",
    "json_set",
    "json_insert",
    "json_replace",
    "json_array_append",
    "json_array_insert",
    "coalesce",
    "ifnull",
    "nvl",
    "nvl2",
    "if",
    "case",
    "nullif",
];

/// An operand of a function of MariaDB: a column of documents is one to what tells them from texts.
pub(super) fn as_document(name: &str, mut operand: Argument, rules: &Rules) -> Argument {
    let is_document = operand.field.metadata().get(DOCUMENT).is_some_and(|of| of == "yes");
    if !rules.mysql
        && is_document
        && TAKES_DOCUMENTS.contains(&name)
        && matches!(&operand.kind, Ok(Kind::Text(own)) if own.collation.as_deref() == Some(OF_COLUMNS))
    {
        operand.kind = Ok(Kind::Json);
    }
    operand
}

/// Whether it is certain that a column is no document, though it might be one by its collation.
pub(super) fn is_text(field: &Field, kind: &Kind) -> bool {
    matches!(kind, Kind::Text(own) if own.collation.as_deref() == Some(OF_COLUMNS))
        && field.metadata().get(DOCUMENT).is_some_and(|of| of == "no")
}

/// How an operand compares as a text; `None` of numbers and dates.
fn of_operand(operand: &Argument) -> Option<Collating> {
    match &operand.kind {
        Ok(Kind::Text(own)) => Some(own.clone()),
        Ok(Kind::Choice(choice)) => Some(choice.collating.clone()),
        Ok(Kind::Json) => {
            let own = operand.field.metadata().get(JSON_COLLATION);
            Some(Collating::named(own.map_or(OF_COLUMNS, String::as_str), crate::expression::IMPLICIT))
        }
        _ => None,
    }
}
