//! Runs jobs of the trees.
//!
//! 1. The [scheduler](super::scheduler) gives the turn of a store, and the store's tree says which job is next.
//! 2. The job reads and writes, without any lock.
//! 3. Its edit is [installed](super::installer).
//!
//! A spill that finds no space for values leaves them in the log, and a compaction of several kvsets whose values have
//! none or cannot be read merges their keys. Any other job that finds none leaves everything as it was, and is tried
//! again later. One that fails otherwise makes the database read-only in effect: what is there can be read, and the
//! cause is said to whoever writes.

use crate::tuning::maintenance::MERGES;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::database::commit::committer::Committer;
use crate::database::maintenance::installer::TreeInstaller;
use crate::database::maintenance::pick::{Compacted, ManualCompaction, next_job};
use crate::database::maintenance::relocation::{Correction, Relocator};
use crate::database::memory::budget::MemoryBudget;
use crate::database::memory::job_memory::{JobMemory, batch_of};
use crate::database::mirrors::keeper::MirrorKeeper;
use crate::database::mirrors::remirroring::room_beside_keys;
use crate::database::shared::{Shared, Writing};
use crate::database::space::account::SpaceManager;
use crate::database::state::store_state::StoreState;
use crate::keyfile::KeyFileOptions;
use crate::pace::Pace;
use crate::tree::job::Job;
use crate::tree::pick::join;
use crate::tree::{
    Change, DenseMirrors, Edit, JobContext, JobOutput, KvsetNo, TreeState, drop_hidden, hidden,
};
use crate::{ErrorKind, Result};

/// Runs jobs of the trees: with memory, space, mirrors, and what installs their edits.
#[derive(Debug)]
pub(crate) struct JobRunner {
    pub(crate) shared: Arc<Shared>,
    pub(crate) memory: Arc<MemoryBudget>,
    pub(crate) space: Arc<SpaceManager>,
    pub(crate) committer: Arc<Committer>,
    pub(crate) installer: Arc<TreeInstaller>,
    pub(crate) mirrors: Arc<MirrorKeeper>,
    pub(crate) relocator: Arc<Relocator>,
}

/// Moves the oldest of `kvsets` down as it is, or spills all of them.
async fn spill(context: &JobContext, tree: &TreeState, kvsets: &[KvsetNo]) -> Result<JobOutput> {
    let oldest = kvsets.last().copied().unwrap_or_default();
    match crate::tree::move_down(&context.placement, tree, oldest, context.leaf_bytes) {
        Some(edit) => Ok(JobOutput { edit, ..JobOutput::default() }),
        None => crate::tree::spill(context, tree, kvsets).await,
    }
}

/// Versions in the kvsets that an edit of the tree removes: those that it puts in another place stay.
fn versions_taken_away(tree: &TreeState, edit: &Edit) -> u64 {
    let stays = |no: KvsetNo| {
        edit.changes.iter().any(|change| matches!(change, Change::AddKvset { kvset, .. } if kvset.no == no))
    };
    let removed = edit.changes.iter().filter_map(|change| match change {
        Change::RemoveKvset { kvset, .. } if !stays(*kvset) => Some(*kvset),
        _ => None,
    });
    let removed: BTreeSet<KvsetNo> = removed.collect();
    let taken_away = tree.kvsets().filter(|kvset| removed.contains(&kvset.no()));
    taken_away.map(|kvset| kvset.record().info.entries).sum()
}

impl JobRunner {
    pub(crate) fn job_context(&self, store: &StoreState) -> Result<JobContext> {
        let settings = store.settings();
        let placement = self.shared.classes.placement(&settings.policy)?;
        let shares = self.space.shares(store, Some(&placement));
        Ok(JobContext {
            opener: self.shared.opener.clone(),
            segment_bytes: shares.segment_bytes,
            // Each segment has one chunk that is not full.
            apart_bytes: (settings.value_segment_bytes / MERGES.min_separate_divisor)
                .max(MERGES.min_separate_chunks * self.shared.objects.volume().chunk_bytes()),
            placement,
            key_files: KeyFileOptions {
                page_bytes: settings.page_bytes,
                filter_bits_per_key: settings.filter_bits_per_key,
                pieces: self.memory.pieces(),
            },
            leaf_bytes: shares.leaf_bytes,
            batch_bytes: batch_of(self.memory.job_bytes()),
            pace: Pace::considerate(&self.shared.opener.cache, &self.shared.environment, &self.shared.hurry),
            takes_last_room: false,
            keeps_mirrors: self.mirrors.mirrors_what_it_spills(store),
            dense: None,
            mirrors: store.view.read().tree.mirrors.keys().copied().collect(),
            readers: self.shared.snapshots.to_keep(),
            now_s: self.shared.environment.wall_time_s(),
        })
    }

    /// Does the store's next job, if there is one.
    pub(crate) async fn do_job(
        &self,
        writing: &Writing,
        store: &Arc<StoreState>,
        thorough: Option<&ManualCompaction<'_>>,
    ) -> Result<bool> {
        let is_thorough = thorough.is_some();
        let tree = store.view.read().tree.clone();
        let mut context = self.job_context(store)?;
        if is_thorough {
            // A caller waits for the job.
            context.pace = Pace::unbounded();
        }
        let around = self.surroundings(writing, store, &tree);
        let whole = tree;
        let tree = Arc::new(whole.without_mirrors());
        drop(whole);
        let (job, space) = next_job(&tree, &self.pick_settings(store), &around, thorough);
        self.committer.note_space(store, space);
        let hidden = hidden(&tree, &context.readers.numbers);
        let job = match job {
            _ if !hidden.is_empty() => Job::Drop { kvsets: hidden },
            Some(job) => job,
            None => match self.relocator.correction(writing, store, &tree, is_thorough)? {
                Some(Correction::Rewrite(job)) => job,
                Some(Correction::Move(misplaced)) => {
                    self.relocator.move_misplaced(writing, store, &misplaced).await?;
                    self.space.delete_retired().await?;
                    self.space.watch_fast_class();
                    return Ok(true);
                }
                // Scans in the meantime are scattered by writes in the meantime.
                None if thorough.is_some_and(|thorough| thorough.is_overtaken(&tree)) => return Ok(false),
                None => match self.scattered(store, &tree) {
                    Some(job) => job,
                    None if is_thorough => return Ok(false),
                    None => match self.mirrors.unmirrored(store, &tree) {
                        Some(job) => job,
                        None => return Ok(false),
                    },
                },
            },
        };
        // Versions of the root may make versions of a leaf obsolete.
        let at_last = thorough.filter(|thorough| !thorough.has_any_at_root(&tree));
        let compacted = at_last.and_then(|thorough| Some((thorough, Compacted::by(&tree, &job)?)));
        let done = self.run_job(writing, store, (context, tree), job, is_thorough).await;
        if let Some((thorough, leaf)) = compacted {
            thorough.note(leaf, &done);
        }
        done
    }

    /// Does that job, unless a merge is about to replace what it wants.
    pub(crate) async fn run_job(
        &self,
        writing: &Writing,
        store: &Arc<StoreState>,
        (mut context, tree): (JobContext, Arc<TreeState>),
        job: Job,
        is_thorough: bool,
    ) -> Result<bool> {
        let (kind, began) = (job.kind(), self.shared.environment.now());
        let spilled: &[KvsetNo] = if let Job::Spill { kvsets } = &job { kvsets } else { &[] };
        let Some(_claim) = self.claim(store, spilled) else {
            // A merge is replacing them. The caller keeps the turn while it waits: workers would find nothing to do and
            // wake the caller.
            loop {
                let progress = self.shared.background.progress.notified();
                // Checked again each time, since the notification may be of another claim.
                if !is_thorough || !store.taken.lock().has_any(spilled) {
                    return Ok(is_thorough);
                }
                progress.await;
            }
        };
        // The others are edits alone.
        let reads = matches!(job, Job::Spill { .. } | Job::Compact { .. } | Job::Mirror { .. });
        let _memory = match reads {
            true => Some(JobMemory::for_job(&self.memory, &mut context, is_thorough).await),
            false => None,
        };
        let (dense, _copying) = self.mirrors.take_room_for_copies(|copying| match &job {
            Job::Spill { kvsets } if context.keeps_mirrors => {
                self.mirrors.dense_mirrors(writing, &tree, kvsets, copying)
            }
            Job::Compact { emptied, .. } if context.keeps_mirrors && !emptied.is_empty() => {
                self.mirrors.more_mirrors(copying)
            }
            Job::Mirror { leaf, .. } => {
                let mirrors = self.mirrors.more_mirrors(copying)?;
                let room_bytes = room_beside_keys(&mirrors, &tree, *leaf, &context.placement);
                Some(self.mirrors.of_slow_classes(&tree, DenseMirrors { room_bytes, ..mirrors }))
            }
            _ => None,
        });
        context.dense = dense;
        let output = match &job {
            Job::Spill { kvsets } => match spill(&context, &tree, kvsets).await {
                // Deletes of the root must not wait for space that no other job frees. Values follow by placement
                // repair.
                Err(error) if error.kind() == ErrorKind::NoSpace && context.placement.moves_values => {
                    context.placement.moves_values = false;
                    spill(&context, &tree, kvsets).await?
                }
                spilled => spilled?,
            },
            Job::Compact { leaf, kvsets, emptied } => {
                let output = crate::tree::compact(&context, &tree, *leaf, kvsets, emptied).await?;
                store.cleaning.note_merge(&tree, *leaf, kvsets, &output);
                output
            }
            Job::Mirror { leaf, kvsets } => {
                match self.mirrors.mirror_leaf(&context, store, &tree, (*leaf, kvsets)).await? {
                    Some(output) => output,
                    None => return Ok(false),
                }
            }
            Job::Join { leaves } => JobOutput { edit: join(leaves), ..JobOutput::default() },
            Job::Drop { kvsets } => JobOutput { edit: drop_hidden(kvsets), ..JobOutput::default() },
        };
        store.cleaning.note_spill(&output.overwritten);
        self.install_job(writing, store, (&context, tree), (kind, began), output).await
    }

    /// The job that brings the values of a leaf together.
    fn scattered(&self, store: &StoreState, tree: &TreeState) -> Option<Job> {
        let (leaf, mut emptied) = store.scattered.take(tree)?;
        let leaf = tree.leaf_by_no(leaf)?;
        emptied.retain(|segment| tree.segments.contains_key(segment));
        let kvsets = leaf.kvsets.iter().map(|kvset| kvset.no()).collect();
        Some(Job::Compact { leaf: leaf.no, kvsets, emptied })
    }

    /// Installs what a job of that kind wrote since it began, on the tree it read; whether there was anything.
    pub(crate) async fn install_job(
        &self,
        writing: &Writing,
        store: &Arc<StoreState>,
        (context, tree): (&JobContext, Arc<TreeState>),
        (kind, began): (&'static str, Duration),
        output: JobOutput,
    ) -> Result<bool> {
        self.shared.counters.jobs.add(1);
        self.shared.counters.job_read_bytes.add(output.value_bytes_read);
        if output.edit.is_empty() {
            return Ok(false);
        }
        if store.is_dropped.load(Ordering::Acquire) {
            output.abandon(&self.shared.objects).await;
            return Ok(false);
        }
        // CRASH: what was written are orphans.
        self.shared.crash.reached("job.before-manifest");
        match self.installer.install_output(writing, store, &output).await {
            Err(_) if store.check_there().is_err() => {
                output.abandon(&self.shared.objects).await;
                return Ok(false);
            }
            installed => installed?,
        }
        // CRASH: what was read are orphans.
        self.shared.crash.reached("job.after-manifest");
        let versions = versions_taken_away(&tree, &output.edit);
        let writes_values =
            output.edit.changes.iter().any(|change| matches!(change, Change::AddSegment { .. }));
        let kind = if kind == Job::COMPACTION && writes_values { Job::GARBAGE } else { kind };
        self.shared.counters.note_job(kind, versions, self.shared.environment.now().saturating_sub(began));
        // The last of them is what is visible.
        if context.readers.numbers.len() > 1 {
            let made = output.edit.changes.iter().filter_map(|change| match change {
                Change::AddKvset { kvset, .. } => Some(kvset.no),
                _ => None,
            });
            let tree = store.view.read().tree.clone();
            store.cleaning.note_kept(&tree, made);
        }
        self.committer.update_pressure([store]);
        self.space.note_reserve_of(store);
        self.shared.background.progress.notify();
        self.shared.background.work.notify();
        // Objects that only the old tree references are kept while a reader holds it.
        drop((tree, output));
        self.space.delete_retired().await?;
        // Filters of the replaced kvsets may have taken the memory.
        store.hold_filters(&self.shared.background).await;
        self.space.watch_fast_class();
        Ok(true)
    }
}
