//! Writes.
//!
//! The short way, for an aligned request within one mapped chunk and one segment: a shared hold on the chunk, and
//! straight to the device. Everything else, chunk by chunk, all chunks at once:
//!
//! 1. Take a hold: shared if the chunk is mapped, has no mirror and the request is aligned; else exclusive.
//! 2. If the object grows and the bytes behind its end are stale, make them zeros first ([`super::resize`]).
//! 3. A mirror is dropped, durably, before the first byte changes: otherwise a stop could leave a mirror that differs
//!    from its home.
//! 4. A chunk without a home reserves a physical chunk. Unless it is written as a whole, it is cleared first. When it
//!    is written it is mapped in memory, and noted as fresh: the metadata hear of it with the next sync, after the data
//!    are durable. If the class's devices have no space, the next class by preference takes it.
//! 5. What is not aligned is read, changed and written in whole blocks, alone on its chunk.
//!
//! Invariant: whatever the device may still be writing is held (hold, reservation) until the device is done, even if
//! the caller left.

use std::any::Any;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::stream::{FuturesUnordered, TryStreamExt};
use tanada_io::{Buffer, Completion, Operation, Request};

use super::read::{count_chunks, into_io};
use super::{Object, ObjectState};
use crate::chunk::Place;
use crate::chunk::table::Leaf;
use crate::class::device::{ClassDevice, is_put_off};
use crate::class::{Class, Keep};
use crate::crash::PlantedBug;
use crate::settings::{BLOCK_BYTES, LARGEST_OBJECT};
use crate::statistics::Sample;
use crate::volume::{Core, Reserved};
use crate::waiting::{Driven, HoldGuard, Writing, drive};
use crate::{Error, ErrorKind, Result};

/// A write that was started for the backend.
pub(super) enum Started {
    /// On the short way, under the hold of this number.
    Direct(u64),
    /// As a future.
    Driven(Driven),
}

/// Writes for the backend.
pub(super) fn start(object: &Object, request: Request, completion: Completion) -> Started {
    match try_start(object, request, completion) {
        Ok(hold) => Started::Direct(hold),
        Err((mut request, completion)) => {
            let object = object.clone();
            Started::Driven(drive(async move {
                let is_aligned = request.len.is_multiple_of(BLOCK_BYTES);
                let Some(mut buffer) = request.buffer.take().filter(|_| is_aligned) else {
                    return completion.complete(Err(io::Error::from(io::ErrorKind::InvalidInput)), None);
                };
                let head = (request.from > 0).then(|| {
                    let rest = buffer.split_off(request.from);
                    std::mem::replace(&mut buffer, rest)
                });
                let len = request.len as usize;
                let tail = (buffer.len() > len).then(|| buffer.split_off(len));
                match object.write(request.offset, buffer).await {
                    Ok(buffer) => {
                        let pieces = [head, Some(buffer), tail].into_iter().flatten();
                        let whole = pieces.map(Some).reduce(|whole, piece| {
                            let mut whole = whole?;
                            whole.unsplit(piece?).ok()?;
                            Some(whole)
                        });
                        completion.complete(Ok(len), whole.flatten());
                    }
                    Err(error) => completion.complete(Err(into_io(error)), None),
                }
            }))
        }
    }
}

/// The short way; the number of the hold it has. Gives everything back if the way is not open.
fn try_start(
    object: &Object,
    request: Request,
    completion: Completion,
) -> Result<u64, (Request, Completion)> {
    let (core, state) = (&object.core, &object.state);
    let (offset, len) = (request.offset, request.len);
    let chunk = offset >> core.chunk_shift;
    let Some(end) = offset.checked_add(len) else { return Err((request, completion)) };
    let is_simple = len > 0
        && (end - 1) >> core.chunk_shift == chunk
        && offset.is_multiple_of(BLOCK_BYTES)
        && len.is_multiple_of(BLOCK_BYTES)
        && request.buffer.as_ref().is_some_and(|buffer| buffer.len() as u64 == request.from as u64 + len)
        && end <= LARGEST_OBJECT
        && object.check_writable().is_ok();
    if !is_simple {
        return Err((request, completion));
    }
    let Some(hold) = state.holds.try_hold(chunk..=chunk, false) else { return Err((request, completion)) };
    if state.pages.get().is_some() {
        return Err((request, completion));
    }
    let Some((leaf, place)) = state.plainly_mapped(chunk) else { return Err((request, completion)) };
    if end > state.size() && state.tail_is_stale.load(Ordering::SeqCst) {
        return Err((request, completion));
    }
    let Ok(class) = core.class(place.class) else { return Err((request, completion)) };
    let within = offset & (core.chunk_bytes - 1);
    let extent = class.first_extent(class.address(place.no) + within, len);
    let device = match class.device(extent.device) {
        Ok(device) if extent.len == len && !device.has_failed() => device.clone(),
        _ => return Err((request, completion)),
    };
    let no = hold.id();
    let io = WriteIo {
        core: core.clone(),
        object: state.clone(),
        class,
        device: device.clone(),
        leaf,
        offset,
        len,
        device_offset: extent.offset,
        is_sequential: state.streams.note(offset, len),
        started: core.now(),
        hold,
    };
    let request = Request { offset: extent.offset, ..request };
    let completion = Completion::from_fn(move |result, buffer| io.finished(result, buffer, completion));
    device.device().start(request, completion);
    Ok(no)
}

/// A write on the short way.
struct WriteIo {
    core: Arc<Core>,
    object: Arc<ObjectState>,
    class: Arc<Class>,
    device: Arc<ClassDevice>,
    leaf: Arc<Leaf>,
    offset: u64,
    len: u64,
    device_offset: u64,
    is_sequential: bool,
    started: Duration,
    hold: HoldGuard,
}

impl WriteIo {
    fn finished(self, result: io::Result<usize>, buffer: Option<Buffer>, completion: Completion) {
        self.device.wrote();
        let result = match result {
            Ok(bytes) => {
                let bytes = (bytes as u64).min(self.len);
                self.object.wrote(self.class.id, self.offset + bytes);
                self.count(bytes);
                Ok(bytes as usize)
            }
            Err(error) if is_put_off(&error) || error.kind() == io::ErrorKind::InvalidInput => Err(error),
            Err(error) => {
                self.class.counters.count_error();
                let error = self.device.error(Operation::Write, self.device_offset, self.len, &error);
                if error.kind() != ErrorKind::NoSpace {
                    self.object.poison(&error);
                }
                Err(into_io(error))
            }
        };
        drop(self.hold);
        completion.complete(result, buffer);
    }

    fn count(&self, bytes: u64) {
        let now = self.core.now();
        let latency = now.saturating_sub(self.started);
        if self.core.bug != PlantedBug::CountHalf {
            self.class.counters.count(true, bytes, latency);
        }
        self.object.counters.count(true, bytes, latency);
        let half_life_s = self.core.half_life_s;
        let sample = Sample { is_write: true, is_sequential: self.is_sequential, bytes, now, half_life_s };
        count_chunks(&self.core, &self.object, Some(&self.leaf), self.offset, &sample);
    }
}

impl ObjectState {
    /// The home of a chunk that may be written in place by whoever shares it: mapped, and without a mirror, in the
    /// durable metadata too.
    fn plainly_mapped(&self, no: u64) -> Option<(Arc<Leaf>, Place)> {
        let table = self.table.read();
        let leaf = table.leaf(no)?;
        let chunk = leaf.chunk(no);
        let home = chunk.home.get()?;
        let is_alone = chunk.mirror.get().is_none() && self.dropped_mirrors.load(Ordering::SeqCst) == 0;
        is_alone.then(|| (leaf.clone(), home))
    }

    /// The leaf of a chunk, made if need be.
    pub(crate) fn leaf_or_new(&self, no: u64) -> Arc<Leaf> {
        if let Some(leaf) = self.table.read().leaf(no) {
            return leaf.clone();
        }
        self.table.write().leaf_or_new(no).clone()
    }

    /// A write to `class` is complete; the object reaches to `end` at least.
    pub(crate) fn wrote(&self, class: u8, end: u64) {
        self.dirty_classes.fetch_or(1 << class, Ordering::SeqCst);
        self.size.fetch_max(end, Ordering::SeqCst);
    }
}

/// A hold, and the chunk that is being filled, as long as the device may write.
struct Filling {
    _hold: Arc<HoldGuard>,
    _reserved: Arc<Reserved>,
}

/// One chunk's share of a write.
struct Piece {
    chunk: u64,
    within: u64,
    buffer: Buffer,
    /// Of the stored space of an object that has pages.
    is_stored: bool,
}

impl Object {
    pub(crate) fn check_writable(&self) -> Result<()> {
        self.core.check_writable()?;
        self.state.check_there()?;
        self.state.check_not_poisoned()?;
        if let Some(file) = &self.state.adopted {
            let message =
                format!("object {:?} is the adopted file {}: it is read only", self.name(), file.path);
            return Err(Error::new(ErrorKind::ReadOnly, message));
        }
        Ok(())
    }

    /// Writes the whole buffer at `offset`, whatever their alignment; the object grows if need be. What is written is
    /// durable after the next [`sync`](Self::sync); a stop before that leaves old bytes or new ones in each sector.
    ///
    /// # Errors
    /// `NoSpace` or `QuotaExceeded` if there is no chunk for it, `ReadOnly`, `NotFound` if the object was deleted;
    /// `Device` if a device failed: the object is poisoned then.
    pub async fn write(&self, offset: u64, buffer: Buffer) -> Result<Buffer> {
        self.check_writable()?;
        let end = offset.checked_add(buffer.len() as u64).filter(|end| *end <= LARGEST_OBJECT);
        if end.is_none() {
            return Err(Error::invalid(format!(
                "object {:?}: an object has at most {LARGEST_OBJECT} bytes",
                self.name()
            )));
        }
        if buffer.is_empty() {
            return Ok(buffer);
        }
        match self.state.pages.get() {
            Some(pages) => self.write_pages(pages.clone(), offset, buffer).await,
            None => self.write_plain(offset, buffer, false).await,
        }
    }

    /// Writes to the chunks of the object as they are; `is_stored`: it has pages, and this is its stored space.
    pub(crate) async fn write_plain(
        &self,
        offset: u64,
        mut buffer: Buffer,
        is_stored: bool,
    ) -> Result<Buffer> {
        let is_sequential = self.state.streams.note(offset, buffer.len() as u64);
        let chunk_bytes = self.core.chunk_bytes;
        let first_len = (chunk_bytes - (offset & (chunk_bytes - 1))).min(buffer.len() as u64) as usize;
        if first_len == buffer.len() {
            return self.write_piece(self.piece(offset, buffer, is_stored), is_sequential).await;
        }
        if !offset.is_multiple_of(BLOCK_BYTES) {
            let copies = self.copied_pieces(offset, first_len, &buffer, is_stored);
            let writes: FuturesUnordered<_> =
                copies.into_iter().map(|piece| self.write_piece(piece, is_sequential)).collect();
            writes.try_for_each(|_| std::future::ready(Ok(()))).await?;
            return Ok(buffer);
        }
        let mut pieces = Vec::new();
        let (mut at, mut len) = (offset, first_len);
        while buffer.len() > len {
            let rest = buffer.split_off(len);
            pieces.push(self.piece(at, std::mem::replace(&mut buffer, rest), is_stored));
            at += len as u64;
            len = chunk_bytes as usize;
        }
        pieces.push(self.piece(at, buffer, is_stored));
        let writes = pieces.into_iter().map(|piece| self.write_piece(piece, is_sequential));
        let mut written = futures::future::try_join_all(writes).await?.into_iter();
        let lost = || Error::new(ErrorKind::Cancelled, "a buffer was lost");
        let mut whole = written.next().ok_or_else(lost)?;
        for piece in written {
            whole.unsplit(piece).map_err(|_| lost())?;
        }
        Ok(whole)
    }

    fn piece(&self, at: u64, buffer: Buffer, is_stored: bool) -> Piece {
        Piece {
            chunk: at >> self.core.chunk_shift,
            within: at & (self.core.chunk_bytes - 1),
            buffer,
            is_stored,
        }
    }

    /// The pieces of a request whose chunks begin off the boundaries at which a buffer can be split.
    fn copied_pieces(&self, offset: u64, first_len: usize, buffer: &[u8], is_stored: bool) -> Vec<Piece> {
        let (first, rest) = buffer.split_at(first_len);
        let mut at = offset;
        let parts = std::iter::once(first).chain(rest.chunks(self.core.chunk_bytes as usize));
        parts
            .map(|part| {
                let mut copy = self.core.buffers.allocate(part.len());
                copy.copy_from_slice(part);
                let piece = self.piece(at, copy, is_stored);
                at += part.len() as u64;
                piece
            })
            .collect()
    }

    async fn write_piece(&self, piece: Piece, is_sequential: bool) -> Result<Buffer> {
        let started = self.core.now();
        let (offset, bytes) = (piece.chunk * self.core.chunk_bytes + piece.within, piece.buffer.len() as u64);
        let chunk = piece.chunk;
        let written = self.write_chunk(piece).await;
        match written {
            // What went to pages was counted there.
            Ok((buffer, None)) => Ok(buffer),
            Ok((buffer, Some(class))) => {
                let now = self.core.now();
                class.counters.count(true, bytes, now.saturating_sub(started));
                self.state.counters.count(true, bytes, now.saturating_sub(started));
                let half_life_s = self.core.half_life_s;
                let sample = Sample { is_write: true, is_sequential, bytes, now, half_life_s };
                count_chunks(&self.core, &self.state, None, offset, &sample);
                Ok(buffer)
            }
            Err(error) => {
                self.state.counters.count_error();
                let kind = error.kind();
                let error = Error::new(kind, format!("object {:?}, chunk {chunk}: {error}", self.name()));
                if matches!(kind, ErrorKind::Device | ErrorKind::Cancelled) {
                    self.state.poison(&error);
                }
                Err(error)
            }
        }
    }

    /// Writes within one chunk; the class it went to, unless the object has got pages meanwhile.
    async fn write_chunk(&self, piece: Piece) -> Result<(Buffer, Option<Arc<Class>>)> {
        let Piece { chunk, within, buffer, is_stored } = piece;
        let len = buffer.len() as u64;
        let end = chunk * self.core.chunk_bytes + within + len;
        let is_aligned = within.is_multiple_of(BLOCK_BYTES) && len.is_multiple_of(BLOCK_BYTES);
        let state = &self.state;
        loop {
            let exclusive = !is_aligned || state.plainly_mapped(chunk).is_none();
            let hold = Arc::new(state.holds.hold(chunk..=chunk, exclusive).await);
            self.check_writable()?;
            if let Some(pages) = state.pages.get().filter(|_| !is_stored) {
                drop(hold);
                let offset = chunk * self.core.chunk_bytes + within;
                return Ok((self.write_pages(pages.clone(), offset, buffer).await?, None));
            }
            if end > state.size() && state.tail_is_stale.load(Ordering::SeqCst) {
                drop(hold);
                self.clean_tail().await?;
                continue;
            }
            if !exclusive {
                let Some((_, place)) = state.plainly_mapped(chunk) else { continue };
                let class = self.core.class(place.class)?;
                let keep: Keep = hold.clone();
                let writing = Writing::new(&hold);
                let buffer = class.write(class.address(place.no) + within, buffer, &keep).await?;
                writing.done();
                state.wrote(class.id, end);
                return Ok((buffer, Some(class)));
            }
            self.drop_mirror_before_write(chunk).await?;
            let home = state.table.read().chunk(chunk).and_then(|chunk| chunk.home.get());
            let written = match home {
                Some(place) => self.write_exclusively(place, within, buffer, end, hold).await,
                None => self.write_first(Piece { buffer, ..piece }, end, hold).await,
            };
            return written.map(|(buffer, class)| (buffer, Some(class)));
        }
    }

    /// Writes to a mapped chunk that is held exclusively.
    async fn write_exclusively(
        &self,
        place: Place,
        within: u64,
        buffer: Buffer,
        end: u64,
        hold: Arc<HoldGuard>,
    ) -> Result<(Buffer, Arc<Class>)> {
        let class = self.core.class(place.class)?;
        let len = buffer.len() as u64;
        let keep: Keep = hold.clone();
        let address = class.address(place.no);
        if within.is_multiple_of(BLOCK_BYTES) && len.is_multiple_of(BLOCK_BYTES) {
            hold.downgrade();
            let writing = Writing::new(&hold);
            let buffer = class.write(address + within, buffer, &keep).await?;
            writing.done();
            self.state.wrote(class.id, end);
            return Ok((buffer, class));
        }
        let writing = Writing::new(&hold);
        let first = within / BLOCK_BYTES * BLOCK_BYTES;
        let last = (within + len).next_multiple_of(BLOCK_BYTES);
        let blocks = self.core.buffers.allocate((last - first) as usize);
        let mut blocks = class.read(address + first, blocks, &keep).await?;
        let skip = (within - first) as usize;
        blocks[skip..skip + buffer.len()].copy_from_slice(&buffer);
        class.write(address + first, blocks, &keep).await?;
        writing.done();
        self.state.wrote(class.id, end);
        Ok((buffer, class))
    }

    /// The first write to a chunk.
    async fn write_first(
        &self,
        piece: Piece,
        end: u64,
        hold: Arc<HoldGuard>,
    ) -> Result<(Buffer, Arc<Class>)> {
        let Piece { chunk, within, mut buffer, is_stored } = piece;
        let mut claim = self.claim_chunk()?;
        let (wanted, only) = self.wanted_class();
        // A class may have chunks and its devices no space for them.
        let mut tried = 0;
        loop {
            let reserved = Arc::new(self.core.reserve(wanted, only, tried).await?);
            let class = self.core.class(reserved.place().class)?;
            let keep: Keep = Arc::new(Filling { _hold: hold.clone(), _reserved: reserved.clone() })
                as Arc<dyn Any + Send + Sync>;
            let filling = self.fill_chunk(&class, reserved.place(), within, buffer, is_stored, &keep);
            let (filled, back) = filling.await;
            match (filled, back) {
                (Ok(()), Some(buffer)) => {
                    // CRASH: as before; no sync covers what is not mapped.
                    self.core.crash.reached("allocate.before-mapping");
                    self.state.wrote(class.id, end);
                    self.map_fresh(chunk, &reserved);
                    claim.is_mapped = true;
                    return Ok((buffer, class));
                }
                (Err(error), Some(back)) if error.kind() == ErrorKind::NoSpace => {
                    class.ran_out_of_space(self.core.now());
                    tried |= 1 << class.id;
                    buffer = back;
                }
                (Err(error), _) => return Err(error),
                (Ok(()), None) => return Err(Error::new(ErrorKind::Cancelled, "a buffer was lost")),
            }
        }
    }

    /// Writes to a reserved chunk; what is left of it becomes zeros. The buffer comes back if it was not lost.
    async fn fill_chunk(
        &self,
        class: &Class,
        place: Place,
        within: u64,
        buffer: Buffer,
        is_stored: bool,
        keep: &Keep,
    ) -> (Result<()>, Option<Buffer>) {
        let (address, len) = (class.address(place.no), buffer.len() as u64);
        if len == self.core.chunk_bytes {
            return class.try_write(address, buffer, keep).await;
        }
        if is_stored {
            // No page leads to what else lies there.
            return class.try_write(address + within, buffer, keep).await;
        }
        // CRASH: the reserved chunk is in no mapping; at the next opening it is free.
        self.core.crash.reached("allocate.before-clearing");
        if let Err(error) = class.clear(address, self.core.chunk_bytes, &self.core.buffers, keep).await {
            return (Err(error), Some(buffer));
        }
        if within.is_multiple_of(BLOCK_BYTES) && len.is_multiple_of(BLOCK_BYTES) {
            return class.try_write(address + within, buffer, keep).await;
        }
        let first = within / BLOCK_BYTES * BLOCK_BYTES;
        let last = (within + len).next_multiple_of(BLOCK_BYTES);
        let mut blocks = self.core.buffers.allocate((last - first) as usize);
        blocks.fill(0);
        let skip = (within - first) as usize;
        blocks[skip..skip + buffer.len()].copy_from_slice(&buffer);
        let (written, _) = class.try_write(address + first, blocks, keep).await;
        (written, Some(buffer))
    }

    /// Maps a chunk in memory; the metadata hear of it with the next sync.
    pub(super) fn map_fresh(&self, chunk: u64, reserved: &Reserved) {
        let leaf = self.state.leaf_or_new(chunk);
        let mut fresh = self.state.fresh.lock();
        leaf.chunk(chunk).home.set_fresh(reserved.place());
        reserved.mapped();
        let number = fresh.next;
        fresh.next += 1;
        fresh.entries.insert(chunk, number);
    }

    /// The rank of the class where new chunks should go, and whether they may go nowhere else.
    pub(crate) fn wanted_class(&self) -> (usize, bool) {
        let attributes = *self.state.attributes.lock();
        let classes = self.core.class_list();
        let rank = |id: Option<u8>| id.and_then(|id| classes.rank(id));
        if let Some(pinned) = rank(attributes.pin) {
            return (pinned, self.core.bug != PlantedBug::IgnorePin);
        }
        (rank(attributes.class).unwrap_or(classes.ranked().len().saturating_sub(1)), false)
    }

    /// Counts one more chunk of the object, if its quota allows.
    fn claim_chunk(&self) -> Result<Claim<'_>> {
        let mut quota = self.state.attributes.lock().quota_bytes.unwrap_or(u64::MAX);
        if self.core.bug == PlantedBug::OverrunQuota {
            quota = quota.saturating_add(self.core.chunk_bytes);
        }
        let claimed = self.state.chunks.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |chunks| {
            ((chunks + 1) * self.core.chunk_bytes <= quota).then_some(chunks + 1)
        });
        match claimed {
            Ok(_) => Ok(Claim { object: &self.state, is_mapped: false }),
            Err(_) => {
                let message = format!("object {:?} has used up its quota of {quota} bytes", self.name());
                Err(Error::new(ErrorKind::QuotaExceeded, message))
            }
        }
    }
}

/// A chunk that counts for the object, unless it is never mapped.
struct Claim<'a> {
    object: &'a ObjectState,
    is_mapped: bool,
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        if !self.is_mapped {
            self.object.chunks.fetch_sub(1, Ordering::SeqCst);
        }
    }
}
