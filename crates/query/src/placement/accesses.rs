//! What a physical plan is going to read: which index, how, how many pages, and when.

use std::sync::Arc;

use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec};
use tanada_innodb::IndexNo;
use tanada_placement::Pattern;

use super::places::TablePlaces;
use super::wanted::{Wanted, least, limited, of_child};
use crate::cost::{IndexShape, page_reads};
use crate::external::FileScanExec;
use crate::lookup::OutOfOrderLookupJoinExec;
use crate::relation::{FileFootprint, InnodbRelation, RelationAccess};
use crate::scan::{AccessPath, RelationScanExec, decoded_columns};

/// What an operator of a plan reads of one index.
#[derive(Debug, Clone)]
pub struct PlannedAccess {
    /// Of which relation.
    pub relation: Arc<InnodbRelation>,
    /// Which index, and how.
    pub access: RelationAccess,
}

/// All that a plan is going to read.
#[derive(Debug, Default)]
struct Found {
    indexes: Vec<PlannedAccess>,
    files: Vec<PlannedFiles>,
}

/// What a scan of files reads of them.
#[derive(Debug)]
pub(crate) struct PlannedFiles {
    pub(crate) footprints: Vec<FileFootprint>,
    pub(crate) places: TablePlaces,
}

/// All accesses of a plan to indexes. What a `LIMIT` leaves unread is not expected.
pub fn accesses(plan: &Arc<dyn ExecutionPlan>) -> Vec<PlannedAccess> {
    let mut found = Found::default();
    visit(plan, 0, None, &mut found);
    found.indexes
}

/// All accesses of a plan to files of other formats. What a `LIMIT` leaves unread is not expected.
pub(crate) fn file_accesses(plan: &Arc<dyn ExecutionPlan>) -> Vec<PlannedFiles> {
    let mut found = Found::default();
    visit(plan, 0, None, &mut found);
    found.files
}

/// Adds the accesses below `plan`, the first of which begin in `stage`, for as many of its rows as are wanted; gives
/// the last stage in it.
fn visit(plan: &Arc<dyn ExecutionPlan>, stage: u32, wanted: Wanted, found: &mut Found) -> u32 {
    let wanted = limited(plan, wanted);
    if let Some(scan) = plan.downcast_ref::<FileScanExec>() {
        let footprints = scan.footprints(stage, wanted);
        found.files.push(PlannedFiles { footprints, places: scan.places() });
        return stage;
    }
    if let Some(scan) = plan.downcast_ref::<RelationScanExec>() {
        of_scan(scan, stage, wanted, &mut found.indexes);
        return stage;
    }
    if let Some(join) = plan.downcast_ref::<OutOfOrderLookupJoinExec>() {
        let keys = wanted.map(|rows| rows / join.estimate().output_per_outer_row.max(f64::MIN_POSITIVE));
        let last = visit(join.outer(), stage, keys, found);
        of_lookup(join, last, keys, &mut found.indexes);
        return last;
    }
    let hashes = plan.downcast_ref::<HashJoinExec>().is_some()
        || plan.downcast_ref::<NestedLoopJoinExec>().is_some()
        || plan.downcast_ref::<CrossJoinExec>().is_some();
    let mut last = stage;
    for (no, child) in plan.children().into_iter().enumerate() {
        let begins = if hashes && no > 0 { last + 1 } else { stage };
        let of_it = if hashes && no == 0 { None } else { of_child(plan, child, wanted) };
        last = last.max(visit(child, begins, of_it, found));
    }
    last
}

fn of_scan(scan: &RelationScanExec, stage: u32, wanted: Wanted, found: &mut Vec<PlannedAccess>) {
    let relation = scan.relation();
    let shape = relation.shape();
    let work = scan.choice().considered.first().map(|(_, cost)| cost.work).unwrap_or_default();
    let leaves = |index: IndexNo| relation.index_shape(index).leaf_pages;
    let in_sequence = work.sequential_bytes / shape.page_bytes;
    // The part of the rows after which nothing more is read.
    let share = wanted.map_or(1.0, |wanted| (wanted / scan.choice().rows.max(1.0)).min(1.0));
    let decoded = decoded_columns(scan.projection(), scan.filters());
    let mut add = |index: IndexNo, pattern: Pattern, pages: f64| {
        let pattern = match pattern {
            Pattern::RandomLookUps { expected } => {
                Pattern::RandomLookUps { expected: (expected as f64 * share).ceil() as u64 }
            }
            pattern => pattern,
        };
        let columns = columns_of(relation, index, &decoded);
        let access = RelationAccess { index, columns, pattern, pages: pages * share, stage };
        found.push(PlannedAccess { relation: Arc::clone(relation), access });
    };
    match scan.path() {
        // Of the table's own files nothing is read.
        AccessPath::Mirrors(_) => {}
        AccessPath::FullScan => add(IndexNo(0), Pattern::SequentialScan, leaves(IndexNo(0))),
        AccessPath::ClusteredRange { .. } => {
            add(IndexNo(0), Pattern::IndexRange, in_sequence + work.random_ios)
        }
        AccessPath::IndexOnly { index, .. } => {
            add(*index, Pattern::IndexRange, in_sequence + work.random_ios)
        }
        AccessPath::Bookmarks { index, .. } => {
            let expected = scan.choice().rows.max(0.0) as u64;
            add(*index, Pattern::IndexRange, in_sequence.max(1.0));
            add(IndexNo(0), Pattern::RandomLookUps { expected }, work.random_ios);
        }
        AccessPath::Lookups { index, keys } => {
            let expected = keys.len() as u64;
            let own = reads(&relation.index_shape(*index), expected as f64, shape.cached_pages);
            add(*index, Pattern::RandomLookUps { expected }, own);
            if *index != IndexNo(0) && work.random_ios > own {
                let expected = scan.choice().rows.max(0.0) as u64;
                add(IndexNo(0), Pattern::RandomLookUps { expected }, work.random_ios - own);
            }
        }
    }
}

fn of_lookup(join: &OutOfOrderLookupJoinExec, stage: u32, wanted: Wanted, found: &mut Vec<PlannedAccess>) {
    let (source, estimate) = (join.source(), join.estimate());
    let relation = source.relation();
    let shape = relation.shape();
    let index = source.index();
    // Where nothing is known of the outer side, the index may be read as a whole.
    let keys = least(wanted, Some(estimate.outer_rows.unwrap_or(shape.rows))).unwrap_or_default();
    let matches = keys * estimate.matches_per_key;
    let mut add = |index: IndexNo, requests: f64| {
        let pages = reads(&relation.index_shape(index), requests, shape.cached_pages);
        let pattern = Pattern::RandomLookUps { expected: requests.max(0.0) as u64 };
        let columns = columns_of(relation, index, source.columns());
        let access = RelationAccess { index, columns, pattern, pages, stage };
        found.push(PlannedAccess { relation: Arc::clone(relation), access });
    };
    add(index, keys);
    if !source.covering() {
        add(IndexNo(0), matches);
    }
}

fn reads(index: &IndexShape, requests: f64, cached_pages: f64) -> f64 {
    page_reads(index.leaf_pages, requests, cached_pages)
}

/// What is read of an index: of the one that holds the rows all columns that are needed, of another one those that it
/// is searched by.
fn columns_of(relation: &InnodbRelation, index: IndexNo, needed: &[usize]) -> Vec<usize> {
    let parts = || relation.table().definition().indexes.get(index.0).map(|index| index.parts.as_slice());
    match index {
        IndexNo(0) => needed.to_vec(),
        _ => parts().unwrap_or_default().iter().map(|part| part.column.0).collect(),
    }
}
