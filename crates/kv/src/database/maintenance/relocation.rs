//! Bringing what a tree has to the classes that its policy wants: after another policy was set, a class came or went,
//! or one that was full has space.
//!
//! What decides is the class that an object is meant for, not where it found room: so what does not fit in is not tried
//! for ever. When the volume's classes have changed, each object that was there is looked at once more, for it may have
//! been moved away from a class that takes it again ([`Unsettled`]).
//!
//! 1. Only a tree that needs no other job is looked at. Of what is meant for another class than the policy wants now,
//!    one object has its turn.
//! 2. Key files and value segments are moved as they are, by the volume, a few MiB at a time and the slower the more
//!    others do; then other jobs have their turn. Readers notice nothing.
//! 3. With its last chunk the object is meant for its new class; of a value segment the tree is told so, too. A stop
//!    before that has the next opening do what is left.
//! 4. Values that leaves have in the log's segments, and that the policy wants elsewhere, are rewritten with a
//!    compaction of the leaf, for such a segment may be used by other stores, too.
//!
//! Nothing goes to the fastest class that the log could want soon. Manifest and log are no part of a tree: a worker
//! brings them back once after each change of the classes.
//!
//! What is beyond the limit of the fastest class, because that was lowered, goes the other way: between other jobs, for
//! it is a promise, an object at once, which is meant for the next class from then on. Copies of what was read often
//! are dropped first. What spills are going to take away is left to them.

use crate::tuning::maintenance::RELOCATION;
use crate::tuning::writes::BACKGROUND;
use std::collections::BTreeSet;
use std::sync::Arc;

use tanada_volume::{Attributes, Budget, Object, Relocation};

use crate::database::maintenance::installer::TreeInstaller;
use crate::database::maintenance::turn::Outcome;
use crate::database::maintenance::turn::Turn;
use crate::database::shared::{Shared, Writing};
use crate::database::space::account::SpaceManager;
use crate::database::space::size_limits::log_segment_bytes;
use crate::database::state::store_state::StoreState;
use crate::database::state::unsettled::ObjectKey;
use crate::entry::SegmentNo;
use crate::objects::ObjectKind;
use crate::tree::edit::SegmentRecord;
use crate::tree::job::Job;
use crate::tree::policy::Placement;
use crate::tree::{Change, Edit, Place, TreeState, referenced};
use crate::{Error, ErrorKind, Result};

/// An object that is meant for another class than the policy wants, or lies on another one and may find room now.
#[derive(Debug)]
pub(crate) struct Misplaced {
    key: ObjectKey,
    object: Object,
    wanted: String,
    /// Its record in the tree, if it is a value segment.
    segment: Option<SegmentRecord>,
}

/// The repair of an object that is not where its policy wants it.
#[derive(Debug)]
pub(crate) enum Correction {
    Move(Misplaced),
    Rewrite(Job),
}

/// Moves what lies elsewhere than it is meant to.
#[derive(Debug)]
pub(crate) struct Relocator {
    pub(crate) shared: Arc<Shared>,
    pub(crate) space: Arc<SpaceManager>,
    pub(crate) installer: Arc<TreeInstaller>,
}

impl Relocator {
    /// Returns an object of the tree that is not where the policy wants it and can be relocated now.
    pub(crate) fn correction(
        &self,
        writing: &Writing,
        store: &StoreState,
        tree: &TreeState,
        is_thorough: bool,
    ) -> Result<Option<Correction>> {
        let wanted = self.shared.classes.wanted(&store.policy())?;
        let misplaced = self.misplaced(writing, (store, tree), &wanted, is_thorough);
        if let Some(misplaced) = misplaced {
            return Ok(Some(Correction::Move(misplaced)));
        }
        let rewrite =
            wanted.moves_values.then(|| leaving_the_log(tree, self.space.free_for_jobs().0 / 2)).flatten();
        Ok(rewrite.map(Correction::Rewrite))
    }

    fn misplaced(
        &self,
        writing: &Writing,
        (store, tree): (&StoreState, &TreeState),
        wanted: &Placement,
        is_thorough: bool,
    ) -> Option<Misplaced> {
        let fastest = self.shared.classes.fastest();
        let mut has_room: Option<bool> = None;
        let mut may_go_to = |class: &String| {
            fastest.as_ref() != Some(class)
                || *has_room.get_or_insert_with(|| self.has_room_on_fastest(tree, is_thorough))
        };
        let mut if_misplaced = |kind, no, wanted: &String, segment: Option<&SegmentRecord>| {
            let object = self.shared.objects.find(kind, no)?;
            let meant = object.attributes().class;
            let is_known = segment.is_none_or(|segment| segment.class.as_ref() == Some(wanted));
            let (key, is_meant) = ((kind, no), meant.as_ref() == Some(wanted) && is_known);
            if (is_meant && !store.unsettled.has(key)) || !may_go_to(wanted) {
                return None;
            }
            if is_meant && !self.lies_elsewhere(&object, wanted) {
                store.unsettled.settle(key);
                return None;
            }
            Some(Misplaced { key, object, wanted: wanted.clone(), segment: segment.cloned() })
        };
        let leaves = || tree.leaves.iter().flat_map(|leaf| &leaf.kvsets);
        let copies: BTreeSet<SegmentNo> =
            leaves().filter(|kvset| kvset.is_copy()).flat_map(referenced).collect();

        let root = tree.root.iter().map(|kvset| (kvset.no(), &wanted.root_keys));
        let leaf = leaves().filter(|kvset| !kvset.is_copy()).map(|kvset| (kvset.no(), &wanted.leaf_keys));
        let mut keys = leaf.chain(root);
        let found = keys.find_map(|(no, class)| if_misplaced(ObjectKind::Keys, no, class, None));
        // Unreferenced segments are mirrors.
        let is_home =
            |segment: &&SegmentRecord| tree.is_referenced(segment.no) && !copies.contains(&segment.no);
        let mut values = tree.segments.values().filter(is_home);
        let found = found.or_else(|| {
            values.find_map(|segment| {
                if_misplaced(ObjectKind::Segment, segment.no, &wanted.leaf_values, Some(segment))
            })
        });
        if found.is_some() || wanted.moves_values {
            return found;
        }
        // Log segments that went elsewhere because there was no space, and that leaves keep their values in.
        let in_use: BTreeSet<SegmentNo> = writing.log.segments().into_iter().collect();
        let mut logs: BTreeSet<SegmentNo> = leaves().flat_map(referenced).collect();
        logs.retain(|no| !tree.segments.contains_key(no) && !in_use.contains(no));
        logs.into_iter().find_map(|no| if_misplaced(ObjectKind::Segment, no, &wanted.leaf_values, None))
    }

    /// Brings the manifest and the log's segments to where they are meant to lie, once after each change of the
    /// volume's classes. What finds no space stays.
    pub(crate) async fn bring_log_back(&self, writing: &Writing) {
        if !self.space.limit.take_log_unsettled() {
            return;
        }
        let Some(class) = self.shared.classes.of_log() else { return };
        if !self.shared.classes.is_log_on(&class) {
            // It is elsewhere because the fastest class has reached its limit.
            self.space.limit.note_log_unsettled();
            return;
        }
        let manifests =
            self.shared.objects.list().into_iter().filter(|(kind, _)| *kind == ObjectKind::Manifest);
        let segments = writing.log.segments().into_iter().map(|no| (ObjectKind::Segment, no));
        let objects: Vec<ObjectKey> = manifests.chain(segments).collect();
        for object in objects.into_iter().filter_map(|(kind, no)| self.shared.objects.find(kind, no)) {
            let end = object.chunks(0..u64::MAX).last().map_or(0, |chunk| chunk.no + 1);
            if !self.lies_elsewhere(&object, &class) {
                continue;
            }
            let relocation = Relocation {
                who: format!("kv/{}", self.shared.name),
                why: "the log's class takes data again".to_owned(),
                ..Relocation::default()
            };
            let attributes = Attributes { class: Some(class.clone()), ..object.attributes() };
            if object.move_to(0..end, &class, &relocation).await.is_ok() {
                // The object may have been deleted.
                let _ = object.set_attributes(&attributes);
            }
        }
    }

    fn lies_elsewhere(&self, object: &Object, class: &str) -> bool {
        let classes = self.shared.objects.volume().classes();
        let Some(class) = classes.iter().find(|known| known.name == class) else { return false };
        let mut homes = object.chunks(0..u64::MAX).into_iter().filter_map(|chunk| chunk.home);
        homes.any(|home| home.class != class.number)
    }

    /// Returns whether a step's bytes more are no burden to the fastest class.
    fn has_room_on_fastest(&self, tree: &TreeState, is_thorough: bool) -> bool {
        let reserve = RELOCATION.free_log_segments
            * log_segment_bytes(self.shared.objects.volume(), &self.shared.settings());
        let mirrored = self.space.mirrored_bytes();
        let fits_class = self
            .space
            .free_on_fastest()
            .is_some_and(|free| free + mirrored >= RELOCATION.step_bytes + reserve);
        let limit = self.shared.settings().fast_class_bytes;
        let fits_limit = limit.is_none_or(|limit| {
            let used = self.space.fast_class_bytes().saturating_sub(mirrored);
            used + RELOCATION.step_bytes.min(limit / 8) + reserve.min(limit / 4) <= limit
        });
        let log_bytes = tree.root.iter().map(|kvset| kvset.record().info.data_bytes()).sum();
        let is_quiet =
            is_thorough || self.space.log_pressure(log_bytes) < RELOCATION.background_fill_fraction;
        fits_class && fits_limit && is_quiet && !self.shared.classes.is_fast_full()
    }

    /// Brings what is beyond the limit of the fastest class to the next one, an object of a store. The caller has no
    /// store's turn.
    ///
    /// What another worker has in hand is left to a later look, for nobody says when its turn ends.
    ///
    /// # Errors
    /// Those of the manifest.
    pub(crate) async fn keep_within_limit(
        &self,
        writing: &Writing,
        stores: &[Arc<StoreState>],
    ) -> Result<Outcome> {
        if self.space.over_limit() == 0 {
            return Ok(Outcome::Idle);
        }
        let mut did = Outcome::Idle;
        for store in stores {
            let Some(_turn) = Turn::take(&self.shared, store) else {
                did = Outcome::RetryAfter(BACKGROUND.no_space_pause);
                continue;
            };
            let copies = dropped_copies(&store.view.read().tree);
            if !copies.is_empty() {
                self.install_if_there(writing, store, copies).await?;
            } else if let Some(excess) = self.excess(writing, store) {
                while !self.move_misplaced(writing, store, &excess).await?
                    && !self.shared.background.is_stopping()
                {}
            } else {
                continue;
            }
            self.space.delete_retired().await?;
            self.space.watch_fast_class();
            return Ok(Outcome::Progress);
        }
        Ok(did)
    }

    /// Returns an object of a store's leaves on the fastest class, values before keys, except those tried before; or of
    /// the root's log, if spills leave values there.
    fn excess(&self, writing: &Writing, store: &StoreState) -> Option<Misplaced> {
        let fastest = self.shared.classes.fastest()?;
        let next = self.shared.classes.instead_of(&fastest)?;
        let number = self.space.fastest_number()?;
        let excess = |kind, no, segment: Option<SegmentRecord>| {
            let object = self.shared.objects.find(kind, no)?;
            let mut homes = object.chunks(0..u64::MAX).into_iter().filter_map(|chunk| chunk.home);
            let key = (kind, no);
            let was_tried = object.attributes().class.as_ref() == Some(&next) && !store.unsettled.has(key);
            let is_excess = !was_tried && homes.any(|home| home.class == number);
            is_excess.then(|| Misplaced { key, object, wanted: next.clone(), segment })
        };
        let tree = store.view.read().tree.clone();
        let leaves = || tree.leaves.iter().flat_map(|leaf| &leaf.kvsets);
        let mut values: BTreeSet<SegmentNo> = leaves().flat_map(referenced).collect();
        if self.shared.classes.wanted(&store.policy()).is_ok_and(|wanted| !wanted.moves_values) {
            values.extend(tree.root.iter().flat_map(referenced));
        }
        let in_use = writing.log.segments();
        let mut values = values.into_iter().filter(|no| !in_use.contains(no));
        let found = values.find_map(|no| excess(ObjectKind::Segment, no, tree.segments.get(&no).cloned()));
        found.or_else(|| leaves().find_map(|kvset| excess(ObjectKind::Keys, kvset.no(), None)))
    }

    /// Moves a part of an object, or notes that it is where it belongs, and nothing is left to do.
    pub(crate) async fn move_misplaced(
        &self,
        writing: &Writing,
        store: &Arc<StoreState>,
        misplaced: &Misplaced,
    ) -> Result<bool> {
        let Misplaced { key, object, wanted, segment } = misplaced;
        let volume = self.shared.objects.volume();
        let classes = volume.classes();
        let Some(class) = classes.iter().find(|class| class.name == *wanted) else { return Ok(true) };
        let chunks = object.chunks(0..u64::MAX).into_iter();
        let elsewhere = chunks.filter(|chunk| chunk.home.is_some_and(|home| home.class != class.number));
        let elsewhere: Vec<u64> = elsewhere.map(|chunk| chunk.no).collect();
        let step = (RELOCATION.step_bytes / volume.chunk_bytes()).max(1) as usize;
        let step = &elsewhere[..step.min(elsewhere.len())];
        if let (Some(first), Some(last)) = (step.first(), step.last()) {
            let relocation = Relocation {
                budget: Budget { concurrency: RELOCATION.concurrent_chunks, ..Budget::default() },
                who: format!("kv/{}", self.shared.name),
                why: format!("the policy of store {:?}", store.name),
                ..Relocation::default()
            };
            match object.move_to(*first..*last + 1, wanted, &relocation).await {
                Ok(moved) => {
                    self.shared.counters.relocated_bytes.add(moved.bytes);
                    if moved.done > 0 && step.len() < elsewhere.len() {
                        return Ok(false);
                    }
                }
                // An object that cannot be moved stays, since rewritten data would not go there either.
                Err(error) if error.kind() == tanada_volume::ErrorKind::NoSpace => {
                    self.shared.counters.jobs_without_space.add(1);
                }
                Err(_) => {}
            }
        }
        store.unsettled.settle(*key);
        let attributes = Attributes { class: Some(wanted.clone()), ..object.attributes() };
        match object.set_attributes(&attributes) {
            Ok(()) => {}
            // The class or the object was removed meanwhile.
            Err(error) if error.kind() == tanada_volume::ErrorKind::NotFound => return Ok(true),
            Err(error) => return Err(Error::volume("cannot say where an object belongs", &error)),
        }
        if let Some(segment) = segment {
            let segment = SegmentRecord { class: Some(wanted.clone()), ..segment.clone() };
            let edit = Edit { changes: vec![Change::AddSegment { segment }] };
            self.install_if_there(writing, store, edit).await?;
        }
        Ok(true)
    }

    /// Installs an edit, unless the store or its object was removed meanwhile.
    async fn install_if_there(&self, writing: &Writing, store: &Arc<StoreState>, edit: Edit) -> Result<()> {
        match self.installer.install(writing, store, &edit, Vec::new).await {
            Err(_) if store.check_there().is_err() => Ok(()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            installed => installed,
        }
    }
}

/// Returns the edit that removes promoted kvsets from a tree's leaves.
fn dropped_copies(tree: &TreeState) -> Edit {
    let in_leaf = tree.leaves.iter().flat_map(|leaf| leaf.kvsets.iter().map(|kvset| (leaf.no, kvset)));
    let copies = in_leaf.filter(|(_, kvset)| kvset.is_copy());
    let changes =
        copies.map(|(leaf, kvset)| Change::RemoveKvset { place: Place::Leaf(leaf), kvset: kvset.no() });
    Edit { changes: changes.collect() }
}

/// The compaction of a leaf that has values in segments of the log: of as many of them as have `most_bytes` there, or
/// one.
fn leaving_the_log(tree: &TreeState, most_bytes: u64) -> Option<Job> {
    tree.leaves.iter().find_map(|leaf| {
        let in_log = tree.values_by_segment(leaf.no).into_iter();
        let mut in_log: Vec<(SegmentNo, u64)> =
            in_log.filter(|(no, _)| !tree.segments.contains_key(no)).collect();
        in_log.sort_by_key(|(_, bytes)| *bytes);
        let mut moved = 0;
        let fitting = in_log.into_iter().enumerate().take_while(|(index, (_, bytes))| {
            moved += bytes;
            *index == 0 || moved <= most_bytes
        });
        let emptied: BTreeSet<SegmentNo> = fitting.map(|(_, (no, _))| no).collect();
        let kvsets = leaf.kvsets.iter().map(|kvset| kvset.no()).collect();
        (!emptied.is_empty()).then_some(Job::Compact { leaf: leaf.no, kvsets, emptied })
    })
}
