//! The optimizer rule that replaces hash joins by look-up joins.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{JoinSide, internal_datafusion_err};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::HashJoinExec;

use super::estimate::{Estimate, estimate};
use super::exec::OutOfOrderLookupJoinExec;
use super::pattern::{Candidate, candidates};
use super::source::LookupSource;
use crate::collation::DirectComparisonRule;
use crate::interruption::InterruptibleJoins;
use crate::rules::{LargeLimitRule, OffsetRule, OperatorsRule, SortMergeRule};
use crate::scan::RelationScanExec;
use crate::settings::{Choice, TanadaOptions};

/// Replaces a hash join by a look-up join where the inner side is a relation with an index on the join key and the
/// setting `tanada.lookup_join` allows it: by cost, wherever possible, or nowhere.
#[derive(Debug, Default)]
pub struct LookupJoinRule;

/// The look-up join for `join`, or the hash join with a note why it stays; `None` if nothing can be looked up.
fn replaced(
    join: &HashJoinExec,
    options: &TanadaOptions,
    cores: usize,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let mut best: Option<(Candidate<'_>, Estimate)> = None;
    for candidate in candidates(join) {
        let estimate = estimate(&candidate, outer_of(&candidate, join), options, cores);
        if best.as_ref().is_none_or(|(_, least)| cheaper(&estimate, least)) {
            best = Some((candidate, estimate));
        }
    }
    let Some((candidate, estimate)) = best else { return Ok(None) };
    if options.lookup_join != Choice::Always && !estimate.prefers_lookup() {
        return kept(join, &candidate, &estimate).map(Some);
    }
    let outer = Arc::clone(outer_of(&candidate, join));
    let spec = candidate.spec(join, priority(&outer).saturating_add(1), estimate)?;
    let lookup = OutOfOrderLookupJoinExec::try_new(outer, Arc::clone(&candidate.source), spec)?;
    if lookup.schema() != join.schema() {
        return Err(internal_datafusion_err!(
            "a look-up join has other columns than the hash join it replaces"
        ));
    }
    Ok(Some(Arc::new(lookup)))
}

/// The hash join, with a note on the scan that look-ups could have replaced.
fn kept(
    join: &HashJoinExec,
    candidate: &Candidate<'_>,
    estimate: &Estimate,
) -> Result<Arc<dyn ExecutionPlan>> {
    let note = format!("no look-up in {}: {estimate}", candidate.source.describe());
    let noted = |plan: &Arc<dyn ExecutionPlan>| {
        let note = |node: Arc<dyn ExecutionPlan>| match node.downcast_ref::<RelationScanExec>() {
            Some(scan) => {
                Ok(Transformed::yes(Arc::new(scan.clone().with_note(note.clone())) as Arc<dyn ExecutionPlan>))
            }
            None => Ok(Transformed::no(node)),
        };
        Arc::clone(plan).transform_up(note).data()
    };
    let (left, right) = match candidate.outer_side {
        JoinSide::Left => (Arc::clone(join.left()), noted(join.right())?),
        _ => (noted(join.left())?, Arc::clone(join.right())),
    };
    join.builder().with_new_children(vec![left, right])?.build_exec()
}

fn outer_of<'a>(candidate: &Candidate<'_>, join: &'a HashJoinExec) -> &'a Arc<dyn ExecutionPlan> {
    if candidate.outer_side == JoinSide::Left { join.left() } else { join.right() }
}

/// By estimated time; without any, by matches per key, and then by outer rows.
fn cheaper(estimate: &Estimate, than: &Estimate) -> bool {
    match (&estimate.lookup, &than.lookup) {
        (Some(lookup), Some(than)) => lookup.time_us < than.time_us,
        (Some(_), None) => true,
        (None, Some(_)) => false,
        (None, None) => estimate.matches_per_key < than.matches_per_key,
    }
}

/// The highest I/O priority in a plan.
fn priority(plan: &Arc<dyn ExecutionPlan>) -> u8 {
    let own = plan.downcast_ref::<OutOfOrderLookupJoinExec>().map_or(0, OutOfOrderLookupJoinExec::priority);
    plan.children().into_iter().map(priority).fold(own, u8::max)
}

impl PhysicalOptimizerRule for LookupJoinRule {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let options = config.extensions.get::<TanadaOptions>().cloned().unwrap_or_default();
        if options.lookup_join == Choice::Never || options.skip_damaged {
            return Ok(plan);
        }
        let cores = config.execution.target_partitions;
        plan.transform_up(|node| {
            let replaced = match node.downcast_ref::<HashJoinExec>() {
                Some(join) => replaced(join, &options, cores)?,
                None => None,
            };
            Ok(replaced.map_or_else(|| Transformed::no(node), Transformed::yes))
        })
        .data()
    }

    fn name(&self) -> &str {
        "LookupJoin"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// DataFusion's rules with [`LookupJoinRule`] right after the one that puts the smaller side of a join on the left:
/// from then on sides are final, and what follows sees the look-up join when it adds repartitioning and sorting. Then
/// [`SortMergeRule`] and, where limits have their places, [`LargeLimitRule`], for operators that have `memory_bytes`;
/// last, [`DirectComparisonRule`] and [`InterruptibleJoins`].
pub fn physical_optimizer_rules(memory_bytes: usize) -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    let mut rules = PhysicalOptimizer::new().rules;
    let after = |rules: &[Arc<dyn PhysicalOptimizerRule + Send + Sync>], name: &str| {
        rules.iter().position(|rule| rule.name() == name).map_or(0, |position| position + 1)
    };
    // What comes after it tells scans what a sort that keeps few rows still wants.
    let position = after(&rules, "LimitPushdown");
    rules.insert(position, Arc::new(LargeLimitRule::new(memory_bytes)));
    let position = after(&rules, "join_selection");
    rules.insert(position, Arc::new(SortMergeRule::new(memory_bytes)));
    rules.insert(position, Arc::new(LookupJoinRule));
    rules.insert(position, Arc::new(OffsetRule));
    rules.push(Arc::new(DirectComparisonRule));
    rules.push(Arc::new(InterruptibleJoins));
    // Others look for DataFusion's operators, so ours take their places last.
    rules.push(Arc::new(OperatorsRule));
    rules
}
