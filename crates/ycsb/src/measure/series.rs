//! Throughput over time: operations in each interval.

use std::time::Duration;

/// Operations that ended in each interval since a beginning.
#[derive(Debug, Clone)]
pub struct Series {
    began: Duration,
    interval: Duration,
    counts: Vec<u64>,
}

impl Series {
    /// From `began` on, in intervals of at least a millisecond.
    pub fn new(began: Duration, interval: Duration) -> Series {
        Series { began, interval: interval.max(Duration::from_millis(1)), counts: Vec::new() }
    }

    /// Counts an operation that ended at `time`.
    pub fn count(&mut self, time: Duration) {
        let place = (time.saturating_sub(self.began).as_nanos() / self.interval.as_nanos()) as usize;
        if self.counts.len() <= place {
            self.counts.resize(place + 1, 0);
        }
        self.counts[place] += 1;
    }

    /// Adds another client's, of the same beginning and interval.
    pub fn add(&mut self, other: &Series) {
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        self.counts.iter_mut().zip(&other.counts).for_each(|(own, other)| *own += other);
    }

    /// Operations a second in each interval; the last one may be cut short and is left out if there are others.
    pub fn rates(&self) -> Vec<f64> {
        let seconds = self.interval.as_secs_f64();
        let whole = if self.counts.len() > 1 { self.counts.len() - 1 } else { self.counts.len() };
        self.counts[..whole].iter().map(|count| *count as f64 / seconds).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_counted_where_they_ended() {
        let second = Duration::from_secs(1);
        let (mut one, mut other) = (Series::new(5 * second, second / 2), Series::new(5 * second, second / 2));
        one.count(5 * second);
        other.count(6 * second + second / 4);
        other.count(7 * second);
        one.add(&other);
        assert_eq!(one.rates(), [2.0, 0.0, 2.0, 0.0]);
    }
}
