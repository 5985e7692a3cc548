//! How fast chunks may be relocated.
//!
//! Two reasons to wait, both over the volume's clock:
//! - a bandwidth limit: a token bucket gives each chunk a time at which it may begin, its bytes after the one before. An idle time gives at most
//!   one second's worth in advance;
//! - others: as long as objects are read or written meanwhile, chunks are copied one at a time, with a rest after each that is
//!   [`REST`] times as long as a copy takes. On a volume that is otherwise idle there is no rest.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::volume::Core;
use crate::{Error, Result};

/// Lets time pass. Injected, so that it passes in a simulation too.
pub trait Timer: Send + Sync + fmt::Debug {
    /// A future that is ready after `duration`.
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}

/// A copy's rest is so many times as long as the copy, while others use the volume: they lose a tenth of their time at most.
const REST: u32 = 9;

/// The longest rest between two chunks.
const LONGEST_REST: Duration = Duration::from_secs(1);

/// Limits of a relocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Chunks that are copied at once; each takes a buffer of a chunk. Default: 16.
    pub concurrency: usize,
    /// Bytes copied a second, no limit by default. Needs [`crate::Parts::timer`].
    pub bytes_per_second: Option<u64>,
    /// Rest while objects are read or written. Without a timer there is no rest. Default: true.
    pub yields: bool,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget { concurrency: 16, bytes_per_second: None, yields: true }
    }
}

/// What a volume's relocations have seen of its use.
#[derive(Debug, Default)]
pub(crate) struct Pace(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    /// I/Os of the volume's users, when last looked at,
    ios: u64,
    /// and when that was.
    at: Duration,
    /// How long a chunk takes, running average.
    copy: Duration,
}

/// What was seen longer ago says nothing of now.
const STALE: Duration = Duration::from_secs(1);

/// The bucket of one relocation.
pub(super) struct Bucket {
    rate: Option<u64>,
    timer: Option<Arc<dyn Timer>>,
    yields: bool,
    core: Arc<Core>,
    state: Mutex<State>,
}

struct State {
    /// When the next bytes may begin.
    next: Duration,
    /// Others use the volume, or it is not known yet.
    is_shared: bool,
    chunks: u64,
}

impl Bucket {
    pub(super) fn new(budget: &Budget, core: &Arc<Core>) -> Result<Bucket> {
        if budget.bytes_per_second == Some(0) {
            return Err(Error::invalid("a budget of 0 bytes a second moves nothing"));
        }
        if budget.bytes_per_second.is_some() && core.timer.is_none() {
            return Err(Error::invalid("a bandwidth budget needs a timer, and this volume has none"));
        }
        let now = core.now();
        let mut seen = core.pace.0.lock();
        if now.saturating_sub(seen.at) > STALE {
            (seen.ios, seen.at) = (core.user_ios(), now);
        }
        drop(seen);
        Ok(Bucket {
            rate: budget.bytes_per_second,
            timer: core.timer.clone(),
            yields: budget.yields && core.timer.is_some(),
            core: core.clone(),
            state: Mutex::new(State { next: now, is_shared: true, chunks: 0 }),
        })
    }

    /// Chunks that may be copied at once now; one, before it is known whether others use the volume.
    pub(super) fn concurrency(&self, wanted: usize) -> usize {
        if self.yields && self.state.lock().is_shared { 1 } else { wanted.max(1) }
    }

    /// Waits until `bytes` may be copied.
    pub(super) async fn take(&self, bytes: u64) {
        let Some(timer) = &self.timer else { return };
        let (now, ios) = (self.core.now(), self.core.user_ios());
        let (is_used, copy) = {
            let mut seen = self.core.pace.0.lock();
            let is_used = ios > seen.ios;
            (seen.ios, seen.at) = (ios, now);
            (is_used, seen.copy)
        };
        let begin = {
            let mut state = self.state.lock();
            state.is_shared = is_used || state.chunks == 0;
            state.chunks += 1;
            let mut begin = now;
            if let Some(rate) = self.rate {
                begin = state.next.max(now.saturating_sub(Duration::from_secs(1)));
                state.next = begin + Duration::from_secs_f64(bytes as f64 / rate as f64);
            }
            if self.yields && is_used {
                begin = begin.max(now + (copy * REST).min(LONGEST_REST));
            }
            begin
        };
        if begin > now {
            timer.sleep(begin - now).await;
        }
    }

    /// A chunk took so long, once it could begin.
    pub(super) fn copied(&self, took: Duration) {
        let mut seen = self.core.pace.0.lock();
        seen.copy = if seen.copy.is_zero() { took } else { (seen.copy * 3 + took) / 4 };
    }
}
