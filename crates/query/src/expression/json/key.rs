//! Keys of MySQL's documents: byte strings that compare as the documents do.
//!
//! A key begins with the rank of the document's type. What follows is of varying length and ends with a byte below all
//! that could stand there instead, so that keys within arrays and objects compare in turn:
//!
//! - numbers by value: the exponent, then the digits; all bytes are complemented where it is negative;
//! - strings by bytes; arrays element by element;
//! - objects by their number of members, then member by member, as MySQL keeps them, by name and value.

use super::super::Refusal;
use super::document::Json;

/// Of what ORDER BY orders by: arrays and objects by their sizes alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum KeyOf {
    /// The whole value: what =, GROUP BY, DISTINCT, MIN and MAX compare.
    Value,
    /// What ORDER BY compares.
    Order,
    /// What ORDER BY compares where rows that are equal in it are peers, which MySQL tells by the whole value, though
    /// not in its order: refuses arrays and objects.
    Peers,
}

const END: u8 = 0;
const NULL: u8 = 1;
const NEGATIVE: u8 = 2;
const ZERO: u8 = 3;
const POSITIVE: u8 = 4;
const STRING: u8 = 5;
const OBJECT: u8 = 6;
const ARRAY: u8 = 7;
const FALSE: u8 = 8;
const TRUE: u8 = 9;

/// Exponents of numbers are between this and its negative.
const MOST_EXPONENT: i64 = 0x4000;

/// Adds the key of a document to `key`.
///
/// # Errors
/// If the text is no document, or has no key that is known.
pub(crate) fn add_key(text: &str, of: KeyOf, key: &mut Vec<u8>) -> Result<(), Refusal> {
    match Json::printed(text)? {
        Json::Array(elements) if of != KeyOf::Value => add_size(ARRAY, elements.len(), of, key),
        Json::Object(members) if of != KeyOf::Value => add_size(OBJECT, members.len(), of, key),
        document => add_value(&document, key),
    }
}

fn add_size(rank: u8, size: usize, of: KeyOf, key: &mut Vec<u8>) -> Result<(), Refusal> {
    if of == KeyOf::Peers && size > 0 {
        return Err(Refusal::new("a window in the order of JSON arrays or objects"));
    }
    key.push(rank);
    add_count(size, key);
    Ok(())
}

fn add_count(count: usize, key: &mut Vec<u8>) {
    key.extend((count as u64).to_be_bytes());
}

fn add_value(document: &Json, key: &mut Vec<u8>) -> Result<(), Refusal> {
    match document {
        Json::Null => key.push(NULL),
        Json::Truth(is_true) => key.push(if *is_true { TRUE } else { FALSE }),
        Json::Number(text) => add_number(text, key)?,
        Json::Text(text) => {
            key.push(STRING);
            add_string(&text.text, key);
        }
        Json::Array(elements) => {
            key.push(ARRAY);
            elements.iter().try_for_each(|element| add_value(element, key))?;
            key.push(END);
        }
        Json::Object(members) => {
            key.push(OBJECT);
            add_count(members.len(), key);
            for (name, value) in members {
                add_string(&name.text, key);
                add_value(value, key)?;
            }
        }
    }
    Ok(())
}

/// Its bytes; a zero byte is followed by one that is greater than the end.
fn add_string(text: &str, key: &mut Vec<u8>) {
    for byte in text.bytes() {
        key.push(byte);
        if byte == 0 {
            key.push(u8::MAX);
        }
    }
    key.extend([0, END]);
}

/// The key of a number as it is spelled.
pub(super) fn number_key(text: &str) -> Result<Vec<u8>, Refusal> {
    let mut key = Vec::new();
    add_number(text, &mut key).map(|()| key)
}

fn add_number(text: &str, key: &mut Vec<u8>) -> Result<(), Refusal> {
    let (is_negative, magnitude) = match text.strip_prefix('-') {
        Some(magnitude) => (true, magnitude),
        None => (false, text),
    };
    let (mantissa, exponent) = magnitude.split_once(['e', 'E']).unwrap_or((magnitude, "0"));
    let exponent: i64 = exponent.parse().map_err(|_| Refusal::digits())?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
    let leading = digits.iter().take_while(|digit| **digit == b'0').count();
    let trailing = digits.iter().rev().take_while(|digit| **digit == b'0').count();
    if leading == digits.len() {
        key.push(ZERO);
        return Ok(());
    }
    // The value is 0.d1d2... times ten to this.
    let exponent = exponent + whole.len() as i64 - leading as i64;
    let biased = u16::try_from(exponent + MOST_EXPONENT).map_err(|_| Refusal::digits())?;
    key.push(if is_negative { NEGATIVE } else { POSITIVE });
    let start = key.len();
    key.extend(biased.to_be_bytes());
    key.extend(&digits[leading..digits.len() - trailing]);
    key.push(END);
    if is_negative {
        key[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str, of: KeyOf) -> Vec<u8> {
        let mut key = Vec::new();
        add_key(text, of, &mut key).unwrap();
        key
    }

    /// Documents as MySQL 9.7 orders them by `>`; those of one line are equal.
    #[test]
    fn values_compare_as_mysql_compares_them() {
        let ordered = [
            &["null"][..],
            &["-50"],
            &["-5.5"],
            &["-5", "-5.0", "-5e0"],
            &["-0.0", "0", "0.00"],
            &["1e-300"],
            &["0.1", "1e-1", "0.10"],
            &["1", "1.0", "1e0"],
            &["10", "1e1"],
            &["9.007199254740992e15"],
            &["9007199254740993"],
            &["18446744073709551615"],
            &["1.8446744073709552e19"],
            &["1e300"],
            &["\"\""],
            &["\"10\""],
            &["\"9\""],
            &["\"A\""],
            &["\"a\""],
            &["\"a\\u0000\""],
            &["\"é\""],
            &["{}"],
            &["{\"a\": 2}"],
            &["{\"a\": 10}"],
            &["{\"aa\": 1}"],
            &["{\"ab\": 0}"],
            &["{\"b\": 1}", "{\"b\": 1.0}"],
            &["{\"c\": 0}"],
            &["{\"a\": 1, \"b\": 0}"],
            &["[]"],
            &["[1]"],
            &["[1, 2]", "[1, 2.0]"],
            &["[2]"],
            &["[\"x\", \"y\"]"],
            &["[[1]]"],
            &["[[1], 2]"],
            &["false"],
            &["true"],
        ];
        for equal in ordered {
            assert!(
                equal.iter().all(|text| key(text, KeyOf::Value) == key(equal[0], KeyOf::Value)),
                "{equal:?}"
            );
        }
        for pair in ordered.windows(2) {
            assert!(key(pair[0][0], KeyOf::Value) < key(pair[1][0], KeyOf::Value), "{pair:?}");
        }
    }

    #[test]
    fn arrays_and_objects_are_ordered_by_their_sizes() {
        let order = |text: &str| key(text, KeyOf::Order);
        assert_eq!(order("[9]"), order("[\"a\"]"));
        assert!(order("[9]") < order("[1, 2]"));
        assert!(order("{\"a\": 1}") < order("[]"));
        assert!(add_key("[1]", KeyOf::Peers, &mut Vec::new()).is_err());
        assert_eq!(key("[]", KeyOf::Peers), order("[]"));
        assert!(add_key("[1", KeyOf::Value, &mut Vec::new()).is_err());
    }
}
