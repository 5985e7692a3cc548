//! Reading the log when a database is opened.
//!
//! 1. The segments that may belong to it are those whose number is not smaller than that of the segment where the
//!    manifest has the replay begin. The first group of a segment says where in the log it lies.
//! 2. Groups are read one after another, and frames in them. Where a segment's groups end, the segment that begins just
//!    there goes on, of several the one of the latest opening: the others were cut off by it.
//! 3. At the first frame that is not whole the log ends. If the manifest, or any group that can still be read, says
//!    that the log was durable beyond that, then it is damaged; if nothing does, it is what a stop left of writes that
//!    nobody was told of, and is cut off.
//!
//! Invariant: a frame is given only if all frames before it were. What groups say of durability holds whoever wrote
//! them, because no opening ever cuts off what was durable.

use std::sync::Arc;

use tanada_volume::Object;

use super::frame::{Frame, claimed_frame, decode_frame};
use super::group::{GROUP_HEADER, GroupHeader, LOG_FORMAT};
use super::segment::PlacedSegment;
use super::{BLOCK, Lsn};
use crate::entry::SegmentNo;
use crate::objects::{Lease, ObjectKind, Objects};
use crate::opening::RecoveryProgress;
use crate::value::Segments;
use crate::{Error, ErrorKind, Result};

/// Bytes that one I/O of the replay reads.
const READ_WINDOW_BYTES: u64 = 2 << 20;

/// The manifest's record of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReplayFrom {
    /// The database's identity.
    pub(crate) database: u64,
    /// Position where the replay begins: a group, or the end of the log.
    pub(crate) lsn: Lsn,
    /// The segment where that is, if the log had begun.
    pub(crate) segment: Option<SegmentNo>,
    /// The log was durable up to here at least.
    pub(crate) durable: Lsn,
    /// The first frame that is torn is taken for whole: only as a bug.
    pub(crate) takes_torn: bool,
}

/// The result of a replay.
#[derive(Debug)]
pub(crate) struct Replayed {
    /// Position of the first incomplete frame.
    pub(crate) cut: Lsn,
    /// Position where the log continues, in a new segment: the next block.
    pub(crate) end: Lsn,
    /// The segments that were read, in their order.
    pub(crate) segments: Vec<PlacedSegment>,
    /// The last of them, and how much of it is in use.
    pub(crate) last: Option<(Object, u64)>,
}

/// The place of a replayed frame.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FramePlace {
    pub(crate) segment: SegmentNo,
    /// Offset of the payload in the segment.
    pub(crate) payload: u64,
}

/// A part of an object in memory.
struct Window {
    object: Object,
    start: u64,
    bytes: Vec<u8>,
}

impl Window {
    fn new(object: Object) -> Window {
        Window { object, start: 0, bytes: Vec::new() }
    }

    /// `len` bytes at `offset`, fewer at the object's end.
    async fn at(&mut self, offset: u64, len: u64) -> Result<&[u8]> {
        let end = (offset + len).min(self.object.size_bytes());
        if offset < self.start || end > self.start + self.bytes.len() as u64 {
            let wanted = len.max(READ_WINDOW_BYTES) as usize;
            let read = self.object.read_bytes(offset, wanted).await;
            self.bytes = read.map_err(|error| Error::volume("cannot read the log", &error))?;
            self.start = offset;
        }
        let from = ((offset - self.start) as usize).min(self.bytes.len());
        let to = (from + len as usize).min(self.bytes.len());
        Ok(&self.bytes[from..to])
    }
}

/// A segment that may be part of the log.
struct Candidate {
    no: SegmentNo,
    lease: Lease,
    window: Window,
    /// Its first group.
    first: Option<GroupHeader>,
}

impl Candidate {
    fn start(&self) -> Option<Lsn> {
        self.first.map(|group| group.lsn)
    }
}

struct Replay<'a> {
    from: ReplayFrom,
    candidates: Vec<Candidate>,
    progress: RecoveryProgress,
    on_progress: &'a mut (dyn FnMut(&RecoveryProgress) + Send),
}

/// Reads the log: every whole frame in its order is given to `on_frame`. `candidates` are the numbers of all segments
/// that may be part of it.
///
/// # Errors
/// `Corrupted` if the log ends before something that is known to have been durable, `FutureFormat`, `Device`, or what
/// `on_frame` gives.
pub(crate) async fn replay(
    objects: &Arc<Objects>,
    segments: &Segments,
    candidates: &[SegmentNo],
    from: ReplayFrom,
    on_frame: &mut (dyn FnMut(Frame, FramePlace) -> Result<()> + Send),
    on_progress: &mut (dyn FnMut(&RecoveryProgress) + Send),
) -> Result<Replayed> {
    let mut replay =
        Replay { from, candidates: Vec::new(), progress: RecoveryProgress::default(), on_progress };
    for no in candidates {
        replay.add(objects, *no).await?;
    }
    replay.run(segments, on_frame).await
}

impl Replay<'_> {
    async fn add(&mut self, objects: &Arc<Objects>, no: SegmentNo) -> Result<()> {
        let (lease, object) = objects.open(ObjectKind::Segment, no)?;
        self.progress.total_bytes += object.size_bytes();
        let mut window = Window::new(object);
        let first = GroupHeader::decode(window.at(0, GROUP_HEADER as u64).await?);
        let first = first.filter(|group| group.database == self.from.database && group.segment == no);
        if let Some(group) = first
            && group.format > LOG_FORMAT
        {
            return Err(Error::new(
                ErrorKind::FutureFormat,
                format!("log segment {no} has format {}, and this program knows {LOG_FORMAT}", group.format),
            ));
        }
        self.candidates.push(Candidate { no, lease, window, first });
        Ok(())
    }

    /// The segment that goes on at `lsn`, not older than `epoch`.
    fn successor(&self, lsn: Lsn, epoch: u64) -> Option<usize> {
        let goes_on = |group: &GroupHeader| group.lsn == lsn && group.epoch >= epoch;
        let matching = self.candidates.iter().enumerate();
        let matching = matching.filter_map(|(i, candidate)| Some((i, candidate.first.filter(goes_on)?)));
        matching.max_by_key(|(_, group)| group.epoch).map(|(i, _)| i)
    }

    async fn run(
        mut self,
        values: &Segments,
        on_frame: &mut (dyn FnMut(Frame, FramePlace) -> Result<()> + Send),
    ) -> Result<Replayed> {
        let mut end = self.from.lsn;
        let begin = self.from.segment;
        let contains = |candidate: &Candidate| {
            Some(candidate.no) == begin && candidate.start().is_some_and(|start| start <= end)
        };
        let mut current = self.candidates.iter().position(contains).or_else(|| self.successor(end, 0));
        let mut segments = Vec::new();
        let mut last = None;
        let mut cut = end;
        while let Some(i) = current {
            let Some(first) = self.candidates[i].first else { break };
            let placed = &self.candidates[i];
            let segment = values.add(placed.lease.clone(), placed.window.object.clone());
            segments.push(PlacedSegment { no: placed.no, segment, start: first.lsn });
            let (read, is_torn) = self.read_segment(i, first, end, on_frame).await?;
            cut = read;
            end = cut.next_multiple_of(BLOCK);
            last = Some((self.candidates[i].window.object.clone(), end - first.lsn));
            // Behind a torn frame only what a later opening wrote goes on, which has cut it off: the next segment of
            // the same opening may begin in the very next block.
            let next = self.successor(end, first.epoch + u64::from(is_torn));
            // A segment whose first group is not whole is its own successor.
            current = next.filter(|next| segments.iter().all(|read| read.no != self.candidates[*next].no));
        }
        self.check_end(cut).await?;
        Ok(Replayed { cut, end, segments, last })
    }

    /// Reads the groups of a segment from `lsn` on; where the first frame is that is not whole, or the first group; and
    /// whether it is a frame.
    async fn read_segment(
        &mut self,
        i: usize,
        first: GroupHeader,
        mut lsn: Lsn,
        on_frame: &mut (dyn FnMut(Frame, FramePlace) -> Result<()> + Send),
    ) -> Result<(Lsn, bool)> {
        let takes_torn = self.from.takes_torn;
        let candidate = &mut self.candidates[i];
        loop {
            let offset = lsn - first.lsn;
            let bytes = candidate.window.at(offset, GROUP_HEADER as u64).await?;
            let expected = |group: &GroupHeader| {
                let same = |group: &GroupHeader| (group.segment, group.database, group.epoch);
                same(group) == same(&first) && group.lsn == lsn
            };
            let Some(group) = GroupHeader::decode(bytes).filter(expected) else { return Ok((lsn, false)) };
            let bytes = candidate.window.at(offset, u64::from(group.len)).await?;
            let mut at = GROUP_HEADER;
            while at < group.len as usize {
                let rest = bytes.get(at..).unwrap_or_default();
                let whole = decode_frame(rest, lsn + at as u64, first.epoch);
                let torn = || takes_torn.then(|| claimed_frame(rest, lsn + at as u64, first.epoch)).flatten();
                let Some(frame) = whole.or_else(torn) else {
                    return Ok((lsn + at as u64, true));
                };
                let payload = offset + (at + super::frame::FRAME_HEADER) as u64;
                at += frame.payload.frame_len();
                self.progress.operations += u64::from(frame.payload.operations);
                on_frame(frame, FramePlace { segment: candidate.no, payload })?;
            }
            lsn += group.padded_len();
            self.progress.replayed_bytes += group.padded_len();
            (self.on_progress)(&self.progress);
        }
    }

    /// Fails if the log was durable beyond `end`.
    async fn check_end(&mut self, end: Lsn) -> Result<()> {
        let starts = self.candidates.iter().filter_map(|candidate| Some((candidate.start()?, candidate)));
        let last = starts.filter(|(start, _)| *start <= end).max_by_key(|(start, _)| *start);
        let place = last.map_or_else(
            || "of which no segment is whole".to_owned(),
            |(start, candidate)| {
                format!("offset {} of object {:?}", end - start, candidate.window.object.name())
            },
        );
        let damaged = |durable: Lsn, who: &str| {
            Err(Error::corrupted(format!(
                "the log is damaged at LSN {end} ({place}): it ends there, and was durable up to LSN {durable} as {who} says; restore the database from a copy"
            )))
        };
        if self.from.durable > end {
            return damaged(self.from.durable, "the manifest");
        }
        for candidate in &mut self.candidates {
            let size = candidate.window.object.size_bytes();
            // Bytes before the end were read; nothing was of a segment without a beginning.
            let read = candidate.first.map_or(0, |first| end.saturating_sub(first.lsn));
            let mut offset = read.next_multiple_of(BLOCK);
            while offset < size {
                let bytes = candidate.window.at(offset, GROUP_HEADER as u64).await?;
                let group = GroupHeader::decode(bytes);
                let group = group
                    .filter(|group| group.database == self.from.database && group.segment == candidate.no);
                if let Some(group) = group
                    && group.durable > end
                {
                    return damaged(
                        group.durable,
                        &format!("the group at offset {offset} of segment {}", candidate.no),
                    );
                }
                offset += BLOCK;
            }
        }
        Ok(())
    }
}
