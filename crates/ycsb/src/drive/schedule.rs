//! Which operation is next and when it is due; shared by the clients of a phase.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Gives out the operations of a phase.
#[derive(Debug)]
pub struct Schedule {
    operations: u64,
    taken: AtomicU64,
    began: Duration,
    /// No operation begins later.
    end: Option<Duration>,
    /// Between two operations; `None` in a closed loop.
    spacing: Option<Duration>,
}

/// An operation to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// Its number in the phase.
    pub number: u64,
    /// When it is due; `None` for now.
    pub due: Option<Duration>,
}

impl Schedule {
    /// `operations` from `began` on, at most for `seconds` unless that is 0, at `per_second` unless that is 0.
    pub fn new(operations: u64, began: Duration, seconds: f64, per_second: f64) -> Schedule {
        let positive = |value: f64| Some(value).filter(|value| value.is_finite() && *value > 0.0);
        let duration = |seconds: f64| Duration::try_from_secs_f64(seconds).ok();
        Schedule {
            operations,
            taken: AtomicU64::new(0),
            began,
            end: positive(seconds).and_then(duration).map(|seconds| began + seconds),
            spacing: positive(per_second).and_then(|rate| duration(1.0 / rate)),
        }
    }

    /// The next operation, at the time `now`; `None` when the phase is over.
    pub fn next(&self, now: Duration) -> Option<Turn> {
        if self.end.is_some_and(|end| now >= end) {
            return None;
        }
        let number = self.taken.fetch_add(1, Ordering::Relaxed);
        if number >= self.operations {
            return None;
        }
        let after =
            |spacing: Duration| Duration::from_nanos((spacing.as_nanos() as u64).saturating_mul(number));
        let due = self.spacing.map(|spacing| self.began + after(spacing));
        // One that is due after the end is not part of the phase, however early a client asks for it.
        if due.zip(self.end).is_some_and(|(due, end)| due >= end) {
            return None;
        }
        Some(Turn { number, due })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn turns_end_with_the_operations_or_the_time() {
        let schedule = Schedule::new(2, SECOND, 0.0, 0.0);
        assert_eq!(schedule.next(SECOND), Some(Turn { number: 0, due: None }));
        assert_eq!(schedule.next(900 * SECOND), Some(Turn { number: 1, due: None }));
        assert_eq!(schedule.next(SECOND), None);
        let timed = Schedule::new(100, SECOND, 2.0, 0.0);
        assert!(timed.next(2 * SECOND).is_some() && timed.next(3 * SECOND).is_none());
    }

    #[test]
    fn open_loop_operations_are_due_regardless_of_the_client() {
        let schedule = Schedule::new(100, SECOND, 1.0, 4.0);
        let due: Vec<_> = std::iter::from_fn(|| schedule.next(SECOND)?.due).collect();
        assert_eq!(due, [SECOND, SECOND * 5 / 4, SECOND * 6 / 4, SECOND * 7 / 4]);
    }
}
