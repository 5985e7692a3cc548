//! UUID, INET6 and INET4 of MariaDB.
//!
//! A UUID of version 1 to 5 is stored with its groups in reverse order, so that the node comes first and the time last
//! (`sql_type_uuid.h`); others are stored as they are spelled.

use std::net::{Ipv4Addr, Ipv6Addr};

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

/// The text of an INET6 as MariaDB prints it: as usual, and with the last four bytes as IPv4 if all before them are zero and the next two are not.
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
}
