//! The pace of jobs: what they read gives way to what somebody waits for.
//!
//! A job that reads megabytes as fast as a device can lets everyone else's reads wait meanwhile: few of them, but those are the slowest there are.
//!
//! 1. As long as readers have loaded values lately, a job reads one piece at a time, and rests [`REST`] times as long as that took.
//! 2. That slows it down to [`LEAST_BYTES_PER_SECOND`] at the most: what is read together later than that is read as fast as can be. So a device that is
//!    slow anyway is not made slower, and jobs keep pace with writers who could not fill a disk faster.
//! 3. When writers are held back, the fastest class is nearly full or the database is being closed, there is no time for it at all ([`Hurry`]).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::cache::Cache;
use crate::environment::Environment;

/// A reader that loaded something so long ago may be there still, and wait for a slow device.
const LATELY: Duration = Duration::from_millis(100);

/// How many times as long as a read the rest after it is.
const REST: u32 = 3;

/// A job that gives way reads as much at least.
const LEAST_BYTES_PER_SECOND: u64 = 100_000_000;

/// Why the jobs of a database have no time.
#[derive(Debug, Default)]
pub(crate) struct Hurry {
    /// Writers are held back until jobs are done.
    pub(crate) writers: AtomicBool,
    /// Writers are slowed because the fastest class is nearly full.
    pub(crate) room: AtomicBool,
    /// Somebody waits for the jobs' end.
    pub(crate) end: AtomicBool,
}

impl Hurry {
    fn is_any(&self) -> bool {
        [&self.writers, &self.room, &self.end].iter().any(|why| why.load(Ordering::Relaxed))
    }
}

/// How jobs read.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pace(Option<Arc<Considerate>>);

#[derive(Debug)]
struct Considerate {
    /// Counts what readers load.
    cache: Arc<Cache>,
    environment: Arc<dyn Environment>,
    hurry: Arc<Hurry>,
    seen: Mutex<Seen>,
}

/// What readers had loaded, and when that was found to be more than before.
#[derive(Debug, Default)]
struct Seen {
    loads: u64,
    at: Option<Duration>,
}

impl Seen {
    /// Whether readers are there at `now`, having loaded so much by then.
    fn look(&mut self, loads: u64, now: Duration) -> bool {
        if loads != self.loads {
            *self = Seen { loads, at: Some(now) };
        }
        self.at.is_some_and(|at| now.saturating_sub(at) < LATELY)
    }
}

impl Pace {
    /// Gives way to who reads values through `cache`, unless there is a hurry.
    pub(crate) fn considerate(
        cache: &Arc<Cache>,
        environment: &Arc<dyn Environment>,
        hurry: &Arc<Hurry>,
    ) -> Pace {
        let seen = Mutex::new(Seen { loads: cache.value_loads(), at: None });
        let (cache, environment, hurry) = (cache.clone(), environment.clone(), hurry.clone());
        Pace(Some(Arc::new(Considerate { cache, environment, hurry, seen })))
    }

    /// Nobody has to be given way to.
    pub(crate) fn unbounded() -> Pace {
        Pace::default()
    }

    /// A walk through `bytes` begins now.
    pub(crate) fn walk(&self, bytes: u64) -> Walk<'_> {
        let time = Duration::from_secs_f64(bytes as f64 / LEAST_BYTES_PER_SECOND as f64);
        let paced = self.0.as_deref().map(|pace| (pace, pace.environment.now().saturating_add(time)));
        Walk(paced)
    }
}

/// Some bytes that are read together, and until when that gives way to others.
#[derive(Debug)]
pub(crate) struct Walk<'a>(Option<(&'a Considerate, Duration)>);

impl Walk<'_> {
    /// Whether to read one piece at a time, and rest after it.
    pub(crate) fn gives_way(&self) -> bool {
        let Some((pace, until)) = &self.0 else { return false };
        let now = pace.environment.now();
        now < *until && !pace.hurry.is_any() && pace.seen.lock().look(pace.cache.value_loads(), now)
    }

    /// Waits for one read, and then rests if there is somebody to give way to.
    pub(crate) async fn take<T>(&self, read: impl Future<Output = T>) -> T {
        let Some((pace, until)) = &self.0 else { return read.await };
        let began = pace.environment.now();
        let output = read.await;
        if self.gives_way() {
            let now = pace.environment.now();
            let rest = now.saturating_sub(began).saturating_mul(REST).min(until.saturating_sub(now));
            pace.environment.sleep(rest).await;
        }
        output
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use futures::executor::block_on;
    use tanada_io::BufferPool;

    use super::*;
    use crate::environment::BackgroundTask;

    /// Every look at the clock takes a millisecond; rests are noted, and take no time.
    #[derive(Debug, Default)]
    struct Noting {
        looks: AtomicU32,
        rests: Mutex<Vec<Duration>>,
    }

    impl Environment for Noting {
        fn spawn(&self, _: BackgroundTask) {}

        fn sleep(&self, duration: Duration) -> BackgroundTask {
            self.rests.lock().push(duration);
            Box::pin(std::future::ready(()))
        }

        fn now(&self) -> Duration {
            Duration::from_millis(self.looks.fetch_add(1, Ordering::Relaxed).into())
        }

        fn wall_time_s(&self) -> u64 {
            0
        }

        fn buffers(&self) -> Arc<BufferPool> {
            BufferPool::new(0)
        }
    }

    #[test]
    fn a_job_rests_as_long_as_readers_are_there_and_there_is_time() {
        let (cache, noting, hurry) = (Cache::new(1 << 20), Arc::new(Noting::default()), Arc::default());
        let environment: Arc<dyn Environment> = noting.clone();
        let pace = Pace::considerate(&cache, &environment, &hurry);
        let rests = |walk: &Walk<'_>| {
            block_on(walk.take(std::future::ready(())));
            std::mem::take(&mut *noting.rests.lock())
        };
        let walk = pace.walk(100_000_000);
        assert!(!walk.gives_way() && rests(&walk).is_empty(), "nobody reads");
        cache.note_values(1);
        assert!(walk.gives_way());
        let [rest] = rests(&walk)[..] else { panic!("one rest") };
        assert!(rest >= Duration::from_millis(3), "{rest:?}");
        for why in [&hurry.writers, &hurry.room, &hurry.end] {
            why.store(true, Ordering::Relaxed);
            assert!(!walk.gives_way() && rests(&walk).is_empty(), "{hurry:?}");
            why.store(false, Ordering::Relaxed);
            assert!(walk.gives_way());
        }
        noting.looks.fetch_add(200, Ordering::Relaxed);
        assert!(!walk.gives_way() && rests(&walk).is_empty(), "they have gone");
        noting.looks.fetch_add(1000, Ordering::Relaxed);
        cache.note_values(1);
        assert!(!walk.gives_way() && rests(&walk).is_empty(), "a second for 100 MB");
        assert!(pace.walk(100_000_000).gives_way());
        assert!(!Pace::unbounded().walk(1 << 30).gives_way());
    }

    #[test]
    fn readers_are_there_until_they_have_loaded_nothing_for_a_while() {
        let ms = Duration::from_millis;
        let mut seen = Seen { loads: 7, at: None };
        assert!(!seen.look(7, ms(1)), "what was loaded before does not count");
        assert!(seen.look(8, ms(2)));
        assert!(seen.look(8, ms(101)));
        assert!(!seen.look(8, ms(102)));
        assert!(seen.look(9, ms(500)));
    }
}
