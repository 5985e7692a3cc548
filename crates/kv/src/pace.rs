//! The pace of jobs: what they read gives way to what somebody waits for.
//!
//! A job that reads megabytes as fast as a device can lets everyone else's reads wait meanwhile: few of them, but those
//! are the slowest there are.
//!
//! 1. As long as readers have loaded values lately, a job reads at an even pace, `PACE.paced_bytes_per_second`: one
//!    piece at a time, with rests `PACE.max_rest_factor` times as long as that took at most. So it makes no bursts,
//!    which everyone else would wait for.
//! 2. Where that is less, for the device is slow or busy, it reads more pieces at once the further it lags behind: jobs
//!    keep pace with writers who could not fill a disk faster, and a device that is slow anyway is not made slower.
//! 3. When writers are stalled, the fastest class is nearly full or the database is being closed, there is no time
//!    for it at all ([`Hurry`]).

use crate::tuning::reads::PACE;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::cache::Cache;
use crate::environment::Environment;

/// Why the jobs of a database have no time.
#[derive(Debug, Default)]
pub(crate) struct Hurry {
    /// Writers are stalled until jobs are done.
    pub(crate) writers: AtomicBool,
    /// Writers are slowed because the fastest class is nearly full.
    pub(crate) room: AtomicBool,
    /// A caller waits for the end of the jobs.
    pub(crate) end: AtomicBool,
}

impl Hurry {
    fn is_any(&self) -> bool {
        [&self.writers, &self.room, &self.end].iter().any(|why| why.load(Ordering::Relaxed))
    }
}

/// The pace of a job's reads.
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

/// The loads of readers at the last check, and when they had last increased.
#[derive(Debug, Default)]
struct Seen {
    loads: u64,
    at: Option<Duration>,
}

impl Seen {
    /// Returns true if readers are present at `now`, with `loads` so far.
    fn look(&mut self, loads: u64, now: Duration) -> bool {
        if loads != self.loads {
            *self = Seen { loads, at: Some(now) };
        }
        self.at.is_some_and(|at| now.saturating_sub(at) < PACE.reader_timeout)
    }
}

impl Pace {
    /// Gives way to readers of `cache`, unless there is a hurry.
    pub(crate) fn considerate(
        cache: &Arc<Cache>,
        environment: &Arc<dyn Environment>,
        hurry: &Arc<Hurry>,
    ) -> Pace {
        let seen = Mutex::new(Seen { loads: cache.value_loads(), at: None });
        let (cache, environment, hurry) = (cache.clone(), environment.clone(), hurry.clone());
        Pace(Some(Arc::new(Considerate { cache, environment, hurry, seen })))
    }

    /// A pace without limits.
    pub(crate) fn unbounded() -> Pace {
        Pace::default()
    }

    /// A walk begins now.
    pub(crate) fn walk(&self) -> Walk<'_> {
        let now = self.0.as_ref().map_or(Duration::ZERO, |pace| pace.environment.now());
        Walk { pace: self.0.as_deref(), began: now, looked: now, bytes: 0 }
    }
}

/// Something that is read piece by piece.
#[derive(Debug)]
pub(crate) struct Walk<'a> {
    pace: Option<&'a Considerate>,
    began: Duration,
    /// When the last rest ended.
    looked: Duration,
    /// Bytes read so far.
    bytes: u64,
}

impl Walk<'_> {
    /// Returns the pace and the time if readers are present and there is no hurry.
    fn giving_way(&self) -> Option<(&Considerate, Duration)> {
        let pace = self.pace.filter(|pace| !pace.hurry.is_any())?;
        let now = pace.environment.now();
        pace.seen.lock().look(pace.cache.value_loads(), now).then_some((pace, now))
    }

    /// Returns when the bytes read so far are due.
    fn due(&self) -> Duration {
        self.began.saturating_add(Duration::from_secs_f64(self.bytes as f64 / PACE.paced_bytes_per_second))
    }

    /// Returns how many pieces to read concurrently, at most `most`.
    pub(crate) fn at_once(&self, most: usize) -> usize {
        let Some((_, now)) = self.giving_way() else { return most };
        let lag = now.saturating_sub(self.due()).as_micros() / PACE.lag_per_extra_read.as_micros();
        usize::try_from(lag).unwrap_or(most).saturating_add(1).min(most)
    }

    /// A piece with this many bytes of what is wanted was read: rests if there is somebody to give way to, and time.
    pub(crate) async fn rest(&mut self, bytes: u64) {
        self.bytes += bytes;
        if let Some((pace, now)) = self.giving_way() {
            let took = now.saturating_sub(self.looked);
            let rest = took.saturating_mul(PACE.max_rest_factor).min(self.due().saturating_sub(now));
            if rest > Duration::ZERO {
                pace.environment.sleep(rest).await;
            }
        }
        if let Some(pace) = self.pace {
            self.looked = pace.environment.now();
        }
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
    fn a_job_rests_as_long_as_readers_are_there_and_it_does_not_lag() {
        let (cache, noting, hurry) = (Cache::new(1 << 20), Arc::new(Noting::default()), Arc::default());
        let environment: Arc<dyn Environment> = noting.clone();
        let pace = Pace::considerate(&cache, &environment, &hurry);
        let rests = |walk: &mut Walk<'_>, bytes| {
            block_on(walk.rest(bytes));
            std::mem::take(&mut *noting.rests.lock())
        };
        let mut walk = pace.walk();
        assert!(walk.at_once(16) == 16 && rests(&mut walk, 1_000_000).is_empty(), "nobody reads");
        cache.note_values(1);
        assert_eq!(walk.at_once(16), 1);
        let [rest] = rests(&mut walk, 10_000_000)[..] else { panic!("one rest") };
        assert!((Duration::from_millis(3)..Duration::from_millis(20)).contains(&rest), "{rest:?}");
        for why in [&hurry.writers, &hurry.room, &hurry.end] {
            why.store(true, Ordering::Relaxed);
            assert!(walk.at_once(16) == 16 && rests(&mut walk, 0).is_empty(), "{hurry:?}");
            why.store(false, Ordering::Relaxed);
            assert_eq!(walk.at_once(16), 1);
        }
        noting.looks.fetch_add(220, Ordering::Relaxed);
        assert!(walk.at_once(16) == 16 && rests(&mut walk, 0).is_empty(), "they have gone");
        cache.note_values(1);
        // Some 110 ms for 11 MB.
        let at_once = walk.at_once(16);
        assert!((3..5).contains(&at_once) && rests(&mut walk, 0).is_empty(), "it lags: {at_once}");
        noting.looks.fetch_add(1000, Ordering::Relaxed);
        cache.note_values(1);
        assert_eq!(walk.at_once(16), 16);
        assert_eq!(Pace::unbounded().walk().at_once(16), 16);
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
