//! Range tombstones of a memtable: they are added one by one, and each read asks for them.
//!
//! The last few are in a list that is searched from end to end. When that is full they are prepared for searching, as a
//! *set*, together with the last sets that are not much larger; so sets are few, and each is larger than the one behind
//! it. The largest are not prepared again: who adds would wait for that. Adding costs a logarithm's share of preparing,
//! and asking a binary search in each set.

use std::sync::Arc;

use super::sync::{AtomicBool, Ordering, RwLock};
use crate::entry::{RangeTombstone, SequenceNo};
use crate::tombstone::RangeTombstones;

/// Most tombstones of a list that is not prepared.
const MAX_LIST_LEN: usize = 32;

/// A prepared set of this size is not merged with others.
const MAX_PREPARED_LEN: usize = 4096;

#[derive(Debug, Default)]
struct Lists {
    /// Largest first.
    sets: Vec<Arc<RangeTombstones>>,
    recent: Vec<RangeTombstone>,
}

/// Range tombstones that grow.
#[derive(Debug, Default)]
pub(crate) struct GrowingTombstones {
    is_used: AtomicBool,
    lists: RwLock<Lists>,
}

impl GrowingTombstones {
    pub(crate) fn add(&self, tombstone: RangeTombstone) {
        let mut lists = self.lists.write();
        lists.recent.push(tombstone);
        if lists.recent.len() >= MAX_LIST_LEN {
            lists.prepare();
        }
        self.is_used.store(true, Ordering::Release);
    }

    pub(crate) fn is_empty(&self) -> bool {
        !self.is_used.load(Ordering::Acquire)
    }

    /// The newest over `key` that `snapshot` sees.
    #[inline]
    pub(crate) fn newest_over(&self, key: &[u8], snapshot: SequenceNo) -> Option<SequenceNo> {
        if self.is_empty() {
            return None;
        }
        let lists = self.lists.read();
        let recent = lists.recent.iter();
        let recent = recent.filter(|tombstone| tombstone.sequence <= snapshot && tombstone.covers(key));
        let prepared = lists.sets.iter().filter_map(|set| set.newest_over(key, snapshot));
        recent.map(|tombstone| tombstone.sequence).chain(prepared).max()
    }

    /// All of them now, in sets.
    pub(crate) fn sets(&self) -> Vec<Arc<RangeTombstones>> {
        if self.is_empty() {
            return Vec::new();
        }
        let lists = self.lists.read();
        let mut sets = lists.sets.clone();
        if !lists.recent.is_empty() {
            sets.push(Arc::new(RangeTombstones::new(lists.recent.clone())));
        }
        sets
    }

    /// All of them now, in one.
    pub(crate) fn all(&self) -> RangeTombstones {
        RangeTombstones::new(self.sets().iter().flat_map(|set| set.iter().cloned()).collect())
    }
}

impl Lists {
    fn prepare(&mut self) {
        let mut all = std::mem::take(&mut self.recent);
        while let Some(last) = self.sets.pop_if(|last| last.len() < MAX_PREPARED_LEN.min(2 * all.len())) {
            all.extend(last.iter().cloned());
        }
        self.sets.push(Arc::new(RangeTombstones::new(all)));
        debug_assert!(self.sets.windows(2).all(|two| two[0].len() >= MAX_PREPARED_LEN.min(two[1].len())));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    #[test]
    fn many_answer_as_a_list_does() {
        super::super::sync::model(|| {
            let tombstones = GrowingTombstones::default();
            assert!(tombstones.is_empty());
            let mut list = Vec::new();
            for sequence in 1..300u64 {
                let start = sequence * 7919 % 251;
                let end =
                    (sequence % 5 != 0).then(|| Bytes::from(vec![(start + sequence % 17).min(255) as u8]));
                let tombstone = RangeTombstone { start: Bytes::from(vec![start as u8]), end, sequence };
                list.push(tombstone.clone());
                tombstones.add(tombstone);
                for key in (0..=255u8).step_by(13) {
                    let snapshot = sequence - sequence / 3;
                    let expected = list.iter().filter(|one| one.covers(&[key]) && one.sequence <= snapshot);
                    let expected = expected.map(|one| one.sequence).max();
                    assert_eq!(tombstones.newest_over(&[key], snapshot), expected);
                }
            }
            assert_eq!(tombstones.all().newest_over(&[9], 400), tombstones.newest_over(&[9], 400));
            let sets = tombstones.sets();
            assert_eq!(
                sets.iter().filter_map(|set| set.newest_over(&[9], 200)).max(),
                tombstones.newest_over(&[9], 200)
            );
            assert!(sets.len() <= 6, "{} sets", sets.len());
        });
    }
}
