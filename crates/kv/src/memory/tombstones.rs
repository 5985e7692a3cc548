//! Range tombstones of a memory table: they are added one by one, and each read asks for them.
//!
//! The last few are in a list that is searched from end to end; when it is long, compared with what is prepared for searching, all of them are
//! prepared anew. So adding costs a logarithm's share of preparing, and asking a binary search and a short list.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::RwLock;

use crate::entry::{RangeTombstone, SequenceNo};
use crate::tombstone::RangeTombstones;

/// Longest list, unless more are prepared.
const LONGEST_LIST: usize = 32;

#[derive(Debug, Default)]
struct Lists {
    prepared: Arc<RangeTombstones>,
    prepared_count: usize,
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
        if lists.recent.len() > LONGEST_LIST.max(lists.prepared_count / 4) {
            prepare(&mut lists);
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
        recent.map(|tombstone| tombstone.sequence).max().max(lists.prepared.newest_over(key, snapshot))
    }

    /// All of them now.
    pub(crate) fn all(&self) -> Arc<RangeTombstones> {
        if self.is_empty() {
            return Arc::default();
        }
        let mut lists = self.lists.write();
        if !lists.recent.is_empty() {
            prepare(&mut lists);
        }
        lists.prepared.clone()
    }
}

fn prepare(lists: &mut Lists) {
    let mut all: Vec<RangeTombstone> = lists.prepared.iter().cloned().collect();
    all.append(&mut lists.recent);
    lists.prepared_count = all.len();
    lists.prepared = Arc::new(RangeTombstones::new(all));
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    #[test]
    fn many_answer_as_a_list_does() {
        let tombstones = GrowingTombstones::default();
        assert!(tombstones.is_empty());
        let mut list = Vec::new();
        for sequence in 1..300u64 {
            let start = sequence * 7919 % 251;
            let end = (sequence % 5 != 0).then(|| Bytes::from(vec![(start + sequence % 17).min(255) as u8]));
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
    }
}
