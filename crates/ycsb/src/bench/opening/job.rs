//! One opening, in a process of its own if there is a program for it: its memory is then that of the opening, and
//! nothing is warm.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tanada_kv::RecoveryProgress;

use super::database::{Bench, Place};
use super::{Opening, OpeningOptions};
use crate::measure::{MemoryWatch, resident_bytes};
use crate::{Error, Result};

/// What is to be done with a database that was made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OpeningJob {
    pub(super) options: OpeningOptions,
    pub(super) stands_for_bytes: u64,
    pub(super) folder: PathBuf,
    pub(super) after: String,
    pub(super) round: usize,
    /// Write so many bytes and stop in the middle, instead of measuring.
    pub(super) stops_after_bytes: Option<u64>,
}

impl OpeningJob {
    /// Does it in this process. What was measured; zeros where nothing was.
    ///
    /// # Errors
    /// If a device or the database fails.
    pub fn perform(&self) -> Result<Opening> {
        let place = Place::new(&self.options, self.stands_for_bytes, self.folder.clone());
        let job = self.clone();
        match self.stops_after_bytes {
            Some(bytes) => place.with(move |bench| async move {
                let opened = bench.open(bench.open_volume().await?, Arc::new(|_| {})).await?;
                opened.fill_log(bytes).await?;
                opened.stop().await;
                Ok(Opening::default())
            }),
            None => place.with(move |bench| async move { job.measure(bench).await }),
        }
    }

    /// Does it in a process of the program that the options name, or in this one. The program is told this as JSON on
    /// its standard input, and answers in the same way.
    pub(super) fn perform_by_program(&self) -> Result<Opening> {
        let Some((program, arguments)) = self.options.program.split_first() else { return self.perform() };
        let failed =
            |error: &dyn std::fmt::Display| Error::failed(format!("cannot open by {program:?}: {error}"));
        let child =
            Command::new(program).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.map_err(|error| failed(&error))?;
        let text = serde_json::to_vec(self).map_err(Error::failed)?;
        if let Some(mut input) = child.stdin.take() {
            // A program that does not listen says on its own what is wrong.
            let _ = input.write_all(&text);
        }
        let output = child.wait_with_output().map_err(|error| failed(&error))?;
        if !output.status.success() {
            return Err(failed(&output.status));
        }
        serde_json::from_slice(&output.stdout).map_err(|error| failed(&error))
    }

    async fn measure(self, bench: Bench) -> Result<Opening> {
        let before = resident_bytes();
        let watch = MemoryWatch::start();
        let replayed: Arc<Mutex<RecoveryProgress>> = Arc::default();
        let told = replayed.clone();
        let began = Instant::now();
        let volume = bench.open_volume().await?;
        let volume_s = began.elapsed().as_secs_f64();
        let volume_bytes = resident_bytes().saturating_sub(before);
        let began = Instant::now();
        let opened = bench.open(volume, Arc::new(move |progress| *told.lock() = *progress)).await?;
        let database_s = began.elapsed().as_secs_f64();
        let most = watch.stop();
        let classes = opened.volume.classes();
        let read = |index: usize| {
            let read = classes.get(index).map(|class| &class.statistics.read);
            read.map_or((0, 0), |read| (read.bytes, read.ios))
        };
        let ((bytes_read, reads), (value_bytes_read, _)) = (read(0), read(1));
        let began = Instant::now();
        opened.read(bench.place.settings.records()).await?;
        let first_read_s = began.elapsed().as_secs_f64();
        let statistics = opened.database.statistics();
        let replayed = *replayed.lock();
        let stores = || statistics.stores.iter();
        let opening = Opening {
            stands_for_bytes: self.stands_for_bytes,
            after: self.after,
            round: self.round,
            volume_s,
            database_s,
            first_read_s,
            bytes_read,
            reads,
            value_bytes_read,
            replayed_bytes: replayed.replayed_bytes,
            replayed_operations: replayed.operations,
            memory_bytes: most.saturating_sub(before),
            volume_memory_bytes: volume_bytes,
            leaves: stores().map(|store| store.leaves).sum(),
            kvsets: stores().map(|store| store.leaf_kvsets + store.root_kvsets + store.mirrors).sum(),
            value_segments: stores().map(|store| store.value_segments).sum(),
            chunks: classes.iter().map(|class| class.taken).sum(),
            manifest_bytes: statistics.classes.iter().map(|class| class.manifest_bytes).sum(),
            key_bytes: statistics.classes.iter().map(|class| class.key_bytes).sum(),
        };
        opened.close().await?;
        Ok(opening)
    }
}
