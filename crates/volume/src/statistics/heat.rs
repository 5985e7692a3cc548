//! Heat: a number that grows with every I/O and halves with every half-life, in one word.
//!
//! Value and time of the last change are packed into 64 bits and decay when they are looked at, so chunks that rest
//! cost nothing. Times are eighths of a second since the clock's origin; they wrap after 17 years.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

#[derive(Debug, Default)]
pub(crate) struct Heat(AtomicU64);

fn ticks(now: Duration) -> u32 {
    (now.as_millis() / 125) as u32
}

fn decayed(word: u64, now: u32, half_life_s: f32) -> f32 {
    let (value, at) = (f32::from_bits(word as u32), (word >> 32) as u32);
    let ticks = now.saturating_sub(at);
    if ticks == 0 { value } else { value * (-(ticks as f32) / (8.0 * half_life_s)).exp2() }
}

impl Heat {
    /// Adds `amount` at `now`.
    pub(crate) fn add(&self, amount: f32, now: Duration, half_life_s: f32) {
        let now = ticks(now);
        let mut word = self.0.load(Ordering::Relaxed);
        loop {
            let heat = decayed(word, now, half_life_s) + amount;
            let at = now.max((word >> 32) as u32);
            let new = u64::from(at) << 32 | u64::from(heat.to_bits());
            match self.0.compare_exchange_weak(word, new, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now_there) => word = now_there,
            }
        }
    }

    /// The heat at `now`.
    pub(crate) fn at(&self, now: Duration, half_life_s: f32) -> f32 {
        decayed(self.0.load(Ordering::Relaxed), ticks(now), half_life_s)
    }

    pub(crate) fn set(&self, heat: f32, now: Duration) {
        self.0.store(u64::from(ticks(now)) << 32 | u64::from(heat.to_bits()), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heat_halves_with_every_half_life() {
        let heat = Heat::default();
        for _ in 0..8 {
            heat.add(1.0, Duration::from_secs(100), 60.0);
        }
        assert_eq!(heat.at(Duration::from_secs(100), 60.0), 8.0);
        assert!((heat.at(Duration::from_secs(160), 60.0) - 4.0).abs() < 1e-3);
        heat.add(1.0, Duration::from_secs(220), 60.0);
        assert!((heat.at(Duration::from_secs(220), 60.0) - 3.0).abs() < 1e-3);
    }
}
