//! Objects of a store that may lie elsewhere than they are meant to.

use std::collections::BTreeSet;

use parking_lot::Mutex;

use crate::objects::ObjectKind;
use crate::tree::{TreeState, referenced};

/// Objects of a store that may lie elsewhere than they are meant to, because the volume's classes have changed.
#[derive(Debug, Default)]
pub(crate) struct Unsettled(Mutex<BTreeSet<ObjectKey>>);

pub(crate) type ObjectKey = (ObjectKind, u64);

impl Unsettled {
    /// All of a tree's.
    pub(crate) fn note_all(&self, tree: &TreeState) {
        let keys = tree.kvsets().map(|kvset| (ObjectKind::Keys, kvset.no()));
        let values = tree.kvsets().flat_map(referenced).map(|no| (ObjectKind::Segment, no));
        *self.0.lock() = keys.chain(values).collect();
    }

    pub(crate) fn has(&self, key: ObjectKey) -> bool {
        self.0.lock().contains(&key)
    }

    pub(crate) fn settle(&self, key: ObjectKey) {
        self.0.lock().remove(&key);
    }
}
