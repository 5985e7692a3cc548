//! How many I/Os to keep in flight when nobody said: a hill climb on the measured completion rate.
//!
//! Events in, a limit out; the clock is the caller's. A *window* is a run of completions during which the limit was
//! what held I/Os back (otherwise it says nothing about the limit). After each window:
//!
//! 1. *Rising*: the limit was just doubled. If the rate grew by more than 5 % it is doubled again; else, if latency
//!    grew, the device only queues: back to half, and the search goes on downwards.
//! 2. *Falling*: the limit was just halved. If the rate held within 5 % it is halved again; else back to double, and
//!    hold.
//! 3. *Holding*: after some windows, each time twice as many, rise again: devices and their other users change.
//!
//! Invariant: the limit is within [`LEAST`] and [`MOST`].

use std::time::Duration;

const START: usize = 64;
const LEAST: usize = 16;
const MOST: usize = 32_768;

/// A window lasts at least this long, and at least two completions per I/O of the limit.
const LEAST_WINDOW: Duration = Duration::from_millis(5);

/// And at least this many completions: service times of disks vary so much that fewer say little about a few percent.
const LEAST_COMPLETIONS: usize = 768;

const FIRST_HOLD: u32 = 16;
const LONGEST_HOLD: u32 = 256;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Phase {
    /// Nothing is known yet.
    Starting,
    Rising,
    Falling,
    Holding {
        windows_left: u32,
    },
}

#[derive(Debug, Clone, Copy, Default)]
struct Measured {
    /// Completions a second.
    rate: f64,
    /// Mean latency in seconds.
    latency: f64,
}

/// The search for a depth.
#[derive(Debug)]
pub(super) struct DepthSearch {
    limit: usize,
    phase: Phase,
    before: Measured,
    hold: u32,
    window: Window,
    /// Completions that still belong to the limit before.
    settling: usize,
}

#[derive(Debug, Default)]
struct Window {
    began: Option<Duration>,
    completions: usize,
    held_back: usize,
    latency: Duration,
}

impl DepthSearch {
    pub(super) fn new() -> DepthSearch {
        DepthSearch {
            limit: START,
            phase: Phase::Starting,
            before: Measured::default(),
            hold: FIRST_HOLD,
            window: Window::default(),
            settling: START,
        }
    }

    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    /// An I/O completed at `now` after `latency`; `held_back` tells whether others waited because of the limit.
    pub(super) fn completed(&mut self, now: Duration, latency: Duration, held_back: bool) {
        if self.settling > 0 {
            self.settling -= 1;
            return;
        }
        let began = *self.window.began.get_or_insert(now);
        self.window.completions += 1;
        self.window.held_back += usize::from(held_back);
        self.window.latency += latency;
        let lasted = now.saturating_sub(began);
        if lasted < LEAST_WINDOW || self.window.completions < (2 * self.limit).max(LEAST_COMPLETIONS) {
            return;
        }
        let window = std::mem::take(&mut self.window);
        if window.held_back * 4 >= window.completions * 3 {
            let count = window.completions as f64;
            self.decide(Measured {
                rate: count / lasted.as_secs_f64(),
                latency: window.latency.as_secs_f64() / count,
            });
        }
    }

    fn decide(&mut self, now: Measured) {
        let before = std::mem::replace(&mut self.before, now);
        let rate_grew = now.rate > before.rate * 1.05;
        let rate_held = now.rate >= before.rate * 0.95;
        let latency_grew = now.latency > before.latency * 1.05;
        match self.phase {
            Phase::Starting => self.rise(),
            Phase::Rising if rate_grew => self.rise(),
            Phase::Rising if latency_grew => {
                // What the lower limit reached is what a still lower one is measured against.
                self.before = before;
                self.fall();
                if self.limit > LEAST {
                    self.fall();
                }
            }
            Phase::Rising => self.hold(),
            Phase::Falling if rate_held => {
                self.before.rate = self.before.rate.max(before.rate);
                if self.limit > LEAST { self.fall() } else { self.hold() }
            }
            Phase::Falling => {
                self.set_limit(self.limit * 2);
                self.hold();
            }
            Phase::Holding { windows_left: 0 } => self.rise(),
            Phase::Holding { windows_left } => self.phase = Phase::Holding { windows_left: windows_left - 1 },
        }
    }

    fn rise(&mut self) {
        if self.limit == MOST {
            return self.hold();
        }
        self.set_limit(self.limit * 2);
        self.phase = Phase::Rising;
    }

    fn fall(&mut self) {
        self.set_limit(self.limit / 2);
        self.phase = Phase::Falling;
    }

    fn hold(&mut self) {
        self.phase = Phase::Holding { windows_left: self.hold };
        self.hold = (self.hold * 2).min(LONGEST_HOLD);
    }

    fn set_limit(&mut self, limit: usize) {
        // What is in flight now was started under the other limit, and its completions tell of that.
        self.settling = self.limit.max(limit).min(MOST);
        self.limit = limit.clamp(LEAST, MOST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A device that serves up to `best` I/Os at once in 1 ms each, and queues the rest; where the search ends up.
    fn settled_on(best: usize, held_back: bool) -> (usize, Vec<usize>) {
        let mut search = DepthSearch::new();
        let mut now = Duration::ZERO;
        let mut seen = vec![search.limit()];
        for _ in 0..400_000 {
            let depth = search.limit();
            now += Duration::from_secs_f64(0.001 / depth.min(best) as f64);
            let latency = Duration::from_secs_f64(0.001 * (depth as f64 / best as f64).max(1.0));
            search.completed(now, latency, held_back);
            if search.limit() != depth {
                seen.push(search.limit());
            }
            if matches!(search.phase, Phase::Holding { .. }) {
                break;
            }
        }
        (search.limit(), seen)
    }

    #[test]
    fn depth_rises_while_the_rate_grows() {
        assert_eq!(settled_on(256, true), (256, vec![64, 128, 256, 512, 128, 256]));
        assert_eq!(settled_on(100_000, true).0, MOST);
    }

    #[test]
    fn depth_falls_where_queueing_gains_nothing() {
        assert_eq!(settled_on(32, true).0, 32);
        assert_eq!(settled_on(1, true).0, LEAST);
    }

    #[test]
    fn depth_stays_where_no_request_is_held_back() {
        assert_eq!(settled_on(256, false), (START, vec![START]));
    }

    #[test]
    fn completions_from_before_a_limit_change_are_ignored() {
        let mut search = DepthSearch::new();
        let mut now = Duration::ZERO;
        let mut feed = |search: &mut DepthSearch, count: usize, rate: f64| {
            for _ in 0..count {
                now += Duration::from_secs_f64(1.0 / rate);
                search.completed(now, Duration::from_secs_f64(search.limit() as f64 / rate), true);
            }
        };
        while search.limit() == START {
            feed(&mut search, 1, 1000.0);
        }
        feed(&mut search, 100, 1.0);
        while search.limit() == 2 * START {
            feed(&mut search, 1, 2000.0);
        }
        assert_eq!(search.limit(), 4 * START);
    }

    #[test]
    fn depth_rises_again_after_a_hold() {
        let mut search = DepthSearch::new();
        search.phase = Phase::Holding { windows_left: 1 };
        search.decide(Measured { rate: 1.0, latency: 1.0 });
        search.decide(Measured { rate: 1.0, latency: 1.0 });
        assert_eq!((search.limit(), search.phase), (128, Phase::Rising));
    }
}
