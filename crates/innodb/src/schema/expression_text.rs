//! The expression of a generated column in MySQL's dictionary information -> UTF-8.
//!
//! It is there twice, and neither form is plain text:
//!
//! - `generation_expression`: identifiers are UTF-8, but each literal (`_latin1'...'`) is in the character set of its
//!   introducer. The JSON around it need not be UTF-8 then; what is not has been replaced by U+FFFD before it comes
//!   here.
//! - `generation_expression_utf8`: the same bytes taken for ISO 8859-1 and encoded as UTF-8, with a backslash before
//!   each quote and backslash. So identifiers beyond ASCII are encoded twice, but no byte is lost.
//!
//! 1. The bytes are taken from the first form, or if it lost some, from the second one, which has to agree with what is
//!    left of the first.
//! 2. Literals are decoded by their character sets. One of bytes becomes a hexadecimal literal.

use tanada_collation::Charset;

use super::text::{decode, has_ascii};

const BINARY: &str = "binary";

/// The expression as text.
pub(super) fn expression_text(expression: &str, encoded_twice: &str) -> String {
    let is_whole = !expression.contains(char::REPLACEMENT_CHARACTER);
    let restored = || {
        let bytes = unescaped_bytes(encoded_twice)?;
        (expression.is_empty() || String::from_utf8_lossy(&bytes) == expression).then_some(bytes)
    };
    match restored() {
        Some(bytes) if !is_whole || expression.is_empty() => with_decoded_literals(&bytes),
        // Of a version that writes the second form otherwise.
        None if expression.is_empty() => encoded_twice.to_owned(),
        // Some of its bytes are lost. Whoever wants to compute the column has to see that it is no expression.
        None if !is_whole => format!("(in an unknown character set) {expression}"),
        _ => with_decoded_literals(expression.as_bytes()),
    }
}

/// The bytes behind the second form; `None` if they are not encoded in that way.
fn unescaped_bytes(encoded_twice: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(encoded_twice.len());
    let mut characters = encoded_twice.chars();
    while let Some(character) = characters.next() {
        let character = match character {
            '\\' => characters.next().filter(|next| matches!(next, '\\' | '\''))?,
            '\'' => return None,
            plain => plain,
        };
        bytes.push(u8::try_from(u32::from(character)).ok()?);
    }
    Some(bytes)
}

/// Decodes the literals in `expression`, and all between them as UTF-8.
fn with_decoded_literals(expression: &[u8]) -> String {
    let mut text = String::with_capacity(expression.len());
    let mut rest = expression;
    while let Some(quote_at) = rest.iter().position(|byte| matches!(byte, b'\'' | b'`')) {
        let (before, quoted) = rest.split_at(quote_at);
        text.push_str(&String::from_utf8_lossy(before));
        let quote = quoted[0];
        let inner = &quoted[1..];
        let len = quoted_len(inner, quote);
        match quote {
            b'\'' => push_literal(&mut text, &inner[..len]),
            _ => text.push_str(&format!("`{}`", String::from_utf8_lossy(&inner[..len]))),
        }
        rest = inner.get(len + 1..).unwrap_or_default();
    }
    text.push_str(&String::from_utf8_lossy(rest));
    text
}

/// Length of what a quote opens, up to the quote that closes it.
fn quoted_len(inner: &[u8], quote: u8) -> usize {
    let mut at = 0;
    while let Some(byte) = inner.get(at) {
        at += match byte {
            b'\\' if quote == b'\'' => 2,
            byte if *byte == quote && inner.get(at + 1) == Some(&quote) => 2,
            byte if *byte == quote => return at,
            _ => 1,
        };
    }
    inner.len()
}

/// Appends a literal whose introducer, if it has one, ends `text`.
fn push_literal(text: &mut String, escaped: &[u8]) {
    let introducer_at = text.rfind(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    let introducer_at = introducer_at.map_or(0, |at| at + 1);
    let charset = text[introducer_at..].strip_prefix('_').unwrap_or("utf8mb4").to_owned();
    if escaped.is_ascii() && has_ascii(&charset) {
        text.push_str(&format!("'{}'", String::from_utf8_lossy(escaped)));
        return;
    }
    let bytes = unescaped_literal(escaped);
    let is_text =
        charset != BINARY && Charset::lookup(&charset).is_some_and(|set| set.decode(&bytes).is_some());
    if is_text {
        let literal = decode(&charset, &bytes).replace('\\', "\\\\").replace('\'', "\\'");
        text.push_str(&format!("'{literal}'"));
        return;
    }
    if charset == BINARY {
        text.truncate(introducer_at);
    } else {
        text.push(' ');
    }
    text.push_str("0x");
    bytes.iter().for_each(|byte| text.push_str(&format!("{byte:02X}")));
}

/// The bytes that a literal stands for.
fn unescaped_literal(escaped: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(escaped.len());
    let mut rest = escaped;
    while let Some((first, behind)) = rest.split_first() {
        let (byte, used) = match (first, behind.first()) {
            (b'\\', Some(b'n')) => (b'\n', 1),
            (b'\\', Some(b'r')) => (b'\r', 1),
            (b'\\', Some(b't')) => (b'\t', 1),
            (b'\\', Some(b'0')) => (0, 1),
            (b'\\', Some(b'b')) => (8, 1),
            (b'\\', Some(b'Z')) => (26, 1),
            (b'\\', Some(other)) => (*other, 1),
            (b'\'', Some(b'\'')) => (b'\'', 1),
            (other, _) => (*other, 0),
        };
        bytes.push(byte);
        rest = &behind[used..];
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As MySQL 9.7 writes both forms.
    #[test]
    fn both_forms_of_an_expression_give_the_same_text() {
        let plain = r#"concat(`v`,_utf8mb4'it\'s',_utf8mb4'"q"',_utf8mb4'\\',_utf8mb4'é日本')"#;
        let twice = "concat(`v`,_utf8mb4\\'it\\\\\\'s\\',_utf8mb4\\'\"q\"\\',_utf8mb4\\'\\\\\\\\\\',_utf8mb4\\'\
                     Ã©æ\u{97}¥æ\u{9c}¬\\')";
        assert_eq!(expression_text(plain, twice), plain);
        assert_eq!(expression_text("", twice), plain);
        assert_eq!(expression_text(plain, ""), plain);
        assert_eq!(expression_text("(`sé` + 1)", "(`sÃ©` + 1)"), "(`sé` + 1)");
        assert_eq!(expression_text("", "(`sÃ©` + 1)"), "(`sé` + 1)");
    }

    #[test]
    fn literals_are_decoded_by_their_introducers() {
        let lossy = "concat(`v`,_latin1'\u{fffd}\u{fffd}')";
        assert_eq!(expression_text(lossy, "concat(`v`,_latin1\\'éè\\')"), "concat(`v`,_latin1'éè')");
        let sjis = "concat(`v`,_sjis'\u{fffd}\\\\\u{fffd}A')";
        assert_eq!(
            expression_text(sjis, "concat(`v`,_sjis\\'\u{95}\\\\\\\\\u{83}A\\')"),
            "concat(`v`,_sjis'表ア')"
        );
        let binary = "concat(`v`,_binary'\u{fffd}\u{fffd}\\0')";
        assert_eq!(expression_text(binary, "concat(`v`,_binary\\'ÿþ\\\\0\\')"), "concat(`v`,0xFFFE00)");
        // Bytes that are UTF-8 by chance are still those of another character set.
        assert_eq!(expression_text("_latin1'é'", "_latin1\\'Ã©\\'"), "_latin1'Ã©'");
    }

    #[test]
    fn forms_that_contradict_each_other_lose_to_the_first() {
        assert_eq!(expression_text("(`a` + 1)", "(`b` + 1)"), "(`a` + 1)");
        assert_eq!(expression_text("", "concat(`a`,'x')"), "concat(`a`,'x')");
        let lost = expression_text("_latin1'\u{fffd}'", "_latin1'é'");
        assert!(lost.starts_with("(in an unknown"), "{lost}");
        for noise in ["'", "\\", "_latin1'", "`", "_x'\u{e9}", "''''", "\\'"] {
            let _ = expression_text(noise, noise);
        }
    }
}
