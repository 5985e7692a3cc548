//! How many rows a plan takes of each of its operators: all, unless a `LIMIT` above is met before.
//!
//! 1. An operator that gives rows as they come passes its limit, or its parent's, on to what it streams: as many rows
//!    of that as it takes for the rows wanted, by the estimates of both.
//! 2. One that has to see all of its input first (a sort, an aggregation, the side that a join hashes) wants all of it.
//! 3. Where nothing is estimated, all rows are wanted: what is promised then is too much, as without a limit.

use std::sync::Arc;

use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::{CardinalityEffect, EmissionType};
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};

/// Rows that are wanted of an operator; `None` is all.
pub(super) type Wanted = Option<f64>;

/// The rows of `plan` that are wanted, with its own limit.
pub(super) fn limited(plan: &Arc<dyn ExecutionPlan>, wanted: Wanted) -> Wanted {
    let own = if let Some(limit) = plan.downcast_ref::<GlobalLimitExec>() {
        limit.fetch().map(|fetch| limit.skip().saturating_add(fetch) as f64)
    } else if let Some(limit) = plan.downcast_ref::<LocalLimitExec>() {
        // Each partition gives so many.
        let partitions = plan.properties().output_partitioning().partition_count();
        Some(limit.fetch() as f64 * partitions as f64)
    } else {
        plan.fetch().map(|fetch| fetch as f64)
    };
    least(own, wanted)
}

/// The lesser of both.
pub(super) fn least(one: Wanted, other: Wanted) -> Wanted {
    one.into_iter().chain(other).reduce(f64::min)
}

/// The rows that are wanted of `child`, from which `plan` makes the `wanted` rows.
pub(super) fn of_child(
    plan: &Arc<dyn ExecutionPlan>,
    child: &Arc<dyn ExecutionPlan>,
    wanted: Wanted,
) -> Wanted {
    let wanted = wanted?;
    if plan.properties().emission_type != EmissionType::Incremental {
        return None;
    }
    let is_limit =
        plan.downcast_ref::<GlobalLimitExec>().is_some() || plan.downcast_ref::<LocalLimitExec>().is_some();
    if is_limit || matches!(plan.cardinality_effect(), CardinalityEffect::Equal) {
        return Some(wanted);
    }
    // What it would make of all of it, its own limit aside.
    let whole = plan.with_fetch(None);
    let (of, makes) = (rows(child)?, rows(whole.as_ref().unwrap_or(plan))?);
    Some(wanted * of / makes.max(1.0)).filter(|wanted| wanted.is_finite())
}

fn rows(plan: &Arc<dyn ExecutionPlan>) -> Option<f64> {
    let statistics = StatisticsContext::new().compute(plan.as_ref(), &StatisticsArgs::new()).ok()?;
    statistics.num_rows.get_value().map(|rows| *rows as f64)
}
