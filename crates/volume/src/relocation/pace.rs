//! How much of the devices relocations may take while others use them. Events in, answers out; no I/O, no sleeping.
//!
//! What counts is how much slower the others' I/Os become, so that is what is measured: their mean latency while chunks
//! are copied, class by class and direction by direction, over what it was when nothing was copied.
//!
//! 1. *Free*: nobody else uses the volume. Copies go as fast as they can. As soon as somebody does:
//! 2. *Listening*: copies under way come to their end, at the pace they had, and none begins. When what they left in
//!    the devices' queues is gone too, the others' latencies are noted as the base line.
//! 3. *Paced*: copies go at a rate. After each window the slowdown is looked at: the rate rises while it is below
//!    [`LITTLE`], falls when it is above [`MUCH`]. The base line is taken again now and then; listening takes a
//!    twentieth of the time at most. If nobody is there any more: free.
//!
//! On a class where others' I/Os are quick, paced copies are cut into pieces of [`PIECE_BYTES`], since a read that
//! comes behind a whole chunk waits for all of it. Where an I/O takes as long as a seek does, or nobody else is, a
//! chunk is read or written as a whole: pieces would cost a seek each.
//!
//! Invariant: while listening, the window begins after the last copy has ended, and what it left in the queues.

use std::time::Duration;

/// The slowdown of others below which copies may go faster,
const LITTLE: f64 = 0.12;
/// and above which they have to go slower. A loss of a fifth is a slowdown of a quarter.
const MUCH: f64 = 0.20;

/// A slowdown that more than copies may explain: others do more than when they were listened to.
const STRANGE: f64 = 0.5;

/// The rate at which copies begin beside others, in bytes a second.
const FIRST_RATE: f64 = (32 << 20) as f64;
/// A chunk is copied in this time at the longest, for whoever wants to write to it waits.
const LONGEST_COPY: Duration = Duration::from_millis(50);
/// Between two chunks there is no more time than this: a relocation has to come to its end.
const LONGEST_REST: Duration = Duration::from_millis(250);

/// What copies left in queues is gone after this time, or after twice what an I/O takes.
const SHORTEST_SETTLING: Duration = Duration::from_millis(2);
/// But it is not waited for longer.
const LONGEST_SETTLING: Duration = Duration::from_millis(100);

/// Timers are that late at times.
const TOLERANCE: Duration = Duration::from_millis(2);

/// A look takes so many I/Os of others,
const ENOUGH_IOS: u64 = 200;
/// and no less time than this,
const SHORTEST_LOOK: Duration = Duration::from_millis(20);
/// and no more.
const LONGEST_LOOK: Duration = Duration::from_secs(1);
/// The base line is taken again after this time, or twenty times what taking it took.
const FRESH: Duration = Duration::from_secs(1);

/// Between two relocations others may have begun to do something else.
const GAP: Duration = Duration::from_millis(100);

/// What is copied at once while others use the devices.
pub(super) const PIECE_BYTES: u64 = 128 << 10;
/// Who waits so long for an I/O waits for an arm, or in a queue.
const SLOW_IO_NS: f64 = 2e6;

/// A place where others' I/Os are counted: adopted files, or a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Where {
    Adopted,
    Class(u8),
}

impl Where {
    /// Its cells, for reads and writes.
    pub(super) fn cells(self) -> std::ops::Range<usize> {
        let first = match self {
            Where::Adopted => 0,
            Where::Class(id) => 2 + 2 * usize::from(id),
        };
        first..first + 2
    }
}

/// I/Os of others so far and the time they took, in nanoseconds; by [place](Where::cells) and direction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Usage(pub(super) Vec<(u64, u64)>);

impl Usage {
    fn ios(&self) -> u64 {
        self.0.iter().map(|(ios, _)| ios).sum()
    }

    /// What was done since `earlier`.
    fn since(&self, earlier: &Usage) -> Usage {
        let before = earlier.0.iter().copied().chain(std::iter::repeat((0, 0)));
        let cells = self.0.iter().zip(before);
        Usage(cells.map(|(now, then)| (now.0.saturating_sub(then.0), now.1.saturating_sub(then.1))).collect())
    }
}

/// Mean latencies while nothing is copied, in nanoseconds, by class and direction; 0 where there were no I/Os.
type BaseLine = Vec<f64>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Free,
    Listening,
    Paced,
}

/// The answer to who wants to copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// Copy so many bytes now, and say so when they are copied.
    Go(u64),
    /// Ask again after this time.
    Wait(Duration),
}

/// See the module's head.
#[derive(Debug)]
pub(super) struct Pace {
    phase: Phase,
    /// When the window began, and what had been done then.
    window: (Duration, Usage),
    /// Bytes whose copies began in the window.
    begun: u64,
    /// Chunks that are being copied.
    in_flight: usize,
    base: BaseLine,
    /// When the base line is to be taken again.
    stale_at: Duration,
    /// When what copies left in the queues is gone.
    settled_at: Duration,
    /// Bytes a second while paced.
    rate: f64,
    /// When the next chunk may begin while paced,
    next: Duration,
    /// and when the next piece of one.
    next_piece: Duration,
    /// How long a copy takes, running average.
    copy: Duration,
}

impl Pace {
    /// Nobody has used the volume so far, as far as is known.
    pub(super) fn new() -> Pace {
        Pace {
            phase: Phase::Free,
            window: (Duration::ZERO, Usage::default()),
            begun: 0,
            in_flight: 0,
            base: Vec::new(),
            stale_at: Duration::ZERO,
            settled_at: Duration::ZERO,
            rate: FIRST_RATE,
            next: Duration::ZERO,
            next_piece: Duration::ZERO,
            copy: Duration::ZERO,
        }
    }

    /// A relocation begins. What was seen before may be long ago.
    pub(super) fn begin(&mut self, now: Duration, usage: &Usage) {
        let age = now.saturating_sub(self.window.0);
        if self.in_flight == 0 && age > GAP {
            let is_used = usage.since(&self.window.1).ios() > 0;
            self.phase = if is_used { Phase::Listening } else { Phase::Free };
            self.open_window(now, usage);
        }
    }

    /// Somebody wants to begin with a chunk of `chunk_bytes`, and may copy so much of it at first as is said. Who is
    /// let go counts as copying until [`ended`](Self::ended).
    pub(super) fn ask(&mut self, now: Duration, usage: &Usage, chunk_bytes: u64) -> Answer {
        self.look(now, usage, chunk_bytes);
        let first = if self.phase == Phase::Paced { chunk_bytes.min(PIECE_BYTES) } else { chunk_bytes };
        let answer = match self.phase {
            Phase::Free => self.go(now, first, chunk_bytes),
            Phase::Listening => Answer::Wait(SHORTEST_LOOK / 8),
            Phase::Paced => self.go_or_wait(now, self.next.max(self.next_piece), first, chunk_bytes),
        };
        if let Answer::Go(_) = answer {
            self.in_flight += 1;
        }
        answer
    }

    /// Somebody who has begun with a chunk of `chunk_bytes` wants to copy `bytes` more of it. While listening, too: a
    /// chunk that was begun is held, and has to come to its end.
    pub(super) fn ask_on(&mut self, now: Duration, usage: &Usage, bytes: u64, chunk_bytes: u64) -> Answer {
        self.look(now, usage, chunk_bytes);
        match self.phase {
            Phase::Free => self.go(now, bytes, chunk_bytes),
            Phase::Listening | Phase::Paced => self.go_or_wait(now, self.next_piece, bytes, chunk_bytes),
        }
    }

    fn go_or_wait(&mut self, now: Duration, at: Duration, bytes: u64, chunk_bytes: u64) -> Answer {
        match at > now {
            true => Answer::Wait((at - now).min(LONGEST_REST / 2)),
            false => self.go(now, bytes, chunk_bytes),
        }
    }

    /// Bytes that are best read or written there at once, of a chunk that was begun.
    pub(super) fn piece(&self, place: Where, chunk_bytes: u64) -> u64 {
        let latencies = self.base.get(place.cells()).unwrap_or_default();
        let is_used = latencies.iter().any(|latency| *latency > 0.0);
        let is_quick = is_used && latencies.iter().all(|latency| *latency < SLOW_IO_NS);
        let is_cut = is_quick && self.phase != Phase::Free;
        if is_cut { chunk_bytes.min(PIECE_BYTES) } else { chunk_bytes }
    }

    fn go(&mut self, now: Duration, bytes: u64, chunk_bytes: u64) -> Answer {
        self.begun += bytes;
        let hasty = self.rate.max(chunk_bytes as f64 / LONGEST_COPY.as_secs_f64());
        let time = |rate: f64| Duration::from_secs_f64(bytes as f64 / rate);
        // Who was woken a little late may be early next time.
        let now = now.saturating_sub(TOLERANCE);
        self.next_piece = self.next_piece.max(now) + time(hasty);
        self.next = (self.next.max(now) + time(self.rate)).min(now + LONGEST_REST);
        Answer::Go(bytes)
    }

    /// A chunk has been copied, or was given up.
    pub(super) fn ended(&mut self, now: Duration, usage: &Usage) {
        self.in_flight = self.in_flight.saturating_sub(1);
        if self.in_flight == 0 && self.phase == Phase::Listening {
            self.settle(now);
            self.open_window(now, usage);
        }
    }

    /// A whole chunk took so long.
    pub(super) fn copied(&mut self, took: Duration) {
        self.copy = if self.copy.is_zero() { took } else { (self.copy * 3 + took) / 4 };
    }

    /// Chunks that are worth having on their way, at most `wanted`.
    pub(super) fn concurrency(&self, wanted: usize, chunk_bytes: u64) -> usize {
        let needed = match self.phase {
            Phase::Free => wanted,
            Phase::Listening => 1,
            Phase::Paced => (self.rate * self.copy.as_secs_f64() / chunk_bytes as f64).ceil() as usize + 1,
        };
        needed.min(wanted).max(1)
    }

    fn open_window(&mut self, now: Duration, usage: &Usage) {
        self.window = (now, usage.clone());
        self.begun = 0;
    }

    /// The last copy has ended. An I/O that waited behind it would count for what is seen without.
    fn settle(&mut self, now: Duration) {
        let slowest = self.base.iter().copied().fold(0.0, f64::max);
        let settling = Duration::from_nanos(2 * slowest as u64);
        self.settled_at = now + settling.clamp(SHORTEST_SETTLING, LONGEST_SETTLING);
    }

    /// Ends the window if it has seen enough.
    fn look(&mut self, now: Duration, usage: &Usage, chunk_bytes: u64) {
        if self.phase == Phase::Listening && now < self.settled_at {
            return self.open_window(now, usage);
        }
        let took = now.saturating_sub(self.window.0);
        if took < SHORTEST_LOOK {
            return;
        }
        let seen = usage.since(&self.window.1);
        // Copies at a low rate come in bursts, so a window takes in a chunk and the rest behind it.
        let whole = match self.phase {
            Phase::Paced => Duration::from_secs_f64(chunk_bytes as f64 / self.rate).min(LONGEST_REST),
            _ => SHORTEST_LOOK,
        };
        let is_enough = took >= whole && (seen.ios() >= ENOUGH_IOS || took >= LONGEST_LOOK);
        match self.phase {
            Phase::Free => {
                if seen.ios() > 0 {
                    self.phase = Phase::Listening;
                    self.settle(now);
                }
                self.open_window(now, usage);
            }
            Phase::Listening if self.in_flight > 0 => {}
            Phase::Listening => {
                if seen.ios() == 0 {
                    self.phase = Phase::Free;
                    self.open_window(now, usage);
                } else if is_enough {
                    self.base_line(&seen);
                    self.stale_at = now + FRESH.max(took * 20);
                    self.phase = Phase::Paced;
                    (self.next, self.next_piece) = (now, now);
                    self.open_window(now, usage);
                }
            }
            Phase::Paced if is_enough => {
                let is_known = self.adjust(&seen, took, chunk_bytes);
                if seen.ios() == 0 {
                    self.phase = Phase::Free;
                } else if now >= self.stale_at || !is_known {
                    self.phase = Phase::Listening;
                    self.settle(now);
                }
                self.open_window(now, usage);
            }
            Phase::Paced => {}
        }
    }

    /// Takes the base line, and half of the last one where they are alike: one look more averages out what comes and
    /// goes.
    fn base_line(&mut self, seen: &Usage) {
        self.base.resize(seen.0.len(), 0.0);
        for ((ios, ns), base) in seen.0.iter().zip(&mut self.base) {
            let mean = if *ios == 0 { 0.0 } else { *ns as f64 / *ios as f64 };
            let is_alike = *base > 0.0 && (0.7..1.4).contains(&(mean / *base));
            *base = if is_alike { (mean + *base) / 2.0 } else { mean };
        }
    }

    /// Changes the rate by what was seen in `took`. Whether the base line explains it.
    fn adjust(&mut self, seen: &Usage, took: Duration, chunk_bytes: u64) -> bool {
        let (mut known, mut actual, mut expected) = (0, 0.0, 0.0);
        for ((ios, ns), base) in seen.0.iter().zip(&self.base) {
            if *base > 0.0 {
                known += ios;
                actual += *ns as f64;
                expected += *ios as f64 * base;
            }
        }
        if known * 2 < seen.ios() {
            return false;
        }
        if known == 0 || self.begun == 0 {
            return true;
        }
        let slowdown = actual / expected - 1.0;
        let reached = self.begun as f64 / took.as_secs_f64();
        if slowdown > MUCH {
            let target = (LITTLE + MUCH) / 2.0;
            self.rate = self.rate.min(reached * 1.1) * (target / slowdown).clamp(0.4, 0.95);
        } else if slowdown < LITTLE && reached > self.rate * 0.7 {
            self.rate *= if slowdown < LITTLE / 2.0 { 1.5 } else { 1.1 };
        }
        let least = chunk_bytes as f64 / LONGEST_REST.as_secs_f64();
        self.rate = self.rate.clamp(least, 1e12);
        // Hardly anything is copied, and still they are slow: it is not the copies.
        let is_innocent = slowdown > MUCH && self.rate < 1.5 * least;
        slowdown < STRANGE && !is_innocent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// A device that others use with so many I/Os a second, each of which takes `alone` and as much more as copies take
    /// of its bandwidth.
    struct Device {
        ios_per_second: u64,
        alone: Duration,
        bandwidth: f64,
    }

    /// What a relocation reached.
    #[derive(Debug)]
    struct Reached {
        bytes_per_second: f64,
        /// The mean slowdown of the others.
        slowdown: f64,
    }

    /// Copies for `time`, in steps of a tenth of a millisecond, one chunk at a time.
    fn run(pace: &mut Pace, device: &Device, time: Duration) -> Reached {
        let step = Duration::from_micros(100);
        let mut now = Duration::from_secs(100);
        let mut usage = Usage(vec![(0, 0), (0, 0)]);
        pace.begin(now, &usage);
        let end = now + time;
        let (mut left, mut copied, mut copying_until, mut asked_again) = (0, 0, now, now);
        let (mut ios, mut ns) = (0.0, 0.0);
        while now < end {
            let is_copying = copying_until > now;
            let new = device.ios_per_second as f64 * step.as_secs_f64();
            ios += new;
            ns += new * device.alone.as_nanos() as f64 * if is_copying { 2.0 } else { 1.0 };
            usage.0[0] = (ios as u64, ns as u64);
            if !is_copying && asked_again <= now {
                if left == 0 && pace.in_flight > 0 {
                    pace.ended(now, &usage);
                }
                let answer = match left {
                    0 => pace.ask(now, &usage, MIB),
                    left => pace.ask_on(now, &usage, left.min(pace.piece(Where::Adopted, MIB)), MIB),
                };
                match answer {
                    Answer::Go(bytes) => {
                        left = if left == 0 { MIB } else { left } - bytes;
                        copied += bytes;
                        copying_until = now + Duration::from_secs_f64(bytes as f64 / device.bandwidth);
                    }
                    Answer::Wait(time) => asked_again = now + time,
                }
            }
            now += step;
        }
        let alone = device.alone.as_nanos() as f64 * ios;
        Reached {
            bytes_per_second: copied as f64 / time.as_secs_f64(),
            slowdown: if ios > 0.0 { ns / alone - 1.0 } else { 0.0 },
        }
    }

    #[test]
    fn copies_run_at_full_speed_on_an_idle_device() {
        let device = Device { ios_per_second: 0, alone: Duration::ZERO, bandwidth: 500e6 };
        let reached = run(&mut Pace::new(), &device, Duration::from_secs(2));
        assert!(reached.bytes_per_second > 0.95 * 500e6, "{reached:?}");
    }

    #[test]
    fn copies_slow_other_requests_by_less_than_a_quarter() {
        for (ios_per_second, us, bandwidth) in [(5_000, 200, 500e6), (100_000, 100, 3e9), (130, 7_000, 150e6)]
        {
            let device = Device { ios_per_second, alone: Duration::from_micros(us), bandwidth };
            let reached = run(&mut Pace::new(), &device, Duration::from_secs(10));
            assert!(reached.slowdown < 0.25, "{ios_per_second}: {reached:?}");
            // A tenth of the time is theirs, less what listening takes.
            assert!(reached.bytes_per_second > 0.06 * bandwidth, "{ios_per_second}: {reached:?}");
        }
    }

    #[test]
    fn copies_yield_to_newcomers_and_speed_up_when_they_leave() {
        let mut pace = Pace::new();
        let alone = Device { ios_per_second: 0, alone: Duration::ZERO, bandwidth: 500e6 };
        run(&mut pace, &alone, Duration::from_secs(1));
        assert_eq!(pace.phase, Phase::Free);
        let (now, mut usage) = (Duration::from_secs(200), Usage(vec![(0, 0)]));
        pace.begin(now, &usage);
        assert!(matches!(pace.ask(now, &usage, MIB), Answer::Go(MIB)));
        pace.in_flight = 1;
        usage.0[0] = (10, 10_000);
        assert!(matches!(pace.ask(now + SHORTEST_LOOK, &usage, MIB), Answer::Wait(_)), "it listens");
        let soon = now + 2 * SHORTEST_LOOK;
        assert!(matches!(pace.ask_on(soon, &usage, 7, MIB), Answer::Go(7)), "what is begun goes on");
        pace.ended(soon, &usage);
        let settled = soon + SHORTEST_SETTLING;
        assert!(matches!(pace.ask(settled, &usage, MIB), Answer::Wait(_)), "it listens from here on");
        let later = settled + SHORTEST_LOOK;
        assert!(matches!(pace.ask(later, &usage, MIB), Answer::Go(MIB)), "nobody is there any more");
    }
}
