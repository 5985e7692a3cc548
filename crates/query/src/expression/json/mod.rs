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
    for of in [read::function, search::function, write::function, value::function, normal::function] {
        if let Some(found) = of(name, operands, mysql)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
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
