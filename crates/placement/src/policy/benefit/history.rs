//! What earlier runs of statements read, chunk by chunk, and which statement followed which.
//!
//! 1. While a query runs, its I/Os are counted per chunk and segment: so and so many I/Os, one behind the other. At its
//!    end the counts are averaged with what its statement is known for, the newest counting half.
//! 2. That a statement began after another counts for the pair; older pairs fade.
//! 3. [`History::likely`] walks those chances some steps ahead.
//!
//! Invariant: statements and their chunks are bounded; the statement that was not seen for longest is forgotten first.

use std::collections::{BTreeMap, HashMap};

use crate::costs::{Load, Reads};
use crate::footprint::Fingerprint;
use crate::layout::ChunkNo;
use crate::memory::{Memory, RememberedStatement};

/// Statements that are remembered.
const MOST_STATEMENTS: usize = 256;

/// With more I/Os in flight than this, segments are longer,
const DEPTH_OF_A_SEGMENT: u32 = 64;

/// up to so many times.
const MOST_LENGTHENED: u32 = 4;

/// Entries of segments that are remembered, of all statements together.
const MOST_ENTRIES: usize = 4 << 20;

/// Those of one run: one that reads many chunks is told in longer segments.
const MOST_ENTRIES_A_RUN: usize = MOST_ENTRIES / 8;

/// Runs that differ by so many segments are comparable: the page cache had a little more, or less.
const LIKE_LENGTH: usize = 4;

/// How much the newest run counts.
const NEWEST: f32 = 0.5;

/// A run with a smaller part of the I/Os is short: it was given up, or the page cache had the rest.
const SHORT: f64 = 0.25;

/// What is left of a pair's weight when another one occurs.
const FADING: f64 = 0.8;

/// What a statement is worth remembering, for each run of any statement that came after its last.
const STALENESS: f64 = 0.98;

/// Steps that are looked ahead.
const HORIZON: usize = 9;

/// What a further step is worth less.
const DISCOUNT: f64 = 0.85;

/// Segments of a run that are kept apart; of a longer run, each is twice as long. Even.
const MOST_SEGMENTS: usize = 1024;

/// I/Os of a segment, at least. What comes next has to be told from what comes soon: with four times as many, queries
/// that wait for each read took a tenth longer.
pub(super) const SEGMENT_IOS: u64 = 256;

/// How a query of these reads issues its I/Os.
pub(super) fn load<'a>(depth: u32, reads: impl Iterator<Item = &'a Reads>) -> Load {
    Load::of(depth, &reads.fold(Reads::default(), |sum, reads| sum.plus(*reads, 1.0)))
}

/// The chunks that are read in one segment of a run, by number.
pub(super) type Segment = Vec<(u32, Reads)>;

/// A statement's uses, segment by segment: equal shares of its I/Os.
#[derive(Debug, Clone, Default)]
pub(super) struct Profile {
    pub(super) segments: Vec<Segment>,
    /// Over all segments.
    pub(super) totals: BTreeMap<u32, Reads>,
    /// I/Os of a segment; the last may have fewer.
    pub(super) segment_ios: f64,
    /// Pages that its plan expected.
    pub(super) expected_pages: f64,
    last_run: u64,
    runs: f64,
    /// Whether the last run was short.
    was_short: bool,
}

impl Profile {
    pub(super) fn new(segments: Vec<Segment>, segment_ios: f64, expected_pages: f64) -> Profile {
        let mut totals: BTreeMap<u32, Reads> = BTreeMap::new();
        for (no, uses) in segments.iter().flatten() {
            let total = totals.entry(*no).or_default();
            *total = total.plus(*uses, 1.0);
        }
        Profile { segments, totals, segment_ios, expected_pages, ..Profile::default() }
    }

    /// How it issues its I/Os, with `depth` of them in flight.
    pub(super) fn load(&self, depth: u32) -> Load {
        load(depth, self.totals.values())
    }

    fn entries(&self) -> usize {
        self.segments.iter().map(Vec::len).sum()
    }

    fn ios(&self) -> f64 {
        self.totals.values().map(Reads::ios).sum()
    }

    /// Averaged with a newer run. Runs of other lengths are not comparable piece by piece: the newer counts, but not
    /// the first that is short.
    fn blend(&mut self, run: Profile) {
        let is_short = run.ios() < SHORT * self.ios();
        if is_short && !self.was_short {
            self.was_short = true;
            return;
        }
        let is_comparable = self.segments.len().abs_diff(run.segments.len()) <= LIKE_LENGTH
            && self.segment_ios == run.segment_ios;
        let segments = if is_comparable {
            let at = |segments: &[Segment], at: usize| segments.get(at).cloned().unwrap_or_default();
            let all = 0..self.segments.len().max(run.segments.len());
            all.map(|no| blend(&at(&self.segments, no), &at(&run.segments, no))).collect()
        } else {
            run.segments
        };
        let mean = |old: f64, new: f64| if old > 0.0 { (old + new) / 2.0 } else { new };
        let pages =
            if is_comparable { mean(self.expected_pages, run.expected_pages) } else { run.expected_pages };
        *self = Profile { runs: self.runs, ..Profile::new(segments, run.segment_ios, pages) };
    }
}

fn blend(old: &Segment, new: &Segment) -> Segment {
    let mut all: BTreeMap<u32, Reads> = BTreeMap::new();
    for (segment, by) in [(old, 1.0 - NEWEST), (new, NEWEST)] {
        for (no, uses) in segment {
            let sum = all.entry(*no).or_default();
            *sum = sum.plus(*uses, by);
        }
    }
    all.into_iter().filter(|(_, uses)| uses.ios() > 0.1).collect()
}

/// Counts a run, segment by segment.
#[derive(Debug, Clone)]
pub(super) struct Recorder {
    segments: Vec<Segment>,
    current: HashMap<u32, Reads>,
    segment_ios: u64,
    ios_in_segment: u64,
    pub(super) ios: u64,
}

impl Recorder {
    /// Of a query that keeps `depth` I/Os in flight: what comes in such a burst has no order.
    pub(super) fn new(depth: u32) -> Recorder {
        let segment_ios = SEGMENT_IOS * u64::from((depth / DEPTH_OF_A_SEGMENT).clamp(1, MOST_LENGTHENED));
        Recorder { segments: Vec::new(), current: HashMap::new(), segment_ios, ios_in_segment: 0, ios: 0 }
    }

    pub(super) fn note(&mut self, chunk: u32, uses: Reads) {
        let sum = self.current.entry(chunk).or_default();
        *sum = sum.plus(uses, 1.0);
        self.ios += 1;
        self.ios_in_segment += 1;
        if self.ios_in_segment >= self.segment_ios {
            self.end_segment();
        }
    }

    fn end_segment(&mut self) {
        let mut segment: Segment = std::mem::take(&mut self.current).into_iter().collect();
        segment.sort_unstable_by_key(|(no, _)| *no);
        self.segments.push(segment);
        self.ios_in_segment = 0;
        let is_even = self.segments.len().is_multiple_of(2);
        let entries: usize = self.segments.iter().map(Vec::len).sum();
        if self.segments.len() >= MOST_SEGMENTS || (is_even && entries > MOST_ENTRIES_A_RUN) {
            let halves = std::mem::take(&mut self.segments);
            let doubled = |pair: &[Segment]| {
                let mut sum: BTreeMap<u32, Reads> = BTreeMap::new();
                for (no, uses) in pair.iter().flatten() {
                    let entry = sum.entry(*no).or_default();
                    *entry = entry.plus(*uses, 1.0);
                }
                sum.into_iter().collect()
            };
            self.segments = halves.chunks(2).map(doubled).collect();
            self.segment_ios *= 2;
        }
    }

    /// The whole run. Its last segment is shorter than the others.
    pub(super) fn finish(mut self, expected_pages: f64) -> Profile {
        if !self.current.is_empty() {
            self.end_segment();
        }
        Profile::new(self.segments, self.segment_ios as f64, expected_pages)
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct History {
    profiles: BTreeMap<Fingerprint, Profile>,
    followers: BTreeMap<Fingerprint, BTreeMap<Fingerprint, f64>>,
    last: Option<Fingerprint>,
    runs: u64,
}

impl History {
    pub(super) fn profile(&self, statement: Fingerprint) -> Option<&Profile> {
        self.profiles.get(&statement)
    }

    /// A statement begins.
    pub(super) fn begins(&mut self, statement: Fingerprint) {
        if let Some(last) = self.last.replace(statement) {
            let followers = self.followers.entry(last).or_default();
            followers.values_mut().for_each(|weight| *weight *= FADING);
            *followers.entry(statement).or_default() += 1.0;
            followers.retain(|_, weight| *weight > 0.01);
        }
    }

    /// A run of it is over.
    pub(super) fn ended(&mut self, statement: Fingerprint, run: Profile) {
        self.runs += 1;
        let runs = self.runs;
        let known = self.profiles.entry(statement).or_default();
        if known.last_run == 0 {
            *known = run;
        } else {
            known.blend(run);
        }
        known.last_run = runs;
        known.runs += 1.0;
        self.forget();
    }

    fn forget(&mut self) {
        let chunks = |history: &History| history.profiles.values().map(Profile::entries).sum::<usize>();
        while self.profiles.len() > MOST_STATEMENTS
            || (self.profiles.len() > 1 && chunks(self) > MOST_ENTRIES)
        {
            let oldest = self.profiles.iter().min_by_key(|(_, profile)| profile.last_run);
            let Some(oldest) = oldest.map(|(statement, _)| *statement) else { return };
            self.profiles.remove(&oldest);
            self.followers.remove(&oldest);
            self.followers.values_mut().for_each(|followers| {
                followers.remove(&oldest);
            });
        }
    }

    /// Runs of the statement that are remembered.
    pub(super) fn runs_of(&self, statement: Fingerprint) -> u32 {
        self.profiles.get(&statement).map_or(0, |profile| (profile.runs.round() as u32).max(1))
    }

    /// All of it, statements that run often and ran lately first.
    pub(super) fn memory(&self) -> Memory {
        let worth = |profile: &Profile| profile.runs * STALENESS.powf((self.runs - profile.last_run) as f64);
        let mut ranked: Vec<(&Fingerprint, &Profile)> = self.profiles.iter().collect();
        ranked.sort_by(|a, b| worth(b.1).total_cmp(&worth(a.1)).then(a.0.cmp(b.0)));
        let uses = |(no, uses): &(u32, Reads)| (ChunkNo(*no), *uses);
        let statement = |(statement, profile): (&Fingerprint, &Profile)| RememberedStatement {
            statement: *statement,
            runs: profile.runs,
            expected_pages: profile.expected_pages,
            segment_ios: profile.segment_ios,
            segments: profile.segments.iter().map(|segment| segment.iter().map(uses).collect()).collect(),
        };
        let followers = self.followers.iter().flat_map(|(statement, followers)| {
            followers.iter().map(|(follower, weight)| (*statement, *follower, *weight))
        });
        Memory {
            statements: ranked.into_iter().map(statement).collect(),
            followers: followers.collect(),
            last: self.last,
            ..Memory::default()
        }
    }

    /// What was learned before. What has been seen since counts more.
    pub(super) fn remember(&mut self, memory: Memory) {
        let older = memory.statements.len() as u64;
        self.runs += older;
        self.profiles.values_mut().for_each(|profile| profile.last_run += older);
        for (rank, remembered) in (0..).zip(memory.statements) {
            let uses = |(chunk, uses): (ChunkNo, Reads)| (chunk.0, uses);
            let segments = remembered.segments.into_iter().take(MOST_SEGMENTS);
            let segments = segments.map(|segment| segment.into_iter().map(uses).collect()).collect();
            let profile = Profile::new(segments, remembered.segment_ios, remembered.expected_pages);
            let (last_run, runs) = (older - rank, remembered.runs);
            let known = self.profiles.entry(remembered.statement);
            known.or_insert(Profile { last_run, runs, ..profile });
        }
        for (statement, follower, weight) in memory.followers {
            let weights = self.followers.entry(statement).or_default();
            *weights.entry(follower).or_default() += weight;
        }
        self.last = self.last.or(memory.last);
        self.forget();
    }

    /// Statements that are likely to begin after the last: the chance that it is the very next, and that it comes
    /// within the horizon, further steps discounted. Those that have a profile, in the order of their fingerprints.
    pub(super) fn likely(&self) -> Vec<(Fingerprint, f64, f64)> {
        let Some(last) = self.last else { return Vec::new() };
        let mut chances = BTreeMap::from([(last, 1.0)]);
        let mut found: BTreeMap<Fingerprint, (f64, f64)> = BTreeMap::new();
        let mut discount = 1.0;
        for step in 0..HORIZON {
            let mut next: BTreeMap<Fingerprint, f64> = BTreeMap::new();
            for (statement, chance) in chances {
                // What came after it is not known: anything may, as often as it came so far.
                let any = || self.profiles.iter().map(|(other, profile)| (*other, profile.runs)).collect();
                let followers = self.followers.get(&statement).cloned().unwrap_or_else(any);
                let sum: f64 = followers.values().sum();
                for (follower, weight) in followers {
                    *next.entry(follower).or_default() += chance * weight / sum;
                }
            }
            for (statement, chance) in &next {
                let entry = found.entry(*statement).or_default();
                if step == 0 {
                    entry.0 = *chance;
                }
                entry.1 = entry.1.max(chance * discount);
            }
            discount *= DISCOUNT;
            chances = next;
        }
        let known = found.into_iter().filter(|(statement, _)| self.profiles.contains_key(statement));
        known.map(|(statement, (next, soon))| (statement, next, soon)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(random: f32) -> Profile {
        Profile::new(vec![vec![(7, Reads::random(random))]], 2048.0, 0.0)
    }

    #[test]
    fn runs_are_averaged_and_followers_remembered() {
        let mut history = History::default();
        for (statement, random) in [(1, 10.0), (2, 4.0), (1, 20.0), (2, 4.0), (1, 20.0)] {
            history.begins(Fingerprint(statement));
            history.ended(Fingerprint(statement), run(random));
        }
        assert_eq!(history.profile(Fingerprint(1)).unwrap().totals[&7].random, 17.5);
        let likely = history.likely();
        assert_eq!(likely.len(), 2);
        assert_eq!((likely[1].0, likely[1].1), (Fingerprint(2), 1.0));
        assert_eq!(likely[0].1, 0.0, "1 does not follow itself");
        assert!(likely[0].2 > 0.8, "but it comes after that");
    }

    #[test]
    fn a_second_short_run_replaces_the_known_profile() {
        let mut history = History::default();
        for (random, known) in [(100.0, 100.0), (2.0, 100.0), (100.0, 100.0), (2.0, 100.0), (2.0, 51.0)] {
            history.ended(Fingerprint(1), run(random));
            assert_eq!(history.profile(Fingerprint(1)).unwrap().totals[&7].random, known);
        }
    }

    #[test]
    fn the_oldest_statements_are_forgotten() {
        let mut history = History::default();
        for statement in 0..=MOST_STATEMENTS as u64 {
            history.begins(Fingerprint(statement));
            history.ended(Fingerprint(statement), run(1.0));
        }
        assert!(history.profile(Fingerprint(0)).is_none() && history.profile(Fingerprint(1)).is_some());
    }
}
