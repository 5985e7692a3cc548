//! Placement of one mounted volume: a policy is told what its queries are going to read and do read, and its wishes are
//! carried out beside them.
//!
//! 1. Announcements, reads and ends come from the queries' threads and go to the policy at once, or while it is busy to
//!    its [inbox](super::inbox).
//! 2. A task on an executor lets the policy think and carries out its wishes ([`relocate`]), no faster than its
//!    [`Rate`] lets it, and sleeps while there are none. What else runs on that executor waits while the policy thinks.
//! 3. What the policy has learned is [kept](Kept) in an object of the volume, from one session to the next.
//!
//! Invariant: a wish of one policy is never reported to another as that one's (`generation`), but as something that
//! happened.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_channel::Sender;
use parking_lot::Mutex;
use tanada_base::Clock;
use tanada_io::{Executors, JoinHandle, ObservedRead, Timeline};
use tanada_placement::live::{
    self, Kept, MEMORY, Next, Rate, Settled, Steered, class_names, costs_of, counted, relocate,
};
use tanada_placement::{Costs, Forecast, ObjectNo, Placer, QueryId, Wish, WishOutcome};
use tanada_volume::directory::Directory;
use tanada_volume::{Object, Volume};

use super::announcement::Announcement;
use super::history::History;
use super::inbox::{Attended, Told};
use super::journal::{FootprintRow, JOURNAL, Journal, PlacementRow};
use super::placed::{OnPlaced, PlacedChunk};
use super::state::{Noted, State};
use super::watch::Watcher;
use crate::{Error, ErrorKind, Result};

/// Whether an object of this name keeps what placement has learned.
fn is_kept(name: &str) -> bool {
    [MEMORY, JOURNAL].iter().any(|kept| kept.has_name(name))
}

/// Whether no query reads the file, but whoever mounts the server's folder: its logs, and what it keeps for its next
/// start.
fn is_of_the_server(name: &str) -> bool {
    const LOGS: [&str; 7] =
        ["ib_logfile", "#ib_", "ib_buffer_pool", "aria_log", "undo", "ibtmp", "ib_doublewrite"];
    let file = name.rsplit('/').next().unwrap_or(name);
    LOGS.iter().any(|log| file.starts_with(log)) && !file.ends_with(".ibd")
}

/// How a session wants chunks placed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// A policy with its options.
    pub(crate) policy: String,
    /// Bytes a second that may be copied.
    pub(crate) bytes_per_second: Option<u64>,
}

/// What a policy would do for a query.
#[derive(Debug)]
pub(crate) struct Foreseen {
    pub(crate) forecast: Forecast,
    pub(crate) policy: String,
    /// Names of the objects that it would do it with.
    pub(crate) objects: Vec<String>,
    /// For each of the accesses announced the pages that earlier runs of the statement let expect.
    pub(crate) earlier_pages: Vec<Option<u64>>,
}

/// Places the chunks of one volume.
#[derive(Debug)]
pub(crate) struct Steering {
    directory: Arc<Directory>,
    timeline: Timeline,
    clock: Arc<dyn Clock>,
    state: Attended<State>,
    on_placed: Option<OnPlaced>,
    wake: Sender<()>,
    /// None once it has ended, and where the volume is only read.
    relocating: Mutex<Option<JoinHandle<()>>>,
    /// What could not be read when placement began, and is left as it is when it ends.
    unread: Mutex<Vec<&'static str>>,
    settled: Settled,
}

impl Steering {
    /// Begins to place the chunks of a volume; `None` if there is nothing to decide: one class. In a volume that is
    /// only read nothing is placed; what earlier sessions have kept can be asked for. What they have learned is given
    /// up with a warning if it is damaged, and left as it is if it cannot be read.
    ///
    /// # Errors
    /// If there is no such policy, or it is none for volumes.
    pub(crate) async fn start(
        directory: &Arc<Directory>,
        wanted: &Wanted,
        executors: &Arc<Executors>,
        on_placed: Option<OnPlaced>,
        warnings: &mut Vec<String>,
    ) -> Result<Option<Arc<Steering>>> {
        let volume = directory.volume();
        if volume.classes().len() < 2 {
            return Ok(None);
        }
        let is_only_read = volume.read_only_reason().is_some();
        for class in volume.classes().iter().filter(|class| class.devices.iter().any(Option::is_none)) {
            let name = &class.name;
            warnings.push(format!("a device of class {name} is missing: no chunks are brought there"));
        }
        let timeline = Timeline::current_virtual().unwrap_or_else(Timeline::real);
        let costs = costs_of(directory);
        let placer = placer(volume, wanted, costs)?;
        let mut state = State::new(wanted.clone(), costs, placer, class_names(volume));
        for object in volume.objects().into_iter().filter(|object| !is_kept(&object.name())) {
            let no = state.placer.add(object.clone());
            state.naming.add(Path::new(&object.name()), no);
            state.objects.push(object);
        }
        let (wake, woken) = async_channel::bounded(1);
        let steering = Arc::new(Steering {
            directory: Arc::clone(directory),
            clock: timeline.clock(),
            timeline,
            state: Attended::new(state),
            on_placed,
            wake,
            relocating: Mutex::default(),
            unread: Mutex::default(),
            settled: Settled::default(),
        });
        warnings.extend(steering.remember(executors).await);
        if is_only_read {
            return Ok(Some(steering));
        }
        steering.prepare();
        let placed = Arc::downgrade(&steering);
        let running = executors.spawn(move || relocate(placed, woken));
        *steering.relocating.lock() = Some(running);
        Ok(Some(steering))
    }

    /// Whether chunks are placed: not in a volume that is only read.
    pub(crate) fn places(&self) -> bool {
        self.directory.volume().read_only_reason().is_none()
    }

    /// The volume.
    pub(crate) fn directory(&self) -> &Arc<Directory> {
        &self.directory
    }

    /// Has something told at once if nobody else is at it, else later.
    fn tell(&self, apply: impl FnOnce(&mut State, u64), told: impl FnOnce() -> Told) {
        let now_ns = self.now_ns();
        let apply = |state: &mut State| {
            apply(state, now_ns);
            state.has_work()
        };
        if self.state.tell(now_ns, apply, told).unwrap_or(true) {
            self.wake();
        }
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.clock.now().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Has the policy changed, if another one is wanted.
    ///
    /// # Errors
    /// If there is no such policy, or it is none for volumes; then the one before goes on.
    pub(crate) fn want(&self, wanted: &Wanted) -> Result<()> {
        let mut state = self.state.lock();
        if state.wanted == *wanted {
            return Ok(());
        }
        let mut placer = placer(self.directory.volume(), wanted, state.costs)?;
        for object in &state.objects {
            placer.add(object.clone());
        }
        // What was learned in this session can be read again; if not, the policy begins with nothing.
        let _ = placer.follow(&state.placer);
        state.placer = placer;
        if state.wanted.bytes_per_second != wanted.bytes_per_second {
            state.rate = Rate::new(wanted.bytes_per_second);
        }
        state.generation += 1;
        state.wanted = wanted.clone();
        drop(state);
        if self.places() {
            self.prepare();
        }
        Ok(())
    }

    /// Policies that learn from a run before are told what the volume has counted.
    fn prepare(&self) {
        let now_ns = self.now_ns();
        let mut state = self.state.lock();
        let State { placer, objects, .. } = &mut *state;
        let mut counts = Vec::new();
        for (no, object) in objects.iter().enumerate().filter(|(_, object)| !is_of_the_server(&object.name()))
        {
            counts.extend(counted(ObjectNo(no as u32), object));
        }
        placer.train_counts(&counts);
        placer.prepare(now_ns);
        drop(state);
        self.wake();
    }

    /// There may be something to do.
    fn wake(&self) {
        let _ = self.wake.try_send(());
    }

    /// Waits until the policy wants nothing more for now.
    pub(crate) async fn settle(&self) {
        if !self.places() {
            return;
        }
        let settled = self.settled.wait();
        self.wake();
        // Whoever stops placement settles it too.
        let _ = settled.await;
    }

    /// What the policy would do for a query.
    pub(crate) fn forecast(&self, announcement: &Announcement) -> Foreseen {
        let mut state = self.state.lock();
        state.learn(announcement);
        let footprint = state.footprint(announcement);
        let earlier_pages = |access| state.earlier_pages(announcement, access);
        Foreseen {
            forecast: state.placer.forecast(announcement.fingerprint, announcement.depth, &footprint),
            policy: state.placer.policy_name().to_owned(),
            objects: state.objects.iter().map(Object::name).collect(),
            earlier_pages: announcement.accesses.iter().map(earlier_pages).collect(),
        }
    }

    /// Relocations that were tried, the newest last.
    pub(crate) fn placed(&self) -> Vec<Noted> {
        self.state.lock().placed()
    }

    /// What queries were expected to read and did read: of earlier sessions, as far as it is kept, and of this one.
    pub(crate) fn footprint_rows(&self) -> Vec<FootprintRow> {
        let state = self.state.lock();
        state.journal.footprints.iter().cloned().chain(state.footprint_rows()).collect()
    }

    /// The relocations of earlier sessions, as far as they are kept, and of this one.
    pub(crate) fn placement_rows(&self) -> Vec<PlacementRow> {
        let state = self.state.lock();
        state.journal.placements.iter().cloned().chain(state.placement_rows()).collect()
    }

    /// What statements read of each index in their runs so far.
    pub(crate) fn history(&self) -> History {
        self.state.lock().journal.history.clone()
    }

    /// Ends placement and keeps what was learned in the volume.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) async fn stop(&self, executors: &Arc<Executors>) -> Result<()> {
        self.wake.close();
        let relocating = self.relocating.lock().take();
        if let Some(relocating) = relocating {
            relocating.await?;
        }
        self.settled.let_go_if(|| true);
        if !self.places() {
            return Ok(());
        }
        let (memory, journal) = {
            let state = self.state.lock();
            let (footprints, placements) = (state.footprint_rows(), state.placement_rows());
            let is_empty = state.journal.is_empty() && footprints.is_empty() && placements.is_empty();
            let journal =
                if is_empty { Vec::new() } else { state.journal.to_bytes(footprints, placements)? };
            (state.placer.memory(), journal)
        };
        let directory = Arc::clone(&self.directory);
        let unread = std::mem::take(&mut *self.unread.lock());
        let written = executors.spawn(move || async move {
            let write =
                async |kept: Kept, bytes: &[u8]| match bytes.is_empty() || unread.contains(&kept.name()) {
                    true => Ok(()),
                    false => kept.write(directory.volume(), bytes).await.map_err(Error::from),
                };
            let (memory, journal) = (write(MEMORY, &memory).await, write(JOURNAL, &journal).await);
            memory.and(journal)
        });
        written.await?
    }

    /// Learns what earlier sessions have learned, each of its parts for itself; what is wrong with it, as warnings.
    async fn remember(&self, executors: &Arc<Executors>) -> Vec<String> {
        let directory = Arc::clone(&self.directory);
        let read = executors.spawn(move || async move {
            let volume = directory.volume();
            let read = async |kept: Kept| kept.read(volume).await.map_err(Error::from);
            (read(MEMORY).await, read(JOURNAL).await)
        });
        let (memory, journal) = read.await.unwrap_or_else(|error| {
            let error = Error::from(error);
            (Err(error.clone()), Err(error))
        });
        let mut state = self.state.lock();
        let learn_memory = |bytes: &[u8]| {
            state.placer.remember(bytes).map_err(|error| Error::new(ErrorKind::Data, error.to_string()))
        };
        let memory = taken_over(memory, learn_memory);
        let learn_journal = |bytes: &[u8]| {
            state.journal = Journal::for_next_session(bytes)?;
            Ok(())
        };
        let journal = taken_over(journal, learn_journal);
        let mut warnings = Vec::new();
        for (kept, taken_over) in [(MEMORY, memory), (JOURNAL, journal)] {
            match taken_over {
                TakenOver::All => {}
                TakenOver::Damaged(error) => {
                    warnings.push(format!("what placement had learned is given up: {error}"));
                }
                TakenOver::Unread(error) => {
                    warnings.push(format!(
                        "what placement had learned cannot be read and is left as it is, so that what it learns now is not kept: {error}"
                    ));
                    self.unread.lock().push(kept.name());
                }
            }
        }
        warnings
    }
}

impl Steered for Steering {
    /// The policy's next wish, with its generation; or how long it has to wait for the bandwidth limit, or for the
    /// policy to think.
    fn next(&self) -> Next {
        let (now, now_ns) = (self.clock.now(), self.now_ns());
        let mut state = self.state.lock();
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
        state.rate.take(now, self.directory.volume().chunk_bytes());
        Next::Wish(Box::new(wish), state.generation)
    }

    /// Tells the policy what came of a wish: its own, or one of the policy before.
    fn finish(&self, wish: Wish, outcome: WishOutcome, generation: u64) {
        let now_ns = self.now_ns();
        let noted = {
            let mut state = self.state.lock();
            let placed = match state.generation == generation {
                true => Some(state.placer.finish(wish, outcome)),
                false => state.placer.finish_former(&wish, outcome),
            };
            let Some(placed) = placed else { return };
            state.rate.give_back(self.directory.volume().chunk_bytes().saturating_sub(placed.bytes));
            // Else it was so already.
            let is_news = placed.is_done || placed.refusal.is_some();
            if is_news { state.note(now_ns, &placed) } else { None }
        };
        if let (Some(on_placed), Some(noted)) = (&self.on_placed, noted) {
            on_placed.tell(&PlacedChunk::new(self.directory.path(), noted));
        }
    }

    fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    fn settled(&self) -> &Settled {
        &self.settled
    }
}

/// What came of what earlier sessions had kept.
#[derive(Debug)]
enum TakenOver {
    All,
    /// It is of no more use.
    Damaged(Error),
    /// It may be read another time.
    Unread(Error),
}

fn taken_over(read: Result<Vec<u8>>, learn: impl FnOnce(&[u8]) -> Result<()>) -> TakenOver {
    match read {
        Ok(bytes) => learn(&bytes).map_or_else(TakenOver::Damaged, |()| TakenOver::All),
        Err(error) if error.kind() == ErrorKind::Data => TakenOver::Damaged(error),
        Err(error) => TakenOver::Unread(error),
    }
}

impl Watcher for Steering {
    fn begins(&self, announcement: &Arc<Announcement>) {
        let announcement = Arc::clone(announcement);
        self.tell(
            |state, now_ns| state.begins(now_ns, &announcement),
            || Told::Begins(Arc::clone(&announcement)),
        );
        self.wake();
    }

    fn read(&self, query: QueryId, read: &ObservedRead<'_>) {
        let apply = |state: &mut State, now_ns| state.read(now_ns, query, read.file, read.offset, read.bytes);
        self.tell(apply, || Told::read(query, read));
    }

    fn ends(&self, query: QueryId) {
        self.tell(|state, now_ns| state.ends(now_ns, query), || Told::Ends(query));
        self.wake();
    }
}

fn placer(volume: &Volume, wanted: &Wanted, costs: Costs) -> Result<Placer> {
    live::placer(volume, &wanted.policy, costs)
        .map_err(|error| Error::new(ErrorKind::InvalidInput, format!("tanada.placement: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_server_are_told_from_tables() {
        for name in
            ["ib_logfile0", "d/#ib_16384_0.dblwr", "d/undo001", "d/undo_001", "ibtmp1", "aria_log.00000001"]
        {
            assert!(is_of_the_server(name), "{name}");
        }
        for name in ["shop/orders.ibd", "shop/undo_list.ibd", "shop/ibtmp.ibd", "ibdata1", "undone/t.ibd"] {
            assert!(!is_of_the_server(name), "{name}");
        }
    }

    /// A journal that could not be read was replaced by a new one, and a memory that could not be read took the journal
    /// with it.
    #[test]
    fn an_unreadable_journal_is_not_taken_for_damaged() {
        let read = |kind| Err(Error::new(kind, "the disk"));
        let unread = taken_over(read(ErrorKind::Io), |_| unreachable!("there are no bytes"));
        assert!(matches!(unread, TakenOver::Unread(_)), "{unread:?}");
        let damaged = taken_over(read(ErrorKind::Data), |_| unreachable!("there are no bytes"));
        assert!(matches!(damaged, TakenOver::Damaged(_)), "{damaged:?}");
        let learn = |bytes: &[u8]| Journal::for_next_session(bytes).map(drop);
        assert!(matches!(taken_over(Ok(b"{".to_vec()), learn), TakenOver::Damaged(_)));
        assert!(matches!(taken_over(Ok(Vec::new()), learn), TakenOver::All));
    }
}
