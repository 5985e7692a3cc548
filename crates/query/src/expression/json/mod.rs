//! Functions of JSON documents.

mod compare;
mod document;
mod key;
mod normal;
mod path;
mod read;
mod search;
mod spans;
mod table;
mod value;
mod write;

pub(super) use compare::order;
pub(crate) use key::{KeyOf, add_key};
pub(crate) use table::{Item, JsonTable, Otherwise, ValueColumn, path};
pub(super) use value::{cast, integer, number};

use super::conversions::textual;
use super::datum::Datum;
use super::node::Typed;
use super::{Kind, Refusal, Rules};
use document::{Json, Parsed, parse};
use path::Path;

const SIGNED: Kind = Kind::Int { unsigned: false };

/// A function of documents; `None` if there is none of that name.
pub(super) fn function(name: &str, operands: &[Typed], rules: &Rules) -> Result<Option<Typed>, Refusal> {
    let mysql = rules.mysql;
    let checked = if mysql { None } else { read_to_the_fault(name, operands) };
    let operands = checked.as_deref().unwrap_or(operands);
    for of in [read::function, search::function, write::function, value::function, normal::function] {
        if let Some(found) = of(name, operands, mysql)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// The operands of functions of MariaDB that read a number or word and do not mind what is behind it: of `1 day` these
/// find the number 1. Such a text is refused.
fn read_to_the_fault(name: &str, operands: &[Typed]) -> Option<Vec<Typed>> {
    let documents = match name {
        "json_value" | "json_exists" | "json_search" => 1,
        "json_length" if operands.len() == 2 => 1,
        "json_contains" | "json_overlaps" => 2,
        "json_merge" | "json_merge_preserve" | "json_merge_patch" => operands.len(),
        _ => return None,
    };
    let is_text = |of: &Typed| matches!(of.kind, Kind::Text(_));
    if !operands.iter().take(documents).any(is_text) {
        return None;
    }
    let checked = operands.iter().cloned().enumerate().map(|(at, of)| match at < documents && is_text(&of) {
        true => Typed::call(of.kind.clone(), vec![of], |values| {
            if let Datum::Text(text) = &values[0]
                && begins_with_scalar(text)
                && matches!(parse(text, false)?, Parsed::Invalid)
            {
                return Err(Refusal::new("a text that begins with a JSON value and is none"));
            }
            Ok(values[0].clone())
        }),
        false => of,
    });
    Some(checked.collect())
}

/// Whether MariaDB finds a number or word at the begin of a text, whatever is behind it.
fn begins_with_scalar(text: &str) -> bool {
    let text = text.trim_start_matches([' ', '\t', '\n', '\r']);
    if let Some(rest) = text.strip_prefix('-') {
        return !rest.is_empty();
    }
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let whole = digits(text);
    if whole == 0 {
        return ["true", "false", "null"].iter().any(|word| text.starts_with(word));
    }
    let rest = &text[whole..];
    let rest = rest.strip_prefix('.').map_or(rest, |fraction| &fraction[digits(fraction)..]);
    // A number that ends within its exponent is none.
    !matches!(rest, "e" | "E" | "e+" | "E+" | "e-" | "E-")
}

/// The type of a text out of a document: MariaDB's compares as the document does.
fn text_kind(document: &Kind, mysql: bool) -> Kind {
    Kind::Text(match mysql {
        true => Kind::Json.collating(),
        false => document.collating(),
    })
}

/// Refuses operands that are no documents to the server.
fn document_kind(of: &Typed, mysql: bool) -> Result<(), Refusal> {
    textual(of, mysql)?;
    match (&of.kind, mysql) {
        (Kind::Json | Kind::Text(_) | Kind::Null, _) => Ok(()),
        (Kind::Choice(_) | Kind::Int { .. } | Kind::Decimal { .. }, false) => Ok(()),
        (kind, _) => Err(Refusal::new(format!("{kind} as JSON"))),
    }
}

/// What an operand is as a document.
enum Found {
    Null,
    Document(Json),
}

/// Reads a document; a text that is none is NULL to MariaDB and an error to MySQL.
fn document(value: &Datum, kind: &Kind, mysql: bool) -> Result<Found, Refusal> {
    let Some(text) = value.text(kind)? else { return Ok(Found::Null) };
    // What MySQL has printed keeps its numbers.
    if mysql && *kind == Kind::Json {
        return Json::printed(&text).map(Found::Document);
    }
    match parse(&text, mysql)? {
        Parsed::Document(document) => Ok(Found::Document(document)),
        Parsed::Invalid if mysql => {
            Err(Refusal::new("a text that is no JSON, which is an error of the server"))
        }
        // Some of MariaDB's functions stop reading before the fault.
        Parsed::Invalid if text.trim_start().starts_with(['{', '[', '"']) => {
            Err(Refusal::new("a text that is no JSON"))
        }
        Parsed::Invalid => Ok(Found::Null),
    }
}

/// Reads a path; `None` is NULL.
fn path_of(value: &Datum, kind: &Kind) -> Result<Option<Path>, Refusal> {
    value.text(kind)?.map(|text| Path::parse(&text)).transpose()
}

/// Computes something of a document and the other operands; NULL if the document is NULL.
fn of_document(
    operands: Vec<Typed>,
    result: Kind,
    mysql: bool,
    compute: impl Fn(Json, &[Datum], &[Kind]) -> Result<Datum, Refusal> + Send + Sync + 'static,
) -> Result<Typed, Refusal> {
    document_kind(&operands[0], mysql)?;
    let kinds: Vec<Kind> = operands.iter().map(|operand| operand.kind.clone()).collect();
    Ok(Typed::call(result, operands, move |values| match document(&values[0], &kinds[0], mysql)? {
        Found::Null => Ok(Datum::Null),
        Found::Document(document) => compute(document, &values[1..], &kinds[1..]),
    }))
}

/// The value that an optional path leads to; `None` is NULL.
fn at_path(document: Json, values: &[Datum], kinds: &[Kind]) -> Result<Option<Json>, Refusal> {
    let Some((value, kind)) = values.first().zip(kinds.first()) else { return Ok(Some(document)) };
    let Some(path) = path_of(value, kind)? else { return Ok(None) };
    if path.has_wildcard() {
        return Err(Refusal::new("a path to several values"));
    }
    Ok(path.find(&document).first().map(|found| (*found).clone()))
}
