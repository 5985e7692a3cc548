//! What reaches the volume, as a mount's observer sees it: for the policy, and for a recording.
//!
//! A recording keeps the reads of the tables' files, in the order in which they ended. Between two of them the query
//! has computed for as long as its process has used the processor: so a replay adds the time of other devices to what
//! the server itself takes.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use nix::time::ClockId;
use nix::unistd::Pid;
use parking_lot::Mutex;
use tanada_advisor::Guide;
use tanada_mount::Observer;
use tanada_placement::{
    Cause, Fingerprint, Footprint, IoKind, ObjectNo, QueryId, Recorder, Trace, TraceIo, TraceQuery,
};
use tanada_volume::Object;

/// Tells the policy and the recording.
pub(super) struct Watching {
    pub(super) guide: Option<Arc<Guide>>,
    pub(super) recording: Option<Arc<Recording>>,
}

impl Observer for Watching {
    fn read(&self, object: &Object, offset: u64, bytes: u64) {
        if let Some(guide) = &self.guide {
            guide.read(object, offset, bytes);
        }
        if let Some(recording) = &self.recording {
            recording.read(&object.name(), offset, bytes);
        }
    }

    fn written(&self, object: &Object, offset: u64, bytes: u64) {
        if let Some(guide) = &self.guide {
            guide.written(object, offset, bytes);
        }
    }
}

/// A trace that is being made.
#[derive(Debug)]
pub(super) struct Recording {
    /// Names of the tables' files begin so.
    prefix: String,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    recorder: Recorder,
    /// What runs, and the clock of the process that computes it.
    running: Option<(QueryId, Option<ClockId>)>,
    /// The processor time of that process at the read before.
    computed: Duration,
    /// Where the last read of an object ended.
    ends: HashMap<ObjectNo, u64>,
}

impl State {
    /// The processor time of the process that computes the query.
    fn time(&self) -> Duration {
        let clock = self.running.as_ref().and_then(|(_, clock)| *clock);
        clock.and_then(|clock| clock.now().ok()).map_or(Duration::ZERO, Duration::from)
    }
}

impl Recording {
    /// Of the objects whose names begin with `prefix`.
    pub(super) fn new(prefix: String) -> Recording {
        Recording { prefix, state: Mutex::default() }
    }

    /// An object, whether it is read or not: shares of the fast class are shares of all of them.
    pub(super) fn add(&self, name: &str, bytes: u64) {
        self.state.lock().recorder.object(name, bytes);
    }

    /// A query begins, computed by this process.
    pub(super) fn begins(&self, name: &str, process: Option<i32>) {
        let mut state = self.state.lock();
        let fingerprint = Fingerprint(state.recorder.so_far().queries().len() as u64 + 1);
        let footprint = Footprint::default();
        let query = state.recorder.begins(TraceQuery { name: name.to_owned(), fingerprint, footprint });
        let clock = process.and_then(|id| ClockId::pid_cpu_clock_id(Pid::from_raw(id)).ok());
        state.running = Some((query, clock));
        state.computed = state.time();
    }

    /// It ends.
    pub(super) fn ends(&self) {
        let mut state = self.state.lock();
        if let Some((query, _)) = state.running.take() {
            state.recorder.ends(query);
        }
    }

    fn read(&self, name: &str, offset: u64, bytes: u64) {
        if !name.starts_with(&self.prefix) {
            return;
        }
        let mut state = self.state.lock();
        let Some((query, _)) = state.running else { return };
        let now = state.time();
        let think = now.saturating_sub(state.computed);
        state.computed = now;
        let object = state.recorder.object(name, offset + bytes);
        let is_sequential = state.ends.insert(object, offset + bytes) == Some(offset);
        state.recorder.io(TraceIo {
            offset,
            bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
            think_ns: u32::try_from(think.as_nanos()).unwrap_or(u32::MAX),
            query,
            object,
            cause: Cause(0),
            kind: IoKind::Read,
            is_sequential,
            after: 0,
        });
    }

    /// The trace so far.
    pub(super) fn trace(&self) -> Trace {
        self.state.lock().recorder.so_far().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_of_tables_while_a_query_runs_are_recorded_with_their_processor_time() {
        let recording = Recording::new("server/data/tpch/".to_owned());
        recording.add("server/data/tpch/orders.ibd", 1 << 20);
        recording.read("server/data/tpch/orders.ibd", 0, 16384);
        recording.begins("q4", i32::try_from(std::process::id()).ok());
        let begun = std::time::Instant::now();
        while begun.elapsed() < Duration::from_millis(20) {}
        recording.read("server/data/tpch/orders.ibd", 16384, 16384);
        recording.read("server/data/ibdata1", 0, 16384);
        recording.read("server/data/tpch/orders.ibd", 32768, 16384);
        recording.ends();
        recording.read("server/data/tpch/orders.ibd", 0, 16384);
        let trace = recording.trace();
        assert_eq!((trace.ios(), trace.bytes(), trace.queries()[0].name.as_str()), (2, 1 << 20, "q4"));
        let ios: Vec<TraceIo> = trace
            .events()
            .iter()
            .filter_map(|event| match event {
                tanada_placement::TraceEvent::Io(io) => Some(*io),
                _ => None,
            })
            .collect();
        assert!(ios[0].think_ns > 1_000_000, "{}", ios[0].think_ns);
        assert_eq!((ios[0].is_sequential, ios[1].is_sequential), (false, true));
    }
}
