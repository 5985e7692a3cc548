//! How long a whole plan is going to take, cold: the cost model applied to each operator.
//!
//! A plan is a tree of pipelines. Within one, I/O and work overlap; an operator that must have seen all of its input (a
//! sort, the build side of a hash join, an aggregation) ends it.
//!
//! 1. From the leaves up each operator adds its I/O and its work to the pipeline that it belongs to, by the rows that
//!    are estimated to reach it.
//! 2. Where a pipeline ends, its time is that of its slowest resource, `max(I/O, CPU / cores, longest chain)`; in
//!    order, where one waits for the other, `I/O + CPU`.
//! 3. The time of the plan is the sum of those of its pipelines.
//!
//! Above: `EXPLAIN` and the benchmark of the model. Below: the operators and their estimates.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::{
    CrossJoinExec, HashJoinExec, NestedLoopJoinExec, PartitionMode, SortMergeJoinExec,
};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use tanada_io::Medium;
use tanada_operators::{ExternalSort, MergeJoin};

use crate::cost::{Calibrated, CpuCosts, IoTime, calibration_of};
use crate::lookup::{OutOfOrderLookupJoinExec, estimated_rows};
use crate::scan::RelationScanExec;
use crate::settings::TanadaOptions;

/// What a plan is predicted to take.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Prediction {
    /// Time in microseconds.
    pub time_us: f64,
    /// The devices' time of all I/Os, at the depth that they reach.
    pub io_us: f64,
    /// The processor's time, all cores together.
    pub cpu_us: f64,
    /// Cores that share it.
    pub cores: f64,
    /// Where the figures of the media are from.
    pub media: BTreeSet<String>,
    /// Operators whose I/O is not known.
    pub unknown: BTreeSet<String>,
    /// Page I/Os of the sort-merge joins by the textbook, `5 (B(R) + B(S))`, where there are any.
    pub textbook_pages: Option<f64>,
}

impl fmt::Display for Prediction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [time, io, cpu] = [self.time_us, self.io_us, self.cpu_us].map(|us| us / 1e3);
        let names = |names: &BTreeSet<String>| names.iter().cloned().collect::<Vec<_>>().join("; ");
        write!(f, "{time:.1} ms cold: I/O {io:.1} ms, CPU {cpu:.1} ms on {} cores", self.cores)?;
        if !self.media.is_empty() {
            write!(f, "; media: {}", names(&self.media))?;
        }
        if let Some(pages) = self.textbook_pages {
            write!(f, "; the textbook's 5(B(R)+B(S)) of the sort-merge joins: {pages:.0} page I/Os")?;
        }
        if !self.unknown.is_empty() {
            write!(f, "; I/O not known of: {}", names(&self.unknown))?;
        }
        Ok(())
    }
}

/// Predicts the time of `plan` on `cores` cores.
pub fn predict(plan: &Arc<dyn ExecutionPlan>, options: &TanadaOptions, cores: usize) -> Prediction {
    let medium = calibration_of(&Medium::Unknown);
    let cpu = medium.calibration.cpu.clone();
    let mut walk = Walk { options, cores, cpu, prediction: Prediction::default() };
    let pipeline = walk.pipeline(plan);
    let mut prediction = walk.prediction;
    prediction.time_us = pipeline.before_us + time_of(&pipeline, options, cores);
    prediction.cores = if options.is_in_order() { 1.0 } else { cores.max(1) as f64 };
    prediction
}

/// A pipeline that is not at its end.
#[derive(Debug, Clone, Copy, Default)]
struct Pipeline {
    /// Time of the pipelines before it.
    before_us: f64,
    io: IoTime,
    cpu_us: f64,
}

fn time_of(pipeline: &Pipeline, options: &TanadaOptions, cores: usize) -> f64 {
    let IoTime { io_us, chain_us } = pipeline.io;
    let busy_us = match options.is_in_order() {
        true => io_us + pipeline.cpu_us,
        false => io_us.max(pipeline.cpu_us / cores.max(1) as f64),
    };
    busy_us.max(chain_us)
}

struct Walk<'a> {
    options: &'a TanadaOptions,
    cores: usize,
    cpu: CpuCosts,
    prediction: Prediction,
}

impl Walk<'_> {
    fn pipeline(&mut self, plan: &Arc<dyn ExecutionPlan>) -> Pipeline {
        if let Some(scan) = plan.downcast_ref::<RelationScanExec>() {
            return self.scan(scan);
        }
        if let Some(join) = plan.downcast_ref::<OutOfOrderLookupJoinExec>() {
            let mut pipeline = self.pipeline(join.outer());
            if let Some(cost) = &join.estimate().lookup {
                let (model, calibrated) = join.source().relation().cost_model(self.options, self.cores);
                self.add(&mut pipeline, model.io_time(&cost.work), cost.work.cpu_us, Some(&calibrated));
            }
            return pipeline;
        }
        if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
            return self.hash_join(join, plan);
        }
        let rows_out = rows(plan);
        let children: Vec<Arc<dyn ExecutionPlan>> = plan.children().into_iter().cloned().collect();
        let rows_in: f64 = children.iter().map(rows).sum();
        if children.is_empty() && !plan.name().contains("Empty") && !plan.name().contains("Placeholder") {
            self.prediction.unknown.insert(plan.name().to_owned());
        }
        if plan.is::<CrossJoinExec>() || plan.is::<NestedLoopJoinExec>() {
            let pairs: f64 = children.iter().map(rows).product();
            let mut pipelines = children.iter().map(|child| self.pipeline(child)).collect::<Vec<_>>();
            let first = if pipelines.is_empty() { Pipeline::default() } else { pipelines.remove(0) };
            let before_us = self.ended(first).before_us;
            let mut pipeline = self.together(&pipelines);
            pipeline.before_us += before_us;
            self.add(&mut pipeline, IoTime::default(), pairs * self.cpu.expression_us, None);
            return pipeline;
        }
        let pipelines: Vec<Pipeline> = children.iter().map(|child| self.pipeline(child)).collect();
        let mut pipeline = self.together(&pipelines);
        let mut cpu_us = 0.0;
        let mut after_us = None;
        if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
            let expressions = aggregate.aggr_expr().len() as f64;
            let groups = if aggregate.group_expr().expr().is_empty() { 0.0 } else { 1.0 };
            cpu_us = rows_in * (groups * self.cpu.hash_probe_us + expressions * self.cpu.expression_us)
                + groups * rows_out * self.cpu.hash_build_us;
            // A partial aggregation hands its groups on at its end, too, but what follows them is little.
            if *aggregate.mode() != AggregateMode::Partial {
                after_us = Some(0.0);
            }
        } else if plan.is::<SortExec>() || plan.is::<ExternalSort>() {
            cpu_us = rows_in * rows_in.max(2.0).log2() * self.cpu.comparison_us;
            after_us = Some(0.0);
        } else if plan.is::<SortMergeJoinExec>() || plan.is::<MergeJoin>() {
            cpu_us = (rows_in + rows_out) * self.cpu.comparison_us;
            let pages = children.iter().map(pages_below).sum::<f64>();
            *self.prediction.textbook_pages.get_or_insert(0.0) += 5.0 * pages;
        } else if plan.is::<SortPreservingMergeExec>() {
            cpu_us = rows_in * self.cpu.comparison_us;
        } else if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
            let computed = projection
                .expr()
                .iter()
                .filter(|expr| !expr.expr.is::<datafusion::physical_expr::expressions::Column>());
            cpu_us = rows_in * computed.count() as f64 * self.cpu.expression_us;
        } else if plan.is::<FilterExec>() {
            cpu_us = rows_in * self.cpu.expression_us;
        }
        self.add(&mut pipeline, IoTime::default(), cpu_us, None);
        if after_us.is_some() {
            pipeline = self.ended(pipeline);
        }
        pipeline
    }

    fn scan(&mut self, scan: &RelationScanExec) -> Pipeline {
        let mut pipeline = Pipeline::default();
        let Some((_, cost)) = scan.choice().considered.first() else { return pipeline };
        let relation = scan.relation();
        let (model, calibrated) = relation.cost_model(self.options, self.cores);
        let predicates = scan.filters().len() as f64;
        let cpu_us =
            cost.work.cpu_us + relation.statistics().rows as f64 * predicates * self.cpu.expression_us;
        self.add(&mut pipeline, model.io_time(&cost.work), cpu_us, Some(&calibrated));
        pipeline
    }

    /// The build side has been read before the probe side is asked.
    fn hash_join(&mut self, join: &HashJoinExec, plan: &Arc<dyn ExecutionPlan>) -> Pipeline {
        let mut build = self.pipeline(join.left());
        let build_rows = rows(join.left());
        // Of a partitioned join each row goes through a hash before.
        let hashed = if *join.partition_mode() == PartitionMode::Partitioned { 1.5 } else { 1.0 };
        self.add(&mut build, IoTime::default(), build_rows * hashed * self.cpu.hash_build_us, None);
        let before_us = self.ended(build).before_us;
        let mut probe = self.pipeline(join.right());
        probe.before_us += before_us;
        let probed = rows(join.right()) * hashed + rows(plan);
        self.add(&mut probe, IoTime::default(), probed * self.cpu.hash_probe_us, None);
        probe
    }

    fn add(&mut self, pipeline: &mut Pipeline, io: IoTime, cpu_us: f64, on: Option<&Arc<Calibrated>>) {
        pipeline.io.io_us += io.io_us;
        pipeline.io.chain_us = pipeline.io.chain_us.max(io.chain_us);
        pipeline.cpu_us += cpu_us;
        self.prediction.io_us += io.io_us;
        self.prediction.cpu_us += cpu_us;
        if let Some(calibrated) = on {
            self.prediction.media.insert(calibrated.source.clone());
        }
    }

    /// The inputs of one operator.
    fn together(&self, pipelines: &[Pipeline]) -> Pipeline {
        let mut all = Pipeline::default();
        for pipeline in pipelines {
            all.before_us += pipeline.before_us;
            all.io.io_us += pipeline.io.io_us;
            all.io.chain_us = all.io.chain_us.max(pipeline.io.chain_us);
            all.cpu_us += pipeline.cpu_us;
        }
        all
    }

    /// A new pipeline behind this one.
    fn ended(&self, pipeline: Pipeline) -> Pipeline {
        let before_us = pipeline.before_us + time_of(&pipeline, self.options, self.cores);
        Pipeline { before_us, ..Pipeline::default() }
    }
}

fn rows(plan: &Arc<dyn ExecutionPlan>) -> f64 {
    estimated_rows(plan).unwrap_or(0.0)
}

/// Pages of the relations below.
fn pages_below(plan: &Arc<dyn ExecutionPlan>) -> f64 {
    let own = plan.downcast_ref::<RelationScanExec>().map_or(0.0, |scan| scan.table_pages() as f64);
    own + plan.children().into_iter().map(pages_below).sum::<f64>()
}

/// Rows of an operator, estimated and counted.
#[derive(Debug, Clone, PartialEq)]
pub struct RowEstimate {
    /// The operator.
    pub operator: String,
    /// Before it ran.
    pub estimated: f64,
    /// By its metrics, once it ran.
    pub actual: f64,
}

impl RowEstimate {
    /// By which factor the estimate is off; less than one row counts as one.
    pub fn q_error(&self) -> f64 {
        let (estimated, actual) = (self.estimated.max(1.0), self.actual.max(1.0));
        (estimated / actual).max(actual / estimated)
    }
}

impl fmt::Display for RowEstimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {:.0} estimated, {:.0} counted", self.operator, self.estimated, self.actual)
    }
}

/// Estimates of the scans, joins and aggregations of a plan that has run, from the top down.
pub fn row_estimates(plan: &Arc<dyn ExecutionPlan>) -> Vec<RowEstimate> {
    let mut found = Vec::new();
    put_estimates(plan, &mut found);
    found
}

fn put_estimates(plan: &Arc<dyn ExecutionPlan>, found: &mut Vec<RowEstimate>) {
    let is_partial = plan
        .downcast_ref::<AggregateExec>()
        .is_some_and(|aggregate| *aggregate.mode() == AggregateMode::Partial);
    let name = plan.name();
    let is_shown =
        name.contains("Join") || name.contains("Scan") || (name.contains("Aggregate") && !is_partial);
    let counted = plan.metrics().and_then(|metrics| metrics.output_rows());
    if let (true, Some(actual), Some(estimated)) = (is_shown, counted, estimated_rows(plan)) {
        let what = plan
            .downcast_ref::<RelationScanExec>()
            .map(|scan| format!("scan of {}", scan.relation().table().definition().name));
        let operator = what.unwrap_or_else(|| name.to_owned());
        found.push(RowEstimate { operator, estimated, actual: actual as f64 });
    }
    plan.children().into_iter().for_each(|child| put_estimates(child, found));
}
