//! Deleting what a database needs no more: segments of the log that are neither replayed nor referenced, and objects
//! that were retired and that nobody reads any more.

use std::collections::BTreeSet;

use crate::Result;
use crate::database::shared::Writing;
use crate::database::space::account::SpaceManager;
use crate::entry::SegmentNo;
use crate::log::Lsn;
use crate::notify::Notify;
use crate::objects::{ObjectKind, Objects};

impl SpaceManager {
    /// Segments that trees reference or have as mirrors, over all stores.
    pub(crate) fn held_segments(&self) -> BTreeSet<SegmentNo> {
        let mut held = self.referenced_segments();
        let stores = self.shared.stores.read();
        held.extend(stores.iter().flat_map(|store| store.view.read().tree.mirrors.clone().into_keys()));
        held
    }

    pub(crate) fn forget_log_before(&self, writing: &Writing, begin: Lsn) {
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
            if let Ok(segment) = self.shared.opener.segments.open(*no) {
                segment.retire();
            }
        }
    }

    /// Deletes objects that nobody needs any more.
    pub(crate) async fn delete_retired(&self) -> Result<()> {
        while let Some((kind, no)) = self.shared.objects.take_retired() {
            // CRASH: no manifest references it; the next opening deletes it.
            self.shared.crash.reached("object.before-deletion");
            let mut taken = Taken {
                objects: &self.shared.objects,
                work: Some(&self.shared.background.work),
                object: Some((kind, no)),
            };
            let deleted = self.shared.objects.delete(kind, no).await;
            match deleted {
                Ok(()) => taken.object = None,
                // A repetition would fail at once.
                Err(_) => taken.work = None,
            }
            deleted?;
            self.shared.counters.deleted_objects.add(1);
        }
        self.shared.opener.cache.forget_gone().await;
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
