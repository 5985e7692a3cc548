//! A simulated disk: a [`Backend`] whose completions come in virtual time and whose faults are chosen.
//!
//! 1. An I/O that is started draws its fault and its latency; the bytes of a write are copied. Some writes take effect
//!    at once, so that others see them before they are acknowledged, and some only as they complete; so I/Os in flight
//!    are reordered.
//! 2. As it completes, its effect takes place: reads see all writes that took effect. A write or punch is then
//!    *pending*.
//! 3. A sync makes durable what had completed when the sync was started, no more.
//! 4. A power cut ([`Wreck`]) keeps what is durable and any part of what is pending or in flight.
//!
//! Invariants: `cache` is `durable` with `pending` applied, but for sectors that a failed sync forgot; an I/O is
//! completed once.

mod effect;
mod image;
mod wreck;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use tanada_base::SplitMix64;
use tanada_io::{Backend, Buffer, Completion, Device, Method, Operation, Request, Ticket};

pub(crate) use effect::{Effect, SECTOR_BYTES};
pub use image::DiskImage;
pub use wreck::{Tearing, Wreck, WreckedDisk};

use crate::executor::{Action, Shared};
use crate::fault::Fault;

/// What a disk is like.
#[derive(Debug, Clone)]
pub struct DiskOptions {
    /// Its path in messages, and its name in a [`Wreck`].
    pub name: String,
    /// Offsets and lengths are multiples of this. Default: 512.
    pub alignment: usize,
    /// A write past this is short, then ENOSPC. Default: 1 TiB.
    pub capacity_bytes: u64,
    /// Whether its size is its capacity from the start, as a block device's. Default: no, it grows as a file does.
    pub is_block_device: bool,
    /// The shortest read or write, in microseconds of virtual time; most take up to four times as long, a few forty
    /// times. Default: 50.
    pub latency_us: u64,
}

impl DiskOptions {
    /// The defaults, with this name.
    pub fn named(name: impl Into<String>) -> DiskOptions {
        DiskOptions {
            name: name.into(),
            alignment: SECTOR_BYTES as usize,
            capacity_bytes: 1 << 40,
            is_block_device: false,
            latency_us: 50,
        }
    }
}

/// An I/O that is about to take effect, for observers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IoNote {
    /// The disk's number.
    pub disk: usize,
    /// What it does.
    pub operation: Operation,
    /// Where.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
}

/// A change that took effect in the cache but is not durable.
#[derive(Debug)]
struct Pending {
    io: u64,
    /// Its place among completions, once completed.
    completed: Option<u64>,
    effect: Effect,
}

#[derive(Debug)]
struct InFlight {
    operation: Operation,
    offset: u64,
    len: u64,
    from: usize,
    buffer: Option<Buffer>,
    completion: Completion,
    fault: Option<Fault>,
    /// What a write or a punch will do, unless it is in the cache already.
    effect: Option<Effect>,
    /// For a sync: it covers completions before this one.
    covers: u64,
}

#[derive(Debug)]
struct State {
    durable: DiskImage,
    cache: DiskImage,
    pending: Vec<Pending>,
    in_flight: BTreeMap<u64, InFlight>,
    started: u64,
    completed: u64,
    random: SplitMix64,
}

/// A disk, shared by its devices and the events to come.
#[derive(Debug)]
pub(crate) struct Disk {
    no: usize,
    options: DiskOptions,
    path: PathBuf,
    shared: Arc<Shared>,
    state: Mutex<State>,
}

/// The scenario's handle of a disk.
#[derive(Debug, Clone)]
pub struct SimDisk {
    pub(crate) disk: Arc<Disk>,
}

impl SimDisk {
    /// A device on it. Several devices of one disk see the same bytes, as several opens of a file do.
    pub fn device(&self) -> Device {
        Device::from_backend(SimBackend(self.disk.clone()))
    }

    /// Its number in its world.
    pub fn no(&self) -> usize {
        self.disk.no
    }

    /// What a read would see now.
    pub fn cache(&self) -> DiskImage {
        self.disk.state.lock().cache.clone()
    }

    /// Changes the bytes behind everybody's back, durably: rot, or another program.
    pub fn tamper(&self, change: impl Fn(&mut DiskImage)) {
        let mut state = self.disk.state.lock();
        change(&mut state.durable);
        change(&mut state.cache);
    }
}

/// All disks of a world, for those that look at them from wherever they are called. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct DiskSet {
    disks: Arc<Mutex<Vec<Arc<Disk>>>>,
}

impl DiskSet {
    pub(crate) fn add(&self, make: impl FnOnce(usize) -> Disk) -> Arc<Disk> {
        let mut disks = self.disks.lock();
        let disk = Arc::new(make(disks.len()));
        disks.push(disk.clone());
        disk
    }

    /// Drops all I/Os in flight, and with them what waits for them.
    pub(crate) fn abandon(&self) {
        let disks = self.disks.lock().clone();
        for disk in disks {
            let in_flight = std::mem::take(&mut disk.state.lock().in_flight);
            drop(in_flight);
        }
    }

    /// The disks as a power cut would find them now. Cheap: pages are shared.
    pub fn wreck(&self) -> Wreck {
        Wreck { disks: self.disks.lock().iter().map(|disk| disk.wrecked()).collect() }
    }
}

struct SimBackend(Arc<Disk>);

impl fmt::Debug for SimBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SimBackend").field(&self.0.path).finish()
    }
}

impl Backend for SimBackend {
    fn path(&self) -> &Path {
        &self.0.path
    }

    fn size_bytes(&self) -> io::Result<u64> {
        Ok(self.0.state.lock().cache.size_bytes())
    }

    fn method(&self) -> Method {
        Method::Threads
    }

    fn alignment(&self) -> usize {
        self.0.options.alignment
    }

    fn start(&self, request: Request, completion: Completion) -> Ticket {
        self.0.start(request, completion)
    }
}

impl Disk {
    pub(crate) fn new(no: usize, options: DiskOptions, mut image: DiskImage, shared: Arc<Shared>) -> Disk {
        if options.is_block_device {
            image.set_size(options.capacity_bytes);
        }
        let state = State {
            durable: image.clone(),
            cache: image,
            pending: Vec::new(),
            in_flight: BTreeMap::new(),
            started: 0,
            completed: 0,
            random: shared.stream(),
        };
        let path = PathBuf::from(&options.name);
        Disk { no, options, path, shared, state: Mutex::new(state) }
    }

    fn start(self: &Arc<Self>, request: Request, completion: Completion) -> Ticket {
        let Request { operation, offset, len, buffer, from } = request;
        if self.shared.is_off() {
            completion.complete(Err(io::Error::from_raw_os_error(libc::EIO)), buffer);
            return Ticket::default();
        }
        let mut state = self.state.lock();
        let no = state.started;
        state.started += 1;
        self.shared.count_io();
        let trace = &self.shared.trace;
        [self.no as u64, operation as u64, offset, len].into_iter().for_each(|value| trace.fold(value));
        let fault = self.shared.faults.decide(self.no, operation, &mut state.random);
        let due_ns = self.shared.now_ns() + self.latency_ns(operation, &mut state.random);
        let mut io = InFlight {
            operation,
            offset,
            len,
            from,
            buffer,
            completion,
            fault,
            effect: None,
            covers: state.completed,
        };
        match operation {
            Operation::Write => {
                let bytes = io.buffer.as_ref().map_or(&[][..], |buffer| &buffer[from..from + len as usize]);
                trace.fold_bytes(bytes);
                let effect = self.effect_of_write(offset, bytes, fault, &mut state.random);
                io.len = effect.as_ref().map_or(0, |(_, len)| *len);
                io.effect = effect.and_then(|(effect, _)| effect);
            }
            Operation::Punch if fault != Some(Fault::LostPunch) => {
                io.effect = Some(Effect::punch(offset, len))
            }
            Operation::Punch | Operation::Read | Operation::Sync => {}
        }
        if let Some(fault) = fault {
            trace.fold(fault as u64);
        } else if operation == Operation::Write
            && state.random.below(4) == 0
            && let Some(effect) = io.effect.take()
        {
            state.take_effect(no, effect, None);
        }
        state.in_flight.insert(no, io);
        drop(state);
        self.shared.at(due_ns, Action::Complete(self.clone(), no));
        Ticket { place: self.no as u64, no }
    }

    /// What a write will do, and the bytes that it reports; `None` if the disk is full.
    fn effect_of_write(
        &self,
        offset: u64,
        bytes: &[u8],
        fault: Option<Fault>,
        random: &mut SplitMix64,
    ) -> Option<(Option<Effect>, u64)> {
        let room = self.options.capacity_bytes.saturating_sub(offset);
        let room = room / self.options.alignment as u64 * self.options.alignment as u64;
        let mut len = (bytes.len() as u64).min(room);
        if fault == Some(Fault::NoSpace) || (len == 0 && !bytes.is_empty()) {
            return None;
        }
        if fault == Some(Fault::Short) {
            len = shorter(len, self.options.alignment as u64, random);
        }
        let bytes = &bytes[..len as usize];
        let effect = match fault {
            Some(Fault::LostWrite) => None,
            Some(Fault::Misdirected) => {
                let unit = self.options.alignment as u64;
                let end = (offset + len).max(8 * len) / unit;
                let wrong = random.below(end) * unit;
                Some(Effect::write(if wrong == offset { offset + len } else { wrong }, bytes))
            }
            Some(Fault::FlipOnWrite) => {
                let mut bytes = bytes.to_vec();
                let at = random.below(len.max(1)) as usize;
                bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << random.below(8));
                Some(Effect::write(offset, &bytes))
            }
            _ => Some(Effect::write(offset, bytes)),
        };
        Some((effect, len))
    }

    fn latency_ns(&self, operation: Operation, random: &mut SplitMix64) -> u64 {
        let shortest = self.options.latency_us * 1000;
        let most = match random.below(16) {
            0 => 40 * shortest,
            _ => 4 * shortest,
        };
        let span = shortest + random.below(most);
        if operation == Operation::Sync { 3 * span } else { span }
    }

    /// What observers are told about I/O `no` before it takes effect.
    pub(crate) fn note(&self, no: u64) -> Option<IoNote> {
        let state = self.state.lock();
        let io = state.in_flight.get(&no)?;
        Some(IoNote { disk: self.no, operation: io.operation, offset: io.offset, len: io.len })
    }

    /// Lets I/O `no` take effect and completes it.
    pub(crate) fn finish(&self, no: u64) {
        let mut state = self.state.lock();
        let Some(mut io) = state.in_flight.remove(&no) else { return };
        let result = match io.operation {
            Operation::Read => state.read(&mut io, self.options.alignment as u64),
            Operation::Write | Operation::Punch => state.change(no, &mut io),
            Operation::Sync => state.sync(&io),
        };
        drop(state);
        self.shared.trace.fold(result.as_ref().map_or(u64::MAX, |done| *done as u64));
        io.completion.complete(result, io.buffer);
    }

    /// The disk as a power cut would find it.
    pub(crate) fn wrecked(&self) -> WreckedDisk {
        let state = self.state.lock();
        let pending = state.pending.iter().map(|pending| pending.effect.clone());
        let in_flight = state.in_flight.values().filter_map(|io| io.effect.clone());
        WreckedDisk {
            name: self.options.name.clone(),
            durable: state.durable.clone(),
            pending: pending.chain(in_flight).collect(),
        }
    }
}

impl State {
    /// Puts a change into the cache.
    fn take_effect(&mut self, io: u64, effect: Effect, completed: Option<u64>) {
        effect.apply(&mut self.cache);
        self.pending.push(Pending { io, completed, effect });
    }

    fn read(&mut self, io: &mut InFlight, alignment: u64) -> io::Result<usize> {
        if io.fault == Some(Fault::Error) {
            return Err(io::Error::from_raw_os_error(libc::EIO));
        }
        let mut len = io.len.min(self.cache.size_bytes().saturating_sub(io.offset));
        if io.fault == Some(Fault::Short) {
            len = shorter(len, alignment, &mut self.random);
        }
        let Some(buffer) = &mut io.buffer else { return Ok(0) };
        let bytes = &mut buffer[io.from..io.from + len as usize];
        self.cache.read(io.offset, bytes);
        if io.fault == Some(Fault::FlipOnRead) && len > 0 {
            bytes[self.random.below(len) as usize] ^= 1 << self.random.below(8);
        }
        Ok(len as usize)
    }

    fn change(&mut self, no: u64, io: &mut InFlight) -> io::Result<usize> {
        let completed = self.completed;
        self.completed += 1;
        match (io.fault, io.effect.take()) {
            (Some(Fault::Error), effect) => {
                let parts = effect.map_or_else(Vec::new, |effect| effect.torn(&mut self.random));
                for part in parts {
                    self.take_effect(no, part, Some(completed));
                }
                return Err(io::Error::from_raw_os_error(libc::EIO));
            }
            (_, Some(effect)) => self.take_effect(no, effect, Some(completed)),
            (Some(Fault::LostWrite | Fault::LostPunch), None) => {}
            (_, None) => match self.pending.iter_mut().rfind(|pending| pending.io == no) {
                Some(early) => early.completed = Some(completed),
                // Nothing was written although something should have been: the disk is full.
                None if io.len == 0 => return Err(io::Error::from_raw_os_error(libc::ENOSPC)),
                None => {}
            },
        }
        Ok(io.len as usize)
    }

    fn sync(&mut self, io: &InFlight) -> io::Result<usize> {
        if io.fault == Some(Fault::LyingSync) {
            return Ok(0);
        }
        let covered = |pending: &mut Pending| pending.completed.is_some_and(|at| at < io.covers);
        let covered: Vec<Pending> = self.pending.extract_if(.., covered).collect();
        if io.fault != Some(Fault::Error) {
            covered.iter().for_each(|pending| pending.effect.apply(&mut self.durable));
            return Ok(0);
        }
        for pending in &covered {
            if self.random.below(2) == 0 {
                pending.effect.apply_torn(&mut self.durable, &mut self.random);
            }
        }
        if self.random.below(2) == 0 {
            // The cache drops what it believes to be clean; reads see the disk. A hole stays one: that is the file
            // system's own knowledge.
            self.cache = self.durable.clone();
            let punches = covered.iter().filter(|pending| pending.effect.is_punch());
            punches.chain(&self.pending).for_each(|pending| pending.effect.apply(&mut self.cache));
        }
        Err(io::Error::from_raw_os_error(libc::EIO))
    }
}

/// A part of `len` that ends on a boundary: at least one unit if there is more than one.
fn shorter(len: u64, unit: u64, random: &mut SplitMix64) -> u64 {
    let units = len / unit;
    if units < 2 { len } else { (1 + random.below(units - 1)) * unit }
}
