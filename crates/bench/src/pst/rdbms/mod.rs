//! The pre-query storage tiering paper's evaluation as the paper ran it: an unpatched server keeps its files on a
//! mounted volume, and its own plans place them.
//!
//! 1. [`load`]: the rows of TPC-H in InnoDB files go into an empty server on a plain file system, which answers the
//!    queries: these answers are those without a volume.
//! 2. Its data directory is copied into a volume ([`place`]). On a copy without emulated devices the queries run and
//!    are recorded ([`watching`]), for replays under policies that place blocks, which a mount does not.
//! 3. On a copy with emulated devices and next to no fast class the queries run once: what is counted and learned there
//!    is what all policies begin with, and it is the run of the share 0.
//! 4. For each share and policy a copy of that is mounted with the policy; the server starts, and the queries come
//!    through `tanada advise --proxy`, in real time. Every answer is compared with the first one.
//! 5. [`proxied`]: what the proxy costs short statements.

mod figures;
mod load;
mod page;
mod place;
mod proxied;
mod schema;
mod system;
mod watching;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use serde::Serialize;
use tanada_io::ModelSpec;
use tanada_mount::kernel_refusal;
use tanada_placement::Trace;
use tanada_replay::{Outcome, Pace, QueryOutcome, SimulationOptions, is_live, sweep};
use tanada_report::Report;

use self::place::{Host, Ios, Place};
use self::proxied::Proxy;
use self::system::{Client, Server, System};
use self::watching::Recording;
use super::Replayed;
use crate::{Error, ErrorKind, Result};

pub use page::html;
pub use proxied::ProxyCost;
pub use system::Rdbms;

/// What the runs on the mounted volume are called in a report.
pub const LIVE: &str = "live";

/// The policy of the run that the others learn from.
const LEARNING: &str = "benefit";

/// What to measure.
#[derive(Debug, Clone, Serialize)]
pub struct RdbmsSettings {
    /// The system.
    pub rdbms: Rdbms,
    /// InnoDB files with the rows of TPC-H.
    pub innodb: PathBuf,
    /// Their database.
    pub database: String,
    /// The paper's queries, or others.
    pub queries: Vec<(String, String)>,
    /// Policies. Those that place chunks run on the mounted volume; of others the recorded run is replayed.
    pub policies: Vec<String>,
    /// Room of the fast class in per cent of the tables' files.
    pub shares: Vec<u32>,
    /// Devices of the fast class.
    pub fast: ModelSpec,
    /// Devices of the slow class.
    pub slow: ModelSpec,
    /// The server's cache as a part of the tables' files.
    pub cache_share: f64,
    /// Runs of each policy and share.
    pub runs: usize,
    /// Look-ups by one client, on each side of the proxy.
    pub look_ups: usize,
    /// Clients that look rows up at once, on each side of the proxy,
    pub clients: usize,
    /// for so many seconds.
    pub seconds: f64,
    /// A folder for data directories and volumes; a temporary one if there is none.
    pub work: Option<PathBuf>,
    /// The command `tanada`, whose proxy is run.
    pub program: PathBuf,
}

impl RdbmsSettings {
    /// The paper's evaluation with the rows in `innodb`, and `program` as the command.
    pub fn new(rdbms: Rdbms, innodb: PathBuf, program: PathBuf) -> RdbmsSettings {
        let query = |query: &tanada_sample::SampleQuery| (query.name.to_owned(), query.sql.to_owned());
        RdbmsSettings {
            rdbms,
            innodb,
            database: "tpch".to_owned(),
            queries: tanada_sample::TIERING.iter().map(query).collect(),
            policies: ["static", "lru", "plan", "benefit"].map(str::to_owned).to_vec(),
            shares: (0..=100).step_by(10).collect(),
            fast: ModelSpec::new(tanada_io::Preset::SataSsd),
            slow: ModelSpec::new(tanada_io::Preset::Hdd7200).times(3),
            cache_share: 1.0 / 3.0,
            runs: 1,
            look_ups: 20_000,
            clients: 16,
            seconds: 20.0,
            work: None,
            program,
        }
    }

    /// A quick look: one share.
    pub fn quick(self) -> RdbmsSettings {
        RdbmsSettings { shares: vec![40], look_ups: 2_000, seconds: 2.0, ..self }
    }

    /// Policies that place chunks, and the others.
    fn sides(&self) -> Result<(Vec<&str>, Vec<&str>)> {
        let (mut live, mut replayed) = (Vec::new(), Vec::new());
        for policy in &self.policies {
            let made = tanada_replay::policy(policy, 0);
            let made = made.map_err(|error| Error::new(ErrorKind::InvalidInput, error.to_string()))?;
            let side = if is_live(made.name()) { &mut live } else { &mut replayed };
            side.push(policy.as_str());
        }
        Ok((live, replayed))
    }

    fn check(&self) -> Result<()> {
        let invalid = |why: &str| Err(Error::new(ErrorKind::InvalidInput, why));
        if self.runs == 0 || self.queries.is_empty() || self.shares.is_empty() {
            return invalid("at least one run, one query and one share are needed");
        }
        if self.clients == 0 || self.look_ups < 10 || self.seconds < 0.1 {
            return invalid("the proxy is measured with at least one client, ten look-ups and 0.1 s");
        }
        self.sides().map(drop)
    }
}

/// Runs the evaluation; `progress` hears what happens. Blocks: call it from a thread that may.
///
/// # Errors
/// `InvalidInput` for settings that nothing can be run with; `Missing` without the server; if volumes cannot be mounted
/// here, a run fails, or two runs give different answers.
pub fn run(settings: &RdbmsSettings, progress: &(dyn Fn(&str) + Sync)) -> Result<Report> {
    settings.check()?;
    if let Some(why) = kernel_refusal() {
        return Err(Error::failed(format!("the benchmark mounts volumes, which cannot be done here: {why}")));
    }
    let mut folder = tempfile::Builder::new();
    folder.prefix("tanada-bench-pst-");
    let folder = match &settings.work {
        Some(work) => folder.tempdir_in(work),
        None => folder.tempdir(),
    };
    let folder = folder.map_err(|error| Error::failed(format!("cannot make a folder: {error}")))?;
    // A server that runs as another user passes through.
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.path(), open)
        .map_err(|error| Error::at_path("open", folder.path(), &error))?;
    let mut bench = Bench::prepare(settings, folder.path(), progress)?;
    let trace = bench.record()?;
    let mut live = bench.learn()?;
    let (policies, _) = settings.sides()?;
    for run in 0..settings.runs {
        for share in settings.shares.iter().filter(|share| **share > 0) {
            for policy in &policies {
                progress(&format!("{policy} at {share} %, run {} of {}", run + 1, settings.runs));
                live.push(bench.run(policy, *share, run as u64 + 1)?);
            }
        }
    }
    progress("the proxy");
    let cost = bench.proxy()?;
    let replayed = replay(settings, &trace, progress)?;
    Ok(figures::report(settings, bench.tables_bytes, &trace, &live, &replayed, &cost))
}

/// Replays of the recorded run: of policies that a mount does not have, and of `static` to compare them with.
fn replay(
    settings: &RdbmsSettings,
    trace: &Trace,
    progress: &(dyn Fn(&str) + Sync),
) -> Result<Vec<Replayed>> {
    let (_, mut policies) = settings.sides()?;
    if policies.is_empty() {
        return Ok(Vec::new());
    }
    policies.push("static");
    let mut runs = Vec::new();
    for share in &settings.shares {
        for policy in &policies {
            let options = SimulationOptions {
                fast: settings.fast.clone(),
                slow: settings.slow.clone(),
                pace: Pace::InOrder,
                ..SimulationOptions::new(policy, f64::from(*share) / 100.0)
            };
            runs.push((*share, options));
        }
    }
    progress("replays of the recorded run");
    let options: Vec<SimulationOptions> = runs.iter().map(|(_, options)| options.clone()).collect();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let outcomes = sweep(trace, None, &options, threads, &|_| ());
    let outcomes = outcomes.map_err(|error| Error::failed(error.to_string()))?;
    let run = |((share, options), outcome): (&(u32, SimulationOptions), Outcome)| Replayed {
        kind: "replay",
        execution: settings.rdbms.name(),
        clients: 1,
        share: *share,
        seed: options.seed,
        outcome,
    };
    Ok(runs.iter().zip(outcomes).map(run).collect())
}

/// What all runs share.
struct Bench<'a> {
    settings: &'a RdbmsSettings,
    progress: &'a (dyn Fn(&str) + Sync),
    host: Host,
    system: System,
    /// Where sockets and logs of servers lie.
    beside: PathBuf,
    /// The volume without emulated devices.
    template: PathBuf,
    /// The volume in which everything was counted and learned once.
    learned: PathBuf,
    /// The folder of the tables, below the data directory.
    inner: PathBuf,
    /// Bytes of the tables' files.
    tables_bytes: u64,
    /// Answers without a volume.
    answers: Vec<Vec<String>>,
}

impl<'a> Bench<'a> {
    fn prepare(
        settings: &'a RdbmsSettings,
        folder: &Path,
        progress: &'a (dyn Fn(&str) + Sync),
    ) -> Result<Bench<'a>> {
        let mut system = System::find(settings.rdbms)?;
        let host = Host::new()?;
        // The paths of sockets are short.
        let (beside, plain) = (folder.join("s"), folder.join("plain"));
        for made in [&beside, &plain] {
            std::fs::create_dir(made).map_err(|error| Error::at_path("make", made, &error))?;
            system.own(made)?;
        }
        let data = plain.join("data");
        let inner = host.runtime.block_on(load::load(settings, &system, &data, &beside, progress))?;
        let tables_bytes = place::bytes_of(&data.join(&inner), 1)?;
        system.pool_bytes = (tables_bytes as f64 * settings.cache_share) as u64;
        let template = folder.join("template");
        let mut bench = Bench {
            settings,
            progress,
            host,
            system,
            beside,
            template,
            learned: folder.join("learned"),
            inner,
            tables_bytes,
            answers: Vec::new(),
        };
        progress("answers without a volume");
        bench.answers = bench.host.runtime.block_on(bench.answers_of(&data))?;
        place::make(&bench.host, &bench.template, &data)?;
        super::live::remove(&plain)?;
        Ok(bench)
    }

    /// The answers of a server on a data directory, without a proxy.
    async fn answers_of(&self, data: &Path) -> Result<Vec<Vec<String>>> {
        let server = self.system.start(data, &self.beside).await?;
        let mut client = server.connect().await?;
        let mut answers = Vec::new();
        for (name, statement) in &self.settings.queries {
            let rows = client.rows(statement).await;
            answers.push(rows.map_err(|error| Error::failed(format!("{name}: {error}")))?);
        }
        client.close().await;
        server.stop().await?;
        Ok(answers)
    }

    /// Runs the queries on a copy of the template without emulated devices, and records what they read.
    fn record(&mut self) -> Result<Trace> {
        (self.progress)("recording");
        let prefix = Place::prefix(&self.inner);
        let recording = Arc::new(Recording::new(prefix.clone()));
        let place = Place::mount(&self.host, &self.template, None, Some(recording.clone()))?;
        for object in place.objects(&prefix) {
            recording.add(&object.name(), object.size_bytes());
        }
        let asked = self.host.runtime.block_on(async {
            let server = self.system.start(&place.data(), &self.beside).await?;
            let mut client = server.connect().await?;
            let process = server.process_of(&mut client).await;
            for (no, (name, statement)) in self.settings.queries.iter().enumerate() {
                self.forget_pages(&place)?;
                recording.begins(name, process);
                let rows = client.rows(statement).await?;
                recording.ends();
                self.compare(no, &rows, "recorded")?;
            }
            client.close().await;
            server.stop().await
        });
        asked?;
        place.end(&self.host)?;
        Ok(recording.trace())
    }

    /// The run of the share 0, in which the volume counts and the policies learn.
    fn learn(&mut self) -> Result<Vec<Replayed>> {
        (self.progress)("0 %: all of it on the slow class, which the policies learn from");
        let models = Some([&self.settings.fast, &self.settings.slow]);
        place::copy(&self.host, &self.template, &self.learned, models, 0)?;
        let (outcome, place) = self.queries(&self.learned, LEARNING, 0)?;
        place.end(&self.host)?;
        // All policies are the same where there is nothing to place.
        let outcome = Outcome { policy: "off".to_owned(), ..outcome };
        Ok(vec![self.live(outcome, 0, 1)])
    }

    /// The queries under a policy that has space for a share of the tables in the fast class.
    fn run(&self, policy: &str, share: u32, seed: u64) -> Result<Replayed> {
        let folder = self.learned.with_file_name("run");
        let fast_bytes = self.tables_bytes * u64::from(share) / 100;
        place::copy(&self.host, &self.learned, &folder, None, fast_bytes)?;
        let (outcome, place) = self.queries(&folder, policy, share)?;
        place.end(&self.host)?;
        super::live::remove(&folder)?;
        Ok(self.live(outcome, share, seed))
    }

    fn live(&self, outcome: Outcome, share: u32, seed: u64) -> Replayed {
        Replayed { kind: LIVE, execution: self.settings.rdbms.name(), clients: 1, share, seed, outcome }
    }

    fn queries(&self, folder: &Path, policy: &str, share: u32) -> Result<(Outcome, Place)> {
        let place = Place::mount(&self.host, folder, Some(policy), None)?;
        let outcome = self.host.runtime.block_on(self.asked(&place, policy, share));
        outcome.map(|outcome| (outcome, place))
    }

    /// Starts the server and the proxy, asks the queries, and stops both.
    async fn asked(&self, place: &Place, policy: &str, share: u32) -> Result<Outcome> {
        if let Some(guide) = place.guide() {
            // What the policy wants in the fast class beforehand is brought there.
            guide.settle().await;
        }
        let server = self.system.start(&place.data(), &self.beside).await?;
        let proxy = Proxy::start(self.settings, &server, place.folder(), &self.beside)?;
        let mut client = proxy.connect(&server).await?;
        let outcome = self.timed(place, &mut client, policy, share).await?;
        client.close().await;
        drop(proxy);
        server.stop().await?;
        Ok(outcome)
    }

    async fn timed(&self, place: &Place, client: &mut Client, policy: &str, share: u32) -> Result<Outcome> {
        let mut outcome = Outcome {
            policy: policy.to_owned(),
            fast_share: f64::from(share) / 100.0,
            capacity_chunks: u32::try_from(place.fast_chunks().1).unwrap_or(u32::MAX),
            ..Outcome::default()
        };
        let mut next = place.guide().map_or(0, |guide| guide.placed(0).last().map_or(0, |last| last.no + 1));
        for (no, (name, statement)) in self.settings.queries.iter().enumerate() {
            self.forget_pages(place)?;
            let before = place.ios();
            let begun = Instant::now();
            let rows = client.rows(statement).await;
            let seconds = begun.elapsed().as_secs_f64();
            let rows = rows.map_err(|error| Error::failed(format!("{name} under {policy}: {error}")))?;
            self.compare(no, &rows, &format!("{policy} at {share} %"))?;
            let Ios { fast, slow } = place.ios();
            let (fast_ios, slow_ios) = (fast - before.fast, slow - before.slow);
            let ios = fast_ios + slow_ios;
            outcome.queries.push(QueryOutcome { name: name.clone(), seconds, ios, slow_ios });
            outcome.total_s += seconds;
            outcome.ios += ios;
            outcome.slow_ios += slow_ios;
            outcome.fast_ios += fast_ios;
            let placed = place.guide().map(|guide| guide.placed(next)).unwrap_or_default();
            for relocated in &placed {
                next = relocated.no + 1;
                // The slow side of a copy is read or written as a whole.
                let ios = u64::from(relocated.bytes > 0);
                outcome.relocation_slow_ios += ios;
                outcome.relocation_fast_ios += ios;
                outcome.relocation_bytes += relocated.bytes;
                outcome.refused += u64::from(relocated.refusal.is_some());
            }
            let taken = u32::try_from(place.fast_chunks().0).unwrap_or(u32::MAX);
            outcome.most_chunks = outcome.most_chunks.max(taken);
        }
        outcome.hit_rate = outcome.fast_ios as f64 / outcome.ios.max(1) as f64;
        Ok(outcome)
    }

    fn compare(&self, no: usize, rows: &[String], when: &str) -> Result<()> {
        if self.answers.get(no).map(Vec::as_slice) == Some(rows) {
            return Ok(());
        }
        let name = self.settings.queries.get(no).map_or("a query", |(name, _)| name.as_str());
        Err(Error::failed(format!("{name}, {when}: the answer is not that without a volume")))
    }

    /// Empties the kernel's cache of the tables before a query of PostgreSQL, which reads through it. The paper's
    /// machine had less memory than data.
    fn forget_pages(&self, place: &Place) -> Result<()> {
        if self.settings.rdbms == Rdbms::MariaDb {
            return Ok(());
        }
        let folder = place.data().join(&self.inner);
        let entries = std::fs::read_dir(&folder).map_err(|error| Error::at_path("list", &folder, &error))?;
        for path in entries.flatten().map(|entry| entry.path()) {
            let failed = |error: std::io::Error| Error::at_path("empty the cache of", &path, &error);
            let file = std::fs::File::open(&path).map_err(failed)?;
            file.sync_data().map_err(failed)?;
            let advice = rustix::fs::Advice::DontNeed;
            rustix::fs::fadvise(&file, 0, None, advice).map_err(|error| failed(error.into()))?;
        }
        Ok(())
    }

    /// What the proxy costs, on the volume without emulated devices.
    fn proxy(&self) -> Result<ProxyCost> {
        let place = Place::mount(&self.host, &self.template, Some(LEARNING), None)?;
        let cost = self.host.runtime.block_on(async {
            let server: Server = self.system.start(&place.data(), &self.beside).await?;
            let proxy = Proxy::start(self.settings, &server, place.folder(), &self.beside)?;
            let cost = proxied::cost(self.settings, &server, &proxy).await?;
            drop(proxy);
            server.stop().await?;
            Ok::<_, Error>(cost)
        });
        let cost = cost?;
        place.end(&self.host)?;
        Ok(cost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_nothing_can_be_run_with_are_refused() {
        let with = |change: fn(&mut RdbmsSettings)| {
            let mut settings = RdbmsSettings::new(Rdbms::MariaDb, "/nowhere".into(), "/nowhere".into());
            change(&mut settings);
            let error = run(&settings, &|_| ()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
            error.to_string()
        };
        assert!(with(|settings| settings.shares.clear()).contains("share"));
        assert!(with(|settings| settings.clients = 0).contains("client"));
        assert!(with(|settings| settings.policies = vec!["mru".to_owned()]).contains("mru"));
    }

    #[test]
    fn policies_of_blocks_are_replayed_and_the_others_run() {
        let settings = RdbmsSettings::new(Rdbms::Postgres, "/".into(), "/".into());
        let (live, replayed) = settings.sides().unwrap();
        assert_eq!((live, replayed), (vec!["static", "plan", "benefit"], vec!["lru"]));
    }
}
