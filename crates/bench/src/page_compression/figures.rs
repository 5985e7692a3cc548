//! Tables and summary of the runs.

use tanada_report::{Report, Table, cell, median};

use super::graph::Graph;
use super::{DISK, PageCompressionOptions, Run};

type Figure = fn(&Run) -> f64;

const MIB: f64 = (1 << 20) as f64;

const LOAD_SECONDS: Figure = |run| run.load_seconds;
const REQUESTS: Figure = |run| run.requests_per_second;
const REWRITE_SECONDS: Figure = |run| run.rewrite_seconds;
const SCAN_SECONDS: Figure = |run| run.scan_seconds;
const DROP_SECONDS: Figure = |run| run.drop_seconds;
const ALLOCATED_LOAD: Figure = |run| run.allocated_bytes_load as f64;
const ALLOCATED_REWRITE: Figure = |run| run.allocated_bytes_rewrite as f64;
const STORED_REWRITE: Figure = |run| run.stored_bytes_rewrite as f64;
const LOGICAL_LOAD: Figure = |run| run.logical_bytes_load as f64;
const LOGICAL_REWRITE: Figure = |run| run.logical_bytes_rewrite as f64;
const WRITTEN_LOAD: Figure = |run| run.written_bytes_load as f64;
const WRITTEN_REQUESTS: Figure = |run| run.written_bytes_requests as f64;
const EXTENTS: Figure = |run| run.extents as f64;

/// The median over the rounds of an arm; `NaN` if it did not run.
fn of(runs: &[Run], device: &str, arm: &str, figure: Figure) -> f64 {
    median(runs.iter().filter(|run| run.device == device && run.arm == arm).map(figure))
}

pub(super) fn report(options: &PageCompressionOptions, graph: &Graph, runs: &[Run]) -> Report {
    let mut report = Report::new("page-compression", options, &options.directory);
    let [nodes, links, counts] = graph.rows();
    report.setup = format!(
        "LinkBench's workload on MariaDB: {nodes} nodes, {links} links, {counts} counts; {} requesters for {} s, then \
         every row updated three times; buffer pool of {} MiB. Devices other than {DISK} are emulated.",
        options.requesters,
        options.seconds,
        options.pool_bytes >> 20
    );
    runs.iter().for_each(|run| report.add_run(run));
    for device in &options.devices {
        report.tables.push(sizes(options, runs, device));
        report.tables.push(latencies(options, runs, device));
        summarize(&mut report, runs, device);
    }
    report
}

fn sizes(options: &PageCompressionOptions, runs: &[Run], device: &str) -> Table {
    let titles = [
        device,
        "load s",
        "requests/s",
        "rewrite s",
        "scan s",
        "drop s",
        "loaded MiB",
        "rewritten MiB",
        "stored MiB",
        "written MiB",
        "extents",
    ];
    let mut table = Table::new(&titles);
    for arm in &options.arms {
        let seconds = |figure| cell(of(runs, device, arm, figure), 2);
        let mib = |figure| cell(of(runs, device, arm, figure) / MIB, 1);
        table.add(vec![
            arm.clone(),
            seconds(LOAD_SECONDS),
            cell(of(runs, device, arm, REQUESTS), 0),
            seconds(REWRITE_SECONDS),
            seconds(SCAN_SECONDS),
            seconds(DROP_SECONDS),
            mib(ALLOCATED_LOAD),
            mib(ALLOCATED_REWRITE),
            mib(STORED_REWRITE),
            mib(|run| (run.written_bytes_load + run.written_bytes_requests) as f64),
            cell(of(runs, device, arm, EXTENTS), 0),
        ]);
    }
    table
}

/// p50, p95 and p99 by operation, in milliseconds.
fn latencies(options: &PageCompressionOptions, runs: &[Run], device: &str) -> Table {
    let titles: Vec<&str> =
        std::iter::once("p50/p95/p99 ms").chain(options.arms.iter().map(String::as_str)).collect();
    let mut table = Table::new(&titles);
    for (_, operation, _) in super::operation::MIX {
        let mut row = vec![operation.to_owned()];
        for arm in &options.arms {
            let own = || runs.iter().filter(|run| run.device == device && run.arm == *arm);
            let part = |pick: fn(&super::Latencies) -> u64| {
                let found = own().filter_map(|run| run.operations.get(operation));
                cell(median(found.map(|latencies| pick(latencies) as f64 / 1000.0)), 1)
            };
            row.push(format!(
                "{}/{}/{}",
                part(|latencies| latencies.p50_us),
                part(|latencies| latencies.p95_us),
                part(|latencies| latencies.p99_us)
            ));
        }
        table.add(row);
    }
    table
}

/// The keys of a device: those of the machine's disk are named as they are, others end with the device's name.
fn summarize(report: &mut Report, runs: &[Run], device: &str) {
    let ratio = |figure: Figure, arm: &str, other: &str| {
        of(runs, device, arm, figure) / of(runs, device, other, figure)
    };
    let grown = |arm: &str, after: Figure, before: Figure| {
        of(runs, device, arm, after) / of(runs, device, arm, before)
    };
    let compressed = "page_compressed";
    let summary = [
        ("drop_seconds_over_plain", ratio(DROP_SECONDS, "mount_lz4", "plain")),
        ("page_compressed_drop_seconds_over_plain", ratio(DROP_SECONDS, compressed, "plain")),
        ("extents_over_plain", ratio(EXTENTS, "mount_lz4", "plain")),
        ("page_compressed_extents_over_plain", ratio(EXTENTS, compressed, "plain")),
        ("allocated_after_rewrite_over_load", grown("mount_lz4", ALLOCATED_REWRITE, ALLOCATED_LOAD)),
        ("logical_after_rewrite_over_load", grown("mount_lz4", LOGICAL_REWRITE, LOGICAL_LOAD)),
        (
            "page_compressed_allocated_after_rewrite_over_load",
            grown(compressed, ALLOCATED_REWRITE, ALLOCATED_LOAD),
        ),
        ("lz4_over_none_requests", ratio(REQUESTS, "mount_lz4", "mount_none")),
        ("zstd_over_none_requests", ratio(REQUESTS, "mount_zstd", "mount_none")),
        ("lz4_over_codec_off_requests", ratio(REQUESTS, "mount_lz4", "mount_pages")),
        ("lz4_over_plain_requests", ratio(REQUESTS, "mount_lz4", "plain")),
        ("lz4_over_row_format_compressed_requests", ratio(REQUESTS, "mount_lz4", "row_format_compressed")),
        ("lz4_cleaners_1_over_0_requests", ratio(REQUESTS, "mount_lz4_cleaners_1", "mount_lz4")),
        ("lz4_cleaners_2_over_0_requests", ratio(REQUESTS, "mount_lz4_cleaners_2", "mount_lz4")),
        ("lz4_cleaners_4_over_0_requests", ratio(REQUESTS, "mount_lz4_cleaners_4", "mount_lz4")),
        ("allocated_over_mariadb_page_compressed", ratio(ALLOCATED_LOAD, "mount_lz4", compressed)),
        (
            "allocated_over_mariadb_page_compressed_after_rewrite",
            ratio(ALLOCATED_REWRITE, "mount_lz4", compressed),
        ),
        ("zstd_allocated_over_mariadb_page_compressed", ratio(ALLOCATED_LOAD, "mount_zstd", compressed)),
        ("lz4_over_none_load_time", ratio(LOAD_SECONDS, "mount_lz4", "mount_none")),
        ("lz4_over_none_written_load", ratio(WRITTEN_LOAD, "mount_lz4", "mount_none")),
        ("lz4_over_none_written_requests", ratio(WRITTEN_REQUESTS, "mount_lz4", "mount_none")),
        ("scan_seconds_over_plain", ratio(SCAN_SECONDS, "mount_lz4", "plain")),
        ("space_saved", 1.0 - ratio(ALLOCATED_LOAD, "mount_lz4", "mount_none")),
    ];
    for (key, value) in summary {
        let name = device.replace(|character: char| !character.is_ascii_alphanumeric(), "_");
        let key = if device == DISK { key.to_owned() } else { format!("{key}_{name}") };
        report.summarize(&key, value);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// A run whose figures are all `value`.
    pub(crate) fn run(arm: &str, device: &str, value: u64) -> Run {
        let seconds = value as f64;
        Run {
            arm: arm.to_owned(),
            device: device.to_owned(),
            round: 0,
            load_seconds: seconds,
            requests_per_second: seconds,
            retries: 0,
            operations: BTreeMap::new(),
            rewrite_seconds: seconds,
            scan_seconds: seconds,
            drop_seconds: seconds,
            logical_bytes_load: value,
            allocated_bytes_load: value,
            stored_bytes_load: value,
            logical_bytes_rewrite: value,
            allocated_bytes_rewrite: 3 * value,
            stored_bytes_rewrite: value,
            written_bytes_load: value,
            written_bytes_requests: value,
            extents: value,
            punches: [value; 3],
        }
    }

    #[test]
    fn keys_of_emulated_devices_end_with_their_names() {
        let options = PageCompressionOptions::quick("/");
        let mut runs = Vec::new();
        for (no, arm) in options.arms.iter().enumerate() {
            runs.push(run(arm, DISK, 1 << no));
            runs.push(run(arm, "sata-ssd", 3_u64.pow(no as u32)));
        }
        let report = report(&options, &Graph::new(100), &runs);
        // The arms are plain, row_format_compressed, page_compressed, mount_none, mount_pages, mount_lz4, mount_zstd,
        // and mount_lz4_cleaners_2.
        for (key, expected) in [
            ("drop_seconds_over_plain", 32.0),
            ("lz4_over_none_requests", 4.0),
            ("lz4_over_row_format_compressed_requests", 16.0),
            ("allocated_over_mariadb_page_compressed", 8.0),
            ("allocated_after_rewrite_over_load", 3.0),
            ("lz4_cleaners_2_over_0_requests", 4.0),
            ("space_saved", -3.0),
            ("lz4_over_none_requests_sata_ssd", 9.0),
            ("extents_over_plain_sata_ssd", 243.0),
        ] {
            assert_eq!(report.summary[key].as_f64(), Some(expected), "{key}");
        }
        assert_eq!((report.runs.len(), report.tables.len()), (16, 4));
    }
}
