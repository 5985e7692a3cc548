//! Names and literals inside definitions: character sets, base64.

use std::borrow::Cow;

use tanada_collation::Charset;

/// Text of a definition in `charset` as UTF-8; what is not UTF-8 where it has to be has U+FFFD, bytes without a
/// character are `?`.
pub(super) fn decode(charset: &str, bytes: &[u8]) -> String {
    let plain = bytes.is_ascii() && has_ascii(charset);
    let decoded = Charset::lookup(charset).filter(|_| !plain).and_then(|charset| charset.decode(bytes));
    decoded.map_or_else(|| String::from_utf8_lossy(bytes).into_owned(), Cow::into_owned)
}

/// Whether bytes of ASCII are its letters in a character set. The Swedish `swe7` has other letters in their place.
pub(super) fn has_ascii(charset: &str) -> bool {
    !matches!(charset, "ucs2" | "utf16" | "utf16le" | "utf32" | "swe7")
}

/// Base64 with padding, in lines of any length; `None` if it is not.
pub(super) fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let is_digit = |byte: &u8| !matches!(byte, b'\n' | b'\r');
    let digits: Vec<u8> = text.trim_end_matches('=').bytes().filter(is_digit).collect();
    let mut bytes = Vec::with_capacity(digits.len() * 3 / 4);
    for group in digits.chunks(4) {
        let mut bits = 0u32;
        for digit in group {
            let value = match digit {
                b'A'..=b'Z' => digit - b'A',
                b'a'..=b'z' => digit - b'a' + 26,
                b'0'..=b'9' => digit - b'0' + 52,
                b'+' => 62,
                b'/' => 63,
                _ => return None,
            };
            bits = bits << 6 | u32::from(value);
        }
        match group.len() {
            4 => bytes.extend_from_slice(&bits.to_be_bytes()[1..]),
            3 => bytes.extend_from_slice(&((bits >> 2) as u16).to_be_bytes()),
            2 => bytes.push((bits >> 4) as u8),
            _ => return None,
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_of_every_length() {
        for (text, bytes) in
            [("", &b""[..]), ("YQ==", b"a"), ("YWI=", b"ab"), ("YWJj", b"abc"), ("YWJjZA==", b"abcd")]
        {
            assert_eq!(decode_base64(text).as_deref(), Some(bytes), "{text}");
        }
        let lines = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2\nNw==";
        let element = "0123456789012345678901234567890123456789012345678901234567";
        assert_eq!(decode_base64(lines).as_deref(), Some(element.as_bytes()));
        assert_eq!(decode_base64("A"), None);
        assert_eq!(decode_base64("a b="), None);
    }

    #[test]
    fn text_in_its_character_set() {
        assert_eq!(decode("latin1", b"\xe9\x80"), "é€");
        assert_eq!(decode("utf8mb4", "日本".as_bytes()), "日本");
        assert_eq!(decode("ucs2", &[0, 0x41, 0x65, 0xe5]), "A日");
        assert_eq!(decode("utf32", &[0, 1, 0xf6, 0]), "\u{1f600}");
        assert_eq!(decode("swe7", b"a`[{"), "aéÄä");
    }
}
