//! A disk: one arm over turning platters.
//!
//! 1. A command arrives. What the cache holds (a sequential read that was read ahead, a write with the write cache on)
//!    is answered from there. The rest queues.
//! 2. When the mechanism is free it takes, among the first 32 of the queue, the command with the shortest positioning
//!    time: seek by distance, then rotation to its first byte. More commands wait behind, first come, first served. A
//!    command that was passed over too often goes next.
//! 3. It transfers at the media rate. After a sequential read the head reads ahead until it is wanted elsewhere.
//! 4. Cached writes are brought to the medium when nobody else wants the mechanism, or as equals of the reads once they
//!    fill half of the cache. A sync waits for them.
//!
//! The controller's overhead is part of a lone command's latency, and hidden behind other commands' positioning if
//! there are any.
//!
//! Invariants:
//! - the mechanism does one command at a time and never waits while one is ready;
//! - `dirty_bytes` is the sum over `dirty`, and at most the write cache or one write;
//! - a command completes exactly once.

mod geometry;
mod read_ahead;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use tanada_base::SplitMix64;

use super::SpindleSpec;
use super::command::{Command, Completed, Member, Nanos, nanos, transfer_time};
use crate::Operation;
use geometry::Geometry;
use read_ahead::ReadAhead;

/// So often may the first of the queue be passed over, times the queue's length: the elevator must not starve anybody.
const MOST_PASSES: u64 = 16;

#[derive(Debug, Clone, Copy)]
struct Queued {
    command: Command,
    /// When the controller is done with it and the arm may move.
    ready: Nanos,
}

#[derive(Debug)]
pub(super) struct Spindle {
    spec: SpindleSpec,
    geometry: Geometry,
    cache: ReadAhead,
    queue: VecDeque<Queued>,
    /// How often the first of the queue was passed over.
    passes: u64,
    /// Writes that are acknowledged and not yet on the medium.
    dirty: VecDeque<Queued>,
    dirty_bytes: u64,
    /// Syncs that wait for `dirty` to be on the medium.
    syncs: Vec<Command>,
    /// Where the head is.
    head: u64,
    free_at: Nanos,
    random: SplitMix64,
    /// Completions that are settled, by time.
    settled: BinaryHeap<Reverse<(Nanos, u64)>>,
}

/// The queue that a candidate is in, and its place there.
#[derive(Debug, Clone, Copy)]
enum Candidate {
    Queue(usize),
    Dirty(usize),
}

impl Spindle {
    pub(super) fn new(spec: &SpindleSpec, seed: u64) -> Spindle {
        let mut random = SplitMix64::new(seed);
        let phase = random.below(1 << 20) as f64 / f64::from(1 << 20);
        Spindle {
            geometry: Geometry::new(spec, phase),
            cache: ReadAhead::new(spec.read_ahead, spec.streams, spec.rate),
            queue: VecDeque::new(),
            passes: 0,
            dirty: VecDeque::new(),
            dirty_bytes: 0,
            syncs: Vec::new(),
            head: 0,
            free_at: 0,
            settled: BinaryHeap::new(),
            random,
            spec: spec.clone(),
        }
    }

    fn settle(&mut self, at: Nanos, id: u64) {
        self.settled.push(Reverse((at, id)));
    }

    /// The latency of a command that memory serves.
    fn hit_time(&self, command: &Command) -> Nanos {
        nanos(self.spec.hit) + transfer_time(command.len, self.spec.interface)
    }

    fn accepts_write(&self, command: &Command) -> bool {
        self.spec.write_cache > 0
            && (self.dirty_bytes == 0 || self.dirty_bytes + command.len <= self.spec.write_cache)
    }

    fn accept_write(&mut self, at: Nanos, command: Command) {
        let done = at + self.hit_time(&command);
        self.settle(done, command.id);
        self.dirty_bytes += command.len;
        self.dirty.push_back(Queued { command, ready: done });
    }

    fn queue_len(&self) -> usize {
        usize::try_from(self.spec.queue).unwrap_or(usize::MAX)
    }

    /// Whether cached writes compete with the queue: a sync has to come to its end, however many read.
    fn is_pressed(&self) -> bool {
        self.dirty_bytes * 2 > self.spec.write_cache || !self.syncs.is_empty()
    }

    /// When the mechanism takes up its next command.
    fn next_start(&self) -> Option<Nanos> {
        let window = self.queue.iter().take(self.queue_len());
        let queue = window.map(|queued| queued.ready).min();
        let dirty = self.dirty.iter().take(self.queue_len()).map(|queued| queued.ready).min();
        Some(queue.into_iter().chain(dirty).min()?.max(self.free_at))
    }

    /// From `now` until the head is over the command's first byte, moved there and settled.
    ///
    /// `surprise` is what the seek takes longer than its mean.
    fn positioning(&self, now: Nanos, command: &Command, surprise: i64) -> Nanos {
        // The next bytes under the head: no need to ask the platter, which rounding may have let slip.
        if command.offset == self.head && now == self.free_at {
            return 0;
        }
        let seek = match self.geometry.seek(self.head, command.offset) {
            0 => 0,
            mean => mean.saturating_add_signed(surprise),
        };
        let settle = if command.operation == Operation::Write { nanos(self.spec.settle_write) } else { 0 };
        seek + settle + self.geometry.rotation(now + seek + settle, command.offset)
    }

    /// From `now` until the command's bytes are transferred.
    fn service(&self, now: Nanos, command: &Command, surprise: i64) -> Nanos {
        if command.operation == Operation::Read {
            if self.cache.holds(now, command) {
                return 0;
            }
            if let Some(time) = self.cache.reaches(now, command, self.geometry.track_bytes()) {
                return time;
            }
        }
        self.positioning(now, command, surprise) + transfer_time(command.len, self.spec.rate)
    }

    /// The time to the first byte, by which the elevator chooses.
    fn approach(&self, now: Nanos, command: &Command) -> Nanos {
        self.service(now, command, 0).saturating_sub(transfer_time(command.len, self.spec.rate))
    }

    fn choose(&self, now: Nanos) -> Option<Candidate> {
        let most = MOST_PASSES.saturating_mul(self.spec.queue);
        if self.passes >= most && self.queue.front().is_some_and(|queued| queued.ready <= now) {
            return Some(Candidate::Queue(0));
        }
        let nearest = |queue: &VecDeque<Queued>| {
            let window = queue.iter().take(self.queue_len()).enumerate();
            let ready = window.filter(|(_, queued)| queued.ready <= now);
            ready.map(|(no, queued)| (self.approach(now, &queued.command), no)).min()
        };
        let queued = nearest(&self.queue);
        let dirty = if queued.is_none() || self.is_pressed() { nearest(&self.dirty) } else { None };
        match (queued, dirty) {
            (Some(queued), Some(dirty)) if dirty < queued => Some(Candidate::Dirty(dirty.1)),
            (Some(queued), _) => Some(Candidate::Queue(queued.1)),
            (None, dirty) => dirty.map(|dirty| Candidate::Dirty(dirty.1)),
        }
    }

    /// The mechanism, free at `now`, takes a command; the arm and the platter are settled for it at once.
    fn dispatch(&mut self, now: Nanos) {
        let (taken, is_dirty) = match self.choose(now) {
            None => return,
            Some(Candidate::Queue(no)) => {
                self.passes = if no == 0 { 0 } else { self.passes + 1 };
                (self.queue.remove(no), false)
            }
            Some(Candidate::Dirty(no)) => (self.dirty.remove(no), true),
        };
        let Some(Queued { command, .. }) = taken else { return };
        if command.operation == Operation::Read && self.cache.holds(now, &command) {
            self.cache.consumed(now, &command);
            let done = now + self.hit_time(&command);
            return self.settle(done, command.id);
        }
        let jitter = nanos(self.spec.seek_jitter);
        let surprise = self.random.below(2 * jitter + 1) as i64 - jitter as i64;
        let end = now + self.service(now, &command, surprise);
        if command.operation == Operation::Read {
            if self.cache.reaches(now, &command, self.geometry.track_bytes()).is_none() {
                self.cache.leave(now);
            }
            self.cache.read(end, &command);
        } else {
            self.cache.leave(now);
        }
        self.head = command.end();
        self.free_at = end;
        if is_dirty {
            self.destaged(end, &command);
        } else {
            self.settle(end, command.id);
        }
    }

    /// A cached write is on the medium at `now`: room for writes that wait, and perhaps the end of syncs.
    fn destaged(&mut self, now: Nanos, command: &Command) {
        self.dirty_bytes -= command.len;
        let waiting = self.queue.iter().position(|queued| queued.command.operation == Operation::Write);
        if let Some(queued) = waiting.and_then(|no| self.queue.get(no).map(|queued| (no, *queued)))
            && self.accepts_write(&queued.1.command)
        {
            self.queue.remove(queued.0);
            self.accept_write(now, queued.1.command);
        }
        if self.dirty.is_empty() {
            for sync in std::mem::take(&mut self.syncs) {
                self.settle(now + nanos(self.spec.overhead), sync.id);
            }
        }
    }
}

impl Member for Spindle {
    fn arrive(&mut self, now: Nanos, command: Command) {
        let overhead = nanos(self.spec.overhead);
        match command.operation {
            Operation::Read if self.cache.holds(now, &command) => {
                self.cache.consumed(now, &command);
                let done = now + self.hit_time(&command);
                self.settle(done, command.id);
            }
            Operation::Read => {
                // A reader that follows the head need not wait for the arm.
                let follows = self.cache.reaches(now, &command, self.geometry.track_bytes()).is_some();
                let ready = if follows { now } else { now + overhead };
                self.queue.push_back(Queued { command, ready });
            }
            Operation::Write => {
                self.cache.written(&command);
                if self.accepts_write(&command) {
                    self.accept_write(now, command);
                } else {
                    self.queue.push_back(Queued { command, ready: now + overhead });
                }
            }
            // What a write cache has been given before is on the medium when the last of it is.
            Operation::Sync if !self.dirty.is_empty() => self.syncs.push(command),
            Operation::Sync => {
                let medium = if self.spec.write_cache > 0 { self.free_at.max(now) } else { now };
                self.settle(medium + overhead, command.id);
            }
            Operation::Punch => self.settle(now + overhead, command.id),
        }
    }

    fn advance(&mut self, now: Nanos, completed: &mut Vec<Completed>) {
        loop {
            let settled = self.settled.peek().map(|Reverse((at, _))| *at);
            let start = self.next_start();
            match (settled, start) {
                (Some(at), start) if at <= now && start.is_none_or(|start| at <= start) => {
                    completed.extend(self.settled.pop().map(|Reverse((at, id))| (id, at)));
                }
                (_, Some(start)) if start <= now => self.dispatch(start),
                _ => return,
            }
        }
    }

    fn next_event(&self) -> Option<Nanos> {
        let settled = self.settled.peek().map(|Reverse((at, _))| *at);
        settled.into_iter().chain(self.next_start()).min()
    }

    fn set_extent(&mut self, bytes: u64) {
        self.geometry.set_extent(bytes);
    }
}
