//! RAID-0 over equal members: a request is split over them and complete when its last part is.
//!
//! 1. Segments of the array go to the members in turn. All segments of one request on one member follow each other
//!    there, so a member gets at most one command a request.
//! 2. Members are woken by a heap of their next events; entries that no longer hold are dropped when they come up.
//!
//! Invariants: a request in `requests` has at least one part under way; its parts are as many as commands with its id.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use slab::Slab;
use tanada_base::SplitMix64;

use super::command::{Command, Completed, Member, Nanos};
use super::flash::Flash;
use super::preset::MemberSpec;
use super::spec::ModelSpec;
use super::spindle::Spindle;
use crate::Operation;

#[derive(Debug)]
pub(crate) struct Array {
    members: Vec<Box<dyn Member>>,
    segment: u64,
    /// The next event of each member as it is in `events`.
    scheduled: Vec<Option<Nanos>>,
    events: BinaryHeap<Reverse<(Nanos, usize)>>,
    requests: Slab<Parts>,
    /// How far each member has come. Apart, so that one member's late arrival is not the others'.
    times: Vec<Nanos>,
    /// Members that can are given what arrives late at its own time.
    takes_late_ones: bool,
    completed: Vec<Completed>,
}

/// A request whose parts are under way.
#[derive(Debug)]
struct Parts {
    id: u64,
    left: usize,
}

impl Array {
    pub(crate) fn new(spec: &ModelSpec, seed: u64) -> Array {
        let mut seeds = SplitMix64::new(seed);
        let member = |_| -> Box<dyn Member> {
            match spec.member() {
                MemberSpec::Spindle(spindle) => Box::new(Spindle::new(spindle, seeds.next_u64())),
                MemberSpec::Flash(flash) => Box::new(Flash::new(flash, seeds.next_u64())),
            }
        };
        let members: Vec<_> = (0..spec.members()).map(member).collect();
        Array {
            scheduled: vec![None; members.len()],
            members,
            segment: spec.segment_bytes(),
            events: BinaryHeap::new(),
            requests: Slab::new(),
            times: vec![0; spec.members() as usize],
            takes_late_ones: false,
            completed: Vec::new(),
        }
    }

    /// In real time requests may arrive late.
    pub(crate) fn take_late_ones(&mut self, takes: bool) {
        self.takes_late_ones = takes;
    }

    /// The data spans `bytes` of the array's addresses.
    pub(crate) fn set_extent(&mut self, bytes: u64) {
        let each = bytes.div_ceil(self.members.len() as u64);
        self.members.iter_mut().for_each(|member| member.set_extent(each));
    }

    /// Takes a request at `now`, to which it has been advanced. Where a member is further and its order of work depends
    /// on that, the request arrives there then. `command.id` comes back when it completes.
    pub(crate) fn arrive(&mut self, now: Nanos, command: Command) {
        let parts = self.split(&command);
        let key = self.requests.insert(Parts { id: command.id, left: parts.len() });
        for (member, offset, len) in parts {
            let part = Command { id: key as u64, offset, len, ..command };
            self.times[member] = self.times[member].max(now);
            let takes_late_ones = self.takes_late_ones && self.members[member].takes_late_ones();
            let at = if takes_late_ones { now } else { self.times[member] };
            self.members[member].arrive(at, part);
            self.schedule(member);
        }
    }

    /// Member, offset there and length of every part.
    fn split(&self, command: &Command) -> Vec<(usize, u64, u64)> {
        let members = self.members.len() as u64;
        if matches!(command.operation, Operation::Sync) {
            return (0..self.members.len()).map(|member| (member, 0, 0)).collect();
        }
        let first = command.offset / self.segment;
        let last = command.end().saturating_sub(1).max(command.offset) / self.segment;
        let one = |segment: u64| {
            let from = command.offset.max(segment * self.segment);
            let to = command.end().min((segment + 1).saturating_mul(self.segment)).max(from);
            (segment / members * self.segment + from % self.segment, to - from)
        };
        // The first segments of the request, one on each member that it touches; what follows there adds to them.
        let mut parts = Vec::new();
        for segment in first..=last.min(first + members - 1) {
            let (offset, mut len) = one(segment);
            let more = (last - segment) / members;
            if more > 0 {
                len += (more - 1) * self.segment + one(segment + more * members).1;
            }
            parts.push(((segment % members) as usize, offset, len));
        }
        parts
    }

    fn schedule(&mut self, member: usize) {
        let next = self.members[member].next_event();
        if next != self.scheduled[member] {
            self.scheduled[member] = next;
            self.events.extend(next.map(|at| Reverse((at, member))));
        }
    }

    /// Works off everything until `now`; completed requests go to `done`, by time.
    pub(crate) fn advance(&mut self, now: Nanos, done: &mut Vec<Completed>) {
        while let Some(Reverse((at, member))) = self.events.peek().copied()
            && at <= now
        {
            self.events.pop();
            if self.scheduled[member] != Some(at) {
                continue;
            }
            self.scheduled[member] = None;
            let mut completed = std::mem::take(&mut self.completed);
            // Only up to this event: what other members complete in the meantime comes first.
            self.members[member].advance(at, &mut completed);
            self.times[member] = self.times[member].max(at);
            for (key, at) in completed.drain(..) {
                let parts = &mut self.requests[key as usize];
                parts.left -= 1;
                if parts.left == 0 {
                    done.push((self.requests.remove(key as usize).id, at));
                }
            }
            self.completed = completed;
            self.schedule(member);
        }
    }

    /// When to come back.
    pub(crate) fn next_event(&mut self) -> Option<Nanos> {
        while let Some(Reverse((at, member))) = self.events.peek().copied() {
            if self.scheduled[member] == Some(at) {
                return Some(at);
            }
            self.events.pop();
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(text: &str) -> Array {
        Array::new(&text.parse().unwrap(), 1)
    }

    fn command(offset: u64, len: u64) -> Command {
        Command { id: 0, operation: Operation::Read, offset, len }
    }

    #[test]
    fn a_request_goes_to_the_members_that_hold_its_segments() {
        let array = array("3xnvme:segment=1000B");
        let split = |offset, len| array.split(&command(offset, len));
        assert_eq!(split(0, 10), [(0, 0, 10)]);
        assert_eq!(split(999, 1), [(0, 999, 1)]);
        assert_eq!(split(1000, 0), [(1, 0, 0)]);
        assert_eq!(split(3900, 200), [(0, 1900, 100), (1, 1000, 100)]);
        assert_eq!(split(500, 7000), [(0, 500, 2500), (1, 0, 2500), (2, 0, 2000)]);
        let sync = Command { operation: Operation::Sync, ..command(0, 0) };
        assert_eq!(array.split(&sync).len(), 3);
    }

    #[test]
    fn a_late_request_of_an_ssd_is_over_as_if_it_had_come_in_time() {
        let times = |is_late: bool| {
            let mut array = array("sata-ssd");
            array.take_late_ones(true);
            let mut done = Vec::new();
            array.arrive(0, Command { id: 1, ..command(0, 16384) });
            if is_late {
                array.advance(1_000_000, &mut done);
                assert_eq!(done.len(), 1);
            }
            array.arrive(50_000, Command { id: 2, ..command(1 << 20, 16384) });
            array.advance(1_000_000, &mut done);
            done
        };
        assert_eq!(times(true), times(false));
        assert!(times(true)[1].1 < 300_000, "{:?}", times(true));
    }

    #[test]
    fn parts_are_the_whole() {
        let array = array("5xnvme:segment=512B");
        let mut random = SplitMix64::new(3);
        for _ in 0..10_000 {
            let (offset, len) = (random.below(20_000), 1 + random.below(20_000));
            let parts = array.split(&command(offset, len));
            assert_eq!(parts.iter().map(|(_, _, len)| len).sum::<u64>(), len);
            // Every byte, by its own small request, lies in the part of its member.
            let byte = offset + random.below(len);
            let [(member, place, 1)] = array.split(&command(byte, 1))[..] else { panic!("one part") };
            assert!(
                parts.iter().any(|(other, start, len)| {
                    *other == member && *start <= place && place < start + len
                })
            );
        }
    }
}
