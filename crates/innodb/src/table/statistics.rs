//! Estimates from sampled pages.
//!
//! About twenty leaves of each index are read, all at once. Rows are the leaves times the mean of live rows on them.
//! Distinct values of a key prefix are estimated from how often it changes from one row to the next: a table of n rows
//! whose prefix changes at a share p of the steps has about 1 + p (n - 1) of them, and at least as many as were seen.

use std::collections::HashSet;
use std::sync::Arc;

use tanada_io::IoContext;

use super::Table;
use super::sampling::{Sampled, read_leaves, spread};
use crate::page::header::u16_at;
use crate::record::{self, Spans};
use crate::tree::{Node, Tree};
use crate::{Error, IndexNo, Result};

/// Leaves of an index that are read.
const LEAVES: usize = 20;
/// Page header: end of the heap, bytes of removed records, live and marked records.
const HEAP_TOP: usize = 40;
const GARBAGE: usize = 46;
const RECORDS: usize = 54;
/// Where the first record of a COMPACT page lies.
const FIRST_RECORD: usize = 120;

/// Estimates from sampled pages.
#[derive(Debug, Clone, PartialEq)]
pub struct TableStatistics {
    /// Rows, estimated; exact if the table is so small that all leaf pages were sampled.
    pub rows: u64,
    /// Whether `rows` is exact.
    pub exact: bool,
    /// Mean bytes of a clustered record.
    pub row_bytes: f64,
    /// Per index.
    pub indexes: Vec<IndexStatistics>,
}

/// Estimates of one index.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct IndexStatistics {
    /// Levels, 1 is a root that is a leaf.
    pub height: u32,
    /// Leaf pages in all partitions.
    pub leaf_pages: u64,
    /// Distinct values of the first, the first two, ... parts, estimated.
    pub distinct: Vec<u64>,
    /// Share of consecutive leaf pages (in key order) that are neighbours in the file, 0 to 1.
    pub contiguity: f64,
}

/// What the sampled leaves of one index in one partition hold.
#[derive(Debug, Default)]
struct Sample {
    height: u32,
    leaves: u64,
    sampled_leaves: u64,
    pairs: u64,
    neighbours: u64,
    exact: bool,
    damage: Option<Error>,
    live: u64,
    records: u64,
    record_bytes: u64,
    /// Steps from a row to the next on the same page, and by prefix how many of them change it.
    steps: u64,
    changes: Vec<u64>,
    /// By prefix, hashes of the values seen.
    seen: Vec<HashSet<u64>>,
}

impl Table {
    /// Estimates, sampled once per table with about 20 page reads an index, all in flight at once.
    ///
    /// Pages that are damaged are left out, with a warning.
    ///
    /// # Errors
    /// If the table is no more there.
    pub async fn statistics(&self, context: &IoContext) -> Result<Arc<TableStatistics>> {
        if let Some(statistics) = self.statistics.lock().clone() {
            return Ok(statistics);
        }
        let samples = (0..self.trees.len()).map(|no| self.sample_index(IndexNo(no), context));
        let samples = futures::future::try_join_all(samples).await?;
        self.warn_of_damage(samples.iter().flatten().find_map(|sample| sample.damage.as_ref()));
        let statistics = Arc::new(self.summarize(&samples));
        *self.statistics.lock() = Some(statistics.clone());
        Ok(statistics)
    }

    async fn sample_index(&self, index: IndexNo, context: &IoContext) -> Result<Vec<Sample>> {
        let Ok(trees) = self.trees_of(index) else { return Ok(Vec::new()) };
        let leaves = LEAVES.div_ceil(trees.len().max(1));
        futures::future::try_join_all(trees.iter().map(|tree| Sample::take(tree, leaves, context))).await
    }

    fn summarize(&self, samples: &[Vec<Sample>]) -> TableStatistics {
        let clustered = samples.first().map_or(&[][..], Vec::as_slice);
        let rows = clustered.iter().map(Sample::rows).sum();
        let records: u64 = clustered.iter().map(|sample| sample.records).sum();
        let bytes: u64 = clustered.iter().map(|sample| sample.record_bytes).sum();
        let index = |(no, samples): (usize, &Vec<Sample>)| {
            let index = &self.definition.indexes[no];
            let unique = (index.unique || no == 0).then_some(index.parts.len());
            summarize_index(samples, rows, unique)
        };
        TableStatistics {
            rows,
            exact: clustered.iter().all(|sample| sample.exact),
            row_bytes: bytes as f64 / records.max(1) as f64,
            indexes: samples.iter().enumerate().map(index).collect(),
        }
    }
}

fn summarize_index(samples: &[Sample], rows: u64, unique_parts: Option<usize>) -> IndexStatistics {
    let sum = |of: fn(&Sample) -> u64| samples.iter().map(of).sum::<u64>();
    let parts = samples.iter().map(|sample| sample.changes.len()).max().unwrap_or(0);
    let distinct = |part: usize| {
        if unique_parts == Some(part + 1) {
            return rows;
        }
        let steps = sum(|sample| sample.steps);
        let changes: u64 = samples.iter().filter_map(|sample| sample.changes.get(part)).sum();
        let seen: HashSet<u64> =
            samples.iter().filter_map(|sample| sample.seen.get(part)).flatten().copied().collect();
        let share = changes as f64 / steps.max(1) as f64;
        let estimate = 1.0 + share * rows.saturating_sub(1) as f64;
        (estimate.round() as u64).max(seen.len() as u64).min(rows)
    };
    IndexStatistics {
        height: samples.iter().map(|sample| sample.height).max().unwrap_or(0),
        leaf_pages: sum(|sample| sample.leaves),
        distinct: (0..parts).map(distinct).collect(),
        contiguity: match sum(|sample| sample.pairs) {
            0 => 1.0,
            pairs => sum(|sample| sample.neighbours) as f64 / pairs as f64,
        },
    }
}

impl Sample {
    async fn take(tree: &Tree, leaves: usize, context: &IoContext) -> Result<Sample> {
        let mut sampled = Sampled::new(tree, context).await?;
        let chosen = spread(&sampled.known, leaves);
        let read = read_leaves(tree, &chosen, &mut sampled.damage, context).await?;
        let parts = tree.layout.key_fields;
        let mut sample = Sample {
            height: sampled.height,
            leaves: sampled.leaves,
            sampled_leaves: read.len() as u64,
            pairs: sampled.pairs,
            neighbours: sampled.neighbours,
            exact: sampled.is_exact() && chosen.len() == sampled.known.len(),
            changes: vec![0; parts],
            seen: vec![HashSet::new(); parts],
            ..Sample::default()
        };
        for leaf in read {
            if let Err(error) = sample.add(tree, &leaf) {
                sampled.damage.get_or_insert(tree.at(leaf.page().number(), &error));
            }
        }
        sample.exact &= sampled.damage.is_none();
        sample.damage = sampled.damage;
        Ok(sample)
    }

    fn rows(&self) -> u64 {
        if self.exact { self.live } else { self.live * self.leaves / self.sampled_leaves.max(1) }
    }

    fn add(&mut self, tree: &Tree, leaf: &Node) -> Result<()> {
        let bytes = leaf.bytes();
        let used = usize::from(u16_at(bytes, HEAP_TOP)).saturating_sub(FIRST_RECORD);
        self.record_bytes += used.saturating_sub(usize::from(u16_at(bytes, GARBAGE))) as u64;
        self.records += u64::from(u16_at(bytes, RECORDS));
        let parts = self.changes.len();
        let fields = parts.max(tree.layout.current_fields());
        let (mut spans, mut previous, mut live) = (Spans::new(), Spans::new(), 0u64);
        let mut records = leaf.records();
        while let Some(origin) = records.next()? {
            if !leaf.is_row(origin)? {
                continue;
            }
            std::mem::swap(&mut spans, &mut previous);
            record::parse_leaf(bytes, origin, leaf.is_compact(), &tree.layout.shape, fields, &mut spans)?;
            if !tree.layout.is_current(bytes, &spans) {
                std::mem::swap(&mut spans, &mut previous);
                continue;
            }
            live += 1;
            let mut hash = 0xcbf2_9ce4_8422_2325u64;
            let mut changed = live == 1;
            for (part, span) in spans.iter().take(parts).enumerate() {
                let old = previous.get(part).copied();
                changed |= old.is_none_or(|old| {
                    old.is_null() != span.is_null() || old.bytes(bytes) != span.bytes(bytes)
                });
                hash = hash_part(hash, span.is_null(), span.bytes(bytes));
                if changed {
                    self.changes[part] += u64::from(live > 1);
                    self.seen[part].insert(hash);
                }
            }
        }
        self.live += live;
        self.steps += live.saturating_sub(1);
        Ok(())
    }
}

/// FNV-1a over the parts; NULL and lengths keep apart what concatenates alike.
fn hash_part(hash: u64, null: bool, bytes: &[u8]) -> u64 {
    const PRIME: u64 = 0x0100_0000_01b3;
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(PRIME);
    let head = [u8::from(null), bytes.len() as u8];
    head.iter().chain(bytes).fold(hash, |hash, byte| step(hash, *byte))
}
