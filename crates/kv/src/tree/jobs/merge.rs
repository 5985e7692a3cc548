//! Kvsets of the root into one.
//!
//! Keys alone are rewritten; values stay in the log. What a newer one of the kvsets hides is left out, so it is
//! never spilled.

use crate::tuning::tree::JOBS;
use std::collections::BTreeSet;
use std::sync::Arc;

use super::JobContext;
use super::JobOutput;
use super::groups;
use super::output::Outputs;
use super::select;
use super::sink::Ending;
use crate::Result;
use crate::merge::Retention;
use crate::notify::yield_now;
use crate::tree::edit::{Change, KvsetNo, Place, Position};
use crate::tree::kvset::{Kvset, TreeState};

/// Merges the kvsets `numbers` of the root, neighbours.
///
/// # Errors
/// `NoSpace`, `Corrupted`, or if a device fails; the tree is as it was.
pub(crate) async fn merge(context: &JobContext, tree: &TreeState, numbers: &[KvsetNo]) -> Result<JobOutput> {
    let inputs = select(&tree.root, numbers)?;
    let mut outputs = Outputs::new(context, &inputs, BTreeSet::new()).at_root();
    match write(context, &inputs, &mut outputs).await {
        Ok(output) => Ok(output),
        Err(error) => {
            outputs.discard().await;
            Err(error)
        }
    }
}

async fn write(context: &JobContext, inputs: &[Arc<Kvset>], outputs: &mut Outputs<'_>) -> Result<JobOutput> {
    let Some(newest) = inputs.first() else { return Ok(JobOutput::default()) };
    let retention = Retention { readers: context.readers.clone(), now_s: context.now_s, is_bottom: false };
    let mut groups = groups(context, inputs, None).await?;
    let mut keys = 0usize;
    while groups.peek().is_some() {
        groups.next(&retention).await?;
        keys += 1;
        if keys.is_multiple_of(JOBS.versions_per_slice) {
            yield_now().await;
        }
        let (key, versions) = groups.group();
        for version in versions.drain(..) {
            // No values are moved.
            outputs.add(key, version, false).await?;
        }
    }
    let tombstones = retention.tombstones_within(groups.tombstones(), b"", None);
    let position = Position::Above(newest.no());
    outputs.end(Ending { place: Place::Root, position, new_leaf: None, tombstones });
    outputs.output().versions_merged = groups.merged();
    let mut output = outputs.finish().await?;
    let removed = inputs.iter().map(|kvset| Change::RemoveKvset { place: Place::Root, kvset: kvset.no() });
    output.edit.changes.extend(removed);
    Ok(output)
}
