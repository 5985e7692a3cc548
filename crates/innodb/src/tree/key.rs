//! Search keys: stored forms of leading key parts, and ranges of them.

use std::cmp::Ordering;
use std::ops::Bound;

use super::Order;
use crate::record::Span;
use crate::value::Encoder;
use crate::{Result, Value};

const NULL: u16 = u16::MAX;
/// Set in the length of a sort key.
const SORT_KEY: u16 = 1 << 15;
/// Most bytes of a part.
const MAX_LENGTH: u16 = SORT_KEY - 2;

/// Leading key parts of an index in comparable form.
///
/// One allocation: for each part its length (two bytes, big-endian; all ones for NULL) and its stored form, or its sort
/// key with the highest bit of the length set. Keys are ordered by these bytes, which is the order of the index only
/// where all parts have a fixed length and are compared by their bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Box<[u8]>);

impl Key {
    /// The number of its parts.
    pub fn part_count(&self) -> usize {
        self.parts().count()
    }

    /// Its parts.
    pub(crate) fn parts(&self) -> KeyParts<'_> {
        KeyParts(&self.0)
    }
}

/// A part of a [`Key`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sought<'a> {
    Null,
    /// The stored form of a value.
    Stored(&'a [u8]),
    /// The sort key of a text.
    SortKey(&'a [u8]),
}

/// The parts of a [`Key`].
#[derive(Debug, Clone)]
pub(crate) struct KeyParts<'a>(&'a [u8]);

impl<'a> Iterator for KeyParts<'a> {
    type Item = Sought<'a>;

    #[inline]
    fn next(&mut self) -> Option<Sought<'a>> {
        let (length, rest) = self.0.split_first_chunk::<2>()?;
        let length = u16::from_be_bytes(*length);
        if length == NULL {
            self.0 = rest;
            return Some(Sought::Null);
        }
        let (part, rest) = rest.split_at_checked(usize::from(length & !SORT_KEY))?;
        self.0 = rest;
        Some(if length & SORT_KEY == 0 { Sought::Stored(part) } else { Sought::SortKey(part) })
    }
}

/// Builds a [`Key`] part by part.
#[derive(Debug, Default)]
pub(crate) struct KeyBuilder(Vec<u8>);

impl KeyBuilder {
    pub(crate) fn with_capacity(bytes: usize) -> KeyBuilder {
        KeyBuilder(Vec::with_capacity(bytes))
    }

    /// Adds a part. Longer ones than any key has are cut: they equal no row, and the cut is past what an index holds.
    pub(crate) fn push(&mut self, part: Option<&[u8]>) {
        match part {
            None => self.0.extend_from_slice(&NULL.to_be_bytes()),
            Some(part) => {
                let part = &part[..part.len().min(usize::from(MAX_LENGTH))];
                self.0.extend_from_slice(&(part.len() as u16).to_be_bytes());
                self.0.extend_from_slice(part);
            }
        }
    }

    /// Adds a sort key; false if it is too long.
    fn push_sort_key(&mut self, key: &[u8]) -> bool {
        let Some(length) = u16::try_from(key.len()).ok().filter(|length| *length <= MAX_LENGTH) else {
            return false;
        };
        self.0.extend_from_slice(&(length | SORT_KEY).to_be_bytes());
        self.0.extend_from_slice(key);
        true
    }

    pub(crate) fn finish(self) -> Key {
        Key(self.0.into())
    }
}

/// A range of keys, in the order of the index (for a DESC part the larger value comes first). Bounds may have fewer
/// parts than the index: then they bound the prefix.
#[derive(Debug, Clone)]
pub struct KeyRange {
    /// Start.
    pub lower: Bound<Key>,
    /// End.
    pub upper: Bound<Key>,
}

impl KeyRange {
    /// All keys.
    pub fn all() -> KeyRange {
        KeyRange { lower: Bound::Unbounded, upper: Bound::Unbounded }
    }

    /// The keys whose leading parts equal `key`.
    pub fn equal(key: Key) -> KeyRange {
        KeyRange { lower: Bound::Included(key.clone()), upper: Bound::Included(key) }
    }
}

/// One part of an index's key: its order and how values become it.
#[derive(Debug, Clone)]
pub(crate) struct KeyPart {
    pub(crate) order: Order,
    pub(crate) descending: bool,
    pub(crate) encoder: Option<Encoder>,
    /// Whether each value has one stored form, so that it can be searched for.
    pub(crate) one_form: bool,
}

/// The declared key of an index.
#[derive(Debug)]
pub(crate) struct KeyShape {
    pub(crate) parts: Vec<KeyPart>,
}

impl KeyShape {
    /// Compares a record's key fields with the parts of `key`, as many as it has.
    #[inline]
    pub(crate) fn compare(&self, page: &[u8], spans: &[Span], key: &Key) -> Ordering {
        for ((part, span), sought) in self.parts.iter().zip(spans).zip(key.parts()) {
            let order = match (span.is_null(), sought) {
                (true, Sought::Null) => Ordering::Equal,
                (true, _) => Ordering::Less,
                (false, Sought::Null) => Ordering::Greater,
                (false, Sought::Stored(sought)) => part.order.compare(span.bytes(page), sought),
                (false, Sought::SortKey(key)) => part.order.compare_to_sort_key(span.bytes(page), key),
            };
            if order.is_ne() {
                return if part.descending { order.reverse() } else { order };
            }
        }
        Ordering::Equal
    }

    /// Encodes leading parts; `None` if no row can have these values. The key ends before a value of which there are
    /// several stored forms. Bytes for a text are its sort key.
    pub(crate) fn encode(&self, values: &[Value<'_>]) -> Result<Option<Key>> {
        let mut key = KeyBuilder::with_capacity(16 * values.len());
        for (part, value) in self.parts.iter().zip(values) {
            match (value, &part.encoder) {
                (Value::Null, _) => key.push(None),
                (Value::Bytes(bytes), Some(_)) if part.order.has_sort_keys() => {
                    if !key.push_sort_key(bytes) {
                        break;
                    }
                }
                (value, Some(encoder)) if encoder.is_ambiguous(value) => break,
                (value, Some(encoder)) => match encoder.encode(value)? {
                    Some(stored) => key.push(Some(&stored)),
                    None => return Ok(None),
                },
                (_, None) => return Ok(None),
            }
        }
        Ok(Some(key.finish()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(parts: &[Option<&[u8]>]) -> Key {
        let mut key = KeyBuilder::default();
        parts.iter().for_each(|part| key.push(*part));
        key.finish()
    }

    #[test]
    fn parts_come_back() {
        let mut key = key(&[Some(b"ab"), None, Some(b"")]).0.into_vec();
        let mut builder = KeyBuilder::default();
        assert!(builder.push_sort_key(b"c"));
        assert!(!builder.push_sort_key(&[0; 0x8000]));
        key.extend(builder.finish().0);
        let parts = [Sought::Stored(b"ab"), Sought::Null, Sought::Stored(b""), Sought::SortKey(b"c")];
        assert_eq!(KeyParts(&key).collect::<Vec<_>>(), parts);
    }

    #[test]
    fn null_is_lowest_and_descending_parts_turn() {
        let shape = |descending| KeyShape {
            parts: vec![KeyPart { order: Order::Bytes, descending, encoder: None, one_form: true }],
        };
        let (page, spans) = (b"b", [Span::new(0, 1, false)]);
        for (descending, less) in [(false, Ordering::Less), (true, Ordering::Greater)] {
            let shape = shape(descending);
            assert_eq!(shape.compare(page, &spans, &key(&[Some(b"c")])), less);
            assert_eq!(shape.compare(page, &spans, &key(&[None])), less.reverse());
            assert_eq!(shape.compare(page, &[Span::NULL], &key(&[Some(b"")])), less);
            assert_eq!(shape.compare(page, &[Span::NULL], &key(&[None])), Ordering::Equal);
        }
    }
}
