//! A recording: the reads of a session's queries as a trace that placement policies are tried on.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tanada_io::ObservedRead;
use tanada_placement::{
    IoKind, Mark, QueryId, Recorder, Trace, TraceIo, TraceQuery, TraceReader, TraceWriter,
};

use super::announcement::Announcement;
use super::naming::Naming;
use super::places::FilePlaces;
use super::watch::Watcher;
use crate::{Error, ErrorKind, Result};

/// Records the queries of the sessions that it is given to. Cheap to clone; clones are the same recording.
#[derive(Debug, Clone, Default)]
pub struct Recording(Arc<Mutex<Recorded>>);

/// I/Os after which a long query's are written, too.
const WRITTEN_IOS: u64 = 1 << 16;

/// I/Os that are kept back for one that was sent before them and has not ended; beyond that it is taken for one that
/// never does.
const MOST_KEPT_BACK: usize = 1 << 14;

#[derive(Debug, Default)]
struct Recorded {
    recorder: Recorder,
    file: Option<TraceFile>,
    naming: Naming,
    /// Numbers in the trace of the queries that run.
    running: HashMap<QueryId, Running>,
    /// Whether it is noted which I/O waited for which.
    notes_waits: bool,
}

#[derive(Debug)]
struct Running {
    no: QueryId,
    depth: u32,
    cores: u32,
    /// When its last I/O ended.
    ended: Duration,
    /// CPU time of the process then.
    cpu: Duration,
    sent: SentOrder,
}

/// A query's I/Os, which end in any order, in the order in which they were sent.
#[derive(Debug, Default)]
struct SentOrder {
    /// By their numbers, with that of the I/O that each waited for, if any.
    kept_back: BTreeMap<u64, (Option<u64>, TraceIo)>,
    /// The number that comes next, once there was one: those before the query began are not known.
    next: Option<u64>,
    /// Places in the trace, among those of the query, of the newest ones.
    places: HashMap<u64, u32>,
    placed: u32,
}

impl SentOrder {
    /// The next one, if it is there; at the end of the query, or if too many wait for it, the one behind it.
    fn pop(&mut self, whatever_is_there: bool) -> Option<TraceIo> {
        let first = self.kept_back.first_entry()?;
        if self.next.is_some_and(|next| *first.key() > next) && !whatever_is_there {
            return None;
        }
        let (no, (after, mut io)) = first.remove_entry();
        self.next = self.next.max(Some(no + 1));
        let awaited = after.and_then(|after| self.places.get(&after));
        io.after = awaited.map_or(0, |awaited| self.placed - awaited);
        self.places.insert(no, self.placed);
        self.placed += 1;
        if self.places.len() > 2 * MOST_KEPT_BACK {
            let oldest = self.placed - MOST_KEPT_BACK as u32;
            self.places.retain(|_, place| *place >= oldest);
        }
        Some(io)
    }
}

impl Recording {
    /// The same, which notes besides what each I/O of many in flight waited for: another one's end, or just for room.
    /// Only where devices are what a query waits for is that the truth, so it is for recordings on slow ones; a replay
    /// keeps to it.
    pub fn with_waits(self) -> Recording {
        self.0.lock().notes_waits = true;
        self
    }

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

    /// Keeps it in a file (`docs/trace-format.md`), which is made anew: what each query reads is there at its end, and
    /// every some ten thousand I/Os. A process that is killed leaves a trace that is cut short, and readable.
    ///
    /// # Errors
    /// If the file cannot be made.
    pub fn keep_in(&self, path: &Path) -> Result<()> {
        self.0.lock().file = Some(TraceFile::create(path)?);
        Ok(())
    }

    /// Writes what was recorded to a file; gives the I/Os in it.
    ///
    /// # Errors
    /// As [`finish`](Self::finish).
    pub fn write(&self, path: &Path) -> Result<u64> {
        let trace = self.trace()?;
        TraceFile::create(path)?.finish(&trace)?;
        Ok(trace.ios())
    }

    /// Ends the file that it is [kept in](Self::keep_in), if there is one; gives the I/Os recorded.
    ///
    /// # Errors
    /// If it is larger than a trace may be, or the file cannot be written.
    pub fn finish(&self) -> Result<u64> {
        let file = self.0.lock().file.take();
        let trace = self.trace()?;
        if let Some(file) = file {
            file.finish(&trace)?;
        }
        Ok(trace.ios())
    }
}

/// A recording takes the place of nothing but another one: whoever names a table's file, or one of a volume's, has
/// mistaken the argument.
fn check_replaceable(path: &Path) -> Result<()> {
    // Looked at by name: opening a pipe waits for whoever writes to it.
    let Ok(metadata) = std::fs::metadata(path) else { return Ok(()) };
    if !metadata.is_file() {
        let message = format!("{}: a recording goes to a file, and this is none", path.display());
        return Err(Error::new(ErrorKind::InvalidInput, message));
    }
    let Ok(file) = File::open(path) else { return Ok(()) };
    if metadata.len() > 0 && TraceReader::new(BufReader::new(file)).is_err() {
        let message = format!(
            "{}: there is a file that is no recording, and stays as it is; name another one, or delete it first",
            path.display()
        );
        return Err(Error::new(ErrorKind::InvalidInput, message));
    }
    Ok(())
}

/// The file that a recording is kept in.
#[derive(Debug)]
struct TraceFile {
    path: PathBuf,
    writer: TraceWriter<BufWriter<File>>,
    /// What is in it,
    written: Mark,
    /// and how many I/Os of it.
    written_ios: u64,
    /// What went wrong first; nothing is written after that.
    fault: Option<String>,
}

impl TraceFile {
    fn create(path: &Path) -> Result<TraceFile> {
        check_replaceable(path)?;
        let file = File::create(path).map_err(|error| cannot(path, &error))?;
        let writer = TraceWriter::new(BufWriter::new(file)).map_err(|error| cannot(path, &error))?;
        let (path, written) = (path.to_owned(), Mark::default());
        Ok(TraceFile { path, writer, written, written_ios: 0, fault: None })
    }

    /// What is not in it yet is put there, so that it is there after a stop.
    fn append(&mut self, trace: &Trace) {
        if self.fault.is_some() {
            return;
        }
        let mut records = trace.records_since(&mut self.written);
        let pushed = records.try_for_each(|record| self.writer.push(&record));
        self.written_ios = trace.ios();
        if let Err(error) = pushed.and_then(|()| self.writer.flush()) {
            self.fault = Some(error.to_string());
        }
    }

    fn finish(mut self, trace: &Trace) -> Result<()> {
        self.append(trace);
        if let Some(fault) = &self.fault {
            return Err(cannot(&self.path, fault));
        }
        let mut file = self.writer.finish().map_err(|error| cannot(&self.path, &error))?;
        std::io::Write::flush(&mut file).map_err(|error| cannot(&self.path, &error))
    }
}

fn cannot(path: &Path, error: &dyn std::fmt::Display) -> Error {
    Error::new(ErrorKind::Io, format!("cannot write the trace {}: {error}", path.display()))
}

impl Recorded {
    /// What was recorded is put into the file, if there is one.
    fn append(&mut self) {
        if let Some(file) = &mut self.file {
            file.append(self.recorder.so_far());
        }
    }

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
    fn begins(&self, announcement: &Arc<Announcement>) {
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
        let (ended, sent) = (Duration::ZERO, SentOrder::default());
        let running = Running { no, depth, cores, ended, cpu: cpu_time(), sent };
        recorded.running.insert(announcement.query, running);
    }

    fn read(&self, query: QueryId, read: &ObservedRead<'_>) {
        let cpu = cpu_time();
        let mut recorded = self.0.lock();
        let notes_waits = recorded.notes_waits;
        let Some(named) = recorded.naming.read(read.file, read.offset, read.bytes) else { return };
        let Some(running) = recorded.running.get_mut(&query) else { return };
        let computed = cpu.saturating_sub(running.cpu);
        // Others on the machine lengthen the time between two I/Os, and threads that compute at once the CPU time: in
        // order the shorter is right. Where many I/Os are in flight all cores compute.
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
            after: 0,
        };
        if notes_waits && running.depth > 1 {
            running.sent.kept_back.insert(read.no, (read.after, io));
            let is_over_full = running.sent.kept_back.len() > MOST_KEPT_BACK;
            let ready: Vec<TraceIo> = std::iter::from_fn(|| running.sent.pop(is_over_full)).collect();
            ready.into_iter().for_each(|io| recorded.recorder.io(io));
        } else {
            recorded.recorder.io(io);
        }
        let written_ios = recorded.file.as_ref().map_or(u64::MAX, |file| file.written_ios);
        if recorded.recorder.so_far().ios().saturating_sub(written_ios) >= WRITTEN_IOS {
            recorded.append();
        }
    }

    fn ends(&self, query: QueryId) {
        let mut recorded = self.0.lock();
        if let Some(mut running) = recorded.running.remove(&query) {
            std::iter::from_fn(|| running.sent.pop(true)).for_each(|io| recorded.recorder.io(io));
            recorded.recorder.ends(running.no);
            recorded.append();
        }
    }
}

/// CPU time of the process so far.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.max(0) as u64, time.tv_nsec.max(0) as u32)
}

#[cfg(test)]
mod tests {
    use tanada_placement::{Cause, ObjectNo};

    use super::*;

    fn io(offset: u64) -> TraceIo {
        TraceIo {
            offset,
            bytes: 1,
            think_ns: 0,
            query: QueryId(0),
            object: ObjectNo(0),
            cause: Cause(0),
            kind: IoKind::Read,
            is_sequential: false,
            after: 0,
        }
    }

    fn ended(order: &mut SentOrder, no: u64, after: Option<u64>) -> Vec<(u64, u32)> {
        order.kept_back.insert(no, (after, io(no)));
        std::iter::from_fn(|| order.pop(false)).map(|io| (io.offset, io.after)).collect()
    }

    #[test]
    fn a_recording_takes_the_place_of_nothing_but_another_one() {
        let folder = tempfile::tempdir().unwrap();
        let (new, table) = (folder.path().join("new"), folder.path().join("orders.ibd"));
        std::fs::write(&table, b"pages").unwrap();
        let error = Recording::default().keep_in(&table).unwrap_err();
        assert!(error.to_string().contains("no recording"), "{error}");
        assert_eq!(std::fs::read(&table).unwrap(), b"pages");
        for _ in 0..2 {
            let recording = Recording::default();
            recording.keep_in(&new).unwrap();
            // Whoever is killed now leaves that.
            let left = std::fs::read(&new).unwrap();
            assert!(TraceReader::new(&left[..]).is_ok(), "{left:?}");
            recording.finish().unwrap();
        }
        std::fs::write(&new, b"").unwrap();
        Recording::default().keep_in(&new).unwrap();
    }

    #[test]
    fn reads_that_end_in_any_order_are_told_as_they_were_sent() {
        let mut order = SentOrder::default();
        // What came before the query began has numbers, too.
        assert_eq!(ended(&mut order, 17, Some(3)), [(17, 0)]);
        assert_eq!(ended(&mut order, 20, Some(17)), []);
        assert_eq!(ended(&mut order, 19, None), []);
        assert_eq!(ended(&mut order, 18, None), [(18, 0), (19, 0), (20, 3)]);
        assert_eq!(ended(&mut order, 16, None), [(16, 0)]);
        assert_eq!(ended(&mut order, 21, Some(20)), [(21, 2)]);
        // One that never ends is not waited for at the end.
        assert_eq!(ended(&mut order, 23, Some(21)), []);
        assert_eq!(order.pop(true).map(|io| (io.offset, io.after)), Some((23, 1)));
        assert_eq!(ended(&mut order, 24, Some(22)), [(24, 0)]);
    }
}
