//! Documents changed: `JSON_SET` and its kin, `JSON_REMOVE`, `JSON_MERGE_PATCH`, `JSON_MERGE_PRESERVE`.

use super::super::datum::Datum;
use super::super::node::Typed;
use super::super::{Kind, Refusal};
use super::document::{Json, JsonText, object};
use super::path::{Path, Step};
use super::value::Values;
use super::{Found, document, document_kind, of_document, path_of};

pub(super) fn function(name: &str, operands: &[Typed], mysql: bool) -> Result<Option<Typed>, Refusal> {
    let operands = operands.to_vec();
    let change = match (name, operands.len() % 2) {
        ("json_set", 1) => Change { inserts: true, replaces: true, appends: false, before: false },
        ("json_insert", 1) => Change { inserts: true, replaces: false, appends: false, before: false },
        ("json_replace", 1) => Change { inserts: false, replaces: true, appends: false, before: false },
        ("json_array_append", 1) => Change { inserts: false, replaces: false, appends: true, before: false },
        ("json_array_insert", 1) => Change { inserts: false, replaces: false, appends: false, before: true },
        ("json_remove", _) if operands.len() > 1 => return remove(operands, mysql).map(Some),
        ("json_merge_patch", _) if operands.len() > 1 => return merged(operands, mysql, true).map(Some),
        ("json_merge" | "json_merge_preserve", _) if operands.len() > 1 => {
            return merged(operands, mysql, false).map(Some);
        }
        _ => return Ok(None),
    };
    if operands.len() < 3 {
        return Ok(None);
    }
    let values_of = Values::of(&operands[1..], mysql)?;
    of_document(operands, Kind::Json, mysql, move |mut document, values, kinds| {
        for at in (0..values.len()).step_by(2) {
            let Some(path) = path_of(&values[at], &kinds[at])? else { return Ok(Datum::Null) };
            let value = values_of.document(at + 1, &values[at + 1])?;
            if path.has_wildcard() {
                return Err(Refusal::new("a path to several values"));
            }
            if !mysql && change.before && path.has_last() {
                return Err(Refusal::new("a place that is counted from the end of an array"));
            }
            if !change.apply(&mut document, &path.steps, value, mysql)? && !mysql {
                return Ok(Datum::Null);
            }
        }
        Ok(Datum::Text(document.spelled()))
    })
    .map(Some)
}

/// What is done where a path leads.
#[derive(Debug, Clone, Copy)]
struct Change {
    inserts: bool,
    replaces: bool,
    appends: bool,
    before: bool,
}

impl Change {
    /// Whether there is something where the path leads, if it is to be an array.
    fn apply(self, document: &mut Json, steps: &[Step], value: Json, mysql: bool) -> Result<bool, Refusal> {
        let Some((last, before)) = steps.split_last() else {
            match (self.appends, self.replaces) {
                (true, _) => append(document, value),
                (_, true) => *document = value,
                _ => {}
            }
            return Ok(!self.before);
        };
        let is_of_array = self.appends || self.before;
        let Some(parent) = walk(document, before) else { return Ok(!is_of_array) };
        if self.before {
            return insert_before(parent, last, value);
        }
        if let Some(found) = child(parent, last) {
            match (self.appends, self.replaces) {
                (true, _) => append(found, value),
                (_, true) => *found = value,
                _ => {}
            }
            return Ok(true);
        }
        if self.inserts {
            match (last, parent) {
                (Step::Member(name), Json::Object(members)) => {
                    let mut all = std::mem::take(members);
                    all.push((JsonText::new(name), value));
                    if let Json::Object(ordered) = object(all, mysql) {
                        *members = ordered;
                    }
                }
                (Step::Element(_), Json::Array(elements)) => elements.push(value),
                (Step::Element(_), other) => append(other, value),
                _ => {}
            }
        }
        Ok(!is_of_array)
    }
}

/// An array with one more element; what is no array becomes the first of one.
fn append(document: &mut Json, value: Json) {
    match document {
        Json::Array(elements) => elements.push(value),
        other => *other = Json::Array(vec![std::mem::replace(other, Json::Null), value]),
    }
}

/// Whether the parent is an array.
fn insert_before(parent: &mut Json, last: &Step, value: Json) -> Result<bool, Refusal> {
    let Step::Element(place) = last else { return Err(Refusal::new("a path that is no array's element")) };
    if let Json::Array(elements) = parent {
        let at = place.of(elements.len()).unwrap_or(0).min(elements.len());
        elements.insert(at, value);
        return Ok(true);
    }
    Ok(false)
}

/// The value that steps lead to.
fn walk<'a>(document: &'a mut Json, steps: &[Step]) -> Option<&'a mut Json> {
    let mut found = document;
    for step in steps {
        found = child(found, step)?;
    }
    Some(found)
}

fn child<'a>(document: &'a mut Json, step: &Step) -> Option<&'a mut Json> {
    match (step, document) {
        (Step::Member(name), Json::Object(members)) => {
            members.iter_mut().find(|(key, _)| key.text == *name).map(|(_, value)| value)
        }
        (Step::Element(place), Json::Array(elements)) => {
            let at = place.of(elements.len())?;
            elements.get_mut(at)
        }
        (Step::Member(_), _) => None,
        (Step::Element(place), other) => (place.of(1) == Some(0)).then_some(other),
        _ => None,
    }
}

fn remove(operands: Vec<Typed>, mysql: bool) -> Result<Typed, Refusal> {
    of_document(operands, Kind::Json, mysql, move |mut document, values, kinds| {
        for (value, kind) in values.iter().zip(kinds) {
            let Some(path) = path_of(value, kind)? else { return Ok(Datum::Null) };
            if path.has_wildcard() {
                return Err(Refusal::new("a path to several values"));
            }
            let Path { steps } = path;
            let Some((last, before)) = steps.split_last() else {
                return Err(Refusal::new("the removal of a whole document"));
            };
            match (walk(&mut document, before), last) {
                (Some(Json::Object(members)), Step::Member(name)) => {
                    if let Some(at) = members.iter().position(|(key, _)| key.text == *name) {
                        members.remove(at);
                    }
                }
                (Some(Json::Array(elements)), Step::Element(place)) => {
                    if let Some(at) = place.of(elements.len()).filter(|at| *at < elements.len()) {
                        elements.remove(at);
                    }
                }
                (_, Step::Member(_) | Step::Element(_)) => {}
                _ => return Err(Refusal::new("a path to several values")),
            }
        }
        Ok(Datum::Text(document.spelled()))
    })
}

fn merged(operands: Vec<Typed>, mysql: bool, patches: bool) -> Result<Typed, Refusal> {
    for operand in &operands {
        document_kind(operand, mysql)?;
    }
    of_document(operands, Kind::Json, mysql, move |mut merged, values, kinds| {
        for (value, kind) in values.iter().zip(kinds) {
            let Found::Document(next) = document(value, kind, mysql)? else { return Ok(Datum::Null) };
            if merged.has_doubled_names() || next.has_doubled_names() {
                return Err(Refusal::new("the merge of documents with two members of one name"));
            }
            merged = if patches { patched(merged, next, mysql) } else { preserved(merged, next, mysql) };
        }
        Ok(Datum::Text(merged.spelled()))
    })
}

/// RFC 7396.
fn patched(target: Json, patch: Json, mysql: bool) -> Json {
    let Json::Object(patch) = patch else { return patch };
    let mut members = match target {
        Json::Object(members) => members,
        _ => Vec::new(),
    };
    for (name, value) in patch {
        let at = members.iter().position(|(key, _)| key.text == name.text);
        match (value, at) {
            (Json::Null, Some(at)) => {
                members.remove(at);
            }
            (Json::Null, None) => {}
            (value, Some(at)) => {
                let old = std::mem::replace(&mut members[at].1, Json::Null);
                members[at].1 = patched(old, value, mysql);
            }
            (value, None) => members.push((name, patched(Json::Null, value, mysql))),
        }
    }
    object(members, mysql)
}

/// Arrays are joined, objects member by member, all else becomes elements of an array.
fn preserved(left: Json, right: Json, mysql: bool) -> Json {
    match (left, right) {
        (Json::Object(mut members), Json::Object(others)) => {
            for (name, value) in others {
                match members.iter().position(|(key, _)| key.text == name.text) {
                    Some(at) => {
                        let old = std::mem::replace(&mut members[at].1, Json::Null);
                        members[at].1 = preserved(old, value, mysql);
                    }
                    None => members.push((name, value)),
                }
            }
            object(members, mysql)
        }
        (left, right) => {
            let elements = |document: Json| match document {
                Json::Array(elements) => elements,
                other => vec![other],
            };
            let mut joined = elements(left);
            joined.extend(elements(right));
            Json::Array(joined)
        }
    }
}
