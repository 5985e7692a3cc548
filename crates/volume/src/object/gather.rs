//! One request that became several: their buffers come together again, and the last one completes it.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tanada_io::{Buffer, Completion};

/// The whole of a request whose parts are under way.
#[derive(Debug)]
pub(super) struct Gather {
    remaining: AtomicUsize,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// What comes before the first part, then the parts.
    pieces: Vec<Option<Buffer>>,
    error: Option<io::Error>,
    completion: Option<Completion>,
    bytes: usize,
}

impl Gather {
    /// `bytes` are reported when all `parts` are there; `head` is what lies before them in the buffer.
    pub(super) fn new(parts: usize, head: Option<Buffer>, bytes: usize, completion: Completion) -> Gather {
        let mut pieces = vec![head];
        pieces.resize_with(parts + 1, || None);
        let state = State { pieces, error: None, completion: Some(completion), bytes };
        Gather { remaining: AtomicUsize::new(parts), state: Mutex::new(state) }
    }

    /// Part `index` is done. Whether all of them are: then the request was completed.
    pub(super) fn done(&self, index: usize, result: io::Result<()>, buffer: Option<Buffer>) -> bool {
        {
            let mut state = self.state.lock();
            if let Some(piece) = state.pieces.get_mut(index + 1) {
                *piece = buffer;
            }
            if let Err(error) = result {
                state.error.get_or_insert(error);
            }
        }
        if self.remaining.fetch_sub(1, Ordering::SeqCst) != 1 {
            return false;
        }
        let (pieces, error, completion, bytes) = {
            let mut state = self.state.lock();
            (std::mem::take(&mut state.pieces), state.error.take(), state.completion.take(), state.bytes)
        };
        if let Some(completion) = completion {
            completion.complete(error.map_or(Ok(bytes), Err), join(pieces));
        }
        true
    }
}

fn join(pieces: Vec<Option<Buffer>>) -> Option<Buffer> {
    let mut pieces = pieces.into_iter();
    // No head was split off if the request began at the first byte of its buffer.
    let mut whole = match pieces.next()? {
        Some(head) => head,
        None => pieces.next()??,
    };
    for piece in pieces {
        whole.unsplit(piece?).ok()?;
    }
    Some(whole)
}
