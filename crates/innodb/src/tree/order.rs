//! How key parts compare.
//!
//! Numbers and times are stored so that they compare as bytes. Strings compare by their collation, which goes by server
//! and name. In a collation that pads, the shorter string counts as if spaces followed.
//!
//! CHAR columns in collations that do not pad: MySQL leaves their trailing spaces out, MariaDB fills them up to the
//! length of the column.

use std::cmp::Ordering;

use tanada_collation::Collation as Weights;

use crate::{Collation, ColumnType, Server};

/// The order of one key part (before DESC turns it).
#[derive(Debug, Clone, Copy)]
pub(crate) enum Order {
    /// Byte by byte.
    Bytes,
    /// Byte by byte, padded with spaces, as this collation does.
    Padded(&'static Weights),
    /// Byte by byte, spaces at the end left out (CHAR in a collation that does not pad).
    Trimmed,
    /// By a collation.
    Collated(&'static Weights),
    /// By a collation, spaces at the end left out.
    CollatedTrimmed(&'static Weights),
    /// FLOAT, little-endian.
    Float,
    /// DOUBLE, little-endian.
    Double,
    /// Not known here.
    Unknown,
}

impl Order {
    /// The order of a column of a table of `server`.
    pub(crate) fn new(server: Server, column_type: &ColumnType) -> Order {
        match column_type {
            ColumnType::Float => Order::Float,
            ColumnType::Double => Order::Double,
            ColumnType::Char { collation, .. } => of_collation(server, collation, true),
            ColumnType::VarChar { collation, .. } | ColumnType::Text { collation, .. } => {
                of_collation(server, collation, false)
            }
            ColumnType::Json | ColumnType::Geometry | ColumnType::Vector { .. } => Order::Unknown,
            _ => Order::Bytes,
        }
    }

    /// Whether the order is not known here.
    pub(crate) fn is_unknown(self) -> bool {
        matches!(self, Order::Unknown)
    }

    /// Compares the stored forms `a` and `b`; unknown orders call everything equal.
    #[inline]
    pub(crate) fn compare(self, a: &[u8], b: &[u8]) -> Ordering {
        match self {
            Order::Bytes => a.cmp(b),
            Order::Padded(_) => padded(a, b),
            Order::Trimmed => trim(a).cmp(trim(b)),
            Order::Collated(weights) => weights.compare_stored(a, b),
            Order::CollatedTrimmed(weights) => weights.compare_stored(trim(a), trim(b)),
            Order::Float => number(a, f32::from_le_bytes).total_cmp(&number(b, f32::from_le_bytes)),
            Order::Double => number(a, f64::from_le_bytes).total_cmp(&number(b, f64::from_le_bytes)),
            Order::Unknown => Ordering::Equal,
        }
    }
}

impl Order {
    /// Whether texts are ordered as their sort keys are.
    pub(crate) fn has_sort_keys(self) -> bool {
        matches!(self, Order::Padded(_) | Order::Collated(_) | Order::CollatedTrimmed(_))
    }

    /// Compares the stored form `a` with the sort key of a text; orders without such keys call everything equal.
    pub(crate) fn compare_to_sort_key(self, a: &[u8], key: &[u8]) -> Ordering {
        let (weights, a) = match self {
            Order::Padded(weights) | Order::Collated(weights) => (weights, a),
            Order::CollatedTrimmed(weights) => (weights, trim(a)),
            _ => return Ordering::Equal,
        };
        let mut own = Vec::with_capacity(2 * a.len() + 3);
        weights.sort_key_of_stored(a, &mut own);
        own.as_slice().cmp(key)
    }
}

fn of_collation(server: Server, collation: &Collation, is_char: bool) -> Order {
    if collation.charset == "binary" || collation.name == "binary" {
        return Order::Bytes;
    }
    let Some(weights) = Weights::lookup(server, &collation.name) else { return Order::Unknown };
    let by_bytes = weights.is_binary() && collation.min_bytes == 1;
    match (by_bytes, weights.pads(), is_char, server) {
        (true, false, false, _) => Order::Bytes,
        (true, false, true, Server::MySql) => Order::Trimmed,
        (true, ..) => Order::Padded(weights),
        (false, _, true, _) if collation.min_bytes > 1 => Order::Unknown,
        (false, false, true, Server::MySql) => Order::CollatedTrimmed(weights),
        (false, false, true, Server::MariaDb) => Order::Unknown,
        (false, ..) => Order::Collated(weights),
    }
}

fn trim(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1);
    &bytes[..end]
}

#[inline]
fn padded(a: &[u8], b: &[u8]) -> Ordering {
    let common = a.len().min(b.len());
    let rest = |bytes: &[u8]| bytes[common..].iter().map(|byte| byte.cmp(&b' ')).find(|order| order.is_ne());
    a[..common]
        .cmp(&b[..common])
        .then_with(|| rest(a).or_else(|| rest(b).map(Ordering::reverse)).unwrap_or(Ordering::Equal))
}

/// The number whose bytes these are; 0 for a damaged width, which decoding reports. Both zeros are one.
fn number<const N: usize, T: Default + PartialEq>(bytes: &[u8], from: fn([u8; N]) -> T) -> T {
    let number = bytes.try_into().map(from).unwrap_or_default();
    if number == T::default() { T::default() } else { number }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collation(name: &str) -> Collation {
        let charset = name.split('_').next().unwrap_or_default().into();
        Collation { id: 0, name: name.into(), charset, max_bytes: 4, min_bytes: 1 }
    }

    fn varchar(server: Server, name: &str) -> Order {
        Order::new(server, &ColumnType::VarChar { length: 10, collation: collation(name) })
    }

    #[test]
    fn padding_counts_as_spaces() {
        let order = varchar(Server::MySql, "utf8mb4_bin");
        assert_eq!(order.compare(b"a", b"a  "), Ordering::Equal);
        assert_eq!(order.compare(b"a\t", b"a"), Ordering::Less);
        assert_eq!(order.compare(b"a", b"a!"), Ordering::Less);
        assert_eq!(order.compare(b"b", b"a!"), Ordering::Greater);
        assert_eq!(Order::Bytes.compare(b"a", b"a "), Ordering::Less);
        assert_eq!(Order::Trimmed.compare(b"a", b"a "), Ordering::Equal);
    }

    #[test]
    fn stored_strings_compare_by_server_and_collation() {
        let order = varchar(Server::MySql, "latin1_swedish_ci");
        assert_eq!(order.compare(b"\xe9t\xc9", b"ETe"), Ordering::Equal);
        assert_eq!(order.compare(b"z", b"\xe5"), Ordering::Less);
        let (hangul, han) = ("\u{ac00}".as_bytes(), "\u{4e00}".as_bytes());
        for (server, expected) in [(Server::MySql, Ordering::Less), (Server::MariaDb, Ordering::Greater)] {
            assert_eq!(varchar(server, "utf8mb4_0900_ai_ci").compare(hangul, han), expected);
        }
    }

    #[test]
    fn stored_strings_compare_with_sort_keys_as_with_texts() {
        for name in ["utf8mb4_general_ci", "utf8mb4_bin", "latin1_swedish_ci", "utf8mb4_unicode_ci"] {
            let order = varchar(Server::MariaDb, name);
            let weights = Weights::lookup(Server::MariaDb, name).unwrap();
            let texts = ["a", "A ", "b", "b  c", "b\t", "", "z"];
            for (own, other) in texts.iter().flat_map(|own| texts.map(|other| (own, other))) {
                let mut key = Vec::new();
                weights.sort_key(other, &mut key);
                let expected = order.compare(own.as_bytes(), other.as_bytes());
                assert_eq!(order.compare_to_sort_key(own.as_bytes(), &key), expected, "{name} {own} {other}");
            }
        }
    }

    #[test]
    fn floats_compare_as_numbers() {
        let stored = |number: f64| number.to_le_bytes();
        assert_eq!(Order::Double.compare(&stored(-2.0), &stored(1.0)), Ordering::Less);
        assert_eq!(Order::Double.compare(&stored(-0.0), &stored(0.0)), Ordering::Equal);
    }

    #[test]
    fn char_compares_with_or_without_its_padding() {
        let order =
            |server, name| Order::new(server, &ColumnType::Char { length: 10, collation: collation(name) });
        for (server, name, expected) in [
            (Server::MySql, "utf8mb4_0900_bin", Ordering::Less),
            (Server::MySql, "utf8mb4_0900_ai_ci", Ordering::Less),
            (Server::MariaDb, "utf8mb4_nopad_bin", Ordering::Greater),
        ] {
            assert_eq!(order(server, name).compare(b"a  ", b"a\t"), expected, "{name}");
        }
    }

    #[test]
    fn other_collations_are_unknown() {
        assert!(varchar(Server::MySql, "utf8mb4_swedish_ci").is_unknown());
        let nopad = collation("utf8mb4_uca1400_nopad_ai_ci");
        assert!(Order::new(Server::MariaDb, &ColumnType::Char { length: 10, collation: nopad }).is_unknown());
        assert!(matches!(varchar(Server::MySql, "utf8mb4_0900_bin"), Order::Bytes));
    }
}
