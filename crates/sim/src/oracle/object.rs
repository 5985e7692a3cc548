//! What one object may hold: its synced bytes, and each change since.
//!
//! 1. A change is *begun* before the volume is asked and *done* when the volume says so; then reads must see it.
//! 2. A sync covers the changes that were done when it was begun. Once it is done they are certain; the others stay
//!    possible.
//! 3. After a power cut each sector must be as some prefix of its changes left it, from the synced bytes on. Where
//!    changes cover a sector in part, each of its bytes must come from one of them. The size must be one that the
//!    object had since.
//! 4. A change that failed is never certain: its bytes are possible until the object is recovered.

use std::sync::Arc;

use super::pattern::describe;
use crate::disk::{DiskImage, SECTOR_BYTES};

/// Bytes of a chunk of the volumes under test.
pub(crate) const CHUNK_BYTES: u64 = 8192;

/// A change of an object's content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    Write { offset: u64, bytes: Vec<u8> },
    Punch { offset: u64, len: u64 },
    SetSize(u64),
}

impl Change {
    fn apply(&self, image: &mut DiskImage) {
        match self {
            Change::Write { offset, bytes } => image.write(*offset, bytes),
            Change::Punch { offset, len } => image.zero(*offset, *len),
            Change::SetSize(size) => image.set_size(*size),
        }
    }

    /// The bytes it may change. Setting a size may clear all that lies past it.
    pub(crate) fn range(&self) -> (u64, u64) {
        match self {
            Change::Write { offset, bytes } => (*offset, offset + bytes.len() as u64),
            Change::Punch { offset, len } => (*offset, offset + len),
            Change::SetSize(size) => (*size, u64::MAX),
        }
    }

    /// The byte that it leaves at `offset`, if it touches it.
    fn byte_at(&self, offset: u64) -> Option<u8> {
        let (from, to) = self.range();
        (from..to).contains(&offset).then(|| match self {
            Change::Write { bytes, .. } => bytes[(offset - from) as usize],
            Change::Punch { .. } | Change::SetSize(_) => 0,
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Begun,
    Done,
    Failed,
}

#[derive(Debug, Clone)]
struct Entry {
    no: u64,
    stage: Stage,
    change: Arc<Change>,
}

/// Names a change that was begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChangeNo(u64);

/// A sync that was begun, with what it covers.
#[derive(Debug, Clone)]
pub(crate) struct SyncNote {
    covers: Vec<u64>,
}

/// A read that was begun.
#[derive(Debug, Clone)]
pub(crate) struct ReadNote {
    no: u64,
}

#[derive(Debug, Clone)]
struct ActiveRead {
    no: u64,
    offset: u64,
    base: Vec<u8>,
    possible: Vec<Arc<Change>>,
    /// The least and the greatest size while it ran.
    sizes: (u64, u64),
}

/// One object's model. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct ObjectModel {
    synced: DiskImage,
    current: DiskImage,
    changes: Vec<Entry>,
    reads: Vec<ActiveRead>,
    next: u64,
    /// Changes up to this one may have been made while the object had no pages: those that failed may have torn pages.
    plain_until: u64,
}

impl ObjectModel {
    /// An object that certainly holds `image`.
    pub(crate) fn certain(image: DiskImage) -> ObjectModel {
        ObjectModel { synced: image.clone(), current: image, ..ObjectModel::default() }
    }

    pub(crate) fn size(&self) -> u64 {
        self.current.size_bytes()
    }

    /// The object may be getting pages from now on, until [`has_pages`](Self::has_pages).
    pub(crate) fn may_get_pages(&mut self) {
        self.plain_until = u64::MAX;
    }

    /// The object has pages now, if it was to get some.
    pub(crate) fn has_pages(&mut self) {
        self.plain_until = self.plain_until.min(self.next);
    }

    /// Whether a change of this range is in flight.
    pub(crate) fn is_busy(&self, from: u64, to: u64) -> bool {
        let size = self.size();
        let overlaps = |entry: &Entry| {
            let (start, end) = entry.change.range();
            // What lies between two sizes comes or goes.
            let start = if matches!(*entry.change, Change::SetSize(_)) { start.min(size) } else { start };
            start < to && from < end
        };
        self.changes.iter().any(|entry| entry.stage == Stage::Begun && overlaps(entry))
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// A change that the volume is about to be asked for.
    pub(crate) fn begin(&mut self, change: Change) -> ChangeNo {
        let (no, change) = (self.number(), Arc::new(change));
        let grown = self.grown(&change);
        for read in &mut self.reads {
            read.possible.push(change.clone());
            read.sizes = (read.sizes.0.min(grown), read.sizes.1.max(grown));
        }
        self.changes.push(Entry { no, stage: Stage::Begun, change });
        ChangeNo(no)
    }

    /// Whether something changed in the chunk of `offset` since the last sync.
    fn is_unsynced(&self, offset: u64) -> bool {
        let first = offset / CHUNK_BYTES * CHUNK_BYTES;
        let mut ranges = self.changes.iter().map(|entry| entry.change.range());
        ranges.any(|(from, to)| from < first + CHUNK_BYTES && first < to)
    }

    /// The size that `change` leads to from the current one.
    fn grown(&self, change: &Change) -> u64 {
        match change {
            Change::Write { offset, bytes } => self.size().max(offset + bytes.len() as u64),
            Change::Punch { .. } => self.size(),
            Change::SetSize(size) => *size,
        }
    }

    /// The volume says that it is done.
    pub(crate) fn done(&mut self, no: ChangeNo) {
        // Those that overlap do not run together, so the order of the done is the order that counts.
        let Some(at) = self.changes.iter().position(|entry| entry.no == no.0) else { return };
        let mut entry = self.changes.remove(at);
        entry.stage = Stage::Done;
        entry.change.apply(&mut self.current);
        self.changes.push(entry);
    }

    /// The volume says that it failed, or nobody waited for its end. It may have happened in part; `size` is what the
    /// volume says now.
    pub(crate) fn failed(&mut self, no: ChangeNo, size: Option<u64>) {
        if let Some(entry) = self.changes.iter_mut().find(|entry| entry.no == no.0) {
            entry.stage = Stage::Failed;
        }
        if let Some(size) = size.filter(|size| *size != self.size()) {
            let no = self.number();
            let change = Arc::new(Change::SetSize(size));
            change.apply(&mut self.current);
            self.changes.push(Entry { no, stage: Stage::Done, change });
        }
    }

    /// Whether a later change of those that `counts` took the place of all of the change at `index`.
    fn is_overwritten(&self, index: usize, counts: impl Fn(&Entry) -> bool) -> bool {
        let (from, to) = self.changes[index].change.range();
        let mut later = self.changes[index + 1..].iter().filter(|entry| counts(entry));
        later.any(|entry| {
            let (start, end) = entry.change.range();
            start <= from && to <= end
        })
    }

    pub(crate) fn begin_sync(&self) -> SyncNote {
        let done = self.changes.iter().filter(|entry| entry.stage == Stage::Done);
        SyncNote { covers: done.map(|entry| entry.no).collect() }
    }

    /// The volume says that the sync is done: what it covers is certain.
    pub(crate) fn synced(&mut self, sync: &SyncNote) {
        let is_covered = |entry: &Entry| sync.covers.contains(&entry.no);
        let overwritten: Vec<u64> = (0..self.changes.len())
            .filter(|index| self.changes[*index].stage == Stage::Failed)
            .filter(|index| self.is_overwritten(*index, is_covered))
            .map(|index| self.changes[index].no)
            .collect();
        let synced = &mut self.synced;
        self.changes.retain(|entry| {
            let covered = is_covered(entry);
            if covered {
                entry.change.apply(synced);
            }
            !covered && !overwritten.contains(&entry.no)
        });
    }

    pub(crate) fn begin_read(&mut self, offset: u64, len: u64) -> ReadNote {
        let no = self.number();
        let mut base = vec![0; len as usize];
        self.current.read(offset, &mut base);
        let open = (0..self.changes.len()).filter(|index| match self.changes[*index].stage {
            Stage::Begun => true,
            Stage::Failed => !self.is_overwritten(*index, |entry| entry.stage == Stage::Done),
            Stage::Done => false,
        });
        let possible: Vec<Arc<Change>> = open.map(|index| self.changes[index].change.clone()).collect();
        let size = self.size();
        let sizes = possible.iter().map(|change| self.grown(change));
        let sizes = sizes.fold((size, size), |(least, most), size| (least.min(size), most.max(size)));
        self.reads.push(ActiveRead { no, offset, base, possible, sizes });
        ReadNote { no }
    }

    /// Judges what a read returned; `None` if it failed. `is_in_doubt`: a write or sync failed, so that chunks that
    /// changed since the last sync hold anything.
    pub(crate) fn end_read(
        &mut self,
        read: &ReadNote,
        bytes: Option<&[u8]>,
        is_in_doubt: bool,
    ) -> Result<(), String> {
        let Some(at) = self.reads.iter().position(|active| active.no == read.no) else { return Ok(()) };
        let active = self.reads.swap_remove(at);
        let Some(bytes) = bytes else { return Ok(()) };
        let room = |size: u64| size.saturating_sub(active.offset).min(active.base.len() as u64);
        let (least, most) = (room(active.sizes.0), room(active.sizes.1));
        if !(least..=most).contains(&(bytes.len() as u64)) {
            return Err(format!(
                "a read of {} bytes at offset {} gave {} bytes; from {least} to {most} were there",
                active.base.len(),
                active.offset,
                bytes.len()
            ));
        }
        if bytes == &active.base[..bytes.len()] {
            return Ok(());
        }
        for (at, byte) in bytes.iter().enumerate() {
            let offset = active.offset + at as u64;
            let possible = || active.possible.iter().any(|change| change.byte_at(offset) == Some(*byte));
            let in_doubt = || is_in_doubt && self.is_unsynced(offset);
            if *byte != active.base[at] && !possible() && !in_doubt() {
                let around = at - (offset % 8).min(at as u64) as usize;
                return Err(format!(
                    "a read at offset {} is wrong from byte {offset} on: {} instead of {}",
                    active.offset,
                    describe(&bytes[around..]),
                    describe(&active.base[around..])
                ));
            }
        }
        Ok(())
    }

    /// Judges what was found after a recovery.
    pub(crate) fn check_recovered(&self, found: &DiskImage) -> Result<(), String> {
        let size = found.size_bytes();
        let sizes = self.possible_sizes();
        if !sizes.iter().any(|(least, most)| (*least..=*most).contains(&size)) {
            return Err(format!("its size is {size}, but since the last sync it was only ever in {sizes:?}"));
        }
        if self.changes.is_empty() && *found == self.synced {
            return Ok(());
        }
        let (mut bytes, mut expected) = ([0; SECTOR_BYTES as usize], [0; SECTOR_BYTES as usize]);
        for offset in (0..size).step_by(SECTOR_BYTES as usize) {
            found.read(offset, &mut bytes);
            self.current.read(offset, &mut expected);
            let len = (size - offset).min(SECTOR_BYTES) as usize;
            if bytes[..len] != expected[..len] || !self.changes.is_empty() {
                self.check_sector(offset, &bytes[..len])?;
            }
        }
        Ok(())
    }

    /// Judges the pages of what was found: a page that was written as a whole, since it was synced, is one of these
    /// writes as a whole, whatever became of them.
    pub(crate) fn check_pages(&self, found: &DiskImage, page_bytes: u64) -> Result<(), String> {
        let (mut page, mut version) = (vec![0; page_bytes as usize], vec![0; page_bytes as usize]);
        for offset in (0..found.size_bytes() / page_bytes * page_bytes).step_by(page_bytes as usize) {
            let end = offset + page_bytes;
            let touching = || {
                self.changes.iter().filter(move |entry| {
                    let (from, to) = entry.change.range();
                    from < end && offset < to
                })
            };
            let is_whole = |entry: &Entry| match &*entry.change {
                _ if entry.stage == Stage::Failed && entry.no <= self.plain_until => false,
                Change::Write { offset: from, bytes } => *from <= offset && end <= from + bytes.len() as u64,
                _ => false,
            };
            if touching().next().is_none() || !touching().all(is_whole) {
                continue;
            }
            found.read(offset, &mut page);
            self.synced.read(offset, &mut version);
            let is_version = |entry: &Entry| match &*entry.change {
                Change::Write { offset: from, bytes } => {
                    page == bytes[(offset - from) as usize..(end - from) as usize]
                }
                _ => false,
            };
            if page != version && !touching().any(is_version) {
                return Err(format!("the page at offset {offset} is torn: {}", describe(&page)));
            }
        }
        Ok(())
    }

    /// Ranges of sizes, both ends included.
    fn possible_sizes(&self) -> Vec<(u64, u64)> {
        let synced = self.synced.size_bytes();
        let mut sizes = vec![(synced, synced)];
        for entry in &self.changes {
            match &*entry.change {
                // A write grows the object part by part, and a sync may come between.
                Change::Write { offset, bytes } => {
                    let end = offset + bytes.len() as u64;
                    sizes.iter_mut().for_each(|(_, most)| *most = (*most).max(end));
                }
                Change::Punch { .. } => {}
                Change::SetSize(size) if sizes.contains(&(*size, *size)) => {}
                Change::SetSize(size) => sizes.push((*size, *size)),
            }
        }
        sizes
    }

    fn check_sector(&self, offset: u64, bytes: &[u8]) -> Result<(), String> {
        let end = offset + SECTOR_BYTES;
        let touching = || {
            self.changes.iter().filter(move |entry| {
                let (from, to) = entry.change.range();
                from < end && offset < to
            })
        };
        let mut version = [0; SECTOR_BYTES as usize];
        self.synced.read(offset, &mut version);
        let mut versions = vec![version];
        let mut may_mix = false;
        for entry in touching() {
            let (from, to) = entry.change.range();
            // One that failed may lie below what was synced later.
            may_mix |= from > offset || to < end || entry.stage == Stage::Failed;
            for (at, byte) in version.iter_mut().enumerate() {
                *byte = entry.change.byte_at(offset + at as u64).unwrap_or(*byte);
            }
            versions.push(version);
        }
        if versions.iter().any(|version| version[..bytes.len()] == *bytes) {
            return Ok(());
        }
        let possible = |at: usize| {
            bytes[at] == versions[0][at]
                || touching().any(|entry| entry.change.byte_at(offset + at as u64) == Some(bytes[at]))
        };
        if may_mix && (0..bytes.len()).all(possible) {
            return Ok(());
        }
        let versions: Vec<String> = versions.iter().map(|version| describe(version)).collect();
        Err(format!(
            "the sector at offset {offset} holds {}; possible are {}",
            describe(bytes),
            versions.join(", ")
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(offset: u64, value: u8, len: usize) -> Change {
        Change::Write { offset, bytes: vec![value; len] }
    }

    fn image(sectors: &[u8]) -> DiskImage {
        let bytes: Vec<u8> = sectors.iter().flat_map(|value| [*value; 512]).collect();
        DiskImage::from_bytes(&bytes)
    }

    #[test]
    fn synced_changes_are_certain_and_later_ones_possible() {
        let mut model = ObjectModel::certain(image(&[1, 1]));
        let first = model.begin(write(0, 2, 512));
        model.done(first);
        assert!(model.check_recovered(&image(&[1, 1])).is_ok());
        assert!(model.check_recovered(&image(&[2, 1])).is_ok());
        let sync = model.begin_sync();
        let second = model.begin(write(0, 3, 1024));
        model.done(second);
        model.synced(&sync);
        for (sectors, is_possible) in
            [([2, 1], true), ([3, 1], true), ([2, 3], true), ([1, 1], false), ([2, 2], false)]
        {
            assert_eq!(model.check_recovered(&image(&sectors)).is_ok(), is_possible, "{sectors:?}");
        }
    }

    #[test]
    fn a_sync_does_not_cover_writes_in_flight() {
        let mut model = ObjectModel::certain(image(&[1]));
        let change = model.begin(write(0, 2, 512));
        let sync = model.begin_sync();
        model.done(change);
        model.synced(&sync);
        assert!(model.check_recovered(&image(&[1])).is_ok());
        assert!(model.check_recovered(&image(&[2])).is_ok());
    }

    #[test]
    fn object_sizes_after_a_crash_are_earlier_sizes() {
        let mut model = ObjectModel::certain(image(&[1, 1, 1]));
        let cut = model.begin(Change::SetSize(512));
        model.done(cut);
        let grown = model.begin(write(512, 2, 512));
        model.done(grown);
        for sectors in [&[1, 1, 1][..], &[1], &[1, 2], &[1, 2, 1], &[1, 0], &[1, 1]] {
            assert!(model.check_recovered(&image(sectors)).is_ok(), "{sectors:?}");
        }
        for sectors in [&[][..], &[1, 2, 2], &[1, 1, 1, 1], &[0], &[1, 3]] {
            assert!(model.check_recovered(&image(sectors)).is_err(), "{sectors:?}");
        }
    }

    #[test]
    fn parts_of_a_sector_may_mix_whole_ones_may_not() {
        let mut model = ObjectModel::certain(image(&[1]));
        for change in [write(0, 2, 100), write(200, 3, 100)] {
            let change = model.begin(change);
            model.done(change);
        }
        let mut only_later = vec![1; 512];
        only_later[200..300].fill(3);
        assert!(model.check_recovered(&DiskImage::from_bytes(&only_later)).is_ok());
        only_later[0] = 3;
        assert!(model.check_recovered(&DiskImage::from_bytes(&only_later)).is_err());
        let mut model = ObjectModel::certain(image(&[1]));
        for value in [2, 3] {
            let change = model.begin(write(0, value, 512));
            model.done(change);
        }
        let mut mixed = vec![2; 512];
        assert!(model.check_recovered(&DiskImage::from_bytes(&mixed)).is_ok());
        mixed[5] = 3;
        assert!(model.check_recovered(&DiskImage::from_bytes(&mixed)).is_err());
    }

    #[test]
    fn reads_see_completed_and_maybe_in_flight_writes() {
        let mut model = ObjectModel::certain(image(&[1, 1]));
        let read = model.begin_read(0, 2048);
        let change = model.begin(write(512, 2, 512));
        assert!(model.is_busy(600, 601) && !model.is_busy(0, 512));
        model.done(change);
        let judge = |model: &mut ObjectModel, read: &ReadNote, sectors: &[u8]| {
            model.clone().end_read(read, Some(&image(sectors).to_bytes()), false).is_ok()
        };
        assert!(judge(&mut model, &read, &[1, 1]) && judge(&mut model, &read, &[1, 2]));
        assert!(!judge(&mut model, &read, &[2, 1]) && !judge(&mut model, &read, &[1]));
        let later = model.begin_read(0, 2048);
        assert!(judge(&mut model, &later, &[1, 2]) && !judge(&mut model, &later, &[1, 1]));
    }

    #[test]
    fn a_failed_change_is_possible_but_never_certain() {
        let mut model = ObjectModel::certain(image(&[1]));
        let change = model.begin(write(0, 2, 512));
        model.failed(change, None);
        let sync = model.begin_sync();
        model.synced(&sync);
        assert!(model.check_recovered(&image(&[1])).is_ok());
        assert!(model.check_recovered(&image(&[2])).is_ok());
        assert!(model.check_recovered(&image(&[0])).is_err());
        let read = model.begin_read(0, 512);
        assert!(model.end_read(&read, Some(&[2; 512]), false).is_ok());
        let later = model.begin(write(0, 3, 512));
        model.done(later);
        let read = model.begin_read(0, 512);
        assert!(model.end_read(&read, Some(&[2; 512]), false).is_err(), "what came later took its place");
        let sync = model.begin_sync();
        model.synced(&sync);
        assert!(model.check_recovered(&image(&[2])).is_err());
        assert!(model.check_recovered(&image(&[3])).is_ok());
    }

    #[test]
    fn a_page_that_is_torn_between_sectors_is_found() {
        let mut model = ObjectModel::certain(image(&[1, 1, 1, 1]));
        for value in [2, 3] {
            let change = Change::Write { offset: 0, bytes: vec![value; 2 * SECTOR_BYTES as usize] };
            let no = model.begin(change);
            model.done(no);
        }
        for (sectors, is_whole) in [
            ([1, 1, 1, 1], true),
            ([2, 2, 1, 1], true),
            ([3, 3, 1, 1], true),
            ([2, 3, 1, 1], false),
            ([1, 3, 1, 1], false),
        ] {
            assert!(model.check_recovered(&image(&sectors)).is_ok(), "each sector is possible");
            let judged = model.check_pages(&image(&sectors), 2 * SECTOR_BYTES);
            assert_eq!(judged.is_ok(), is_whole, "{sectors:?}");
        }
    }
}
