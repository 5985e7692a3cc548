//! Telling long sequential streams from the rest, as caches do that pass them by.
//!
//! Each query and cause is a stream of its own here; its run of sequential bytes ends with the first I/O that is not
//! sequential.

use std::collections::HashMap;

use tanada_placement::Io;

/// Streams that are remembered; when there are more, all are forgotten.
const MOST_STREAMS: usize = 1024;

#[derive(Debug, Clone, Default)]
pub(super) struct Streams(HashMap<(u32, u16), u64>);

impl Streams {
    /// Notes an I/O; the sequential bytes that its stream has come to.
    pub(super) fn note(&mut self, io: &Io) -> u64 {
        if self.0.len() >= MOST_STREAMS {
            self.0.clear();
        }
        let run = self.0.entry((io.query.0, io.cause.0)).or_default();
        *run = if io.is_sequential { *run + u64::from(io.bytes) } else { u64::from(io.bytes) };
        *run
    }
}
