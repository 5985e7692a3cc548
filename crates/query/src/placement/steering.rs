//! Placement of one mounted volume: a policy is told what its queries are going to read and do read, and its wishes are carried out beside them.
//!
//! 1. Announcements, reads and ends come from the queries' threads and go to the policy at once, under a lock that is held for microseconds.
//! 2. A task on an executor carries out the policy's wishes, [`COPIES`] at once and no faster than its [`Rate`] lets it, and sleeps while there are none.
//! 3. What the policy has learned is kept in an object of the volume ([`MEMORY`]), from one session to the next.
//!
//! Invariant: a wish of one policy is never reported to another (`generation`).

use std::collections::{BTreeMap, VecDeque};
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use async_channel::{Receiver, Sender};
use futures::StreamExt;
use futures::channel::oneshot;
use futures::future::{Either, pending, select};
use futures::stream::FuturesUnordered;
use parking_lot::Mutex;
use tanada_base::Clock;
use tanada_io::{Executors, JoinHandle, ObservedRead, Timeline};
use tanada_placement::{
    Action, Cause, ChunkCount, Costs, Event, Footprint, Forecast, IoKind, Memory, ObjectIo, ObjectNo, Placed,
    Placer, PlacerOptions, QueryId, Wish, WishOutcome,
};
use tanada_volume::directory::Directory;
use tanada_volume::{Attributes, Budget, Object, Volume};

use super::announcement::Announcement;
use super::classes::costs_of;
use super::naming::Naming;
use super::rate::Rate;
use super::watch::Watcher;
use crate::{Error, ErrorKind, Result};

/// Chunks that are copied at once.
const COPIES: usize = 4;
/// A policy is told of passing time so often, if anything happens at all.
const TICK_NS: u64 = 1_000_000_000;
/// Queries and relocations that are remembered for those who ask.
const REMEMBERED: usize = 1_024;
/// Of what a policy draws.
const SEED: u64 = 1;
/// The object that keeps what the policy has learned.
const MEMORY: &str = "tanada.placement";
/// The same while it is written.
const NEW_MEMORY: &str = "tanada.placement.new";
/// Bytes that tell whether it is one.
const MAGIC_BYTES: usize = 8;
/// Bytes read of it at most.
const MOST_MEMORY_BYTES: u64 = 4 << 20;

/// How a session wants chunks placed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// A policy with its options.
    pub(crate) policy: String,
    /// Bytes a second that may be copied.
    pub(crate) bytes_per_second: Option<u64>,
}

/// Places the chunks of one volume.
#[derive(Debug)]
pub(crate) struct Steering {
    directory: Arc<Directory>,
    timeline: Timeline,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    wake: Sender<()>,
    relocating: Mutex<Option<JoinHandle<()>>>,
    /// Those who wait until nothing is left to do.
    settled: Mutex<Vec<oneshot::Sender<()>>>,
}

#[derive(Debug)]
struct State {
    wanted: Wanted,
    costs: Costs,
    placer: Placer,
    rate: Rate,
    generation: u64,
    naming: Naming,
    causes: u16,
    objects: Vec<Object>,
    /// Names of the class that is filled and of the one below.
    classes: [String; 2],
    ticked_ns: u64,
    queries: VecDeque<SeenQuery>,
    placed: VecDeque<Noted>,
}

/// A query that was announced, and what it has read so far.
#[derive(Debug, Clone)]
pub(crate) struct SeenQuery {
    pub(crate) query: QueryId,
    pub(crate) name: String,
    pub(crate) fingerprint: u64,
    pub(crate) depth: u32,
    pub(crate) is_over: bool,
    pub(crate) footprint: Footprint,
    /// Names of the objects and indexes of the footprint's accesses.
    pub(crate) names: Vec<(String, String)>,
    /// By object and index: I/Os and bytes.
    pub(crate) observed: BTreeMap<(ObjectNo, Cause), (u64, u64)>,
}

/// A relocation that was tried.
#[derive(Debug, Clone)]
pub(crate) struct Noted {
    pub(crate) at_ns: u64,
    pub(crate) policy: String,
    pub(crate) object: String,
    /// Its number in the volume.
    pub(crate) object_id: u64,
    pub(crate) chunk: u64,
    pub(crate) action: &'static str,
    /// Where it was to go; none if a mirror was given up.
    pub(crate) class: Option<String>,
    pub(crate) why: String,
    pub(crate) gain_s: f32,
    pub(crate) bytes: u64,
    pub(crate) refusal: Option<String>,
}

impl Steering {
    /// Begins to place the chunks of a volume; `None` if there is nothing to decide: one class, or one that is only read. What earlier sessions have
    /// learned is given up with a warning if it cannot be read.
    ///
    /// # Errors
    /// If there is no such policy, or it is none for volumes.
    pub(crate) async fn start(
        directory: &Arc<Directory>,
        wanted: &Wanted,
        executors: &Arc<Executors>,
        warnings: &mut Vec<String>,
    ) -> Result<Option<Arc<Steering>>> {
        let volume = directory.volume();
        if volume.classes().len() < 2 || volume.read_only_reason().is_some() {
            return Ok(None);
        }
        for class in volume.classes().iter().filter(|class| class.devices.iter().any(Option::is_none)) {
            let name = &class.name;
            warnings.push(format!("a device of class {name} is missing: no chunks are brought there"));
        }
        let timeline = Timeline::current_virtual().unwrap_or_else(Timeline::real);
        let costs = costs_of(directory);
        let mut placer = placer(volume, wanted, costs)?;
        let mut naming = Naming::default();
        let mut objects = Vec::new();
        for object in volume.objects().into_iter().filter(|object| !is_memory(&object.name())) {
            let no = placer.add(object.clone());
            naming.add(std::path::Path::new(&object.name()), no);
            objects.push(object);
        }
        let state = State {
            wanted: wanted.clone(),
            costs,
            placer,
            rate: Rate::new(wanted.bytes_per_second),
            generation: 0,
            naming,
            causes: 0,
            objects,
            classes: class_names(volume),
            ticked_ns: 0,
            queries: VecDeque::new(),
            placed: VecDeque::new(),
        };
        let (wake, woken) = async_channel::bounded(1);
        let steering = Arc::new(Steering {
            directory: Arc::clone(directory),
            clock: timeline.clock(),
            timeline,
            state: Mutex::new(state),
            wake,
            relocating: Mutex::default(),
            settled: Mutex::default(),
        });
        if let Err(error) = steering.remember(executors).await {
            warnings.push(format!("what placement had learned is given up: {error}"));
        }
        steering.prepare();
        let placed = Arc::downgrade(&steering);
        let running = executors.spawn(move || relocate(placed, woken));
        *steering.relocating.lock() = Some(running);
        Ok(Some(steering))
    }

    /// The volume.
    pub(crate) fn directory(&self) -> &Arc<Directory> {
        &self.directory
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
        state.rate = Rate::new(wanted.bytes_per_second);
        state.generation += 1;
        state.wanted = wanted.clone();
        drop(state);
        self.prepare();
        Ok(())
    }

    /// Policies that learn from a run before are told what the volume has counted.
    fn prepare(&self) {
        let mut state = self.state.lock();
        let State { placer, objects, .. } = &mut *state;
        let mut counts = Vec::new();
        for (no, object) in objects.iter().enumerate() {
            for chunk in object.chunks(0..u64::MAX) {
                let statistics = chunk.statistics;
                counts.push(ChunkCount {
                    object: ObjectNo(no as u32),
                    chunk: chunk.no,
                    reads: u64::from(statistics.reads),
                    bytes: statistics.bytes_read,
                    sequential_share: f64::from(statistics.sequential_share()),
                });
            }
        }
        placer.train_counts(&counts);
        placer.prepare();
        drop(state);
        self.wake();
    }

    /// There may be something to do.
    fn wake(&self) {
        let _ = self.wake.try_send(());
    }

    /// Waits until the policy wants nothing more for now.
    pub(crate) async fn settle(&self) {
        let (sender, settled) = oneshot::channel();
        self.settled.lock().push(sender);
        self.wake();
        // Whoever stops placement settles it too.
        let _ = settled.await;
    }

    /// The policy's next wish, with its generation; or how long it has to wait for the bandwidth limit.
    fn next_wish(&self) -> Next {
        let now = self.clock.now();
        let mut state = self.state.lock();
        if let Some(pause) = state.rate.pause(now)
            && state.placer.waiting() > 0
        {
            return Next::Later(pause);
        }
        let Some(wish) = state.placer.begin() else { return Next::Nothing };
        state.rate.take(now, self.directory.volume().chunk_bytes());
        Next::Wish(Box::new(wish), state.generation)
    }

    /// Tells the policy what came of a wish, if it is still the one that had it.
    fn finish(&self, wish: Wish, outcome: WishOutcome, generation: u64) {
        let now_ns = self.now_ns();
        let mut state = self.state.lock();
        if state.generation == generation {
            let placed = state.placer.finish(wish, outcome);
            state.rate.give_back(self.directory.volume().chunk_bytes().saturating_sub(placed.bytes));
            if !placed.is_done && placed.refusal.is_none() {
                // It was so already.
                return;
            }
            state.note(now_ns, &placed);
        }
    }

    /// Nothing is left to do: those who wait for that go on.
    fn is_settled(&self) {
        for waiting in std::mem::take(&mut *self.settled.lock()) {
            // Whoever no longer waits does not mind.
            let _ = waiting.send(());
        }
    }

    /// What the policy would do for a query, and the names of the objects that it would do it with.
    pub(crate) fn forecast(&self, announcement: &Announcement) -> (Forecast, String, Vec<String>) {
        let mut state = self.state.lock();
        state.learn(announcement);
        let footprint = state.footprint(announcement);
        let forecast = state.placer.forecast(announcement.fingerprint, announcement.depth, &footprint);
        let names = state.objects.iter().map(Object::name).collect();
        (forecast, state.placer.policy_name().to_owned(), names)
    }

    /// Queries that were announced, the newest last.
    pub(crate) fn queries(&self) -> Vec<SeenQuery> {
        self.state.lock().queries.iter().cloned().collect()
    }

    /// Relocations that were tried, the newest last.
    pub(crate) fn placed(&self) -> Vec<Noted> {
        self.state.lock().placed.iter().cloned().collect()
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
        self.is_settled();
        let memory = self.state.lock().placer.memory();
        if memory.is_empty() {
            return Ok(());
        }
        let directory = Arc::clone(&self.directory);
        let written = executors.spawn(move || async move { keep(directory.volume(), &memory).await });
        written.await?
    }

    /// Learns what earlier sessions have learned.
    async fn remember(&self, executors: &Arc<Executors>) -> Result<()> {
        let Some(object) = memory_of(self.directory.volume()) else { return Ok(()) };
        let bytes = object.size_bytes().min(MOST_MEMORY_BYTES) as usize;
        let read = executors.spawn(move || async move { object.read_bytes(0, bytes).await });
        let memory = read.await??;
        let remembered = self.state.lock().placer.remember(&memory);
        remembered.map_err(|error| Error::new(ErrorKind::Data, error.to_string()))
    }
}

/// What is to be done next.
enum Next {
    Wish(Box<Wish>, u64),
    Later(Duration),
    Nothing,
}

/// Carries out the policy's wishes until placement is stopped or gone. Copies under way then are given up: their chunks stay where they are.
async fn relocate(steering: Weak<Steering>, woken: Receiver<()>) {
    let mut running = FuturesUnordered::new();
    loop {
        let Some(placement) = steering.upgrade() else { return };
        let mut pause = None;
        while running.len() < COPIES {
            match placement.next_wish() {
                Next::Wish(wish, generation) => running.push(async move {
                    let outcome = wish.run().await;
                    (wish, outcome, generation)
                }),
                Next::Later(until) => {
                    pause = Some(placement.timeline.sleep(until));
                    break;
                }
                Next::Nothing => break,
            }
        }
        if running.is_empty() && pause.is_none() {
            placement.is_settled();
        }
        // Whoever drops placement while this waits ends it.
        drop(placement);
        let done = async { if running.is_empty() { pending().await } else { running.next().await } };
        let paused = async {
            match pause {
                Some(pause) => pause.await,
                None => pending().await,
            }
        };
        let (done, paused, woken) = (pin!(done), pin!(paused), pin!(woken.recv()));
        match select(woken, select(done, paused)).await {
            Either::Left((Err(_), _)) => return,
            Either::Right((Either::Left((Some((wish, outcome, generation)), _)), _)) => {
                if let Some(placement) = steering.upgrade() {
                    placement.finish(*wish, outcome, generation);
                }
            }
            // Woken, the pause is over, or the last copy has gone: whatever is next.
            _ => {}
        }
    }
}

impl State {
    /// Indexes of the announced tables get numbers.
    fn learn(&mut self, announcement: &Announcement) {
        let State { naming, causes, .. } = self;
        for places in announcement.tables.iter().flat_map(|table| table.iter()) {
            naming.learn(places, |_| {
                *causes = causes.saturating_add(1);
                Cause(*causes)
            });
        }
    }

    fn footprint(&self, announcement: &Announcement) -> Footprint {
        announcement
            .footprint(|access| Some((self.naming.object(&access.path)?, self.naming.cause(&access.index)?)))
    }

    fn tick(&mut self, now_ns: u64) {
        if now_ns >= self.ticked_ns + TICK_NS {
            self.ticked_ns = now_ns;
            self.placer.tell(now_ns, &Event::Tick);
        }
    }

    fn note(&mut self, at_ns: u64, placed: &Placed) {
        let owner = self.placer.layout().owner(placed.decision.chunk);
        let Some((object, chunk)) = owner else { return };
        let [fast, slow] = &self.classes;
        let class = match placed.decision.action {
            action if action.takes_room() => Some(fast.clone()),
            Action::Demote => Some(slow.clone()),
            _ => None,
        };
        let noted = Noted {
            at_ns,
            policy: self.placer.policy_name().to_owned(),
            object: self.placer.layout().name(object).to_owned(),
            object_id: self.objects.get(object.0 as usize).map_or(0, Object::id),
            chunk,
            action: placed.decision.action.verb(),
            class,
            why: placed.why.clone(),
            gain_s: placed.decision.gain_s,
            bytes: placed.bytes,
            refusal: placed.refusal.as_ref().map(ToString::to_string),
        };
        remember_newest(&mut self.placed, noted);
    }
}

impl Watcher for Steering {
    fn begins(&self, announcement: &Announcement) {
        let now_ns = self.now_ns();
        let mut state = self.state.lock();
        state.learn(announcement);
        let footprint = state.footprint(announcement);
        if footprint.accesses.is_empty() {
            return;
        }
        let (query, fingerprint, depth) = (announcement.query, announcement.fingerprint, announcement.depth);
        let begins = Event::QueryBegins { query, fingerprint, depth, footprint: &footprint };
        state.placer.tell(now_ns, &begins);
        let known = announcement.accesses.iter().filter(|access| state.naming.object(&access.path).is_some());
        let names = known.map(|access| (access.path.display().to_string(), access.index.clone())).collect();
        let seen = SeenQuery {
            query,
            name: announcement.name.clone(),
            fingerprint: fingerprint.0,
            depth,
            is_over: false,
            footprint,
            names,
            observed: BTreeMap::new(),
        };
        remember_newest(&mut state.queries, seen);
        drop(state);
        self.wake();
    }

    fn read(&self, query: QueryId, read: &ObservedRead<'_>) {
        let now_ns = self.now_ns();
        let mut state = self.state.lock();
        let Some(named) = state.naming.read(read.file, read.offset, read.bytes) else { return };
        let io = ObjectIo {
            object: named.object,
            offset: read.offset,
            bytes: u32::try_from(read.bytes).unwrap_or(u32::MAX),
            kind: IoKind::Read,
            is_sequential: named.is_sequential,
            query,
            cause: named.cause,
        };
        state.placer.io(now_ns, &io);
        if let Some(seen) = state.queries.iter_mut().rev().find(|seen| seen.query == query) {
            let observed = seen.observed.entry((named.object, named.cause)).or_default();
            *observed = (observed.0 + 1, observed.1 + read.bytes);
        }
        state.tick(now_ns);
        let wants = state.placer.waiting() > 0;
        drop(state);
        if wants {
            self.wake();
        }
    }

    fn ends(&self, query: QueryId) {
        let now_ns = self.now_ns();
        let mut state = self.state.lock();
        state.placer.tell(now_ns, &Event::QueryEnds { query });
        if let Some(seen) = state.queries.iter_mut().rev().find(|seen| seen.query == query) {
            seen.is_over = true;
        }
        drop(state);
        self.wake();
    }
}

fn remember_newest<T>(list: &mut VecDeque<T>, item: T) {
    if list.len() == REMEMBERED {
        list.pop_front();
    }
    list.push_back(item);
}

fn placer(volume: &Volume, wanted: &Wanted, costs: Costs) -> Result<Placer> {
    let [fast, slow] = class_names(volume);
    let options = PlacerOptions {
        policy: wanted.policy.clone(),
        fast,
        slow,
        costs,
        // The policy has weighed what the copy costs the queries: it is not to be held back once more. A wish is one chunk, so the bandwidth limit is not
        // the relocation's but this module's.
        budget: Budget { concurrency: 1, bytes_per_second: None, yields: false },
        most_chunks: None,
        seed: SEED,
    };
    Placer::new(volume, options)
        .map_err(|error| Error::new(ErrorKind::InvalidInput, format!("tanada.placement: {error}")))
}

/// The first and the last class.
fn class_names(volume: &Volume) -> [String; 2] {
    let classes = volume.classes();
    let name =
        |class: Option<&tanada_volume::ClassInfo>| class.map(|class| class.name.clone()).unwrap_or_default();
    [name(classes.first()), name(classes.last())]
}

fn is_memory(name: &str) -> bool {
    name == MEMORY || name == NEW_MEMORY
}

/// The whole one of both, if there is one.
fn memory_of(volume: &Volume) -> Option<Object> {
    volume.open_object(MEMORY).or_else(|_| volume.open_object(NEW_MEMORY)).ok()
}

/// Writes it beside the old one, which goes when the new one is durable.
///
/// # Errors
/// Besides the volume's: if an object of either name is somebody else's.
async fn keep(volume: &Volume, memory: &[u8]) -> Result<()> {
    for name in [MEMORY, NEW_MEMORY] {
        let Ok(object) = volume.open_object(name) else { continue };
        let begin = object.read_bytes(0, MAGIC_BYTES).await?;
        // What was begun and not finished may still be zeros.
        let is_own = begin.iter().all(|byte| *byte == 0) || Memory::is_one(&begin);
        if object.is_adopted() || !is_own {
            let message = format!("the object {name:?} is something else; give it another name");
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
    }
    if volume.open_object(MEMORY).is_ok() && volume.open_object(NEW_MEMORY).is_ok() {
        volume.delete(NEW_MEMORY).await?;
    } else if volume.open_object(NEW_MEMORY).is_ok() {
        volume.rename(NEW_MEMORY, MEMORY)?;
    }
    if let Err(error) = write_memory(volume, memory).await {
        // What matters is why it could not be written; the room it took is given back if that can be done.
        let _ = volume.delete(NEW_MEMORY).await;
        return Err(error.into());
    }
    if volume.open_object(MEMORY).is_ok() {
        volume.delete(MEMORY).await?;
    }
    volume.rename(NEW_MEMORY, MEMORY)?;
    Ok(volume.sync().await?)
}

async fn write_memory(volume: &Volume, memory: &[u8]) -> tanada_volume::Result<()> {
    let object = volume.create_object(NEW_MEMORY, &Attributes::default())?;
    object.write_bytes(0, memory).await?;
    object.sync().await
}
