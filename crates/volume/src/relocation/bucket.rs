//! How a relocation keeps to its budget, and lets others go first.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::budget::{Budget, Timer};
use super::pace::{Answer, Pace, Usage, Where};
use crate::class::Class;
use crate::volume::Core;
use crate::{Error, Result};

impl Core {
    /// I/Os of the volume's users so far; copies of relocations do not count.
    fn usage(&self) -> Usage {
        let classes = self.class_list();
        let mut cells = self.adopted_counters.usage().to_vec();
        for class in classes.ranked() {
            let place = Where::Class(class.id).cells();
            cells.resize(cells.len().max(place.end), (0, 0));
            cells[place].copy_from_slice(&class.counters.usage());
        }
        Usage(cells)
    }
}

/// The bucket of one relocation.
pub(super) struct Bucket {
    rate: Option<u64>,
    timer: Option<Arc<dyn Timer>>,
    yields: bool,
    core: Arc<Core>,
    /// When the next bytes may begin under the bandwidth limit.
    next: Mutex<Duration>,
}

/// The right to copy one chunk.
pub(super) struct Permit<'a> {
    bucket: &'a Bucket,
    began: Duration,
    /// Bytes that may be copied without asking again.
    granted: u64,
}

impl Bucket {
    pub(super) fn new(budget: &Budget, core: &Arc<Core>) -> Result<Bucket> {
        if budget.bytes_per_second == Some(0) {
            return Err(Error::invalid("a budget of 0 bytes a second moves nothing"));
        }
        if budget.bytes_per_second.is_some() && core.timer.is_none() {
            return Err(Error::invalid("a bandwidth budget needs a timer, and this volume has none"));
        }
        let yields = budget.yields && core.timer.is_some();
        let now = core.now();
        if yields {
            core.pace.0.lock().begin(now, &core.usage());
        }
        Ok(Bucket {
            rate: budget.bytes_per_second,
            timer: core.timer.clone(),
            yields,
            core: core.clone(),
            next: Mutex::new(now),
        })
    }

    /// Chunks that are worth having under way at once now.
    pub(super) fn concurrency(&self, wanted: usize) -> usize {
        if !self.yields {
            return wanted.max(1);
        }
        self.core.pace.0.lock().concurrency(wanted, self.core.chunk_bytes)
    }

    /// Waits until the next chunk may be copied.
    pub(super) async fn take(&self) -> Permit<'_> {
        let bytes = self.core.chunk_bytes;
        if let (Some(rate), Some(timer)) = (self.rate, &self.timer) {
            let now = self.core.now();
            let begin = {
                let mut next = self.next.lock();
                let begin = (*next).max(now.saturating_sub(Duration::from_secs(1)));
                *next = begin + Duration::from_secs_f64(bytes as f64 / rate as f64);
                begin
            };
            if begin > now {
                timer.sleep(begin - now).await;
            }
        }
        let granted = match self.yields {
            true => self.ask(|pace, now, usage| pace.ask(now, usage, bytes)).await,
            false => bytes,
        };
        Permit { bucket: self, began: self.core.now(), granted }
    }

    async fn ask(&self, question: impl Fn(&mut Pace, Duration, &Usage) -> Answer) -> u64 {
        loop {
            let (now, usage) = (self.core.now(), self.core.usage());
            let answer = question(&mut self.core.pace.0.lock(), now, &usage);
            match (answer, &self.timer) {
                (Answer::Go(bytes), _) => return bytes,
                (Answer::Wait(time), Some(timer)) => timer.sleep(time).await,
                (Answer::Wait(_), None) => return u64::MAX,
            }
        }
    }
}

impl Permit<'_> {
    /// Bytes that are best read or written at once in a class, or of an adopted file.
    pub(super) fn piece(&self, class: Option<&Class>) -> u64 {
        let core = &self.bucket.core;
        let place = class.map_or(Where::Adopted, |class| Where::Class(class.id));
        match self.bucket.yields {
            true => core.pace.0.lock().piece(place, core.chunk_bytes),
            false => core.chunk_bytes,
        }
    }

    /// Waits until so many more bytes of the chunk may be copied.
    pub(super) async fn spend(&mut self, bytes: u64) {
        let missing = bytes.saturating_sub(self.granted);
        self.granted = self.granted.saturating_sub(bytes);
        if missing > 0 && self.bucket.yields {
            let chunk_bytes = self.bucket.core.chunk_bytes;
            self.bucket.ask(|pace, now, usage| pace.ask_on(now, usage, missing, chunk_bytes)).await;
        }
    }

    /// The chunk was copied.
    pub(super) fn copied(&self) {
        let core = &self.bucket.core;
        core.pace.0.lock().copied(core.now().saturating_sub(self.began));
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        let core = &self.bucket.core;
        if self.bucket.yields {
            let (now, usage) = (core.now(), core.usage());
            core.pace.0.lock().ended(now, &usage);
        }
    }
}
