//! How documents of MariaDB compare: they are texts. One that is read or changed compares as the text that it comes
//! from, one that is made of values as what these are put together to.

use datafusion::common::Result;

use super::field::JSON_COLLATION;
use super::rule::Argument;
use super::unsupported;
use crate::expression::{Collating, Kind};

/// The collation of columns of type JSON.
const OF_COLUMNS: &str = "utf8mb4_bin";

/// The collation of the document that a function gives; `None` if it compares by bytes.
pub(super) fn collation(name: &str, operands: &[Argument]) -> Result<Option<String>> {
    if !name.starts_with("json_") {
        return Ok(None);
    }
    let own = match (name, operands) {
        ("json_array" | "json_object", operands) => {
            let mut whole = Collating::connection(tanada_innodb::Server::MariaDb);
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
