//! What a look-up join and the hash join it may replace are estimated to take.

use std::fmt;
use std::sync::Arc;

use super::kind::Kind;
use super::pattern::Candidate;
use crate::cost::{Cost, Lookups};
use crate::relation::InnodbRelation;
use crate::settings::TanadaOptions;
use datafusion::arrow::array::Array;
use datafusion::common::ColumnStatistics;
use datafusion::common::cast::as_boolean_array;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};

/// Share of rows that a predicate is taken to leave where no sample tells.
const UNKNOWN_SELECTIVITY: f64 = 0.2;
/// Share of pairs that a residual predicate of a join is taken to leave.
const RESIDUAL_SELECTIVITY: f64 = 0.5;

/// Estimates behind a choice.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    /// Rows of the outer side, if anything is known.
    pub outer_rows: Option<f64>,
    /// Rows that the index has for a key.
    pub matches_per_key: f64,
    /// Output rows per outer row.
    pub output_per_outer_row: f64,
    /// Looking up, without the outer side.
    pub lookup: Option<Cost>,
    /// Scanning the inner side and hashing, without the outer side.
    pub hash: Option<Cost>,
}

impl Estimate {
    /// Whether looking up is the cheaper way, as far as is known.
    pub fn prefers_lookup(&self) -> bool {
        match (&self.lookup, &self.hash) {
            (Some(lookup), Some(hash)) => lookup.time_us < hash.time_us,
            _ => false,
        }
    }
}

impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.outer_rows {
            Some(rows) => write!(f, "{rows:.0} outer rows x {:.1} matches", self.matches_per_key)?,
            None => write!(f, "unknown outer rows x {:.1} matches", self.matches_per_key)?,
        }
        if let (Some(lookup), Some(hash)) = (&self.lookup, &self.hash) {
            write!(f, ": lookup {lookup}, hash {hash}")?;
        }
        Ok(())
    }
}

/// Estimates of a candidate for `outer`.
pub(super) fn estimate(
    candidate: &Candidate<'_>,
    outer: &Arc<dyn ExecutionPlan>,
    options: &TanadaOptions,
    cores: usize,
) -> Estimate {
    let scan = candidate.inner.scan;
    let relation = scan.relation();
    let (model, _) = relation.cost_model(options, cores);
    let shape = relation.shape();
    let index = relation.index_shape(candidate.index);
    let matches = matches_per_key(candidate);
    let selectivity = selectivity(relation, &candidate.inner.plan.predicates);
    let residual = if candidate.residual { RESIDUAL_SELECTIVITY } else { 1.0 };
    let outer_rows = estimated_rows(outer);
    let columns = candidate.source.columns().len() as f64;
    let lookup = outer_rows.map(|keys| {
        let bookmarks = !candidate.source.covering();
        model.time(
            model.lookup(&shape, &Lookups { keys, matches_per_key: matches, index, bookmarks, columns }),
        )
    });
    let hash = outer_rows.map(|keys| {
        let inner_rows = shape.rows * selectivity;
        let scanned = scan
            .choice()
            .considered
            .first()
            .map_or_else(|| model.full_scan(&shape, columns), |(_, cost)| cost.work);
        model.time(scanned.with(model.hash(keys.min(inner_rows), keys.max(inner_rows))))
    });
    Estimate {
        outer_rows,
        matches_per_key: matches,
        output_per_outer_row: output_per_outer_row(candidate.kind, matches * selectivity * residual),
        lookup,
        hash,
    }
}

fn output_per_outer_row(kind: Kind, pairs: f64) -> f64 {
    match kind {
        Kind::Inner | Kind::Found => pairs,
        Kind::Outer => pairs.max(1.0),
        Kind::Semi => pairs.min(1.0),
        Kind::Anti => (1.0 - pairs).max(0.1),
        Kind::Mark => 1.0,
    }
}

/// Rows of the index per value of the key parts that are searched.
fn matches_per_key(candidate: &Candidate<'_>) -> f64 {
    let relation = candidate.inner.scan.relation();
    let definition = relation.table().definition();
    let parts = candidate.parts;
    if definition
        .indexes
        .get(candidate.index.0)
        .is_some_and(|index| index.unique && index.parts.len() == parts)
    {
        return 1.0;
    }
    let statistics = relation.statistics();
    let distinct =
        statistics.indexes.get(candidate.index.0).and_then(|index| index.distinct.get(parts.checked_sub(1)?));
    statistics.rows as f64 / distinct.map_or(1.0, |distinct| (*distinct).max(1) as f64)
}

/// What is known of the columns of a plan.
pub(super) fn column_statistics(plan: &Arc<dyn ExecutionPlan>) -> Vec<ColumnStatistics> {
    let statistics = StatisticsContext::new().compute(plan.as_ref(), &StatisticsArgs::new());
    statistics.map(|statistics| statistics.column_statistics.clone()).unwrap_or_default()
}

/// Rows that a plan is estimated to give. Where DataFusion knows nothing (a join of columns without known ranges), the
/// most that any input has.
pub(crate) fn estimated_rows(plan: &Arc<dyn ExecutionPlan>) -> Option<f64> {
    let statistics = StatisticsContext::new().compute(plan.as_ref(), &StatisticsArgs::new()).ok();
    if let Some(rows) = statistics.and_then(|statistics| statistics.num_rows.get_value().copied()) {
        return Some(rows as f64);
    }
    plan.children().into_iter().filter_map(estimated_rows).reduce(f64::max)
}

/// Share of a relation's rows that pass all predicates (over its schema), from its sample; never quite nothing.
pub(super) fn selectivity(relation: &InnodbRelation, predicates: &[Arc<dyn PhysicalExpr>]) -> f64 {
    let sample = relation.sample();
    let rows = sample.num_rows();
    let mut share = 1.0;
    let mut passes = vec![true; rows];
    for predicate in predicates {
        let sampled =
            rows > 0 && collect_columns(predicate).iter().all(|column| relation.sampled(column.index()));
        let result = sampled.then(|| predicate.evaluate(sample).and_then(|value| value.into_array(rows)));
        match result.as_ref().and_then(|result| result.as_ref().ok()).map(|mask| as_boolean_array(mask)) {
            Some(Ok(mask)) => {
                for (row, pass) in passes.iter_mut().enumerate() {
                    *pass &= mask.is_valid(row) && mask.value(row);
                }
            }
            _ => share *= UNKNOWN_SELECTIVITY,
        }
    }
    if rows > 0 {
        let passed = passes.iter().filter(|pass| **pass).count() as f64;
        share *= passed.max(0.5) / rows as f64;
    }
    share
}
