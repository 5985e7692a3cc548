//! Reads many values at once, as they are stored, with as few I/Os as make sense: neighbours in a segment come
//! together, gaps included.

use crate::tuning::reads::BATCHES;
use std::collections::HashMap;
use std::ops::Range;

use bytes::Bytes;
use futures::stream::{FuturesUnordered, TryStreamExt};
use tanada_volume::BLOCK_BYTES;

use super::{Room, Segment};
use crate::Result;
use crate::entry::{Pointer, SegmentNo};
use crate::notify::yield_now;
use crate::pace::Pace;
use crate::slices::{self, Slices};

/// Values that lie close together.
struct Run {
    segment: Segment,
    /// Their bytes in the segment.
    bytes: Range<u64>,
    /// Their range in the order of reads.
    members: Range<usize>,
}

impl Run {
    /// Returns the beginning of their first block.
    fn from(&self) -> u64 {
        self.bytes.start / BLOCK_BYTES * BLOCK_BYTES
    }

    /// Returns the end of their last block.
    fn end(&self) -> u64 {
        end_of_block(self.bytes.end)
    }
}

fn end_of_block(offset: u64) -> u64 {
    offset.checked_next_multiple_of(BLOCK_BYTES).unwrap_or(u64::MAX)
}

/// The treatment of damaged values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Damaged {
    /// Nothing is read.
    Fails,
    /// The value is read once more and passed on as it is if that fails, with its checksum, so that a later reader gets
    /// the error.
    IsPassedOn,
}

/// Values that are read together.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading<'a> {
    pub(crate) pointers: &'a [Pointer],
    pub(crate) segments: &'a HashMap<SegmentNo, Segment>,
    pub(crate) pace: &'a Pace,
    /// Memory for values: reads without it wait; when it is closed, the remaining reads are skipped.
    pub(crate) room: &'a Room,
    /// Bytes that may be on their way at once, beside the space that they have when they are there.
    pub(crate) on_their_way: u64,
    pub(crate) damaged: Damaged,
}

/// The stored bytes of all `pointers`, in their order, and how many bytes were read for that. Values that were not read
/// because `room` was closed are empty.
///
/// # Errors
/// `Corrupted` if what is there is not what was written and that is not passed on, or if a device fails.
pub(crate) async fn read_stored(
    pointers: &[Pointer],
    segments: &HashMap<SegmentNo, Segment>,
    (pace, room): (&Pace, &Room),
    damaged: Damaged,
) -> Result<(Vec<Bytes>, u64)> {
    let wanted: u64 = pointers.iter().map(|pointer| u64::from(pointer.stored_len)).sum();
    // Reads in flight need little memory beside the values that have arrived.
    let reading = Reading { pointers, segments, pace, room, on_their_way: wanted / 8, damaged };
    let mut stored = vec![Bytes::new(); pointers.len()];
    let bytes_read = read_each(reading, |index, value| stored[index] = value).await?;
    Ok((stored, bytes_read))
}

/// Passes the indices and the stored bytes of all values to `each`, about in the order of their places, and says how
/// many bytes were read for that.
///
/// # Errors
/// As [`read_stored`].
pub(crate) async fn read_each(reading: Reading<'_>, mut each: impl FnMut(usize, Bytes)) -> Result<u64> {
    let Reading { pointers, segments, pace, room, on_their_way, damaged } = reading;
    let order = by_place(pointers).await;
    let runs = runs((pointers, &order), segments, on_their_way).await;
    let bytes_read: u64 = runs.iter().map(|run| run.end() - run.from()).sum();
    let read = |run: Run| async move {
        let bytes = run.segment.read_run(run.bytes.clone()).await?;
        Ok::<_, crate::Error>((run, bytes))
    };
    let wanted = |run: &Run| -> u64 {
        order[run.members.clone()].iter().map(|index| u64::from(pointers[*index].stored_len)).sum()
    };
    // Gaps that are read along do not count: a job that needs little of a log would otherwise be paced too slowly.
    let mut walk = pace.walk();
    let mut waiting = runs.into_iter().peekable();
    let mut under_way = FuturesUnordered::new();
    let (mut values, mut value_bytes) = (0, 0);
    loop {
        let at_once = walk.at_once(BATCHES.concurrent_reads);
        let more = room.more();
        if room.is_closed() {
            // Their consumer has failed.
            waiting = Vec::new().into_iter().peekable();
        }
        while under_way.len() < at_once
            && let Some(run) = waiting.next_if(|run| room.take(wanted(run)))
        {
            under_way.push(read(run));
        }
        if under_way.is_empty() && waiting.peek().is_some() {
            more.await;
            continue;
        }
        let Some((run, bytes)) = under_way.try_next().await? else { break };
        // Values would hold on to the memory of all that was read with them, until the last of them is written.
        let is_alone = run.members.len() == 1 && wanted(&run) >= bytes.len() as u64 / 8 * 7;
        values += run.members.len();
        value_bytes += wanted(&run);
        let run_bytes = wanted(&run);
        for index in order[run.members.clone()].iter().copied() {
            let pointer = &pointers[index];
            let at = (pointer.offset - run.from()) as usize;
            let value = bytes.get(at..at + pointer.stored_len as usize);
            let value =
                value.ok_or_else(|| run.segment.corrupted(pointer, "a value ends behind its segment"))?;
            let value = if is_alone { bytes.slice_ref(value) } else { Bytes::copy_from_slice(value) };
            let value = match run.segment.check(pointer, value) {
                Err(_) if damaged == Damaged::IsPassedOn => run.segment.read_unchecked(pointer).await?,
                checked => checked?,
            };
            each(index, value);
        }
        if values >= BATCHES.values_per_slice || value_bytes >= BATCHES.bytes_per_slice {
            (values, value_bytes) = (0, 0);
            yield_now().await;
        }
        walk.rest(run_bytes).await;
    }
    Ok(bytes_read)
}

/// Bytes of a read where all that are done at once have `at_once_bytes`; one that is larger is of one value. Buffers
/// are powers of two.
pub(crate) fn largest_read(at_once_bytes: u64) -> u64 {
    1 << (at_once_bytes / BATCHES.concurrent_reads as u64)
        .clamp(BATCHES.min_run_bytes, BATCHES.max_run_bytes)
        .ilog2()
}

/// Indices of pointers in the order of their places.
async fn by_place(pointers: &[Pointer]) -> Vec<usize> {
    // Keys of the sort are contiguous.
    let places = pointers.iter().enumerate();
    let places = places.map(|(index, pointer)| (pointer.segment, pointer.offset, index)).collect();
    slices::sorted::<(SegmentNo, u64, usize)>(places).await.into_iter().map(|(.., index)| index).collect()
}

/// Returns for each value whether at most `BATCHES.max_mirrored_neighbours` of the others are next to it.
pub(crate) async fn have_few_neighbours(pointers: &[Pointer]) -> Vec<bool> {
    let is_together = |a: &usize, b: &usize| {
        let (a, b) = (&pointers[*a], &pointers[*b]);
        let end = a.offset.saturating_add(u64::from(a.stored_len));
        a.segment == b.segment && b.offset <= end.saturating_add(BATCHES.max_gap_bytes)
    };
    let mut have_few = vec![false; pointers.len()];
    for run in by_place(pointers)
        .await
        .chunk_by(is_together)
        .filter(|run| run.len() <= BATCHES.max_mirrored_neighbours)
    {
        run.iter().for_each(|index| have_few[*index] = true);
    }
    have_few
}

/// Pointers in the `order` of their places, neighbours together, where all runs that are read at once have
/// `at_once_bytes`.
async fn runs(
    (pointers, order): (&[Pointer], &[usize]),
    segments: &HashMap<SegmentNo, Segment>,
    at_once_bytes: u64,
) -> Vec<Run> {
    let run_bytes = largest_read(at_once_bytes);
    let mut runs: Vec<Run> = Vec::new();
    let mut portions = Slices::default();
    for (place, index) in order.iter().enumerate() {
        let pointer = &pointers[*index];
        let end = pointer.offset.saturating_add(u64::from(pointer.stored_len));
        let last = runs.last_mut().filter(|run| {
            run.segment.no() == pointer.segment
                && pointer.offset / BLOCK_BYTES * BLOCK_BYTES
                    <= run.end().saturating_add(BATCHES.max_gap_bytes)
                && end_of_block(end).saturating_sub(run.from()) <= run_bytes
        });
        if let Some(run) = last {
            run.bytes.end = run.bytes.end.max(end);
            run.members.end = place + 1;
        } else if let Some(segment) = segments.get(&pointer.segment) {
            let bytes = pointer.offset..end;
            runs.push(Run { segment: segment.clone(), bytes, members: place..place + 1 });
        }
        portions.note().await;
    }
    runs
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;

    use super::*;
    use crate::entry::Codec;

    #[test]
    fn values_close_in_a_segment_are_read_together() {
        let pointer = |segment, offset| Pointer {
            segment,
            offset,
            stored_len: 1000,
            len: 1000,
            codec: Codec::None,
            checksum: 0,
        };
        // Five that lie together, whatever their order; two in another segment, of which one far away; one at the end
        // of what there can be.
        let mut pointers: Vec<Pointer> = (0..5).map(|no| pointer(7, 80_000 - no * 10_000)).collect();
        pointers.extend([pointer(8, 40_000), pointer(8, 500_000), pointer(9, u64::MAX - 10)]);
        let have_few = |pointers: &[Pointer]| block_on(have_few_neighbours(pointers));
        assert_eq!(have_few(&pointers), [false, false, false, false, false, true, true, true]);
        assert_eq!(have_few(&pointers[1..5]), [true; 4]);
        assert_eq!(have_few(&[]), [false; 0]);
    }
}
