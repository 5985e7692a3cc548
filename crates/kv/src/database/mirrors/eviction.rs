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

use crate::tuning::mirrors::EVICTION;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::database::mirrors::keeper::MirrorKeeper;
use crate::database::mirrors::worth::{by_worth, halvings, is_little};
use crate::database::shared::Writing;
use crate::database::state::remirroring::Remirroring;
use crate::database::state::store_state::StoreState;
use crate::entry::SegmentNo;
use crate::tree::mirror::{Mirror, OpenMirror};
use crate::tree::{Change, Edit, TreeState};
use crate::{ErrorKind, Result};

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

impl MirrorKeeper {
    /// Values and their bytes that leaves have on slow classes.
    fn on_slow_classes(&self, tree: &TreeState) -> (u64, u64) {
        let fastest = self.shared.classes.fastest();
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
        let Some(fastest) = self.space.fastest_number() else { return mirrors.into_keys().collect() };
        let is_of_use = |(segment, opened): &(&SegmentNo, &Vec<&OpenMirror>)| {
            self.space.lies_on(**segment, fastest) && !opened.iter().any(|mirror| mirror.is_damaged())
        };
        let useless = mirrors.iter().filter(|mirror| !is_of_use(mirror));
        let mut going: BTreeSet<SegmentNo> = useless.map(|(segment, _)| *segment).collect();
        mirrors.retain(|segment, _| !going.contains(segment));
        let many = mirrors.len().saturating_sub(EVICTION.max_mirrors);
        let unmirrored: u64 = stores.iter().map(|mirroring| mirroring.store.unmirrored.reads()).sum();
        let all_reads = unmirrored + mirrors.values().flatten().map(|mirror| mirror.reads()).sum::<u64>();
        let on_slow = stores.iter().map(|mirroring| self.on_slow_classes(&mirroring.tree));
        let (values, slow_bytes) = on_slow.fold((0, 0), |sum, both| (sum.0 + both.0, sum.1 + both.1));
        let round = values / EVICTION.round_part;
        let values_in = |segment: &SegmentNo| -> u64 {
            let mirrors = stores.iter().filter_map(|mirroring| mirroring.tree.mirrors.get(segment));
            mirrors.map(|mirror| mirror.stored_bytes).sum()
        };
        let mirrored: u64 = mirrors.keys().map(values_in).sum();
        let mut garbage = mirrored.saturating_sub(EVICTION.max_leaf_bytes_factor * slow_bytes);
        if surplus == 0 && way == 0 && many == 0 && garbage == 0 {
            self.end_round_if_due(stores, &mirrors, (all_reads, round));
            return going;
        }
        let needed = self.space.needed_segments();
        let segments: Vec<SegmentNo> = mirrors.keys().rev().copied().collect();
        let worth = |segment: &SegmentNo| {
            let reads = mirrors[segment].iter().map(|mirror| mirror.shown_reads()).sum();
            (reads, self.space.bytes_on(*segment, fastest))
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
        let mut counted = self.counted_reads.lock();
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
        let stores = self.shared.stores.read().clone();
        if stores.iter().all(|store| store.view.read().tree.mirrors.is_empty()) {
            // There are no reads to compare with.
            self.making_way.store(0, Ordering::Relaxed);
            *self.counted_reads.lock() = 0;
            stores.iter().for_each(|store| store.unmirrored.end_round(u64::BITS - 1));
            return Ok(false);
        }
        let turn = loop {
            if trim == Trim::Due {
                // The active caller checks this flag when it ends.
                self.trims_again.store(true, Ordering::SeqCst);
            }
            match Turn::take(&self.is_trimming) {
                Some(turn) => break turn,
                None if trim == Trim::Due => return Ok(false),
                None => self.shared.environment.sleep(EVICTION.reader_wait).await,
            }
        };
        // Changes since a caller was refused are seen now.
        self.trims_again.store(false, Ordering::SeqCst);
        let held = stores.into_iter().map(Mirroring::of);
        let (wanted, unwanted): (Vec<Mirroring>, Vec<Mirroring>) =
            held.partition(|mirroring| trim != Trim::All && self.are_mirrors_of_use(&mirroring.store));
        let way = match self.making_way.swap(0, Ordering::Relaxed) {
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
            self.shared.crash.reached("mirrors.before-manifest");
            let installed = self.installer.install(writing, store, &Edit { changes }, Vec::new).await;
            close_gone(&store.unmirrored, gone, &store.view.read().tree.mirrors);
            match installed {
                Err(_) if store.check_there().is_err() => {}
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                installed => installed?,
            }
        }
        drop(gone);
        if has_any {
            *self.asked_for_way.lock() = None;
            self.shared.environment.sleep(EVICTION.reader_wait).await;
            self.space.delete_retired().await?;
            self.space.watch_fast_class();
            self.shared.background.progress.notify();
        }
        drop(turn);
        if self.trims_again.load(Ordering::SeqCst) {
            self.shared.background.work.notify();
        }
        Ok(has_any)
    }
}
