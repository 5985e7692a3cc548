//! The other side: fio, from its package, told to do the same.

use std::process::Command;

use serde_json::Value;

use super::{Run, Side};
use crate::{Error, Result};

/// An installed fio.
#[derive(Debug)]
pub(super) struct Fio {
    version: String,
}

impl Fio {
    pub(super) fn find() -> Result<Fio> {
        let output = Command::new("fio").arg("--version").output();
        let output = output.map_err(|error| Error::program("fio", "fio (apt-get install fio)", &error))?;
        Ok(Fio { version: String::from_utf8_lossy(&output.stdout).trim().to_owned() })
    }

    pub(super) fn version(&self) -> &str {
        &self.version
    }

    pub(super) fn run(&self, side: &Side<'_>) -> Result<Run> {
        let Side { options, file, processor, depth, repeat, seed } = side;
        let mut command = Command::new("fio");
        command
            .args(["--name=read", "--readonly", "--rw=randread", "--direct=1", "--ioengine=io_uring"])
            .args(["--fixedbufs=1", "--registerfiles=1", "--iodepth_batch_complete_min=1"])
            .args(["--norandommap", "--time_based", "--output-format=json"])
            .arg(format!("--randseed={seed}"))
            .arg(format!("--filename={}", file.path().display().to_string().replace(':', "\\:")))
            .arg(format!("--bs={}", options.block_bytes))
            .arg(format!("--size={}", file.len() / options.block_bytes as u64 * options.block_bytes as u64))
            .arg(format!("--runtime={}ms", (options.seconds * 1000.0) as u64))
            .arg(format!("--cpus_allowed={processor}"))
            .arg(format!("--iodepth={depth}"))
            .arg(format!("--iodepth_batch_submit={}", (depth / 4).clamp(1, 16)))
            .arg(format!("--iodepth_batch_complete_max={depth}"));
        let output = command.output().map_err(|error| Error::program("fio", "fio", &error))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let failed = || {
            let message = String::from_utf8_lossy(&output.stderr);
            Error::failed(format!(
                "fio failed: {}",
                message.lines().next().unwrap_or("it printed no results")
            ))
        };
        if !output.status.success() {
            return Err(failed());
        }
        // Notes may come before the JSON.
        let json = text.find('{').map_or("", |start| &text[start..]);
        let results: Value = serde_json::from_str(json).map_err(|_| failed())?;
        read_results(&results["jobs"][0], *depth, *repeat).ok_or_else(failed)
    }
}

fn read_results(job: &Value, depth: usize, repeat: usize) -> Option<Run> {
    let read = &job["read"];
    let iops = read["iops"].as_f64().filter(|iops| *iops > 0.0)?;
    let percentile = |which: &str| read["clat_ns"]["percentile"][which].as_f64().unwrap_or(0.0) / 1e3;
    let cpu_percent = job["usr_cpu"].as_f64()? + job["sys_cpu"].as_f64()?;
    Some(Run {
        side: "fio",
        depth,
        repeat,
        iops,
        latency_us_mean: read["lat_ns"]["mean"].as_f64()? / 1e3,
        latency_us_p50: percentile("50.000000"),
        latency_us_p99: percentile("99.000000"),
        cpu_us_per_io: cpu_percent / 100.0 * 1e6 / iops,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_read() {
        let job = serde_json::json!({
            "read": {
                "iops": 50_000.0,
                "lat_ns": { "mean": 2000.0 },
                "clat_ns": { "percentile": { "50.000000": 1500, "99.000000": 9000 } }
            },
            "usr_cpu": 10.0, "sys_cpu": 40.0
        });
        let run = read_results(&job, 64, 1).unwrap();
        assert_eq!((run.latency_us_mean, run.latency_us_p50, run.latency_us_p99), (2.0, 1.5, 9.0));
        assert_eq!(run.cpu_us_per_io, 10.0);
        assert!(read_results(&Value::Null, 1, 1).is_none());
    }
}
