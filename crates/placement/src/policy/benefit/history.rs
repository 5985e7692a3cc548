//! What earlier runs of statements read, chunk by chunk, and which statement followed which.
//!
//! 1. While a query runs, its I/Os are counted per chunk. At its end the counts are averaged with what its statement is known for, the newest
//!    counting half.
//! 2. That a statement began after another counts for the pair; older pairs fade.
//! 3. [`History::likely`] walks those chances some steps ahead.
//!
//! Invariant: statements and their chunks are bounded; the statement that was not seen for longest is forgotten first.

use std::collections::BTreeMap;

use crate::footprint::Fingerprint;

/// Statements that are remembered.
const MOST_STATEMENTS: usize = 256;

/// Chunks that are remembered, of all statements together.
const MOST_CHUNKS: usize = 4 << 20;

/// How much the newest run counts.
const NEWEST: f32 = 0.5;

/// What is left of a pair's weight when another one occurs.
const FADING: f64 = 0.8;

/// Steps that are looked ahead.
const HORIZON: usize = 9;

/// What a further step is worth less.
const DISCOUNT: f64 = 0.85;

/// What one query reads of one chunk.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Use {
    /// Reads at random.
    pub(super) random: f32,
    /// Bytes in sequence.
    pub(super) bytes: f32,
    /// When in the query it is read last, as a share of the query's I/Os.
    pub(super) first: f32,
    /// When in the query it is read last, likewise.
    pub(super) last: f32,
}

/// A statement's uses.
#[derive(Debug, Clone, Default)]
pub(super) struct Profile {
    pub(super) uses: BTreeMap<u32, Use>,
    /// I/Os of a run.
    pub(super) ios: f64,
    /// Pages that its plan expected.
    pub(super) expected_pages: f64,
    pub(super) last_run: u64,
}

#[derive(Debug, Default)]
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
            let blend = |old: f32, new: f32| old * (1.0 - NEWEST) + new * NEWEST;
            for (no, old) in &mut known.uses {
                let new = run.uses.get(no).copied().unwrap_or(Use { first: old.first, last: old.last, ..Use::default() });
                old.random = blend(old.random, new.random);
                old.bytes = blend(old.bytes, new.bytes);
                (old.first, old.last) = (old.first.min(new.first), old.last.max(new.last));
            }
            for (no, new) in run.uses {
                let halved = Use { random: new.random * NEWEST, bytes: new.bytes * NEWEST, ..new };
                known.uses.entry(no).or_insert(halved);
            }
            known.uses.retain(|_, uses| uses.random > 0.1 || uses.bytes > 1.0);
            known.ios = (known.ios + run.ios) / 2.0;
            known.expected_pages = (known.expected_pages + run.expected_pages) / 2.0;
        }
        known.last_run = runs;
        self.forget();
    }

    fn forget(&mut self) {
        let chunks = |history: &History| history.profiles.values().map(|profile| profile.uses.len()).sum::<usize>();
        while self.profiles.len() > MOST_STATEMENTS || (self.profiles.len() > 1 && chunks(self) > MOST_CHUNKS) {
            let oldest = self.profiles.iter().min_by_key(|(_, profile)| profile.last_run);
            let Some(oldest) = oldest.map(|(statement, _)| *statement) else { return };
            self.profiles.remove(&oldest);
            self.followers.remove(&oldest);
            self.followers.values_mut().for_each(|followers| {
                followers.remove(&oldest);
            });
        }
    }

    /// Statements that are likely to begin after the last: the chance that it is the very next, and that it comes within the horizon, further
    /// steps discounted. Those that have a profile, in the order of their fingerprints.
    pub(super) fn likely(&self) -> Vec<(Fingerprint, f64, f64)> {
        let Some(last) = self.last else { return Vec::new() };
        let mut chances = BTreeMap::from([(last, 1.0)]);
        let mut found: BTreeMap<Fingerprint, (f64, f64)> = BTreeMap::new();
        let mut discount = 1.0;
        for step in 0..HORIZON {
            let mut next: BTreeMap<Fingerprint, f64> = BTreeMap::new();
            for (statement, chance) in chances {
                let Some(followers) = self.followers.get(&statement) else { continue };
                let sum: f64 = followers.values().sum();
                for (follower, weight) in followers {
                    *next.entry(*follower).or_default() += chance * weight / sum;
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
        let uses = BTreeMap::from([(7, Use { random, bytes: 0.0, first: 0.0, last: 1.0 })]);
        Profile { uses, ios: f64::from(random), ..Profile::default() }
    }

    #[test]
    fn runs_are_averaged_and_followers_remembered() {
        let mut history = History::default();
        for (statement, random) in [(1, 10.0), (2, 4.0), (1, 20.0), (2, 4.0), (1, 20.0)] {
            history.begins(Fingerprint(statement));
            history.ended(Fingerprint(statement), run(random));
        }
        assert_eq!(history.profile(Fingerprint(1)).unwrap().uses[&7].random, 17.5);
        let likely = history.likely();
        assert_eq!(likely.len(), 2);
        assert_eq!((likely[1].0, likely[1].1), (Fingerprint(2), 1.0));
        assert_eq!(likely[0].1, 0.0, "1 does not follow itself");
        assert!(likely[0].2 > 0.8, "but it comes after that");
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
