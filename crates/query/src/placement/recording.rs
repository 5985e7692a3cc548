//! A recording: the reads of a session's queries as a trace that placement policies are tried on.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tanada_io::ObservedRead;
use tanada_placement::{IoKind, QueryId, Recorder, Trace, TraceIo, TraceQuery};

use super::announcement::Announcement;
use super::naming::Naming;
use super::places::FilePlaces;
use super::watch::Watcher;
use crate::{Error, ErrorKind, Result};

/// Records the queries of the sessions that it is given to. Cheap to clone; clones are the same recording.
#[derive(Debug, Clone, Default)]
pub struct Recording(Arc<Mutex<Recorded>>);

#[derive(Debug, Default)]
struct Recorded {
    recorder: Recorder,
    naming: Naming,
    /// Numbers in the trace of the queries that run.
    running: HashMap<QueryId, Running>,
}

#[derive(Debug, Clone, Copy)]
struct Running {
    no: QueryId,
    depth: u32,
    cores: u32,
    /// When its last I/O ended.
    ended: Duration,
    /// CPU time of the process then.
    cpu: Duration,
}

impl Recording {
    /// What was recorded.
    ///
    /// # Errors
    /// If it is larger than a trace may be.
    pub fn trace(&self) -> Result<Trace> {
        let recorder = &self.0.lock().recorder;
        match recorder.lost() {
            0 => Ok(recorder.clone().finish()),
            lost => {
                let message = format!(
                    "the recording is not whole: {lost} records had no room in a trace; record fewer statements or tables at once"
                );
                Err(Error::new(ErrorKind::Resources, message))
            }
        }
    }

    /// Writes it to a file (`docs/trace-format.md`); gives the I/Os in it.
    ///
    /// # Errors
    /// If it is larger than a trace may be, or the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<u64> {
        let trace = self.trace()?;
        let wrong = |error: tanada_placement::Error| Error::new(ErrorKind::Io, error.to_string());
        let cannot = |error: std::io::Error| {
            Error::new(ErrorKind::Io, format!("cannot write the trace {}: {error}", path.display()))
        };
        let file = std::fs::File::create(path).map_err(cannot)?;
        trace
            .write(std::io::BufWriter::new(file))
            .map_err(wrong)?
            .into_inner()
            .map_err(|error| cannot(error.into()))?;
        Ok(trace.ios())
    }
}

impl Recorded {
    fn learn(&mut self, places: &FilePlaces) {
        let Recorded { recorder, naming, .. } = self;
        let object = recorder.object(&places.path.display().to_string(), places.bytes);
        if naming.object(&places.path).is_none() {
            naming.add(&places.path, object);
        }
        naming.learn(places, |name| recorder.cause(name));
    }
}

impl Watcher for Recording {
    fn begins(&self, announcement: &Announcement) {
        let mut recorded = self.0.lock();
        let files = announcement.tables.iter().flat_map(|table| table.iter());
        files.for_each(|file| recorded.learn(file));
        let footprint = announcement.footprint(|access| {
            Some((recorded.naming.object(&access.path)?, recorded.naming.cause(&access.index)?))
        });
        let (name, fingerprint, depth) =
            (announcement.name.clone(), announcement.fingerprint, announcement.depth);
        let no = recorded.recorder.begins(TraceQuery { name, fingerprint, footprint });
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
        let running = Running { no, depth, cores, ended: Duration::ZERO, cpu: cpu_time() };
        recorded.running.insert(announcement.query, running);
    }

    fn read(&self, query: QueryId, read: &ObservedRead<'_>) {
        let cpu = cpu_time();
        let mut recorded = self.0.lock();
        let Some(named) = recorded.naming.read(read.file, read.offset, read.bytes) else { return };
        let Some(running) = recorded.running.get_mut(&query) else { return };
        let computed = cpu.saturating_sub(running.cpu);
        // Others on the machine lengthen the time between two I/Os, and threads that compute at once the CPU time: in order the shorter is right. Where many
        // I/Os are in flight all cores compute.
        let thought = match running.depth {
            1 if running.ended > Duration::ZERO => read.started.saturating_sub(running.ended).min(computed),
            1 => computed,
            _ => computed / running.cores,
        };
        (running.ended, running.cpu) = (read.ended, cpu);
        let io = TraceIo {
            offset: read.offset,
            bytes: u32::try_from(read.bytes).unwrap_or(u32::MAX),
            think_ns: u32::try_from(thought.as_nanos()).unwrap_or(u32::MAX),
            query: running.no,
            object: named.object,
            cause: named.cause,
            kind: IoKind::Read,
            is_sequential: named.is_sequential,
        };
        recorded.recorder.io(io);
    }

    fn ends(&self, query: QueryId) {
        let mut recorded = self.0.lock();
        if let Some(running) = recorded.running.remove(&query) {
            recorded.recorder.ends(running.no);
        }
    }
}

/// CPU time of the process so far.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.max(0) as u64, time.tv_nsec.max(0) as u32)
}
