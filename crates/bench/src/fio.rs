//! fio, the measure of what a device gives: random reads of an existing file with what makes fio fastest (io_uring,
//! registered buffers and files, batches), and sequential ones.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::{Error, ErrorKind, Result};

/// What fio measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RandomReads {
    /// Reads kept in flight.
    pub depth: usize,
    /// Reads a second.
    pub iops: f64,
    /// Mean time from submission to completion.
    pub latency_us_mean: f64,
}

/// Reads `block_bytes` at random places of `path` for `seconds` with `depth` reads in flight. Never writes.
///
/// # Errors
/// When fio is missing or fails.
pub async fn random_reads(path: &Path, block_bytes: u32, depth: usize, seconds: f64) -> Result<RandomReads> {
    let output = tokio::process::Command::new("fio")
        .args([
            "--name=random",
            "--rw=randread",
            "--ioengine=io_uring",
            "--direct=1",
            "--readonly",
            "--numjobs=1",
        ])
        .args(["--fixedbufs=1", "--registerfiles=1", "--iodepth_batch_complete_min=1"])
        .args(["--randrepeat=0", "--norandommap=1", "--time_based=1", "--output-format=json"])
        .arg(format!("--iodepth_batch_submit={}", (depth / 4).clamp(1, 16)))
        .arg(format!("--iodepth_batch_complete_max={depth}"))
        .arg(format!("--bs={block_bytes}"))
        .arg(format!("--iodepth={depth}"))
        .arg(format!("--runtime={}ms", (seconds * 1000.0).max(1.0).round()))
        .arg(format!("--filename={}", file_argument(path)?))
        .kill_on_drop(true)
        .output()
        .await
        .map_err(|error| Error::program("fio", "fio", &error))?;
    if !output.status.success() {
        let reason = String::from_utf8_lossy(&output.stderr);
        return Err(Error::failed(format!("fio failed on {}: {}", path.display(), reason.trim())));
    }
    parse(&output.stdout, depth)
}

/// Reads all of `path` once, one block of `block_bytes` after the other, with `depth` reads in flight; bytes a second.
/// Never writes.
///
/// # Errors
/// When fio is missing or fails.
pub fn sequential_bytes_per_second(path: &Path, block_bytes: usize, depth: usize) -> Result<f64> {
    let output = std::process::Command::new("fio")
        .args(["--name=sequential", "--rw=read", "--ioengine=io_uring", "--direct=1", "--readonly"])
        .args(["--numjobs=1", "--loops=1", "--output-format=json"])
        .arg(format!("--bs={block_bytes}"))
        .arg(format!("--iodepth={depth}"))
        .arg(format!("--filename={}", file_argument(path)?))
        .output()
        .map_err(|error| Error::program("fio", "fio", &error))?;
    if !output.status.success() {
        let reason = String::from_utf8_lossy(&output.stderr);
        return Err(Error::failed(format!("fio failed on {}: {}", path.display(), reason.trim())));
    }
    let start = output.stdout.iter().position(|byte| *byte == b'{').unwrap_or(0);
    let parsed: serde_json::Value = serde_json::from_slice(&output.stdout[start..])
        .map_err(|error| Error::failed(format!("fio's output is not understood: {error}")))?;
    let speed = parsed["jobs"][0]["read"]["bw_bytes"].as_f64().filter(|speed| *speed > 0.0);
    speed.ok_or_else(|| Error::failed("fio read nothing"))
}

/// fio splits file names at colons, so those are escaped.
fn file_argument(path: &Path) -> Result<String> {
    let text = path.to_str().ok_or_else(|| {
        Error::new(ErrorKind::InvalidInput, format!("fio takes UTF-8 paths only, not {}", path.display()))
    })?;
    Ok(text.replace(':', "\\:"))
}

fn parse(output: &[u8], depth: usize) -> Result<RandomReads> {
    #[derive(Deserialize)]
    struct Output {
        jobs: Vec<Job>,
    }
    #[derive(Deserialize)]
    struct Job {
        read: Read,
    }
    #[derive(Deserialize)]
    struct Read {
        iops: f64,
        lat_ns: Latency,
    }
    #[derive(Deserialize)]
    struct Latency {
        mean: f64,
    }
    // Notes may stand before the JSON.
    let start = output.iter().position(|byte| *byte == b'{').unwrap_or(0);
    let parsed: Output = serde_json::from_slice(&output[start..])
        .map_err(|error| Error::failed(format!("fio's output is not understood: {error}")))?;
    match parsed.jobs.first() {
        Some(job) if job.read.iops > 0.0 => {
            Ok(RandomReads { depth, iops: job.read.iops, latency_us_mean: job.read.lat_ns.mean / 1000.0 })
        }
        _ => Err(Error::failed("fio read nothing")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_of_fio_is_read() {
        let output = br#"note: both iodepth >= 1 ...
            {"fio version": "fio-3.33", "jobs": [{"jobname": "random", "read": {"iops": 9512.5, "lat_ns": {"min": 1, "mean": 104250.5}}}]}"#;
        let reads = parse(output, 4).unwrap();
        assert_eq!(reads, RandomReads { depth: 4, iops: 9512.5, latency_us_mean: 104.2505 });
    }

    #[test]
    fn output_without_reads_is_an_error() {
        assert!(parse(b"fio: no such file", 1).is_err());
        assert!(parse(br#"{"jobs": []}"#, 1).is_err());
        assert!(parse(br#"{"jobs": [{"read": {"iops": 0, "lat_ns": {"mean": 0}}}]}"#, 1).is_err());
    }
}
