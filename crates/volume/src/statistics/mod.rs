//! What is counted: for every chunk, object and class, always.
//!
//! Counters are relaxed atomics, added to when an I/O completes; sums are exact whatever runs at once. A chunk's
//! counters are its own; those of objects and classes have latency histograms besides.

mod heat;
mod histogram;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

pub(crate) use heat::Heat;
use histogram::LatencyCounters;
pub use histogram::{Histogram, LATENCY_BUCKETS};

use crate::chunk::Chunk;

/// I/Os in one direction.
#[derive(Debug, Default)]
struct Direction {
    ios: AtomicU64,
    bytes: AtomicU64,
    latency_ns: AtomicU64,
    latency: LatencyCounters,
}

/// Counters of an object or a class.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    read: Direction,
    written: Direction,
    errors: AtomicU64,
}

impl Counters {
    pub(crate) fn count(&self, is_write: bool, bytes: u64, latency: Duration) {
        let direction = if is_write { &self.written } else { &self.read };
        direction.ios.fetch_add(1, Ordering::Relaxed);
        direction.bytes.fetch_add(bytes, Ordering::Relaxed);
        direction.latency_ns.fetch_add(latency.as_nanos() as u64, Ordering::Relaxed);
        direction.latency.count(latency);
    }

    /// I/Os and the nanoseconds they took, reads and writes.
    pub(crate) fn usage(&self) -> [(u64, u64); 2] {
        let direction = |direction: &Direction| {
            (direction.ios.load(Ordering::Relaxed), direction.latency_ns.load(Ordering::Relaxed))
        };
        [direction(&self.read), direction(&self.written)]
    }

    pub(crate) fn count_error(&self) {
        self.errors.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn snapshot(&self) -> IoStatistics {
        let direction = |direction: &Direction| DirectionStatistics {
            ios: direction.ios.load(Ordering::Relaxed),
            bytes: direction.bytes.load(Ordering::Relaxed),
            latency: direction.latency.snapshot(),
        };
        IoStatistics {
            read: direction(&self.read),
            written: direction(&self.written),
            errors: self.errors.load(Ordering::Relaxed),
        }
    }
}

/// I/Os in one direction, as counted.
///
/// ```
/// use tanada_volume::DirectionStatistics;
///
/// assert_eq!(DirectionStatistics::default().latency.count(), 0);
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DirectionStatistics {
    /// I/Os completed.
    pub ios: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Their latencies.
    pub latency: Histogram,
}

/// I/Os of an object or a class since the volume was opened.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # tanada_volume::example::run(folder.path(), async |volume| {
/// let fast = &volume.classes()[0].statistics;
/// assert_eq!((fast.read.ios, fast.errors), (0, 0));
/// # Ok(()) }).unwrap();
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct IoStatistics {
    /// Reads.
    pub read: DirectionStatistics,
    /// Writes.
    pub written: DirectionStatistics,
    /// I/Os that failed.
    pub errors: u64,
}

/// Holes punched into the devices of a class since the volume was opened, where bytes had to become zeros.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # tanada_volume::example::run(folder.path(), async |volume| {
/// let punches = volume.classes()[0].punches;
/// assert_eq!((punches.issued, punches.in_vain), (0, 0));
/// # Ok(()) }).unwrap();
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PunchStatistics {
    /// Asked of a device.
    pub issued: u64,
    /// Not asked for: no block was allocated there.
    pub avoided: u64,
    /// Of those issued, refused: the device cannot punch, and zeros were written.
    pub in_vain: u64,
}

impl PunchStatistics {
    pub(crate) fn plus(self, other: PunchStatistics) -> PunchStatistics {
        PunchStatistics {
            issued: self.issued + other.issued,
            avoided: self.avoided + other.avoided,
            in_vain: self.in_vain + other.in_vain,
        }
    }
}

/// What was done to one chunk, over all its life.
///
/// ```
/// use tanada_volume::Attributes;
///
/// # let folder = tempfile::tempdir().unwrap();
/// # tanada_volume::example::run(folder.path(), async |volume| {
/// let object = volume.create_object("a", &Attributes::default())?;
/// object.write_bytes(0, &[7; 4096]).await?;
/// object.read_bytes(0, 4096).await?;
/// let chunk = object.chunks(0..1)[0].statistics;
/// assert_eq!((chunk.reads, chunk.writes, chunk.bytes_read), (1, 1, 4096));
/// # Ok(()) }).unwrap();
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ChunkStatistics {
    /// Reads.
    pub reads: u32,
    /// Writes.
    pub writes: u32,
    /// Reads and writes that began where an earlier one of the object had just ended.
    pub sequential: u32,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// I/Os, each halved with every half-life that has passed since.
    pub heat: f32,
}

impl ChunkStatistics {
    /// The part of its I/Os that were sequential, 0 to 1.
    pub fn sequential_share(&self) -> f32 {
        let all = u64::from(self.reads) + u64::from(self.writes);
        if all == 0 { 0.0 } else { self.sequential as f32 / all as f32 }
    }
}

/// The one I/O that is to be counted for a chunk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    pub(crate) is_write: bool,
    pub(crate) is_sequential: bool,
    pub(crate) bytes: u64,
    pub(crate) now: Duration,
    pub(crate) half_life_s: f32,
}

impl Chunk {
    pub(crate) fn count(&self, sample: &Sample) {
        let (ios, bytes) = if sample.is_write {
            (&self.writes, &self.bytes_written)
        } else {
            (&self.reads, &self.bytes_read)
        };
        ios.fetch_add(1, Ordering::Relaxed);
        bytes.fetch_add(sample.bytes, Ordering::Relaxed);
        if sample.is_sequential {
            self.sequential.fetch_add(1, Ordering::Relaxed);
        }
        self.heat.add(1.0, sample.now, sample.half_life_s);
    }

    pub(crate) fn statistics(&self, now: Duration, half_life_s: f32) -> ChunkStatistics {
        ChunkStatistics {
            reads: self.reads.load(Ordering::Relaxed),
            writes: self.writes.load(Ordering::Relaxed),
            sequential: self.sequential.load(Ordering::Relaxed),
            bytes_read: self.bytes_read.load(Ordering::Relaxed),
            bytes_written: self.bytes_written.load(Ordering::Relaxed),
            heat: self.heat.at(now, half_life_s),
        }
    }

    /// Takes over what metadata remember.
    pub(crate) fn restore(&self, statistics: &ChunkStatistics, now: Duration) {
        self.reads.store(statistics.reads, Ordering::Relaxed);
        self.writes.store(statistics.writes, Ordering::Relaxed);
        self.sequential.store(statistics.sequential, Ordering::Relaxed);
        self.bytes_read.store(statistics.bytes_read, Ordering::Relaxed);
        self.bytes_written.store(statistics.bytes_written, Ordering::Relaxed);
        self.heat.set(statistics.heat, now);
    }
}

/// Where recent I/Os of an object ended; one that begins there goes on with their stream.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    ends: [AtomicU64; 8],
    next: AtomicU64,
}

impl Streams {
    /// Notes an I/O; whether it is sequential.
    pub(crate) fn note(&self, offset: u64, len: u64) -> bool {
        let end = offset.wrapping_add(len);
        // An end of 0 is an empty place: a stream cannot end there.
        if offset != 0
            && let Some(stream) = self.ends.iter().find(|end| end.load(Ordering::Relaxed) == offset)
        {
            stream.store(end, Ordering::Relaxed);
            return true;
        }
        let place = self.next.fetch_add(1, Ordering::Relaxed) as usize % self.ends.len();
        self.ends[place].store(end, Ordering::Relaxed);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_told_from_random_reads() {
        let streams = Streams::default();
        assert!(!streams.note(0, 4096));
        assert!(streams.note(4096, 4096));
        assert!(!streams.note(1 << 20, 4096));
        assert!(streams.note(8192, 4096), "two streams at once");
        assert!(streams.note((1 << 20) + 4096, 4096));
        assert!(!streams.note(5 << 20, 4096));
    }

    /// Prints what counting costs: `cargo test --release -p tanada-volume --lib counting -- --ignored --nocapture`.
    #[test]
    #[ignore = "measures"]
    fn counting_an_io_costs_little() {
        use tanada_base::Clock;
        const IOS: u64 = 5_000_000;
        let (class, object, streams) = (Counters::default(), Counters::default(), Streams::default());
        let chunks: Vec<Chunk> = (0..1024).map(|_| Chunk::default()).collect();
        let clock = tanada_base::MonotonicClock::new();
        let began = clock.now();
        for no in 0..IOS {
            let offset = (no.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 44) << 14;
            let is_sequential = streams.note(offset, 16384);
            let started = clock.now();
            let now = clock.now();
            class.count(false, 16384, now - started);
            object.count(false, 16384, now - started);
            let sample = Sample { is_write: false, is_sequential, bytes: 16384, now, half_life_s: 3600.0 };
            chunks[(offset >> 20) as usize % chunks.len()].count(&sample);
        }
        let took = clock.now() - began;
        println!("{:.0} ns an I/O, with looking at the clock twice", took.as_nanos() as f64 / IOS as f64);
        assert_eq!((class.snapshot().read.ios, object.snapshot().read.bytes), (IOS, IOS * 16384));
        let counted: u64 = chunks.iter().map(|chunk| u64::from(chunk.statistics(began, 1.0).reads)).sum();
        assert_eq!(counted, IOS);
    }

    #[test]
    fn counts_are_exact_over_threads() {
        let (counters, chunk) = (Counters::default(), Chunk::default());
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (counters, chunk) = (&counters, &chunk);
                scope.spawn(move || {
                    for _ in 0..1000 {
                        counters.count(thread % 2 == 0, 512, Duration::from_micros(80));
                        chunk.count(&Sample {
                            is_write: thread % 2 == 0,
                            is_sequential: thread == 0,
                            bytes: 512,
                            now: Duration::ZERO,
                            half_life_s: 10.0,
                        });
                    }
                });
            }
        });
        let counted = counters.snapshot();
        assert_eq!((counted.read.ios, counted.written.bytes), (2000, 2000 * 512));
        assert_eq!(counted.read.latency.count(), 2000);
        let chunk = chunk.statistics(Duration::ZERO, 10.0);
        assert_eq!(
            (chunk.reads, chunk.writes, chunk.sequential, chunk.bytes_read),
            (2000, 2000, 1000, 2000 * 512)
        );
        assert_eq!(chunk.heat, 4000.0);
        assert_eq!(chunk.sequential_share(), 0.25);
    }
}
