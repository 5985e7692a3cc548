//! UUID, INET6 and INET4 of MariaDB.
//!
//! A UUID of version 1 to 5 is stored with its groups in reverse order, so that the node comes first and the time last
//! (`sql_type_uuid.h`); others are stored as they are spelled.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::ColumnType;

/// Offsets and lengths of the stored groups in spelling order.
const GROUPS: [(usize, usize); 5] = [(12, 4), (10, 2), (8, 2), (6, 2), (0, 6)];

/// The text of a stored UUID.
pub(crate) fn uuid_text(stored: &[u8; 16]) -> String {
    let swapped = stored[6] & 0x80 != 0 && (1..0x60).contains(&stored[8]);
    let mut bytes = *stored;
    if swapped {
        let mut at = 0;
        for (from, length) in GROUPS {
            bytes[at..at + length].copy_from_slice(&stored[from..from + length]);
            at += length;
        }
    }
    let mut text = String::with_capacity(36);
    for (at, byte) in bytes.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

/// The stored form of a UUID's text; `None` if it is none.
pub(crate) fn uuid_bytes(text: &str) -> Option<[u8; 16]> {
    let digits: Vec<u8> = text.bytes().filter(|byte| *byte != b'-').collect();
    if digits.len() != 32 {
        return None;
    }
    let mut bytes = [0; 16];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        let digit = |at: usize| char::from(pair[at]).to_digit(16);
        *byte = (digit(0)? << 4 | digit(1)?) as u8;
    }
    let swapped = bytes[8] & 0x80 != 0 && (1..0x60).contains(&bytes[6]);
    if !swapped {
        return Some(bytes);
    }
    let (mut stored, mut at) = ([0; 16], 0);
    for (to, length) in GROUPS {
        stored[to..to + length].copy_from_slice(&bytes[at..at + length]);
        at += length;
    }
    Some(stored)
}

/// The text of an INET6 as MariaDB prints it: as usual, and with the last four bytes as IPv4 if all before them are
/// zero and the next two are not.
pub(crate) fn inet6_text(stored: [u8; 16]) -> String {
    let [head @ .., a, b, c, d] = stored;
    if head == [0; 12] && [a, b] != [0; 2] {
        return format!("::{}", Ipv4Addr::new(a, b, c, d));
    }
    Ipv6Addr::from(stored).to_string()
}

/// The stored form of an INET6's text (an IPv4 address is mapped).
pub(crate) fn inet6_bytes(text: &str) -> Option<[u8; 16]> {
    let mapped = || text.parse::<Ipv4Addr>().ok().map(|address| address.to_ipv6_mapped());
    text.parse::<Ipv6Addr>().ok().or_else(mapped).map(|address| address.octets())
}

/// The text of an INET4.
pub(crate) fn inet4_text(stored: [u8; 4]) -> String {
    Ipv4Addr::from(stored).to_string()
}

/// The stored form of an INET4's text.
pub(crate) fn inet4_bytes(text: &str) -> Option<[u8; 4]> {
    text.parse::<Ipv4Addr>().ok().map(|address| address.octets())
}

/// The stored form of a UUID, INET6 or INET4 that `text` spells, in any spelling that the server takes and that is
/// known here; such columns compare by it. `None` of other types, and of a text that is none.
pub fn address_key(column_type: &ColumnType, text: &str) -> Option<Vec<u8>> {
    match column_type {
        ColumnType::Uuid => uuid_bytes(text).map(Vec::from),
        // An IPv4 address alone is no INET6 to the server.
        ColumnType::Inet6 => text.parse::<Ipv6Addr>().ok().map(|address| address.octets().to_vec()),
        ColumnType::Inet4 => inet4_bytes(text).map(Vec::from),
        _ => None,
    }
}

/// The one spelling in which such a value is shown; `None` as of [`address_key`].
pub fn address_text(column_type: &ColumnType, text: &str) -> Option<String> {
    let stored = address_key(column_type, text)?;
    Some(match column_type {
        ColumnType::Uuid => uuid_text(stored.as_slice().try_into().ok()?),
        ColumnType::Inet6 => inet6_text(stored.as_slice().try_into().ok()?),
        _ => inet4_text(stored.as_slice().try_into().ok()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuids_are_stored_with_the_node_first() {
        let text = "123e4567-e89b-12d3-a456-426655440000";
        let stored = uuid_bytes(text).unwrap();
        assert_eq!(stored[..6], [0x42, 0x66, 0x55, 0x44, 0, 0]);
        assert_eq!(uuid_text(&stored), text);
    }

    #[test]
    fn other_versions_are_stored_as_they_are_spelled() {
        for text in [
            "00000000-0000-0000-0000-000000000000",
            "ffffffff-ffff-ffff-ffff-ffffffffffff",
            "018f2f6e-7b7a-7c31-8c5d-1b2c3d4e5f60",
        ] {
            let stored = uuid_bytes(text).unwrap();
            assert_eq!(format!("{:02x}", stored[0]), text[..2]);
            assert_eq!(uuid_text(&stored), text);
        }
        assert_eq!(uuid_bytes("123"), None);
        assert_eq!(uuid_bytes("x23e4567-e89b-12d3-a456-426655440000"), None);
    }

    #[test]
    fn addresses_are_spelled_as_usual() {
        assert_eq!(inet6_text(inet6_bytes("2001:db8::ff00:42:8329").unwrap()), "2001:db8::ff00:42:8329");
        assert_eq!(inet6_text(inet6_bytes("192.0.2.1").unwrap()), "::ffff:192.0.2.1");
        assert_eq!(inet6_text(inet6_bytes("::2:3").unwrap()), "::0.2.0.3");
        assert_eq!(inet6_text(inet6_bytes("::3").unwrap()), "::3");
        assert_eq!(inet4_text(inet4_bytes("192.0.2.1").unwrap()), "192.0.2.1");
    }

    #[test]
    fn literals_are_read_in_the_spellings_of_the_server() {
        let text = |column_type, text: &str| address_text(&column_type, text);
        let uuid = Some("123e4567-e89b-12d3-a456-426655440000".to_string());
        assert_eq!(text(ColumnType::Uuid, "123E4567E89B12D3A456426655440000"), uuid);
        assert_eq!(text(ColumnType::Uuid, "123E-4567E89B12D3-A456426655440000"), uuid);
        assert_eq!(text(ColumnType::Uuid, "{123e4567-e89b-12d3-a456-426655440000}"), None);
        assert_eq!(text(ColumnType::Inet6, "0:0:0:0:0:0:0:1").as_deref(), Some("::1"));
        assert_eq!(text(ColumnType::Inet6, "2001:0DB8::0001").as_deref(), Some("2001:db8::1"));
        assert_eq!(text(ColumnType::Inet6, "1.2.3.4"), None);
        assert_eq!(text(ColumnType::Inet4, "1.2.3.4").as_deref(), Some("1.2.3.4"));
        let key = |text| address_key(&ColumnType::Uuid, text).unwrap();
        let by_node = key("223e4567-e89b-42d3-a456-026655440000");
        assert!(by_node < key("123e4567-e89b-12d3-a456-426655440000"));
    }
}
