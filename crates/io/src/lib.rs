//! Asynchronous positioned I/O on aligned buffers, and the executor whose tasks it drives.
//!
//! Above: every layer that stores or reads bytes. Below: `tanada-base` and the kernel.
//!
//! - A [`Device`] is a file or a block device (or any other [`Backend`]): read, write, sync, punch, each a future.
//! - A [`Buffer`] is the aligned memory an I/O works on; a [`BufferPool`] recycles them.
//! - [`Executors`] are threads with an io_uring each. Tasks spawned on them drive thousands of I/Os from one thread.
//! - [`wait`] runs a future on a thread that has nothing else to do, without an executor.
//! - A [`Gate`] bounds I/Os and bytes in flight; an [`IoContext`] goes through it and counts.
//! - [`Slots`] are memory that goes back to the system piece by piece.
//! - A [`ModelSpec`] (`8xhdd-7200`) describes devices to emulate; a [`Timeline`] puts them before a device, in real or
//!   in virtual time.
//!
//! What the machine lacks (direct I/O, io_uring, locked memory) is replaced by the next best way: see [`Fallback`].
//!
//! ```
//! use tanada_io::{Device, DeviceOptions, ExecutorOptions, Executors, Gate, GateLimits, IoContext};
//!
//! # let directory = tempfile::tempdir().unwrap();
//! # let path = directory.path().join("pages");
//! # std::fs::write(&path, vec![7; 1 << 20]).unwrap();
//! let executors = Executors::start(ExecutorOptions { threads: 1, ..ExecutorOptions::default() })?;
//! let device = Device::open(&path, &DeviceOptions::default())?;
//! let context = IoContext::new(Gate::new(GateLimits { ios: Some(32), bytes: 8 << 20 }));
//! let (pool, counted) = (executors.buffers().clone(), context.clone());
//!
//! let sum = executors.block_on(move || async move {
//!     // 64 tasks, each with one read of 16 KiB; at most 32 reads are in flight at once.
//!     let reads = (0..64).map(|page| {
//!         let (device, pool, context) = (device.clone(), pool.clone(), context.clone());
//!         tanada_io::spawn_local(async move { context.read(&device, page * 16384, pool.allocate(16384)).await })
//!     });
//!     let mut sum = 0;
//!     for read in reads.collect::<Vec<_>>() {
//!         sum += u64::from(read.await?[0]);
//!     }
//!     Ok::<u64, tanada_io::Error>(sum)
//! })??;
//! assert_eq!(sum, 64 * 7);
//! assert_eq!(counted.counters().snapshot().ios, 64);
//! # Ok::<(), tanada_io::Error>(())
//! ```

mod aio;
#[cfg(feature = "allocator")]
mod allocator;
mod buffer;
mod context;
mod device;
mod error;
mod executor;
mod fallback;
mod gate;
mod medium;
mod model;
mod observer;
mod pages;
mod ring;
mod slots;
mod threads;
mod timeline;
mod wait;

#[cfg(feature = "allocator")]
pub use allocator::{Allocator, give_memory_back_at_once, give_memory_back_soon};
pub use buffer::{BUFFER_ALIGNMENT, Buffer, BufferPool, LARGEST_POOLED_BUFFER};
pub use context::{IoContext, IoCounters, IoSnapshot, Permit};
pub use device::{Awaited, Backend, Completion, Device, DeviceOptions, Method, Operation, Request, Ticket};
pub use error::{Error, ErrorKind, Result, is_cancelled};
pub use executor::{
    Chain, ExecutorOptions, Executors, JoinHandle, Task, begin_chain, operations_since_resumed,
    others_are_ready, spawn_local,
};
pub use fallback::{Fallback, force_fallback, set_warning_sink, warn};
pub use gate::{Gate, GateLimits};
pub use medium::Medium;
pub use model::{FlashSpec, MemberSpec, ModelQueue, ModelSpec, ModelledArray, Preset, SpindleSpec};
pub use observer::{IoObserver, ObservedRead};
pub use pages::SmallPages;
pub use slots::Slots;
pub use timeline::{RegisteredThread, Timeline, VirtualTimeOptions};
pub use wait::wait;
