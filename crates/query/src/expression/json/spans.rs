//! Where the values of a document lie in its text.

use std::ops::Range;

/// The places of all values, each before those in it; the text has to be a document.
pub(super) fn spans(text: &str) -> Vec<Range<usize>> {
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
