//! REDUNDANT records.
//!
//! Six header bytes: info bits, heap number, field count (10 bits), short flag, absolute next. Before them, going down,
//! the end offset of each field: one byte (top bit NULL) if the short flag is set, else two (top bit NULL, next bit
//! external).

use super::shape::{FieldShape, Presence, Shape};
use super::{INFO_ROW_VERSION, INFO_VERSIONED, Span, Spans, malformed, outside};
use crate::Result;

const HEADER_BYTES: usize = 6;

/// Finds the first `count` fields of a leaf record.
pub(super) fn parse_leaf(
    page: &[u8],
    origin: usize,
    shape: &Shape,
    count: usize,
    spans: &mut Spans,
) -> Result<()> {
    let Presence::Versions(variants, _) = &shape.presence else {
        return parse(page, origin, HEADER_BYTES, count, spans);
    };
    let before = |bytes: usize| origin.checked_sub(bytes).and_then(|at| page.get(at)).copied();
    let versioned = before(HEADER_BYTES).ok_or_else(|| outside(origin))? & INFO_ROW_VERSION != 0;
    let version = if versioned { before(HEADER_BYTES + 1).ok_or_else(|| outside(origin))? } else { 0 };
    let unknown = || malformed(origin, "is of an unknown row version");
    let variant = variants.get(usize::from(version)).ok_or_else(unknown)?;
    if variant.missing.is_empty() {
        return parse(page, origin, HEADER_BYTES + usize::from(versioned), count, spans);
    }
    let missing = &variant.missing[..count.min(variant.missing.len())];
    let there = missing.iter().filter(|missing| !**missing).count();
    parse(page, origin, HEADER_BYTES + usize::from(versioned), there, spans)?;
    let mut found = spans.split_off(0).into_iter();
    spans.extend(missing.iter().map(|missing| match missing {
        true => Span::ABSENT,
        false => found.next().unwrap_or(Span::ABSENT),
    }));
    Ok(())
}

/// Whether a leaf record has as many fields as `shape`, and fixed ones of its widths.
pub(super) fn fits(page: &[u8], origin: usize, shape: &Shape) -> Result<bool> {
    if !matches!(shape.presence, Presence::All(_)) {
        return Ok(true);
    }
    let info = origin.checked_sub(HEADER_BYTES).and_then(|at| page.get(at)).copied();
    if info.is_some_and(|info| info & INFO_VERSIONED != 0) {
        return Ok(false);
    }
    // One more than there should be must be absent, all others there.
    let mut spans = Spans::new();
    parse(page, origin, HEADER_BYTES, shape.fields.len() + 1, &mut spans)?;
    let Some((behind, fields)) = spans.split_last() else { return Ok(false) };
    let of_width = |(span, field): (&Span, &FieldShape)| {
        !span.is_absent()
            && (span.is_null() || field.fixed == 0 || span.bytes(page).len() == usize::from(field.fixed))
    };
    Ok(behind.is_absent() && fields.iter().zip(&shape.fields).all(of_width))
}

/// Finds the first `count` fields of a node pointer.
pub(super) fn parse_node(page: &[u8], origin: usize, count: usize, spans: &mut Spans) -> Result<()> {
    parse(page, origin, HEADER_BYTES, count, spans)?;
    if spans.iter().any(|span| span.is_absent()) {
        return Err(malformed(origin, "has too few fields"));
    }
    Ok(())
}

fn parse(page: &[u8], origin: usize, header: usize, count: usize, spans: &mut Spans) -> Result<()> {
    spans.clear();
    let byte = |before: usize| {
        let at = origin.checked_sub(before).ok_or_else(|| outside(origin))?;
        page.get(at).map(|byte| usize::from(*byte)).ok_or_else(|| outside(origin))
    };
    let fields = (byte(4)? << 8 | byte(3)?) >> 1 & 0x3ff;
    let short = byte(3)? & 1 != 0;
    let mut start = 0;
    for at in 0..count.min(fields) {
        let (end, null, external) = if short {
            let end = byte(header + 1 + at)?;
            (end & 0x7f, end & 0x80 != 0, false)
        } else {
            let end = byte(header + 2 + 2 * at)? << 8 | byte(header + 1 + 2 * at)?;
            (end & 0x3fff, end & 0x8000 != 0, end & 0x4000 != 0)
        };
        if end < start || origin + end > page.len() {
            return Err(outside(origin));
        }
        spans.push(if null { Span::NULL } else { Span::new(origin + start, end - start, external) });
        start = end;
    }
    spans.resize(count, Span::ABSENT);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_long_offsets() {
        let shape = Shape::new(vec![FieldShape::system(4); 3], 1);
        let mut spans = Spans::new();
        // Three fields: "ab", NULL (two bytes kept), "cd".
        let head = [6, 0x80 | 4, 2, 0, 0, 0, 3 << 1 | 1, 0, 0];
        let bytes = [&head[..], b"ab\0\0cd"].concat();
        parse_leaf(&bytes, head.len(), &shape, 3, &mut spans).unwrap();
        assert_eq!(spans[0].bytes(&bytes), b"ab");
        assert!(spans[1].is_null());
        assert_eq!(spans[2].bytes(&bytes), b"cd");
        let head = [0x40, 3, 0, 2, 0, 0, 0, 2 << 1, 0, 0];
        let bytes = [&head[..], b"abc"].concat();
        parse_leaf(&bytes, head.len(), &shape, 3, &mut spans).unwrap();
        assert_eq!(spans[0].bytes(&bytes), b"ab");
        assert!(spans[1].is_external());
        assert!(spans[2].is_absent());
    }

    #[test]
    fn no_origin_panics() {
        let mut spans = Spans::new();
        let shape = Shape::new(vec![FieldShape::system(4); 3], 1);
        for fill in [0, 1, 0x7f, 0xff] {
            for origin in 0..60 {
                let _ = parse_leaf(&[fill; 40], origin, &shape, 3, &mut spans);
            }
        }
    }
}
