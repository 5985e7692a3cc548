//! Kvsets of a root that a spill or a merge is about to take away.

use std::collections::BTreeSet;

use crate::tree::KvsetNo;

/// Kvsets of a root that a spill or a merge is about to take away.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    pub(crate) kvsets: BTreeSet<KvsetNo>,
    /// A caller was refused and is notified at the end.
    pub(crate) is_wanted: bool,
}

impl Taken {
    /// Returns true if any of them is claimed. The caller is then notified when a claim ends, of these or of others.
    pub(crate) fn has_any(&mut self, numbers: &[KvsetNo]) -> bool {
        let has_any = numbers.iter().any(|no| self.kvsets.contains(no));
        self.is_wanted |= has_any;
        has_any
    }
}
