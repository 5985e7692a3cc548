//! A query under way: what it is expected to read, and what of that is still to come.
//!
//! 1. If its statement has run before, what it read then is expected, more or less of it as the plan expects more or fewer pages than then.
//! 2. Else the plan alone: an access's pages spread evenly over its extents.
//! 3. What is still to come of a chunk is what is expected less what was seen; nothing, once the query is past the place where it was read
//!    last; and where more was seen than expected, as much as the query has still to go.

use std::collections::BTreeMap;

use super::history::{Profile, Use};
use crate::event::{Io, IoKind};
use crate::footprint::{Fingerprint, Footprint, QueryId};
use crate::layout::Layout;

/// By how much a plan's other expectation may scale what was seen before.
const MOST_SCALE: f64 = 8.0;

/// How far, as a share of the query, it must be past a chunk's last use to count as past it.
const PAST: f64 = 0.1;

#[derive(Debug)]
pub(super) struct Running {
    pub(super) query: QueryId,
    pub(super) statement: Fingerprint,
    pub(super) depth: u32,
    expected: BTreeMap<u32, Use>,
    expected_ios: f64,
    expected_pages: f64,
    seen: BTreeMap<u32, Use>,
    ios: f64,
}

impl Running {
    pub(super) fn new(
        (query, statement, depth): (QueryId, Fingerprint, u32),
        footprint: &Footprint,
        known: Option<&Profile>,
        layout: &Layout,
    ) -> Running {
        let pages = footprint.expected_pages() as f64;
        let (expected, expected_ios) = match known {
            Some(profile) => from_profile(profile, pages),
            None => from_plan(footprint, layout),
        };
        let (seen, ios) = (BTreeMap::new(), 0.0);
        Running { query, statement, depth, expected, expected_ios, expected_pages: pages, seen, ios }
    }

    /// Counts an I/O of it.
    pub(super) fn note(&mut self, io: &Io) {
        self.ios += 1.0;
        if io.kind == IoKind::Write {
            return;
        }
        let at = self.ios as f32;
        let seen = self.seen.entry(io.chunk.0).or_insert(Use { first: at, ..Use::default() });
        if io.is_sequential {
            seen.bytes += io.bytes as f32;
        } else {
            seen.random += 1.0;
        }
        seen.last = at;
    }

    /// I/Os that it has done, and that it is expected to do.
    pub(super) fn ios(&self) -> (f64, f64) {
        (self.ios, self.expected_ios)
    }

    /// How far it is: 0 to 1.
    fn progress(&self) -> f64 {
        if self.expected_ios > 0.0 { (self.ios / self.expected_ios).min(1.0) } else { 1.0 }
    }

    /// Chunks that it is expected to read, or has read.
    pub(super) fn chunks(&self) -> impl Iterator<Item = u32> + '_ {
        self.expected.keys().chain(self.seen.keys()).copied()
    }

    /// What is still to come of the chunk.
    pub(super) fn remaining(&self, chunk: u32) -> Use {
        let Some(expected) = self.expected.get(&chunk) else { return Use::default() };
        let progress = self.progress();
        if progress > f64::from(expected.last) + PAST {
            return Use::default();
        }
        let seen = self.seen.get(&chunk).copied().unwrap_or_default();
        let to_go = ((1.0 - progress) / progress.max(0.05)) as f32;
        let left = |expected: f32, seen: f32| {
            if expected > 0.0 && seen > expected { seen * to_go } else { expected - seen }
        };
        Use {
            random: left(expected.random, seen.random).max(0.0),
            // A scan does not come back to where it has been.
            bytes: (expected.bytes - seen.bytes).max(0.0),
            ..*expected
        }
    }

    /// Whether the chunk was expected to be read at all.
    pub(super) fn is_expected(&self, chunk: u32) -> bool {
        self.expected.contains_key(&chunk) && self.progress() < 1.0
    }

    /// What was seen, for the history.
    pub(super) fn into_profile(self) -> Profile {
        let ios = self.ios.max(1.0);
        let share = |at: f32| at / ios as f32;
        let uses = self.seen.into_iter();
        let uses = uses.map(|(no, seen)| (no, Use { first: share(seen.first), last: share(seen.last), ..seen }));
        Profile { uses: uses.collect(), ios: self.ios, expected_pages: self.expected_pages, ..Profile::default() }
    }
}

fn from_profile(profile: &Profile, pages: f64) -> (BTreeMap<u32, Use>, f64) {
    let is_comparable = profile.expected_pages > 0.0 && pages > 0.0;
    let scale = if is_comparable { pages / profile.expected_pages } else { 1.0 };
    let scale = scale.clamp(1.0 / MOST_SCALE, MOST_SCALE);
    let scaled = |uses: &Use| {
        let by = scale as f32;
        Use { random: uses.random * by, bytes: uses.bytes * by, ..*uses }
    };
    (profile.uses.iter().map(|(no, uses)| (*no, scaled(uses))).collect(), profile.ios * scale)
}

fn from_plan(footprint: &Footprint, layout: &Layout) -> (BTreeMap<u32, Use>, f64) {
    let mut expected: BTreeMap<u32, Use> = BTreeMap::new();
    let mut ios = 0.0;
    let stages = footprint.accesses.iter().map(|access| access.stage).max().unwrap_or(0) + 1;
    for access in &footprint.accesses {
        let ranges = access.chunks(layout);
        let chunks: u64 = ranges.iter().map(|range| u64::from(range.end - range.start)).sum();
        let pages = access.expected_pages as f32 / chunks.max(1) as f32;
        let bytes = pages * access.page_bytes as f32;
        ios += access.expected_pages as f64;
        for no in ranges.into_iter().flatten() {
            let first = access.stage as f32 / stages as f32;
            let uses = expected.entry(no).or_insert(Use { first, last: 1.0, ..Use::default() });
            uses.first = uses.first.min(first);
            if access.is_sequential() {
                uses.bytes += bytes;
            } else {
                uses.random += pages;
            }
        }
    }
    (expected, ios)
}
