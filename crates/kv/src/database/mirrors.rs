//! Values that have moved to a slower class and still lie where the log wrote them. They stay as long as the fastest class has room for both.
//!
//! 1. A spill makes mirrors of what it takes from the root, if values move to a slower class than the log's.
//! 2. A read that misses the cache takes a value from a mirror. If that fails, for whatever reason, the value is where the leaf has it.
//! 3. When the room is wanted, those by which least is read for their size go, the oldest of equals first: an edit of the manifest, without further I/O. New
//!    ones are spared until they could show what they are worth. This waits for no job; jobs hold on to no mirror.
//!
//! Mirrors are never in anybody's way: pressure on the fastest class is what there would be without them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::core::{Core, Writing};
use super::store::StoreState;
use crate::entry::SegmentNo;
use crate::objects::ObjectKind;
use crate::tree::{Change, Edit, Kvset, Place, TreeState};
use crate::{ErrorKind, Result};

/// Log segments that there is room for beside mirrors, and what is already written or ready: as many as the log wants to see before it prepares one.
const SPARED_LOG_SEGMENTS: u64 = 2;

/// And the share of a memory table that is written between two looks.
const SPARED_SHARE: u64 = 4;

/// Mirrors of a store at most: each takes a little memory, and a place in the manifest.
const MOST_MIRRORS: usize = 256;

/// How long those who read by a mirror that goes are waited for.
const READS_END: Duration = Duration::from_millis(2);

/// One at a time takes mirrors away.
struct Turn<'a> {
    is_taken: &'a AtomicBool,
}

impl Turn<'_> {
    fn take(is_taken: &AtomicBool) -> Option<Turn<'_>> {
        let is_free = !is_taken.swap(true, Ordering::AcqRel);
        // Only one that was taken may be given back.
        is_free.then(|| Turn { is_taken })
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.is_taken.store(false, Ordering::Release);
    }
}

fn segments<'a>(kvsets: impl Iterator<Item = &'a Arc<Kvset>>) -> impl Iterator<Item = SegmentNo> {
    kvsets.flat_map(|kvset| kvset.record().info.references.iter().map(|references| references.segment))
}

/// In which order mirrors, newest first, go: indices of those that have `(reads, bytes)`. Reads are `None` if not enough was seen to tell.
fn by_worth(mirrors: &[(Option<u64>, u64)]) -> Vec<usize> {
    let worth = |index: &usize| {
        let (reads, bytes) = mirrors[*index];
        reads.map_or(f64::INFINITY, |reads| reads as f64 / bytes.max(1) as f64)
    };
    let mut ordered: Vec<usize> = (0..mirrors.len()).rev().collect();
    // Of equals the oldest stays in front.
    ordered.sort_by(|a, b| worth(a).total_cmp(&worth(b)));
    ordered
}

impl Core {
    /// Whether what is spilled is to become mirrors.
    pub(crate) fn are_mirrors_of_use(&self, store: &StoreState) -> bool {
        let Some(fastest) = self.classes.fastest() else { return false };
        let wanted = self.classes.wanted(&store.policy());
        store.settings.mirrors
            && self.classes.is_log_on(&fastest)
            && wanted.is_ok_and(|wanted| {
                wanted.moves_values && wanted.leaf_values != fastest && wanted.root_keys == fastest
            })
    }

    /// Bytes of the fastest class that mirrors have to leave, as far as it can be known.
    fn mirrors_surplus(&self) -> u64 {
        let volume = self.objects.volume();
        let segment_bytes = super::open::log_segment_bytes(volume, &self.settings);
        let spared = SPARED_LOG_SEGMENTS * segment_bytes + self.settings.table_bytes() / SPARED_SHARE;
        let over_limit = self
            .settings
            .fast_class_bytes
            .map_or(0, |limit| (self.fast_class_bytes() + spared.min(limit / 2)).saturating_sub(limit));
        let fastest = self.classes.fastest();
        let class = volume.classes().into_iter().find(|class| fastest.as_ref() == Some(&class.name));
        let over_class = class.map_or(0, |class| {
            let free = class.chunks.saturating_sub(class.taken) * volume.chunk_bytes();
            spared.min(class.chunks * volume.chunk_bytes() / 2).saturating_sub(free)
        });
        over_limit.max(over_class)
    }

    /// Bytes that would be free without mirrors: their keys, and segments of the log that nothing else needs.
    pub(crate) fn mirrored_bytes(&self) -> u64 {
        let stores = self.stores.read().clone();
        let trees: Vec<Arc<TreeState>> = stores.iter().map(|store| store.view.read().tree.clone()).collect();
        let mut mirrored: BTreeSet<SegmentNo> =
            trees.iter().flat_map(|tree| segments(tree.mirrors.iter())).collect();
        if mirrored.is_empty() {
            return 0;
        }
        for no in trees.iter().flat_map(|tree| segments(tree.data())) {
            mirrored.remove(&no);
        }
        for no in self.writing.iter().flat_map(|writing| writing.log.segments()) {
            mirrored.remove(&no);
        }
        let Some(fastest) = self.fastest_number() else { return 0 };
        let keys = trees.iter().flat_map(|tree| &tree.mirrors).map(|kvset| (ObjectKind::Keys, kvset.no()));
        let objects = mirrored.into_iter().map(|no| (ObjectKind::Segment, no)).chain(keys);
        let objects = objects.filter_map(|(kind, no)| self.objects.find(kind, no));
        let chunks = objects.flat_map(|object| object.chunks(0..u64::MAX));
        let chunks = chunks.filter(|chunk| chunk.home.is_some_and(|home| home.class == fastest));
        chunks.count() as u64 * self.objects.volume().chunk_bytes()
    }

    fn fastest_number(&self) -> Option<u8> {
        let fastest = self.classes.fastest()?;
        let classes = self.objects.volume().classes();
        classes.iter().find(|class| class.name == fastest).map(|class| class.number)
    }

    /// Whether something is gained by a mirror: some of its values lie on the fastest class.
    fn is_of_use(&self, mirror: &Kvset) -> bool {
        let Some(fastest) = self.fastest_number() else { return false };
        mirror.record().info.references.iter().any(|references| self.lies_on(references.segment, fastest))
    }

    /// Bytes that the database may have on the fastest class.
    pub(crate) fn fast_room(&self) -> u64 {
        let fastest = self.classes.fastest();
        let class = self.objects.volume().classes().into_iter();
        let class = class.filter(|class| fastest.as_ref() == Some(&class.name));
        let size = class.map(|class| class.chunks * self.objects.volume().chunk_bytes()).sum();
        self.settings.fast_class_bytes.map_or(size, |limit| limit.min(size))
    }

    /// Takes mirrors away that are in the way or of no use, or all; whether any were.
    ///
    /// # Errors
    /// Those of the manifest.
    pub(crate) async fn trim_mirrors(&self, writing: &Writing, all: bool) -> Result<bool> {
        let stores = self.stores.read().clone();
        if stores.iter().all(|store| store.view.read().tree.mirrors.is_empty()) {
            return Ok(false);
        }
        let Some(_turn) = Turn::take(&self.background.is_trimming) else { return Ok(false) };
        let mut surplus = self.mirrors_surplus();
        let makes_room = surplus > 0;
        let mut has_any = false;
        for store in &stores {
            let tree = store.view.read().tree.clone();
            let is_of_use = !all && self.are_mirrors_of_use(store);
            let mut changes = Vec::new();
            let worth = |mirror: &Arc<Kvset>| {
                let info = &mirror.record().info;
                (mirror.use_as_mirror.reads(), info.referenced_bytes() + info.size_bytes)
            };
            let worths: Vec<_> = tree.mirrors.iter().map(worth).collect();
            let order = by_worth(&worths);
            let many = order.len().saturating_sub(MOST_MIRRORS);
            for (gone, index) in order.iter().enumerate() {
                let mirror = &tree.mirrors[*index];
                if is_of_use && surplus == 0 && gone >= many && self.is_of_use(mirror) {
                    if makes_room {
                        mirror.use_as_mirror.stays();
                    }
                    continue;
                }
                surplus = surplus.saturating_sub(worths[*index].1);
                let kvset = mirror.no();
                changes.push(Change::RemoveKvset { place: Place::Mirrors, kvset });
            }
            drop(tree);
            if changes.is_empty() {
                continue;
            }
            has_any = true;
            // CRASH: the leaves have everything.
            self.crash.reached("mirrors.before-manifest");
            match self.install(writing, store, &Edit { changes }, Vec::new).await {
                Err(_) if store.check_there().is_err() => {}
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                installed => installed?,
            }
        }
        if has_any {
            self.environment.sleep(READS_END).await;
            self.delete_retired().await?;
            self.watch_fast_class();
            self.background.progress.notify();
        }
        Ok(has_any)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_by_which_least_is_read_go_first() {
        // Newest first: the newest could not show what it is worth yet.
        let mirrors = [
            (None, 100),
            (Some(10), 100),
            (Some(0), 100),
            (Some(50), 1000),
            (Some(0), 500),
            (Some(900), 1000),
        ];
        assert_eq!(by_worth(&mirrors), [4, 2, 3, 1, 5, 0]);
        // Nothing is known: the oldest.
        assert_eq!(by_worth(&[(None, 1), (None, 1), (None, 1)]), [2, 1, 0]);
        assert_eq!(by_worth(&[]), [0; 0]);
    }
}
