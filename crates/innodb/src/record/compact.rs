//! COMPACT and DYNAMIC records.
//!
//! Before the origin, going down: 5 header bytes, then what a server's instant columns add (a version or a count), then
//! the NULL bitmap (low bit first), then the lengths of the variable fields that are not NULL, one or two bytes each.
//! From the origin up: the fields.

use super::shape::{Counts, FieldShape, Leading, Presence, Shape, Variant};
use super::{INFO_OLD_INSTANT, INFO_ROW_VERSION, INFO_VERSIONED, Span, Spans, malformed, outside};
use crate::Result;

const HEADER_BYTES: usize = 5;
/// Status of a record with columns added instantly (MariaDB).
const STATUS_INSTANT: u8 = 4;

/// Finds the first `count` fields of a leaf record.
#[inline]
pub(super) fn parse_leaf(
    page: &[u8],
    origin: usize,
    shape: &Shape,
    count: usize,
    spans: &mut Spans,
) -> Result<()> {
    spans.clear();
    if count <= shape.leading.len() {
        return place(page, origin, &shape.leading, count, spans).map(|_| ());
    }
    match &shape.presence {
        Presence::All(variant) => parse(page, origin, HEADER_BYTES, shape, variant, count, spans),
        presence => {
            let (variant, extra) = choose(page, origin, presence)?;
            parse(page, origin, HEADER_BYTES + extra, shape, variant, count, spans)
        }
    }
}

/// Bytes of a leaf record, what lies before its origin included.
///
/// # Errors
/// If it lies outside of the page, or is of a version that `shape` knows nothing of.
pub(super) fn bytes(page: &[u8], origin: usize, shape: &Shape) -> Result<usize> {
    let info = origin.checked_sub(HEADER_BYTES).and_then(|at| page.get(at)).copied();
    if matches!(shape.presence, Presence::All(_)) && info.is_some_and(|info| info & INFO_VERSIONED != 0) {
        return Err(malformed(origin, "is of a row version, of which its definition has none"));
    }
    let (variant, extra) = choose(page, origin, &shape.presence)?;
    let mut walk = Walk::new(page, origin, HEADER_BYTES + extra, variant.null_bytes)?;
    for (at, field) in shape.fields.iter().enumerate().take(variant.count) {
        if !variant.missing.get(at).copied().unwrap_or(false) {
            walk.field(*field)?;
        }
    }
    let start = walk.lengths.wrapping_add(1);
    walk.end(page.len())?.checked_sub(start).ok_or_else(|| outside(origin))
}

/// Finds the first `count` fields of a node pointer, and where the next begins.
#[inline]
pub(super) fn parse_node(
    page: &[u8],
    origin: usize,
    shape: &Shape,
    count: usize,
    spans: &mut Spans,
) -> Result<usize> {
    spans.clear();
    if count <= shape.node_leading.len() {
        return place(page, origin, &shape.node_leading, count, spans);
    }
    let mut walk = Walk::new(page, origin, HEADER_BYTES, shape.node_null_bytes)?;
    for field in shape.fields.iter().take(count) {
        let span = walk.field(*field)?;
        spans.push(span);
    }
    walk.end(page.len())
}

/// Which variant a record is of, and how many bytes its header has on top.
fn choose<'a>(page: &[u8], origin: usize, presence: &'a Presence) -> Result<(&'a Variant, usize)> {
    let byte = |before: usize| {
        let at = origin.checked_sub(before).ok_or_else(|| outside(origin))?;
        page.get(at).copied().ok_or_else(|| outside(origin))
    };
    let unknown = || malformed(origin, "is of an unknown row version");
    match presence {
        Presence::All(variant) => Ok((variant, 0)),
        Presence::Versions(variants, counts) => {
            if byte(5)? & INFO_ROW_VERSION != 0 {
                return Ok((variants.get(usize::from(byte(6)?)).ok_or_else(unknown)?, 1));
            }
            match counts {
                Some(counts) => counted(counts, byte).and_then(|found| found.ok_or_else(unknown)),
                None => Ok((variants.first().ok_or_else(unknown)?, 0)),
            }
        }
        Presence::Counted(counts) => counted(counts, byte)?.ok_or_else(unknown),
        Presence::Added(counts) => {
            if byte(3)? & 7 != STATUS_INSTANT {
                return Ok((&counts.core, 0));
            }
            let first = byte(6)?;
            let (added, extra) = match first & 0x80 {
                0 => (usize::from(first), 1),
                _ => (usize::from(first & 0x7f) | usize::from(byte(7)?) << 7, 2),
            };
            Ok((counts.by_count.get(counts.core.count + 1 + added).ok_or_else(unknown)?, extra))
        }
    }
}

/// The variant of a record of MySQL before 8.0.29, and the bytes that its count takes.
fn counted(counts: &Counts, byte: impl Fn(usize) -> Result<u8>) -> Result<Option<(&Variant, usize)>> {
    if byte(5)? & INFO_OLD_INSTANT == 0 {
        return Ok(Some((&counts.core, 0)));
    }
    let first = byte(6)?;
    let (count, extra) = match first & 0x80 {
        0 => (usize::from(first), 1),
        _ => (usize::from(first & 0x7f) << 8 | usize::from(byte(7)?), 2),
    };
    // Fewer than those from before the first instant ADD are of no record.
    let variant = counts.by_count.get(count).filter(|_| count >= counts.core.count);
    Ok(variant.map(|variant| (variant, extra)))
}

/// Puts down the first `count` fields of a record by places that are known, and returns where the next begins.
#[inline]
fn place(page: &[u8], origin: usize, leading: &Leading, count: usize, spans: &mut Spans) -> Result<usize> {
    let end = origin + leading.bytes(count);
    if end > page.len() {
        return Err(outside(origin));
    }
    spans.extend(leading.spans(count, origin));
    Ok(end)
}

#[inline]
fn parse(
    page: &[u8],
    origin: usize,
    header: usize,
    shape: &Shape,
    variant: &Variant,
    count: usize,
    spans: &mut Spans,
) -> Result<()> {
    if count <= variant.leading.len() {
        return place(page, origin, &variant.leading, count, spans).map(|_| ());
    }
    let mut walk = Walk::new(page, origin, header, variant.null_bytes)?;
    let fields = &shape.fields[..count.min(shape.fields.len())];
    let there = fields.len().min(variant.count);
    if variant.missing.is_empty() {
        for field in &fields[..there] {
            spans.push(walk.field(*field)?);
        }
    } else {
        for (field, missing) in fields[..there].iter().zip(&variant.missing) {
            spans.push(if *missing { Span::ABSENT } else { walk.field(*field)? });
        }
    }
    spans.resize(fields.len(), Span::ABSENT);
    walk.end(page.len()).map(|_| ())
}

/// A walk along a record's fields.
struct Walk<'a> {
    page: &'a [u8],
    origin: usize,
    /// Index of the current byte of the NULL bitmap, and the bit in it.
    nulls: usize,
    null_bit: u8,
    /// Index of the next length byte; wraps below 0, which no page has.
    lengths: usize,
    /// Where the next field begins.
    offset: usize,
}

impl<'a> Walk<'a> {
    #[inline]
    fn new(page: &'a [u8], origin: usize, header: usize, null_bytes: usize) -> Result<Walk<'a>> {
        let nulls = origin.checked_sub(header + 1).ok_or_else(|| outside(origin))?;
        let lengths = nulls.wrapping_sub(null_bytes);
        if origin > page.len() || nulls < null_bytes {
            return Err(outside(origin));
        }
        Ok(Walk { page, origin, nulls, null_bit: 1, lengths, offset: origin })
    }

    #[inline]
    fn field(&mut self, field: FieldShape) -> Result<Span> {
        if field.nullable {
            if self.null_bit == 0 {
                self.null_bit = 1;
                self.nulls -= 1;
            }
            let null = self.page[self.nulls] & self.null_bit != 0;
            self.null_bit <<= 1;
            if null {
                return Ok(Span::NULL);
            }
        }
        let (length, external) = match field.fixed {
            0 => self.length(field.big)?,
            fixed => (usize::from(fixed), false),
        };
        let span = Span::new(self.offset, length, external);
        self.offset += length;
        Ok(span)
    }

    #[inline]
    fn length(&mut self, big: bool) -> Result<(usize, bool)> {
        let first = self.length_byte()?;
        if !big || first & 0x80 == 0 {
            return Ok((usize::from(first), false));
        }
        let second = self.length_byte()?;
        Ok((usize::from(first & 0x3f) << 8 | usize::from(second), first & 0x40 != 0))
    }

    #[inline]
    fn length_byte(&mut self) -> Result<u8> {
        let byte = self.page.get(self.lengths).copied().ok_or_else(|| outside(self.origin))?;
        self.lengths = self.lengths.wrapping_sub(1);
        Ok(byte)
    }

    /// Where the fields ended; an error if that is outside of the page.
    #[inline]
    fn end(&self, page_bytes: usize) -> Result<usize> {
        if self.offset > page_bytes { Err(outside(self.origin)) } else { Ok(self.offset) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape() -> Shape {
        let fields = vec![
            FieldShape::system(4),
            FieldShape { fixed: 0, nullable: true, big: false },
            FieldShape { fixed: 2, nullable: true, big: false },
            FieldShape { fixed: 0, nullable: false, big: true },
        ];
        Shape::new(fields, 1)
    }

    /// A page with one record whose bytes before the origin are `head`, in memory order.
    fn page(head: &[u8], body: &[u8]) -> (Vec<u8>, usize) {
        ([&[0xee; 8], head, body].concat(), 8 + head.len())
    }

    #[test]
    fn fields_are_found() {
        let (bytes, origin) = page(&[0x02, 0x81, 0x03, 0x00, 0, 0, 0, 0, 0], b"abcdxyzmm");
        let mut spans = Spans::new();
        // The last field is said to have 0x102 bytes: outside.
        assert!(parse_leaf(&bytes, origin, &shape(), 4, &mut spans).is_err());
        let (bytes, origin) = page(&[0x02, 0x03, 0x00, 0, 0, 0, 0, 0], b"abcdxyzmmqq");
        parse_leaf(&bytes, origin, &shape(), 4, &mut spans).unwrap();
        let found: Vec<&[u8]> = spans.iter().map(|span| span.bytes(&bytes)).collect();
        assert_eq!(found, [&b"abcd"[..], b"xyz", b"mm", b"qq"]);
    }

    #[test]
    fn nulls_take_no_room() {
        let (bytes, origin) = page(&[0x02, 0x03, 0, 0, 0, 0, 0], b"abcdqq");
        let mut spans = Spans::new();
        parse_leaf(&bytes, origin, &shape(), 4, &mut spans).unwrap();
        assert!(spans[1].is_null() && spans[2].is_null());
        assert_eq!(spans[3].bytes(&bytes), b"qq");
    }

    #[test]
    fn older_versions_lack_fields() {
        let shape = shape().with_versions(&[(0, 0), (0, 0), (1, 0), (0, 0)]);
        let mut spans = Spans::new();
        let (bytes, origin) = page(&[0x01, 0x01, 0x00, 0, 0, 0, 0, 0], b"abcdxq");
        parse_leaf(&bytes, origin, &shape, 4, &mut spans).unwrap();
        assert!(spans[2].is_absent());
        assert_eq!(spans[3].bytes(&bytes), b"q");
        let (bytes, origin) = page(&[0x01, 0x01, 0x00, 1, 0x40, 0, 0, 0, 0], b"abcdxmmq");
        parse_leaf(&bytes, origin, &shape, 4, &mut spans).unwrap();
        assert_eq!(spans[2].bytes(&bytes), b"mm");
        let (bytes, origin) = page(&[0x01, 0x01, 0x00, 9, 0x40, 0, 0, 0, 0], b"abcdxmmq");
        assert!(parse_leaf(&bytes, origin, &shape, 4, &mut spans).is_err());
    }

    #[test]
    fn fixed_fields_are_found_in_records_of_every_variant() {
        let fixed = vec![FieldShape::system(2); 4];
        let mut spans = Spans::new();
        let mut found = |shape: &Shape, head: &[u8], body: &[u8], count| {
            let (bytes, origin) = page(head, body);
            parse_leaf(&bytes, origin, shape, count, &mut spans).unwrap();
            let text = |span: &Span| (!span.is_absent()).then(|| span.bytes(&bytes).to_vec());
            spans.iter().map(text).collect::<Vec<_>>()
        };
        let [a, b, c, d] = [b"aa", b"bb", b"cc", b"dd"].map(|text| Some(text.to_vec()));
        // The second was dropped in version 1, the last added in version 2.
        let versions = Shape::new(fixed.clone(), 1).with_versions(&[(0, 0), (0, 1), (0, 0), (2, 0)]);
        let [none, first, second] = [&[0, 0, 0, 0, 0, 0][..], &[1, 0x40, 0, 0, 0, 0], &[2, 0x40, 0, 0, 0, 0]];
        assert_eq!(found(&versions, none, b"aabbcc", 4), [a.clone(), b.clone(), c.clone(), None]);
        assert_eq!(found(&versions, first, b"aacc", 4), [a.clone(), None, c.clone(), None]);
        assert_eq!(found(&versions, second, b"aaccdd", 4), [a.clone(), None, c.clone(), d.clone()]);
        assert_eq!(found(&versions, second, b"aaccdd", 2), [a.clone(), None]);
        assert_eq!(versions.leading.len(), 1);
        let added = Shape::new(fixed.clone(), 1).with_added(2);
        assert_eq!(found(&added, &[0, 0, 0, 0, 0], b"aabb", 4), [a.clone(), b.clone(), None, None]);
        assert_eq!(found(&added, &[0, 0, 0, 4, 0, 0], b"aabbcc", 4), [a.clone(), b.clone(), c.clone(), None]);
        assert_eq!(found(&added, &[1, 0, 0, 4, 0, 0], b"aabbccdd", 4), [a.clone(), b.clone(), c.clone(), d]);
        assert_eq!(added.leading.len(), 2);
        let counted = Shape::new(fixed, 1).with_counts(2);
        assert_eq!(found(&counted, &[0, 0, 0, 0, 0], b"aabb", 3), [a.clone(), b.clone(), None]);
        assert_eq!(found(&counted, &[3, 0x80, 0, 0, 0, 0], b"aabbcc", 3), [a, b, c]);
    }

    #[test]
    fn added_counts_are_read() {
        let shape = shape().with_added(2);
        let mut spans = Spans::new();
        let (bytes, origin) = page(&[0x01, 0x00, 0, 0, 0, 0, 0], b"abcdx");
        parse_leaf(&bytes, origin, &shape, 4, &mut spans).unwrap();
        assert!(spans[2].is_absent() && spans[3].is_absent());
        let (bytes, origin) = page(&[0x01, 0x00, 0, 0, 0, 4, 0, 0], b"abcdxmm");
        parse_leaf(&bytes, origin, &shape, 4, &mut spans).unwrap();
        assert_eq!(spans[2].bytes(&bytes), b"mm");
        assert!(spans[3].is_absent());
    }

    #[test]
    fn no_origin_panics() {
        let bytes = [0xff; 40];
        let mut spans = Spans::new();
        for origin in 0..60 {
            let _ = parse_leaf(&bytes, origin, &shape(), 4, &mut spans);
            let _ = parse_node(&bytes, origin, &shape(), 4, &mut spans);
        }
    }
}
