//! What must be in a database, and what may be.
//!
//! Each writer owns the keys that begin with its letter, in all stores, and writes one batch after the other. With each
//! it puts the batch's number under a key of its own, so what is found says how many of its batches are there.
//!
//! After a power cut, for each writer:
//! - what is found is exactly what its first `n` batches make: no batch is there in part, none is missing in between;
//! - `n` covers all that was acknowledged as durable, and all whose time to become durable was over;
//! - what is lost is a suffix over all writers: nobody's batch is there that began after a lost one was acknowledged.
//!
//! A copy of the database is judged the same way: it has what all writers had acknowledged when it was asked for, and
//! nothing that they began afterwards.
//!
//! Keys that several share are the subject of [`super::contention`], a store that comes and goes that of
//! [`super::lodger`], and what expires that of [`super::brief`], settings that of [`super::tuning`].

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::brief::Brief;
use super::contention::{self, Contended};
use super::lodger::Lodger;
use super::tuning::{Settings, Tuned};
use crate::history::{Key, Value};

/// Stores of the database.
pub(super) const STORES: usize = 2;

/// What one batch does to one store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Change {
    Put(usize, Vec<u8>, Vec<u8>),
    Delete(usize, Vec<u8>),
    /// From the first key to the one behind the last.
    DeleteRange(usize, Vec<u8>, Vec<u8>),
}

/// How far a batch got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// It was asked for.
    Asked,
    /// It was acknowledged then, and is to be durable then.
    Acknowledged { at: Duration, durable_at: Duration },
    /// It failed: it may be there or not.
    Failed,
}

#[derive(Debug, Clone)]
pub(super) struct Written {
    changes: Vec<Change>,
    pub(super) asked_at: Duration,
    pub(super) progress: Progress,
}

/// The keys and values of a store.
pub(super) type Keys = BTreeMap<Vec<u8>, Vec<u8>>;

/// The keys and values of all stores.
pub(super) type State = [Keys; STORES];

/// One writer's batches.
#[derive(Debug, Clone, Default)]
pub(super) struct Writer {
    pub(super) letter: u8,
    /// What there was before the first,
    base: State,
    /// and how many batches had made it.
    before: u64,
    pub(super) written: Vec<Written>,
}

/// The number of batches under a writer's own key: 0 if there is none, `None` if it is no number.
fn count_in(state: &State, counter: &[u8]) -> Option<u64> {
    match state[0].get(counter) {
        None => Some(0),
        Some(value) => Some(u64::from_be_bytes(value.as_slice().try_into().ok()?)),
    }
}

fn apply(state: &mut State, change: &Change) {
    match change {
        Change::Put(store, key, value) => {
            state[*store].insert(key.clone(), value.clone());
        }
        Change::Delete(store, key) => {
            state[*store].remove(key);
        }
        Change::DeleteRange(store, start, end) => {
            if start < end {
                let gone: Vec<Vec<u8>> =
                    state[*store].range(start.clone()..end.clone()).map(|(key, _)| key.clone()).collect();
                gone.iter().for_each(|key| drop(state[*store].remove(key)));
            }
        }
    }
}

impl Writer {
    pub(super) fn new(letter: u8) -> Writer {
        Writer { letter, ..Writer::default() }
    }

    /// The key that counts its batches.
    pub(super) fn counter(&self) -> Vec<u8> {
        vec![self.letter, b'#']
    }

    /// What the batch that is begun next puts under the writer's own key.
    pub(super) fn next_count(&self) -> Vec<u8> {
        (self.before + self.written.len() as u64 + 1).to_be_bytes().to_vec()
    }

    /// A batch begins; its number.
    pub(super) fn begin(&mut self, mut changes: Vec<Change>, asked_at: Duration) -> (usize, Vec<Change>) {
        let no = self.written.len();
        changes.push(Change::Put(0, self.counter(), self.next_count()));
        self.written.push(Written { changes: changes.clone(), asked_at, progress: Progress::Asked });
        (no, changes)
    }

    /// What its first batches make.
    pub(super) fn after(&self, batches: usize) -> State {
        let mut state = self.base.clone();
        for written in &self.written[..batches] {
            written.changes.iter().for_each(|change| apply(&mut state, change));
        }
        state
    }

    /// What was found is what there is from now on.
    pub(super) fn continue_from(&mut self, state: State) {
        self.before = count_in(&state, &self.counter()).unwrap_or_default();
        (self.base, self.written) = (state, Vec::new());
    }

    /// The fewest batches that must be there at `now`.
    fn floor(&self, now: Duration) -> usize {
        let is_durable = |written: &Written| match written.progress {
            Progress::Acknowledged { durable_at, .. } => durable_at <= now,
            Progress::Asked | Progress::Failed => false,
        };
        self.written.iter().rposition(is_durable).map_or(0, |last| last + 1)
    }

    /// How many of its batches are found in `state`, which has no other writer's keys, after a power cut at `now`.
    pub(super) fn found(&self, state: &State, now: Duration) -> Result<usize, String> {
        self.found_within(state, &(self.floor(now)..=self.written.len()))
    }

    /// The fewest and the most of its batches that who reads now may see.
    fn seen_now(&self) -> RangeInclusive<usize> {
        let is_acknowledged = |written: &Written| matches!(written.progress, Progress::Acknowledged { .. });
        let acknowledged = self.written.iter().rposition(is_acknowledged).map_or(0, |last| last + 1);
        acknowledged..=self.written.len()
    }

    /// How many of its batches are found in `state`, which has no other writer's keys, and has to have so many.
    fn found_within(&self, state: &State, bounds: &RangeInclusive<usize>) -> Result<usize, String> {
        let name = char::from(self.letter);
        let all =
            count_in(state, &self.counter()).ok_or_else(|| format!("writer {name}: its count is torn"))?;
        let count = all
            .checked_sub(self.before)
            .ok_or_else(|| format!("writer {name}: only {all} batches are there"))?;
        let count = count as usize;
        let (floor, most) = (*bounds.start(), *bounds.end());
        if count < floor || count > most {
            return Err(format!(
                "writer {name}: {count} batches are there, of {most}, and {floor} were durable or are to be seen"
            ));
        }
        let expected = self.after(count);
        for store in 0..STORES {
            if let Some(what) = difference(&state[store], &expected[store]) {
                return Err(format!("writer {name}, store {store}, after {count} batches of {most}: {what}"));
            }
        }
        Ok(count)
    }
}

/// The first difference of what is found to what is expected.
pub(super) fn difference(found: &Keys, expected: &Keys) -> Option<String> {
    let name = |key: &[u8]| String::from_utf8_lossy(key).into_owned();
    for (key, value) in expected {
        match found.get(key) {
            None => return Some(format!("key {:?} is missing", name(key))),
            Some(other) if other != value => {
                return Some(format!(
                    "key {:?} has another value: {} bytes {:02x?} instead of {} bytes {:02x?}",
                    name(key),
                    other.len(),
                    &other[..other.len().min(8)],
                    value.len(),
                    &value[..value.len().min(8)]
                ));
            }
            Some(_) => {}
        }
    }
    found
        .keys()
        .find(|key| !expected.contains_key(*key))
        .map(|key| format!("key {:?} should not be there", name(key)))
}

/// The number of the writer that [`Lodger`] has.
pub(super) const LODGER: usize = usize::MAX;

/// What is found in a database.
#[derive(Debug, Clone, Default)]
pub(super) struct Found {
    pub(super) stores: State,
    /// The store that comes and goes, if it is there.
    pub(super) lodger: Option<Keys>,
    /// What there is of what expires, if the story has it, and the seconds on the wall within which it was read.
    pub(super) brief: Option<(Keys, RangeInclusive<u64>)>,
    pub(super) settings: Option<Settings>,
}

/// All writers.
#[derive(Debug, Clone, Default)]
pub(super) struct Model {
    pub(super) writers: Vec<Writer>,
    pub(super) lodger: Lodger,
    pub(super) contended: Contended,
    pub(super) brief: Brief,
    pub(super) tuned: Tuned,
}

impl Model {
    /// The writer of that number.
    pub(super) fn writer(&self, no: usize) -> &Writer {
        self.writers.get(no).unwrap_or(&self.lodger.writer)
    }

    /// The same, to change it.
    pub(super) fn writer_mut(&mut self, no: usize) -> &mut Writer {
        self.writers.get_mut(no).unwrap_or(&mut self.lodger.writer)
    }

    /// The database was closed: all that was acknowledged is durable.
    pub(super) fn closed(&mut self) {
        let writers = self.writers.iter_mut().chain([&mut self.lodger.writer]);
        for written in writers.flat_map(|writer| &mut writer.written) {
            if let Progress::Acknowledged { durable_at, .. } = &mut written.progress {
                *durable_at = Duration::ZERO;
            }
        }
        self.contended.closed();
        self.brief.closed();
    }

    /// What writers may see of their batches now, and who copies the database: the fewest and the most.
    pub(super) fn seen_now(&self) -> Vec<RangeInclusive<usize>> {
        self.writers.iter().map(Writer::seen_now).collect()
    }

    /// Judges what is found in a copy that was asked for when so many batches were to be seen.
    pub(super) fn judge_copy(&self, stores: &State, bounds: &[RangeInclusive<usize>]) -> Result<(), String> {
        let (states, _) = self.by_writer(stores)?;
        for ((writer, state), bounds) in self.writers.iter().zip(&states).zip(bounds) {
            writer.found_within(state, bounds)?;
        }
        Ok(())
    }

    /// What is found of each writer, and of keys that several share.
    fn by_writer(&self, stores: &State) -> Result<(Vec<State>, BTreeMap<Key, Value>), String> {
        let mut states: Vec<State> = vec![State::default(); self.writers.len()];
        let mut contended = BTreeMap::new();
        for (store, keys) in stores.iter().enumerate() {
            for (key, value) in keys {
                if let Some(no) = contention::key_no(store, key) {
                    contended.insert(no, contention::value_no(value)?);
                    continue;
                }
                let owner = self.writers.iter().position(|writer| key.first() == Some(&writer.letter));
                let Some(owner) = owner else {
                    return Err(format!("store {store}: nobody wrote key {key:02x?}"));
                };
                states[owner][store].insert(key.clone(), value.clone());
            }
        }
        Ok((states, contended))
    }

    /// Judges what is found after a power cut at `now`, and goes on from there.
    pub(super) fn judge(&mut self, found: &Found, now: Duration) -> Result<(), String> {
        let (states, contended) = self.by_writer(&found.stores)?;
        self.contended.judge(&contended, now)?;
        self.brief.judge(found.brief.as_ref(), now)?;
        self.tuned.judge(found.settings.as_ref())?;
        let mut counts = Vec::new();
        for (writer, state) in self.writers.iter().zip(&states) {
            counts.push(writer.found(state, now)?);
        }
        let lodgers = self.lodger.found(found.lodger.as_ref(), now)?;
        let counted = || {
            let lodger = lodgers.iter().map(|count| (&self.lodger.writer, count));
            self.writers.iter().zip(&counts).chain(lodger)
        };
        let last_asked = |(writer, count): (&Writer, &usize)| {
            count.checked_sub(1).map(|last| writer.written[last].asked_at)
        };
        let newest = counted().filter_map(last_asked).max();
        for (writer, count) in counted() {
            let Some(lost) = writer.written.get(*count) else { continue };
            if let (Progress::Acknowledged { at, .. }, Some(newest)) = (lost.progress, newest)
                && at < newest
            {
                let name = char::from(writer.letter);
                return Err(format!(
                    "writer {name}: batch {count}, acknowledged at {at:?}, is lost, and one that began at {newest:?} is there"
                ));
            }
        }
        for (writer, state) in self.writers.iter_mut().zip(states) {
            writer.continue_from(state);
        }
        self.lodger.continue_from(found.lodger.as_ref());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keyvalue::lodger::Stay;

    const SECOND: Duration = Duration::from_secs(1);

    fn put(key: &[u8], value: &[u8]) -> Change {
        Change::Put(1, key.to_vec(), value.to_vec())
    }

    fn written(writer: &mut Writer, changes: Vec<Change>, at: u32, durable_at: u32) {
        let (no, _) = writer.begin(changes, SECOND * at);
        writer.written[no].progress =
            Progress::Acknowledged { at: SECOND * at, durable_at: SECOND * durable_at };
    }

    fn two() -> Model {
        let mut model = Model { writers: vec![Writer::new(b'a'), Writer::new(b'b')], ..Model::default() };
        written(&mut model.writers[0], vec![put(b"a1", b"x")], 1, 1);
        written(&mut model.writers[0], vec![Change::Delete(1, b"a1".to_vec())], 3, 10);
        written(&mut model.writers[1], vec![put(b"b1", b"y"), put(b"b2", b"z")], 5, 10);
        model
    }

    fn both(model: &Model, counts: [usize; 2]) -> Found {
        let mut stores = model.writers[0].after(counts[0]);
        for (store, keys) in model.writers[1].after(counts[1]).into_iter().enumerate() {
            stores[store].extend(keys);
        }
        Found { stores, ..Found::default() }
    }

    #[test]
    fn a_suffix_may_be_lost_and_nothing_else() {
        let model = two();
        for counts in [[1, 0], [2, 0], [2, 1]] {
            assert_eq!(model.clone().judge(&both(&model, counts), SECOND * 6), Ok(()), "{counts:?}");
        }
        let judged = |counts| model.clone().judge(&both(&model, counts), SECOND * 6).unwrap_err();
        assert!(judged([0, 0]).contains("1 were durable"), "{}", judged([0, 0]));
        assert!(judged([1, 1]).contains("is lost"), "{}", judged([1, 1]));
        // Later all of it has to be there.
        assert!(model.clone().judge(&both(&model, [2, 0]), SECOND * 11).is_err());
    }

    #[test]
    fn a_batch_is_there_as_a_whole_or_not_at_all() {
        let model = two();
        let mut found = both(&model, [2, 1]);
        found.stores[1].remove(&b"b2"[..]);
        assert!(model.clone().judge(&found, SECOND * 6).unwrap_err().contains("missing"));
        found.stores[1].insert(b"b2".to_vec(), b"other".to_vec());
        assert!(model.clone().judge(&found, SECOND * 6).unwrap_err().contains("another value"));
        found.stores[1].insert(b"b2".to_vec(), b"z".to_vec());
        assert_eq!(model.clone().judge(&found, SECOND * 6), Ok(()));
        found.stores[1].insert(b"a1".to_vec(), b"x".to_vec());
        assert!(model.clone().judge(&found, SECOND * 6).unwrap_err().contains("should not be there"));
    }

    /// A store that comes and goes is there from its making to its dropping, with what was written to it and nothing
    /// else.
    #[test]
    fn checkpoints_contain_acknowledged_and_no_later_writes() {
        let mut model = Model { writers: vec![Writer::new(b'a')], ..Model::default() };
        let writer = &mut model.writers[0];
        written(writer, vec![put(b"a1", b"1")], 1, 9);
        writer.begin(vec![put(b"a1", b"2")], SECOND * 2);
        let bounds = model.seen_now();
        written(&mut model.writers[0], vec![put(b"a2", b"3")], 3, 9);
        let judged = |batches| model.judge_copy(&model.writers[0].after(batches), &bounds);
        assert_eq!([judged(1), judged(2)], [Ok(()), Ok(())]);
        assert!(judged(0).is_err() && judged(3).is_err());
        let mut torn = model.writers[0].after(2);
        torn[1].clear();
        assert!(model.judge_copy(&torn, &bounds).is_err());
    }

    #[test]
    fn a_store_is_there_while_it_stays() {
        let mut model = two();
        let here = |model: &Model, count| Some(model.lodger.writer.after(count)[0].clone());
        let judged = |model: &Model, lodger, at: u32| {
            model.clone().judge(&Found { lodger, ..both(model, [2, 1]) }, SECOND * at)
        };
        assert_eq!(judged(&model, None, 6), Ok(()));
        assert!(judged(&model, here(&model, 0), 6).unwrap_err().contains("dropped"));
        model.lodger.stay = Stay::Coming;
        assert_eq!(judged(&model, None, 6), Ok(()));
        assert_eq!(judged(&model, here(&model, 0), 6), Ok(()));
        model.lodger.stay = Stay::Here;
        written(&mut model.lodger.writer, vec![Change::Put(0, b"l1".to_vec(), b"v".to_vec())], 4, 8);
        assert!(judged(&model, None, 6).unwrap_err().contains("not there"));
        // What was acknowledged at 4 may be lost at 6, but not if what began at 5 is there.
        assert!(judged(&model, here(&model, 0), 6).unwrap_err().contains("is lost"));
        assert_eq!(judged(&model, here(&model, 1), 6), Ok(()));
        assert!(judged(&model, here(&model, 0), 9).unwrap_err().contains("were durable"));
        model.lodger.stay = Stay::Leaving;
        assert_eq!(judged(&model, None, 9), Ok(()));
        assert_eq!(judged(&model, here(&model, 1), 9), Ok(()));
        model.lodger.stay = Stay::Coming;
        assert!(judged(&model, here(&model, 1), 9).unwrap_err().contains("being made"));
    }
}
