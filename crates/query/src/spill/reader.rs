//! The end of a spill file at which it is read.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use datafusion::common::Result as DataFusionResult;
use futures::Stream;
use tanada_io::{Buffer, JoinHandle};

use super::file::{Found, Shared, within_block};
use super::{BLOCK_BYTES, READS_AHEAD};
use crate::{Error, Result};

/// A stream of the file's bytes, with blocks read ahead of them.
pub(super) struct Reader {
    file: Arc<Shared>,
    /// What has been given out.
    offset: u64,
    /// Blocks that are read, from the one at `offset` on.
    ahead: VecDeque<Ahead>,
}

/// A block that is read.
struct Ahead {
    number: u64,
    block: JoinHandle<tanada_io::Result<Buffer>>,
    /// Whether it counts among those that all readers have ahead.
    is_counted: bool,
}

impl Reader {
    pub(super) fn new(file: Arc<Shared>) -> Reader {
        Reader { file, offset: 0, ahead: VecDeque::new() }
    }

    /// Starts reads of block `first` and of those behind it.
    fn read_ahead(&mut self, first: u64) {
        let mut next = self.ahead.back().map_or(first, |last| last.number + 1);
        while self.ahead.len() <= READS_AHEAD {
            // The block that is wanted is there, and read in any case.
            let is_counted = next != first;
            if is_counted && !(self.file.is_stored(next) && self.file.usage.take_ahead()) {
                return;
            }
            let file = Arc::clone(&self.file);
            let block = self.file.executors.spawn(move || async move {
                let buffer = file.executors.buffers().allocate(BLOCK_BYTES);
                file.storage.device().read(next * BLOCK_BYTES as u64, buffer).await
            });
            self.ahead.push_back(Ahead { number: next, block, is_counted });
            next += 1;
        }
    }

    fn poll_bytes(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>>> {
        let number = self.offset / BLOCK_BYTES as u64;
        let len = match ready!(self.file.poll_found(self.offset, context))? {
            Found::End => return Poll::Ready(Ok(None)),
            Found::Tail(bytes) => {
                self.offset += bytes.len() as u64;
                return Poll::Ready(Ok(Some(bytes)));
            }
            Found::Stored(len) => len,
        };
        self.read_ahead(number);
        let Some(first) = self.ahead.front_mut() else { return Poll::Ready(Ok(None)) };
        let read = ready!(Pin::new(&mut first.block).poll(context));
        self.drop_first();
        let block = read.and_then(|read| read).map_err(|error| self.failed(&error.into()))?;
        let from = within_block(self.offset);
        if block.len() < len {
            let message = format!("block {number} ends after {} of {len} bytes", block.len());
            return Poll::Ready(Err(self.failed(&Error::new(crate::ErrorKind::Io, message))));
        }
        self.offset += (len - from) as u64;
        Poll::Ready(Ok(Some(Bytes::copy_from_slice(&block[from..len]))))
    }

    fn failed(&self, error: &Error) -> Error {
        Error::new(error.kind(), format!("reading spills in {}: {error}", self.file.place))
    }

    fn drop_first(&mut self) {
        if self.ahead.pop_front().is_some_and(|first| first.is_counted) {
            self.file.usage.give_ahead();
        }
    }
}

impl Stream for Reader {
    type Item = DataFusionResult<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_bytes(context).map(|found| found.map_err(Into::into).transpose())
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        while !self.ahead.is_empty() {
            self.drop_first();
        }
    }
}
