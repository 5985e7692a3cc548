//! Deleting what a database needs no more: segments of the log that are neither replayed nor referenced, and objects
//! that were retired and that nobody reads any more.

use std::collections::BTreeSet;

use super::core::{Core, Writing};
use crate::Result;
use crate::entry::SegmentNo;
use crate::log::Lsn;
use crate::notify::Notify;
use crate::objects::{ObjectKind, Objects};

impl Core {
    /// Segments that trees reference or have as mirrors, over all stores.
    pub(crate) fn held_segments(&self) -> BTreeSet<SegmentNo> {
        let mut held = self.referenced_segments();
        let stores = self.stores.read();
        held.extend(stores.iter().flat_map(|store| store.view.read().tree.mirrors.clone().into_keys()));
        held
    }

    pub(super) fn forget_log_before(&self, writing: &Writing, begin: Lsn) {
        let forgotten = writing.log.forget_before(begin);
        if forgotten.is_empty() {
            return;
        }
        let held = self.held_segments();
        for placed in forgotten.into_iter().filter(|placed| !held.contains(&placed.no)) {
            placed.segment.retire();
        }
    }

    /// Log segments that a tree referenced and does not any more: deleted if nobody else does.
    pub(crate) fn release_segments(&self, writing: &Writing, segments: &[SegmentNo]) {
        if segments.is_empty() {
            return;
        }
        let needed: BTreeSet<SegmentNo> = writing.log.segments().into_iter().collect();
        let held = self.held_segments();
        for no in segments.iter().filter(|no| !needed.contains(no) && !held.contains(no)) {
            if let Ok(segment) = self.opener.segments.open(*no) {
                segment.retire();
            }
        }
    }

    /// Deletes objects that nobody needs any more.
    pub(crate) async fn delete_retired(&self) -> Result<()> {
        while let Some((kind, no)) = self.objects.take_retired() {
            // CRASH: no manifest references it; the next opening deletes it.
            self.crash.reached("object.before-deletion");
            let mut taken =
                Taken { objects: &self.objects, work: Some(&self.background.work), object: Some((kind, no)) };
            let deleted = self.objects.delete(kind, no).await;
            match deleted {
                Ok(()) => taken.object = None,
                // A repetition would fail at once.
                Err(_) => taken.work = None,
            }
            deleted?;
            self.counters.deleted_objects.add(1);
        }
        self.opener.cache.forget_gone().await;
        Ok(())
    }
}

/// A retired object that is being deleted, and is retired still if that comes to nothing.
struct Taken<'a> {
    objects: &'a Objects,
    /// Workers that finish the deletion if the caller is dropped.
    work: Option<&'a Notify>,
    object: Option<(ObjectKind, u64)>,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        if let Some((kind, no)) = self.object {
            self.objects.give_back_retired(kind, no);
            self.work.into_iter().for_each(Notify::notify);
        }
    }
}
