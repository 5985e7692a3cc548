//! A file that is written from its beginning to its end, asynchronously and directly.

use std::collections::VecDeque;
use std::sync::Arc;

use tanada_io::{Buffer, Executors, IoContext, JoinHandle};

use super::medium::Target;
use crate::{Error, ErrorKind, Result};

/// Bytes of a write.
const WRITE_BYTES: usize = 1 << 20;
/// Writes in flight.
const MAX_WRITES: usize = 8;

/// A file that is being written. Dropped before it is committed, it leaves nothing behind.
#[derive(Debug)]
pub struct Upload {
    /// Before the target, which removes the file: writes end first.
    writes: VecDeque<JoinHandle<Result<()>>>,
    target: Box<dyn Target>,
    executors: Arc<Executors>,
    io: IoContext,
    /// What does not fill a write yet.
    pending: Vec<u8>,
    /// Bytes of the writes that were started.
    started: u64,
}

impl Upload {
    pub(super) fn new(target: Box<dyn Target>, executors: Arc<Executors>, io: IoContext) -> Upload {
        Upload { writes: VecDeque::new(), target, executors, io, pending: Vec::new(), started: 0 }
    }

    /// Bytes that were appended.
    pub fn bytes(&self) -> u64 {
        self.started + self.pending.len() as u64
    }

    /// Appends bytes; waits while enough writes are in flight.
    ///
    /// # Errors
    /// If an earlier write failed.
    pub async fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let (taken, left) = rest.split_at(rest.len().min(WRITE_BYTES - self.pending.len()));
            self.pending.extend_from_slice(taken);
            rest = left;
            if self.pending.len() == WRITE_BYTES {
                self.write_pending().await?;
            }
        }
        Ok(())
    }

    /// Starts to write what is pending, filled up with zeros to a boundary of the device.
    async fn write_pending(&mut self) -> Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        while self.writes.len() >= MAX_WRITES {
            self.oldest().await?;
        }
        let device = self.target.device().clone();
        let len = self.pending.len().next_multiple_of(device.alignment().max(1));
        let mut buffer: Buffer = self.executors.buffers().allocate(len);
        let (data, rest) = buffer.split_at_mut(self.pending.len());
        data.copy_from_slice(&self.pending);
        rest.fill(0);
        let (offset, io) = (self.started, self.io.clone());
        self.started += self.pending.len() as u64;
        self.pending.clear();
        self.writes.push_back(self.executors.spawn(move || async move {
            io.write(&device, offset, buffer).await?;
            Ok(())
        }));
        Ok(())
    }

    async fn oldest(&mut self) -> Result<()> {
        match self.writes.pop_front() {
            Some(write) => write.await?,
            None => Ok(()),
        }
    }

    /// Writes the rest, makes all of it durable and gives the file its name; the file's bytes.
    ///
    /// # Errors
    /// If writing fails, or there is such a file by now that is not to be replaced. Nothing is left then.
    pub async fn commit(mut self) -> Result<u64> {
        let bytes = self.bytes();
        self.write_pending().await?;
        while !self.writes.is_empty() {
            self.oldest().await?;
        }
        let Upload { mut target, executors, .. } = self;
        let committed = executors.spawn(move || async move {
            let committed = target.commit(bytes).await;
            (target, committed)
        });
        match committed.await {
            Ok((_, committed)) => committed.map(|()| bytes),
            Err(error) => Err(Error::new(ErrorKind::Io, error.to_string())),
        }
    }
}
