//! An SSD or another device without moving parts.
//!
//! Everything about a command is known when it arrives, so its completion is settled at once:
//!
//! 1. It passes the controller, one command after the other: that caps the IOPS.
//! 2. A read goes to the units that hold its pages (by a seeded hash of the page's number), each of which does one page
//!    at a time. If the write buffer is being emptied, a unit may be programming, and the read waits for it: mixed
//!    loads read slower.
//! 3. Its bytes cross the interface, whose rate caps the bandwidth.
//! 4. A write is acknowledged when it is in the write buffer. The buffer is emptied at the sustained rate, sequential
//!    writes at the bandwidth, others at the random IOPS, which hold all that garbage collection costs. A full buffer
//!    makes writes wait.
//!
//! Invariant: what the controller, a unit, the interface or the buffer has been given is done in that order.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use tanada_base::SplitMix64;

use super::FlashSpec;
use super::command::{Command, Completed, Member, Nanos, nanos, transfer_time};
use crate::Operation;

/// Ends of writes that are remembered, so that several sequential streams are seen as such.
const MOST_STREAMS: usize = 32;

/// The write that the data sheet's random IOPS are about.
const RANDOM_WRITE_BYTES: u64 = 4096;

#[derive(Debug)]
pub(super) struct Flash {
    spec: FlashSpec,
    seed: u64,
    random: SplitMix64,
    controller_free: Nanos,
    units_free: Vec<Nanos>,
    read_bus_free: Nanos,
    write_bus_free: Nanos,
    /// When the buffer will be empty.
    buffer_empty: Nanos,
    streams: VecDeque<u64>,
    settled: BinaryHeap<Reverse<(Nanos, u64)>>,
}

impl Flash {
    pub(super) fn new(spec: &FlashSpec, seed: u64) -> Flash {
        Flash {
            units_free: vec![0; usize::try_from(spec.units).unwrap_or(usize::MAX).max(1)],
            spec: spec.clone(),
            seed,
            random: SplitMix64::new(seed),
            controller_free: 0,
            read_bus_free: 0,
            write_bus_free: 0,
            buffer_empty: 0,
            streams: VecDeque::new(),
            settled: BinaryHeap::new(),
        }
    }

    fn pass_controller(&mut self, now: Nanos) -> Nanos {
        self.controller_free = self.controller_free.max(now) + nanos(self.spec.command);
        self.controller_free
    }

    /// The unit of a page: scattered, but always the same.
    fn unit_of(&self, page: u64) -> usize {
        let units = self.units_free.len() as u64;
        SplitMix64::new(self.seed ^ page.wrapping_mul(0x9e37_79b9_7f4a_7c15)).below(units) as usize
    }

    fn read(&mut self, now: Nanos, command: &Command) -> Nanos {
        let start = self.pass_controller(now);
        let is_programming = self.buffer_empty > start;
        let mut done = start;
        let first = command.offset / self.spec.page;
        let last = command.end().max(command.offset + 1).div_ceil(self.spec.page);
        for page in first..last {
            let unit = self.unit_of(page);
            let mut free = self.units_free[unit].max(start);
            if is_programming && self.chance(self.spec.programming) {
                free += self.random.below(2 * nanos(self.spec.program) + 1);
            }
            // No two reads of real cells take the same time; a tenth either way.
            let read = nanos(self.spec.read);
            let free = free + read * 9 / 10 + self.random.below(read / 5 + 1);
            self.units_free[unit] = free;
            done = done.max(free);
        }
        let transfer = transfer_time(command.len, self.spec.read_rate);
        let bus = if self.spec.half_duplex { &mut self.write_bus_free } else { &mut self.read_bus_free };
        *bus = (*bus).max(now) + transfer;
        (done + transfer).max(*bus) + nanos(self.spec.overhead)
    }

    fn write(&mut self, now: Nanos, command: &Command) -> Nanos {
        let start = self.pass_controller(now);
        let transfer = transfer_time(command.len, self.spec.read_rate.max(self.spec.write_rate));
        self.write_bus_free = self.write_bus_free.max(now) + transfer;
        let work = self.work(command);
        let buffer = transfer_time(self.spec.write_buffer, self.spec.write_rate);
        self.buffer_empty = self.buffer_empty.max(now) + work;
        // The buffer has room when what is before this write is drained far enough.
        let room = self.buffer_empty.saturating_sub(buffer.max(work));
        let latency = nanos(self.spec.write).saturating_sub(nanos(self.spec.command));
        (start + latency).max(room).max(self.write_bus_free)
    }

    /// What a write keeps the medium busy for.
    fn work(&mut self, command: &Command) -> Nanos {
        let bytes = transfer_time(command.len, self.spec.write_rate);
        if let Some(end) = self.streams.iter_mut().find(|end| **end == command.offset) {
            *end = command.end();
            return bytes;
        }
        self.streams.push_back(command.end());
        if self.streams.len() > MOST_STREAMS {
            self.streams.pop_front();
        }
        let random = 1_000_000_000 / self.spec.write_iops.max(1);
        let fixed = random.saturating_sub(transfer_time(RANDOM_WRITE_BYTES, self.spec.write_rate));
        bytes + fixed
    }

    fn sync(&mut self, now: Nanos) -> Nanos {
        let start = self.pass_controller(now);
        let drained = if self.spec.protected { start } else { self.buffer_empty.max(start) };
        drained + nanos(self.spec.sync)
    }

    fn chance(&mut self, share: f64) -> bool {
        (self.random.next_u64() >> 11) as f64 / (1u64 << 53) as f64 <= share && share > 0.0
    }
}

impl Member for Flash {
    fn arrive(&mut self, now: Nanos, command: Command) {
        let done = match command.operation {
            Operation::Read => self.read(now, &command),
            Operation::Write => self.write(now, &command),
            Operation::Sync => self.sync(now),
            Operation::Punch => self.pass_controller(now) + nanos(self.spec.overhead),
        };
        self.settled.push(Reverse((done, command.id)));
    }

    /// What it does in which order depends on the order of the commands, not on what has completed.
    fn takes_late_ones(&self) -> bool {
        true
    }

    fn advance(&mut self, now: Nanos, completed: &mut Vec<Completed>) {
        while let Some(Reverse((at, id))) = self.settled.peek().copied()
            && at <= now
        {
            self.settled.pop();
            completed.push((id, at));
        }
    }

    fn next_event(&self) -> Option<Nanos> {
        self.settled.peek().map(|Reverse((at, _))| *at)
    }

    fn set_extent(&mut self, _: u64) {}
}
