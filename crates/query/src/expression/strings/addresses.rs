//! Internet addresses and UUIDs.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::super::conversions::bytes_of;
use super::super::datum::Datum;
use super::super::node::Typed;
use super::super::{Kind, Refusal};
use super::encode::{ascii, bytes_to, spelled};

const SIGNED: Kind = Kind::Int { unsigned: false };

pub(super) fn function(name: &str, operands: &[Typed], mysql: bool) -> Result<Option<Typed>, Refusal> {
    let operands = operands.to_vec();
    let text_is = |operands: Vec<Typed>, is: fn(&str) -> bool| {
        truth_of(operands, mysql, move |bytes| std::str::from_utf8(bytes).is_ok_and(is))
    };
    Ok(Some(match (name, operands.len()) {
        ("inet_aton", 1) => bytes_to(operands, mysql, Kind::Int { unsigned: true }, move |bytes| {
            if bytes.iter().filter(|byte| **byte == b'.').count() > 3 && !mysql {
                return Err(Refusal::new("an address of five numbers"));
            }
            Ok(aton(bytes).map_or(Datum::Null, Datum::UInt))
        })?,
        ("inet_ntoa", 1) => {
            let kind = operands[0].kind.clone();
            Typed::call(ascii(), operands, move |values| {
                let number = values[0].whole(&kind)?.and_then(|number| u32::try_from(number).ok());
                Ok(number.map_or(Datum::Null, |number| Datum::Text(Ipv4Addr::from(number).to_string())))
            })
        }
        ("inet6_aton", 1) => bytes_to(operands, mysql, Kind::Bytes, |bytes| {
            let text = std::str::from_utf8(bytes).unwrap_or_default();
            let address = match (plain_ipv4(text), text.parse::<Ipv6Addr>()) {
                (Some(address), _) => address.octets().to_vec(),
                (_, Ok(address)) => address.octets().to_vec(),
                _ => return Ok(Datum::Null),
            };
            Ok(Datum::Bytes(address))
        })?,
        ("inet6_ntoa", 1) if operands[0].kind == Kind::Bytes => {
            bytes_to(operands, mysql, ascii(), |bytes| {
                Ok(match (<[u8; 4]>::try_from(bytes), <[u8; 16]>::try_from(bytes)) {
                    (Ok(address), _) => Datum::Text(Ipv4Addr::from(address).to_string()),
                    (_, Ok(address)) => Datum::Text(ntoa(Ipv6Addr::from(address))),
                    _ => Datum::Null,
                })
            })?
        }
        // A text is no address of bytes.
        ("inet6_ntoa", 1) => bytes_to(operands, mysql, ascii(), |_| Ok(Datum::Null))?,
        ("is_ipv4", 1) => text_is(operands, |text| plain_ipv4(text).is_some())?,
        ("is_ipv6", 1) => text_is(operands, |text| text.parse::<Ipv6Addr>().is_ok())?,
        ("is_ipv4_compat", 1) => truth_of(
            operands,
            mysql,
            |bytes| matches!(v6(bytes), Some([0, 0, 0, 0, 0, 0, a, b]) if a != 0 || b > 1),
        )?,
        ("is_ipv4_mapped", 1) => {
            truth_of(operands, mysql, |bytes| matches!(v6(bytes), Some([0, 0, 0, 0, 0, 0xffff, ..])))?
        }
        ("is_uuid", 1) if mysql => {
            bytes_to(operands, mysql, SIGNED, |bytes| Ok(Datum::truth(uuid(bytes).is_some())))?
        }
        ("uuid_to_bin" | "bin_to_uuid", 1 | 2) if mysql => uuids(name == "uuid_to_bin", operands),
        _ => return Ok(None),
    }))
}

/// Whether bytes are something; MariaDB says no of NULL, MySQL NULL.
fn truth_of(
    operands: Vec<Typed>,
    mysql: bool,
    is: impl Fn(&[u8]) -> bool + Send + Sync + 'static,
) -> Result<Typed, Refusal> {
    let kind = operands[0].kind.clone();
    Ok(Typed::truth(Typed::call(SIGNED, operands, move |values| {
        Ok(match bytes_of(&values[0], &kind)? {
            None if mysql => Datum::Null,
            None => Datum::truth(false),
            Some(bytes) => Datum::truth(is(&bytes)),
        })
    })))
}

fn v6(bytes: &[u8]) -> Option<[u16; 8]> {
    <[u8; 16]>::try_from(bytes).ok().map(|bytes| Ipv6Addr::from(bytes).segments())
}

/// Four numbers of one to three digits.
fn plain_ipv4(text: &str) -> Option<Ipv4Addr> {
    let mut octets = [0; 4];
    let mut parts = text.split('.');
    for octet in &mut octets {
        let part = parts.next().filter(|part| (1..=3).contains(&part.len()))?;
        *octet = part.bytes().all(|byte| byte.is_ascii_digit()).then(|| part.parse().ok()).flatten()?;
    }
    parts.next().is_none().then(|| Ipv4Addr::from(octets))
}

/// One to four numbers; what is left out is before the last.
fn aton(bytes: &[u8]) -> Option<u64> {
    let (mut result, mut part, mut dots) = (0u64, 0u64, 0);
    let mut last = b'.';
    for byte in bytes {
        match byte {
            b'0'..=b'9' => {
                part = part * 10 + u64::from(byte - b'0');
                if part > 255 {
                    return None;
                }
            }
            b'.' => {
                dots += 1;
                result = (result << 8) + part;
                part = 0;
            }
            _ => return None,
        }
        last = *byte;
    }
    if last == b'.' || dots > 3 {
        return None;
    }
    let skipped = match dots {
        1 => 16,
        2 => 8,
        _ => 0,
    };
    Some((result << (8 + skipped)) + part)
}

/// The spelling of an address: the longest row of zeros is left out, the first of several.
fn ntoa(address: Ipv6Addr) -> String {
    let segments = address.segments();
    let compatible = segments[..6] == [0; 6] && (segments[6] != 0 || segments[7] > 1);
    match compatible && (segments[6] != 0 || segments[7] > 0xff) {
        true => {
            let [.., a, b, c, d] = address.octets();
            format!("::{}", Ipv4Addr::new(a, b, c, d))
        }
        false => address.to_string(),
    }
}

/// The bytes of a UUID in one of the spellings that MySQL takes.
fn uuid(text: &[u8]) -> Option<[u8; 16]> {
    let text = std::str::from_utf8(text).ok()?;
    let digits: String = match text.len() {
        32 => text.to_string(),
        36 | 38 => {
            let inner = match text.len() {
                38 => text.strip_prefix('{')?.strip_suffix('}')?,
                _ => text,
            };
            let dashes: Vec<usize> = inner.match_indices('-').map(|(at, _)| at).collect();
            if dashes != [8, 13, 18, 23] {
                return None;
            }
            inner.replace('-', "")
        }
        _ => return None,
    };
    let number =
        digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u128::from_str_radix(&digits, 16));
    number?.ok().map(u128::to_be_bytes)
}

/// The time parts of a UUID in the order that sorts.
fn swapped(bytes: [u8; 16]) -> [u8; 16] {
    let mut swapped = bytes;
    swapped[..2].copy_from_slice(&bytes[6..8]);
    swapped[2..4].copy_from_slice(&bytes[4..6]);
    swapped[4..8].copy_from_slice(&bytes[..4]);
    swapped
}

fn unswapped(bytes: [u8; 16]) -> [u8; 16] {
    let mut plain = bytes;
    plain[6..8].copy_from_slice(&bytes[..2]);
    plain[4..6].copy_from_slice(&bytes[2..4]);
    plain[..4].copy_from_slice(&bytes[4..8]);
    plain
}

fn uuids(to_bytes: bool, operands: Vec<Typed>) -> Typed {
    let kinds: Vec<Kind> = operands.iter().map(|operand| operand.kind.clone()).collect();
    let result = if to_bytes { Kind::Bytes } else { ascii() };
    Typed::call(result, operands, move |values| {
        let Some(bytes) = bytes_of(&values[0], &kinds[0])? else { return Ok(Datum::Null) };
        let swaps = match values.get(1) {
            None => false,
            Some(flag) => flag.condition(&kinds[1])?.unwrap_or(false),
        };
        let odd = || Refusal::new("a value that is no UUID, which is an error of the server");
        if to_bytes {
            let bytes = uuid(&bytes).ok_or_else(odd)?;
            return Ok(Datum::Bytes(if swaps { swapped(bytes) } else { bytes }.to_vec()));
        }
        let bytes = <[u8; 16]>::try_from(bytes.as_slice()).map_err(|_| odd())?;
        let text = spelled(&if swaps { unswapped(bytes) } else { bytes }, false);
        let parts = [&text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..]];
        Ok(Datum::Text(parts.join("-")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_may_leave_numbers_out() {
        assert_eq!(aton(b"1.2.3.4"), Some(16_909_060));
        assert_eq!(aton(b"1.2"), Some(16_777_218));
        assert_eq!(aton(b"1.2.3"), Some(16_908_291));
        assert_eq!(aton(b"256.1.1.1"), None);
        assert_eq!(aton(b"1.2.3."), None);
        assert_eq!(ntoa("::1:2".parse().unwrap()), "::0.1.0.2");
        assert_eq!(ntoa("2001:db8:0:0:1:0:0:1".parse().unwrap()), "2001:db8::1:0:0:1");
    }
}
