//! Batches in memory, and the order of their rows.

use std::cmp::Ordering;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::interleave_record_batch;
use datafusion::common::Result;

use crate::keys::{BatchKeys, Prefix};

/// A row in its place of the order.
#[derive(Debug, Clone, Copy)]
struct Entry {
    prefix: Prefix,
    batch: u32,
    row: u32,
}

/// Batches that are to be sorted.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    batches: Vec<RecordBatch>,
    /// Their keys, whose prefixes are in `entries`.
    keys: Vec<BatchKeys>,
    entries: Vec<Entry>,
}

impl Buffer {
    /// Bytes that keys take in a buffer, an entry for each.
    pub(super) fn bytes_of(keys: &BatchKeys) -> usize {
        keys.rest_bytes() + keys.len() * size_of::<Entry>()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    pub(super) fn push(&mut self, batch: RecordBatch, mut keys: BatchKeys) {
        let place = self.batches.len() as u32;
        let entries = keys.take_prefixes().into_iter().zip(0..);
        self.entries.extend(entries.map(|(prefix, row)| Entry { prefix, batch: place, row }));
        self.batches.push(batch);
        self.keys.push(keys);
    }

    /// The rows in order, of equal keys the one that came first, in batches of `batch_rows`.
    pub(super) fn sorted(self, batch_rows: usize) -> Sorted {
        let Buffer { batches, keys, mut entries } = self;
        entries.sort_unstable_by(|a, b| {
            let by_rest = || {
                let (of_a, of_b) = (&keys[a.batch as usize], &keys[b.batch as usize]);
                of_a.compare_rest(a.row as usize, of_b, b.row as usize)
            };
            let by_place = || (a.batch, a.row).cmp(&(b.batch, b.row));
            match a.prefix.cmp(&b.prefix) {
                Ordering::Equal => by_rest().then_with(by_place),
                ordering => ordering,
            }
        });
        Sorted { batches, entries, next: 0, batch_rows }
    }
}

/// Batches in order.
#[derive(Debug)]
pub(super) struct Sorted {
    batches: Vec<RecordBatch>,
    entries: Vec<Entry>,
    next: usize,
    batch_rows: usize,
}

impl Iterator for Sorted {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Result<RecordBatch>> {
        let end = self.entries.len().min(self.next + self.batch_rows);
        let entries = &self.entries[self.next..end];
        if entries.is_empty() {
            return None;
        }
        self.next = end;
        let places: Vec<(usize, usize)> =
            entries.iter().map(|entry| (entry.batch as usize, entry.row as usize)).collect();
        Some(interleaved(&self.batches, &places))
    }
}

/// A batch of the rows at `places`: a batch of `batches` and a row of it.
pub(super) fn interleaved(batches: &[RecordBatch], places: &[(usize, usize)]) -> Result<RecordBatch> {
    let batches: Vec<&RecordBatch> = batches.iter().collect();
    Ok(interleave_record_batch(&batches, places)?)
}
