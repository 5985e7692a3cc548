//! Where the values of a document lie in its text, and in which order.

use std::ops::Range;

use super::super::Refusal;
use super::document::Json;

/// The places of all values, each before those in it; the text has to be a document.
fn spans(text: &str) -> Vec<Range<usize>> {
    let mut scanner = Scanner { bytes: text.as_bytes(), at: 0, spans: Vec::new() };
    scanner.value();
    scanner.spans
}

struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    spans: Vec<Range<usize>>,
}

impl Scanner<'_> {
    fn next(&mut self) -> Option<u8> {
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        self.bytes.get(self.at).copied()
    }

    fn value(&mut self) {
        let Some(first) = self.next() else { return };
        let (start, no) = (self.at, self.spans.len());
        self.spans.push(start..start);
        match first {
            b'{' | b'[' => {
                self.at += 1;
                self.inside(first == b'{');
            }
            b'"' => self.string(),
            _ => {
                let is_end = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b',' | b']' | b'}');
                let rest = &self.bytes[self.at..];
                self.at += rest.iter().position(is_end).unwrap_or(rest.len());
            }
        }
        self.spans[no] = start..self.at;
    }

    /// Members or elements up to the closing bracket.
    fn inside(&mut self, has_names: bool) {
        while let Some(byte) = self.next() {
            match byte {
                b']' | b'}' => {
                    self.at += 1;
                    return;
                }
                b',' => self.at += 1,
                _ => {
                    if has_names {
                        self.string();
                        // The colon.
                        self.next();
                        self.at += 1;
                    }
                    let before = self.at;
                    self.value();
                    if self.at == before {
                        return;
                    }
                }
            }
        }
    }

    fn string(&mut self) {
        self.at += 1;
        while let Some(byte) = self.bytes.get(self.at) {
            self.at += if *byte == b'\\' { 2 } else { 1 };
            if *byte == b'"' {
                break;
            }
        }
        self.at = self.at.min(self.bytes.len());
    }
}

/// A document and its text.
pub(super) struct Whole<'a> {
    pub text: &'a str,
    pub document: &'a Json,
}

impl<'a> Whole<'a> {
    /// A value of the document as it is spelled there.
    pub(super) fn spelling(&self, value: &Json) -> Result<&'a str, Refusal> {
        let odd = || Refusal::new("a document that is spelled oddly");
        let at = place(self.document, value).ok_or_else(odd)?;
        spans(self.text).get(at).and_then(|span| self.text.get(span.clone())).ok_or_else(odd)
    }
}

/// Values of a document in the order in which they stand there, as MariaDB finds those of several paths.
pub(super) fn in_order<'a>(document: &Json, mut found: Vec<&'a Json>) -> Result<Vec<&'a Json>, Refusal> {
    found.sort_by_key(|value| place(document, value));
    match found.windows(2).any(|pair| std::ptr::eq(pair[0], pair[1])) {
        true => Err(Refusal::new("several paths to one value")),
        false => Ok(found),
    }
}

/// How many values of a document are before one of them; `None` if it is not there.
fn place(document: &Json, wanted: &Json) -> Option<usize> {
    let mut at = 0;
    count_before(document, wanted, &mut at).then_some(at)
}

/// Counts the values before `wanted` into `at`; tells whether it is there.
fn count_before(value: &Json, wanted: &Json, at: &mut usize) -> bool {
    if std::ptr::eq(value, wanted) {
        return true;
    }
    *at += 1;
    match value {
        Json::Array(elements) => elements.iter().any(|inner| count_before(inner, wanted, at)),
        Json::Object(members) => members.iter().any(|(_, inner)| count_before(inner, wanted, at)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_lie_where_they_are_written() {
        let text = r#" {"a" : [1 ,"x,]\""], "b":{} , "c" :-1.5e3 }"#;
        let found: Vec<&str> = spans(text).into_iter().map(|span| &text[span]).collect();
        assert_eq!(found, [text.trim(), r#"[1 ,"x,]\""]"#, "1", r#""x,]\"""#, "{}", "-1.5e3"]);
        assert!(spans("").is_empty());
    }
}
