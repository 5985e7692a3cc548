//! Placement beside a mount: a policy is told what other systems' queries are going to read, sees what reaches the
//! volume, and its wishes are carried out.
//!
//! 1. Announcements come over the [socket](socket); reads and writes come from the mount, on the threads that answer
//!    the kernel, into an inbox. Nobody who reads waits for the policy: while the inbox is full, reads are not counted.
//! 2. A task on an executor empties the inbox, lets the policy think and carries out its wishes
//!    (`tanada_placement::live`).
//! 3. The kernel does not tell which query a read is for. It is that of the newest running query that announced the
//!    byte, and of none if there is no such query.
//! 4. What was learned is kept in the volume when the mount ends.

pub mod socket;
mod state;

use std::sync::Arc;
use std::time::Duration;

use async_channel::Sender;
use parking_lot::Mutex;
use tanada_base::Clock;
use tanada_io::{Executors, JoinHandle, Timeline};
use tanada_mount::Observer;
use tanada_placement::live::{self, MEMORY, Next, Rate, Settled, Steered, class_names, costs_of, relocate};
use tanada_placement::{IoKind, Wish, WishOutcome};
use tanada_volume::directory::Directory;
use tanada_volume::{Object, Volume};

use crate::message::{Announcement, Foreseen, ObjectReads, Relocated};
use crate::{Error, ErrorKind, Result};
use state::{Seen, State};

/// Reads and writes that wait for the policy; a ranking of some hundred thousand chunks takes a tenth of a second.
const MAX_WAITING: usize = 1 << 16;

/// Places the chunks of a mounted volume.
#[derive(Debug)]
pub struct Guide {
    volume: Volume,
    timeline: Timeline,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    inbox: Mutex<Vec<Seen>>,
    wake: Sender<()>,
    relocating: Mutex<Option<JoinHandle<()>>>,
    settled: Settled,
}

impl Guide {
    /// Begins to place the chunks of a volume by `policy`, copying at most so many bytes a second.
    ///
    /// # Errors
    /// If there is no such policy, the volume has one class alone, or it is only read.
    pub async fn start(
        directory: &Directory,
        policy: &str,
        bytes_per_second: Option<u64>,
        executors: &Arc<Executors>,
    ) -> Result<Arc<Guide>> {
        let volume = directory.volume().clone();
        if volume.classes().len() < 2 {
            return Err(Error::invalid("the volume has one class: there is nothing to place"));
        }
        if let Some(why) = volume.read_only_reason() {
            return Err(Error::invalid(format!("the volume is only read, so nothing can be placed: {why}")));
        }
        let placer = live::placer(&volume, policy, costs_of(directory))
            .map_err(|error| Error::invalid(error.to_string()))?;
        let timeline = Timeline::current_virtual().unwrap_or_else(Timeline::real);
        let fast = volume.classes().first().map_or(0, |class| class.number);
        let (wake, woken) = async_channel::bounded(1);
        let mut state = State::new(placer, Rate::new(bytes_per_second), class_names(&volume), fast);
        volume.objects().into_iter().for_each(|object| {
            state.add(&object);
        });
        let guide = Arc::new(Guide {
            clock: timeline.clock(),
            timeline,
            state: Mutex::new(state),
            inbox: Mutex::default(),
            wake,
            relocating: Mutex::default(),
            settled: Settled::default(),
            volume: volume.clone(),
        });
        let read = executors.spawn(move || async move { MEMORY.read(&volume).await });
        let learned = read.await.map_err(|error| Error::new(ErrorKind::Io, error.to_string()))?;
        match learned {
            Ok(bytes) => guide.state.lock().remember(&bytes),
            Err(error) => tanada_io::warn(&format!("what placement had learned cannot be read: {error}")),
        }
        guide.state.lock().prepare(guide.now_ns());
        let placed = Arc::downgrade(&guide);
        *guide.relocating.lock() = Some(executors.spawn(move || relocate(placed, woken)));
        guide.wake();
        Ok(guide)
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.clock.now().as_nanos()).unwrap_or(u64::MAX)
    }

    fn wake(&self) {
        let _ = self.wake.try_send(());
    }

    /// What the policy would do for a query.
    pub fn forecast(&self, announcement: &Announcement) -> Foreseen {
        let mut state = self.state.lock();
        state.find_objects(&self.volume, announcement);
        state.forecast(announcement)
    }

    /// A query begins; its number.
    pub fn begin(&self, announcement: &Announcement) -> u32 {
        let now_ns = self.now_ns();
        let mut state = self.state.lock();
        self.hear(&mut state);
        state.find_objects(&self.volume, announcement);
        let query = state.begins(now_ns, announcement);
        drop(state);
        self.wake();
        query
    }

    /// A query is over.
    pub fn end(&self, query: u32) {
        let now_ns = self.now_ns();
        let mut state = self.state.lock();
        self.hear(&mut state);
        state.ends(now_ns, query);
        drop(state);
        self.wake();
    }

    /// Counters of a server, for objects of which the volume itself has counted nothing.
    pub fn count(&self, reads: &[ObjectReads]) {
        let now_ns = self.now_ns();
        let mut state = self.state.lock();
        for counted in reads {
            if let Ok(object) = self.volume.open_object(&counted.object) {
                state.count(&object, counted);
            }
        }
        state.prepare(now_ns);
        drop(state);
        self.wake();
    }

    /// Relocations from this number on, as far as they are remembered.
    pub fn placed(&self, from: u64) -> Vec<Relocated> {
        self.state.lock().placed.iter().filter(|placed| placed.no >= from).cloned().collect()
    }

    /// Waits until nothing is left to do.
    pub async fn settle(&self) {
        let settled = self.settled.wait();
        self.wake();
        // Whoever stops placement settles it too.
        let _ = settled.await;
    }

    /// Ends placement, and keeps what was learned in the volume.
    ///
    /// # Errors
    /// If it cannot be written.
    pub async fn stop(&self, executors: &Arc<Executors>) -> Result<()> {
        self.wake.close();
        let failed = |error: String| Error::new(ErrorKind::Io, error);
        let relocating = self.relocating.lock().take();
        if let Some(relocating) = relocating {
            relocating.await.map_err(|error| failed(error.to_string()))?;
        }
        self.settled.let_go_if(|| true);
        let memory = self.state.lock().memory();
        if memory.is_empty() {
            return Ok(());
        }
        let volume = self.volume.clone();
        let written = executors.spawn(move || async move { MEMORY.write(&volume, &memory).await });
        let written = written.await.map_err(|error| failed(error.to_string()))?;
        written.map_err(|error| failed(format!("what placement has learned is not kept: {error}")))
    }

    /// The policy hears what waits in the inbox.
    fn hear(&self, state: &mut State) {
        let waiting = std::mem::take(&mut *self.inbox.lock());
        waiting.iter().for_each(|seen| state.saw(seen));
    }

    fn see(&self, object: &Object, offset: u64, bytes: u64, kind: IoKind) {
        let at_ns = self.now_ns();
        let mut inbox = self.inbox.lock();
        if inbox.len() < MAX_WAITING {
            let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
            inbox.push(Seen { at_ns, object: object.clone(), offset, bytes, kind });
        }
        drop(inbox);
        self.wake();
    }
}

impl Observer for Guide {
    fn read(&self, object: &Object, offset: u64, bytes: u64) {
        self.see(object, offset, bytes, IoKind::Read);
    }

    fn written(&self, object: &Object, offset: u64, bytes: u64) {
        self.see(object, offset, bytes, IoKind::Write);
    }
}

impl Steered for Guide {
    fn next(&self) -> Next {
        let (now, now_ns) = (self.clock.now(), self.now_ns());
        let mut state = self.state.lock();
        self.hear(&mut state);
        state.placer.think(now_ns);
        if let Some(pause) = state.rate.pause(now)
            && state.placer.waiting() > 0
        {
            return Next::Later(pause);
        }
        let Some(wish) = state.placer.begin() else {
            let pause = state.placer.thinks_at_ns().map(|at_ns| at_ns.saturating_sub(now_ns));
            return pause.map_or(Next::Nothing, |pause_ns| Next::Later(Duration::from_nanos(pause_ns)));
        };
        state.rate.take(now, self.volume.chunk_bytes());
        Next::Wish(Box::new(wish), 0)
    }

    fn finish(&self, wish: Wish, outcome: WishOutcome, _generation: u64) {
        let mut state = self.state.lock();
        let placed = state.placer.finish(wish, outcome);
        state.rate.give_back(self.volume.chunk_bytes().saturating_sub(placed.bytes));
        state.note(&placed);
    }

    fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    fn settled(&self) -> &Settled {
        &self.settled
    }
}
