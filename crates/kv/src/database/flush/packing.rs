//! Values of memtables in segments of their own.
//!
//! Where a few keys are overwritten again and again, most of the log is garbage by the time a table is flushed, and
//! the root holds on to all of it: twice the space of what is in use, which mirrors would rather have. So the values of
//! such a table, which are in memory still, are *packed*: written once more, side by side, and nothing refers to the
//! log any more. A spill leaves them behind as mirrors as they are; of log segments that are mostly garbage it would
//! write copies for that.
//!
//! Such a segment is to the tree what a segment of the log is: kvsets of the root refer to it, and nothing else says
//! that it is there.
//!
//! Whether a table is worth it is told by the one before: what share of its versions nobody can see.

use crate::tuning::writes::FLUSHES;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::database::flush::flusher::Flusher;
use crate::database::state::store_state::StoreState;
use crate::entry::{Content, Version};
use crate::memory::{Memtable, TableValues};
use crate::objects::{Lease, ObjectKind, Objects};
use crate::value::{HEADER_BYTES, SegmentWriter};
use crate::written::Purpose;
use crate::{Error, Result};

/// The whole, in parts per thousand.
const PER_MILLE: u64 = 1000;

/// What the last flushed memtable predicts for the next one.
#[derive(Debug)]
pub(crate) struct Kept {
    per_thousand: AtomicU64,
}

impl Default for Kept {
    fn default() -> Kept {
        Kept { per_thousand: AtomicU64::new(PER_MILLE) }
    }
}

impl Kept {
    /// Notes that of `versions` of a memtable `kept` were visible.
    pub(crate) fn note(&self, versions: u64, kept: u64) {
        let per_thousand = (kept * PER_MILLE).checked_div(versions).unwrap_or(PER_MILLE);
        self.per_thousand.store(per_thousand, Ordering::Relaxed);
    }

    /// Bytes that probably are left of `table_bytes`; `None` if that is most of them.
    fn left_of(&self, table_bytes: u64) -> Option<u64> {
        let per_thousand = self.per_thousand.load(Ordering::Relaxed);
        (per_thousand <= FLUSHES.max_visible_per_mille)
            .then(|| table_bytes.saturating_mul(per_thousand) / PER_MILLE)
    }
}

/// Packs the values of a table that is being flushed.
pub(crate) struct Packing<'a> {
    lease: Lease,
    writer: SegmentWriter,
    values: TableValues<'a>,
}

impl Flusher {
    /// Returns the packing of a memtable's values, if it pays and there is space.
    ///
    /// # Errors
    /// `NoSpace`, `Device`.
    pub(crate) async fn packing<'a>(
        &self,
        store: &StoreState,
        table: &'a Memtable,
    ) -> Result<Option<Packing<'a>>> {
        let Some(bytes) = store.tasks.of::<Kept>().left_of(table.bytes()) else { return Ok(None) };
        let Some(fastest) =
            self.shared.classes.fastest().filter(|_| self.mirrors.mirrors_what_it_spills(store))
        else {
            return Ok(None);
        };
        let wanted = bytes + HEADER_BYTES as u64 + self.shared.objects.volume().chunk_bytes();
        // A spill makes no copies if there is no space for them.
        if self.mirrors.passing_room(0) < wanted {
            return Ok(None);
        }
        let (lease, object) = self.shared.objects.draft(ObjectKind::Segment, Some(&fastest))?;
        if object.attributes().class.as_ref() != Some(&fastest) {
            return Ok(None);
        }
        let writer =
            SegmentWriter::new(lease.no(), object, self.shared.objects.buffers(), self.memory.pieces())
                .await?;
        Ok(Some(Packing { lease, writer, values: TableValues::new(table) }))
    }
}

impl Packing<'_> {
    /// Packs the value of the next version of `key`, if it has one that lies apart.
    ///
    /// # Errors
    /// `NoSpace`, `Device`.
    pub(crate) async fn pack(&mut self, key: &[u8], version: &Version) -> Result<Version> {
        let Content::At(home) = &version.content else { return Ok(version.clone()) };
        let stored = self.values.value_of(key, version.sequence);
        let stored = stored.ok_or_else(|| Error::corrupted("a memtable has lost a version"))?;
        let packed = self.writer.append_moved(&stored, home).await?;
        Ok(Version { content: Content::At(packed), ..version.clone() })
    }

    /// Makes what was packed durable. The segment stays if its lease is kept; `None` if there was nothing.
    ///
    /// # Errors
    /// `NoSpace`, `Device`.
    pub(crate) async fn finish(self, objects: &Objects) -> Result<Option<Lease>> {
        if self.writer.stored_bytes() == 0 {
            return Ok(None);
        }
        let object = self.writer.finish().await?;
        objects.note_written(Purpose::JobValues, &object, 0, object.size_bytes());
        Ok(Some(self.lease))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_live_share_of_the_last_memtable_predicts_the_next() {
        let kept = Kept::default();
        assert_eq!(kept.left_of(1 << 20), None, "nothing is known");
        kept.note(1000, 751);
        assert_eq!(kept.left_of(1 << 20), None);
        kept.note(4000, 2000);
        assert_eq!(kept.left_of(1 << 20), Some(1 << 19));
        kept.note(0, 0);
        assert_eq!(kept.left_of(1 << 20), None);
    }
}
