//! What `tanada bench ycsb` is told, and whether it can be done: all of it is looked at before anything runs.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;
use tanada_base::ByteSize;
use tanada_kv::{DatabaseSettings, StoreSettings};

use super::places::Sizes;
use super::ycsb::OWN;
use super::{CAPACITY_ONLY, Peer, WITH_STAGING};
use crate::drive::{Clients, Driver, Phase};
use crate::measure::machine_bytes;
use crate::media::MediaKind;
use crate::workload::{Distribution, Records, Workload};
use crate::{Error, Result};

/// The longest phase.
const MOST_SECONDS: f64 = 1e6;
/// The least memory that engines are given.
const LEAST_MEMORY_BYTES: u64 = 8 << 20;

/// Settings of the benchmark.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct YcsbOptions {
    /// A folder to make files in; they are removed afterwards.
    pub directory: PathBuf,
    /// What the files lie on.
    pub media: MediaKind,
    /// Which classes there are, in turn: `capacity`, `staging`.
    pub tiers: Vec<String>,
    /// The records.
    pub records: Records,
    /// Operations of each workload.
    pub operations: u64,
    /// A workload ends after so many seconds at the latest; 0 for no end.
    pub seconds: f64,
    /// A workload runs for so many seconds before it is measured: every phase begins with cold caches.
    pub warm_up_s: f64,
    /// The workloads, in their order.
    pub workloads: Vec<Workload>,
    /// How clients run; with `Tasks`, another engine gets as many threads.
    pub clients: Clients,
    /// Operations a second that are due; 0 for a closed loop.
    pub target_per_second: f64,
    /// Chooses records otherwise than the workloads do.
    pub distribution: Option<Distribution>,
    /// Whether an update replaces the whole record.
    pub update_all_fields: bool,
    /// Memory for everything an engine keeps in it.
    pub memory_bytes: u64,
    /// Bytes that an engine may use of the staging class, as a share of the data.
    pub staging_share: f64,
    /// A write is durable after so many milliseconds at the latest; 0 for before it is acknowledged.
    pub durable_within_ms: u16,
    /// Rounds.
    pub rounds: usize,
    /// Threads of Tanada; 0 for one per core.
    pub threads: usize,
    /// Whether Tanada runs; without it only the other engines do.
    pub own: bool,
    /// Engines to compare with.
    pub against: Vec<Peer>,
    /// Settings of Tanada's database and store, as a list of both; null for its own.
    pub engine_settings: serde_json::Value,
}

impl YcsbOptions {
    /// Two million records of 1,000 bytes, 96 operations in flight, a fifth of the data as memory, staging with room
    /// for all of them and half of them more; three rounds of 20 s a workload, after 20 s that are not measured.
    pub fn new(directory: impl Into<PathBuf>) -> YcsbOptions {
        YcsbOptions {
            directory: directory.into(),
            media: MediaKind::available(),
            tiers: vec![WITH_STAGING.to_owned()],
            records: Records { count: 2_000_000, ..Records::default() },
            operations: 10_000_000,
            seconds: 20.0,
            warm_up_s: 20.0,
            workloads: vec![Workload::A, Workload::B, Workload::C, Workload::F, Workload::D, Workload::E],
            clients: Clients::Tasks(96),
            target_per_second: 0.0,
            distribution: None,
            update_all_fields: true,
            memory_bytes: 384 << 20,
            staging_share: 1.5,
            durable_within_ms: 100,
            rounds: 3,
            threads: 0,
            own: true,
            against: Vec::new(),
            engine_settings: serde_json::Value::Null,
        }
    }

    /// A quarter of a million records, at most a second a workload, one round: under a minute.
    pub fn quick(directory: impl Into<PathBuf>) -> YcsbOptions {
        YcsbOptions {
            records: Records { count: 250_000, ..Records::default() },
            seconds: 1.0,
            warm_up_s: 0.0,
            memory_bytes: 64 << 20,
            rounds: 1,
            ..YcsbOptions::new(directory)
        }
    }

    /// Whether the benchmark can run so; nothing was done yet.
    pub(super) fn check(&self) -> Result<()> {
        self.records.check()?;
        no_more_than_once(&self.tiers, "tiers", "staging, capacity")?;
        if let Some(unknown) =
            self.tiers.iter().find(|name| ![CAPACITY_ONLY, WITH_STAGING].contains(&name.as_str()))
        {
            return Err(Error::invalid(format!("tiers are staging and capacity, not {unknown:?}")));
        }
        check_workloads(&self.workloads)?;
        if self.rounds == 0 || self.operations == 0 {
            return Err(Error::invalid("there is at least one round and one operation"));
        }
        for (what, value, most) in [
            ("the target", self.target_per_second, 1e9),
            ("seconds", self.seconds, MOST_SECONDS),
            ("seconds to warm up", self.warm_up_s, MOST_SECONDS),
        ] {
            if !(0.0..=most).contains(&value) {
                return Err(Error::invalid(format!("{what}: {value} is not from 0 to {most}")));
            }
        }
        if !(self.staging_share > 0.0 && self.staging_share <= 1000.0) {
            let message =
                format!("the share of staging: {} is not above 0, at most 1000", self.staging_share);
            return Err(Error::invalid(message));
        }
        check_memory(self.memory_bytes)?;
        self.driver(Phase::Load, 0).check()?;
        check_engine_settings(&self.engine_settings)?;
        let engines: Vec<&str> = self.against.iter().map(|peer| peer.engine.as_str()).collect();
        if !engines.is_empty() {
            no_more_than_once(&engines, "engines to compare with", "")?;
        }
        self.against.iter().try_for_each(Peer::check)
    }

    /// How clients run.
    pub(super) fn driver(&self, phase: Phase, round: usize) -> Driver {
        Driver {
            records: self.records,
            operations: self.operations,
            seconds: self.seconds,
            clients: self.clients,
            target_per_second: if phase == Phase::Load { 0.0 } else { self.target_per_second },
            distribution: self.distribution,
            update_all_fields: self.update_all_fields,
            interval_s: if self.seconds > 0.0 && self.seconds < 10.0 { 0.1 } else { 1.0 },
            seed: round as u64,
        }
    }

    pub(super) fn sizes(&self) -> Sizes {
        let data = self.records.logical_bytes(self.records.count);
        let staging = ((data as f64 * self.staging_share) as u64).max(128 << 20);
        let capacity_bytes = (3 * data + (512 << 20)) >> 20 << 20;
        Sizes { staging_bytes: staging >> 20 << 20, capacity_bytes, data_bytes: data }
    }

    pub(super) fn engines(&self) -> Vec<&str> {
        let peers = self.against.iter().map(|peer| peer.engine.as_str());
        self.own.then_some(OWN).into_iter().chain(peers).collect()
    }
}

impl fmt::Display for YcsbOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Sizes { staging_bytes, data_bytes, .. } = self.sizes();
        let size = |bytes: u64| ByteSize::new(bytes);
        write!(
            f,
            "{} records of {} B ({}), ",
            self.records.count,
            self.records.value_bytes(),
            size(data_bytes)
        )?;
        write!(f, "{} of memory for each engine, ", size(self.memory_bytes))?;
        if self.tiers.iter().any(|tiers| tiers == WITH_STAGING) {
            write!(f, "{} of staging, ", size(staging_bytes))?;
        }
        writeln!(f, "on {}", self.media.told())?;
        match self.clients {
            Clients::Tasks(count) => write!(f, "{count} requests in flight")?,
            Clients::Threads(count) => write!(f, "{count} clients that wait, each a thread")?,
        }
        if self.target_per_second > 0.0 {
            write!(f, ", {} operations a second", self.target_per_second)?;
        }
        match self.durable_within_ms {
            0 => f.write_str("; writes durable before they are acknowledged")?,
            within => write!(f, "; writes durable within {within} ms")?,
        }
        write!(f, "; of each workload at most {} operations", self.operations)?;
        if self.seconds > 0.0 {
            write!(f, " and {} s", self.seconds)?;
        }
        if self.warm_up_s > 0.0 {
            write!(f, ", after {} s that are not measured", self.warm_up_s)?;
        }
        Ok(())
    }
}

/// Figures of what is named twice would be one.
fn no_more_than_once<T: PartialEq + std::fmt::Debug>(named: &[T], what: &str, known: &str) -> Result<()> {
    if named.is_empty() {
        return Err(Error::invalid(format!("{what}: there is at least one of {known}")));
    }
    let twice = named.iter().enumerate().find(|(no, one)| named[..*no].contains(one));
    match twice {
        Some((_, one)) => Err(Error::invalid(format!("{what}: {one:?} is named twice"))),
        None => Ok(()),
    }
}

pub(super) fn check_workloads(workloads: &[Workload]) -> Result<()> {
    no_more_than_once(workloads, "workloads", "a, b, c, d, e, f")
}

pub(super) fn check_memory(bytes: u64) -> Result<()> {
    if bytes < LEAST_MEMORY_BYTES {
        return Err(Error::invalid(format!("memory is at least 8 MiB, not {bytes} bytes")));
    }
    if let Some(most) = machine_bytes().filter(|most| bytes > *most) {
        let message = format!("memory: {bytes} bytes are more than the {most} that this machine has");
        return Err(Error::invalid(message));
    }
    Ok(())
}

/// Settings of a database and a store as a list of both; its own for null.
pub(super) fn engine_settings(settings: &serde_json::Value) -> Result<(DatabaseSettings, StoreSettings)> {
    match settings {
        serde_json::Value::Null => Ok((DatabaseSettings::default(), StoreSettings::default())),
        settings => serde_json::from_value(settings.clone()).map_err(|error| {
            Error::invalid(format!("engine_settings are those of a database and of a store: {error}"))
        }),
    }
}

pub(super) fn check_engine_settings(settings: &serde_json::Value) -> Result<()> {
    engine_settings(settings).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::run_ycsb;

    /// What is said before anything is done; the folder is not there.
    fn refusal(change: impl Fn(&mut YcsbOptions)) -> String {
        let mut options = YcsbOptions { media: MediaKind::Folder, ..YcsbOptions::quick("/nowhere") };
        change(&mut options);
        let error = run_ycsb(&options, |what| panic!("{what}")).unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::InvalidInput, "{error}");
        error.to_string()
    }

    #[test]
    fn nonsense_is_refused() {
        refusal(|options| options.rounds = 0);
        refusal(|options| options.operations = 0);
        refusal(|options| options.records.count = 0);
        refusal(|options| options.records.count = u64::MAX);
        refusal(|options| options.clients = Clients::Tasks(100_001));
        refusal(|options| options.clients = Clients::Threads(0));
        refusal(|options| options.memory_bytes = 1 << 10);
        assert!(refusal(|options| options.memory_bytes = 1 << 50).contains("this machine"));
        refusal(|options| options.engine_settings = serde_json::json!({"a": 1}));
        assert!(refusal(|options| options.tiers = vec!["tape".to_owned()]).contains("tape"));
        assert!(refusal(|options| options.tiers.clear()).contains("at least one of staging"));
        assert!(refusal(|options| options.workloads.clear()).contains("at least one of a, b"));
    }

    #[test]
    fn invalid_rates_and_times_are_refused() {
        for value in [-1.0, f64::NAN, f64::INFINITY] {
            assert!(refusal(|options| options.target_per_second = value).contains("target"));
            assert!(refusal(|options| options.seconds = value).contains("seconds"));
            assert!(refusal(|options| options.warm_up_s = value).contains("warm up"));
            assert!(refusal(|options| options.staging_share = value).contains("share"));
        }
        assert!(refusal(|options| options.staging_share = 0.0).contains("share"));
    }

    #[test]
    fn duplicate_options_are_refused() {
        let twice = refusal(|options| options.workloads = vec![Workload::A, Workload::B, Workload::A]);
        assert!(twice.contains("A is named twice"), "{twice}");
        refusal(|options| options.tiers = vec![WITH_STAGING.to_owned(), WITH_STAGING.to_owned()]);
    }

    #[test]
    fn unknown_engines_are_refused() {
        let peer = |engine: &str| Peer { program: "/bin/true".into(), engine: engine.to_owned() };
        for engine in ["rocksbd", "tanada", ""] {
            let told = refusal(|options| options.against = vec![peer(engine)]);
            assert!(told.contains("rocksdb, rocksdb-usual-levels, rocksdb-blob, fjall"), "{told}");
        }
        let told = refusal(|options| options.against = vec![peer("rocksdb"), peer("rocksdb")]);
        assert!(told.contains("twice"), "{told}");
        let missing = Peer { program: "/nowhere".into(), engine: "rocksdb".to_owned() };
        let options = YcsbOptions { against: vec![missing], ..YcsbOptions::quick("/nowhere") };
        let error = options.check().unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::Missing);
    }
}
