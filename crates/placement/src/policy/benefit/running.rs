//! A query under way: what it is expected to read, and what of that is still to come.
//!
//! 1. If its statement has run before, what it read then, segment by segment, is expected; more or less of it as the
//!    plan expects more or fewer pages than then.
//! 2. Else the plan alone: an access's pages spread evenly over its extents and over the stages from its own on.
//! 3. Statements come back the same or with other parameters, and then what was random before is random again. Every
//!    few segments that were expected are compared with what was seen: as long as they do not agree, expectations are
//!    [smoothed](super::smooth) over time and over neighbours, so that no chance is taken for a promise.
//! 4. The query's I/Os so far, over those expected, say in which segment it is. Segments behind it count for nothing;
//!    those ahead the less the further they are, because what is fetched for them now may have to go again before
//!    ([`nearness`]).
//!
//! Invariant: `left` is what the segments from the present one on expect, all together.

use std::collections::HashMap;

use super::balance::Pressure;
use super::ends::Ends;
use super::history::{Profile, Recorder, SEGMENT_IOS, Segment};
use super::smooth::{GROUP, agreement, smoothed, together};
use crate::costs::{Load, Reads};
use crate::event::{Io, IoKind};
use crate::footprint::{Cause, Fingerprint, Footprint, QueryId};
use crate::layout::Layout;

/// By how much a plan's other expectation may scale what was seen before.
const MOST_SCALE: f64 = 8.0;

/// What a segment counts less than the one before: copies that wait for others have to be begun earlier.
const NEARNESS: f32 = 0.965;

/// The same, if the query waits for each of its I/Os: then a copy waits little.
const NEARNESS_IN_ORDER: f32 = 0.87;

/// A longer segment counts as so many, at most: of a plan's, which are few, more than the present one have to count.
const MOST_LENGTHS: f64 = 4.0;

/// Segments of the least length that count at all.
pub(super) const HORIZON: usize = 96;

/// I/Os over which the time between two is averaged.
const INTERVALS: u64 = 512;

/// An agreement of expectation and reads that chance may have brought about.
const LEAST_AGREEMENT: f64 = 0.85;

/// From here on every single expectation is believed.
const TRUSTED: f64 = 0.5;

/// Bytes that a scan may leave out and still goes on.
const MOST_HOLE: u64 = 256 << 10;

/// Bytes that a scan reads at once.
const SCAN_BYTES: f32 = 65536.0;

/// Segments that a plan without history is cut into.
const PLANNED_SEGMENTS: usize = 8;

#[derive(Debug, Clone)]
pub(super) struct Running {
    pub(super) query: QueryId,
    pub(super) statement: Fingerprint,
    /// I/Os that it keeps in flight.
    pub(super) depth: u32,
    /// All that it is expected to read.
    total: Reads,
    /// As they were seen,
    exact: Vec<Segment>,
    /// and smoothed, [`GROUP`] of them as one; empty as long as that is not wanted.
    smooth: Vec<Segment>,
    /// There is nothing to smooth.
    is_smooth: bool,
    /// How far what was expected came true: 0 to 1.
    trust: f64,
    /// The chunk that each of its streams read last, and where that ended, in bytes.
    streams: HashMap<Cause, (u32, u64)>,
    /// Where its reads ended.
    ends: Ends,
    /// Reads in the present group of segments.
    reads: HashMap<u32, f32>,
    left: HashMap<u32, Reads>,
    present: usize,
    segment_ios: f64,
    expected_pages: f64,
    /// When its last I/O was,
    last_ns: Option<u64>,
    /// and the mean time between them.
    interval_ns: f64,
    recorder: Recorder,
}

/// What the reads of a segment count.
#[derive(Debug, Clone, Copy)]
pub(super) struct Weight {
    /// From now on.
    pub(super) now: f32,
    /// From when a copy that begins now is there.
    pub(super) then: f32,
}

impl Running {
    pub(super) fn new(
        (query, statement, depth): (QueryId, Fingerprint, u32),
        footprint: &Footprint,
        known: Option<&Profile>,
        trust: f64,
        layout: &Layout,
    ) -> Running {
        let pages = footprint.expected_pages() as f64;
        let (segments, segment_ios) = match known {
            Some(profile) => from_profile(profile, pages),
            None => from_plan(footprint, layout),
        };
        // A plan has no chance in it.
        let is_smooth = known.is_none();
        let smooth = if is_smooth || trust >= TRUSTED { Vec::new() } else { smoothed(&segments) };
        let mut left: HashMap<u32, Reads> = HashMap::new();
        for (no, uses) in segments.iter().flatten() {
            let sum = left.entry(*no).or_default();
            *sum = sum.plus(*uses, 1.0);
        }
        let total = left.values().fold(Reads::default(), |sum, reads| sum.plus(*reads, 1.0));
        Running {
            query,
            statement,
            depth,
            total,
            exact: segments,
            smooth,
            is_smooth,
            trust,
            streams: HashMap::new(),
            ends: Ends::default(),
            reads: HashMap::new(),
            left,
            present: 0,
            segment_ios,
            expected_pages: pages,
            last_ns: None,
            interval_ns: 0.0,
            recorder: Recorder::new(depth),
        }
    }

    /// How it issues its I/Os, when it and others keep `depth` in flight.
    pub(super) fn load(&self, pressure: Pressure) -> Load {
        let Pressure { depth, interference, .. } = pressure;
        Load { depth, interference, ..Load::of(self.depth, &self.total) }
    }

    /// Counts an I/O of it; whether it goes on where an earlier one ended.
    pub(super) fn note(&mut self, now_ns: u64, chunk_bytes: u64, io: &Io) -> bool {
        let interval_ns = now_ns.saturating_sub(self.last_ns.unwrap_or(now_ns)) as f64;
        self.last_ns = Some(now_ns);
        self.interval_ns += (interval_ns - self.interval_ns) / self.recorder.ios.clamp(1, INTERVALS) as f64;
        let begins = u64::from(io.chunk.0) * chunk_bytes + u64::from(io.offset);
        let ends = begins + u64::from(io.bytes);
        let last = self.streams.insert(io.cause, (io.chunk.0, ends));
        let is_close = last.is_some_and(|(chunk, _)| chunk.abs_diff(io.chunk.0) <= 1);
        // A scan has to come to where it begins. Over what it finds in the page cache on its way a disk reads on.
        let is_near = |end: u64| io.is_sequential && end.abs_diff(begins) <= MOST_HOLE;
        let goes_on = self.ends.note(begins, ends) || last.is_some_and(|(_, end)| is_near(end));
        let bytes = if io.is_sequential { io.bytes as f32 } else { 0.0 };
        let uses = match (io.kind, goes_on) {
            (IoKind::Write, _) => Reads::default(),
            (IoKind::Read, true) => Reads::sequential(1.0, io.bytes as f32),
            (IoKind::Read, false) if is_close => Reads { close: 1.0, bytes, ..Reads::default() },
            (IoKind::Read, false) => Reads { bytes, ..Reads::random(1.0) },
        };
        self.recorder.note(io.chunk.0, uses);
        *self.reads.entry(io.chunk.0).or_default() += uses.ios() as f32;
        while self.present < self.exact.len() && self.position() >= (self.present + 1) as f64 {
            self.pass();
        }
        goes_on
    }

    /// The present segment is behind it.
    fn pass(&mut self) {
        if (self.present + 1).is_multiple_of(GROUP) {
            let expected = together(&self.exact[self.present + 1 - GROUP..=self.present]);
            let agreed = (agreement(&expected, &self.reads) - LEAST_AGREEMENT) / (1.0 - LEAST_AGREEMENT);
            self.trust = (self.trust + agreed.clamp(0.0, 1.0)) / 2.0;
            self.reads.clear();
        }
        for (no, uses) in &self.exact[self.present] {
            if let Some(left) = self.left.get_mut(no) {
                *left = left.plus(*uses, -1.0);
                if left.is_nothing() {
                    self.left.remove(no);
                }
            }
        }
        self.present += 1;
        if !self.is_smooth && self.trust < TRUSTED && self.smooth.is_empty() {
            self.smooth = smoothed(&self.exact);
        }
    }

    /// How far what was expected came true; nothing can be said of a plan.
    pub(super) fn trust(&self) -> Option<f64> {
        (!self.is_smooth).then_some(self.trust)
    }

    /// How far it is, in segments.
    fn position(&self) -> f64 {
        (self.recorder.ios as f64 / self.segment_ios.max(1.0)).min(self.exact.len() as f64)
    }

    /// I/Os that a segment is expected to have.
    pub(super) fn segment_ios(&self) -> f64 {
        self.segment_ios
    }

    /// I/Os that are expected of it in all.
    pub(super) fn expected_ios(&self) -> f64 {
        self.segment_ios * self.exact.len() as f64
    }

    /// Segments that it has not begun.
    pub(super) fn segments_ahead(&self) -> usize {
        self.exact.len().saturating_sub(self.present + 1)
    }

    /// Whether single expectations count: they have come true, or are a plan's, which has no chance in it.
    pub(super) fn is_believed(&self) -> bool {
        self.is_smooth || self.trust >= TRUSTED
    }

    /// Chunks with all that is still to come of them.
    pub(super) fn left(&self) -> impl Iterator<Item = (u32, Reads)> + '_ {
        self.left.iter().map(|(no, uses)| (*no, *uses))
    }

    /// All that is still to come of the chunk.
    pub(super) fn left_of(&self, chunk: u32) -> Reads {
        self.left.get(&chunk).copied().unwrap_or_default()
    }

    /// The segments ahead that count, with the weight of each from now on, and of what is left of it after `lead_ns`,
    /// and how far ahead it is.
    pub(super) fn ahead(&self, lead_ns: f64) -> impl Iterator<Item = (&Segment, Weight, usize)> + '_ {
        let begun = (self.position() - self.present as f64).clamp(0.0, 1.0);
        // Before the first I/Os it is not known how fast they come.
        let is_known = self.recorder.ios >= INTERVALS && self.interval_ns > 0.0;
        let lead_ios = if is_known { lead_ns / self.interval_ns } else { 0.0 };
        let lead = begun + lead_ios / self.segment_ios.max(1.0);
        let is_believed = self.is_believed();
        let segments = (self.present..self.exact.len()).filter_map(move |no| match is_believed {
            true => self.exact.get(no),
            false => self.smooth.get(no / GROUP),
        });
        let segments = segments.take(horizon(self.segment_ios));
        let nearness = nearness(self.depth, self.segment_ios);
        weighted(segments, 1.0 - begun as f32, nearness).map(move |(segment, now, ahead)| {
            let passed = (lead - ahead as f64).clamp(0.0, 1.0) as f32;
            let then = now.min(nearness.powi(ahead as i32) * (1.0 - passed));
            (segment, Weight { now, then }, ahead)
        })
    }

    /// What is to come of the chunk soon, after `lead_ns`.
    pub(super) fn near(&self, chunk: u32, lead_ns: f64) -> Reads {
        self.ahead(lead_ns).fold(Reads::default(), |sum, (segment, weight, _)| match find(segment, chunk) {
            Some(uses) => sum.plus(uses, weight.then),
            None => sum,
        })
    }

    /// Whether the chunk is expected to be read at all.
    pub(super) fn is_expected(&self, chunk: u32) -> bool {
        self.left.contains_key(&chunk)
    }

    /// What was seen, for the history.
    pub(super) fn into_profile(self) -> Profile {
        self.recorder.finish(self.expected_pages)
    }
}

/// What each segment of a query counts less than the one before.
pub(super) fn nearness(depth: u32, segment_ios: f64) -> f32 {
    let nearness = if depth <= 1 { NEARNESS_IN_ORDER } else { NEARNESS };
    nearness.powf(lengths(segment_ios) as f32)
}

/// Segments of that length that count at all.
pub(super) fn horizon(segment_ios: f64) -> usize {
    (HORIZON as f64 / lengths(segment_ios)) as usize
}

fn lengths(segment_ios: f64) -> f64 {
    (segment_ios / SEGMENT_IOS as f64).clamp(1.0, MOST_LENGTHS)
}

/// The first segments, each counting less; the first `first` at most.
pub(super) fn weighted<'a>(
    segments: impl Iterator<Item = &'a Segment>,
    first: f32,
    nearness: f32,
) -> impl Iterator<Item = (&'a Segment, f32, usize)> {
    segments.enumerate().map(move |(ahead, segment)| {
        let weight = if ahead == 0 { first } else { nearness.powi(ahead as i32) };
        (segment, weight, ahead)
    })
}

fn find(segment: &Segment, chunk: u32) -> Option<Reads> {
    let place = segment.binary_search_by_key(&chunk, |(no, _)| *no).ok()?;
    segment.get(place).map(|(_, uses)| *uses)
}

fn from_profile(profile: &Profile, pages: f64) -> (Vec<Segment>, f64) {
    let is_comparable = profile.expected_pages > 0.0 && pages > 0.0;
    let scale = if is_comparable { pages / profile.expected_pages } else { 1.0 };
    let scale = scale.clamp(1.0 / MOST_SCALE, MOST_SCALE);
    let scaled = |(no, uses): &(u32, Reads)| (*no, Reads::default().plus(*uses, scale as f32));
    let segments = profile.segments.iter().map(|segment| segment.iter().map(scaled).collect());
    (segments.collect(), profile.segment_ios * scale)
}

fn from_plan(footprint: &Footprint, layout: &Layout) -> (Vec<Segment>, f64) {
    let mut segments: Vec<std::collections::BTreeMap<u32, Reads>> =
        vec![Default::default(); PLANNED_SEGMENTS];
    let mut ios = 0.0;
    let stages = footprint.accesses.iter().map(|access| access.stage).max().unwrap_or(0) as usize + 1;
    for access in &footprint.accesses {
        let numbers: Vec<u32> = access.chunks(layout).into_iter().flatten().collect();
        let first = access.stage as usize * PLANNED_SEGMENTS / stages;
        let spread = (PLANNED_SEGMENTS - first) as f32;
        let pages = access.likely_pages() as f32 / numbers.len().max(1) as f32;
        ios += access.likely_pages() as f64;
        let count = numbers.len();
        for (place, no) in numbers.into_iter().enumerate() {
            if access.is_sequential() {
                // In the order in which they lie.
                let segment = first + place * (PLANNED_SEGMENTS - first) / count.max(1);
                let uses = segments[segment].entry(no).or_default();
                let bytes = pages * access.page_bytes as f32;
                *uses = uses.plus(Reads::sequential(bytes / SCAN_BYTES, bytes), 1.0);
            } else {
                for segment in &mut segments[first..] {
                    let uses = segment.entry(no).or_default();
                    *uses = uses.plus(Reads::random(pages / spread), 1.0);
                }
            }
        }
    }
    let segments = segments.into_iter().map(|segment| segment.into_iter().collect());
    (segments.collect(), ios / PLANNED_SEGMENTS as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::ChunkNo;

    #[test]
    fn scans_continue_across_cached_pages() {
        const PAGE: u32 = 16 << 10;
        let statement = (QueryId(1), Fingerprint(1), 1);
        let mut running = Running::new(statement, &Footprint::default(), None, 0.0, &Layout::new(1 << 20));
        let mut goes_on = |page: u32| {
            let (chunk, offset) = (ChunkNo(3 + page / 64), page % 64 * PAGE);
            let (kind, query, cause) = (IoKind::Read, QueryId(1), Cause(1));
            let io = Io { chunk, offset, kind, is_sequential: true, bytes: PAGE, query, cause };
            running.note(0, 1 << 20, &io)
        };
        // A hole, and two reads that were done the other way round; then a long hole.
        let pages = [8, 9, 20, 22, 21, 63, 64, 130];
        assert_eq!(pages.map(&mut goes_on), [false, true, true, true, true, false, true, false]);
    }
}
