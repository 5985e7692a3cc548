//! Counters of I/O, for one query and its operators, and the way through its gate.

use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::observer::{IoObserver, ObservedRead};
use crate::timeline::IoClock;
use crate::{Buffer, Device, Gate, Result, Timeline};

/// What one operator's I/O goes through: the query's gate, the operator's priority and counters. Cheap to clone.
#[derive(Debug, Clone)]
pub struct IoContext {
    gate: Arc<Gate>,
    counters: Arc<IoCounters>,
    priority: u8,
    clock: IoClock,
    observer: Option<Arc<dyn IoObserver>>,
}

impl IoContext {
    /// A context of priority 0 with fresh counters. It measures by the process's virtual timeline if there is one, else
    /// by the machine's clock.
    pub fn new(gate: Arc<Gate>) -> IoContext {
        IoContext { gate, counters: Arc::default(), priority: 0, clock: IoClock::current(), observer: None }
    }

    /// The same, telling `observer` of each read; so do the contexts made from it.
    pub fn observed_by(mut self, observer: Arc<dyn IoObserver>) -> IoContext {
        self.observer = Some(observer);
        self
    }

    /// The same, measuring by the clock of `timeline`.
    pub fn on_timeline(mut self, timeline: &Timeline) -> IoContext {
        self.clock = IoClock::of(timeline);
        self
    }

    /// The same gate, own counters, and `priority` (deeper operators have higher ones). What is counted there counts
    /// here too.
    pub fn for_operator(&self, priority: u8) -> IoContext {
        let counters = IoCounters { whole: Some(self.counters.clone()), ..IoCounters::default() };
        IoContext {
            gate: self.gate.clone(),
            counters: Arc::new(counters),
            priority,
            clock: self.clock.clone(),
            observer: self.observer.clone(),
        }
    }

    /// This context's counters.
    pub fn counters(&self) -> &IoCounters {
        &self.counters
    }

    /// The gate.
    pub fn gate(&self) -> &Arc<Gate> {
        &self.gate
    }

    /// The priority.
    pub fn priority(&self) -> u8 {
        self.priority
    }

    /// Waits until an I/O of `bytes` may start. Hold the permit as long as it is in flight: it is counted when the
    /// permit is dropped.
    pub async fn admit(&self, bytes: usize) -> Permit {
        let mut has_waited = false;
        let mut admitted = pin!(self.gate.admit(bytes, self.priority));
        std::future::poll_fn(|cx| {
            let polled = admitted.as_mut().poll(cx);
            has_waited |= polled.is_pending();
            polled
        })
        .await;
        let started = self.clock.now();
        let Sent { no, ended_last } = self.counters.started(started);
        let after = if has_waited { None } else { ended_last };
        Permit { context: self.clone(), bytes, started, no, after }
    }

    /// Tells the observer, if there is one, of a read of `file` that is complete. By whoever read under `permit`.
    pub fn observe(&self, permit: &Permit, file: &Path, offset: u64, bytes: u64) {
        if let Some(observer) = &self.observer {
            let Permit { started, no, after, .. } = *permit;
            let ended = self.clock.now();
            observer.read(&ObservedRead { file, offset, bytes, started, ended, no, after });
        }
    }

    /// [`Device::read`] through the gate, counted.
    ///
    /// # Errors
    /// As [`Device::read`].
    pub async fn read(&self, device: &Device, offset: u64, buffer: Buffer) -> Result<Buffer> {
        let _permit = self.admit(buffer.len()).await;
        device.read(offset, buffer).await
    }

    /// [`Device::write`] through the gate, counted.
    ///
    /// # Errors
    /// As [`Device::write`].
    pub async fn write(&self, device: &Device, offset: u64, buffer: Buffer) -> Result<Buffer> {
        let _permit = self.admit(buffer.len()).await;
        device.write(offset, buffer).await
    }
}

/// The right to have one I/O in flight.
#[derive(Debug)]
pub struct Permit {
    context: IoContext,
    bytes: usize,
    started: Duration,
    /// Its number among those of the query.
    no: u64,
    /// What ended last before, unless it waited at the gate.
    after: Option<u64>,
}

/// Which I/O of a query one is.
#[derive(Debug, Clone, Copy)]
struct Sent {
    no: u64,
    ended_last: Option<u64>,
}

impl Drop for Permit {
    fn drop(&mut self) {
        let now = self.context.clock.now();
        let latency = now.saturating_sub(self.started);
        self.context.counters.ended(now, self.bytes, latency, self.no);
        self.context.gate.release(self.bytes, now, latency);
    }
}

/// Counters of one context; exact, from any thread.
#[derive(Debug, Default)]
pub struct IoCounters {
    ios: AtomicU64,
    bytes: AtomicU64,
    cache_hits: AtomicU64,
    wait_ns: AtomicU64,
    depth: Mutex<DepthClock>,
    /// Counters of the context that this one was made from.
    whole: Option<Arc<IoCounters>>,
}

/// Integrates the number of I/Os in flight over time.
#[derive(Debug, Default, Clone, Copy)]
struct DepthClock {
    in_flight: u64,
    most: u64,
    changed: Option<Duration>,
    /// Nanoseconds with at least one in flight.
    busy_ns: u128,
    /// I/Os in flight times nanoseconds.
    io_ns: u128,
    /// How many were sent, and which one ended last.
    sent: u64,
    ended_last: Option<u64>,
}

impl DepthClock {
    fn advance(&mut self, now: Duration) {
        if let Some(changed) = self.changed.replace(now)
            && self.in_flight > 0
        {
            let lasted = now.saturating_sub(changed).as_nanos();
            self.busy_ns += lasted;
            self.io_ns += lasted * u128::from(self.in_flight);
        }
    }
}

impl IoCounters {
    /// Which one it is of the whole query's.
    fn started(&self, now: Duration) -> Sent {
        let mut depth = self.depth.lock();
        depth.advance(now);
        depth.in_flight += 1;
        depth.most = depth.most.max(depth.in_flight);
        depth.sent += 1;
        let sent = Sent { no: depth.sent, ended_last: depth.ended_last };
        drop(depth);
        self.whole.as_ref().map_or(sent, |whole| whole.started(now))
    }

    /// `no` is what [`Self::started`] gave.
    fn ended(&self, now: Duration, bytes: usize, latency: Duration, no: u64) {
        {
            let mut depth = self.depth.lock();
            depth.advance(now);
            depth.in_flight -= 1;
            depth.ended_last = Some(no);
        }
        self.ios.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.wait_ns.fetch_add(latency.as_nanos() as u64, Ordering::Relaxed);
        if let Some(whole) = &self.whole {
            whole.ended(now, bytes, latency, no);
        }
    }

    /// What was counted so far.
    pub fn snapshot(&self) -> IoSnapshot {
        let depth = *self.depth.lock();
        IoSnapshot {
            ios: self.ios.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            cache_hits: self.cache_hits.load(Ordering::Relaxed),
            depth_mean: if depth.busy_ns == 0 { 0.0 } else { depth.io_ns as f64 / depth.busy_ns as f64 },
            depth_max: depth.most,
            wait: Duration::from_nanos(self.wait_ns.load(Ordering::Relaxed)),
        }
    }

    /// Notes a page that was found in memory.
    pub fn cache_hit(&self) {
        self.cache_hits.fetch_add(1, Ordering::Relaxed);
        if let Some(whole) = &self.whole {
            whole.cache_hit();
        }
    }
}

/// A reading of [`IoCounters`].
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct IoSnapshot {
    /// I/Os completed (one whose caller went away counts too: the device did it).
    pub ios: u64,
    /// Bytes asked for by them.
    pub bytes: u64,
    /// Pages found in the cache.
    pub cache_hits: u64,
    /// Time-weighted mean of I/Os in flight while at least one was.
    pub depth_mean: f64,
    /// Most I/Os in flight at once.
    pub depth_max: u64,
    /// Sum of the I/Os' latencies, without the time they waited for the gate.
    pub wait: Duration,
}
