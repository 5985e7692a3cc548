//! The queries on a volume over the models, placed by a policy itself.
//!
//! 1. A volume is made with a fast class of the wanted size; the database's files are adopted, so nothing is copied.
//! 2. The queries run once for the policy to learn, in virtual time. What it learned stays in the volume.
//! 3. A new session begins: what the policy wants in the fast class beforehand is brought there; then the queries run
//!    once more and are timed.

use std::path::{Path, PathBuf};

use serde::Serialize;
use tanada_innodb::MountOptions;
use tanada_io::{ExecutorOptions, Executors, Timeline, VirtualTimeOptions};
use tanada_query::{Session, SessionOptions};
use tanada_volume::directory::{ClassConfig, Directory};
use tanada_volume::{Attributes, VolumeSettings};
use tempfile::TempDir;

use super::PstSettings;
use super::recorded::{Answers, cache_bytes, set};
use crate::{Error, ErrorKind, Result};
use tanada_sample::runtime_on;

/// Room that a class needs beside its chunks.
const SLACK_BYTES: u64 = 32 << 20;

/// One run of the queries on a volume.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LiveRun {
    /// `live`.
    pub kind: &'static str,
    /// `in_order` or `out_of_order`.
    pub execution: &'static str,
    /// The policy.
    pub policy: String,
    /// Room of the fast class, in per cent.
    pub share: u32,
    /// `virtual` or `real`.
    pub time: &'static str,
    /// All queries.
    pub total_s: f64,
    /// Each of them.
    pub queries: Vec<(String, f64)>,
    /// Device I/Os of the queries.
    pub ios: u64,
}

/// Whether `policy`, options and all, can place a volume.
///
/// # Errors
/// `InvalidInput` if there is no such policy, or it is for replays alone.
pub(super) fn check(policy: &str) -> Result<()> {
    let invalid = |message: String| Error::new(ErrorKind::InvalidInput, message);
    let made = tanada_replay::policy(policy, 0).map_err(|error| invalid(error.to_string()))?;
    if tanada_replay::is_live(made.name()) {
        return Ok(());
    }
    let live: Vec<&str> = tanada_placement::POLICIES.iter().map(|registered| registered.name).collect();
    Err(invalid(format!(
        "{} places blocks, and a volume has chunks: it can be replayed, not run on a volume; {} can",
        made.name(),
        live.join(", ")
    )))
}

/// All live runs of one execution.
pub(super) fn run(
    settings: &PstSettings,
    execution: &'static str,
    bytes: u64,
    answers: &mut Answers,
    progress: &(dyn Fn(&str) + Sync),
) -> Result<Vec<LiveRun>> {
    let work = Work::new(settings)?;
    let mut runs = Vec::new();
    for share in &settings.live_shares {
        for policy in &settings.live_policies {
            let folder = work.path().join(format!("volume-{execution}-{policy}-{share}"));
            make(settings, &folder, bytes * u64::from(*share) / 100)?;
            let mut one =
                Live { settings, execution, policy, share: *share, folder: &folder, bytes, answers };
            progress(&format!("{policy} on a volume, {execution}, {share} %: learning"));
            one.queries(&virtual_time())?;
            progress(&format!("{policy} on a volume, {execution}, {share} %: virtual time"));
            let kept = if settings.real_time { Some(remembered(&folder)?) } else { None };
            runs.push(one.queries(&virtual_time())?);
            if let Some(kept) = kept {
                progress(&format!("{policy} on a volume, {execution}, {share} %: real time"));
                // Both begin with what was learned in the first run.
                restore(&folder, &kept)?;
                runs.push(one.queries(&Timeline::real())?);
            }
            remove(&folder)?;
        }
    }
    Ok(runs)
}

/// The folder for volumes; a temporary one goes with this.
pub(super) struct Work {
    path: PathBuf,
    _temporary: Option<TempDir>,
}

impl Work {
    pub(super) fn new(settings: &PstSettings) -> Result<Work> {
        if let Some(path) = settings.work.clone() {
            return Ok(Work { path, _temporary: None });
        }
        let temporary = tempfile::tempdir()
            .map_err(|error| Error::failed(format!("cannot make a temporary folder: {error}")))?;
        Ok(Work { path: temporary.path().to_owned(), _temporary: Some(temporary) })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

pub(super) fn remove(folder: &Path) -> Result<()> {
    std::fs::remove_dir_all(folder)
        .map_err(|error| Error::failed(format!("cannot remove {}: {error}", folder.display())))
}

pub(super) fn virtual_time() -> Timeline {
    Timeline::virtual_time(VirtualTimeOptions::default())
}

/// A copy of the volume's folder: its classes are sparse files of a few chunks, the data lie elsewhere.
fn remembered(folder: &Path) -> Result<PathBuf> {
    let copy = folder.with_extension("kept");
    copy_folder(folder, &copy)?;
    Ok(copy)
}

fn restore(folder: &Path, kept: &Path) -> Result<()> {
    let failed =
        |error: std::io::Error| Error::failed(format!("cannot restore {}: {error}", folder.display()));
    std::fs::remove_dir_all(folder).map_err(failed)?;
    std::fs::rename(kept, folder).map_err(failed)
}

pub(super) fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    let status = std::process::Command::new("cp").args(["-a", "--sparse=always"]).arg(from).arg(to).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        _ => Err(Error::failed(format!("cannot copy {} to {}", from.display(), to.display()))),
    }
}

/// Makes a volume whose fast class has room for `fast_bytes`, a chunk at least, and adopts the database.
pub(super) fn make(settings: &PstSettings, folder: &Path, fast_bytes: u64) -> Result<()> {
    let executors = Executors::start(ExecutorOptions::default())?;
    let chunk_bytes = VolumeSettings::default().chunk_bytes;
    let fast_bytes = (fast_bytes / chunk_bytes).max(1) * chunk_bytes;
    let class = |name: &str, bytes: u64, model: String| ClassConfig {
        model: Some(model),
        ..ClassConfig::new(name, vec![PathBuf::from(name)], Some(bytes))
    };
    let classes = vec![
        class("staging", fast_bytes, settings.fast.to_string()),
        class("capacity", SLACK_BYTES, settings.slow.to_string()),
    ];
    let mut files = Vec::new();
    // The server's own files tell whether it was shut down.
    for inner in ["", "#innodb_redo", &settings.database] {
        for entry in files_of(&settings.innodb.join(inner))? {
            let name = entry.strip_prefix(&settings.innodb).unwrap_or(&entry).display().to_string();
            let path = entry.canonicalize().unwrap_or(entry).display().to_string();
            files.push((name, path));
        }
    }
    let (folder, open) = (folder.to_owned(), tanada_query::volume::settings(&executors));
    let made = executors.block_on(move || async move {
        for class in ["staging", "capacity"] {
            std::fs::create_dir_all(folder.join(class))
                .map_err(|error| Error::failed(format!("cannot make {}: {error}", folder.display())))?;
        }
        let directory = Directory::create(&folder, &VolumeSettings::default(), &classes, open).await?;
        for (name, path) in files {
            directory.volume().adopt(&name, &path, &Attributes::default())?;
        }
        Ok::<(), Error>(directory.close().await?)
    });
    made?
}

/// Files of a folder; none if there is no such folder.
fn files_of(folder: &Path) -> Result<Vec<PathBuf>> {
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let entries = std::fs::read_dir(folder)
        .map_err(|error| Error::failed(format!("cannot read {}: {error}", folder.display())))?;
    let mut files: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    files.sort();
    Ok(files)
}

struct Live<'a> {
    settings: &'a PstSettings,
    execution: &'static str,
    policy: &'a str,
    share: u32,
    folder: &'a Path,
    bytes: u64,
    answers: &'a mut Answers,
}

impl Live<'_> {
    /// Runs all queries in a session of its own on `timeline`.
    fn queries(&mut self, timeline: &Timeline) -> Result<LiveRun> {
        let runtime = runtime_on(timeline)?;
        let _takes_part = timeline.register_thread();
        runtime.block_on(async {
            let cache_bytes = cache_bytes(self.settings, self.bytes);
            let session = Session::new(SessionOptions { cache_bytes, ..SessionOptions::default() })?;
            session.set("tanada.placement", self.policy).await?;
            session.mount_volume(self.folder, &MountOptions::default()).await?;
            set(&session, self.settings, self.execution).await?;
            for (_, sql) in &self.settings.queries {
                session.execute(&format!("explain {sql}")).await?.collect().await?;
            }
            session.clear_cache();
            session.settle().await;
            let run = self.timed(&session, timeline).await;
            session.close().await?;
            run
        })
    }

    async fn timed(&mut self, session: &Session, timeline: &Timeline) -> Result<LiveRun> {
        let clock = timeline.clock();
        let time = if timeline.is_virtual() { "virtual" } else { "real" };
        let begun = clock.now();
        let mut queries = Vec::new();
        let mut ios = 0;
        for (name, sql) in &self.settings.queries {
            let query_begun = clock.now();
            let mut result = session.execute(&format!("/* {name} */ {sql}")).await?;
            let batches = result.collect().await?;
            queries.push((name.clone(), clock.now().saturating_sub(query_begun).as_secs_f64()));
            ios += result.report().ios;
            let who = format!("{} on a volume, {} %, {time} time", self.policy, self.share);
            self.answers.compare(&who, name, &batches)?;
        }
        Ok(LiveRun {
            kind: "live",
            execution: self.execution,
            policy: self.policy.to_owned(),
            share: self.share,
            time,
            total_s: clock.now().saturating_sub(begun).as_secs_f64(),
            queries,
            ios,
        })
    }
}
