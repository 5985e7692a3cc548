//! How a ring is made on this kernel.
//!
//! The newest set of flags that the kernel takes is used: completions are run by the thread that waits for them,
//! without interrupting it (DEFER_TASKRUN, 6.1), or at least without extra wake-ups (COOP_TASKRUN, 5.19), or plainly.

use std::io;
use std::os::fd::RawFd;
use std::sync::OnceLock;

use io_uring::{IoUring, Probe, opcode};

use crate::buffer::REGION_BYTES;
use crate::{BufferPool, Fallback};

/// Whether rings work here; warns the first time they are wanted and do not.
pub(crate) fn is_available() -> bool {
    static PROBED: OnceLock<Result<(), String>> = OnceLock::new();
    let probed = PROBED.get_or_init(|| probe().map_err(|error| error.to_string()));
    let forced = Err("it is switched off".to_owned());
    match if Fallback::NoUring.is_forced() { &forced } else { probed } {
        Ok(()) => true,
        Err(why) => {
            Fallback::NoUring.warn(format_args!("{why}"));
            false
        }
    }
}

fn probe() -> io::Result<()> {
    let uring = build(8, 16)?;
    let mut probe = Probe::new();
    uring.submitter().register_probe(&mut probe)?;
    let needed = [
        opcode::Read::CODE,
        opcode::Write::CODE,
        opcode::ReadFixed::CODE,
        opcode::WriteFixed::CODE,
        opcode::Fsync::CODE,
        opcode::Fallocate::CODE,
        opcode::AsyncCancel::CODE,
        opcode::PollAdd::CODE,
    ];
    if needed.iter().all(|code| probe.is_supported(*code)) && uring.params().is_feature_nodrop() {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::Unsupported, "the kernel's is too old"))
}

/// A ring with the best flags the kernel takes.
pub(super) fn build(entries: u32, completions: u32) -> io::Result<IoUring> {
    let mut last = io::Error::from(io::ErrorKind::Unsupported);
    for level in (0..=2).rev() {
        let mut builder = IoUring::builder();
        builder.setup_clamp().setup_cqsize(completions).dontfork();
        if level >= 1 {
            builder.setup_coop_taskrun().setup_taskrun_flag().setup_submit_all();
        }
        if level >= 2 {
            builder.setup_single_issuer().setup_defer_taskrun();
        }
        match builder.build(entries) {
            Ok(uring) => return Ok(uring),
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => last = error,
            Err(error) => return Err(error),
        }
    }
    Err(last)
}

/// The descriptor of a ring that registered the same pool, and how much of it.
pub(crate) type Sibling = (RawFd, usize);

/// Registers as much of what the pool wants registered of its arena as the memory lock limit allows: all, or halves of
/// it, or nothing. How much it was.
pub(super) fn register_arena(uring: &IoUring, pool: &BufferPool, sibling: Option<Sibling>) -> usize {
    let (arena, wanted) = (pool.arena(), pool.registered_bytes());
    if wanted == 0 {
        return 0;
    }
    if let Some((fd, bytes)) = sibling
        && uring.submitter().register_buffers_clone(fd).is_ok()
    {
        return bytes;
    }
    let mut bytes = if Fallback::LowMemlock.is_forced() { 0 } else { wanted };
    while bytes > 0 {
        let regions: Vec<libc::iovec> = (0..bytes)
            .step_by(REGION_BYTES)
            .map(|offset| libc::iovec {
                iov_base: arena.at(offset).as_ptr().cast(),
                iov_len: REGION_BYTES.min(bytes - offset),
            })
            .collect();
        // SAFETY: the arena is mapped as long as the pool lives, and the ring holds the pool. The kernel touches these
        // bytes only for entries that name them, whose buffers the flights own.
        if unsafe { uring.submitter().register_buffers(&regions) }.is_ok() {
            break;
        }
        bytes = if bytes > SMALLEST { bytes / 2 / SMALLEST * SMALLEST } else { 0 };
    }
    if bytes < wanted {
        let limit =
            rustix::process::getrlimit(rustix::process::Resource::Memlock).current.unwrap_or(u64::MAX);
        Fallback::LowMemlock.warn(format_args!(
            "{} of {} MiB of I/O buffers could be registered with the kernel (limit {} KiB)",
            bytes >> 20,
            wanted >> 20,
            limit >> 10,
        ));
    }
    bytes
}

/// Less than this is not worth registering.
const SMALLEST: usize = 1 << 20;
