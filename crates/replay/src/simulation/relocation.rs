//! The wishes of a policy on their way to being done.
//!
//! 1. What takes no copy is done at once. Copies wait in a queue by their order and then by age.
//! 2. As many begin as the budget has bytes for. One that needs room and finds none waits for a demotion under way, or
//!    is refused.
//! 3. A copy reads one class and then writes the other; then the chunk is where it was wanted, and the policy is told.
//! 4. A write to a chunk spoils the copy that is being made of it: the policy is told that it was not done.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tanada_placement::{Action, ChunkNo, Decision};

/// A copy under way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Job {
    pub(super) chunk: ChunkNo,
    pub(super) action: Action,
    /// Whether its first half, the read, is done.
    pub(super) is_read: bool,
    pub(super) is_spoiled: bool,
}

/// Waiting and running copies.
#[derive(Debug, Default)]
pub(super) struct Relocations {
    waiting: BinaryHeap<Reverse<(u32, u64, u32, ActionCode)>>,
    count: u64,
    jobs: Vec<Option<Job>>,
    free: Vec<usize>,
    running: usize,
    demoting: usize,
    /// When the bandwidth budget lets the next copy begin.
    pub(super) next_ns: u64,
}

/// An action that orders, for the heap.
type ActionCode = u8;

const COPIES: [Action; 5] = [
    Action::Promote(tanada_placement::Source::Copy),
    Action::Mirror(tanada_placement::Source::Copy),
    Action::Demote,
    Action::Clean,
    Action::Merge,
];

impl Relocations {
    /// Whether the action takes a copy.
    pub(super) fn is_copy(action: Action) -> bool {
        COPIES.contains(&action)
    }

    pub(super) fn enqueue(&mut self, decision: &Decision) {
        let code = COPIES.iter().position(|action| *action == decision.action).unwrap_or(0) as ActionCode;
        self.waiting.push(Reverse((decision.order, self.count, decision.chunk.0, code)));
        self.count += 1;
    }

    pub(super) fn peek(&self) -> Option<(ChunkNo, Action)> {
        let Reverse((_, _, chunk, code)) = self.waiting.peek()?;
        Some((ChunkNo(*chunk), COPIES[usize::from(*code)]))
    }

    pub(super) fn pop(&mut self) {
        self.waiting.pop();
    }

    pub(super) fn is_demoting(&self) -> bool {
        self.demoting > 0
    }

    pub(super) fn running(&self) -> usize {
        self.running
    }

    /// The number of the job, which names its I/Os.
    pub(super) fn begin(&mut self, chunk: ChunkNo, action: Action) -> usize {
        self.running += 1;
        self.demoting += usize::from(action == Action::Demote);
        let job = Some(Job { chunk, action, is_read: false, is_spoiled: false });
        match self.free.pop() {
            Some(no) => {
                self.jobs[no] = job;
                no
            }
            None => {
                self.jobs.push(job);
                self.jobs.len() - 1
            }
        }
    }

    pub(super) fn job(&mut self, no: usize) -> Option<&mut Job> {
        self.jobs.get_mut(no)?.as_mut()
    }

    pub(super) fn end(&mut self, no: usize) {
        if let Some(job) = self.jobs.get_mut(no).and_then(Option::take) {
            self.running -= 1;
            self.demoting -= usize::from(job.action == Action::Demote);
            self.free.push(no);
        }
    }

    /// The chunk was written.
    pub(super) fn spoil(&mut self, chunk: ChunkNo) {
        if self.running > 0 {
            self.jobs
                .iter_mut()
                .flatten()
                .filter(|job| job.chunk == chunk)
                .for_each(|job| job.is_spoiled = true);
        }
    }
}
