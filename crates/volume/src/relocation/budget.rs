//! How fast chunks may be relocated.
//!
//! A token bucket over the volume's clock: each chunk is given a time at which it may begin, its bytes after the one before; who is early
//! sleeps until then. An idle time gives at most one second's worth in advance.

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

/// Limits of a relocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Chunks that are copied at once. Default: 8.
    pub concurrency: usize,
    /// Bytes copied a second, no limit by default. Needs [`crate::Parts::timer`].
    pub bytes_per_second: Option<u64>,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget { concurrency: 8, bytes_per_second: None }
    }
}

/// The bucket of one relocation.
pub(super) struct Bucket {
    rate: Option<(u64, Arc<dyn Timer>)>,
    core: Arc<Core>,
    /// When the next bytes may begin.
    next: Mutex<Duration>,
}

impl Bucket {
    pub(super) fn new(budget: &Budget, core: &Arc<Core>) -> Result<Bucket> {
        let rate = match budget.bytes_per_second {
            None => None,
            Some(0) => return Err(Error::invalid("a budget of 0 bytes a second moves nothing")),
            Some(rate) => {
                let timer = core.timer.clone();
                let timer = timer.ok_or_else(|| {
                    Error::invalid("a bandwidth budget needs a timer, and this volume has none")
                })?;
                Some((rate, timer))
            }
        };
        Ok(Bucket { rate, core: core.clone(), next: Mutex::new(core.now()) })
    }

    /// Waits until `bytes` may be copied.
    pub(super) async fn take(&self, bytes: u64) {
        let Some((rate, timer)) = &self.rate else { return };
        let now = self.core.now();
        let begin = {
            let mut next = self.next.lock();
            let begin = (*next).max(now.saturating_sub(Duration::from_secs(1)));
            *next = begin + Duration::from_secs_f64(bytes as f64 / *rate as f64);
            begin
        };
        if begin > now {
            timer.sleep(begin - now).await;
        }
    }
}
