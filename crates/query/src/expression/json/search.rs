//! What documents contain.

use std::cmp::Ordering;

use super::super::datum::Datum;
use super::super::node::Typed;
use super::super::{Kind, Refusal};
use super::document::Json;
use super::value::Values;
use super::{Found, SIGNED, at_path, document, document_kind, of_document, path_of};

pub(super) fn function(name: &str, operands: &[Typed], mysql: bool) -> Result<Option<Typed>, Refusal> {
    let operands = operands.to_vec();
    Ok(Some(match (name, operands.len()) {
        ("member of", 2) if mysql => member_of(operands)?,
        ("json_contains", 2 | 3) => {
            document_kind(&operands[1], mysql)?;
            Typed::truth(of_document(operands, SIGNED, mysql, move |target, values, kinds| {
                let Found::Document(candidate) = document(&values[0], &kinds[0], mysql)? else {
                    return Ok(Datum::Null);
                };
                if values[1..].first().is_some_and(Datum::is_null) {
                    return Ok(Datum::Null);
                }
                Ok(match at_path(target, &values[1..], &kinds[1..])? {
                    Some(target) => Datum::truth(contains(&target, &candidate)),
                    // A path that leads to nothing.
                    None if mysql => Datum::Null,
                    None => Datum::truth(false),
                })
            })?)
        }
        ("json_contains_path", 3..) => {
            Typed::truth(of_document(operands, SIGNED, mysql, |document, values, kinds| {
                let Some(how) = values[0].text(&kinds[0])? else { return Ok(Datum::Null) };
                let all = is_all(&how)?;
                let mut found = 0;
                for (value, kind) in values.iter().zip(kinds).skip(1) {
                    let Some(path) = path_of(value, kind)? else { return Ok(Datum::Null) };
                    found += usize::from(!path.find(&document).is_empty());
                }
                Ok(Datum::truth(if all { found + 1 == values.len() } else { found > 0 }))
            })?)
        }
        ("json_overlaps", 2) => {
            document_kind(&operands[1], mysql)?;
            Typed::truth(of_document(operands, SIGNED, mysql, move |left, values, kinds| {
                Ok(match document(&values[0], &kinds[0], mysql)? {
                    Found::Null => Datum::Null,
                    Found::Document(right) => Datum::truth(overlaps(&left, &right)),
                })
            })?)
        }
        ("json_equals", 2) if !mysql => {
            document_kind(&operands[1], mysql)?;
            Typed::truth(of_document(operands, SIGNED, mysql, move |left, values, kinds| {
                Ok(match document(&values[0], &kinds[0], mysql)? {
                    Found::Null => Datum::Null,
                    Found::Document(right) => Datum::truth(left.equals(&right)),
                })
            })?)
        }
        ("json_search", 3 | 4) => search(operands, mysql)?,
        _ => return Ok(None),
    }))
}

fn is_all(how: &str) -> Result<bool, Refusal> {
    match how.to_ascii_lowercase().as_str() {
        "all" => Ok(true),
        "one" => Ok(false),
        _ => Err(Refusal::new("neither 'one' nor 'all', which is an error of the server")),
    }
}

/// `value MEMBER OF (array)`
fn member_of(operands: Vec<Typed>) -> Result<Typed, Refusal> {
    document_kind(&operands[1], true)?;
    let of = Values::of(&operands[..1], true)?;
    let kind = operands[1].kind.clone();
    Ok(Typed::truth(Typed::call(SIGNED, operands, move |values| {
        if values[0].is_null() {
            return Ok(Datum::Null);
        }
        let Found::Document(array) = document(&values[1], &kind, true)? else { return Ok(Datum::Null) };
        let value = of.document(0, &values[0])?;
        let is_equal = |element: &Json| match (element, &value) {
            (Json::Object(_), Json::Object(_)) => Ok(element.equals(&value)),
            _ => super::compare::documents(element, &value).map(Ordering::is_eq),
        };
        Ok(Datum::truth(match &array {
            Json::Array(elements) => {
                let mut found = false;
                for element in elements {
                    found |= is_equal(element)?;
                }
                found
            }
            other => is_equal(other)?,
        }))
    })))
}

/// Whether a document contains another: an array each of its elements, an object each of its members.
fn contains(target: &Json, candidate: &Json) -> bool {
    match (target, candidate) {
        (Json::Array(_), Json::Array(wanted)) => wanted.iter().all(|wanted| contains(target, wanted)),
        (Json::Array(elements), wanted) => elements.iter().any(|element| contains(element, wanted)),
        (Json::Object(members), Json::Object(wanted)) => wanted.iter().all(|(name, wanted)| {
            members.iter().any(|(other, value)| other.text == name.text && contains(value, wanted))
        }),
        (target, candidate) => target.equals(candidate),
    }
}

fn overlaps(left: &Json, right: &Json) -> bool {
    match (left, right) {
        (Json::Array(left), Json::Array(right)) => {
            left.iter().any(|left| right.iter().any(|right| left.equals(right)))
        }
        (Json::Array(elements), other) | (other, Json::Array(elements)) => {
            elements.iter().any(|element| element.equals(other))
        }
        (Json::Object(left), Json::Object(right)) => left.iter().any(|(name, value)| {
            right.iter().any(|(other, found)| other.text == name.text && value.equals(found))
        }),
        (left, right) => left.equals(right),
    }
}

/// `JSON_SEARCH`: paths to strings that are like a pattern of no wildcards in names.
fn search(operands: Vec<Typed>, mysql: bool) -> Result<Typed, Refusal> {
    let has_escape = operands.get(3).is_some_and(|escape| escape.kind != Kind::Null);
    if has_escape {
        return Err(Refusal::new("JSON_SEARCH with an escape"));
    }
    of_document(operands, Kind::Json, mysql, move |document, values, kinds| {
        let (Some(how), Some(pattern)) = (values[0].text(&kinds[0])?, values[1].text(&kinds[1])?) else {
            return Ok(Datum::Null);
        };
        let mut paths = Vec::new();
        walk(&document, "$", &pattern, mysql, &mut paths)?;
        if !is_all(&how)? {
            paths.truncate(1);
        }
        let texts = |path: String| Json::Text(super::document::JsonText::new(&path));
        Ok(match paths.len() {
            0 => Datum::Null,
            1 => Datum::Text(texts(paths.remove(0)).spelled()),
            _ => Datum::Text(Json::Array(paths.into_iter().map(texts).collect()).spelled()),
        })
    })
}

fn walk(
    document: &Json,
    path: &str,
    pattern: &str,
    mysql: bool,
    paths: &mut Vec<String>,
) -> Result<(), Refusal> {
    match document {
        Json::Array(elements) => {
            for (at, element) in elements.iter().enumerate() {
                walk(element, &format!("{path}[{at}]"), pattern, mysql, paths)?;
            }
        }
        Json::Object(members) => {
            for (name, value) in members {
                let step = step_to(&name.text, mysql)?;
                walk(value, &format!("{path}.{step}"), pattern, mysql, paths)?;
            }
        }
        // MySQL compares by code points, MariaDB without case and numbers, too.
        Json::Text(text) => {
            let (exact, folded) = (like(&text.text, pattern), like(&fold(&text.text), &fold(pattern)));
            match (mysql, text.text.is_ascii() && pattern.is_ascii()) {
                (true, _) if exact => paths.push(path.to_string()),
                (false, true) if folded => paths.push(path.to_string()),
                (false, false) => return Err(Refusal::new("JSON_SEARCH of letters that are not ASCII")),
                _ => {}
            }
        }
        Json::Number(number) if !mysql && like(number, pattern) => paths.push(path.to_string()),
        _ => {}
    }
    Ok(())
}

/// A name as the servers write it into a path.
fn step_to(name: &str, mysql: bool) -> Result<String, Refusal> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '$');
    let is_known = |letter: char| is_plain(letter) || letter.is_alphanumeric() && letter <= '\u{ff}';
    let begins_plainly = !name.is_empty() && !name.starts_with(|digit: char| digit.is_ascii_digit());
    match mysql {
        true if begins_plainly && name.chars().all(is_known) => Ok(name.to_string()),
        true if name.is_ascii() => Ok(format!("\"{name}\"")),
        false
            if begins_plainly && name.chars().all(|letter| is_known(letter) || letter.is_alphanumeric()) =>
        {
            Ok(name.to_string())
        }
        _ => Err(Refusal::new("a path of a name with odd letters")),
    }
}

fn fold(text: &str) -> String {
    text.to_ascii_lowercase()
}

fn like(text: &str, pattern: &str) -> bool {
    super::super::compare::matches(text, pattern, Some('\\'))
}
