//! `JSON_EXTRACT`, `->`, `->>`, `JSON_UNQUOTE`, `JSON_LENGTH`: parts of a document as it is spelled.
//!
//! A part is cut out of the document's text, so that it keeps the server's spelling of numbers and spaces.

use super::datum::Datum;
use super::kind::Collating;
use super::node::Typed;
use super::{Kind, Refusal, Rules};

/// Deepest nesting of a document; the servers allow 100 (MySQL) and 32 (MariaDB).
const MAX_DEPTH: usize = 100;

/// A step of a path.
#[derive(Debug, Clone, PartialEq)]
enum Step {
    Member(String),
    Element(usize),
}

/// A function of documents; `None` if there is none of that name.
pub(super) fn function(name: &str, operands: &[Typed], rules: &Rules) -> Result<Option<Typed>, Refusal> {
    let mysql = rules.mysql;
    let operands = operands.to_vec();
    Ok(Some(match (name, operands.as_slice()) {
        ("json_extract" | "->", [_, _]) => extract(operands, mysql)?,
        ("->>", [_, _]) => unquote(extract(operands, mysql)?, mysql)?,
        ("json_unquote", [of]) => unquote(of.clone(), mysql)?,
        ("json_length", [of]) => length(of.clone(), mysql)?,
        _ => return Ok(None),
    }))
}

/// Whether the operand is a document: JSON of MySQL, in MariaDB a text.
fn document(of: &Typed, mysql: bool) -> Result<(), Refusal> {
    match (&of.kind, mysql) {
        (Kind::Json, true) | (Kind::Text(_), false) => Ok(()),
        (kind, _) => Err(Refusal::new(format!("{kind:?} as JSON"))),
    }
}

fn extract(operands: Vec<Typed>, mysql: bool) -> Result<Typed, Refusal> {
    document(&operands[0], mysql)?;
    let Some(Datum::Text(path)) = operands[1].literal() else {
        return Err(Refusal::new("a path that varies"));
    };
    let steps = steps(path)?;
    let kind = if mysql { Kind::Json } else { Kind::Text(Collating::literal(Some("utf8mb4".to_string()))) };
    Ok(Typed::call(kind, operands, move |values| {
        let Datum::Text(text) = &values[0] else { return Ok(Datum::Null) };
        let mut part = trimmed(text);
        check(part)?;
        for step in &steps {
            match child(part, step)? {
                Some(inner) => part = inner,
                None => return Ok(Datum::Null),
            }
        }
        Ok(Datum::Text(part.to_string()))
    }))
}

fn unquote(of: Typed, mysql: bool) -> Result<Typed, Refusal> {
    let kind = Kind::Text(Collating {
        collation: mysql.then(|| "utf8mb4_bin".to_string()),
        charset: Some("utf8mb4".to_string()),
        strength: 1,
    });
    let from = of.kind.clone();
    if !matches!(from, Kind::Json | Kind::Text(_)) {
        return Err(Refusal::new(format!("JSON_UNQUOTE of {from:?}")));
    }
    Ok(Typed::call(kind, vec![of], |values| match &values[0] {
        Datum::Text(text) if text.len() > 1 && text.starts_with('"') && text.ends_with('"') => {
            let inner: String =
                serde_json::from_str(text).map_err(|_| Refusal::new("a damaged JSON string"))?;
            Ok(Datum::Text(inner))
        }
        other => Ok(other.clone()),
    }))
}

fn length(of: Typed, mysql: bool) -> Result<Typed, Refusal> {
    document(&of, mysql)?;
    Ok(Typed::call(Kind::Int { unsigned: false }, vec![of], |values| {
        let Datum::Text(text) = &values[0] else { return Ok(Datum::Null) };
        let text = trimmed(text);
        check(text)?;
        let mut count = 1;
        if text.starts_with(['{', '[']) {
            count = 0;
            children(text, |_, _| {
                count += 1;
                false
            })?;
        }
        Ok(Datum::Int(count))
    }))
}

/// Whether a text is a document without what JSON leaves open.
fn check(text: &str) -> Result<(), Refusal> {
    match serde_json::from_str::<serde::de::IgnoredAny>(text) {
        Ok(_) => Ok(()),
        Err(_) => Err(Refusal::new("a text that is no JSON")),
    }
}

/// The steps of a path such as `$.a[0]."b c"`.
fn steps(path: &str) -> Result<Vec<Step>, Refusal> {
    let odd = || Refusal::new(format!("the JSON path {path}"));
    let mut rest = path.trim().strip_prefix('$').ok_or_else(odd)?;
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if steps.len() > MAX_DEPTH {
            return Err(odd());
        }
        if let Some(inner) = rest.strip_prefix('[') {
            let (number, behind) = inner.split_once(']').ok_or_else(odd)?;
            if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(odd());
            }
            steps.push(Step::Element(number.parse().map_err(|_| odd())?));
            rest = behind;
            continue;
        }
        let inner = rest.strip_prefix('.').ok_or_else(odd)?;
        if let Some(quoted) = inner.strip_prefix('"') {
            let (name, behind) = quoted.split_once('"').ok_or_else(odd)?;
            if name.contains('\\') {
                return Err(odd());
            }
            steps.push(Step::Member(name.to_string()));
            rest = behind;
            continue;
        }
        let end = inner.find(['.', '[']).unwrap_or(inner.len());
        let is_name = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '$');
        if end == 0
            || !inner[..end].chars().all(is_name)
            || inner.starts_with(|digit: char| digit.is_ascii_digit())
        {
            return Err(odd());
        }
        steps.push(Step::Member(inner[..end].to_string()));
        rest = &inner[end..];
    }
    Ok(steps)
}

fn trimmed(text: &str) -> &str {
    text.trim_matches([' ', '\t', '\n', '\r'])
}

/// The member or element of a document that was checked; a value that is no array is its own first element.
fn child<'a>(text: &'a str, step: &Step) -> Result<Option<&'a str>, Refusal> {
    let mut found = None;
    match step {
        Step::Member(name) if text.starts_with('{') => children(text, |key, value| {
            let is_it =
                key.is_some_and(|key| serde_json::from_str::<String>(key).is_ok_and(|key| key == *name));
            if is_it {
                found = Some(value);
            }
            is_it
        })?,
        Step::Element(number) if text.starts_with('[') => {
            let mut at = 0;
            children(text, |_, value| {
                let is_it = at == *number;
                if is_it {
                    found = Some(value);
                }
                at += 1;
                is_it
            })?;
        }
        Step::Element(0) => found = Some(text),
        _ => {}
    }
    Ok(found)
}

/// Calls `each` with the key (as it is spelled) and the text of every child, until it is content.
fn children<'a>(
    text: &'a str,
    mut each: impl FnMut(Option<&'a str>, &'a str) -> bool,
) -> Result<(), Refusal> {
    let damaged = || Refusal::new("a text that is no JSON");
    let bytes = text.as_bytes();
    let is_object = bytes.first() == Some(&b'{');
    let (mut depth, mut start, mut key, mut at) = (0usize, 1usize, None, 0usize);
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                at += 1;
                while at < bytes.len() && bytes[at] != b'"' {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
            }
            b'{' | b'[' => depth += 1,
            b':' if depth == 1 && is_object => {
                key = Some(trimmed(text.get(start..at).ok_or_else(damaged)?));
                start = at + 1;
            }
            byte @ (b',' | b'}' | b']') => {
                if depth == 1 {
                    let value = trimmed(text.get(start..at).ok_or_else(damaged)?);
                    if !value.is_empty() && each(key.take(), value) {
                        return Ok(());
                    }
                    start = at + 1;
                }
                if byte != b',' {
                    depth = depth.checked_sub(1).ok_or_else(damaged)?;
                }
            }
            _ => {}
        }
        at += 1;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_keep_their_spelling() {
        let text = r#"{"a": [1, {"b c": 2.50}, "x,]\"y"], "d": null}"#;
        let part = |path: &str| {
            let mut part = text;
            for step in steps(path).unwrap() {
                part = child(part, &step).unwrap()?;
            }
            Some(part)
        };
        assert_eq!(part("$.a[1].\"b c\""), Some("2.50"));
        assert_eq!(part("$.a[2]"), Some(r#""x,]\"y""#));
        assert_eq!(part("$.d"), Some("null"));
        assert_eq!(part("$.d[0]"), Some("null"));
        assert_eq!(part("$.e"), None);
        assert!(steps("$.*").is_err());
        assert!(steps("$**.a").is_err());
    }
}
