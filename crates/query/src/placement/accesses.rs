//! What a physical plan is going to read: which index, how, how many pages, and when.

use std::sync::Arc;

use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec};
use tanada_innodb::IndexNo;
use tanada_placement::Pattern;

use crate::cost::{IndexShape, page_reads};
use crate::lookup::OutOfOrderLookupJoinExec;
use crate::relation::InnodbRelation;
use crate::scan::{AccessPath, RelationScanExec};

/// What an operator reads of one index.
#[derive(Debug, Clone)]
pub(crate) struct IndexAccess {
    pub(crate) relation: Arc<InnodbRelation>,
    pub(crate) index: IndexNo,
    pub(crate) pattern: Pattern,
    /// Page reads expected to reach the volume.
    pub(crate) pages: f64,
    /// When it begins to be read: the side that a join hashes comes before the side that it streams.
    pub(crate) stage: u32,
}

/// All accesses of a plan.
pub(crate) fn accesses(plan: &Arc<dyn ExecutionPlan>) -> Vec<IndexAccess> {
    let mut found = Vec::new();
    visit(plan, 0, &mut found);
    found
}

/// Adds the accesses below `plan`, the first of which begin in `stage`; gives the last stage in it.
fn visit(plan: &Arc<dyn ExecutionPlan>, stage: u32, found: &mut Vec<IndexAccess>) -> u32 {
    if let Some(scan) = plan.downcast_ref::<RelationScanExec>() {
        of_scan(scan, stage, found);
        return stage;
    }
    if let Some(join) = plan.downcast_ref::<OutOfOrderLookupJoinExec>() {
        let last = visit(join.outer(), stage, found);
        of_lookup(join, last, found);
        return last;
    }
    let hashes = plan.downcast_ref::<HashJoinExec>().is_some()
        || plan.downcast_ref::<NestedLoopJoinExec>().is_some()
        || plan.downcast_ref::<CrossJoinExec>().is_some();
    let mut last = stage;
    for (no, child) in plan.children().into_iter().enumerate() {
        let begins = if hashes && no > 0 { last + 1 } else { stage };
        last = last.max(visit(child, begins, found));
    }
    last
}

fn of_scan(scan: &RelationScanExec, stage: u32, found: &mut Vec<IndexAccess>) {
    let relation = scan.relation();
    let shape = relation.shape();
    let work = scan.choice().considered.first().map(|(_, cost)| cost.work).unwrap_or_default();
    let leaves = |index: IndexNo| relation.index_shape(index).leaf_pages;
    let in_sequence = work.sequential_bytes / shape.page_bytes;
    let mut add = |index: IndexNo, pattern: Pattern, pages: f64| {
        found.push(IndexAccess { relation: Arc::clone(relation), index, pattern, pages, stage });
    };
    match scan.path() {
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

fn of_lookup(join: &OutOfOrderLookupJoinExec, stage: u32, found: &mut Vec<IndexAccess>) {
    let (source, estimate) = (join.source(), join.estimate());
    let relation = source.relation();
    let shape = relation.shape();
    let index = source.index();
    // Where nothing is known of the outer side, the index may be read as a whole.
    let keys = estimate.outer_rows.unwrap_or(shape.rows);
    let matches = keys * estimate.matches_per_key;
    let mut add = |index: IndexNo, requests: f64| {
        let pages = reads(&relation.index_shape(index), requests, shape.cached_pages);
        let pattern = Pattern::RandomLookUps { expected: requests.max(0.0) as u64 };
        found.push(IndexAccess { relation: Arc::clone(relation), index, pattern, pages, stage });
    };
    add(index, keys);
    if !source.covering() {
        add(IndexNo(0), matches);
    }
}

fn reads(index: &IndexShape, requests: f64, cached_pages: f64) -> f64 {
    page_reads(index.leaf_pages, requests, cached_pages)
}
