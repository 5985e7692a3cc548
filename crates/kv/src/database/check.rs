//! Reading all of a database, to find what is damaged before somebody needs it.
//!
//! For every leaf all sources over its keys are merged: the kvsets of the root, newest first, then its own. So each version is read once, under the
//! checksums of its page, and each value in a segment under its own. What is checked beyond checksums:
//!
//! - of one key, a newer source never has an older version than an older one;
//! - a kvset has as many versions, and references in each segment as many values and bytes, as the manifest says;
//! - where a value may be read in a mirror, it is whole there, too;
//! - a leaf has keys of its own range only (others would be missing from the count).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::future::join_all;
use serde::{Deserialize, Serialize};

use super::Database;
use super::core::Core;
use super::store::StoreState;
use crate::entry::{Content, FirstHome, Pointer, SegmentNo, SequenceNo, Version};
use crate::keyfile::{Access, KeyCursor};
use crate::merge::{Direction, Merge, Step};
use crate::tree::{Kvset, KvsetKind, KvsetNo, TreeState};
use crate::value::Segment;
use crate::{ErrorKind, Result};

/// Values that are read at once.
const READS_AT_ONCE: usize = 32;

const READ_AHEAD_BYTES: usize = 256 << 10;

/// Findings of one store beyond which no more are listed.
const MOST_FINDINGS: usize = 1000;

/// What a check read, and what is wrong.
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
    /// What is wrong; empty if nothing is.
    pub findings: Vec<String>,
}

/// What was counted of a kvset.
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
    pending: Vec<(Segment, Pointer)>,
}

impl Database {
    /// Reads everything that is in kvsets, and verifies it. Others may read and write meanwhile.
    ///
    /// # Errors
    /// `Device`, `Closed`. What is damaged is in the report.
    pub async fn check(&self) -> Result<CheckReport> {
        self.core.check_open()?;
        let mut report = CheckReport::default();
        let stores = self.core.stores.read().clone();
        for store in &stores {
            self.core.check_store(store, &mut report).await?;
        }
        self.core.check_objects(&stores, &mut report);
        Ok(report)
    }
}

impl Core {
    async fn check_store(&self, store: &Arc<StoreState>, report: &mut CheckReport) -> Result<()> {
        let tree = store.view.read().tree.clone();
        let counted = tree.kvsets().map(|kvset| (kvset.no(), Counted::default())).collect();
        report.kvsets += tree.kvsets().count() as u64;
        report.logged_versions += store.logged_versions();
        let mut checking = Checking { store: &store.name, report, tree: &tree, counted, pending: Vec::new() };
        if tree.leaves.is_empty() {
            checking.check_range(&tree.root, None, None).await?;
        }
        for (index, leaf) in tree.leaves.iter().enumerate() {
            let sources: Vec<Arc<Kvset>> = tree.root.iter().chain(&leaf.kvsets).cloned().collect();
            let end = tree.leaf_end(index).map(|end| &**end);
            checking.check_range(&sources, Some(&leaf.start), end).await?;
        }
        checking.compare(&tree);
        Ok(())
    }

    /// Objects that are missing, or that nothing refers to.
    fn check_objects(&self, stores: &[Arc<StoreState>], report: &mut CheckReport) {
        use crate::objects::ObjectKind;
        let there: BTreeSet<(ObjectKind, u64)> = self.objects.list().into_iter().collect();
        for store in stores {
            let tree = store.view.read().tree.clone();
            let segments = tree.references().into_keys().map(|no| (ObjectKind::Segment, no));
            let keys = tree.kvsets().map(|kvset| (ObjectKind::Keys, kvset.no()));
            for (kind, no) in segments.chain(keys).filter(|object| !there.contains(object)) {
                let name = self.objects.name(kind, no);
                report.findings.push(format!("store {:?}: object {name:?} is missing", store.name));
            }
        }
    }
}

impl Checking<'_> {
    fn found(&mut self, what: String) {
        if self.report.findings.len() < MOST_FINDINGS {
            self.report.findings.push(format!("store {:?}: {what}", self.store));
        }
    }

    /// Damage is a finding, a failing device an error.
    fn judge<T>(&mut self, result: Result<T>) -> Result<Option<T>> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(error) if matches!(error.kind(), ErrorKind::Corrupted | ErrorKind::FutureFormat) => {
                self.found(error.to_string());
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    async fn check_range(
        &mut self,
        sources: &[Arc<Kvset>],
        start: Option<&[u8]>,
        end: Option<&[u8]>,
    ) -> Result<()> {
        let cursors: Vec<KeyCursor> =
            sources.iter().map(|kvset| kvset.cursor(Access::Ahead(READ_AHEAD_BYTES))).collect();
        let mut merge = Merge::new(cursors);
        let sought = merge.seek(Direction::Forward, start).await;
        if self.judge(sought)?.is_none() {
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
            let is_promoted = |kvset: &Kvset| kvset.record().kind == KvsetKind::Promoted;
            if out_of_order && !sources.iter().any(|kvset| is_promoted(kvset)) {
                let no = kvset.no();
                self.found(format!("kvset {no} has a version of key {key:?} that is out of order"));
            }
            last = Some((key.to_vec(), sequence, top));
            self.report.versions += 1;
            let counted = self.counted.entry(kvset.no()).or_default();
            counted.versions += 1;
            let version = self.judge(merge.version())?;
            if let Some(Version { content: Content::At(pointer), mirror, .. }) = version {
                self.value(kvset, pointer, mirror).await?;
            }
            let advanced = match merge.advance() {
                Ok(Step::Load) => merge.load().await,
                Ok(Step::Done) => Ok(()),
                Err(error) => Err(error),
            };
            if self.judge(advanced)?.is_none() {
                break;
            }
        }
        self.read_pending().await
    }

    async fn value(&mut self, kvset: &Arc<Kvset>, pointer: Pointer, first: Option<FirstHome>) -> Result<()> {
        let counted = self.counted.entry(kvset.no()).or_default();
        let sums = counted.references.entry(pointer.segment).or_default();
        sums.0 += 1;
        sums.1 += u64::from(pointer.stored_len);
        self.report.values += 1;
        self.report.value_bytes += u64::from(pointer.stored_len);
        let segment = self.judge(kvset.segment(&pointer).cloned())?;
        self.pending.extend(segment.map(|segment| (segment, pointer)));
        let mirror = first.and_then(|first| self.tree.open_mirror(first, &pointer));
        let mirror = mirror.and_then(|(mirror, pointer)| Some((mirror.segment()?, pointer)));
        self.pending.extend(mirror);
        if self.pending.len() >= READS_AT_ONCE {
            self.read_pending().await?;
        }
        Ok(())
    }

    async fn read_pending(&mut self) -> Result<()> {
        let pending = std::mem::take(&mut self.pending);
        let reads = pending
            .iter()
            .map(|(segment, pointer)| async move { segment.read_uncached(pointer).await.map(drop) });
        for read in join_all(reads).await {
            self.judge(read)?;
        }
        Ok(())
    }

    /// Compares what was counted with what the manifest says.
    fn compare(&mut self, tree: &TreeState) {
        for kvset in tree.kvsets() {
            let Some(counted) = self.counted.remove(&kvset.no()) else { continue };
            let info = &kvset.record().info;
            let said: BTreeMap<SegmentNo, (u64, u64)> = info
                .references
                .iter()
                .map(|references| (references.segment, (references.values, references.stored_bytes)))
                .collect();
            if counted.versions != info.entries {
                let (no, found, said) = (kvset.no(), counted.versions, info.entries);
                self.found(format!(
                    "kvset {no} has {found} versions in its range, and {said} are said to be there"
                ));
            }
            if counted.references != said {
                let no = kvset.no();
                self.found(format!("kvset {no} does not reference what it is said to reference"));
            }
        }
    }
}
