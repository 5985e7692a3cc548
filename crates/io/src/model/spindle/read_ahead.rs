//! The disk's cache for sequential reads.
//!
//! 1. The ends of the last reads are remembered. A read that starts at one of them continues a stream.
//! 2. After a read that continues a stream the head reads on, at the media rate, until the stream is a window ahead of
//!    its reader or the mechanism is wanted elsewhere.
//! 3. What was read so stays, for the last few streams; random reads are not kept.
//!
//! Invariant: `active` is where the head reads on; there is none once the head has moved.

use std::collections::VecDeque;

use crate::model::command::{Command, Nanos, transfer_time};

/// Ends of reads that are remembered, a stream's or not.
const MOST_ENDS: usize = 64;

#[derive(Debug, Clone, Copy)]
struct Stream {
    start: u64,
    /// Read up to here at `since`.
    frontier: u64,
    since: Nanos,
    /// Not read further than here.
    limit: u64,
}

#[derive(Debug)]
pub(super) struct ReadAhead {
    active: Option<Stream>,
    kept: VecDeque<(u64, u64)>,
    ends: VecDeque<u64>,
    window: u64,
    streams: usize,
    rate: u64,
}

impl ReadAhead {
    pub(super) fn new(window: u64, streams: u64, rate: u64) -> ReadAhead {
        let streams = usize::try_from(streams).unwrap_or(usize::MAX);
        ReadAhead { active: None, kept: VecDeque::new(), ends: VecDeque::new(), window, streams, rate }
    }

    fn frontier(&self, stream: &Stream, now: Nanos) -> u64 {
        let read = u128::from(now.saturating_sub(stream.since)) * u128::from(self.rate) / 1_000_000_000;
        let read = u64::try_from(read).unwrap_or(u64::MAX);
        stream.frontier.saturating_add(read).min(stream.limit).max(stream.frontier)
    }

    /// Whether all of the command's bytes have been read.
    pub(super) fn holds(&self, now: Nanos, command: &Command) -> bool {
        let within = |start: u64, end: u64| start <= command.offset && command.end() <= end;
        self.active.is_some_and(|stream| within(stream.start, self.frontier(&stream, now)))
            || self.kept.iter().any(|(start, end)| within(*start, *end))
    }

    /// If the head, reading on, comes to the command's bytes next: how long until it has them all.
    pub(super) fn reaches(&self, now: Nanos, command: &Command, track_bytes: u64) -> Option<Nanos> {
        let stream = self.active?;
        let frontier = self.frontier(&stream, now);
        let near =
            command.offset >= stream.start && command.offset <= frontier.saturating_add(track_bytes / 8);
        // Where it has stopped reading on, the platter has turned away; but a stream's reader is not made to pay for
        // its own pause.
        (near && command.end() > frontier).then(|| transfer_time(command.end() - frontier, self.rate))
    }

    /// A read was served from memory at `now`: the window moves on.
    pub(super) fn consumed(&mut self, now: Nanos, command: &Command) {
        self.note_end(command);
        if let Some(mut stream) = self.active {
            stream.frontier = self.frontier(&stream, now);
            stream.since = now;
            if command.offset >= stream.start && command.end() <= stream.frontier {
                stream.limit = stream.limit.max(command.end() + self.window);
            }
            self.active = Some(stream);
        }
    }

    /// The mechanism has read the command's bytes at `now`.
    pub(super) fn read(&mut self, now: Nanos, command: &Command) {
        let continues = self.ends.contains(&command.offset);
        let joined = self.active.filter(|stream| {
            command.offset >= stream.start && command.offset <= stream.limit.max(stream.frontier)
        });
        self.note_end(command);
        if self.window == 0 || !(continues || joined.is_some()) {
            self.active = None;
            return;
        }
        let start = joined.map_or(command.offset, |stream| stream.start);
        let limit = command.end() + self.window;
        self.active = Some(Stream { start, frontier: command.end(), since: now, limit });
    }

    /// The head leaves at `now`.
    pub(super) fn leave(&mut self, now: Nanos) {
        if let Some(stream) = self.active.take() {
            let end = self.frontier(&stream, now);
            let start = stream.start.max(end.saturating_sub(2 * self.window));
            self.kept.push_back((start, end));
            if self.kept.len() >= self.streams {
                self.kept.pop_front();
            }
        }
    }

    /// Written bytes are no longer what was read.
    pub(super) fn written(&mut self, command: &Command) {
        self.kept.retain(|(start, end)| command.end() <= *start || command.offset >= *end);
        self.active =
            self.active.filter(|stream| command.end() <= stream.start || command.offset >= stream.limit);
    }

    fn note_end(&mut self, command: &Command) {
        match self.ends.iter_mut().find(|end| **end == command.offset) {
            Some(end) => *end = command.end(),
            None => {
                self.ends.push_back(command.end());
                if self.ends.len() > MOST_ENDS {
                    self.ends.pop_front();
                }
            }
        }
    }
}
