//! Keys and values on the command line: text, or hexadecimal digits.

use std::borrow::Cow;
use std::io::{self, Write};

use crate::failure::{Failure, Outcome};

/// The bytes that `text` stands for.
pub(super) fn parsed(text: &str, hex: bool) -> Outcome<Cow<'_, [u8]>> {
    if !hex {
        return Ok(Cow::Borrowed(text.as_bytes()));
    }
    let wrong = || Failure::usage(format!("'{text}' is not hexadecimal digits, two for each byte"));
    let digits = text.strip_prefix("0x").unwrap_or(text);
    if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) || !digits.len().is_multiple_of(2) {
        return Err(wrong());
    }
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).map_err(|_| wrong());
    (0..digits.len()).step_by(2).map(byte).collect::<Outcome<Vec<u8>>>().map(Cow::Owned)
}

/// Writes bytes as they are, or as hexadecimal digits.
pub(super) fn shown(out: &mut impl Write, bytes: &[u8], hex: bool) -> io::Result<()> {
    if !hex {
        return out.write_all(bytes);
    }
    bytes.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_keys_round_trip() {
        assert_eq!(&*parsed("rice", false).unwrap(), b"rice");
        assert_eq!(&*parsed("0x00fF", true).unwrap(), [0, 255]);
        assert_eq!(&*parsed("", true).unwrap(), b"");
        for wrong in ["0x0", "zz", "é1", "+1"] {
            assert!(parsed(wrong, true).is_err(), "{wrong}");
        }
        let mut out = Vec::new();
        shown(&mut out, &[0, 255], true).unwrap();
        assert_eq!(out, b"00ff");
    }
}
