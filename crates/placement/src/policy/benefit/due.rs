//! When the ranking is made anew.
//!
//! A ranking goes over all chunks that are known. Made with every segment, it would take a query of many chunks a time
//! that grows with the square of its I/Os. So rankings have to be paid for:
//!
//! 1. Within a query by its I/Os, each of which pays for [`CHUNKS_AN_IO`] chunks of the last ranking. Up to some
//!    thousand chunks that is less than a segment.
//! 2. At a query's beginning and end also by the I/Os that are expected, and by the time that has passed since;
//!    whatever is not paid for then is made up for by the next I/Os, or where no query runs any more, by time.

/// Chunks that an I/O pays for: some microseconds.
const CHUNKS_AN_IO: f64 = 16.0;

/// A ranking of as many chunks costs next to nothing.
const FREE_CHUNKS: usize = 4096;

/// Time that pays for a chunk, in nanoseconds: some ten times what it takes.
const NS_A_CHUNK: u64 = 2_000;

/// The ranking is made anew with every segment of a query, but after so many I/Os at least and at most.
const LEAST_IOS: f64 = 256.0;
const MOST_IOS: f64 = 16384.0;

/// And not sooner than this, but at a query's beginning and end: fast devices read a segment in less time than a
/// ranking takes.
const LEAST_NS: u64 = 20_000_000;

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Due {
    /// I/Os until the next ranking,
    until_ios: f64,
    /// and since the last one,
    since_ios: f64,
    /// which was then,
    ranked_ns: u64,
    /// of so many chunks.
    chunks: usize,
}

impl Due {
    /// A ranking was made, for queries that segments of so many I/Os are known of.
    pub(super) fn ranked(&mut self, now_ns: u64, segment_ios: f64, chunks: usize) {
        let until_ios = segment_ios.clamp(LEAST_IOS, MOST_IOS);
        *self = Due { until_ios, since_ios: 0.0, ranked_ns: now_ns, chunks };
        self.until_ios = self.until_ios.max(self.price_ios());
    }

    /// I/Os that pay for a ranking like the last.
    fn price_ios(&self) -> f64 {
        if self.chunks <= FREE_CHUNKS { 0.0 } else { self.chunks as f64 / CHUNKS_AN_IO }
    }

    /// When a ranking like the last is paid for by the time that has passed since.
    pub(super) fn paid_ns(&self) -> u64 {
        self.ranked_ns.saturating_add(NS_A_CHUNK.saturating_mul(self.chunks as u64))
    }

    /// An I/O; whether the ranking is due.
    pub(super) fn after_io(&mut self, now_ns: u64) -> bool {
        self.until_ios -= 1.0;
        self.since_ios += 1.0;
        self.until_ios <= 0.0 && now_ns >= self.ranked_ns + LEAST_NS
    }

    /// Whether it is due now that a query of so many expected I/Os begins, or one has ended; if not, it will be as soon
    /// as it is paid for.
    pub(super) fn at_turn(&mut self, now_ns: u64, expected_ios: f64) -> bool {
        let unpaid_ios = self.price_ios() - self.since_ios;
        let is_paid = unpaid_ios <= expected_ios || now_ns >= self.paid_ns();
        self.until_ios = self.until_ios.min(unpaid_ios.max(LEAST_IOS));
        is_paid
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// I/Os from one ranking to the next.
    fn ios_between(chunks: usize) -> u32 {
        let mut due = Due::default();
        due.ranked(0, 256.0, chunks);
        (1..).find(|_| due.after_io(LEAST_NS)).unwrap()
    }

    #[test]
    fn few_chunks_are_ranked_with_every_segment_and_many_as_their_ios_pay() {
        assert_eq!([ios_between(10), ios_between(FREE_CHUNKS)], [256, 256]);
        assert_eq!([ios_between(1 << 16), ios_between(1 << 18)], [4096, 16384]);
        assert_eq!(ios_between(1 << 20), 65536);
    }

    #[test]
    fn a_short_query_waits_for_a_ranking_of_many_chunks_until_it_is_paid_for() {
        let mut due = Due::default();
        assert!(due.at_turn(0, 0.0), "nothing was ranked so far");
        due.ranked(0, 256.0, 100);
        assert!(due.at_turn(0, 1.0));
        due.ranked(0, 256.0, 1 << 18);
        assert!(due.at_turn(0, 20_000.0) && !due.at_turn(0, 10.0));
        assert!(due.at_turn(NS_A_CHUNK << 18, 10.0));
    }
}
