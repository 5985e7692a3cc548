//! Linux native AIO: the kernel's asynchronous I/O before io_uring.
//!
//! 1. [`start`] hands a read or a write to the kernel, in one system call on the calling thread.
//! 2. A thread takes completions, as many as there are, and completes the requests.
//!
//! One context for the process. Requests that find no room in its queue, and those that AIO would do on the calling
//! thread (syncs, freeing blocks), go to the thread pool.
//!
//! Invariant: what the kernel may still read or write is owned by `FLIGHTS` (file and buffer) until its event is taken.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use slab::Slab;

use crate::device::{Completion, OpenFile, Operation, Request, Ticket};
use crate::{Buffer, Fallback, threads};

/// Requests in the kernel at once; the system has room for 65,536 by default (`fs.aio-max-nr`).
const MOST_IN_FLIGHT: libc::c_long = 4096;
/// Completions taken by one system call.
const EVENTS: usize = 64;
/// The kernel transfers at most 2 GiB less a page at once; the device asks for the rest.
const MOST_BYTES: u64 = 1 << 30;

const READ: u16 = 0;
const WRITE: u16 = 1;

/// A request that the kernel works on.
struct Flight {
    /// Keeps the file open.
    file: Arc<OpenFile>,
    /// Keeps the bytes allocated.
    request: Request,
    completion: Completion,
}

/// The kernel's `struct io_event`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Event {
    data: u64,
    object: u64,
    result: i64,
    second_result: i64,
}

static FLIGHTS: Mutex<Slab<Flight>> = Mutex::new(Slab::new());
/// Taking completions has failed: nothing is submitted any more.
static HAS_FAILED: AtomicBool = AtomicBool::new(false);

/// Whether AIO works here; warns the first time it is wanted and does not.
pub(crate) fn is_available() -> bool {
    let why = match context() {
        _ if Fallback::NoAio.is_forced() => "it is switched off",
        Ok(_) if HAS_FAILED.load(Ordering::SeqCst) => "taking completions failed",
        Ok(_) => return true,
        Err(why) => why,
    };
    Fallback::NoAio.warn(format_args!("{why}"));
    false
}

/// The process's context, made when it is wanted first.
fn context() -> Result<libc::c_ulong, &'static str> {
    static CONTEXT: OnceLock<Result<libc::c_ulong, String>> = OnceLock::new();
    let made = CONTEXT.get_or_init(|| make().map_err(|error| error.to_string()));
    made.as_ref().copied().map_err(String::as_str)
}

fn make() -> io::Result<libc::c_ulong> {
    let mut context: libc::c_ulong = 0;
    // SAFETY: the kernel writes the context's number to where the pointer says, which lives until the call is over.
    checked(unsafe { libc::syscall(libc::SYS_io_setup, MOST_IN_FLIGHT, &raw mut context) })?;
    std::thread::Builder::new().name("tanada-io-aio".to_owned()).spawn(move || take_completions(context))?;
    Ok(context)
}

fn checked(result: libc::c_long) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// Starts `request` on `file`.
pub(crate) fn start(file: &Arc<OpenFile>, request: Request, completion: Completion) -> Ticket {
    let opcode = match request.operation {
        Operation::Read => READ,
        Operation::Write => WRITE,
        Operation::Sync | Operation::Punch => return threads::start(file, false, request, completion),
    };
    let (Ok(context), false) = (context(), HAS_FAILED.load(Ordering::SeqCst)) else {
        return threads::start(file, false, request, completion);
    };
    let mut flights = FLIGHTS.lock();
    let entry = flights.vacant_entry();
    let key = entry.key();
    let flight = entry.insert(Flight { file: file.clone(), request, completion });
    let mut block = control_block(key as u64, opcode, flight);
    drop(flights);
    let mut blocks = [&raw mut block];
    // SAFETY: the kernel copies the control block during the call; the bytes that it names are owned by `FLIGHTS` until
    // the request's event is taken, and by nobody else: `request` is not touched before.
    let submitted = checked(unsafe {
        libc::syscall(libc::SYS_io_submit, context, 1 as libc::c_long, blocks.as_mut_ptr())
    });
    let refused = match submitted {
        Ok(1) => return Ticket::default(),
        Ok(_) => io::Error::from_raw_os_error(libc::EAGAIN),
        Err(error) => error,
    };
    let flight = FLIGHTS.lock().try_remove(key);
    let Some(Flight { file, request, completion }) = flight else { return Ticket::default() };
    match refused.raw_os_error() {
        Some(libc::EAGAIN) => threads::start(&file, false, request, completion),
        _ => {
            drop(file);
            completion.complete(Err(refused), request.buffer);
            Ticket::default()
        }
    }
}

/// What the kernel is told of a flight.
fn control_block(key: u64, opcode: u16, flight: &mut Flight) -> libc::iocb {
    let Flight { file, request, .. } = flight;
    let bytes = request.len.min(MOST_BYTES);
    let from = request.from;
    let pointer = request.buffer.as_mut().map_or(std::ptr::null_mut(), |buffer: &mut Buffer| {
        assert!(bytes as usize <= buffer.len() - from, "an I/O stays within its buffer");
        buffer.pointer_at(from)
    });
    // SAFETY: a structure of integers, for which zeros are values.
    let mut block: libc::iocb = unsafe { std::mem::zeroed() };
    block.aio_data = key;
    block.aio_lio_opcode = opcode;
    block.aio_fildes = file.raw_fd() as u32;
    block.aio_buf = pointer as u64;
    block.aio_nbytes = bytes;
    block.aio_offset = request.offset as i64;
    block
}

/// The life of the thread that takes completions.
fn take_completions(context: libc::c_ulong) {
    let mut events = [Event::default(); EVENTS];
    let mut landed = Vec::with_capacity(EVENTS);
    loop {
        // SAFETY: there is room for as many events as the call may write; no time limit is given.
        let taken = checked(unsafe {
            libc::syscall(
                libc::SYS_io_getevents,
                context,
                1 as libc::c_long,
                EVENTS as libc::c_long,
                events.as_mut_ptr(),
                std::ptr::null_mut::<libc::timespec>(),
            )
        });
        let taken = match taken {
            Ok(taken) => taken.min(EVENTS),
            Err(error) if error.raw_os_error() == Some(libc::EINTR) => continue,
            Err(error) => return abandon(&error),
        };
        let mut flights = FLIGHTS.lock();
        landed.extend(events[..taken].iter().filter_map(|event| {
            let flight = flights.try_remove(event.data as usize)?;
            Some((flight, event.result))
        }));
        drop(flights);
        for (Flight { file, request, completion }, result) in landed.drain(..) {
            drop(file);
            let result = usize::try_from(result).map_err(|_| io::Error::from_raw_os_error((-result) as i32));
            completion.complete(result, request.buffer);
        }
    }
}

/// No completion will be taken any more: all in flight fail with `error`. Their buffers stay the kernel's for good.
fn abandon(error: &io::Error) {
    HAS_FAILED.store(true, Ordering::SeqCst);
    Fallback::NoAio.warn(format_args!("{error}"));
    let flights: Vec<Flight> = FLIGHTS.lock().drain().collect();
    for Flight { file, request, completion } in flights {
        std::mem::forget((file, request));
        let code = error.raw_os_error().unwrap_or(libc::EIO);
        completion.complete(Err(io::Error::from_raw_os_error(code)), None);
    }
}
