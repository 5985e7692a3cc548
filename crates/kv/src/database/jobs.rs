//! Jobs of the trees.
//!
//! 1. The [scheduler](super::scheduler) gives the turn of a store, and the store's tree says which job is next.
//! 2. The job reads and writes, without any lock.
//! 3. Its edit is [installed](super::install).
//!
//! A spill that finds no space for values leaves them in the log, and a compaction of several kvsets whose values have
//! none or cannot be read merges their keys. Any other job that finds none leaves everything as it was, and is tried
//! again later. One that fails otherwise makes the database read-only in effect: what is there can be read, and the
//! cause is said to whoever writes.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tanada_volume::Claim;

use super::core::{Core, Writing};
use super::job_memory::{JobMemory, batch_of};
use super::mirrors::Trim;
use super::relocation::Correction;
use super::remirroring::room_beside_keys;
use super::store::StoreState;
use crate::keyfile::KeyFileOptions;
use crate::notify::Notify;
use crate::pace::Pace;
use crate::transaction::Scan;
use crate::tree::{DenseMirrors, JobContext, JobOutput, KvsetNo, TreeState, drop_hidden, hidden};
use crate::{ErrorKind, Result};

use super::pick::{self, Compacted, ManualCompaction};
use crate::tree::pick::{Job, join};

/// Hot and cold values go to separate segments if each has at least this fraction (1/n) of a segment,
const MIN_SEPARATE_DIVISOR: u64 = 64;
/// and at least this many chunks.
const MIN_SEPARATE_CHUNKS: u64 = 2;

/// Pause of a store's jobs after one of them found no space.
pub(super) const NO_SPACE_PAUSE: Duration = Duration::from_millis(100);

/// The result of looking for a job and running it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Progress,
    Idle,
    /// A job is due and finds no space; no event will announce when it does.
    NoSpace,
    /// A job will be due after this time.
    RetryAfter(Duration),
}

impl Outcome {
    /// Combines the outcomes of two tasks, of which this one comes first.
    pub(super) fn or(self, other: Outcome) -> Outcome {
        match (self, other) {
            (did, Outcome::Idle) => did,
            (Outcome::RetryAfter(one), Outcome::RetryAfter(other)) => Outcome::RetryAfter(one.min(other)),
            (Outcome::Idle, Outcome::RetryAfter(later)) => Outcome::RetryAfter(later),
            (did, Outcome::RetryAfter(_)) => did,
            (_, other) => other,
        }
    }
}

/// The right to do a job of a store.
#[derive(Debug)]
pub(crate) struct Turn {
    store: Arc<StoreState>,
    progress: Notify,
    /// The workers' notification, if it is not one of them that has the turn: they may have passed the store by
    /// meanwhile.
    work: Option<Notify>,
    /// Keeps the database from being opened while the owner of the turn may still write. Workers need none, since a
    /// close waits for them.
    claim: Option<Arc<Claim>>,
}

impl Turn {
    /// Takes the turn for a worker, which looks for further jobs afterwards.
    pub(crate) fn take(core: &Core, store: &Arc<StoreState>) -> Option<Turn> {
        let is_free = !store.has_job.swap(true, Ordering::AcqRel);
        is_free.then(|| Turn {
            store: store.clone(),
            progress: core.background.progress.clone(),
            work: None,
            claim: None,
        })
    }

    /// Takes the turn for a caller that is not a worker.
    fn take_from_workers(core: &Core, store: &Arc<StoreState>) -> Option<Turn> {
        let mut turn = Turn::take(core, store)?;
        turn.work = Some(core.background.work.clone());
        turn.claim = core.claim.lock().clone();
        Some(turn)
    }

    /// Waits for it.
    ///
    /// # Errors
    /// If the database takes no writes.
    pub(crate) async fn wait(core: &Core, store: &Arc<StoreState>) -> Result<Turn> {
        loop {
            let progress = core.background.progress.notified();
            core.writing()?;
            if let Some(turn) = Turn::take_from_workers(core, store) {
                return Ok(turn);
            }
            progress.await;
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.store.has_job.store(false, Ordering::Release);
        self.progress.notify();
        if let Some(work) = &self.work {
            work.notify();
        }
    }
}

/// Moves the oldest of `kvsets` down as it is, or spills all of them.
async fn spill(context: &JobContext, tree: &TreeState, kvsets: &[KvsetNo]) -> Result<JobOutput> {
    let oldest = kvsets.last().copied().unwrap_or_default();
    match crate::tree::move_down(&context.placement, tree, oldest, context.leaf_bytes) {
        Some(edit) => Ok(JobOutput { edit, ..JobOutput::default() }),
        None => crate::tree::spill(context, tree, kvsets).await,
    }
}

impl Core {
    /// Does all jobs of a store, those included that can wait, for what is in it by now: it ends though somebody goes
    /// on writing.
    ///
    /// # Errors
    /// `NoSpace`, `Corrupted`, `Device`; `NotFound` if the store is dropped.
    pub(crate) async fn compact(&self, store: &Arc<StoreState>) -> Result<()> {
        let writing = self.writing()?;
        let thorough = self.thorough(writing, store);
        self.written_out(writing, &thorough).await?;
        let (mut had_free, mut left_out) = (0, None);
        loop {
            let progress = self.background.progress.notified();
            self.check_open()?;
            store.check_there()?;
            if let Some(error) = writing.log.failure() {
                return Err(error);
            }
            let Some(turn) = Turn::take_from_workers(self, store) else {
                progress.await;
                continue;
            };
            let (error, is_leaf) = match self.do_job(writing, store, Some(&thorough)).await {
                Ok(true) => continue,
                Ok(false) => match left_out.take() {
                    None => {
                        // The job may still write.
                        let _claim = turn.claim.clone();
                        drop(turn);
                        self.trim_mirrors(writing, Trim::DueNow).await?;
                        self.delete_retired().await?;
                        return self.bring_within_limit(writing, store).await;
                    }
                    // The others may have made space for those that there was none for.
                    Some(error) => (error, false),
                },
                Err(error) if error.kind() == ErrorKind::NoSpace => (error, thorough.left_out_another()),
                Err(error) => return Err(error),
            };
            // The spare log segment, or unused chunks of key files, may be the space that a job needs to free more.
            writing.log.give_back_ready();
            let is_less = self.bring_together(writing, store).await.is_ok_and(|did| did)
                || self.thin_leaves(writing, store).await?;
            drop(turn);
            self.delete_retired().await?;
            if is_leaf {
                left_out = Some(error);
                continue;
            }
            let (free, _) = self.objects.room();
            if !is_less && free <= had_free {
                return Err(error);
            }
            had_free = had_free.max(free);
            thorough.leave_out_none();
        }
    }

    /// Takes what of a store is beyond the limit of the fastest class to the next one. The caller has no store's turn.
    async fn bring_within_limit(&self, writing: &Writing, store: &Arc<StoreState>) -> Result<()> {
        self.watch_fast_class();
        loop {
            match self.keep_within_limit(writing, std::slice::from_ref(store)).await? {
                Outcome::Progress => {}
                Outcome::RetryAfter(rest) => self.environment.sleep(rest).await,
                Outcome::Idle | Outcome::NoSpace => return Ok(()),
            }
            self.check_open()?;
        }
    }

    /// Waits until what was in memory when somebody began to wait for all jobs of a store is flushed.
    ///
    /// # Errors
    /// `NoSpace`, `Device`, `Closed`; `NotFound` if the store is dropped: nobody writes out what it has.
    pub(super) async fn written_out(&self, writing: &Writing, thorough: &ManualCompaction<'_>) -> Result<()> {
        let mut seen_failures = None;
        loop {
            let progress = self.background.progress.notified();
            self.writing()?;
            self.check_open()?;
            thorough.store.check_there()?;
            if let Some(error) = writing.log.failure() {
                return Err(error);
            }
            if !thorough.has_waiting() {
                return Ok(());
            }
            if let Some(error) = self.background_error() {
                // One more time, with what the log had ready.
                let failures = self.background.failures.get();
                if failures > *seen_failures.get_or_insert(failures) {
                    return Err(error);
                }
            }
            progress.await;
        }
    }

    pub(crate) fn job_context(&self, store: &StoreState) -> Result<JobContext> {
        let settings = store.settings();
        let placement = self.classes.placement(&settings.policy)?;
        let shares = self.shares(store, Some(&placement));
        Ok(JobContext {
            opener: self.opener.clone(),
            segment_bytes: shares.segment_bytes,
            // Each segment has one chunk that is not full.
            apart_bytes: (settings.value_segment_bytes / MIN_SEPARATE_DIVISOR)
                .max(MIN_SEPARATE_CHUNKS * self.objects.volume().chunk_bytes()),
            placement,
            key_files: KeyFileOptions {
                page_bytes: settings.page_bytes,
                filter_bits_per_key: settings.filter_bits_per_key,
                pieces: self.pieces(),
            },
            leaf_bytes: shares.leaf_bytes,
            batch_bytes: batch_of(self.job_bytes()),
            pace: Pace::considerate(&self.opener.cache, &self.environment, &self.hurry),
            takes_last_room: false,
            keeps_mirrors: self.mirrors_what_it_spills(store),
            dense: None,
            mirrors: store.view.read().tree.mirrors.keys().copied().collect(),
            readers: self.snapshots.to_keep(),
            now_s: self.environment.wall_time_s(),
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
        let (job, space) = pick::next_job(&tree, &self.pick_settings(store), &around, thorough);
        self.note_space(store, space);
        let hidden = hidden(&tree, &context.readers.numbers);
        let job = match job {
            _ if !hidden.is_empty() => Job::Drop { kvsets: hidden },
            Some(job) => job,
            None => match self.correction(writing, store, &tree, is_thorough)? {
                Some(Correction::Rewrite(job)) => job,
                Some(Correction::Move(misplaced)) => {
                    self.move_misplaced(writing, store, &misplaced).await?;
                    self.delete_retired().await?;
                    self.watch_fast_class();
                    return Ok(true);
                }
                // Scans in the meantime are scattered by writes in the meantime.
                None if thorough.is_some_and(|thorough| thorough.is_overtaken(&tree)) => return Ok(false),
                None => match self.scattered(store, &tree) {
                    Some(job) => job,
                    None if is_thorough => return Ok(false),
                    None => match self.unmirrored(store, &tree) {
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
    pub(super) async fn run_job(
        &self,
        writing: &Writing,
        store: &Arc<StoreState>,
        (mut context, tree): (JobContext, Arc<TreeState>),
        job: Job,
        is_thorough: bool,
    ) -> Result<bool> {
        let (kind, began) = (job.kind(), self.environment.now());
        let spilled: &[KvsetNo] = if let Job::Spill { kvsets } = &job { kvsets } else { &[] };
        let Some(_claim) = self.claim(store, spilled) else {
            // A merge is replacing them. The caller keeps the turn while it waits: workers would find nothing to do and
            // wake the caller.
            loop {
                let progress = self.background.progress.notified();
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
            true => Some(JobMemory::for_job(self, &mut context, is_thorough).await),
            false => None,
        };
        let (dense, _copying) = self.take_room_for_copies(|copying| match &job {
            Job::Spill { kvsets } if context.keeps_mirrors => {
                self.dense_mirrors(writing, &tree, kvsets, copying)
            }
            Job::Compact { emptied, .. } if context.keeps_mirrors && !emptied.is_empty() => {
                self.more_mirrors(copying)
            }
            Job::Mirror { leaf, .. } => {
                let mirrors = self.more_mirrors(copying)?;
                let room_bytes = room_beside_keys(&mirrors, &tree, *leaf, &context.placement);
                Some(self.of_slow_classes(&tree, DenseMirrors { room_bytes, ..mirrors }))
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
                match self.mirror_leaf(&context, store, &tree, (*leaf, kvsets)).await? {
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

    /// Notes what a scan had to read piece by piece.
    pub(crate) fn note_scan(&self, store: &StoreState, scan: Scan) {
        let Scan { first: Some(first), mut pointers, loaded: 2.. } = scan else { return };
        let tree = store.view.read().tree.clone();
        // Values in the log are spilled in any case.
        pointers.retain(|pointer| tree.segments.contains_key(&pointer.segment));
        let Some(leaf) = tree.leaf(&first).map(|leaf| leaf.no) else { return };
        if store.scattered.note(leaf, tree.value_bytes(leaf), &mut pointers, scan.loaded) {
            self.background.work.notify();
        }
    }

    /// The job that brings the values of a leaf together.
    fn scattered(&self, store: &StoreState, tree: &TreeState) -> Option<Job> {
        let (leaf, mut emptied) = store.scattered.take(tree)?;
        let leaf = tree.leaf_by_no(leaf)?;
        emptied.retain(|segment| tree.segments.contains_key(segment));
        let kvsets = leaf.kvsets.iter().map(|kvset| kvset.no()).collect();
        Some(Job::Compact { leaf: leaf.no, kvsets, emptied })
    }
}
