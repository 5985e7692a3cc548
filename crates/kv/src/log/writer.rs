//! Writing the log.
//!
//! Callers append frames under the database's commit lock, one after another; a task in the background writes them:
//!
//! 1. [`Log::append`] copies a frame into the open group, and says where in which segment its payload lies. A group
//!    that is full, or at whose end the segment ends, is closed. If there is no space (no segment is prepared, or too
//!    much waits to be written), the caller awaits [`Log::room`] without the lock and tries again.
//! 2. The task writes closed groups. When somebody waits for durability, or the oldest write that is not durable comes
//!    of age, it closes the open group too, writes, and makes all segments durable that it wrote to.
//! 3. Then, and only then, the durable position moves, and those who wait are told, in the log's order.
//! 4. Another task prepares the next segment when the last one that was prepared is taken. If the log's class has no
//!    space for it, and values are on their way from there to a slower one, it waits a while: a log that goes on on the
//!    slow class is written there, and what is spilled from it again.
//!
//! 5. Where nothing is appended for a moment, a group without frames says that all before it was durable: a replay ends
//!    at the first frame that is not whole, and knows by what stands behind it whether that was torn by a stop or
//!    damaged later.
//!
//! Invariants: `durable <= written <= end`; groups of a segment are contiguous; after a failed write or sync nothing is
//! appended any more and nobody is told that anything is durable; the task that writes ends only when it has seen,
//! under the lock, that nobody waits, and who comes later hears that the log is closed.
//!
//! The two tasks are in [`tasks`].

mod tasks;

use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::channel::oneshot;
use futures::future::Either;
use parking_lot::Mutex;
use tanada_volume::Claim;

use super::filling::Group;
use super::frame::{FRAME_HEADER, Payload, frame_header};
use super::group::GROUP_HEADER;
use super::segment::{LogSegment, PlacedSegment};
use super::{BLOCK, Lsn};
use crate::classes::Classes;
use crate::crash::CrashPoints;
use crate::entry::{SegmentNo, SequenceNo};
use crate::environment::Environment;
use crate::notify::{Notify, TaskCount};
use crate::objects::Objects;
use crate::value::Segments;
use crate::{Error, ErrorKind, Result};

/// What a log is told.
#[derive(Debug, Clone)]
pub(crate) struct LogOptions {
    pub(crate) segment_bytes: u64,
    pub(crate) group_bytes: u64,
    /// When this many bytes wait to be written, so do writers.
    pub(crate) waiting_bytes: u64,
    /// The database's identity.
    pub(crate) database: u64,
    pub(crate) epoch: u64,
    /// Where the log goes on.
    pub(crate) start: Lsn,
    /// What is durable of what was there before: up to a block less.
    pub(crate) durable: Lsn,
}

/// Where a frame was put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Appended {
    pub(crate) segment: SegmentNo,
    /// Of the payload, in the segment.
    pub(crate) offset: u64,
    /// Where the log ends now.
    pub(crate) end: Lsn,
}

/// The segment that is being filled.
struct Filling {
    segment: LogSegment,
    start: Lsn,
    /// Bytes that are in use, all groups that were begun counted.
    used: u64,
}

#[derive(Default)]
struct Wanted {
    /// The time at which the log has to be made durable up to its end, and how long after a write that was.
    deadline: Option<(Duration, u16)>,
    /// Those who wait until the log is durable up to a position; the number tells apart those at the same.
    waiters: BTreeMap<(Lsn, u64), oneshot::Sender<Result<()>>>,
    waiter_no: u64,
    /// Those who wait for space.
    without_room: Vec<oneshot::Sender<()>>,
}

struct State {
    filling: Option<Filling>,
    prepared: Option<LogSegment>,
    /// Bytes of a segment, unless a frame wants more.
    segment_bytes: u64,
    /// Bytes that the next segment has to hold at least, and why there is none.
    next_bytes: u64,
    /// Bytes of these that a frame has asked for.
    wanted_bytes: u64,
    prepare_error: Option<Error>,
    open: Option<Group>,
    closed: VecDeque<Group>,
    closed_bytes: u64,
    /// All segments with frames that may be needed for a recovery, in the log's order.
    placed: Vec<PlacedSegment>,
    end: Lsn,
    durable: Lsn,
    /// Up to there the log, or the manifest, says itself that it was durable.
    confirmed: Lsn,
    wanted: Wanted,
    failed: Option<Error>,
    is_closing: bool,
    /// The writing task has checked for waiters for the last time.
    has_ended: bool,
}

impl State {
    /// The next segment has to hold a frame that takes up this many bytes.
    fn want(&mut self, needed: u64) {
        self.wanted_bytes = self.wanted_bytes.max(needed);
        self.next_bytes = self.next_bytes.max(needed);
    }

    /// Waits until the log is durable up to `lsn`, unless that or the opposite is known already.
    fn wait_for(&mut self, lsn: Lsn) -> Either<Result<()>, oneshot::Receiver<Result<()>>> {
        if self.durable >= lsn {
            return Either::Left(Ok(()));
        }
        if let Some(error) = &self.failed {
            return Either::Left(Err(error.clone()));
        }
        if self.has_ended {
            return Either::Left(Err(closed_before_durable()));
        }
        let (sender, receiver) = oneshot::channel();
        self.wanted.waiters.insert((lsn, self.wanted.waiter_no), sender);
        self.wanted.waiter_no += 1;
        Either::Right(receiver)
    }
}

fn closed_before_durable() -> Error {
    Error::new(ErrorKind::Closed, "the log was closed before the write was durable")
}

/// A log that is written to.
pub(crate) struct Log {
    options: LogOptions,
    /// Say where new segments go.
    classes: Arc<Classes>,
    objects: Arc<Objects>,
    segments: Arc<Segments>,
    environment: Arc<dyn Environment>,
    crash: CrashPoints,
    state: Mutex<State>,
    /// There is something to write.
    work: Notify,
    /// A segment is to be prepared.
    prepare: Notify,
    counters: LogCounters,
    /// Tasks that have not ended.
    tasks: TaskCount,
    /// What the task that writes lets go when it has ended.
    kept: Mutex<Option<Arc<Claim>>>,
    /// Notified when it fails.
    on_failure: Mutex<Vec<Notify>>,
}

/// Counters of a log.
#[derive(Debug, Default)]
pub(crate) struct LogCounters {
    pub(crate) groups: crate::counters::Counter,
    pub(crate) syncs: crate::counters::Counter,
    pub(crate) segments: crate::counters::Counter,
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Log").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Log {
    /// A log that goes on at `options.start` in a new segment; its tasks run until [`close`](Self::close) or until it
    /// is dropped. `placed` are the segments before, as far as they are still needed.
    pub(crate) fn start(
        options: LogOptions,
        classes: Arc<Classes>,
        placed: Vec<PlacedSegment>,
        objects: Arc<Objects>,
        segments: Arc<Segments>,
        environment: Arc<dyn Environment>,
        crash: CrashPoints,
    ) -> Arc<Log> {
        debug_assert!(options.start.is_multiple_of(BLOCK));
        let state = State {
            filling: None,
            prepared: None,
            segment_bytes: options.segment_bytes,
            next_bytes: options.segment_bytes,
            wanted_bytes: 0,
            prepare_error: None,
            open: None,
            closed: VecDeque::new(),
            closed_bytes: 0,
            placed,
            end: options.start,
            durable: options.durable,
            confirmed: options.start,
            wanted: Wanted::default(),
            failed: None,
            is_closing: false,
            has_ended: false,
        };
        let log = Arc::new(Log {
            kept: Mutex::default(),
            on_failure: Mutex::default(),
            options,
            classes,
            objects,
            segments,
            environment,
            crash,
            state: Mutex::new(state),
            work: Notify::default(),
            prepare: Notify::default(),
            counters: LogCounters::default(),
            tasks: TaskCount::default(),
        });
        log.tasks.spawn(&*log.environment, tasks::write_groups(log.clone()));
        log.tasks.spawn(&*log.environment, tasks::prepare_segments(log.clone()));
        log
    }

    /// Nobody else is to have the database open before the last write has ends.
    pub(crate) fn keep_until_ended(&self, claim: Arc<Claim>) {
        *self.kept.lock() = Some(claim);
    }

    /// Has `notify` told when it fails, for those who wait for something that then never comes.
    pub(crate) fn tell_failure(&self, notify: &Notify) {
        self.on_failure.lock().push(notify.clone());
    }

    /// Returns when its tasks have ended, after [`stop`](Self::stop) or [`fail`](Self::fail).
    pub(crate) async fn ended(&self) {
        self.tasks.ended().await;
    }

    pub(crate) fn counters(&self) -> &LogCounters {
        &self.counters
    }

    /// Where the next frame goes at the earliest.
    pub(crate) fn end(&self) -> Lsn {
        self.state.lock().end
    }

    /// What was durable when it was asked.
    pub(crate) fn durable(&self) -> Lsn {
        self.state.lock().durable
    }

    /// The oldest segment that is needed to replay from `lsn`, if there is one.
    pub(crate) fn segment_at(&self, lsn: Lsn) -> Option<SegmentNo> {
        let state = self.state.lock();
        let first = state.placed.iter().rev().find(|segment| segment.start <= lsn);
        first.or(state.placed.first()).map(|segment| segment.no)
    }

    /// Segments that no replay from `lsn` needs; they are the log's no more.
    pub(crate) fn forget_before(&self, lsn: Lsn) -> Vec<PlacedSegment> {
        let mut state = self.state.lock();
        // The last one is being written to.
        let last_needed = state.placed.iter().rposition(|segment| segment.start <= lsn).unwrap_or(0);
        state.placed.drain(..last_needed).collect()
    }

    /// Numbers of the segments that the log needs.
    pub(crate) fn segments(&self) -> Vec<SegmentNo> {
        let state = self.state.lock();
        let prepared = state.prepared.iter().map(|segment| segment.no);
        state.placed.iter().map(|segment| segment.no).chain(prepared).collect()
    }

    /// Closes the open group, so that the log's end is where a replay can begin. That position.
    pub(crate) fn cut(&self) -> Lsn {
        let mut state = self.state.lock();
        self.close_group(&mut state);
        state.end
    }

    /// Adds a frame; `None` if there is no space now. `within_ms` is how soon it has to be durable without anybody
    /// waiting.
    ///
    /// # Errors
    /// If an earlier write failed, or the log is closed.
    pub(crate) fn append(
        &self,
        payload: &Payload,
        sequence: SequenceNo,
        within_ms: Option<u16>,
    ) -> Result<Option<Appended>> {
        let mut state = self.state.lock();
        if let Some(error) = &state.failed {
            return Err(error.clone());
        }
        if state.is_closing {
            return Err(Error::new(ErrorKind::Closed, "the database is closed"));
        }
        let len = payload.frame_len();
        if state.open.as_ref().is_none_or(|group| group.room() < len) && !self.open_group(&mut state, len) {
            return Ok(None);
        }
        let Some(group) = &mut state.open else { return Ok(None) };
        group.push(&frame_header(payload, group.end(), sequence, self.options.epoch));
        let offset = group.offset + group.len as u64;
        group.push(&payload.bytes);
        let (segment, end, is_full) = (group.segment.no, group.end(), group.room() <= FRAME_HEADER);
        state.end = end;
        if is_full {
            self.close_group(&mut state);
        }
        if let Some(ms) = within_ms
            && state.wanted.deadline.is_none_or(|(_, earlier)| ms < earlier)
        {
            // A part of the time is left for writing.
            let deadline = self.environment.now() + Duration::from_micros(u64::from(ms) * 750);
            if state.wanted.deadline.is_none_or(|(earlier, _)| deadline < earlier) {
                state.wanted.deadline = Some((deadline, ms));
                drop(state);
                self.work.notify();
            }
        }
        Ok(Some(Appended { segment, offset, end }))
    }

    /// Opens a group that a frame of `len` bytes fits in; whether there was space for it.
    fn open_group(&self, state: &mut State, len: usize) -> bool {
        if state.closed_bytes >= self.options.waiting_bytes {
            return false;
        }
        self.close_group(state);
        let needed = ((GROUP_HEADER + len) as u64).next_multiple_of(BLOCK);
        let fits = |filling: &Filling| filling.used + needed <= filling.segment.capacity;
        if !state.filling.as_ref().is_some_and(fits) {
            // A segment that is too small for this frame serves for the next ones.
            match state.prepared.take_if(|segment| segment.capacity >= needed) {
                Some(segment) => {
                    let values = self.segments.add(segment.lease.clone(), segment.object.clone());
                    let placed = PlacedSegment { no: segment.no, segment: values, start: state.end };
                    state.placed.push(placed);
                    state.filling = Some(Filling { segment, start: state.end, used: 0 });
                    (state.next_bytes, state.wanted_bytes) = (state.segment_bytes, 0);
                    self.counters.segments.add(1);
                    self.prepare.notify();
                }
                None => {
                    state.want(needed);
                    if let Some(too_small) = state.prepared.take() {
                        too_small.lease.retire();
                    }
                    self.prepare.notify();
                    return false;
                }
            }
        }
        let Some(filling) = &state.filling else { return false };
        let left = filling.segment.capacity - filling.used;
        let capacity = needed.max(self.options.group_bytes).min(left);
        let lsn = filling.start + filling.used;
        debug_assert_eq!(lsn, state.end.next_multiple_of(BLOCK));
        state.open = Some(Group {
            segment: filling.segment.clone(),
            lsn,
            offset: filling.used,
            buffer: self.objects.buffers().allocate(capacity as usize),
            len: GROUP_HEADER,
        });
        true
    }

    /// Hands the open group over to be written, if there is anything in it.
    fn close_group(&self, state: &mut State) {
        match state.open.take() {
            Some(group) if !group.is_empty() => self.hand_over(state, group),
            _ => {}
        }
    }

    /// Writes a group that says that all before it was durable, if nothing has come meanwhile and the segment has a
    /// block left.
    fn confirm(&self) {
        let mut state = self.state.lock();
        if state.is_closing || state.failed.is_some() || state.durable < state.end {
            return;
        }
        let has_block =
            state.filling.as_ref().is_some_and(|filling| filling.used + BLOCK <= filling.segment.capacity);
        if has_block
            && self.open_group(&mut state, 0)
            && let Some(group) = state.open.take()
        {
            self.hand_over(&mut state, group);
        }
        // It is tried once.
        state.confirmed = state.end;
    }

    fn hand_over(&self, state: &mut State, mut group: Group) {
        group.close(self.options.database, self.options.epoch, state.durable);
        if let Some(filling) = &mut state.filling {
            filling.used = group.offset + group.buffer.len() as u64;
        }
        state.end = group.lsn + group.buffer.len() as u64;
        state.closed_bytes += group.buffer.len() as u64;
        state.closed.push_back(group);
        self.work.notify();
    }

    /// Waits until a frame of `len` bytes can be appended, or somebody else was faster.
    ///
    /// # Errors
    /// `NoSpace` if no segment can be made for it; or as [`append`](Self::append).
    pub(crate) async fn room(&self, len: usize) -> Result<()> {
        let needed = ((GROUP_HEADER + len) as u64).next_multiple_of(BLOCK);
        let mut has_asked = false;
        loop {
            let freed = {
                let mut state = self.state.lock();
                if let Some(error) = state.failed.clone() {
                    return Err(error);
                }
                if state.is_closing {
                    return Err(Error::new(ErrorKind::Closed, "the database is closed"));
                }
                let has_place = state.closed_bytes < self.options.waiting_bytes;
                let fits = |segment: &LogSegment| segment.capacity >= needed;
                let is_filling = state.filling.as_ref();
                let filling_fits =
                    is_filling.is_some_and(|filling| filling.used + needed <= filling.segment.capacity);
                if has_place && (filling_fits || state.prepared.as_ref().is_some_and(fits)) {
                    return Ok(());
                }
                if has_place && let Some(error) = state.prepare_error.take() {
                    if has_asked {
                        return Err(error);
                    }
                    // There was no space once, ahead of anybody's need; there may be now.
                    self.prepare.notify();
                }
                let (sender, freed) = oneshot::channel();
                state.wanted.without_room.push(sender);
                has_asked |= has_place;
                if has_place {
                    state.want(needed);
                    // It was being prepared before anybody knew how large it has to be.
                    if let Some(too_small) = state.prepared.take() {
                        too_small.lease.retire();
                    }
                    self.prepare.notify();
                }
                freed
            };
            self.work.notify();
            let _ = freed.await;
        }
    }

    /// Returns when the log is durable up to `lsn`.
    ///
    /// # Errors
    /// If a write or sync failed: nothing is known of what came after the durable position.
    pub(crate) fn sync_to(&self, lsn: Lsn) -> impl Future<Output = Result<()>> + Send + use<> {
        let waiting = self.state.lock().wait_for(lsn);
        self.told(waiting)
    }

    /// What who waits is told, once the task that writes knows of it.
    fn told(
        &self,
        waiting: Either<Result<()>, oneshot::Receiver<Result<()>>>,
    ) -> impl Future<Output = Result<()>> + Send + use<> {
        if matches!(waiting, Either::Right(_)) {
            self.work.notify();
        }
        async move {
            match waiting {
                Either::Left(result) => result,
                Either::Right(receiver) => receiver.await.unwrap_or_else(|_| Err(closed_before_durable())),
            }
        }
    }

    /// Why nothing can be written, if so.
    pub(crate) fn failure(&self) -> Option<Error> {
        self.state.lock().failed.clone()
    }

    /// From here on every write fails with `error`.
    pub(crate) fn fail(&self, error: &Error) {
        let (waiters, without_room) = {
            let mut state = self.state.lock();
            if state.failed.is_none() {
                let message = format!(
                    "the database takes no more writes, because an earlier one failed ({error}): open it anew"
                );
                state.failed = Some(Error::new(ErrorKind::Poisoned, message));
            }
            (std::mem::take(&mut state.wanted.waiters), std::mem::take(&mut state.wanted.without_room))
        };
        for (_, waiter) in waiters {
            let _ = waiter.send(Err(error.clone()));
        }
        drop(without_room);
        self.work.notify();
        self.prepare.notify();
        // Whoever is woken may run right here.
        let told = self.on_failure.lock().clone();
        told.iter().for_each(Notify::notify);
    }

    /// Makes everything durable and ends the tasks.
    ///
    /// # Errors
    /// As [`sync_to`](Self::sync_to).
    pub(crate) async fn close(&self) -> Result<()> {
        let waiting = {
            let mut state = self.state.lock();
            state.is_closing = true;
            self.close_group(&mut state);
            // Without the lock between, in which the task that writes could find that nobody waits, and end.
            let end = state.end;
            state.wait_for(end)
        };
        let synced = self.told(waiting).await;
        self.stop();
        synced
    }

    /// Gives back the space of the segment that is ready, for somebody needs it more now; whether there was one. The
    /// next one is made when it is wanted.
    pub(crate) fn give_back_ready(&self) -> bool {
        let unused = self.state.lock().prepared.take();
        unused.inspect(|unused| unused.lease.retire()).is_some()
    }

    /// Has segments that are prepared from now on have this many bytes, unless a frame wants more.
    pub(crate) fn set_segment_bytes(&self, bytes: u64) {
        let mut state = self.state.lock();
        state.segment_bytes = bytes;
        state.next_bytes = bytes.max(state.wanted_bytes);
    }

    /// Ends the tasks. What is to be durable at some time is made durable before.
    pub(crate) fn stop(&self) {
        let without_room = {
            let mut state = self.state.lock();
            state.is_closing = true;
            if let Some((deadline, _)) = &mut state.wanted.deadline {
                *deadline = Duration::ZERO;
            }
            if let Some(unused) = state.prepared.take() {
                unused.lease.retire();
            }
            std::mem::take(&mut state.wanted.without_room)
        };
        drop(without_room);
        self.work.notify();
        self.prepare.notify();
    }
}
