//! The journal: changes of the metadata become durable in the order in which they were made.
//!
//! 1. [`Journal::change`] runs a closure under the journal's lock that changes what is in memory and queues the records
//!    that say so. What is in memory and what is queued never differ for anyone who holds the lock.
//! 2. [`Journal::commit`] makes all that was queued durable: one task writes all blocks in one go and syncs; who comes
//!    meanwhile waits for the next go. So concurrent commits share syncs.
//! 3. A go that does not fit into the log any more is a checkpoint instead: under the lock, everything there is becomes
//!    records, which includes what is queued. What no change of the journal touches (statistics) becomes records
//!    afterwards, for that is most of it, and I/O waits for the lock. They are written to a free part of the device,
//!    made durable, and then the other superblock is written to name them.
//!
//! Invariants:
//! - one go is under way at a time;
//! - a log that a superblock names is never written over, but for its journal's free end;
//! - after a failed write or sync nothing more is written: what is durable is not known.

use std::fmt;
use std::sync::Arc;

use futures::stream::{FuturesUnordered, TryStreamExt};
use parking_lot::Mutex;
use tanada_io::{BufferPool, Device};

use super::Record;
use super::block::{BlockHeader, RECORD_BYTES, padded};
use super::superblock::{FIRST_LOG_OFFSET, Superblock};
use crate::crash::{CrashPoints, PlantedBug};
use crate::settings::BLOCK_BYTES;
use crate::waiting::SharedTask;
use crate::{Error, ErrorKind, Result};

/// The number of a change, from 1; changes are durable in this order.
pub(crate) type Lsn = u64;

/// A checkpoint is written in pieces of this many bytes, several at once.
const PIECE_BYTES: usize = 1 << 20;
const PIECES_AT_ONCE: usize = 8;

/// Records that follow those of a snapshot, made without the journal's lock.
pub(crate) type Rest = Box<dyn FnOnce(&mut Queue) + Send>;

/// Gives all there is as records. Called under the journal's lock.
pub(crate) trait Snapshot {
    fn snapshot(&self, queue: &mut Queue) -> Rest;
}

/// Records that wait to be written, already cut into blocks.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    blocks: Vec<(Vec<u8>, u32)>,
    /// Records of the change that is being made.
    group: Vec<u8>,
    group_records: u32,
    end: Lsn,
}

impl Queue {
    /// Queues `record`.
    pub(crate) fn push(&mut self, record: &Record) {
        record.encode(&mut self.group);
        self.group_records += 1;
    }

    /// The number of the change that is being made.
    pub(crate) fn lsn(&self) -> Lsn {
        self.end + 1
    }

    /// Ends a change: its records go into one block, so they become durable together.
    pub(crate) fn end_group(&mut self) -> Lsn {
        if self.group_records > 0 {
            let fits =
                self.blocks.last().is_some_and(|(bytes, _)| bytes.len() + self.group.len() <= RECORD_BYTES);
            if !fits {
                self.blocks.push((Vec::new(), 0));
            }
            if let Some((bytes, records)) = self.blocks.last_mut() {
                bytes.append(&mut self.group);
                *records += std::mem::take(&mut self.group_records);
            }
            self.end += 1;
        }
        self.end
    }

    /// Ends a checkpoint: with this behind them its blocks are known to be all there are.
    fn seal(&mut self) {
        self.end_group();
        let digest = self.blocks.iter().fold(0, |digest, (block, _)| crc32c::crc32c_append(digest, block));
        let mut block = Vec::new();
        Record::CheckpointEnd { digest }.encode(&mut block);
        self.blocks.push((block, 1));
    }

    fn encode(&mut self, generation: u64, first_seq: u64) -> (Vec<u8>, u64) {
        let blocks = std::mem::take(&mut self.blocks);
        let mut bytes =
            Vec::with_capacity(blocks.iter().map(|(block, _)| padded(block.len()) as usize).sum());
        for (i, (records, count)) in blocks.iter().enumerate() {
            let header = BlockHeader {
                generation,
                seq: first_seq + i as u64,
                first_of_flight: first_seq,
                bytes: records.len() as u32,
                records: *count,
            };
            header.encode(records, &mut bytes);
        }
        (bytes, blocks.len() as u64)
    }

    fn encoded_bytes(&self) -> u64 {
        self.blocks.iter().map(|(block, _)| padded(block.len())).sum()
    }
}

/// Where the log is and how far it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Log {
    pub(crate) used_bytes: u64,
    pub(crate) next_seq: u64,
}

struct State {
    queue: Queue,
    durable: Lsn,
    log: Log,
    superblock: Superblock,
    flight: Option<Arc<SharedTask<Result<()>>>>,
    failed: Option<Error>,
}

/// See the module's head.
pub(crate) struct Journal {
    device: Device,
    buffers: Arc<BufferPool>,
    crash: CrashPoints,
    bug: PlantedBug,
    state: Mutex<State>,
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journal").field("device", &self.device.path()).finish_non_exhaustive()
    }
}

impl Journal {
    /// A journal that goes on where `log` ends.
    pub(crate) fn new(
        device: Device,
        buffers: Arc<BufferPool>,
        crash: CrashPoints,
        bug: PlantedBug,
        superblock: Superblock,
        log: Log,
    ) -> Arc<Journal> {
        let state =
            State { queue: Queue::default(), durable: 0, log, superblock, flight: None, failed: None };
        Arc::new(Journal { device, buffers, crash, bug, state: Mutex::new(state) })
    }

    /// What messages call it.
    pub(crate) fn name(&self) -> String {
        format!("metadata ({})", self.device.path().display())
    }

    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    /// Changes memory and queues the records of it, as one change that becomes durable as a whole. The closure must not
    /// wake or wait.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut Queue) -> T) -> (T, Lsn) {
        let mut state = self.state.lock();
        let result = change(&mut state.queue);
        let lsn = state.queue.end_group();
        (result, lsn)
    }

    /// The last change so far.
    pub(crate) fn end(&self) -> Lsn {
        self.state.lock().queue.end
    }

    /// All changes up to this one are durable.
    pub(crate) fn durable(&self) -> Lsn {
        self.state.lock().durable
    }

    /// Why nothing more can be made durable, if so.
    pub(crate) fn failure(&self) -> Option<Error> {
        self.state.lock().failed.clone()
    }

    /// Waits until change `lsn` is durable.
    pub(crate) async fn commit(self: &Arc<Self>, lsn: Lsn, snapshot: &dyn SnapshotSync) -> Result<()> {
        loop {
            let flight = {
                let mut state = self.state.lock();
                if state.durable >= lsn {
                    return Ok(());
                }
                if let Some(error) = &state.failed {
                    return Err(error.clone());
                }
                match &state.flight {
                    Some(flight) => flight.clone(),
                    None => self.take_off(&mut state, snapshot, false),
                }
            };
            self.wait_for(&flight).await?;
        }
    }

    /// Writes a checkpoint now, whether the journal is full or not.
    pub(crate) async fn checkpoint(self: &Arc<Self>, snapshot: &dyn SnapshotSync) -> Result<()> {
        loop {
            let (flight, ours) = {
                let mut state = self.state.lock();
                if let Some(error) = &state.failed {
                    return Err(error.clone());
                }
                match &state.flight {
                    Some(flight) => (flight.clone(), false),
                    None => (self.take_off(&mut state, snapshot, true), true),
                }
            };
            self.wait_for(&flight).await?;
            if ours {
                return Ok(());
            }
        }
    }

    /// Lets go of a go that nobody waits for: it holds the journal, and the journal holds it.
    pub(crate) fn abandon(&self) {
        let flight = self.state.lock().flight.take();
        drop(flight);
    }

    async fn wait_for(&self, flight: &Arc<SharedTask<Result<()>>>) -> Result<()> {
        let result = flight.wait().await;
        let ended = {
            let mut state = self.state.lock();
            match &state.flight {
                Some(current) if Arc::ptr_eq(current, flight) => state.flight.take(),
                _ => None,
            }
        };
        drop(ended);
        result
    }

    /// Begins a go, with all that is queued.
    fn take_off(
        self: &Arc<Self>,
        state: &mut State,
        snapshot: &dyn SnapshotSync,
        checkpoint: bool,
    ) -> Arc<SharedTask<Result<()>>> {
        let needed = state.queue.encoded_bytes();
        let journal = self.clone();
        let flight = if checkpoint || state.log.used_bytes + needed > state.superblock.log_bytes {
            let end = state.queue.end;
            state.queue.blocks.clear();
            let mut all = Queue::default();
            let rest = snapshot.snapshot(&mut all);
            let current = state.superblock.clone();
            SharedTask::new(async move {
                rest(&mut all);
                let (superblock, bytes, log) = next_checkpoint(&current, &mut all);
                drop(all);
                let done = journal.write_checkpoint(&superblock, bytes).await;
                journal.landed(end, done, Some((superblock, log)))
            })
        } else {
            let (bytes, blocks) = state.queue.encode(state.superblock.generation, state.log.next_seq);
            let offset = state.superblock.log_offset + state.log.used_bytes;
            state.log.used_bytes += bytes.len() as u64;
            state.log.next_seq += blocks;
            let end = state.queue.end;
            SharedTask::new(async move {
                let done = journal.write_blocks(offset, bytes).await;
                journal.landed(end, done, None)
            })
        };
        state.flight = Some(flight.clone());
        flight
    }

    async fn write_blocks(&self, offset: u64, bytes: Vec<u8>) -> Result<()> {
        // CRASH: the log ends before these blocks, as if the changes had never been made.
        self.crash.reached("journal.before-write");
        self.write(offset, &bytes).await?;
        // CRASH: blocks of this go are there in part; replay cuts them off where the first is missing.
        self.crash.reached("journal.before-sync");
        self.sync().await?;
        // CRASH: durable, but nobody was told yet; whoever waits may find it done after all.
        self.crash.reached("journal.after-sync");
        Ok(())
    }

    async fn write_checkpoint(&self, superblock: &Superblock, bytes: Vec<u8>) -> Result<()> {
        // CRASH: the superblock names the old log, which is whole.
        self.crash.reached("checkpoint.before-write");
        self.write(superblock.log_offset, &bytes).await?;
        if self.bug != PlantedBug::SuperblockBeforeCheckpoint {
            // CRASH: the new log is there in part, and no superblock names it.
            self.crash.reached("checkpoint.before-sync");
            self.sync().await?;
        }
        // CRASH: the new log is whole, but still the old one counts.
        self.crash.reached("checkpoint.before-switch");
        self.write_superblock(superblock).await?;
        // CRASH: the new log counts; what was queued is part of it.
        self.crash.reached("checkpoint.after-switch");
        Ok(())
    }

    /// Writes `superblock` to its place and makes it durable.
    pub(crate) async fn write_superblock(&self, superblock: &Superblock) -> Result<()> {
        let mut block = self.buffers.allocate(BLOCK_BYTES as usize);
        superblock.encode(&mut block);
        // CRASH: the other superblock counts.
        self.crash.reached("superblock.before-write");
        self.device.write(superblock.offset(), block).await.map_err(|error| self.failed(&error))?;
        // CRASH: this superblock is whole, or torn and the other counts.
        self.crash.reached("superblock.before-sync");
        self.sync().await
    }

    /// Stops using the journal: from now on the volume is marked as stopped cleanly.
    pub(crate) async fn close(&self) -> Result<()> {
        let superblock = {
            let mut state = self.state.lock();
            if let Some(error) = &state.failed {
                return Err(error.clone());
            }
            state.failed = Some(Error::new(ErrorKind::ReadOnly, "the volume is closed"));
            Superblock {
                sequence: state.superblock.sequence + 1,
                is_clean: true,
                clean_seq: state.log.next_seq,
                ..state.superblock.clone()
            }
        };
        // CRASH: all is durable but the mark, so the next opening looks for a torn tail and finds none.
        self.crash.reached("close.before-clean-mark");
        self.write_superblock(&superblock).await
    }

    /// Writes the superblock in force anew, where it was found damaged; what it names is made durable first.
    pub(crate) async fn restore_superblock(&self) -> Result<()> {
        let superblock = self.state.lock().superblock.clone();
        self.sync().await?;
        self.write_superblock(&superblock).await
    }

    /// Marks the volume as in use.
    pub(crate) async fn mark_unclean(&self) -> Result<()> {
        let superblock = {
            let mut state = self.state.lock();
            state.superblock.sequence += 1;
            state.superblock.is_clean = false;
            state.superblock.clean_seq = 0;
            state.superblock.clone()
        };
        // CRASH: the volume still counts as stopped cleanly, and nothing was written to it since.
        self.crash.reached("recovery.before-unclean-mark");
        self.write_superblock(&superblock).await
    }

    async fn sync(&self) -> Result<()> {
        self.device.sync().await.map_err(|error| self.failed(&error))
    }

    async fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let mut writes = FuturesUnordered::new();
        for (i, piece) in bytes.chunks(PIECE_BYTES).enumerate() {
            if writes.len() == PIECES_AT_ONCE {
                writes.try_next().await?;
            }
            writes.push(self.write_piece(offset + (i * PIECE_BYTES) as u64, piece));
        }
        while writes.try_next().await?.is_some() {}
        Ok(())
    }

    async fn write_piece(&self, offset: u64, piece: &[u8]) -> Result<()> {
        let mut buffer = self.buffers.allocate(piece.len());
        buffer.copy_from_slice(piece);
        self.device.write(offset, buffer).await.map_err(|error| self.failed(&error)).map(drop)
    }

    fn failed(&self, error: &tanada_io::Error) -> Error {
        let error = Error::io(self.name(), error);
        let first = if error.kind() == ErrorKind::NoSpace {
            "free space on the file system that it lies on, then "
        } else {
            ""
        };
        let message = format!("{error}; nothing more can be made durable: {first}open the volume anew");
        Error::new(ErrorKind::Device, message)
    }

    fn landed(&self, end: Lsn, done: Result<()>, switched: Option<(Superblock, Log)>) -> Result<()> {
        let mut state = self.state.lock();
        match &done {
            Ok(()) => {
                state.durable = state.durable.max(end);
                if let Some((superblock, log)) = switched {
                    state.superblock = superblock;
                    state.log = log;
                }
            }
            Err(error) => state.failed = Some(error.clone()),
        }
        done
    }
}

/// A snapshot that may be taken on any thread.
pub(crate) trait SnapshotSync: Snapshot + Sync {}

impl<T: Snapshot + Sync> SnapshotSync for T {}

/// The superblock of a checkpoint that follows `current`, its bytes, and its log.
pub(crate) fn next_checkpoint(current: &Superblock, all: &mut Queue) -> (Superblock, Vec<u8>, Log) {
    let generation = current.generation + 1;
    all.seal();
    let (bytes, blocks) = all.encode(generation, 0);
    let log_bytes = bytes.len() as u64 + current.journal_bytes.next_multiple_of(BLOCK_BYTES);
    // Before the log in force if there is room, else behind it: so the two take turns, and the device grows with the
    // larger.
    let log_offset = if FIRST_LOG_OFFSET + log_bytes <= current.log_offset {
        FIRST_LOG_OFFSET
    } else {
        current.log_offset + current.log_bytes
    };
    let log = Log { used_bytes: bytes.len() as u64, next_seq: blocks };
    let superblock = Superblock {
        sequence: current.sequence + 1,
        is_clean: false,
        clean_seq: 0,
        generation,
        log_offset,
        log_bytes,
        checkpoint_blocks: blocks,
        ..current.clone()
    };
    (superblock, bytes, log)
}
