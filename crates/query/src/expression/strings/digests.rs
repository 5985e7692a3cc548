//! `MD5`, `SHA1`, `SHA2`.

use super::super::conversions::{bytes_of, textual};
use super::super::datum::Datum;
use super::super::node::Typed;
use super::super::{Kind, Refusal};
use super::encode::{ascii, bytes_to, spelled};

use md5::{Digest, Md5};
use sha1::Sha1;
use sha2::{Sha224, Sha256, Sha384, Sha512};

pub(super) fn function(name: &str, operands: &[Typed], mysql: bool) -> Result<Option<Typed>, Refusal> {
    let operands = operands.to_vec();
    Ok(Some(match (name, operands.len()) {
        // MySQL 9 has them no more.
        ("md5" | "sha1" | "sha", 1) if mysql => {
            return Err(Refusal::new(format!("{name}, which MySQL 9 does not have")));
        }
        ("md5", 1) => bytes_to(operands, mysql, ascii(), |bytes| {
            Ok(Datum::Text(spelled(Md5::digest(bytes).as_slice(), false)))
        })?,
        ("sha1" | "sha", 1) => bytes_to(operands, mysql, ascii(), |bytes| {
            Ok(Datum::Text(spelled(Sha1::digest(bytes).as_slice(), false)))
        })?,
        ("sha2", 2) => {
            textual(&operands[0], mysql)?;
            let kinds: Vec<Kind> = operands.iter().map(|operand| operand.kind.clone()).collect();
            Typed::call(ascii(), operands, move |values| {
                let Some(bytes) = bytes_of(&values[0], &kinds[0])? else { return Ok(Datum::Null) };
                let bits = match values[1].whole(&kinds[1])? {
                    // MariaDB takes NULL for 0.
                    None if mysql => return Ok(Datum::Null),
                    None => 0,
                    Some(bits) => bits,
                };
                Ok(Datum::Text(match bits {
                    0 | 256 => spelled(Sha256::digest(&bytes).as_slice(), false),
                    224 => spelled(Sha224::digest(&bytes).as_slice(), false),
                    384 => spelled(Sha384::digest(&bytes).as_slice(), false),
                    512 => spelled(Sha512::digest(&bytes).as_slice(), false),
                    _ => return Ok(Datum::Null),
                }))
            })
        }
        _ => return Ok(None),
    }))
}
