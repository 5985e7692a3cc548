//! Bytes spelled: `HEX`, `UNHEX`, `TO_BASE64`, `FROM_BASE64`, `QUOTE`, `CHAR`, `ORD`, `CRC32`.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};

use super::super::arithmetic::{bits_of, check_range};
use super::super::collating::Collating;
use super::super::conversions::{bytes_of, textual};
use super::super::datum::Datum;
use super::super::node::Typed;
use super::super::{Kind, Refusal};

const BASE64: GeneralPurpose =
    GeneralPurpose::new(&STANDARD, GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true));
/// Letters of a line of TO_BASE64.
const BASE64_LINE_LENGTH: usize = 76;

pub(super) fn function(name: &str, operands: &[Typed], mysql: bool) -> Result<Option<Typed>, Refusal> {
    let operands = operands.to_vec();
    Ok(Some(match (name, operands.len()) {
        ("hex", 1) => hex(operands, mysql)?,
        ("unhex", 1) => {
            bytes_to(
                operands,
                mysql,
                Kind::Bytes,
                |bytes| Ok(unhex(bytes).map_or(Datum::Null, Datum::Bytes)),
            )?
        }
        ("crc32", 1) => bytes_to(operands, mysql, Kind::Int { unsigned: true }, |bytes| {
            Ok(Datum::UInt(crc32fast::hash(bytes).into()))
        })?,
        ("to_base64", 1) => bytes_to(operands, mysql, ascii(), |bytes| {
            let text = BASE64.encode(bytes);
            let lines: Vec<&str> = text
                .as_bytes()
                .chunks(BASE64_LINE_LENGTH)
                .map(|line| std::str::from_utf8(line).unwrap_or_default())
                .collect();
            Ok(Datum::Text(lines.join("\n")))
        })?,
        ("from_base64", 1) => bytes_to(operands, mysql, Kind::Bytes, |bytes| {
            let letters: Vec<u8> = bytes.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
            Ok(BASE64.decode(letters).map_or(Datum::Null, Datum::Bytes))
        })?,
        ("quote", 1) => quote(operands, mysql)?,
        ("char", 1..) => char_of(operands),
        ("ord", 1) => ord(operands, mysql)?,
        _ => return Ok(None),
    }))
}

/// The type of a text of ASCII letters.
pub(in super::super) fn ascii() -> Kind {
    Kind::Text(Collating::literal(Some("utf8mb4".to_string())))
}

/// A function of the bytes of a text; NULL of NULL.
pub(super) fn bytes_to(
    operands: Vec<Typed>,
    mysql: bool,
    result: Kind,
    compute: impl Fn(&[u8]) -> Result<Datum, Refusal> + Send + Sync + 'static,
) -> Result<Typed, Refusal> {
    textual(&operands[0], mysql)?;
    let kind = operands[0].kind.clone();
    Ok(Typed::call(result, operands, move |values| match bytes_of(&values[0], &kind)? {
        None => Ok(Datum::Null),
        Some(bytes) => compute(&bytes),
    }))
}

/// Bytes in hexadecimal digits.
pub(super) fn spelled(bytes: &[u8], upper: bool) -> String {
    let digits: &[u8; 16] = if upper { b"0123456789ABCDEF" } else { b"0123456789abcdef" };
    let pairs =
        bytes.iter().flat_map(|byte| [digits[usize::from(byte >> 4)], digits[usize::from(byte & 15)]]);
    pairs.map(char::from).collect()
}

fn hex(operands: Vec<Typed>, mysql: bool) -> Result<Typed, Refusal> {
    let kind = operands[0].kind.clone();
    if kind.is_number() {
        let is_computed = mysql && !operands[0].is_constant();
        return Ok(Typed::call(ascii(), operands, move |values| {
            check_range(&values[0], is_computed)?;
            Ok(bits_of(&values[0], &kind, mysql)?
                .map_or(Datum::Null, |number| Datum::Text(format!("{number:X}"))))
        }));
    }
    bytes_to(operands, mysql, ascii(), |bytes| Ok(Datum::Text(spelled(bytes, true))))
}

/// The bytes that hexadecimal digits spell; of an odd number of digits the first is a byte of its own.
fn unhex(digits: &[u8]) -> Option<Vec<u8>> {
    let value = |digit: &u8| char::from(*digit).to_digit(16).map(|digit| digit as u8);
    let (first, rest) = digits.split_at(digits.len() % 2);
    let mut bytes = Vec::with_capacity(digits.len() / 2 + 1);
    for digit in first {
        bytes.push(value(digit)?);
    }
    for pair in rest.chunks_exact(2) {
        bytes.push(value(&pair[0])? << 4 | value(&pair[1])?);
    }
    Some(bytes)
}

fn quote(operands: Vec<Typed>, mysql: bool) -> Result<Typed, Refusal> {
    let common = super::Texts::of(&operands, &[0], mysql)?;
    let (result, binary) = (common.kind(), common.binary);
    let kind = operands[0].kind.clone();
    Ok(Typed::call(result, operands, move |values| {
        let Some(text) = super::letters_of(&values[0], &kind, binary)? else {
            return Ok(super::of_letters("NULL".to_string(), binary));
        };
        let mut quoted = String::with_capacity(text.len() + 2);
        quoted.push('\'');
        for letter in text.chars() {
            match letter {
                '\\' | '\'' => quoted.extend(['\\', letter]),
                '\0' => quoted.push_str("\\0"),
                '\u{1a}' => quoted.push_str("\\Z"),
                letter => quoted.push(letter),
            }
        }
        quoted.push('\'');
        Ok(super::of_letters(quoted, binary))
    }))
}

/// `CHAR`: the bytes of numbers, each as few as it takes; NULLs are left out.
fn char_of(operands: Vec<Typed>) -> Typed {
    let kinds: Vec<Kind> = operands.iter().map(|operand| operand.kind.clone()).collect();
    Typed::call(Kind::Bytes, operands, move |values| {
        let mut bytes = Vec::new();
        for (value, kind) in values.iter().zip(&kinds) {
            let Some(number) = value.whole(kind)? else { continue };
            let number = (number as u32).to_be_bytes();
            let from = number.iter().position(|byte| *byte != 0).unwrap_or(3);
            bytes.extend_from_slice(&number[from..]);
        }
        Ok(Datum::Bytes(bytes))
    })
}

/// `ORD`: the bytes of the first letter as a number.
fn ord(operands: Vec<Typed>, mysql: bool) -> Result<Typed, Refusal> {
    textual(&operands[0], mysql)?;
    let kind = operands[0].kind.clone();
    Ok(Typed::call(Kind::Int { unsigned: false }, operands, move |values| {
        let bytes = match (&values[0], kind.is_binary()) {
            (Datum::Null, _) => return Ok(Datum::Null),
            (value, true) => bytes_of(value, &kind)?.unwrap_or_default().into_iter().take(1).collect(),
            (value, false) => {
                let text = value.text(&kind)?.unwrap_or_default();
                let first: String = text.chars().take(1).collect();
                kind.collating().bytes(&first)?
            }
        };
        Ok(Datum::Int(bytes.iter().fold(0, |number, byte| number << 8 | i64::from(*byte))))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_bytes() {
        assert_eq!(unhex(b"123"), Some(vec![1, 0x23]));
        assert_eq!(unhex(b"zz"), None);
        assert_eq!(spelled(&[0, 0xab], true), "00AB");
    }
}
