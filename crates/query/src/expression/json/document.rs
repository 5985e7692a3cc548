//! JSON documents: read from text, written as each server spells them.
//!
//! MariaDB keeps the spelling of numbers, strings and names, and every member of an object, in their order. MySQL
//! decodes strings, keeps the last of members of one name, and orders them by length and bytes.

use super::super::Refusal;
use super::super::datum::Decimal;
use crate::text::double_text;

/// Deepest nesting of a document of MySQL.
const MAX_DEPTH_MYSQL: usize = 100;
/// Deepest nesting of a document of MariaDB.
const MAX_DEPTH_MARIADB: usize = 32;

/// A value of a document.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Json {
    Null,
    Truth(bool),
    /// As it is spelled.
    Number(String),
    Text(JsonText),
    Array(Vec<Json>),
    Object(Vec<(JsonText, Json)>),
}

/// A string or a member's name.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct JsonText {
    /// What it says.
    pub text: String,
    /// What is between its quotes.
    pub spelling: String,
}

impl JsonText {
    /// A text as the servers spell it.
    pub(super) fn new(text: &str) -> JsonText {
        let mut spelling = String::with_capacity(text.len());
        for letter in text.chars() {
            match letter {
                '"' | '\\' => spelling.extend(['\\', letter]),
                '\n' => spelling.push_str("\\n"),
                '\t' => spelling.push_str("\\t"),
                '\r' => spelling.push_str("\\r"),
                '\u{8}' => spelling.push_str("\\b"),
                '\u{c}' => spelling.push_str("\\f"),
                '\0'..='\u{1f}' => spelling.push_str(&format!("\\u{:04x}", u32::from(letter))),
                letter => spelling.push(letter),
            }
        }
        JsonText { text: text.to_string(), spelling }
    }
}

/// What a text is as a document.
pub(super) enum Parsed {
    Document(Json),
    /// It is none.
    Invalid,
}

/// Reads a document.
///
/// # Errors
/// If the servers may read it in another way.
pub(super) fn parse(text: &str, mysql: bool) -> Result<Parsed, Refusal> {
    let mut reader = Reader { text, at: 0, mysql, depth: 0 };
    let document = match reader.value()? {
        Some(document) => document,
        None => return Ok(Parsed::Invalid),
    };
    reader.spaces();
    Ok(if reader.at == text.len() { Parsed::Document(document) } else { Parsed::Invalid })
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    mysql: bool,
    depth: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn spaces(&mut self) {
        self.at = self.text.len() - self.rest().trim_start_matches([' ', '\t', '\n', '\r']).len();
    }

    fn eat(&mut self, sign: char) -> bool {
        let found = self.rest().starts_with(sign);
        self.at += usize::from(found);
        found
    }

    /// A value; `None` if there is none.
    fn value(&mut self) -> Result<Option<Json>, Refusal> {
        self.spaces();
        for (word, value) in
            [("null", Json::Null), ("true", Json::Truth(true)), ("false", Json::Truth(false))]
        {
            if self.rest().starts_with(word) {
                self.at += word.len();
                return Ok(Some(value));
            }
        }
        match self.rest().as_bytes().first() {
            Some(b'"') => Ok(self.string()?.map(Json::Text)),
            Some(b'[' | b'{') => {
                self.depth += 1;
                let most = if self.mysql { MAX_DEPTH_MYSQL } else { MAX_DEPTH_MARIADB };
                if self.depth >= most {
                    return Err(Refusal::new("a document that is nested too deeply"));
                }
                let value = if self.eat('[') { self.array()? } else { self.object()? };
                self.depth -= 1;
                Ok(value)
            }
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => Ok(None),
        }
    }

    fn array(&mut self) -> Result<Option<Json>, Refusal> {
        let mut elements = Vec::new();
        self.spaces();
        if self.eat(']') {
            return Ok(Some(Json::Array(elements)));
        }
        loop {
            let Some(element) = self.value()? else { return Ok(None) };
            elements.push(element);
            self.spaces();
            if self.eat(']') {
                return Ok(Some(Json::Array(elements)));
            }
            if !self.eat(',') {
                return Ok(None);
            }
        }
    }

    fn object(&mut self) -> Result<Option<Json>, Refusal> {
        self.eat('{');
        let mut members: Vec<(JsonText, Json)> = Vec::new();
        self.spaces();
        if self.eat('}') {
            return Ok(Some(Json::Object(members)));
        }
        loop {
            self.spaces();
            if !self.rest().starts_with('"') {
                return Ok(None);
            }
            let Some(name) = self.string()? else { return Ok(None) };
            self.spaces();
            if !self.eat(':') {
                return Ok(None);
            }
            let Some(value) = self.value()? else { return Ok(None) };
            members.push((name, value));
            self.spaces();
            if self.eat('}') {
                return Ok(Some(object(members, self.mysql)));
            }
            if !self.eat(',') {
                return Ok(None);
            }
        }
    }

    fn string(&mut self) -> Result<Option<JsonText>, Refusal> {
        let start = self.at;
        let mut end = start + 1;
        let bytes = self.text.as_bytes();
        loop {
            match bytes.get(end) {
                None | Some(0..=0x1f) => return Ok(None),
                Some(b'"') => break,
                Some(b'\\') => end += 2,
                Some(_) => end += 1,
            }
        }
        let Some(quoted) = self.text.get(start..=end) else { return Ok(None) };
        self.at = end + 1;
        let spelling = &quoted[1..quoted.len() - 1];
        if !spelling.contains('\\') {
            return Ok(Some(JsonText { text: spelling.to_string(), spelling: spelling.to_string() }));
        }
        match serde_json::from_str::<String>(quoted) {
            Ok(text) if self.mysql => Ok(Some(JsonText::new(&text))),
            Ok(text) => Ok(Some(JsonText { text, spelling: spelling.to_string() })),
            // MariaDB takes other escapes.
            Err(_) if self.mysql => Ok(None),
            Err(_) => Err(Refusal::new("a JSON string with odd escapes")),
        }
    }

    fn number(&mut self) -> Result<Option<Json>, Refusal> {
        let bytes = self.rest().as_bytes();
        let digits = |from: usize| {
            from + bytes[from.min(bytes.len())..].iter().take_while(|byte| byte.is_ascii_digit()).count()
        };
        let start = usize::from(bytes[0] == b'-');
        let mut end = digits(start);
        if end == start || (bytes[start] == b'0' && end > start + 1) {
            return Ok(None);
        }
        if bytes.get(end) == Some(&b'.') {
            let fraction = digits(end + 1);
            if fraction == end + 1 {
                return if self.mysql { Ok(None) } else { Err(Refusal::new("a number without digits")) };
            }
            end = fraction;
        }
        if matches!(bytes.get(end), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(bytes.get(end + 1), Some(b'-' | b'+')));
            let exponent = digits(end + 1 + sign);
            if exponent == end + 1 + sign {
                return Ok(None);
            }
            end = exponent;
        }
        let spelling = &self.rest()[..end];
        self.at += end;
        Ok(Some(Json::Number(if self.mysql { number_spelling(spelling)? } else { spelling.to_string() })))
    }
}

/// A number as MySQL spells it: an integer of 64 bits, or a double.
fn number_spelling(spelling: &str) -> Result<String, Refusal> {
    if !spelling.contains(['.', 'e', 'E'])
        && let Ok(number) = spelling.parse::<i128>()
        && (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(&number)
    {
        return Ok(number.to_string());
    }
    let number: f64 = spelling.parse().map_err(|_| Refusal::digits())?;
    if !number.is_finite() {
        return Err(Refusal::new("a number out of range"));
    }
    Ok(double_spelling(number))
}

/// A double in a document of MySQL: with a point or an exponent.
pub(super) fn double_spelling(number: f64) -> String {
    let text = double_text(number);
    if text.contains(['.', 'e']) { text } else { format!("{text}.0") }
}

/// An object of members.
pub(super) fn object(members: Vec<(JsonText, Json)>, mysql: bool) -> Json {
    if !mysql {
        return Json::Object(members);
    }
    let mut kept: Vec<(JsonText, Json)> = Vec::new();
    for (name, value) in members {
        match kept.iter_mut().find(|(other, _)| other.text == name.text) {
            Some(found) => found.1 = value,
            None => kept.push((name, value)),
        }
    }
    kept.sort_by(|(left, _), (right, _)| {
        left.text.len().cmp(&right.text.len()).then_with(|| left.text.cmp(&right.text))
    });
    Json::Object(kept)
}

impl Json {
    /// A document that MySQL has printed keeps its numbers.
    pub(super) fn printed(text: &str) -> Result<Json, Refusal> {
        match parse(text, false)? {
            Parsed::Document(document) => Ok(document),
            Parsed::Invalid => Err(Refusal::new("a damaged document")),
        }
    }

    /// Its text, with a space behind each comma and colon.
    pub(super) fn spelled(&self) -> String {
        let mut out = String::new();
        self.write(&mut out, ", ", ": ");
        out
    }

    /// Its text between these signs.
    pub(super) fn write(&self, out: &mut String, comma: &str, colon: &str) {
        match self {
            Json::Null => out.push_str("null"),
            Json::Truth(true) => out.push_str("true"),
            Json::Truth(false) => out.push_str("false"),
            Json::Number(number) => out.push_str(number),
            Json::Text(text) => quoted(out, text),
            Json::Array(elements) => {
                out.push('[');
                for (at, element) in elements.iter().enumerate() {
                    out.push_str(if at > 0 { comma } else { "" });
                    element.write(out, comma, colon);
                }
                out.push(']');
            }
            Json::Object(members) => {
                out.push('{');
                for (at, (name, value)) in members.iter().enumerate() {
                    out.push_str(if at > 0 { comma } else { "" });
                    quoted(out, name);
                    out.push_str(colon);
                    value.write(out, comma, colon);
                }
                out.push('}');
            }
        }
    }

    /// Its text over several lines, as MySQL writes it.
    pub(super) fn pretty(&self, out: &mut String, depth: usize) {
        let indent = |out: &mut String, depth: usize| {
            out.push('\n');
            out.push_str(&"  ".repeat(depth));
        };
        match self {
            Json::Array(elements) if !elements.is_empty() => {
                out.push('[');
                for (at, element) in elements.iter().enumerate() {
                    out.push_str(if at > 0 { "," } else { "" });
                    indent(out, depth + 1);
                    element.pretty(out, depth + 1);
                }
                indent(out, depth);
                out.push(']');
            }
            Json::Object(members) if !members.is_empty() => {
                out.push('{');
                for (at, (name, value)) in members.iter().enumerate() {
                    out.push_str(if at > 0 { "," } else { "" });
                    indent(out, depth + 1);
                    quoted(out, name);
                    out.push_str(": ");
                    value.pretty(out, depth + 1);
                }
                indent(out, depth);
                out.push('}');
            }
            other => other.write(out, ", ", ": "),
        }
    }

    /// Whether both say the same; numbers by their value.
    pub(super) fn equals(&self, other: &Json) -> bool {
        match (self, other) {
            (Json::Number(left), Json::Number(right)) => same_number(left, right),
            (Json::Text(left), Json::Text(right)) => left.text == right.text,
            (Json::Array(left), Json::Array(right)) => {
                left.len() == right.len() && left.iter().zip(right).all(|(left, right)| left.equals(right))
            }
            (Json::Object(left), Json::Object(right)) => {
                left.len() == right.len()
                    && left.iter().all(|(name, value)| {
                        right.iter().any(|(other, found)| other.text == name.text && value.equals(found))
                    })
            }
            (left, right) => left == right,
        }
    }

    /// Whether an object in it has two members of one name, as MariaDB keeps them.
    pub(super) fn has_doubled_names(&self) -> bool {
        match self {
            Json::Array(elements) => elements.iter().any(Json::has_doubled_names),
            Json::Object(members) => members.iter().enumerate().any(|(at, (name, value))| {
                value.has_doubled_names() || members[..at].iter().any(|(other, _)| other.text == name.text)
            }),
            _ => false,
        }
    }

    /// How deep it is nested.
    pub(super) fn depth(&self) -> usize {
        match self {
            Json::Array(elements) => 1 + elements.iter().map(Json::depth).max().unwrap_or(0),
            Json::Object(members) => 1 + members.iter().map(|(_, value)| value.depth()).max().unwrap_or(0),
            _ => 1,
        }
    }
}

/// Whether two numbers are one.
fn same_number(left: &str, right: &str) -> bool {
    match (Decimal::prefix(left), Decimal::prefix(right)) {
        (Some(left), Some(right)) => left.compare(right).is_ok_and(std::cmp::Ordering::is_eq),
        _ => left.parse::<f64>().ok() == right.parse::<f64>().ok(),
    }
}

fn quoted(out: &mut String, text: &JsonText) {
    out.push('"');
    out.push_str(&text.spelling);
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spelled(text: &str, mysql: bool) -> Option<String> {
        match parse(text, mysql).unwrap() {
            Parsed::Document(document) => Some(document.spelled()),
            Parsed::Invalid => None,
        }
    }

    #[test]
    fn documents_are_spelled_as_the_server_spells_them() {
        let text = r#" {"b":1, "a":2.50, "ab":[1E5, "\u0041\/"], "a":4} "#;
        assert_eq!(spelled(text, true).unwrap(), r#"{"a": 4, "b": 1, "ab": [100000.0, "A/"]}"#);
        let kept = r#"{"b": 1, "a": 2.50, "ab": [1E5, "\u0041\/"], "a": 4}"#;
        assert_eq!(spelled(text, false).unwrap(), kept);
        assert_eq!(
            spelled("[100000000000000000000, 0.000001, -0, -0.0, 1.0]", true).unwrap(),
            "[1e20, 0.000001, 0, -0.0, 1.0]"
        );
    }

    #[test]
    fn texts_that_are_no_documents_are_told() {
        for text in
            ["", "x", "{\"a\":}", "[1,]", "01", "nan", "TRUE", "'a'", ".5", "\"\t\"", "[1 2]", "-", "{} x"]
        {
            assert_eq!(spelled(text, true), None, "{text}");
            assert_eq!(spelled(text, false), None, "{text}");
        }
    }
}
