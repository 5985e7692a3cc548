//! Values that a spill moves, before their keys are written.
//!
//! The log has values in no order of their keys: to read it for one part of the keys after the other would be to read
//! nearly all of it each time.
//!
//! 1. A *round* goes through the merge ahead of what is written, and notes where values lie: as many as there is memory
//!    for.
//! 2. They are divided into *parts*, neighbours in the order of their keys, each as large as a segment. Those of keys
//!    that were written more than once in what is merged are *hot*: they have parts of their own, which will soon be
//!    garbage as a whole, unless there are too few of them.
//! 3. The log is read once, from its beginning to its end. Values wait in memory; when there is little space left, the
//!    part that most of them belong to is written to its segment, in the order of its keys. So a part is made of few
//!    runs, and what lies side by side is read together.
//! 4. What writes the keys asks for the new places, in the same order.

use crate::tuning::tree::JOBS;
use std::collections::{BTreeSet, HashMap};

use bytes::Bytes;
use parking_lot::Mutex;

use super::JobContext;
use super::sink::{Moved, Sink};
use crate::entry::{Content, Pointer, SegmentNo};
use crate::keyfile::KeyCursor;
use crate::merge::{Groups, Retention};
use crate::notify::{Notify, yield_now};
use crate::value::{Damaged, Reading, Room, Segment, largest_read, read_each};
use crate::{Error, Result};

/// Bytes that say of a value where it lies, in which order that is read, to which part it goes, and its new place and
/// mirror. In all no more than half of the memory of a batch.
const PLACE_BYTES: u64 =
    (size_of::<Pointer>() + size_of::<usize>() + size_of::<u16>() + size_of::<Option<Moved>>()) as u64;

/// Returns how many values a round moves with this batch memory.
pub(crate) fn values_of_a_round(batch_bytes: u64) -> u64 {
    (batch_bytes / 2 / PLACE_BYTES).max(1)
}

/// Returns how many bytes a round moves into segments of this size.
pub(crate) fn bytes_of_a_round(segment_bytes: u64) -> u64 {
    JOBS.max_parts.saturating_mul(segment_bytes)
}

/// Values to be moved in one go.
#[derive(Debug, Default)]
struct Round {
    /// Their places, in key order.
    pointers: Vec<Pointer>,
    /// The part that each belongs to; before they are divided, 0 if it is cold, 1 if it is hot.
    parts: Vec<u16>,
    /// Bytes of cold and of hot values in the round.
    bytes: [u64; 2],
    /// Bytes of the largest value.
    most_bytes: u64,
}

impl Round {
    fn add(&mut self, pointer: &Pointer, is_hot: bool) {
        let bytes = u64::from(pointer.stored_len);
        self.pointers.push(*pointer);
        self.parts.push(u16::from(is_hot));
        self.bytes[usize::from(is_hot)] += bytes;
        self.most_bytes = self.most_bytes.max(bytes);
    }

    fn all_bytes(&self) -> u64 {
        self.bytes.iter().sum()
    }

    /// Says of each value which part it belongs to, of no more than `part_bytes` each but for a value that has more;
    /// parts with even numbers are cold. The first two parts have space for `left_bytes`. Returns the last ones, cold
    /// and hot.
    fn divide(&mut self, part_bytes: u64, left_bytes: [u64; 2]) -> [usize; 2] {
        let (mut left, mut last) = (left_bytes, [0, 1]);
        for (pointer, part) in self.pointers.iter().zip(&mut self.parts) {
            let bytes = u64::from(pointer.stored_len);
            let (left, last) = (&mut left[usize::from(*part)], &mut last[usize::from(*part)]);
            // The overflow of a full part goes to a further segment of it.
            if bytes > *left && *left < part_bytes && u64::from(*last) < 4 * JOBS.max_parts {
                *last += 2;
                *left = part_bytes;
            }
            *left = left.saturating_sub(bytes);
            *part = *last;
        }
        last.map(usize::from)
    }
}

/// Division of a batch's memory among the values of a round, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Memory {
    /// For values that were read and not yet written.
    room_bytes: u64,
    /// For reads in flight.
    on_their_way: u64,
    /// A part is written when this much waits; below it there is space for another read.
    most_waiting: u64,
}

impl Memory {
    fn of(round: &Round, batch_bytes: u64) -> Memory {
        let values = round.pointers.len() as u64;
        let memory = batch_bytes.saturating_sub(values * PLACE_BYTES);
        let on_their_way = memory / JOBS.in_flight_divisor;
        let of_one_read = round.most_bytes.max(largest_read(on_their_way));
        let all_bytes = round.all_bytes();
        let share = all_bytes as f64 / (all_bytes + values * JOBS.waiting_overhead_bytes).max(1) as f64;
        let room_bytes = ((memory as f64 * share) as u64).max(2 * of_one_read);
        let most_waiting = (room_bytes / 8 * 7).min(room_bytes - of_one_read);
        Memory { room_bytes, on_their_way, most_waiting }
    }
}

/// Values that were read and are not written yet.
#[derive(Debug)]
struct Waiting {
    /// Their bytes and they themselves with their indices, by part.
    parts: Vec<(u64, Vec<(usize, Bytes)>)>,
    bytes: u64,
    /// Waiting bytes at which a part is written.
    most_bytes: u64,
    /// Nothing more comes.
    are_all: bool,
}

impl Waiting {
    /// Returns whether a part is to be written.
    fn is_full(&self) -> bool {
        self.are_all || self.bytes >= self.most_bytes
    }

    /// The part with most of them, unless there is none.
    fn take_largest(&mut self) -> Option<(usize, Vec<(usize, Bytes)>)> {
        let largest = (0..self.parts.len()).max_by_key(|part| self.parts[*part].0)?;
        let (bytes, values) = std::mem::take(&mut self.parts[largest]);
        self.bytes -= bytes;
        (!values.is_empty()).then_some((largest, values))
    }
}

/// Moves values ahead of what writes their keys.
pub(super) struct Moves<'a> {
    context: &'a JobContext,
    /// Segments that they leave.
    left: BTreeSet<SegmentNo>,
    /// Ahead of what is written.
    ahead: Groups<KeyCursor>,
    retention: Retention,
    /// Values of the last round: old and new places.
    pointers: Vec<Pointer>,
    moved: Vec<Option<Moved>>,
    next: usize,
}

impl<'a> Moves<'a> {
    /// Moves the values of a merge in the segments `left`.
    pub(super) fn new(
        context: &'a JobContext,
        left: BTreeSet<SegmentNo>,
        ahead: Groups<KeyCursor>,
    ) -> Moves<'a> {
        // Being at the bottom matters for deletes only.
        let readers = context.readers.clone();
        let retention = Retention { readers, now_s: context.now_s, is_bottom: false };
        Moves { context, left, ahead, retention, pointers: Vec::new(), moved: Vec::new(), next: 0 }
    }

    /// Returns whether a value that lies there is one of them.
    pub(super) fn are_from(&self, pointer: &Pointer) -> bool {
        self.left.contains(&pointer.segment)
    }

    /// Returns the new place of the next version's value, which was at `from`.
    ///
    /// # Errors
    /// `NoSpace`, `Corrupted`, or if a device fails.
    pub(super) async fn next(
        &mut self,
        from: &Pointer,
        segments: &HashMap<SegmentNo, Segment>,
        sink: &mut Sink<'_>,
    ) -> Result<Moved> {
        if self.next == self.pointers.len() {
            self.move_more(segments, sink).await?;
        }
        let next = self.pointers.get(self.next).zip(self.moved.get(self.next));
        self.next += 1;
        match next {
            Some((pointer, Some(moved))) if pointer == from => Ok(*moved),
            _ => Err(Error::corrupted(format!("a job has lost the value at {from:?}"))),
        }
    }

    /// The next values, as many as there is memory for.
    async fn round(&mut self) -> Result<Round> {
        let mut round = Round::default();
        let most_values = values_of_a_round(self.context.batch_bytes);
        let most_bytes = bytes_of_a_round(self.context.segment_bytes);
        let mut keys = 0usize;
        while (round.pointers.len() as u64) < most_values
            && round.all_bytes() < most_bytes
            && self.ahead.next(&self.retention).await?
        {
            keys += 1;
            if keys.is_multiple_of(JOBS.versions_per_slice) {
                yield_now().await;
            }
            let is_hot = self.ahead.is_hot();
            let (_, versions) = self.ahead.group();
            for version in versions.iter() {
                if let Content::At(pointer) = &version.content
                    && self.left.contains(&pointer.segment)
                {
                    round.add(pointer, is_hot);
                }
            }
        }
        Ok(round)
    }

    async fn move_more(&mut self, segments: &HashMap<SegmentNo, Segment>, sink: &mut Sink<'_>) -> Result<()> {
        (self.pointers, self.moved, self.next) = (Vec::new(), Vec::new(), 0);
        let mut round = self.round().await?;
        if !sink.are_apart(round.bytes) {
            round.parts.fill(0);
        }
        sink.begin_parts(round.all_bytes());
        let last = round.divide(sink.part_bytes(), sink.left_bytes());
        let memory = Memory::of(&round, self.context.batch_bytes);
        let room = Room::of(memory.room_bytes);
        let waiting = Mutex::new(Waiting {
            parts: vec![(0, Vec::new()); last[0].max(last[1]) + 1],
            bytes: 0,
            most_bytes: memory.most_waiting,
            are_all: false,
        });
        let come = Notify::default();
        let mut moved = vec![None; round.pointers.len()];
        let (pointers, parts) = (&round.pointers, &round.parts);
        let read = async {
            let pace = &self.context.pace;
            let on_their_way = memory.on_their_way;
            let damaged = Damaged::IsPassedOn;
            let reading = Reading { pointers, segments, pace, room: &room, on_their_way, damaged };
            let read = read_each(reading, |index, value| {
                let mut waiting = waiting.lock();
                waiting.bytes += value.len() as u64;
                let (bytes, values) = &mut waiting.parts[usize::from(parts[index])];
                *bytes += value.len() as u64;
                values.push((index, value));
                if waiting.is_full() {
                    come.notify();
                }
            });
            let read = read.await;
            waiting.lock().are_all = true;
            come.notify();
            read
        };
        let write = async {
            let written = write_parts(sink, (&waiting, &come, &room), pointers, &mut moved).await;
            if written.is_err() {
                room.close();
            }
            written
        };
        // Neither is given up in the middle of an I/O because the other one fails.
        let (read, written) = futures::join!(read, write);
        written?;
        sink.output.value_bytes_read += read?;
        sink.end_parts(last).await?;
        (self.pointers, self.moved) = (round.pointers, moved);
        Ok(())
    }
}

/// Writes what comes until all has come, and says where it is.
async fn write_parts(
    sink: &mut Sink<'_>,
    (waiting, come, room): (&Mutex<Waiting>, &Notify, &Room),
    pointers: &[Pointer],
    moved: &mut [Option<Moved>],
) -> Result<()> {
    loop {
        let more = come.notified();
        let (full, are_all) = {
            let mut waiting = waiting.lock();
            (waiting.is_full().then(|| waiting.take_largest()).flatten(), waiting.are_all)
        };
        match full {
            Some((part, mut values)) => {
                values.sort_unstable_by_key(|(index, _)| *index);
                let mut bytes = 0;
                for (index, value) in values {
                    moved[index] = Some(sink.relocate(&pointers[index], &value, part).await?);
                    drop(value);
                    let stored_len = u64::from(pointers[index].stored_len);
                    room.give(stored_len);
                    bytes += stored_len;
                    if bytes >= JOBS.bytes_per_slice {
                        bytes = 0;
                        yield_now().await;
                    }
                }
                sink.settle(part).await?;
            }
            None if are_all => return Ok(()),
            None => more.await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Codec;

    fn round(values: &[(u32, bool)]) -> Round {
        let mut round = Round::default();
        for (stored_len, is_hot) in values {
            let pointer = Pointer {
                segment: 1,
                offset: 0,
                stored_len: *stored_len,
                len: *stored_len,
                codec: Codec::None,
                checksum: 0,
            };
            round.add(&pointer, *is_hot);
        }
        round
    }

    #[test]
    fn parts_fill_segments_and_the_first_ones_go_on_where_others_ended() {
        let mut mixed =
            round(&[(60, false), (30, true), (50, false), (300, false), (10, false), (80, true), (30, true)]);
        assert_eq!((mixed.bytes, mixed.most_bytes), ([420, 140], 300));
        assert_eq!(mixed.divide(100, [70, 100]), [6, 5]);
        assert_eq!(mixed.parts, [0, 1, 2, 4, 6, 3, 5]);
    }

    /// Or the one who reads and the one who writes would wait for each other.
    #[test]
    fn readers_of_a_round_have_memory_until_a_part_is_written() {
        for (stored_len, values) in [(1000, 5000), (300, 20_000), (64 << 20, 2), (1, 1)] {
            let round = round(&vec![(stored_len, false); values]);
            for batch_bytes in [0, 100_000, 1 << 20, 64 << 20] {
                let memory = Memory::of(&round, batch_bytes);
                let of_one_read = round.most_bytes.max(largest_read(memory.on_their_way));
                assert!(memory.most_waiting > 0 && memory.most_waiting + of_one_read <= memory.room_bytes);
                assert!(memory.room_bytes <= batch_bytes.max(2 * of_one_read), "{memory:?}");
            }
        }
    }

    #[test]
    fn the_number_of_parts_of_a_round_is_bounded() {
        let mut large = round(&vec![(200, false); 1000]);
        assert_eq!(large.divide(100, [100, 100]), [4 * JOBS.max_parts as usize, 1]);
    }
}
