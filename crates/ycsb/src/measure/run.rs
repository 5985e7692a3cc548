//! The figures of one run of one phase: what goes into a report's `runs`, and what the program for other engines
//! prints.
//!
//! Written out are what was measured, and the amplifications that follow from it; read are the former alone.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::LatencySummary;
use crate::engine::{ClassBytes, EngineStatistics};

/// One phase of one engine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct Run {
    /// The engine.
    pub engine: String,
    /// What it ran on: `capacity` or `staging` (and capacity).
    pub tiers: String,
    /// `load`, or a workload's letter.
    pub phase: String,
    /// Which round.
    pub round: usize,
    /// Operations done.
    pub operations: u64,
    /// Seconds from the first one's beginning to the last one's end, by the run's clock.
    pub seconds: f64,
    /// Operations a second.
    pub operations_per_second: f64,
    /// Operations a second that were asked for; 0 for as many as possible.
    pub target_per_second: f64,
    /// Latencies by operation.
    pub latencies: BTreeMap<String, LatencySummary>,
    /// Length of an interval of `throughput`, in seconds.
    pub interval_s: f64,
    /// Operations a second in each interval.
    pub throughput: Vec<f64>,
    /// CPU seconds of the process outside the kernel.
    pub cpu_user_s: f64,
    /// CPU seconds of the process in the kernel.
    pub cpu_system_s: f64,
    /// CPU seconds that the machine, if it is a virtual one, had work for and did not get: what another machine on the
    /// same host took.
    #[serde(default)]
    pub cpu_stolen_s: f64,
    /// What the engine read because its cache did not have it, during `seconds`; none if it cannot tell.
    #[serde(default)]
    pub cache_misses: Option<u64>,
    /// Random reads of 4 KiB a second that each class's device gave to as many clients, before the load; none where
    /// that was not measured.
    #[serde(default)]
    pub device_iops: BTreeMap<String, f64>,
    /// The most main memory the process had.
    pub memory_bytes_most: u64,
    /// Bytes of keys and values that were inserted or updated.
    pub logical_bytes_written: u64,
    /// Bytes of keys and values that were read.
    #[serde(default)]
    pub logical_bytes_read: u64,
    /// Bytes of keys and values that are there afterwards.
    pub logical_bytes_stored: u64,
    /// Bytes by class until the last operation ended.
    pub classes: Vec<ClassBytes>,
    /// Bytes by class after data had settled, from the beginning on.
    pub classes_settled: Vec<ClassBytes>,
    /// Seconds until, after the load, all data were where they stay; after a workload, until no work was due any more.
    pub settle_s: f64,
    /// CPU seconds of the process meanwhile.
    #[serde(default)]
    pub settle_cpu_s: f64,
    /// Bytes that the engine's files take afterwards, by class.
    pub stored_bytes: BTreeMap<String, u64>,
    /// Records there are afterwards.
    pub records: u64,
    /// Seconds that opening took.
    pub open_s: f64,
    /// What the engine counted.
    pub statistics: EngineStatistics,
}

/// A run as it is written out. What is not known is left out.
#[derive(Serialize)]
struct Written<'a> {
    #[serde(flatten)]
    run: Measured<'a>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    write_amplification: BTreeMap<&'a str, f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    read_amplification: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    space_amplification: Option<f64>,
}

#[derive(Serialize)]
struct Measured<'a>(#[serde(with = "Run")] &'a Run);

impl Serialize for Run {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let known = |value: f64| value.is_finite().then_some(value);
        let of_class = |class: &'_ ClassBytes| known(self.write_amplification(&class.name));
        let classes = self.classes_settled.iter();
        let written = Written {
            run: Measured(self),
            write_amplification: classes
                .filter_map(|class| Some((class.name.as_str(), of_class(class)?)))
                .collect(),
            read_amplification: known(self.read_amplification()),
            space_amplification: known(self.space_amplification()),
        };
        written.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Run {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Run, D::Error> {
        Run::deserialize(deserializer)
    }
}

impl Run {
    /// Bytes written to a class until data had settled, 0 for one that is not there; `NaN` if nobody counted.
    pub fn class_bytes_written(&self, class: &str) -> f64 {
        self.class_bytes(class, |found| found.bytes_written)
    }

    fn class_bytes(&self, class: &str, bytes: fn(&ClassBytes) -> u64) -> f64 {
        if self.classes_settled.is_empty() {
            return f64::NAN;
        }
        let meant = self.classes_settled.iter().filter(|found| found.name == class);
        meant.map(bytes).sum::<u64>() as f64
    }

    /// Bytes written to a class for each byte that was inserted or updated; `NaN` where nothing was.
    pub fn write_amplification(&self, class: &str) -> f64 {
        if self.logical_bytes_written == 0 {
            return f64::NAN;
        }
        self.class_bytes_written(class) / self.logical_bytes_written as f64
    }

    /// As [`class_bytes_written`](Self::class_bytes_written), read from a class.
    pub fn class_bytes_read(&self, class: &str) -> f64 {
        self.class_bytes(class, |found| found.bytes_read)
    }

    /// Bytes read from all classes for each byte that a client read; `NaN` where none was, or nobody counted.
    pub fn read_amplification(&self) -> f64 {
        if self.logical_bytes_read == 0 || self.classes_settled.is_empty() {
            return f64::NAN;
        }
        let read: u64 = self.classes_settled.iter().map(|class| class.bytes_read).sum();
        read as f64 / self.logical_bytes_read as f64
    }

    /// Cache misses a second; `NaN` if the engine cannot tell.
    pub fn misses_per_second(&self) -> f64 {
        let misses = self.cache_misses.map_or(f64::NAN, |misses| misses as f64);
        if self.seconds > 0.0 { misses / self.seconds } else { f64::NAN }
    }

    /// Random reads a second that the devices give if each serves as many as the bytes that were read from it say;
    /// `NaN` where they were not measured.
    pub fn device_iops_as_read(&self) -> f64 {
        let read: u64 = self.classes.iter().map(|class| class.bytes_read).sum();
        // A client that waits spends on each class the time of its share.
        let time = |class: &ClassBytes| match class.bytes_read {
            0 => 0.0,
            bytes => {
                let iops = self.device_iops.get(&class.name).copied().unwrap_or(f64::NAN);
                bytes as f64 / read as f64 / iops
            }
        };
        let seconds: f64 = self.classes.iter().map(time).sum();
        if seconds > 0.0 { 1.0 / seconds } else { f64::NAN }
    }

    /// Operations a second, with the time until data had settled.
    pub fn settled_operations_per_second(&self) -> f64 {
        let seconds = self.seconds + self.settle_s;
        if seconds > 0.0 { self.operations as f64 / seconds } else { f64::NAN }
    }

    /// Bytes on all classes for each byte of keys and values.
    pub fn space_amplification(&self) -> f64 {
        if self.logical_bytes_stored == 0 {
            return f64::NAN;
        }
        self.stored_bytes.values().sum::<u64>() as f64 / self.logical_bytes_stored as f64
    }

    /// A percentile of an operation's latencies, `NaN` where there were none.
    pub fn us_p999(&self, operation: &str) -> f64 {
        self.latencies.get(operation).map_or(f64::NAN, |summary| summary.us_p999)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn settled() -> Run {
        let class = |name: &str, bytes_written, bytes_read| ClassBytes {
            name: name.to_owned(),
            bytes_written,
            bytes_read,
        };
        Run {
            phase: "A".to_owned(),
            logical_bytes_written: 100,
            logical_bytes_read: 50,
            logical_bytes_stored: 1000,
            classes_settled: vec![class("staging", 150, 0), class("capacity", 30, 200)],
            stored_bytes: BTreeMap::from([("staging".to_owned(), 500), ("capacity".to_owned(), 1000)]),
            ..Run::default()
        }
    }

    /// They were in tables and pages alone.
    #[test]
    fn amplifications_are_written_out() {
        let run = settled();
        let written = serde_json::to_value(&run).unwrap();
        assert_eq!(written["write_amplification"], json!({"staging": 1.5, "capacity": 0.3}));
        assert_eq!(written["read_amplification"], json!(4.0));
        assert_eq!(written["space_amplification"], json!(1.5));
        // What was measured is there as it was, and comes back.
        assert_eq!(written["logical_bytes_written"], json!(100));
        assert_eq!(written["phase"], json!("A"));
        assert_eq!(serde_json::from_value::<Run>(written).unwrap(), run);
        let printed = serde_json::to_string(&run).unwrap();
        assert_eq!(serde_json::from_str::<Run>(&printed).unwrap(), run);
    }

    #[test]
    fn amplifications_that_are_not_known_are_left_out() {
        let names = |run: &Run| -> Vec<String> {
            let Value::Object(written) = serde_json::to_value(run).unwrap() else { return Vec::new() };
            written.keys().filter(|name| name.ends_with("amplification")).cloned().collect()
        };
        assert_eq!(names(&Run::default()), [""; 0]);
        let reads_alone = Run { logical_bytes_written: 0, ..settled() };
        assert_eq!(names(&reads_alone), ["read_amplification", "space_amplification"]);
        let nobody_counted = Run { classes_settled: Vec::new(), ..settled() };
        assert_eq!(names(&nobody_counted), ["space_amplification"]);
    }
}
