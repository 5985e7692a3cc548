//! How far a running query is, for those who wait for it.
//!
//! The share is that of the plan's scans, each weighted by its estimated time. Operators above them that keep rows
//! back (a sort) are not seen, so a share is an estimate and never 1 before the end.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use datafusion::physical_plan::ExecutionPlan;

use super::context::QueryContext;
use super::result::Clock;
use crate::external::FileScanExec;
use crate::scan::RelationScanExec;

/// Largest share that is told of a query that has not ended.
const MAX_SHARE: f64 = 0.99;

/// Microseconds that a row of a file takes, about.
const FILE_ROW_US: f64 = 0.1;

/// How far a query is.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct QueryProgress {
    /// The share of its work that is done, 0 to 1; none if its plan has no scan that has begun.
    pub share: Option<f64>,
    /// Rows that scans read and did not filter out.
    pub rows: u64,
    /// Device I/Os.
    pub ios: u64,
    /// Bytes read by them.
    pub bytes: u64,
    /// Since its beginning.
    pub elapsed: Duration,
}

impl QueryProgress {
    /// Time until the end if it goes on as it went so far.
    pub fn left(&self) -> Option<Duration> {
        let share = self.share.filter(|share| *share > 0.0)?;
        Some(self.elapsed.mul_f64((1.0 - share) / share))
    }
}

/// Watches a query; outlives its result.
#[derive(Clone)]
pub struct QueryWatch {
    pub(super) plan: Option<Arc<dyn ExecutionPlan>>,
    pub(super) context: Arc<QueryContext>,
    pub(super) clock: Arc<Clock>,
}

impl QueryWatch {
    /// How far the query is now.
    pub fn progress(&self) -> QueryProgress {
        let mut scans = Scans::default();
        if let Some(plan) = &self.plan {
            scans.add(plan);
        }
        let io = self.context.io().counters().snapshot();
        let share = (scans.done_us > 0.0).then(|| (scans.done_us / scans.time_us).min(MAX_SHARE));
        QueryProgress { share, rows: scans.rows, ios: io.ios, bytes: io.bytes, elapsed: self.clock.elapsed() }
    }
}

impl fmt::Debug for QueryWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueryWatch").field("clock", &self.clock).finish_non_exhaustive()
    }
}

/// All scans of a plan.
#[derive(Debug, Default)]
struct Scans {
    rows: u64,
    /// Estimated time of all, and of what of them is done.
    time_us: f64,
    done_us: f64,
}

impl Scans {
    fn add(&mut self, plan: &Arc<dyn ExecutionPlan>) {
        if let Some(scan) = plan.downcast_ref::<RelationScanExec>() {
            // Not 0, so that a scan that was estimated to take no time counts too.
            let time_us = scan.choice().considered.first().map_or(1.0, |(_, cost)| cost.time_us.max(1.0));
            let (rows, share) = scan.advance();
            self.rows += rows;
            self.time_us += time_us;
            self.done_us += time_us * share;
        }
        if let Some(scan) = plan.downcast_ref::<FileScanExec>() {
            let time_us = scan.rows().map_or(1.0, |rows| (rows as f64 * FILE_ROW_US).max(1.0));
            let (rows, share) = scan.advance();
            self.rows += rows;
            self.time_us += time_us;
            self.done_us += time_us * share;
        }
        plan.children().into_iter().for_each(|child| self.add(child));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_follows_from_the_share_that_is_done() {
        let mut progress = QueryProgress { elapsed: Duration::from_secs(3), ..QueryProgress::default() };
        assert_eq!(progress.left(), None);
        progress.share = Some(0.25);
        assert_eq!(progress.left(), Some(Duration::from_secs(9)));
    }
}
