//! `AES_ENCRYPT`, `AES_DECRYPT`, `UNCOMPRESS`, `UNCOMPRESSED_LENGTH`, and of MariaDB `CRC32C`, `CHR`, `PASSWORD` and
//! `OLD_PASSWORD`.

use std::io::Read;

use aes::cipher::{Array, BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};
use aes::{Aes128, Block};
use flate2::read::ZlibDecoder;
use sha1::{Digest, Sha1};

use super::super::conversions::{bytes_of, textual};
use super::super::datum::Datum;
use super::super::node::Typed;
use super::super::{Kind, Refusal};
use super::MAX_LENGTH;
use super::encode::{ascii, bytes_to, spelled};

/// Bytes of a block and of a key: both servers' `block_encryption_mode` is aes-128-ecb.
const BLOCK_BYTES: usize = 16;
/// Before compressed bytes stands how many they are without compression, in so many bytes.
const LENGTH_BYTES: usize = 4;
/// Bits of that length.
const LENGTH_MASK: u32 = 0x3fff_ffff;

pub(super) fn function(name: &str, operands: &[Typed], mysql: bool) -> Result<Option<Typed>, Refusal> {
    let operands = operands.to_vec();
    let unsigned = Kind::Int { unsigned: true };
    Ok(Some(match (name, operands.len()) {
        ("aes_encrypt", 2) => of_both(operands, mysql, |text, key| Some(encrypted(text, key)))?,
        ("aes_decrypt", 2) => of_both(operands, mysql, decrypted)?,
        ("uncompress", 1) => bytes_to(operands, mysql, Kind::Bytes, uncompressed)?,
        ("uncompressed_length", 1) => {
            bytes_to(operands, mysql, Kind::Int { unsigned: false }, move |bytes| {
                Ok(match bytes {
                    [] => Datum::Int(0),
                    bytes if bytes.len() <= LENGTH_BYTES => {
                        if mysql {
                            Datum::Int(0)
                        } else {
                            Datum::Null
                        }
                    }
                    bytes => Datum::Int(length_of(bytes).into()),
                })
            })?
        }
        ("crc32c", 1) if !mysql => {
            bytes_to(operands, mysql, unsigned, |bytes| Ok(Datum::UInt(crc32c(0, bytes).into())))?
        }
        ("crc32c", 2) if !mysql => {
            textual(&operands[1], mysql)?;
            let kinds = [operands[0].kind.clone(), operands[1].kind.clone()];
            Typed::call(unsigned, operands, move |values| {
                let begun = values[0].whole(&kinds[0])?;
                let (Some(begun), Some(bytes)) = (begun, bytes_of(&values[1], &kinds[1])?) else {
                    return Ok(Datum::Null);
                };
                let begun = u32::try_from(begun).map_err(|_| Refusal::new("the begin of a CRC32C"))?;
                Ok(Datum::UInt(crc32c(begun, &bytes).into()))
            })
        }
        ("chr", 1) if !mysql => {
            let from = operands[0].kind.clone();
            Typed::call(ascii(), operands, move |values| match values[0].whole(&from)? {
                None => Ok(Datum::Null),
                // Others are letters of the default database's character set.
                Some(code) => match u8::try_from(code) {
                    Ok(code) if code.is_ascii() => Ok(Datum::Text(char::from(code).to_string())),
                    _ => Err(Refusal::new("a CHR outside of ASCII")),
                },
            })
        }
        ("password", 1) if !mysql => of_password(operands, mysql, |bytes| {
            let twice = Sha1::digest(Sha1::digest(bytes));
            format!("*{}", spelled(twice.as_slice(), true))
        })?,
        ("old_password", 1) if !mysql => of_password(operands, mysql, old_password)?,
        _ => return Ok(None),
    }))
}

/// Bytes that are computed of two texts; NULL if one is.
pub(super) fn of_both(
    operands: Vec<Typed>,
    mysql: bool,
    compute: impl Fn(&[u8], &[u8]) -> Option<Vec<u8>> + Send + Sync + 'static,
) -> Result<Typed, Refusal> {
    operands.iter().try_for_each(|of| textual(of, mysql).map(|_| ()))?;
    let kinds = [operands[0].kind.clone(), operands[1].kind.clone()];
    Ok(Typed::call(Kind::Bytes, operands, move |values| {
        let (text, key) = (bytes_of(&values[0], &kinds[0])?, bytes_of(&values[1], &kinds[1])?);
        let (Some(text), Some(key)) = (text, key) else { return Ok(Datum::Null) };
        Ok(compute(&text, &key).map_or(Datum::Null, Datum::Bytes))
    }))
}

/// A key of any length, put over itself.
fn cipher(key: &[u8]) -> Aes128 {
    let mut folded = [0_u8; BLOCK_BYTES];
    key.iter().zip((0..BLOCK_BYTES).cycle()).for_each(|(byte, at)| folded[at] ^= byte);
    Aes128::new(&Array::from(folded))
}

fn encrypted(text: &[u8], key: &[u8]) -> Vec<u8> {
    let cipher = cipher(key);
    let padding = BLOCK_BYTES - text.len() % BLOCK_BYTES;
    let mut bytes = text.to_vec();
    bytes.resize(text.len() + padding, padding as u8);
    for chunk in bytes.chunks_exact_mut(BLOCK_BYTES) {
        let mut block = Block::default();
        block.copy_from_slice(chunk);
        cipher.encrypt_block(&mut block);
        chunk.copy_from_slice(&block);
    }
    bytes
}

fn decrypted(bytes: &[u8], key: &[u8]) -> Option<Vec<u8>> {
    if bytes.is_empty() || !bytes.len().is_multiple_of(BLOCK_BYTES) {
        return None;
    }
    let cipher = cipher(key);
    let mut text = bytes.to_vec();
    for chunk in text.chunks_exact_mut(BLOCK_BYTES) {
        let mut block = Block::default();
        block.copy_from_slice(chunk);
        cipher.decrypt_block(&mut block);
        chunk.copy_from_slice(&block);
    }
    let padding = usize::from(*text.last()?);
    let is_padded = (1..=BLOCK_BYTES).contains(&padding)
        && text.iter().rev().take(padding).all(|byte| usize::from(*byte) == padding);
    is_padded.then(|| text[..text.len() - padding].to_vec())
}

fn length_of(bytes: &[u8]) -> u32 {
    let mut length = [0; LENGTH_BYTES];
    length.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    u32::from_le_bytes(length) & LENGTH_MASK
}

/// What COMPRESS was given; NULL of what it did not give.
fn uncompressed(bytes: &[u8]) -> Result<Datum, Refusal> {
    if bytes.len() <= LENGTH_BYTES {
        return Ok(if bytes.is_empty() { Datum::Bytes(Vec::new()) } else { Datum::Null });
    }
    let length = length_of(bytes) as usize;
    if length > MAX_LENGTH {
        return Err(Refusal::new("a value that is too long"));
    }
    let mut text = Vec::new();
    let read = ZlibDecoder::new(&bytes[LENGTH_BYTES..]).take(length as u64 + 1).read_to_end(&mut text);
    Ok(match read {
        Ok(read) if read <= length => Datum::Bytes(text),
        _ => Datum::Null,
    })
}

/// The CRC of Castagnoli's polynomial, reflected.
fn crc32c(begun: u32, bytes: &[u8]) -> u32 {
    const POLYNOMIAL: u32 = 0x82f6_3b78;
    let step = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ POLYNOMIAL } else { crc >> 1 };
    !bytes.iter().fold(!begun, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), step))
}

/// A password as MariaDB stores it; an empty text of an empty one and of NULL.
fn of_password(
    operands: Vec<Typed>,
    mysql: bool,
    compute: impl Fn(&[u8]) -> String + Send + Sync + 'static,
) -> Result<Typed, Refusal> {
    textual(&operands[0], mysql)?;
    let from = operands[0].kind.clone();
    Ok(Typed::call(ascii(), operands, move |values| {
        let bytes = bytes_of(&values[0], &from)?.unwrap_or_default();
        Ok(Datum::Text(if bytes.is_empty() { String::new() } else { compute(&bytes) }))
    }))
}

/// The hash of passwords before MySQL 4.1: two numbers of 31 bits.
fn old_password(bytes: &[u8]) -> String {
    let [one, two] = password_numbers(bytes);
    format!("{one:08x}{two:08x}")
}

/// Two numbers of 31 bits of a password, in which blanks do not count.
pub(super) fn password_numbers(bytes: &[u8]) -> [u64; 2] {
    let (mut one, mut two, mut sum) = (1_345_345_333_u64, 0x1234_5671_u64, 7_u64);
    for byte in bytes.iter().filter(|byte| !matches!(byte, b' ' | b'\t')) {
        let byte = u64::from(*byte);
        one ^= (one & 63).wrapping_add(sum).wrapping_mul(byte).wrapping_add(one << 8);
        two = two.wrapping_add((two << 8) ^ one);
        sum = sum.wrapping_add(byte);
    }
    const BITS: u64 = (1 << 31) - 1;
    [one & BITS, two & BITS]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_and_checksums_are_the_servers() {
        assert_eq!(old_password(b"abc"), "7cd2b5942be28759");
        assert_eq!(old_password(b"a b"), "077ba8cb491e16c5");
        assert_eq!(crc32c(0, b"MariaDB"), 809_606_978);
        assert_eq!(crc32c(1, b"a"), 867_942_451);
        assert_eq!(spelled(&encrypted(b"abc", b"k"), true), "AA215862CFA049B2886E7E0A97EC8AD3");
        assert_eq!(
            decrypted(&encrypted(b"0123456789abcdef", b"0123456789abcdefXYZ"), b"0123456789abcdefXYZ")
                .unwrap(),
            b"0123456789abcdef"
        );
        assert_eq!(decrypted(b"0123456789abcdef", b"k"), None);
    }
}
