//! One run of one side.

use serde::Serialize;
use tanada_query::QueryReport;

use super::probe::Probe;
use crate::fio::RandomReads;

/// Who ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// The query, one I/O at a time.
    InOrder,
    /// The query, many I/Os in flight.
    OutOfOrder,
    /// fio's random reads.
    Fio,
    /// The query in a MariaDB server.
    #[serde(rename = "mariadb")]
    MariaDb,
}

/// What a run of the query did.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct QueryIo {
    /// Device I/Os of the whole query.
    pub ios: u64,
    /// Bytes they read.
    pub bytes: u64,
    /// Mean in flight.
    pub depth_mean: f64,
    /// Most in flight.
    pub depth_max: u64,
    /// I/Os of the look-up join.
    pub probe_ios: u64,
    /// Time it had at least one in flight.
    pub probe_seconds: f64,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Run {
    /// The round, from 1.
    pub round: usize,
    /// Who ran.
    pub side: Side,
    /// I/Os allowed in flight; 0 is adaptive.
    pub depth: usize,
    /// Time of the query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// I/Os a second: fio's, or the query's in its probe phase.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iops: Option<f64>,
    /// More about a run of the query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub io: Option<QueryIo>,
}

impl Run {
    pub(super) fn of_query(
        round: usize,
        side: Side,
        depth: usize,
        report: &QueryReport,
        probe: &Probe,
    ) -> Run {
        let io = QueryIo {
            ios: report.ios,
            bytes: report.bytes,
            depth_mean: report.depth_mean,
            depth_max: report.depth_max,
            probe_ios: probe.ios,
            probe_seconds: probe.active_seconds(),
        };
        Run {
            round,
            side,
            depth,
            seconds: Some(report.elapsed.as_secs_f64()),
            iops: Some(probe.iops()),
            io: Some(io),
        }
    }

    pub(super) fn of_fio(round: usize, reads: &RandomReads) -> Run {
        Run { round, side: Side::Fio, depth: reads.depth, seconds: None, iops: Some(reads.iops), io: None }
    }

    pub(super) fn of_mariadb(round: usize, seconds: f64) -> Run {
        Run { round, side: Side::MariaDb, depth: 1, seconds: Some(seconds), iops: None, io: None }
    }
}
