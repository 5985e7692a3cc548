//! Mirrors of an object's chunks go before the first byte of their homes changes, durably.

use std::sync::atomic::Ordering;

use super::Object;
use crate::Result;
use crate::metadata::Record;

impl Object {
    /// Drops the mirror of a chunk that is held exclusively, so that no stop can leave it beside a home that has
    /// changed.
    pub(super) async fn drop_mirror_before_write(&self, chunk: u64) -> Result<()> {
        let has_mirror =
            self.state.table.read().chunk(chunk).is_some_and(|chunk| chunk.mirror.get().is_some());
        if has_mirror {
            // CRASH: home and mirror are the same still.
            self.core.crash.reached("write.before-mirror-drop");
            self.forget_mirror(chunk);
        }
        let lsn = self.state.dropped_mirrors.load(Ordering::SeqCst);
        if lsn == 0 {
            return Ok(());
        }
        self.core.commit(lsn).await?;
        let _ = self.state.dropped_mirrors.compare_exchange(lsn, 0, Ordering::SeqCst, Ordering::SeqCst);
        // CRASH: the mirror is gone for good, and the home has not changed yet.
        self.core.crash.reached("write.after-mirror-drop");
        Ok(())
    }

    /// Takes a chunk's mirror out of the mapping.
    pub(crate) fn forget_mirror(&self, chunk: u64) -> u64 {
        let (mirror, lsn) = self.core.journal.change(|queue| {
            let table = self.state.table.read();
            let cell = &table.chunk(chunk)?.mirror;
            let place = cell.get()?;
            self.state.dropped_mirrors.fetch_max(queue.lsn(), Ordering::SeqCst);
            cell.set(None);
            queue.push(&Record::Unmirrored { id: self.state.id, chunk });
            Some(place)
        });
        self.core.retire(mirror, lsn);
        lsn
    }
}
