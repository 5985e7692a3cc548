//! Reading all of a database, to find what is damaged before somebody needs it.
//!
//! For every leaf all sources over its keys are merged: the kvsets of the root, newest first, then its own. So each
//! version is read once, under the checksums of its page, and each value in a segment under its own. Where no merge
//! comes by, in the index and the filter of each key file, every page is read, too. What is checked beyond checksums:
//!
//! - of one key, a newer source never has an older version than an older one;
//! - a kvset has as many versions, and references in each segment as many values and bytes, as the manifest says;
//! - where a value may be read in a mirror, it is whole there, too, and so are promoted kvsets;
//! - a leaf has keys of its own range only (others would be missing from the count).

use crate::tuning::maintenance::CHECKS;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::future::join_all;
use serde::{Deserialize, Serialize};

use crate::database::core::Core;
use crate::database::handle::Database;
use crate::database::state::store_state::StoreState;
use crate::entry::{Content, FirstHome, Pointer, SegmentNo, SequenceNo, Version};
use crate::keyfile::{Access, KeyCursor};
use crate::merge::{Direction, Merge, Step};
use crate::objects::ObjectKind;
use crate::tree::{Kvset, KvsetNo, TreeState};
use crate::value::Segment;
use crate::{ErrorKind, Result};

/// Most findings that are listed for a store.
const MAX_FINDINGS: usize = 1000;

/// The result of a check: what was read, and the findings.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # tanada_kv::example::run(folder.path(), async |database, store| {
/// store.put(b"key", b"value").await?;
/// store.compact().await?;
/// let report = database.check().await?;
/// assert_eq!((report.versions, report.findings.len()), (1, 0));
/// # Ok(()) }).unwrap();
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CheckReport {
    /// Kvsets that were read.
    pub kvsets: u64,
    /// Versions in them.
    pub versions: u64,
    /// Versions that are in the log alone, whose checksums were verified when it was written or replayed.
    #[serde(default)]
    pub logged_versions: u64,
    /// Values in segments.
    pub values: u64,
    /// Bytes of those, as they are stored.
    pub value_bytes: u64,
    /// Findings; empty if the database is sound.
    pub findings: Vec<String>,
    /// Copies on a faster class that are damaged: nothing is lost with them, as what they repeat is read instead.
    #[serde(default)]
    pub damaged_copies: Vec<String>,
}

/// Counters of a kvset.
#[derive(Debug, Default)]
struct Counted {
    versions: u64,
    references: BTreeMap<SegmentNo, (u64, u64)>,
}

struct Checking<'a> {
    store: &'a str,
    report: &'a mut CheckReport,
    tree: &'a TreeState,
    counted: BTreeMap<KvsetNo, Counted>,
    pending: Vec<(Segment, Pointer, Role)>,
    /// Whether damage was found in the copy that is being checked.
    is_copy_damaged: bool,
}

/// What a read is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Data,
    /// A mirror, or a promoted kvset.
    Copy,
}

impl Database {
    /// Reads everything that is in kvsets, and verifies it. Others may read and write meanwhile.
    ///
    /// # Errors
    /// `Device`, `Closed`. What is damaged is in the report.
    pub async fn check(&self) -> Result<CheckReport> {
        self.core.shared.check_open()?;
        let mut report = CheckReport::default();
        let stores = self.core.shared.stores.read().clone();
        for store in &stores {
            self.core.check_store(store, &mut report).await?;
        }
        self.core.check_objects(&stores, &mut report);
        if !report.damaged_copies.is_empty() {
            // Jobs remove the damaged copies.
            self.core.shared.background.work.notify();
        }
        Ok(report)
    }
}

impl Core {
    async fn check_store(&self, store: &Arc<StoreState>, report: &mut CheckReport) -> Result<()> {
        let tree = store.view.read().tree.clone();
        let counted = tree.kvsets().map(|kvset| (kvset.no(), Counted::default())).collect();
        report.kvsets += tree.kvsets().count() as u64;
        report.logged_versions += store.logged_versions();
        let (pending, is_copy_damaged) = (Vec::new(), false);
        let mut checking =
            Checking { store: &store.name, report, tree: &tree, counted, pending, is_copy_damaged };
        for kvset in tree.kvsets().filter(|kvset| !kvset.is_copy()) {
            checking.check_pages(kvset, Role::Data).await?;
        }
        if tree.leaves.is_empty() {
            checking.check_range((&tree.root, Role::Data), None, None).await?;
        }
        for (index, leaf) in tree.leaves.iter().enumerate() {
            let sources = tree.root.iter().chain(&leaf.kvsets).filter(|kvset| !kvset.is_copy());
            let sources: Vec<Arc<Kvset>> = sources.cloned().collect();
            let end = tree.leaf_end(index).map(|end| &**end);
            checking.check_range((&sources, Role::Data), Some(&leaf.start), end).await?;
            for copies in leaf.kvsets.iter().filter(|kvset| kvset.is_copy()) {
                checking.is_copy_damaged = false;
                checking.check_pages(copies, Role::Copy).await?;
                checking.check_range((std::slice::from_ref(copies), Role::Copy), None, None).await?;
                if checking.is_copy_damaged {
                    copies.note_damage();
                }
            }
        }
        checking.compare(&tree);
        Ok(())
    }

    /// Objects that are missing, or that nothing refers to.
    fn check_objects(&self, stores: &[Arc<StoreState>], report: &mut CheckReport) {
        let there: BTreeSet<(ObjectKind, u64)> = self.shared.objects.list().into_iter().collect();
        for store in stores {
            let tree = store.view.read().tree.clone();
            let parts = |kvset: &Arc<Kvset>| {
                let references = &kvset.record().info.references;
                let segments = references.iter().map(|references| (ObjectKind::Segment, references.segment));
                segments.chain([(ObjectKind::Keys, kvset.no())]).collect::<Vec<_>>()
            };
            let is_missing = |object: &(ObjectKind, u64)| !there.contains(object);
            let (copies, data): (Vec<_>, Vec<_>) = tree.kvsets().partition(|kvset| kvset.is_copy());
            for (kvsets, found) in [(data, &mut report.findings), (copies, &mut report.damaged_copies)] {
                let missing = kvsets.into_iter().flat_map(parts).filter(is_missing);
                for (kind, no) in missing.collect::<BTreeSet<_>>() {
                    let name = self.shared.objects.name(kind, no);
                    found.push(format!("store {:?}: object {name:?} is missing", store.name));
                }
            }
        }
    }
}

impl Checking<'_> {
    fn found(&mut self, role: Role, what: String) {
        let found = match role {
            Role::Data => &mut self.report.findings,
            Role::Copy => {
                self.is_copy_damaged = true;
                &mut self.report.damaged_copies
            }
        };
        let finding = format!("store {:?}: {what}", self.store);
        // Several come by the same page.
        if found.len() < MAX_FINDINGS && !found.contains(&finding) {
            found.push(finding);
        }
    }

    /// Damage is a finding, a failing device an error, unless only copies are lost with it.
    fn judge<T>(&mut self, role: Role, result: Result<T>) -> Result<Option<T>> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(error)
                if role == Role::Copy
                    || matches!(error.kind(), ErrorKind::Corrupted | ErrorKind::FutureFormat) =>
            {
                self.found(role, error.to_string());
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Checks the pages of the index and the filter.
    async fn check_pages(&mut self, kvset: &Kvset, role: Role) -> Result<()> {
        for error in kvset.damage().await {
            self.judge(role, Err::<(), _>(error))?;
        }
        Ok(())
    }

    async fn check_range(
        &mut self,
        (sources, role): (&[Arc<Kvset>], Role),
        start: Option<&[u8]>,
        end: Option<&[u8]>,
    ) -> Result<()> {
        let cursors: Vec<KeyCursor> =
            sources.iter().map(|kvset| kvset.cursor(Access::Ahead(CHECKS.read_ahead_bytes))).collect();
        let mut merge = Merge::new(cursors);
        let sought = merge.seek(Direction::Forward, start).await;
        if self.judge(role, sought)?.is_none() {
            return Ok(());
        }
        let mut last: Option<(Vec<u8>, SequenceNo, usize)> = None;
        while let (Some(key), Some(top)) = (merge.key(), merge.top()) {
            if end.is_some_and(|end| key >= end) {
                break;
            }
            let (kvset, sequence) = (&sources[top], merge.sequence());
            let out_of_order = last.as_ref().is_some_and(|(last_key, last_sequence, last_top)| {
                last_key == key && (sequence > *last_sequence || top < *last_top)
            });
            if out_of_order {
                let no = kvset.no();
                self.found(role, format!("kvset {no} has a version of key {key:?} that is out of order"));
            }
            last = Some((key.to_vec(), sequence, top));
            self.report.versions += 1;
            let counted = self.counted.entry(kvset.no()).or_default();
            counted.versions += 1;
            let version = self.judge(role, merge.version())?;
            if let Some(Version { content: Content::At(pointer), mirror, .. }) = version {
                self.value((kvset, role), pointer, mirror).await?;
            }
            let advanced = match merge.advance() {
                Ok(Step::Load) => merge.load().await,
                Ok(Step::Done) => Ok(()),
                Err(error) => Err(error),
            };
            if self.judge(role, advanced)?.is_none() {
                break;
            }
        }
        self.read_pending().await
    }

    async fn value(
        &mut self,
        (kvset, role): (&Arc<Kvset>, Role),
        pointer: Pointer,
        first: Option<FirstHome>,
    ) -> Result<()> {
        let counted = self.counted.entry(kvset.no()).or_default();
        let sums = counted.references.entry(pointer.segment).or_default();
        sums.0 += 1;
        sums.1 += u64::from(pointer.stored_len);
        self.report.values += 1;
        self.report.value_bytes += u64::from(pointer.stored_len);
        let segment = self.judge(role, kvset.segment(&pointer).cloned())?;
        self.pending.extend(segment.map(|segment| (segment, pointer, role)));
        let mirror = first.and_then(|first| self.tree.open_mirror(first, &pointer));
        let mirror = mirror.and_then(|(mirror, pointer)| Some((mirror.segment()?, pointer, Role::Copy)));
        self.pending.extend(mirror);
        if self.pending.len() >= CHECKS.concurrent_reads {
            self.read_pending().await?;
        }
        Ok(())
    }

    async fn read_pending(&mut self) -> Result<()> {
        let pending = std::mem::take(&mut self.pending);
        let reads = pending
            .iter()
            .map(|(segment, pointer, _)| async move { segment.read_uncached(pointer).await.map(drop) });
        for (read, (segment, _, role)) in join_all(reads).await.into_iter().zip(&pending) {
            let is_whole = self.judge(*role, read)?.is_some();
            let mirror = self.tree.mirrors.get(&segment.no()).filter(|_| !is_whole && *role == Role::Copy);
            if let Some(mirror) = mirror.and_then(|mirror| mirror.opened.as_deref()) {
                mirror.note_damage();
            }
        }
        Ok(())
    }

    /// Compares what was counted with what the manifest says.
    fn compare(&mut self, tree: &TreeState) {
        for kvset in tree.kvsets() {
            let Some(counted) = self.counted.remove(&kvset.no()) else { continue };
            let info = &kvset.record().info;
            let role = if kvset.is_copy() { Role::Copy } else { Role::Data };
            let said: BTreeMap<SegmentNo, (u64, u64)> = info
                .references
                .iter()
                .map(|references| (references.segment, (references.values, references.stored_bytes)))
                .collect();
            if counted.versions != info.entries {
                let (no, found, said) = (kvset.no(), counted.versions, info.entries);
                self.found(
                    role,
                    format!("kvset {no} has {found} versions in its range, and {said} are said to be there"),
                );
            }
            if counted.references != said {
                let no = kvset.no();
                self.found(role, format!("kvset {no} does not reference what it is said to reference"));
            }
        }
    }
}
