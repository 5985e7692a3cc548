//! Parts and properties of documents.

use super::super::datum::Datum;
use super::super::node::Typed;
use super::super::strings::ascii;
use super::super::{Kind, Refusal};
use super::document::{Json, JsonText, Parsed, parse};
use super::spans::{Whole, in_order};
use super::{
    Found, SIGNED, at_path, begins_with_scalar, document, document_kind, of_document, path_of, text_kind,
};

/// Most letters that MySQL's JSON_VALUE gives, unless it is told another length.
const MAX_VALUE_LETTERS: usize = 512;

pub(super) fn function(name: &str, operands: &[Typed], mysql: bool) -> Result<Option<Typed>, Refusal> {
    let operands = operands.to_vec();
    Ok(Some(match (name, operands.len()) {
        ("json_extract", 2..) | ("->", 2) => extract(operands, mysql)?,
        ("->>", 2) => unquote(extract(operands, mysql)?, mysql)?,
        ("json_unquote", 1) => unquote(operands.into_iter().next().ok_or_else(missing)?, mysql)?,
        ("json_value", 2) if mysql => short_value(operands)?,
        ("json_value", 2) => value(operands, mysql)?,
        ("json_value", 3) if mysql => value_of_length(operands)?,
        ("json_query", 2) if !mysql => {
            document_kind(&operands[0], mysql)?;
            let kinds: Vec<Kind> = operands.iter().map(|operand| operand.kind.clone()).collect();
            Typed::call(Kind::Json, operands, move |values| query(values, &kinds))
        }
        ("json_exists", 2) if !mysql => of_document(operands, SIGNED, mysql, |document, values, kinds| {
            Ok(match path_of(&values[0], &kinds[0])? {
                Some(path) => Datum::truth(!path.find(&document).is_empty()),
                None => Datum::Null,
            })
        })?,
        ("json_length", 1) if !mysql && matches!(operands[0].kind, Kind::Text(_)) => {
            super::textual(&operands[0], mysql)?;
            let kind = operands[0].kind.clone();
            Typed::call(SIGNED, operands, move |values| length_of_text(&values[0], &kind))
        }
        ("json_length", 1 | 2) => of_document(operands, SIGNED, mysql, |document, values, kinds| {
            Ok(at_path(document, values, kinds)?.map_or(Datum::Null, |found| length(&found)))
        })?,
        ("json_depth", 1) => {
            of_document(operands, SIGNED, mysql, |document, _, _| Ok(Datum::Int(document.depth() as i64)))?
        }
        ("json_keys", 1 | 2) => of_document(operands, Kind::Json, mysql, move |document, values, kinds| {
            // MySQL has no keys of what is taken for an array of one element.
            if let (true, [path], [kind]) = (mysql, values, kinds)
                && path_of(path, kind)?.is_some_and(|path| path.takes_element_of_scalar(&document))
            {
                return Ok(Datum::Null);
            }
            Ok(at_path(document, values, kinds)?.map_or(Datum::Null, keys))
        })?,
        ("json_type", 1) => of_document(operands, ascii(), mysql, move |document, _, _| {
            if mysql && may_hide_type(&document) {
                return Err(Refusal::new(
                    "the type of a value that may be a date or time, bytes or a string",
                ));
            }
            Ok(Datum::Text(type_name(&document, mysql).to_string()))
        })?,
        ("json_valid", 1) => valid(operands, mysql)?,
        ("json_pretty" | "json_detailed", 1) if mysql == (name == "json_pretty") || !mysql => {
            of_document(operands, ascii(), mysql, move |document, _, _| {
                let mut out = String::new();
                match mysql {
                    true => document.pretty(&mut out, 0),
                    false => detailed(&document, &mut out, 0),
                }
                Ok(Datum::Text(out))
            })?
        }
        ("json_compact", 1) if !mysql => of_document(operands, Kind::Json, mysql, |document, _, _| {
            let mut out = String::new();
            document.write(&mut out, ",", ":");
            Ok(Datum::Text(out))
        })?,
        ("json_loose", 1) if !mysql => {
            of_document(operands, Kind::Json, mysql, |document, _, _| Ok(Datum::Text(document.spelled())))?
        }
        _ => return Ok(None),
    }))
}

fn length(document: &Json) -> Datum {
    Datum::Int(match document {
        Json::Array(elements) => elements.len() as i64,
        Json::Object(members) => members.len() as i64,
        _ => 1,
    })
}

/// MariaDB's `JSON_LENGTH` of a text, of which it reads no more than a number or word at the begin.
fn length_of_text(value: &Datum, kind: &Kind) -> Result<Datum, Refusal> {
    match value {
        Datum::Text(text) if begins_with_scalar(text) => Ok(Datum::Int(1)),
        value => match document(value, kind, false)? {
            Found::Null => Ok(Datum::Null),
            Found::Document(document) => Ok(length(&document)),
        },
    }
}

/// MariaDB's `JSON_QUERY`: the array or object at a path, as it stands in the document.
fn query(values: &[Datum], kinds: &[Kind]) -> Result<Datum, Refusal> {
    let Found::Document(document) = document(&values[0], &kinds[0], false)? else { return Ok(Datum::Null) };
    let Some(path) = path_of(&values[1], &kinds[1])? else { return Ok(Datum::Null) };
    if path.has_wildcard() {
        return Err(Refusal::new("a path to several values"));
    }
    let text = values[0].text(&kinds[0])?.unwrap_or_default();
    match path.find(&document).first() {
        Some(found @ (Json::Array(_) | Json::Object(_))) => {
            let whole = Whole { text: &text, document: &document };
            whole.spelling(found).map(|spelling| Datum::Text(spelling.to_string()))
        }
        _ => Ok(Datum::Null),
    }
}

fn missing() -> Refusal {
    Refusal::new("an operand is missing")
}

fn extract(operands: Vec<Typed>, mysql: bool) -> Result<Typed, Refusal> {
    of_document(operands, Kind::Json, mysql, move |document, values, kinds| {
        let (mut found, mut several) = (Vec::new(), values.len() > 1);
        for (value, kind) in values.iter().zip(kinds) {
            let Some(path) = path_of(value, kind)? else { return Ok(Datum::Null) };
            if !mysql && values.len() > 1 && (path.has_last() || document.has_doubled_names()) {
                return Err(Refusal::new("several paths to values of which the order is not known"));
            }
            several |= path.has_wildcard();
            if mysql || !path.has_last_of_scalar(&document) {
                found.extend(path.find(&document));
            }
        }
        if !mysql && values.len() > 1 {
            found = in_order(&document, found)?;
        }
        Ok(match (found.as_slice(), several) {
            ([], _) => Datum::Null,
            ([first, ..], false) => Datum::Text(first.spelled()),
            (_, true) => Datum::Text(Json::Array(found.into_iter().cloned().collect()).spelled()),
        })
    })
}

fn unquote(of: Typed, mysql: bool) -> Result<Typed, Refusal> {
    document_kind(&of, mysql)?;
    let from = of.kind.clone();
    Ok(Typed::call(text_kind(&from, mysql), vec![of], move |values| {
        let Some(text) = values[0].text(&from)? else { return Ok(Datum::Null) };
        if text.len() < 2 || !text.starts_with('"') || !text.ends_with('"') {
            return Ok(Datum::Text(text));
        }
        match serde_json::from_str::<String>(&text) {
            Ok(inner) => Ok(Datum::Text(inner)),
            Err(_) => Err(Refusal::new("a damaged JSON string")),
        }
    }))
}

fn value(operands: Vec<Typed>, mysql: bool) -> Result<Typed, Refusal> {
    document_kind(&operands[0], mysql)?;
    let kinds: Vec<Kind> = operands.iter().map(|operand| operand.kind.clone()).collect();
    Ok(Typed::call(text_kind(&kinds[0], mysql), operands, move |values| {
        let Some(text) = values[0].text(&kinds[0])? else { return Ok(Datum::Null) };
        let printed = mysql && kinds[0] == Kind::Json;
        let document = match parse(&text, mysql && !printed)? {
            Parsed::Document(document) => document,
            Parsed::Invalid if text.trim_start().starts_with(['{', '[', '"']) => {
                return Err(Refusal::new("a text that is no JSON"));
            }
            Parsed::Invalid => return Ok(Datum::Null),
        };
        Ok(match at_path(document, &values[1..], &kinds[1..])? {
            None | Some(Json::Null) => Datum::Null,
            Some(Json::Text(text)) => Datum::Text(text.text),
            Some(Json::Truth(truth)) if !mysql => Datum::Text(i32::from(truth).to_string()),
            Some(Json::Array(_) | Json::Object(_)) if !mysql => Datum::Null,
            Some(found) => Datum::Text(found.spelled()),
        })
    }))
}

/// MySQL's `JSON_VALUE` of a CHAR(512), which is NULL if it is longer.
fn short_value(operands: Vec<Typed>) -> Result<Typed, Refusal> {
    let of = value(operands, true)?;
    Ok(Typed::call(of.kind.clone(), vec![of], |values| match &values[0] {
        Datum::Text(text) if text.chars().count() > MAX_VALUE_LETTERS => Ok(Datum::Null),
        value => Ok(value.clone()),
    }))
}

/// `JSON_VALUE(document, path RETURNING CHAR(n))`.
fn value_of_length(mut operands: Vec<Typed>) -> Result<Typed, Refusal> {
    let length = match operands.pop().as_ref().and_then(Typed::literal) {
        Some(Datum::Int(length)) => usize::try_from(*length).ok(),
        Some(Datum::UInt(length)) => usize::try_from(*length).ok(),
        _ => None,
    };
    let length = length.ok_or_else(|| Refusal::new("a length that varies"))?;
    let of = value(operands, true)?;
    Ok(Typed::call(of.kind.clone(), vec![of], move |values| match &values[0] {
        Datum::Text(text) if text.chars().count() > length => {
            Err(Refusal::new("a value that is longer than what it is returned as"))
        }
        value => Ok(value.clone()),
    }))
}

/// Whether a string of a document of MySQL may be a value of another type, which is read as its text.
fn may_hide_type(document: &Json) -> bool {
    let Json::Text(JsonText { text, .. }) = document else { return false };
    let is_spelled = |form: &str| {
        text.len() == form.len()
            && text.bytes().zip(form.bytes()).all(|(found, of)| match of {
                b'0' => found.is_ascii_digit(),
                of => found == of,
            })
    };
    let forms = ["0000-00-00", "0000-00-00 00:00:00.000000"];
    let time = text.strip_prefix('-').unwrap_or(text);
    let is_time = time.ends_with(|digit: char| digit.is_ascii_digit())
        && time.split_once('.').is_some_and(|(seconds, fraction)| {
            fraction.len() == 6 && seconds.bytes().all(|byte| byte.is_ascii_digit() || byte == b':')
        });
    forms.iter().any(|form| is_spelled(form)) || is_time || text.starts_with("base64:type")
}

fn type_name(document: &Json, mysql: bool) -> &'static str {
    match document {
        Json::Null => "NULL",
        Json::Truth(_) => "BOOLEAN",
        Json::Text(_) => "STRING",
        Json::Array(_) => "ARRAY",
        Json::Object(_) => "OBJECT",
        Json::Number(number) => match mysql {
            false if number.contains('.') => "DOUBLE",
            false => "INTEGER",
            // The double would be spelled without the zero.
            true if is_decimal(number) => "DECIMAL",
            true if number.contains(['.', 'e', 'E']) => "DOUBLE",
            true if number.parse::<i64>().is_ok() => "INTEGER",
            true => "UNSIGNED INTEGER",
        },
    }
}

fn is_decimal(number: &str) -> bool {
    number.contains('.') && number.ends_with('0') && !number.ends_with(".0") && !number.contains(['e', 'E'])
}

fn valid(operands: Vec<Typed>, mysql: bool) -> Result<Typed, Refusal> {
    let kind = operands[0].kind.clone();
    super::textual(&operands[0], mysql)?;
    Ok(Typed::truth(Typed::call(SIGNED, operands, move |values| {
        // To MySQL what has another type is no document, not even NULL.
        if mysql && !matches!(kind, Kind::Text(_) | Kind::Json | Kind::Bytes | Kind::Hex | Kind::Null) {
            return Ok(Datum::truth(false));
        }
        if mysql && kind.is_binary() {
            return Ok(if values[0].is_null() { Datum::Null } else { Datum::truth(false) });
        }
        let Some(text) = values[0].text(&kind)? else { return Ok(Datum::Null) };
        Ok(Datum::truth(matches!(parse(&text, mysql)?, Parsed::Document(_))))
    })))
}

/// Whether an array has one element, which is no array or object.
fn is_single_scalar(elements: &[Json]) -> bool {
    matches!(elements, [only] if !matches!(only, Json::Array(_) | Json::Object(_)))
}

/// The names of an object's members, each once; NULL of what is no object.
fn keys(document: Json) -> Datum {
    let Json::Object(members) = document else { return Datum::Null };
    let mut keys: Vec<JsonText> = Vec::new();
    for (name, _) in members {
        if !keys.iter().any(|key| key.text == name.text) {
            keys.push(name);
        }
    }
    Datum::Text(Json::Array(keys.into_iter().map(Json::Text).collect()).spelled())
}

/// Over several lines, as MariaDB writes it: the value of a member begins on a line of its own if it is nested.
fn detailed(document: &Json, out: &mut String, depth: usize) {
    let indent = |out: &mut String, depth: usize| {
        out.push('\n');
        out.push_str(&"    ".repeat(depth));
    };
    match document {
        Json::Array(elements) if is_single_scalar(elements) => document.write(out, ", ", ": "),
        Json::Array(elements) if !elements.is_empty() => {
            out.push('[');
            for (at, element) in elements.iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                indent(out, depth + 1);
                detailed(element, out, depth + 1);
            }
            indent(out, depth);
            out.push(']');
        }
        Json::Object(members) => {
            out.push('{');
            for (at, (name, value)) in members.iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                indent(out, depth + 1);
                Json::Text(name.clone()).write(out, ", ", ": ");
                out.push_str(": ");
                if matches!(value, Json::Array(_) | Json::Object(_)) {
                    indent(out, depth + 1);
                }
                detailed(value, out, depth + 1);
            }
            indent(out, depth);
            out.push('}');
        }
        other => other.write(out, ", ", ": "),
    }
}
