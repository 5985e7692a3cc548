//! A spill file: a sequence of blocks, written once from its beginning to its end, and read while it grows.
//!
//! Invariant: block `n` lies at `n * BLOCK_BYTES`; all blocks but the last are full. A block is in the tail (being
//! filled), under way to the device, or on it; readers wait for those under way, and copy what the tail has.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use datafusion::common::Result as DataFusionResult;
use datafusion::execution::{SpillFile, SpillWriter};
use futures::Stream;
use parking_lot::{Condvar, Mutex};
use tanada_io::{Buffer, Executors};

use super::place::Storage;
use super::reader::Reader;
use super::space::Usage;
use super::writer::Writer;
use super::{BLOCK_BYTES, WRITES_BEHIND};
use crate::{Error, ErrorKind, Result};

/// What the engine holds.
#[derive(Debug)]
pub(super) struct File {
    shared: Arc<Shared>,
}

/// What a file's writer and readers share.
pub(super) struct Shared {
    pub(super) storage: Storage,
    /// The place, as messages name it.
    pub(super) place: String,
    pub(super) executors: Arc<Executors>,
    pub(super) usage: Arc<Usage>,
    state: Mutex<State>,
    /// A write ended.
    written: Condvar,
}

#[derive(Default)]
struct State {
    /// Bytes that were given to the writer.
    len: u64,
    /// The block that is being filled; its bytes are those behind the last full block.
    tail: Option<Buffer>,
    /// Blocks under way, by their numbers.
    under_way: VecDeque<u64>,
    /// Blocks whose space is taken.
    blocks: usize,
    phase: Phase,
    failure: Option<Error>,
    readers: Vec<Waker>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Nobody has opened it to write.
    #[default]
    New,
    Writing,
    Ended,
}

/// What a reader finds at a place of the file.
pub(super) enum Found {
    /// A block on the device, of which this many bytes count.
    Stored(usize),
    /// Bytes that are only in memory.
    Tail(Bytes),
    End,
}

impl File {
    pub(super) fn new(shared: Shared) -> File {
        File { shared: Arc::new(shared) }
    }
}

impl SpillFile for File {
    fn size(&self) -> Option<u64> {
        Some(self.shared.state.lock().len)
    }

    fn read_stream(&self) -> DataFusionResult<Pin<Box<dyn Stream<Item = DataFusionResult<Bytes>> + Send>>> {
        Ok(Box::pin(Reader::new(Arc::clone(&self.shared))))
    }

    fn open_writer(&self) -> DataFusionResult<Box<dyn SpillWriter>> {
        let mut state = self.shared.state.lock();
        if state.phase != Phase::New {
            let message = "a spill file was opened twice to be written";
            return Err(Error::new(ErrorKind::Internal, message).into());
        }
        state.phase = Phase::Writing;
        drop(state);
        Ok(Box::new(Writer::new(Arc::clone(&self.shared))))
    }
}

impl Shared {
    pub(super) fn new(
        storage: Storage,
        place: String,
        executors: Arc<Executors>,
        usage: Arc<Usage>,
    ) -> Shared {
        let (state, written) = (Mutex::default(), Condvar::new());
        Shared { storage, place, executors, usage, state, written }
    }

    /// Puts `bytes` behind what there is, as many as the tail has room for; how many.
    ///
    /// # Errors
    /// If a write has failed, or there is no space.
    pub(super) fn put(self: &Arc<Self>, bytes: &[u8]) -> Result<usize> {
        let mut state = self.state.lock();
        if let Some(failure) = &state.failure {
            return Err(failure.clone());
        }
        if state.tail.is_none() {
            self.usage.take_block(&self.place)?;
            state.blocks += 1;
            state.tail = Some(self.executors.buffers().allocate(BLOCK_BYTES));
        }
        let used = within_block(state.len);
        let count = bytes.len().min(BLOCK_BYTES - used);
        if let Some(tail) = &mut state.tail {
            tail[used..used + count].copy_from_slice(&bytes[..count]);
        }
        state.len += count as u64;
        if used + count == BLOCK_BYTES {
            self.write_tail(&mut state);
            while state.under_way.len() >= WRITES_BEHIND && state.failure.is_none() {
                self.written.wait(&mut state);
            }
        }
        Ok(count)
    }

    /// Writes what is left, and waits for all writes.
    ///
    /// # Errors
    /// If one has failed.
    pub(super) fn finish(self: &Arc<Self>) -> Result<()> {
        let mut state = self.state.lock();
        self.write_tail(&mut state);
        while !state.under_way.is_empty() && state.failure.is_none() {
            self.written.wait(&mut state);
        }
        state.failure.clone().map_or(Ok(()), Err)
    }

    /// Nothing more is written.
    pub(super) fn end(&self) {
        let mut state = self.state.lock();
        state.phase = Phase::Ended;
        wake(state.readers.drain(..));
    }

    /// Starts to write the tail, whose rest is zeros.
    fn write_tail(self: &Arc<Self>, state: &mut State) {
        let Some(mut tail) = state.tail.take() else { return };
        let used = within_block(state.len);
        let number = (state.len - 1) / BLOCK_BYTES as u64;
        if used > 0 {
            tail[used..].fill(0);
        }
        state.under_way.push_back(number);
        let shared = Arc::clone(self);
        let write = move || async move {
            let written = shared.write_block(number, tail).await;
            shared.end_write(number, written);
        };
        // The task ends by itself; what it found is in the state.
        self.executors.spawn(write).detach();
    }

    async fn write_block(&self, number: u64, block: Buffer) -> Result<()> {
        let offset = number * BLOCK_BYTES as u64;
        self.storage.reserve(offset + BLOCK_BYTES as u64).await?;
        self.storage.device().write(offset, block).await?;
        Ok(())
    }

    fn end_write(&self, number: u64, written: Result<()>) {
        let mut state = self.state.lock();
        state.under_way.retain(|other| *other != number);
        if let Err(error) = written {
            let message = format!("spilling to {}: {error}", self.place);
            state.failure.get_or_insert(Error::new(error.kind(), message));
        }
        wake(state.readers.drain(..));
        drop(state);
        self.written.notify_all();
    }

    /// What lies at `offset`, the beginning of a block or a place in the tail.
    pub(super) fn poll_found(&self, offset: u64, context: &Context<'_>) -> Poll<Result<Found>> {
        let mut state = self.state.lock();
        if let Some(failure) = &state.failure {
            return Poll::Ready(Err(failure.clone()));
        }
        let number = offset / BLOCK_BYTES as u64;
        let end = (number + 1) * BLOCK_BYTES as u64;
        let is_tail = state.tail.is_some() && number == (state.len.max(1) - 1) / BLOCK_BYTES as u64;
        let is_waiting =
            state.under_way.contains(&number) || (offset >= state.len && state.phase == Phase::Writing);
        if is_waiting {
            state.readers.push(context.waker().clone());
            return Poll::Pending;
        }
        if offset >= state.len {
            return Poll::Ready(Ok(Found::End));
        }
        if is_tail && let Some(tail) = &state.tail {
            let bytes = &tail[within_block(offset)..in_block(state.len)];
            return Poll::Ready(Ok(Found::Tail(Bytes::copy_from_slice(bytes))));
        }
        let stored = end.min(state.len) - number * BLOCK_BYTES as u64;
        Poll::Ready(Ok(Found::Stored(usize::try_from(stored).unwrap_or(BLOCK_BYTES))))
    }

    /// Whether block `number` is as it stays, and on the device.
    pub(super) fn is_stored(&self, number: u64) -> bool {
        let state = self.state.lock();
        let (begin, end) = (number * BLOCK_BYTES as u64, (number + 1) * BLOCK_BYTES as u64);
        let is_whole = end <= state.len || (state.phase == Phase::Ended && begin < state.len);
        is_whole && state.failure.is_none() && !state.under_way.contains(&number)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.usage.give_blocks(self.state.get_mut().blocks);
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("place", &self.place).finish_non_exhaustive()
    }
}

/// The place of `offset` within its block.
pub(super) fn within_block(offset: u64) -> usize {
    usize::try_from(offset % BLOCK_BYTES as u64).unwrap_or_default()
}

/// Bytes of the last block of a file of `len` bytes, which is not empty.
fn in_block(len: u64) -> usize {
    within_block(len.max(1) - 1) + 1
}

fn wake(wakers: impl Iterator<Item = Waker>) {
    wakers.for_each(Waker::wake);
}
