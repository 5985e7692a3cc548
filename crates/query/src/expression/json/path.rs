//! Paths into documents: `$.a[0]."b c"`, with wildcards.

use super::super::Refusal;
use super::document::Json;

/// Most steps of a path.
const MAX_STEPS: usize = 100;

/// A step of a path.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    Member(String),
    AnyMember,
    Element(Place),
    Elements(Place, Place),
    AnyElement,
    /// The value itself and all that is in it.
    Descend,
}

/// A position in an array.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Place {
    FromStart(usize),
    FromEnd(usize),
}

impl Place {
    /// The position in an array of `length` elements; `None` if it is before the first.
    pub(super) fn of(self, length: usize) -> Option<usize> {
        match self {
            Place::FromStart(at) => Some(at),
            Place::FromEnd(back) => length.checked_sub(1 + back),
        }
    }
}

/// A path.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Path {
    pub steps: Vec<Step>,
}

impl Path {
    /// Reads a path.
    pub(super) fn parse(path: &str) -> Result<Path, Refusal> {
        let odd = || Refusal::new(format!("the JSON path {path}"));
        let mut rest = path.trim().strip_prefix('$').ok_or_else(odd)?;
        let mut steps = Vec::new();
        while !rest.is_empty() {
            if steps.len() > MAX_STEPS {
                return Err(odd());
            }
            let (step, behind) = step(rest).ok_or_else(odd)?;
            steps.push(step);
            rest = behind;
        }
        if steps.last() == Some(&Step::Descend) {
            return Err(odd());
        }
        Ok(Path { steps })
    }

    /// Whether several values may be found.
    pub(super) fn has_wildcard(&self) -> bool {
        self.steps.iter().any(|step| !matches!(step, Step::Member(_) | Step::Element(_)))
    }

    /// Whether the end of an array is counted from.
    pub(super) fn has_last(&self) -> bool {
        let is_last = |place: &Place| matches!(place, Place::FromEnd(_));
        self.steps.iter().any(|step| match step {
            Step::Element(place) => is_last(place),
            Step::Elements(from, to) => is_last(from) || is_last(to),
            _ => false,
        })
    }

    /// Whether the end of what is no array is counted from, where MariaDB finds nothing.
    pub(super) fn has_last_of_scalar(&self, document: &Json) -> bool {
        self.steps.iter().enumerate().any(|(at, step)| {
            let before = || Path { steps: self.steps[..at].to_vec() };
            matches!(step, Step::Element(Place::FromEnd(_)))
                && before().find(document).iter().any(|found| !matches!(found, Json::Array(_)))
        })
    }

    /// Whether an element is taken of what is no array.
    pub(super) fn takes_element_of_scalar(&self, document: &Json) -> bool {
        self.steps.iter().enumerate().any(|(at, step)| {
            let before = || Path { steps: self.steps[..at].to_vec() };
            matches!(step, Step::Element(_))
                && before().find(document).iter().any(|found| !matches!(found, Json::Array(_)))
        })
    }

    /// The values that are found; a value that is no array is its own first element.
    pub(super) fn find<'a>(&self, document: &'a Json) -> Vec<&'a Json> {
        let mut found = vec![document];
        for step in &self.steps {
            let mut next = Vec::new();
            for value in found {
                follow(step, value, &mut next);
            }
            found = next;
        }
        found
    }
}

fn follow<'a>(step: &Step, value: &'a Json, out: &mut Vec<&'a Json>) {
    match (step, value) {
        (Step::Member(name), Json::Object(members)) => {
            out.extend(members.iter().find(|(key, _)| key.text == *name).map(|(_, value)| value));
        }
        (Step::AnyMember, Json::Object(members)) => out.extend(members.iter().map(|(_, value)| value)),
        (Step::AnyElement, Json::Array(elements)) => out.extend(elements),
        (Step::Element(place), Json::Array(elements)) => {
            out.extend(place.of(elements.len()).and_then(|at| elements.get(at)));
        }
        (Step::Elements(from, to), Json::Array(elements)) => {
            let (from, to) = (from.of(elements.len()).unwrap_or(0), to.of(elements.len()));
            if let Some(to) = to.map(|to| to.min(elements.len().saturating_sub(1))) {
                out.extend(elements.iter().take(to + 1).skip(from));
            }
        }
        (Step::Element(Place::FromStart(0) | Place::FromEnd(0)), other) => out.push(other),
        (Step::Elements(from, to), other) if from.of(1).unwrap_or(0) == 0 && to.of(1).is_some() => {
            out.push(other);
        }
        (Step::Descend, value) => {
            out.push(value);
            match value {
                Json::Array(elements) => elements.iter().for_each(|inner| follow(step, inner, out)),
                Json::Object(members) => members.iter().for_each(|(_, inner)| follow(step, inner, out)),
                _ => {}
            }
        }
        _ => {}
    }
}

/// The first step of a path, and what is behind it.
fn step(rest: &str) -> Option<(Step, &str)> {
    if let Some(rest) = rest.strip_prefix("**") {
        return Some((Step::Descend, rest));
    }
    if let Some(inner) = rest.strip_prefix('[') {
        let (inner, behind) = inner.split_once(']')?;
        let inner = inner.trim();
        if inner == "*" {
            return Some((Step::AnyElement, behind));
        }
        return Some(match inner.split_once(" to ") {
            Some((from, to)) => (Step::Elements(place(from)?, place(to)?), behind),
            None => (Step::Element(place(inner)?), behind),
        });
    }
    let inner = rest.strip_prefix('.')?.trim_start();
    if let Some(behind) = inner.strip_prefix('*') {
        return Some((Step::AnyMember, behind));
    }
    if let Some(quoted) = inner.strip_prefix('"') {
        let (name, behind) = quoted.split_once('"')?;
        return (!name.contains('\\')).then(|| (Step::Member(name.to_string()), behind));
    }
    let is_name = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '$');
    let end = inner.find(|letter| !is_name(letter)).unwrap_or(inner.len());
    let starts_well = !inner.starts_with(|digit: char| digit.is_ascii_digit());
    (end > 0 && starts_well).then(|| (Step::Member(inner[..end].to_string()), &inner[end..]))
}

fn place(text: &str) -> Option<Place> {
    let text = text.trim();
    if text == "last" {
        return Some(Place::FromEnd(0));
    }
    if let Some(back) = text.strip_prefix("last") {
        let back = back.trim_start().strip_prefix('-')?;
        return back.trim().parse().ok().map(Place::FromEnd);
    }
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok().map(Place::FromStart)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_to_values() {
        let document = Json::printed(r#"{"a": [1, {"b c": 2.50}, 3], "d": {"e": null}}"#).unwrap();
        let found = |path: &str| {
            let path = Path::parse(path).unwrap();
            path.find(&document).iter().map(|value| value.spelled()).collect::<Vec<_>>()
        };
        assert_eq!(found("$.a[1].\"b c\""), ["2.50"]);
        assert_eq!(found("$.a[last]"), ["3"]);
        assert_eq!(found("$.a[0 to 1]"), ["1", "{\"b c\": 2.50}"]);
        assert_eq!(found("$.d[0].e"), ["null"]);
        assert_eq!(found("$.*").len(), 2);
        assert_eq!(found("$**.e"), ["null"]);
        assert!(found("$.x").is_empty());
        assert!(Path::parse("a").is_err());
        assert!(Path::parse("$.1").is_err());
        assert!(Path::parse("$**").is_err());
    }
}
