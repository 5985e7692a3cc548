//! Which reads serve the ranges that are asked for.

use std::ops::Range;

/// Bytes between two ranges below which one read serves both: reading them takes less time than one more I/O.
pub(super) const GAP_BYTES: u64 = 128 << 10;

/// Most bytes of a read that serves several ranges.
pub(super) const MAX_SPAN_BYTES: u64 = 64 << 20;

/// A contiguous part of a file, and which of the ranges lie in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) bytes: Range<u64>,
    /// Positions in what was asked for.
    pub(super) ranges: Vec<usize>,
}

/// Spans that cover `ranges`, ascending; ranges with less than [`GAP_BYTES`] between them share one.
pub(super) fn spans(ranges: &[Range<u64>]) -> Vec<Span> {
    let mut order: Vec<usize> = (0..ranges.len()).filter(|no| !ranges[*no].is_empty()).collect();
    order.sort_unstable_by_key(|no| (ranges[*no].start, ranges[*no].end));
    let mut spans: Vec<Span> = Vec::new();
    for no in order {
        let range = &ranges[no];
        match spans.last_mut() {
            Some(last)
                if range.start <= last.bytes.end.saturating_add(GAP_BYTES)
                    && (range.start < last.bytes.end || range.end - last.bytes.start <= MAX_SPAN_BYTES) =>
            {
                last.bytes.end = last.bytes.end.max(range.end);
                last.ranges.push(no);
            }
            _ => spans.push(Span { bytes: range.clone(), ranges: vec![no] }),
        }
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_within_the_gap_share_a_read() {
        let far = GAP_BYTES + 200;
        let found = spans(&[far + 100..far + 150, 0..100, 90..120, 130..140, 7..7]);
        let expected = [
            Span { bytes: 0..140, ranges: vec![1, 2, 3] },
            Span { bytes: far + 100..far + 150, ranges: vec![0] },
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_shared_read_is_bounded() {
        let half = MAX_SPAN_BYTES / 2;
        let found = spans(&[0..half, half..2 * half, 2 * half..3 * half]);
        let bytes: Vec<Range<u64>> = found.into_iter().map(|span| span.bytes).collect();
        assert_eq!(bytes, [0..2 * half, 2 * half..3 * half]);
    }
}
