//! One phase of one engine: opened, driven, settled, closed.
//!
//! Every phase begins by opening what the one before it left and ends by closing it, so that no engine begins with a
//! warmer cache than another, and a foreign one can have a process of its own. Bytes are counted from before the
//! opening to after the closing: what a phase leaves undone is counted with it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use futures::executor::block_on;
use serde::{Deserialize, Serialize};
use tanada_io::Timeline;
use tanada_kv::{DatabaseSettings, Durability};

use super::options::engine_settings;
use crate::drive::{Driver, Phase};
use crate::engine::{ClassBytes, ClassFolder, Engine, Tanada, TanadaOptions};
use crate::measure::{BlockDevice, CpuTime, MemoryWatch, Run};
use crate::{Error, Result};

/// What is to be done with an engine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// The engine: `tanada`, or what another program knows.
    pub engine: String,
    /// Which classes there are: `capacity`, or `staging` and it.
    pub tiers: String,
    /// What is done.
    pub phase: Phase,
    /// Which round.
    pub round: usize,
    /// How.
    pub driver: Driver,
    /// Folders to keep data in, fastest first.
    pub classes: Vec<ClassFolder>,
    /// Whether each class has a block device of its own, whose counters tell its bytes.
    pub has_devices: bool,
    /// Memory for everything the engine keeps in it.
    pub memory_bytes: u64,
    /// A write is durable after so many milliseconds at the latest; 0 for before it is acknowledged.
    pub durable_within_ms: u16,
    /// A workload runs for so many seconds before it is measured, with other records; its bytes count.
    #[serde(default)]
    pub warm_up_s: f64,
    /// Whether the engine brings all data to their last place after the load, and does what is due after a workload,
    /// before it is closed.
    pub settles: bool,
    /// Threads of the engine; 0 for one per core.
    pub threads: usize,
    /// Anything else about the engine, by its own names.
    #[serde(default)]
    pub engine_settings: serde_json::Value,
}

impl Job {
    /// Does it with Tanada.
    ///
    /// # Errors
    /// If anything fails.
    pub fn perform(&self) -> Result<Run> {
        self.perform_with(|job| Ok(Arc::new(job.open_tanada()?)))
    }

    /// Does it with the engine that `open` opens.
    ///
    /// # Errors
    /// If anything fails.
    pub fn perform_with(&self, open: impl FnOnce(&Job) -> Result<Arc<dyn Engine>>) -> Result<Run> {
        let clock = Timeline::current_virtual().unwrap_or_else(Timeline::real).clock();
        let watch = MemoryWatch::start();
        let before = self.device_bytes();
        let began = Instant::now();
        let engine = open(self)?;
        let open_s = began.elapsed().as_secs_f64();
        // An engine that counts for itself begins with its opening.
        let since = |engine: &dyn Engine| match self.has_devices {
            true => difference(&self.device_bytes(), &before),
            false => engine.statistics().classes,
        };
        let mut driver = self.driver.clone();
        let mut warming = (0, 0);
        if self.warm_up_s > 0.0 && self.phase != Phase::Load {
            let warm_up = Driver { seconds: self.warm_up_s, seed: !driver.seed, ..driver.clone() };
            let warmed = warm_up.run(engine.clone(), self.phase)?;
            driver.records.count = warmed.records;
            warming = (warmed.logical_bytes_written, warmed.logical_bytes_read);
        }
        let misses = engine.statistics().cache_misses;
        let mut run = driver.run(engine.clone(), self.phase)?;
        run.cache_misses = engine.statistics().cache_misses.zip(misses).map(|(now, before)| now - before);
        run.logical_bytes_written += warming.0;
        run.logical_bytes_read += warming.1;
        run.classes = since(&*engine);
        let (settling, cpu) = (clock.now(), CpuTime::now());
        let idle_s = match self.phase {
            _ if !self.settles => 0.0,
            Phase::Load => block_on(engine.settle()).map(|()| 0.0)?,
            Phase::Run(_) => block_on(engine.catch_up())?,
        };
        run.settle_s = ((clock.now() - settling).as_secs_f64() - idle_s).max(0.0);
        let cpu = CpuTime::now().since(cpu);
        run.settle_cpu_s = cpu.user_s + cpu.system_s;
        run.statistics = engine.statistics();
        block_on(engine.close())?;
        self.write_back();
        run.classes_settled = since(&*engine);
        drop(engine);
        run.memory_bytes_most = watch.stop();
        run.open_s = open_s;
        run.stored_bytes = match run.statistics.stored_bytes.is_empty() {
            true => self.stored_bytes(),
            false => run.statistics.stored_bytes.clone(),
        };
        run.engine.clone_from(&self.engine);
        run.tiers.clone_from(&self.tiers);
        run.round = self.round;
        Ok(run)
    }

    fn open_tanada(&self) -> Result<Tanada> {
        let Some(fastest) = self.classes.first() else { return Err(Error::invalid("there is no folder")) };
        let (database, store) = engine_settings(&self.engine_settings)?;
        let durability = match self.durable_within_ms {
            0 => Durability::Sync,
            ms => Durability::Within(ms),
        };
        let options = TanadaOptions {
            classes: self.classes.clone(),
            threads: self.threads,
            database: DatabaseSettings { memory_bytes: self.memory_bytes, durability, ..database },
            store,
        };
        Tanada::open(&fastest.path.join("volume"), &options)
    }

    /// What the devices of the classes read and wrote so far.
    fn device_bytes(&self) -> Vec<ClassBytes> {
        if !self.has_devices {
            return Vec::new();
        }
        let counted = |class: &ClassFolder| BlockDevice::of_path(&class.path)?.counters(&class.name);
        self.classes.iter().filter_map(counted).collect()
    }

    /// Has the kernel write what it still keeps of the engine's files.
    fn write_back(&self) {
        for class in self.classes.iter().filter(|_| self.has_devices) {
            // Counters are a little low if it cannot be done.
            let _ = Command::new("sync").arg("--file-system").arg(&class.path).status();
        }
    }

    fn stored_bytes(&self) -> BTreeMap<String, u64> {
        self.classes.iter().map(|class| (class.name.clone(), allocated_bytes(&class.path))).collect()
    }
}

fn difference(now: &[ClassBytes], before: &[ClassBytes]) -> Vec<ClassBytes> {
    now.iter().zip(before).map(|(now, before)| now.since(before)).collect()
}

/// Bytes that files under `path` take on their disk; holes take none.
fn allocated_bytes(path: &Path) -> u64 {
    /// The unit of a file's blocks, whatever the file system's is.
    const BLOCK: u64 = 512;
    let Ok(metadata) = fs::symlink_metadata(path) else { return 0 };
    if !metadata.is_dir() {
        return metadata.blocks() * BLOCK;
    }
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.map(|entry| allocated_bytes(&entry.path())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::OrderedMap;
    use crate::workload::Records;

    #[test]
    fn a_job_is_data_and_its_run_says_whose_it_is() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), vec![7; 100_000]).unwrap();
        let class = ClassFolder {
            name: "capacity".to_owned(),
            path: folder.path().to_owned(),
            size_bytes: 1 << 30,
            model: None,
        };
        let records = Records { count: 100, ..Records::default() };
        let job = Job {
            engine: "map".to_owned(),
            tiers: "capacity".to_owned(),
            phase: Phase::Load,
            round: 3,
            driver: Driver { records, ..Driver::default() },
            classes: vec![class],
            has_devices: false,
            memory_bytes: 1 << 20,
            durable_within_ms: 100,
            warm_up_s: 0.0,
            settles: true,
            threads: 1,
            engine_settings: serde_json::Value::Null,
        };
        let text = serde_json::to_string(&job).unwrap();
        assert_eq!(serde_json::from_str::<Job>(&text).unwrap(), job);
        let run = job.perform_with(|_| Ok(Arc::new(OrderedMap::default()))).unwrap();
        assert_eq!(
            (run.engine.as_str(), run.phase.as_str(), run.round, run.records),
            ("map", "load", 3, 100)
        );
        assert!((100_000..120_000).contains(&run.stored_bytes["capacity"]), "{:?}", run.stored_bytes);
        assert!(run.memory_bytes_most > 0 && run.logical_bytes_written > 100_000);
        let text = serde_json::to_string(&run).unwrap();
        let read: Run = serde_json::from_str(&text).unwrap();
        assert_eq!((read.operations, read.stored_bytes), (run.operations, run.stored_bytes));
    }
}
