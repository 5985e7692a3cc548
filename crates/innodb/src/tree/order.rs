//! How key parts compare.
//!
//! Numbers and times are stored so that they compare as bytes. Strings compare by their collation, of which the binary ones and, by a table of
//! weights, a few single-byte ones are known. In a collation that pads, the shorter string counts as if spaces followed.

use std::cmp::Ordering;

use crate::{Collation, ColumnType};

/// The order of one key part (before DESC turns it).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// Byte by byte.
    Bytes,
    /// Byte by byte, padded with spaces.
    Padded,
    /// Byte by byte, spaces at the end left out (CHAR in a collation that does not pad).
    Trimmed,
    /// By the weights of a single-byte collation, padded with spaces.
    Weights(&'static [u8; 256]),
    /// FLOAT, little-endian.
    Float,
    /// DOUBLE, little-endian.
    Double,
    /// Not known here.
    Unknown,
}

impl Order {
    /// The order of a column.
    pub(crate) fn new(column_type: &ColumnType) -> Order {
        match column_type {
            ColumnType::Float => Order::Float,
            ColumnType::Double => Order::Double,
            ColumnType::Char { collation, .. } => of_collation(collation, true),
            ColumnType::VarChar { collation, .. } | ColumnType::Text { collation, .. } => {
                of_collation(collation, false)
            }
            ColumnType::Json | ColumnType::Geometry | ColumnType::Vector { .. } => Order::Unknown,
            _ => Order::Bytes,
        }
    }

    /// Compares the stored forms `a` and `b`; unknown orders call everything equal.
    #[inline]
    pub(crate) fn compare(self, a: &[u8], b: &[u8]) -> Ordering {
        match self {
            Order::Bytes => a.cmp(b),
            Order::Padded => padded(a, b, |byte| byte),
            Order::Trimmed => trim(a).cmp(trim(b)),
            Order::Weights(weights) => padded(a, b, |byte| weights[usize::from(byte)]),
            Order::Float => number(a, f32::from_le_bytes).total_cmp(&number(b, f32::from_le_bytes)),
            Order::Double => number(a, f64::from_le_bytes).total_cmp(&number(b, f64::from_le_bytes)),
            Order::Unknown => Ordering::Equal,
        }
    }
}

fn of_collation(collation: &Collation, char_type: bool) -> Order {
    let name = collation.name.as_str();
    if collation.charset == "binary" || name == "binary" {
        return Order::Bytes;
    }
    if name.ends_with("_bin") && collation.min_bytes == 1 {
        // MariaDB's NOPAD collations compare CHAR with its padding, MySQL's without.
        return match name {
            "utf8mb4_0900_bin" if char_type => Order::Trimmed,
            "utf8mb4_0900_bin" => Order::Bytes,
            name if name.ends_with("_nopad_bin") && !char_type => Order::Bytes,
            _ => Order::Padded,
        };
    }
    match name {
        "ascii_general_ci" => Order::Weights(&ASCII_GENERAL_CI),
        "latin1_swedish_ci" => Order::Weights(&LATIN1_SWEDISH_CI),
        _ => Order::Unknown,
    }
}

fn trim(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1);
    &bytes[..end]
}

#[inline]
fn padded(a: &[u8], b: &[u8], weight: impl Fn(u8) -> u8) -> Ordering {
    let common = a.len().min(b.len());
    for (a, b) in a.iter().zip(b) {
        let order = weight(*a).cmp(&weight(*b));
        if order.is_ne() {
            return order;
        }
    }
    let space = weight(b' ');
    let rest = |bytes: &[u8]| {
        bytes[common..].iter().map(|byte| weight(*byte).cmp(&space)).find(|order| order.is_ne())
    };
    match (rest(a), rest(b)) {
        (Some(order), _) => order,
        (None, Some(order)) => order.reverse(),
        (None, None) => Ordering::Equal,
    }
}

/// The number whose bytes these are; 0 for a damaged width, which decoding reports. Both zeros are one.
fn number<const N: usize, T: Default + PartialEq>(bytes: &[u8], from: fn([u8; N]) -> T) -> T {
    let number = bytes.try_into().map(from).unwrap_or_default();
    if number == T::default() { T::default() } else { number }
}

const fn ascii_upper() -> [u8; 256] {
    let mut weights = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        weights[byte] = (byte as u8).to_ascii_uppercase();
        byte += 1;
    }
    weights
}

/// `ascii_general_ci`: ASCII letters without case.
static ASCII_GENERAL_CI: [u8; 256] = ascii_upper();

/// `latin1_swedish_ci`: letters without case and accents, but Å Ä Ö after Z, Æ as Ä, Ü as Y.
static LATIN1_SWEDISH_CI: [u8; 256] = {
    const LETTERS: [u8; 32] = *b"AAAA\\[\\CEEEEIIIIDNOOOO]\xd7\xd8UUUYY\xde\xdf";
    let mut weights = ascii_upper();
    let mut at = 0;
    while at < 32 {
        weights[0xc0 + at] = LETTERS[at];
        weights[0xe0 + at] = LETTERS[at];
        at += 1;
    }
    weights[0xf7] = 0xf7;
    weights[0xff] = 0xff;
    weights
};

#[cfg(test)]
mod tests {
    use super::*;

    fn order(name: &str, charset: &str) -> Order {
        let collation =
            Collation { id: 0, name: name.into(), charset: charset.into(), max_bytes: 4, min_bytes: 1 };
        Order::new(&ColumnType::VarChar { length: 10, collation })
    }

    #[test]
    fn padding_counts_as_spaces() {
        let order = order("utf8mb4_bin", "utf8mb4");
        assert_eq!(order.compare(b"a", b"a  "), Ordering::Equal);
        assert_eq!(order.compare(b"a\t", b"a"), Ordering::Less);
        assert_eq!(order.compare(b"a", b"a!"), Ordering::Less);
        assert_eq!(order.compare(b"b", b"a!"), Ordering::Greater);
        assert_eq!(Order::Bytes.compare(b"a", b"a "), Ordering::Less);
        assert_eq!(Order::Trimmed.compare(b"a", b"a "), Ordering::Equal);
    }

    #[test]
    fn swedish_letters_come_last() {
        let order = order("latin1_swedish_ci", "latin1");
        assert_eq!(order.compare(b"\xe9t\xc9", b"ETe"), Ordering::Equal);
        assert_eq!(order.compare(b"z", b"\xe5"), Ordering::Less);
        assert_eq!(order.compare(b"\xe5", b"\xe4"), Ordering::Less);
        assert_eq!(order.compare(b"\xe4", b"\xf6"), Ordering::Less);
        assert_eq!(order.compare(b"\xfc", b"y"), Ordering::Equal);
    }

    #[test]
    fn floats_compare_as_numbers() {
        let stored = |number: f64| number.to_le_bytes();
        assert_eq!(Order::Double.compare(&stored(-2.0), &stored(1.0)), Ordering::Less);
        assert_eq!(Order::Double.compare(&stored(-0.0), &stored(0.0)), Ordering::Equal);
    }

    #[test]
    fn char_compares_with_or_without_its_padding() {
        let order = |name: &str| {
            let collation =
                Collation { id: 0, name: name.into(), charset: "utf8mb4".into(), max_bytes: 4, min_bytes: 1 };
            Order::new(&ColumnType::Char { length: 10, collation })
        };
        assert_eq!(order("utf8mb4_0900_bin").compare(b"a  ", b"a\t"), Ordering::Less);
        assert_eq!(order("utf8mb4_nopad_bin").compare(b"a  ", b"a\t"), Ordering::Greater);
    }

    #[test]
    fn other_collations_are_unknown() {
        assert_eq!(order("utf8mb4_0900_ai_ci", "utf8mb4"), Order::Unknown);
        assert_eq!(order("utf8mb4_0900_bin", "utf8mb4"), Order::Bytes);
    }
}
