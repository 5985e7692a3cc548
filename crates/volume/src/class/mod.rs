//! Media classes: devices of one speed, striped, and the physical chunks on them.
//!
//! Invariants:
//! - a class keeps its number as long as it is there; its rank, fastest first, may change when classes are added before
//!   it;
//! - a chunk that is taken in the allocator is either in the mapping, or being filled by an operation that holds it, or
//!   waits until it may be used again;
//! - the class's devices are there as long as anything is written to it; one that is missing makes the class unreadable
//!   in part.

mod allocator;
pub(crate) mod device;
mod label;
mod list;
mod striping;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures::future::{join_all, try_join_all};
use parking_lot::Mutex;
use tanada_io::{Buffer, BufferPool, Device};

pub(crate) use allocator::Allocator;
pub(crate) use device::{ClassDevice, Keep};
pub(crate) use label::Label;
pub(crate) use list::ClassList;
pub(crate) use striping::{Extent, Striping};

use crate::settings::{BLOCK_BYTES, ClassSettings};
use crate::statistics::{Counters, PunchStatistics};
use crate::{Error, ErrorKind, Result};

/// A media class.
#[derive(Debug)]
pub(crate) struct Class {
    pub(crate) id: u8,
    pub(crate) name: String,
    pub(crate) segment_bytes: u64,
    pub(crate) chunk_bytes: u64,
    /// `None` for a device that is missing.
    pub(crate) devices: Vec<Option<Arc<ClassDevice>>>,
    striping: Striping,
    pub(crate) allocator: Mutex<Allocator>,
    pub(crate) counters: Counters,
    /// Takes no new chunks: it is being emptied.
    pub(crate) is_draining: AtomicBool,
    /// Its mirrors are not read any more: one of its devices failed.
    pub(crate) is_failed: AtomicBool,
    /// A device had no space for a chunk although the class had one: until when none is given out. In milliseconds of
    /// the volume's clock.
    out_of_space_until_ms: AtomicU64,
}

/// A device that had no space is asked again after this time, or when a chunk of its class has become free.
const OUT_OF_SPACE: Duration = Duration::from_secs(10);

impl Class {
    /// A class of `chunks` physical chunks on `devices`.
    pub(crate) fn new(
        id: u8,
        settings: &ClassSettings,
        chunk_bytes: u64,
        devices: Vec<Option<Device>>,
    ) -> Arc<Class> {
        let chunks = (settings.size_bytes / chunk_bytes) as u32;
        let striping = Striping::new(settings, devices.len());
        let devices = devices.into_iter().enumerate();
        Arc::new(Class {
            id,
            name: settings.name.clone(),
            segment_bytes: settings.segment_bytes,
            chunk_bytes,
            devices: devices
                .map(|(i, device)| device.map(|device| ClassDevice::new(&settings.name, i, device)))
                .collect(),
            striping,
            allocator: Mutex::new(Allocator::new(chunks)),
            counters: Counters::default(),
            is_draining: AtomicBool::new(false),
            is_failed: AtomicBool::new(false),
            out_of_space_until_ms: AtomicU64::new(0),
        })
    }

    /// Whether a device is missing.
    pub(crate) fn is_missing(&self) -> bool {
        self.devices.iter().any(Option::is_none)
    }

    /// Why no chunk is given here though some may be free, if so.
    pub(crate) fn refusal(&self) -> Option<&'static str> {
        let reasons = [
            (self.is_missing(), "a device of it is missing"),
            (self.is_failed() || self.takes_no_writes(), "a device of it has failed"),
            (self.is_draining(), "it is being drained"),
        ];
        reasons.into_iter().find(|(is_so, _)| *is_so).map(|(_, why)| why)
    }

    /// Whether nothing more may be written here: a sync failed, or a device is missing.
    pub(crate) fn takes_no_writes(&self) -> bool {
        self.devices.iter().any(|device| device.as_ref().is_none_or(|device| device.has_failed()))
    }

    /// The device of an extent.
    pub(crate) fn device(&self, index: usize) -> Result<&Arc<ClassDevice>> {
        self.devices.get(index).and_then(Option::as_ref).ok_or_else(|| {
            let message = format!(
                "class {}, device {index} is missing: put back the file or disk that the volume's settings name for it",
                self.name
            );
            Error::new(ErrorKind::MissingDevice, message)
        })
    }

    /// The first byte of physical chunk `no` in the class's address space.
    pub(crate) fn address(&self, no: u32) -> u64 {
        u64::from(no) * self.chunk_bytes
    }

    pub(crate) fn first_extent(&self, address: u64, len: u64) -> Extent {
        self.striping.first_extent(address, len)
    }

    /// Reads `buffer.len()` bytes at `address`, over as many devices as it lies on.
    pub(crate) async fn read(&self, address: u64, buffer: Buffer, keep: &Keep) -> Result<Buffer> {
        let (extents, buffers) = self.pieces(address, buffer);
        let reads = extents.into_iter().zip(buffers).map(|(extent, buffer)| async move {
            self.device(extent.device)?.read(extent.offset, buffer, keep).await
        });
        join(try_join_all(reads).await?)
    }

    /// Writes the whole buffer at `address`.
    pub(crate) async fn write(&self, address: u64, buffer: Buffer, keep: &Keep) -> Result<Buffer> {
        let (written, buffer) = self.try_write(address, buffer, keep).await;
        written?;
        buffer.ok_or_else(lost_buffer)
    }

    /// Writes the whole buffer at `address`; it comes back if that fails, unless it was lost.
    pub(crate) async fn try_write(
        &self,
        address: u64,
        buffer: Buffer,
        keep: &Keep,
    ) -> (Result<()>, Option<Buffer>) {
        let (extents, buffers) = self.pieces(address, buffer);
        let writes = extents.into_iter().zip(buffers).map(|(extent, buffer)| async move {
            match self.device(extent.device) {
                Ok(device) => device.try_write(extent.offset, buffer, keep).await,
                Err(error) => (Err(error), Some(buffer)),
            }
        });
        let (written, buffers): (Vec<_>, Vec<_>) = join_all(writes).await.into_iter().unzip();
        let whole = buffers.into_iter().collect::<Option<Vec<Buffer>>>().and_then(|all| join(all).ok());
        (written.into_iter().collect(), whole)
    }

    /// Makes `len` bytes at `address` zeros, without writing them where the devices can do that.
    pub(crate) async fn clear(
        &self,
        address: u64,
        len: u64,
        pool: &Arc<BufferPool>,
        keep: &Keep,
    ) -> Result<()> {
        let clears = self.striping.extents(address, len).map(|extent| async move {
            let device = self.device(extent.device)?;
            if device.punch(extent.offset, extent.len, keep).await? {
                return Ok(());
            }
            let mut at = 0;
            while at < extent.len {
                let len = (extent.len - at).min(1 << 20);
                let mut zeros = pool.allocate(len as usize);
                zeros.fill(0);
                device.write(extent.offset + at, zeros, keep).await?;
                at += len;
            }
            Ok::<(), Error>(())
        });
        try_join_all(clears).await?;
        Ok(())
    }

    /// Cuts the buffer where the devices change.
    fn pieces(&self, address: u64, mut buffer: Buffer) -> (Vec<Extent>, Vec<Buffer>) {
        let extents: Vec<Extent> = self.striping.extents(address, buffer.len() as u64).collect();
        let mut buffers = Vec::with_capacity(extents.len());
        for extent in extents.iter().skip(1) {
            let before = extents[buffers.len()].len as usize;
            debug_assert_eq!(extent.offset % BLOCK_BYTES, 0);
            let rest = buffer.split_off(before);
            buffers.push(std::mem::replace(&mut buffer, rest));
        }
        buffers.push(buffer);
        (extents, buffers)
    }

    /// Makes everything durable that was written to any of its devices.
    pub(crate) async fn sync(&self) -> Result<()> {
        // All of them, even if one fails: what the others hold is worth something.
        let syncs = self.devices.iter().flatten().map(|device| device.sync());
        join_all(syncs).await.into_iter().collect()
    }

    /// Makes its devices, which are large enough for `before` chunks, as large as `chunks` need; durable after the next
    /// sync. The new last block is written even if a device says that it is large enough: that may be what an attempt
    /// left that failed, and no sync would cover it.
    pub(crate) async fn reserve(
        &self,
        before: u32,
        chunks: u32,
        pool: &Arc<BufferPool>,
        keep: &Keep,
    ) -> Result<()> {
        let bytes = |chunks: u32| self.striping.device_bytes(u64::from(chunks) * self.chunk_bytes);
        let needed = bytes(chunks);
        if needed <= bytes(before) {
            return Ok(());
        }
        for device in self.devices.iter().flatten() {
            let mut zeros = pool.allocate(BLOCK_BYTES as usize);
            zeros.fill(0);
            // It lies behind all that the class has so far.
            let last = needed.next_multiple_of(BLOCK_BYTES) - BLOCK_BYTES;
            device.write(last, zeros, keep).await?;
        }
        Ok(())
    }

    /// Bytes that each of its devices needs.
    pub(crate) fn device_bytes(&self) -> u64 {
        let chunks = self.allocator.lock().chunks();
        self.striping.device_bytes(u64::from(chunks) * self.chunk_bytes)
    }

    /// The devices that are smaller than the class needs, or do not say how large they are, with the reason.
    pub(crate) fn too_small(&self) -> Vec<(usize, Error)> {
        let needed = self.device_bytes();
        let why = |device: &ClassDevice| match device.device().size_bytes() {
            Err(error) => Some(Error::io(device.name(), &error)),
            Ok(size) if size < needed => Some(Error::corrupted(format!(
                "{} has {size} bytes, its class needs {needed}: bring back what was cut off; while the file is moved away the volume is read-only, and what lies elsewhere is there",
                device.name()
            ))),
            Ok(_) => None,
        };
        let devices = self.devices.iter().enumerate();
        devices.filter_map(|(index, device)| Some((index, why(device.as_ref()?)?))).collect()
    }

    /// Writes the labels; not durable before the next sync.
    pub(crate) async fn write_labels(
        &self,
        volume: [u8; 16],
        pool: &Arc<BufferPool>,
        keep: &Keep,
    ) -> Result<()> {
        for (i, device) in self.devices.iter().enumerate() {
            let Some(device) = device else { continue };
            let mut block = pool.allocate(BLOCK_BYTES as usize);
            let label =
                Label { volume, class: self.id, device: i as u16, devices: self.devices.len() as u16 };
            label.encode(&mut block);
            device.write(0, block, keep).await?;
        }
        Ok(())
    }

    /// Fails if a device is another's than the one that belongs there; the devices whose label cannot be read, with the
    /// reason.
    pub(crate) async fn check_labels(
        &self,
        volume: [u8; 16],
        pool: &Arc<BufferPool>,
    ) -> Result<Vec<(usize, Error)>> {
        let keep: Keep = Arc::new(());
        let mut silent = Vec::new();
        for (i, device) in self.devices.iter().enumerate() {
            let Some(device) = device else { continue };
            let block = match device.read(0, pool.allocate(BLOCK_BYTES as usize), &keep).await {
                Ok(block) => block,
                Err(error) => {
                    silent.push((i, error));
                    continue;
                }
            };
            let expected =
                Label { volume, class: self.id, device: i as u16, devices: self.devices.len() as u16 };
            let label = match Label::decode(&block, device.name()) {
                Err(error) if error.kind() == ErrorKind::Corrupted => None,
                label => label?,
            };
            match label {
                Some(label) if label == expected => {}
                Some(label) if label.volume != volume => {
                    let message = format!("{} belongs to another volume", device.name());
                    return Err(Error::new(ErrorKind::WrongVolume, message));
                }
                Some(label) => {
                    let message = format!(
                        "{} is device {} of {} of class number {} of this volume: the devices are mixed up",
                        device.name(),
                        label.device,
                        label.devices,
                        label.class
                    );
                    return Err(Error::new(ErrorKind::WrongVolume, message));
                }
                None => {
                    let error = Error::corrupted(format!(
                        "{}: the label in its first 4 KiB is damaged: restore the volume from a copy; while the file is moved away the volume is read-only, and what lies elsewhere is there",
                        device.name()
                    ));
                    silent.push((i, error));
                }
            }
        }
        Ok(silent)
    }

    /// A device had no space for a chunk.
    pub(crate) fn ran_out_of_space(&self, now: Duration) {
        let until = (now + OUT_OF_SPACE).as_millis() as u64;
        self.out_of_space_until_ms.store(until, Ordering::SeqCst);
    }

    /// Whether a device had no space a short time ago.
    pub(crate) fn is_out_of_space(&self, now: Duration) -> bool {
        self.out_of_space_until_ms.load(Ordering::SeqCst) > now.as_millis() as u64
    }

    /// A chunk has become free: there is space for one at least.
    pub(crate) fn has_space_again(&self) {
        self.out_of_space_until_ms.store(0, Ordering::SeqCst);
    }

    /// What became of punches on all its devices.
    pub(crate) fn punches(&self) -> PunchStatistics {
        let devices = self.devices.iter().flatten().map(|device| device.punches());
        devices.fold(PunchStatistics::default(), PunchStatistics::plus)
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::SeqCst)
    }

    pub(crate) fn is_failed(&self) -> bool {
        self.is_failed.load(Ordering::SeqCst)
    }
}

/// One buffer of the pieces that were one.
fn join(buffers: Vec<Buffer>) -> Result<Buffer> {
    let mut buffers = buffers.into_iter();
    let mut whole = buffers.next().ok_or_else(lost_buffer)?;
    for piece in buffers {
        whole.unsplit(piece).map_err(|_| lost_buffer())?;
    }
    Ok(whole)
}

fn lost_buffer() -> Error {
    Error::new(ErrorKind::Cancelled, "a buffer was lost")
}
