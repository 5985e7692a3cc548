//! Reads.
//!
//! 1. The I/O counts itself into the current epoch, then looks up where the chunk lies: its mirror if there is one that
//!    can be read, its home, the adopted file, or nowhere (zeros).
//! 2. A request in one piece on one device goes there as it is, with another offset; its completion counts, and passes
//!    on. One on several pieces is split, without copying, and comes together in a [`Gather`].
//! 3. Whoever needs a part of some blocks alone says so, and a request in one piece asks the device for no more than
//!    that, in the device's own units: a value of 1,000 bytes across two blocks is 1.5 KB of 8.
//! 4. What fails on a mirror is read from the home instead, and the mirrors of that class are not used any more.
//!
//! Nothing waits here but for devices.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tanada_io::{Buffer, Completion, Device, Operation, Request, Ticket, is_cancelled};

use super::ObjectState;
use super::gather::Gather;
use super::ticket::read_ticket;
use crate::chunk::table::Leaf;
use crate::class::Class;
use crate::class::device::{ClassDevice, ends_early, is_put_off};
use crate::crash::PlantedBug;
use crate::settings::BLOCK_BYTES;
use crate::statistics::Sample;
use crate::volume::Core;
use crate::waiting::GraceGuard;
use crate::{Error, ErrorKind, Result};

/// Less is read by no device.
const SMALLEST_UNIT_BYTES: u64 = 512;

/// Where a part is read from.
#[derive(Debug, Clone)]
enum Source {
    Class { class: Arc<Class>, device: Arc<ClassDevice>, index: usize, is_mirror: bool },
    File(Device),
}

/// A part of a request that lies in one piece, or nowhere.
#[derive(Debug)]
struct Part {
    /// `None` reads as zeros.
    source: Option<Source>,
    /// On the device.
    offset: u64,
    len: u64,
    /// In the object.
    logical: u64,
}

/// Who is told of a part's end.
#[derive(Debug)]
enum Whole {
    Request(Completion),
    Part(Arc<Gather>, usize),
}

/// One part under way.
struct PartIo {
    core: Arc<Core>,
    object: Arc<ObjectState>,
    part: Part,
    leaf: Option<Arc<Leaf>>,
    whole: Whole,
    /// Where the part begins in its buffer.
    from: usize,
    /// The bytes of the part that somebody needs.
    needed: Range<u64>,
    /// What the device is asked for, from the part's beginning: whole units, and the object may end within one.
    asked: Range<u64>,
    /// Where what is done ends.
    done: u64,
    /// How far the buffer goes behind the part's beginning.
    room: u64,
    is_sequential: bool,
    started: Duration,
    grace: GraceGuard,
}

/// Reads for the backend; a transfer that ends at the object's end is short. Of the request's bytes only those `needed`
/// are there afterwards.
pub(super) fn start(
    core: &Arc<Core>,
    object: &Arc<ObjectState>,
    request: Request,
    needed: Range<u64>,
    completion: Completion,
) -> Ticket {
    let Some(buffer) = request.buffer else {
        completion.complete(Err(io::Error::from(io::ErrorKind::InvalidInput)), None);
        return Ticket::default();
    };
    let size = object.size();
    let len = request.len.min(size.saturating_sub(request.offset));
    let needed = needed.start.min(len)..needed.end.min(len);
    if needed.is_empty() {
        completion.complete(Ok(len as usize), Some(buffer));
        return Ticket::default();
    }
    let offset = request.offset;
    let is_sequential = object.streams.note(offset, len);
    let grace = core.grace.enter();
    let chunk = offset >> core.chunk_shift;
    let leaf = object.table.read().leaf(chunk).cloned();
    let part = match first_part(core, object, leaf.as_deref(), offset, len) {
        Ok(part) => part,
        Err(error) => {
            completion.complete(Err(into_io(error)), Some(buffer));
            return Ticket::default();
        }
    };
    if part.len == len {
        let io = PartIo {
            core: core.clone(),
            object: object.clone(),
            part,
            leaf,
            whole: Whole::Request(completion),
            from: request.from,
            needed,
            asked: 0..0,
            done: 0,
            room: request.len,
            is_sequential,
            started: core.now(),
            grace,
        };
        return io.start(buffer);
    }
    let request = Request { buffer: Some(buffer), len, ..request };
    start_parts(core, object, part, request, completion, is_sequential);
    Ticket::default()
}

/// The first part of `len` bytes at `offset` that lies in one piece within its chunk.
fn first_part(core: &Core, object: &ObjectState, leaf: Option<&Leaf>, offset: u64, len: u64) -> Result<Part> {
    let no = offset >> core.chunk_shift;
    let within = offset & (core.chunk_bytes - 1);
    let len = len.min(core.chunk_bytes - within);
    let mut part = Part { source: None, offset, len, logical: offset };
    let chunk = leaf.map(|leaf| leaf.chunk(no));
    if let Some(mirror) = chunk.and_then(|chunk| chunk.mirror.get())
        && let Ok(class) = core.class(mirror.class)
        && !class.is_failed()
    {
        let extent = class.first_extent(class.address(mirror.no) + within, len);
        if let Ok(device) = class.device(extent.device) {
            let device = device.clone();
            part.offset = extent.offset;
            part.len = extent.len;
            part.source = Some(Source::Class { class, device, index: extent.device, is_mirror: true });
            return Ok(part);
        }
    }
    home_part(core, object, leaf, part)
}

/// The part of `part` that lies in one piece in the chunk's home.
fn home_part(core: &Core, object: &ObjectState, leaf: Option<&Leaf>, mut part: Part) -> Result<Part> {
    let no = part.logical >> core.chunk_shift;
    let within = part.logical & (core.chunk_bytes - 1);
    if let Some(file) = &object.adopted {
        let device = file.device.read().clone();
        let device = device.ok_or_else(|| {
            let why = match core.opener.open(&file.path) {
                Ok(_) => "it could not when it was looked at last".to_owned(),
                Err(error) => error.to_string(),
            };
            let message = format!("the adopted file {} cannot be opened: {why}", file.path);
            Error::new(ErrorKind::MissingDevice, message)
        })?;
        part.offset = part.logical;
        part.source = Some(Source::File(device));
        return Ok(part);
    }
    let Some(home) = leaf.and_then(|leaf| leaf.chunk(no).home.get()) else {
        part.source = None;
        return Ok(part);
    };
    let class = core.class(home.class)?;
    let extent = class.first_extent(class.address(home.no) + within, part.len);
    let device = class.device(extent.device)?.clone();
    part.offset = extent.offset;
    part.len = extent.len;
    part.source = Some(Source::Class { class, device, index: extent.device, is_mirror: false });
    Ok(part)
}

/// Whether `next` goes on where `part` ends, on the same device.
fn is_one_piece(part: &Part, next: &Part) -> bool {
    let same = match (&part.source, &next.source) {
        (None, None) => true,
        (Some(Source::File(_)), Some(Source::File(_))) => true,
        (
            Some(Source::Class { device: a, is_mirror: x, .. }),
            Some(Source::Class { device: b, is_mirror: y, .. }),
        ) => Arc::ptr_eq(a, b) && x == y,
        _ => false,
    };
    same && (part.source.is_none() || part.offset + part.len == next.offset)
}

/// All parts of a request, neighbours in one piece joined.
fn parts(core: &Core, object: &ObjectState, first: Part, len: u64) -> Result<Vec<Part>> {
    let mut at = first.logical + first.len;
    let end = first.logical + len;
    let mut parts = vec![first];
    let table = object.table.read();
    while at < end {
        let leaf = table.leaf(at >> core.chunk_shift).map(|leaf| &**leaf);
        let next = first_part(core, object, leaf, at, end - at)?;
        at += next.len;
        match parts.last_mut() {
            Some(last) if is_one_piece(last, &next) => last.len += next.len,
            _ => parts.push(next),
        }
    }
    Ok(parts)
}

/// A request in several pieces. Their places are looked up again, under one period of grace each.
fn start_parts(
    core: &Arc<Core>,
    object: &Arc<ObjectState>,
    first: Part,
    request: Request,
    completion: Completion,
    is_sequential: bool,
) {
    let Some(mut buffer) = request.buffer else { return };
    let mut graces = vec![core.grace.enter()];
    let (logical, len) = (first.logical, request.len);
    let found = {
        let leaf = object.table.read().leaf(logical >> core.chunk_shift).cloned();
        first_part(core, object, leaf.as_deref(), logical, len)
            .and_then(|first| parts(core, object, first, len))
    };
    let parts = match found {
        Ok(parts) => parts,
        Err(error) => return completion.complete(Err(into_io(error)), Some(buffer)),
    };
    graces.resize_with(parts.len(), || core.grace.enter());
    let count = parts.len();
    let mut from = request.from;
    let mut whole = Some(completion);
    let gather = (count > 1).then(|| {
        let head = (from > 0).then(|| {
            let rest = buffer.split_off(from);
            from = 0;
            std::mem::replace(&mut buffer, rest)
        });
        whole.take().map(|completion| Arc::new(Gather::new(count, head, len as usize, completion)))
    });
    let gather = gather.flatten();
    let mut rest = Some(buffer);
    for (index, (part, grace)) in parts.into_iter().zip(graces).enumerate() {
        let Some(mut buffer) = rest.take() else { return };
        let is_last = index + 1 == count;
        if !is_last {
            rest = Some(buffer.split_off(part.len as usize));
        }
        let whole = match (&gather, whole.take()) {
            (Some(gather), _) => Whole::Part(gather.clone(), index),
            (None, Some(completion)) => Whole::Request(completion),
            (None, None) => return,
        };
        let room = (buffer.len() - from) as u64;
        let io = PartIo {
            core: core.clone(),
            object: object.clone(),
            needed: 0..part.len,
            asked: 0..0,
            room: if is_last { room } else { part.len },
            part,
            leaf: None,
            whole,
            from,
            done: 0,
            is_sequential,
            started: core.now(),
            grace,
        };
        io.start(buffer);
    }
}

impl PartIo {
    fn start(mut self, mut buffer: Buffer) -> Ticket {
        let (device, source) = match &self.part.source {
            None => {
                let range = self.from..self.from + self.part.len as usize;
                buffer[range].fill(0);
                self.count();
                self.end(Ok(()), Some(buffer));
                return Ticket::default();
            }
            Some(Source::Class { class, device, index, .. }) => {
                (device.device().clone(), Some((class.id, *index)))
            }
            Some(Source::File(device)) => (device.clone(), None),
        };
        if self.done == 0 {
            let unit = (device.alignment() as u64).clamp(SMALLEST_UNIT_BYTES, BLOCK_BYTES);
            let start = self.needed.start / unit * unit;
            self.asked = start..self.needed.end.next_multiple_of(unit).min(self.room);
            self.done = start;
        }
        let request = Request {
            operation: Operation::Read,
            offset: self.part.offset + self.done,
            len: self.asked.end - self.done,
            buffer: Some(buffer),
            from: self.from + self.done as usize,
        };
        let completion = Completion::from_fn(move |result, buffer| self.finished(result, buffer));
        read_ticket(device.start(request, completion), source)
    }

    fn finished(mut self, result: io::Result<usize>, buffer: Option<Buffer>) {
        let Some(buffer) = buffer else {
            let lost = || io::Error::new(io::ErrorKind::Interrupted, "the I/O was cancelled");
            let error = result.err().unwrap_or_else(lost);
            return self.end(Err(error), None);
        };
        match result {
            Ok(bytes) => {
                self.done += bytes as u64;
                if self.done >= self.needed.end {
                    self.count();
                    self.end(Ok(()), Some(buffer));
                } else if bytes == 0 || !self.done.is_multiple_of(SMALLEST_UNIT_BYTES) {
                    let error = self.failed(&ends_early(Operation::Read));
                    self.failed_read(error, buffer);
                } else {
                    self.start(buffer);
                }
            }
            Err(error) if is_put_off(&error) || is_cancelled(&error) => self.end(Err(error), Some(buffer)),
            // The method may help; whoever asked tries again.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => self.end(Err(error), Some(buffer)),
            Err(error) => {
                let error = self.failed(&error);
                self.failed_read(error, buffer);
            }
        }
    }

    fn class(&self) -> Option<&Arc<Class>> {
        match &self.part.source {
            Some(Source::Class { class, .. }) => Some(class),
            _ => None,
        }
    }

    fn failed(&self, error: &io::Error) -> io::Error {
        let what = format!(
            "chunk {} of object {:?}",
            self.part.logical >> self.core.chunk_shift,
            self.object.name.read()
        );
        let error = match &self.part.source {
            Some(Source::Class { device, .. }) => {
                device.error(Operation::Read, self.part.offset, self.part.len, error)
            }
            _ => {
                let path = self.object.adopted.as_ref().map_or("", |file| &file.path);
                let (len, offset) = (self.part.len, self.part.offset);
                let message =
                    format!("cannot read {len} bytes at offset {offset} of the adopted file {path}: {error}");
                Error::new(ErrorKind::Device, message)
            }
        };
        into_io(Error::new(error.kind(), format!("{what}: {error}")))
    }

    /// A mirror's failure costs speed only.
    fn failed_read(mut self, error: io::Error, buffer: Buffer) {
        if let Some(class) = self.class() {
            class.counters.count_error();
        }
        let Some(Source::Class { class, is_mirror: true, .. }) = &self.part.source else {
            return self.end(Err(error), Some(buffer));
        };
        if self.core.bug == PlantedBug::TrustMirrors {
            return self.end(Err(error), Some(buffer));
        }
        class.is_failed.store(true, Ordering::SeqCst);
        let Some(logical_end) = self.part.logical.checked_add(self.part.len) else { return };
        // From the home it may be in other pieces.
        let part = Part { source: None, offset: 0, len: self.part.len, logical: self.part.logical };
        let leaf = self.object.table.read().leaf(part.logical >> self.core.chunk_shift).cloned();
        let within = part.logical & (self.core.chunk_bytes - 1);
        let first_len = part.len.min(self.core.chunk_bytes - within);
        match home_part(&self.core, &self.object, leaf.as_deref(), Part { len: first_len, ..part }) {
            Ok(home) if home.logical + home.len == logical_end => {
                self.part = home;
                self.done = 0;
                self.start(buffer);
            }
            Ok(_) => self.read_home_in_pieces(buffer),
            Err(other) => self.end(Err(into_io(other)), Some(buffer)),
        }
    }

    /// The rare case that a mirror failed and the home lies in several pieces.
    fn read_home_in_pieces(self, buffer: Buffer) {
        let (core, object) = (self.core.clone(), self.object.clone());
        let (logical, len, from) = (self.part.logical, self.part.len, self.from);
        let completion = Completion::from_fn(move |result, buffer| self.end(result.map(drop), buffer));
        let request =
            Request { operation: Operation::Read, offset: logical, len, buffer: Some(buffer), from };
        let first = Part { source: None, offset: 0, len: 0, logical };
        start_parts(&core, &object, first, request, completion, false);
    }

    fn count(&self) {
        let now = self.core.now();
        let latency = now.saturating_sub(self.started);
        let (mut logical, mut bytes) = (self.part.logical, self.part.len);
        if self.part.source.is_some() {
            // Of the last unit what is behind the object's end is nobody's.
            bytes = self.asked.end.min(self.part.len) - self.asked.start;
            logical += self.asked.start;
        }
        match &self.part.source {
            Some(Source::Class { class, .. }) => class.counters.count(false, bytes, latency),
            Some(Source::File(_)) => self.core.adopted_counters.count(false, bytes, latency),
            None => {}
        }
        self.object.counters.count(false, bytes, latency);
        let sample = Sample {
            is_write: false,
            is_sequential: self.is_sequential,
            bytes,
            now,
            half_life_s: self.core.half_life_s,
        };
        count_chunks(&self.core, &self.object, self.leaf.as_deref(), logical, &sample);
    }

    fn end(self, result: io::Result<()>, buffer: Option<Buffer>) {
        let PartIo { whole, grace, part, .. } = self;
        drop(grace);
        match whole {
            Whole::Request(completion) => completion.complete(result.map(|()| part.len as usize), buffer),
            Whole::Part(gather, index) => drop(gather.done(index, result, buffer)),
        }
    }
}

/// Counts an I/O for each chunk that it touched.
pub(super) fn count_chunks(
    core: &Core,
    object: &ObjectState,
    leaf: Option<&Leaf>,
    logical: u64,
    sample: &Sample,
) {
    let (mut at, end) = (logical, logical + sample.bytes);
    while at < end {
        let no = at >> core.chunk_shift;
        let bytes = (end - at).min(core.chunk_bytes - (at & (core.chunk_bytes - 1)));
        let sample = Sample { bytes, ..*sample };
        match leaf {
            Some(leaf) if bytes == end - logical => leaf.chunk(no).count(&sample),
            _ => {
                let found = object.table.read().leaf(no).cloned();
                match found {
                    Some(leaf) => leaf.chunk(no).count(&sample),
                    // A chunk of an adopted file is known from its first read on.
                    None if object.adopted.is_some() => {
                        let leaf = object.table.write().leaf_or_new(no).clone();
                        leaf.chunk(no).count(&sample);
                    }
                    None => {}
                }
            }
        }
        at += bytes;
    }
}

/// An error as a backend reports it; [`from_io`] takes it out again.
pub(crate) fn into_io(error: Error) -> io::Error {
    let kind = match error.kind() {
        ErrorKind::NoSpace | ErrorKind::QuotaExceeded => io::ErrorKind::StorageFull,
        ErrorKind::InvalidInput => io::ErrorKind::InvalidInput,
        ErrorKind::NotFound => io::ErrorKind::NotFound,
        ErrorKind::ReadOnly => io::ErrorKind::ReadOnlyFilesystem,
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, error)
}

pub(super) fn from_io(error: io::Error, what: &str) -> Error {
    match error.downcast::<Error>() {
        Ok(error) => error,
        Err(error) => Error::new(ErrorKind::Device, format!("{what}: {error}")),
    }
}
