//! CPU time of threads, and whether they sleep: what the kernel knows.

use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::model::Nanos;

/// A thread as others may look at it.
#[derive(Debug)]
pub(super) struct Thread {
    clock: libc::clockid_t,
    /// The kernel's description of it; `None` if there is no `/proc`.
    stat: Option<File>,
}

impl Thread {
    /// The calling thread.
    pub(super) fn current() -> Thread {
        let mut clock = libc::CLOCK_THREAD_CPUTIME_ID;
        // SAFETY: the calling thread lives, and `clock` is a place to write to.
        unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &raw mut clock) };
        // SAFETY: takes nothing and cannot fail.
        let id = unsafe { libc::gettid() };
        Thread { clock, stat: File::open(format!("/proc/self/task/{id}/stat")).ok() }
    }

    /// CPU time used so far; `None` once the thread has ended.
    pub(super) fn cpu(&self) -> Option<Nanos> {
        read_clock(self.clock)
    }

    /// Whether it sleeps, as opposed to running, being about to run, or waiting for a disk. One that was just woken no
    /// longer does, even if it has not run yet. One that has ended sleeps well.
    pub(super) fn is_asleep(&self) -> bool {
        let mut text = [0; 96];
        let Some(len) = self.stat.as_ref().and_then(|stat| stat.read_at(&mut text, 0).ok()) else {
            return true;
        };
        // "id (name) S ...", and the name may hold anything.
        let text = &text[..len];
        let state = text.iter().rposition(|byte| *byte == b')').and_then(|end| text.get(end + 2));
        !matches!(state, Some(b'R' | b'D'))
    }
}

/// CPU time of the calling thread.
pub(super) fn of_this_thread() -> Nanos {
    read_clock(libc::CLOCK_THREAD_CPUTIME_ID).unwrap_or(0)
}

fn read_clock(clock: libc::clockid_t) -> Option<Nanos> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a place to write to; an unknown clock is an error, not undefined.
    let read = unsafe { libc::clock_gettime(clock, &raw mut time) };
    (read == 0).then(|| time.tv_sec as Nanos * 1_000_000_000 + time.tv_nsec as Nanos)
}

/// Has the kernel wake the calling thread when it asked to be, not up to 50 us later.
pub(super) fn sleep_precisely() {
    // SAFETY: sets a number of the calling thread; there is no pointer.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_000 as libc::c_ulong, 0, 0, 0) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn a_thread_that_waits_sleeps_and_uses_no_cpu() {
        let (tell, told) = mpsc::channel();
        let (end, ended) = mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            tell.send(Thread::current()).unwrap();
            let _ = ended.recv();
        });
        let other = told.recv().unwrap();
        while !other.is_asleep() {
            std::thread::yield_now();
        }
        let used = other.cpu().unwrap();
        assert!(!Thread::current().is_asleep());
        assert_eq!(other.cpu(), Some(used));
        end.send(()).unwrap();
        thread.join().unwrap();
        while other.cpu().is_some() {
            std::thread::yield_now();
        }
        assert!(other.is_asleep());
    }
}
