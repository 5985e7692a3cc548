//! How long segments stay as mirrors ([`crate::tree::mirror`]): as long as the fastest class has space for both.
//!
//! Of log segments that are mostly garbage when they are spilled copies of the rest stay in their place.
//!
//! When the space is wanted, those go in which least is read for their size, the oldest of equals first: an edit of the
//! manifest, without further I/O. New ones are spared until they could show what they are worth. This waits for no job;
//! jobs hold on to no mirror.
//!
//! Reads count in *rounds*, with mirrors and without: at the end of one, when there were as many as [a
//! part](ROUND_PART) of what may have mirrors has values, those before count half.
//!
//! Mirrors are never in anybody's way: pressure on the fastest class is what there would be without them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::core::{Core, Writing};
use super::mirror_worth::{by_worth, halvings, is_little};
use super::remirroring::Remirroring;
use super::store::StoreState;
use crate::entry::SegmentNo;
use crate::objects::ObjectKind;
use crate::tree::mirror::{Mirror, OpenMirror};
use crate::tree::{Change, DenseMirrors, Edit, KvsetNo, TreeState};
use crate::{ErrorKind, Result};

/// Log segments for which space is left free of mirrors: as many as the log needs before it prepares one.
const FREE_LOG_SEGMENTS: u64 = 2;

/// Further log segments for which space is left free of copies, so that they are not evicted at once.
const FREE_LOG_SEGMENTS_FOR_COPIES: u64 = 2;

/// The fraction (1/n) of a memtable that is written between two checks.
const FREE_MEMTABLE_DIVISOR: u64 = 4;

/// Most mirrors of a database: each takes some memory and a place in the manifest.
const MAX_MIRRORS: usize = 4096;

/// A log segment with a smaller live fraction is sparse: its live values are copied when it is spilled.
const SPARSE_LIVE_FRACTION: f64 = 0.8;

/// Fewer chunks of live values are not copied.
const MIN_COPIED_CHUNKS: u64 = 2;

/// Mirrors have at most this many times the bytes of leaves on slow classes. The rest is certainly garbage and takes
/// space from other databases.
const MAX_LEAF_BYTES_FACTOR: u64 = 2;

/// Least time between two requests for evictable mirrors if the first found none.
const MIN_EVICTION_INTERVAL: Duration = Duration::from_millis(200);

/// A round ends after this fraction (1/n) of the values that leaves have on slow classes was read; earlier reads then
/// count half. A sequential reader does not read some mirrors for long.
const ROUND_PART: u64 = 4;

/// How long an eviction waits for readers of the mirror.
const READER_WAIT: Duration = Duration::from_millis(2);

/// Free space of a class that others need, too.
#[derive(Debug, Clone, Copy)]
struct Room {
    free: u64,
    /// Bytes that mirrors leave free for others.
    spared: u64,
    /// Written there already, beyond its bounds.
    beyond: u64,
}

impl Room {
    /// Bytes of mirrors that have to go.
    fn short(&self) -> u64 {
        (self.spared + self.beyond).saturating_sub(self.free)
    }

    /// Bytes that copies may take which leave `more` beside what mirrors leave.
    fn for_copies(&self, more: u64) -> u64 {
        self.free.saturating_sub(self.spared + more)
    }
}

/// Room of the fastest class that a job may take for copies; given back when it goes, for by then it is taken or not
/// wanted.
#[derive(Debug)]
pub(super) struct Copying<'a> {
    core: &'a Core,
    bytes: u64,
}

impl Drop for Copying<'_> {
    fn drop(&mut self) {
        *self.core.background.copying.lock() -= self.bytes;
    }
}

/// A store and the tree that it has.
struct Mirroring {
    store: Arc<StoreState>,
    tree: Arc<TreeState>,
}

impl Mirroring {
    fn of(store: Arc<StoreState>) -> Mirroring {
        let tree = store.view.read().tree.clone();
        Mirroring { store, tree }
    }
}

/// Which mirrors go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trim {
    /// Evicts what is due, unless another caller is doing so.
    Due,
    /// The same, after the other caller.
    DueNow,
    /// All.
    All,
}

/// One at a time takes mirrors away.
struct Turn<'a> {
    is_taken: &'a AtomicBool,
}

impl Turn<'_> {
    fn take(is_taken: &AtomicBool) -> Option<Turn<'_>> {
        let is_free = !is_taken.swap(true, Ordering::SeqCst);
        // Only one that was taken may be given back.
        is_free.then(|| Turn { is_taken })
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // Ordered with the flag of refused callers.
        self.is_taken.swap(false, Ordering::SeqCst);
    }
}

/// Closes those that are mirrors no more: what is read in them is `unmirrored` from now on. Trees from before may be
/// held by cursors for as long as these stand.
fn close_gone(
    unmirrored: &Remirroring,
    gone: &BTreeMap<SegmentNo, Mirror>,
    left: &BTreeMap<SegmentNo, Mirror>,
) {
    for (segment, mirror) in gone {
        let Some(opened) = &mirror.opened else { continue };
        unmirrored.add_reads(opened.reads());
        // A spill may have made it a mirror again, which is another one.
        let now = left.get(segment).and_then(|mirror| mirror.opened.as_ref());
        if !now.is_some_and(|now| Arc::ptr_eq(now, opened)) {
            opened.close();
        }
    }
}

impl Core {
    /// Returns whether there may be mirrors of what a store has in its leaves.
    fn are_mirrors_of_use(&self, store: &StoreState) -> bool {
        let Some(fastest) = self.classes.fastest() else { return false };
        let promotes = store.settings().promoted_bytes_per_second > 0;
        let wanted = self.classes.wanted(&store.policy());
        self.mirrors_what_it_spills(store)
            || (promotes && wanted.is_ok_and(|wanted| wanted.leaf_values != fastest))
    }

    /// Returns whether what is spilled is to become mirrors.
    pub(crate) fn mirrors_what_it_spills(&self, store: &StoreState) -> bool {
        let Some(fastest) = self.classes.fastest() else { return false };
        let wanted = self.classes.wanted(&store.policy());
        store.settings().mirrors
            && self.classes.is_log_on(&fastest)
            && wanted.is_ok_and(|wanted| {
                wanted.moves_values && wanted.leaf_values != fastest && wanted.root_keys == fastest
            })
    }

    /// The fastest class and what it has free: all of it, and what the database may have there.
    fn rooms(&self) -> Vec<Room> {
        let (volume, settings) = (self.objects.volume(), self.settings());
        let segment_bytes = super::open::log_segment_bytes(volume, &settings);
        let spared = FREE_LOG_SEGMENTS * segment_bytes + settings.table_bytes() / FREE_MEMTABLE_DIVISOR;
        let fastest = self.classes.fastest();
        let class = volume.classes().into_iter().find(|class| fastest.as_ref() == Some(&class.name));
        let of_class = class.map(|class| Room {
            free: class.free() * volume.chunk_bytes(),
            spared: spared.min(class.chunks * volume.chunk_bytes() / 2),
            beyond: 0,
        });
        let of_limit = settings.fast_class_bytes.map(|limit| {
            let taken = self.fast_class_bytes();
            Room {
                free: limit.saturating_sub(taken),
                // One more may be prepared before this is looked at again; objects that find the limit reached go
                // elsewhere.
                spared: (spared + segment_bytes).min(limit / 2),
                beyond: taken.saturating_sub(limit),
            }
        });
        of_class.into_iter().chain(of_limit).collect()
    }

    /// Bytes of mirrors that are in the way, as far as it can be known.
    fn mirrors_surplus(&self) -> u64 {
        self.rooms().iter().map(Room::short).max().unwrap_or(0)
    }

    /// Asks for space for this many bytes of copies, in place of mirrors of little worth.
    pub(super) fn ask_for_way(&self, bytes: u64) {
        let now = self.environment.now();
        let mut asked = self.background.asked_for_way.lock();
        if asked.is_none_or(|asked| now.saturating_sub(asked) >= MIN_EVICTION_INTERVAL) {
            *asked = Some(now);
            self.background.making_way.store(bytes, Ordering::Relaxed);
            self.background.work.notify();
        }
    }

    /// Bytes of mirrors that have to go so that copies find space for `way` bytes.
    fn missing_for_copies(&self, way: u64) -> u64 {
        let segment_bytes = super::open::log_segment_bytes(self.objects.volume(), &self.settings());
        let wanted = FREE_LOG_SEGMENTS_FOR_COPIES * segment_bytes + way;
        self.rooms().iter().map(|room| (room.spared + wanted).saturating_sub(room.free)).max().unwrap_or(0)
    }

    /// Bytes of the fastest class that may be taken for copies of what has no mirror, beside what jobs may yet take for
    /// `copying`.
    fn copies_room(&self, copying: u64) -> u64 {
        let segment_bytes = super::open::log_segment_bytes(self.objects.volume(), &self.settings());
        let rooms = self.rooms().into_iter();
        rooms
            .map(|room| room.for_copies(FREE_LOG_SEGMENTS_FOR_COPIES * segment_bytes + copying))
            .min()
            .unwrap_or(0)
    }

    /// Bytes that may be taken there for copies in whose place log segments go: all but what the log needs meanwhile,
    /// and what jobs may yet take for `copying`.
    pub(super) fn passing_room(&self, copying: u64) -> u64 {
        let segment_bytes = super::open::log_segment_bytes(self.objects.volume(), &self.settings());
        let rooms = self.rooms().into_iter();
        rooms.map(|room| room.free.saturating_sub(segment_bytes + copying)).min().unwrap_or(0)
    }

    /// Takes space for the copies that `what` says there is space for, given what other jobs may yet take.
    pub(super) fn take_room_for_copies(
        &self,
        what: impl FnOnce(u64) -> Option<DenseMirrors>,
    ) -> (Option<DenseMirrors>, Copying<'_>) {
        let mut copying = self.background.copying.lock();
        let dense = what(*copying);
        let bytes = dense.as_ref().map_or(0, |dense| dense.room_bytes);
        *copying += bytes;
        (dense, Copying { core: self, bytes })
    }

    /// Returns where live values of sparse log segments of these root kvsets are copied: such segments would be poor
    /// mirrors.
    pub(crate) fn dense_mirrors(
        &self,
        writing: &Writing,
        tree: &TreeState,
        spilled: &[KvsetNo],
        copying: u64,
    ) -> Option<DenseMirrors> {
        let class = self.classes.fastest()?;
        let room_bytes = self.passing_room(copying);
        let mut in_use: BTreeMap<SegmentNo, u64> = BTreeMap::new();
        for store in self.stores.read().iter() {
            let tree = store.view.read().tree.clone();
            for (segment, (_, bytes)) in tree.references() {
                *in_use.entry(segment).or_default() += bytes;
            }
            for (segment, mirror) in &tree.mirrors {
                *in_use.entry(*segment).or_default() += mirror.stored_bytes;
            }
        }
        // Memtables may have what is nowhere else yet.
        let unfinished: BTreeSet<SegmentNo> = writing.log.segments().into_iter().collect();
        let is_sparse = |segment: &SegmentNo| {
            let size =
                self.objects.find(ObjectKind::Segment, *segment).map_or(0, |object| object.size_bytes());
            let in_use = in_use.get(segment).copied().unwrap_or_default();
            !unfinished.contains(segment) && (in_use as f64) < size as f64 * SPARSE_LIVE_FRACTION
        };
        let spilled = tree.root.iter().filter(|kvset| spilled.contains(&kvset.no()));
        let mut moved: BTreeMap<SegmentNo, u64> = BTreeMap::new();
        for references in spilled.flat_map(|kvset| &kvset.record().info.references) {
            *moved.entry(references.segment).or_default() += references.stored_bytes;
        }
        moved.retain(|segment, _| !tree.segments.contains_key(segment) && is_sparse(segment));
        let is_worth_it =
            moved.values().sum::<u64>() >= MIN_COPIED_CHUNKS * self.objects.volume().chunk_bytes();
        is_worth_it.then(|| DenseMirrors {
            class,
            sparse: moved.into_keys().collect(),
            room_bytes,
            ..DenseMirrors::default()
        })
    }

    /// Mirrors of what a compaction moves and has none, in room that nobody wants.
    pub(crate) fn more_mirrors(&self, copying: u64) -> Option<DenseMirrors> {
        let class = self.classes.fastest()?;
        let room_bytes = self.copies_room(copying);
        let is_worth_it = room_bytes >= MIN_COPIED_CHUNKS * self.objects.volume().chunk_bytes();
        is_worth_it.then(|| DenseMirrors { class, room_bytes, ..DenseMirrors::default() })
    }

    /// Segments that trees reference, over all stores.
    pub(crate) fn referenced_segments(&self) -> BTreeSet<SegmentNo> {
        let stores = self.stores.read();
        let trees = stores.iter().map(|store| store.view.read().tree.clone());
        trees.flat_map(|tree| tree.references().into_keys()).collect()
    }

    /// Segments that stay whether they are mirrors or not: what trees reference, and the log.
    fn needed_segments(&self) -> BTreeSet<SegmentNo> {
        let mut needed = self.referenced_segments();
        needed.extend(self.writing.iter().flat_map(|writing| writing.log.segments()));
        needed
    }

    /// Bytes that would be free without mirrors: segments of the log that nothing else needs.
    pub(crate) fn mirrored_bytes(&self) -> u64 {
        let stores = self.stores.read().clone();
        let mut mirrors: BTreeSet<SegmentNo> = BTreeSet::new();
        stores.iter().for_each(|store| mirrors.extend(store.view.read().tree.mirrors.keys()));
        if mirrors.is_empty() {
            return 0;
        }
        let Some(fastest) = self.fastest_number() else { return 0 };
        let needed = self.needed_segments();
        mirrors.difference(&needed).map(|segment| self.bytes_on(*segment, fastest)).sum()
    }

    /// Bytes that a segment takes up on a class.
    fn bytes_on(&self, segment: SegmentNo, class: u8) -> u64 {
        let Some(object) = self.objects.find(ObjectKind::Segment, segment) else { return 0 };
        let chunks = object.chunks(0..u64::MAX).into_iter();
        let there = chunks.filter(|chunk| chunk.home.is_some_and(|home| home.class == class));
        there.count() as u64 * self.objects.volume().chunk_bytes()
    }

    pub(super) fn fastest_number(&self) -> Option<u8> {
        let fastest = self.classes.fastest()?;
        let classes = self.objects.volume().classes();
        classes.iter().find(|class| class.name == fastest).map(|class| class.number)
    }

    /// Bytes that the database may have on the fastest class.
    pub(crate) fn fast_room(&self) -> u64 {
        let fastest = self.classes.fastest();
        let class = self.objects.volume().classes().into_iter();
        let class = class.filter(|class| fastest.as_ref() == Some(&class.name));
        let size = class.map(|class| class.chunks * self.objects.volume().chunk_bytes()).sum();
        self.settings().fast_class_bytes.map_or(size, |limit| limit.min(size))
    }

    /// Values and their bytes that leaves have on slow classes.
    fn on_slow_classes(&self, tree: &TreeState) -> (u64, u64) {
        let fastest = self.classes.fastest();
        let is_slow = |segment: &SegmentNo| {
            let segment = tree.segments.get(segment);
            segment.is_some_and(|segment| segment.class != fastest)
        };
        let references = tree.references().into_iter();
        let on_slow = references.filter(|(segment, _)| is_slow(segment)).map(|(_, both)| both);
        on_slow.fold((0, 0), |sum, both| (sum.0 + both.0, sum.1 + both.1))
    }

    /// Segments that are to be mirrors of no store any more: of no use, too many, surely garbage, in the way of
    /// `surplus` bytes, or of little worth and in the way of `way` bytes of copies. The log is one for all stores, so a
    /// segment goes from all of them, or nothing comes free.
    fn going(&self, stores: &[Mirroring], (mut surplus, mut way): (u64, u64)) -> BTreeSet<SegmentNo> {
        let mut mirrors: BTreeMap<SegmentNo, Vec<&OpenMirror>> = BTreeMap::new();
        for (segment, mirror) in stores.iter().flat_map(|mirroring| &mirroring.tree.mirrors) {
            mirrors.entry(*segment).or_default().extend(mirror.opened.as_deref());
        }
        let Some(fastest) = self.fastest_number() else { return mirrors.into_keys().collect() };
        let is_of_use = |(segment, opened): &(&SegmentNo, &Vec<&OpenMirror>)| {
            self.lies_on(**segment, fastest) && !opened.iter().any(|mirror| mirror.is_damaged())
        };
        let useless = mirrors.iter().filter(|mirror| !is_of_use(mirror));
        let mut going: BTreeSet<SegmentNo> = useless.map(|(segment, _)| *segment).collect();
        mirrors.retain(|segment, _| !going.contains(segment));
        let many = mirrors.len().saturating_sub(MAX_MIRRORS);
        let unmirrored: u64 = stores.iter().map(|mirroring| mirroring.store.unmirrored.reads()).sum();
        let all_reads = unmirrored + mirrors.values().flatten().map(|mirror| mirror.reads()).sum::<u64>();
        let on_slow = stores.iter().map(|mirroring| self.on_slow_classes(&mirroring.tree));
        let (values, slow_bytes) = on_slow.fold((0, 0), |sum, both| (sum.0 + both.0, sum.1 + both.1));
        let round = values / ROUND_PART;
        let values_in = |segment: &SegmentNo| -> u64 {
            let mirrors = stores.iter().filter_map(|mirroring| mirroring.tree.mirrors.get(segment));
            mirrors.map(|mirror| mirror.stored_bytes).sum()
        };
        let mirrored: u64 = mirrors.keys().map(values_in).sum();
        let mut garbage = mirrored.saturating_sub(MAX_LEAF_BYTES_FACTOR * slow_bytes);
        if surplus == 0 && way == 0 && many == 0 && garbage == 0 {
            self.end_round_if_due(stores, &mirrors, (all_reads, round));
            return going;
        }
        let needed = self.needed_segments();
        let segments: Vec<SegmentNo> = mirrors.keys().rev().copied().collect();
        let worth = |segment: &SegmentNo| {
            let reads = mirrors[segment].iter().map(|mirror| mirror.shown_reads()).sum();
            (reads, self.bytes_on(*segment, fastest))
        };
        let worths: Vec<(Option<u64>, u64)> = segments.iter().map(worth).collect();
        // Mean reads of a live byte.
        let mean = all_reads as f64 / slow_bytes.max(1) as f64;
        for (gone, index) in by_worth(&worths).into_iter().enumerate() {
            let segment = segments[index];
            let (reads, bytes) = worths[index];
            let freed = if needed.contains(&segment) { 0 } else { bytes };
            let is_little = reads.is_some_and(|reads| is_little(reads, mean * bytes as f64));
            let is_in_the_way = (surplus > 0 || (way > 0 && is_little)) && freed > 0;
            if gone < many || garbage > 0 || is_in_the_way {
                garbage = garbage.saturating_sub(values_in(&segment));
                surplus = surplus.saturating_sub(freed);
                way = way.saturating_sub(freed);
                going.insert(segment);
            }
        }
        self.end_round_if_due(stores, &mirrors, (all_reads, round));
        going
    }

    /// Reads count half from now on if there were as many as make a round.
    fn end_round_if_due(
        &self,
        stores: &[Mirroring],
        mirrors: &BTreeMap<SegmentNo, Vec<&OpenMirror>>,
        (all_reads, round): (u64, u64),
    ) {
        let mut counted = self.background.counted_reads.lock();
        // Stores go, and what was read of them.
        *counted = (*counted).min(all_reads);
        if all_reads - *counted >= round.max(1) {
            let halvings = halvings(all_reads, round);
            mirrors.values().flatten().for_each(|mirror| mirror.end_round(halvings));
            stores.iter().for_each(|mirroring| mirroring.store.unmirrored.end_round(halvings));
            *counted = all_reads >> halvings;
        }
    }

    /// Evicts mirrors that are in the way or useless, or all; returns true if any were evicted. [`Trim::Due`] leaves it
    /// to a caller that is already doing so.
    ///
    /// # Errors
    /// Those of the manifest.
    pub(crate) async fn trim_mirrors(&self, writing: &Writing, trim: Trim) -> Result<bool> {
        let stores = self.stores.read().clone();
        if stores.iter().all(|store| store.view.read().tree.mirrors.is_empty()) {
            // There are no reads to compare with.
            self.background.making_way.store(0, Ordering::Relaxed);
            *self.background.counted_reads.lock() = 0;
            stores.iter().for_each(|store| store.unmirrored.end_round(u64::BITS - 1));
            return Ok(false);
        }
        let turn = loop {
            if trim == Trim::Due {
                // The active caller checks this flag when it ends.
                self.background.trims_again.store(true, Ordering::SeqCst);
            }
            match Turn::take(&self.background.is_trimming) {
                Some(turn) => break turn,
                None if trim == Trim::Due => return Ok(false),
                None => self.environment.sleep(READER_WAIT).await,
            }
        };
        // Changes since a caller was refused are seen now.
        self.background.trims_again.store(false, Ordering::SeqCst);
        let held = stores.into_iter().map(Mirroring::of);
        let (wanted, unwanted): (Vec<Mirroring>, Vec<Mirroring>) =
            held.partition(|mirroring| trim != Trim::All && self.are_mirrors_of_use(&mirroring.store));
        let way = match self.background.making_way.swap(0, Ordering::Relaxed) {
            0 => 0,
            way => self.missing_for_copies(way),
        };
        let going = self.going(&wanted, (self.mirrors_surplus(), way));
        let with_gone = |mirroring: Mirroring, goes: &dyn Fn(&SegmentNo) -> bool| {
            let mirrors = mirroring.tree.mirrors.iter().filter(|(segment, _)| goes(segment));
            let gone: BTreeMap<SegmentNo, Mirror> =
                mirrors.map(|(segment, mirror)| (*segment, mirror.clone())).collect();
            (mirroring.store, gone)
        };
        let unwanted = unwanted.into_iter().map(|mirroring| with_gone(mirroring, &|_| true));
        let wanted =
            wanted.into_iter().map(|mirroring| with_gone(mirroring, &|segment| going.contains(segment)));
        let gone: Vec<(Arc<StoreState>, BTreeMap<SegmentNo, Mirror>)> = unwanted.chain(wanted).collect();
        let mut has_any = false;
        for (store, gone) in &gone {
            let changes: Vec<Change> =
                gone.keys().map(|segment| Change::RemoveMirror { segment: *segment }).collect();
            if changes.is_empty() {
                continue;
            }
            has_any = true;
            // CRASH: the leaves have everything.
            self.crash.reached("mirrors.before-manifest");
            let installed = self.install(writing, store, &Edit { changes }, Vec::new).await;
            close_gone(&store.unmirrored, gone, &store.view.read().tree.mirrors);
            match installed {
                Err(_) if store.check_there().is_err() => {}
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                installed => installed?,
            }
        }
        drop(gone);
        if has_any {
            *self.background.asked_for_way.lock() = None;
            self.environment.sleep(READER_WAIT).await;
            self.delete_retired().await?;
            self.watch_fast_class();
            self.background.progress.notify();
        }
        drop(turn);
        if self.background.trims_again.load(Ordering::SeqCst) {
            self.background.work.notify();
        }
        Ok(has_any)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recently_copied_mirrors_do_not_count_as_shortage() {
        let room = Room { free: 100, spared: 40, beyond: 0 };
        assert_eq!((room.short(), room.for_copies(20)), (0, 40));
        let filled = Room { free: 100 - 40, ..room };
        assert_eq!((filled.short(), filled.for_copies(20)), (0, 0));
        assert_eq!(Room { free: 30, ..room }.short(), 10);
        assert_eq!(Room { free: 0, beyond: 7, ..room }.short(), 47);
    }
}
