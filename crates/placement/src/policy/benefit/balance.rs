//! How long queries take that keep both classes busy.
//!
//! One I/O after the other takes the time of both classes, one added to the other. Many in flight take that of the busier class, nearly. Between them
//! lies a norm of both times whose power grows with the depth: two stations that `n` customers go round between are `(n + 1) / n` times as long busy
//! as each of them, if both have as much to do; so that is what two equal times come to.

/// I/Os in flight that count as one customer: they come in bursts, and wait for one another.
const IOS_OF_A_CUSTOMER: f64 = 8.0;

/// Seconds that both classes are busy.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Busy {
    pub(super) slow_s: f64,
    pub(super) fast_s: f64,
}

impl Busy {
    pub(super) fn plus(self, slow_s: f64, fast_s: f64) -> Busy {
        Busy { slow_s: (self.slow_s + slow_s).max(0.0), fast_s: self.fast_s + fast_s }
    }
}

/// What holds for all that queries have under way.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Pressure {
    /// I/Os in flight, of all of them.
    pub(super) depth: u32,
    /// What does not wait for one another.
    pub(super) customers: f64,
    /// What a second of the fast class counts.
    pub(super) fast_weight: f64,
    /// How often a read at random comes between those of a stream in the slow class.
    pub(super) interference: f64,
}

impl Pressure {
    /// Of queries that keep so many I/Os in flight each, before anything is known of them.
    pub(super) fn new(depths: impl Iterator<Item = u32>) -> Pressure {
        let (mut depth, mut customers) = (0u32, 0.0);
        for each in depths {
            depth = depth.saturating_add(each);
            customers += (f64::from(each) / IOS_OF_A_CUSTOMER).max(1.0);
        }
        Pressure { depth: depth.max(1), customers: customers.max(1.0), fast_weight: 1.0, interference: 0.0 }
    }

    pub(super) fn balance(&self) -> Balance {
        Balance { power: std::f64::consts::LN_2 / ((self.customers + 1.0) / self.customers).ln() }
    }
}

impl Default for Pressure {
    fn default() -> Pressure {
        Pressure::new(std::iter::empty())
    }
}

/// What such seconds take, with so many I/Os in flight.
#[derive(Debug, Clone, Copy)]
pub(super) struct Balance {
    power: f64,
}

impl Balance {
    /// Whether it is all the same how the classes share the work.
    pub(super) fn is_sum(&self) -> bool {
        self.power <= 1.0
    }

    /// What a second less of the fast class gains: nothing as long as the slow one has much more to do.
    pub(super) fn weight_of_fast(&self, busy: Busy) -> f64 {
        if self.is_sum() {
            return 1.0;
        }
        (busy.fast_s / self.seconds(busy)).powf(self.power - 1.0)
    }

    pub(super) fn seconds(&self, busy: Busy) -> f64 {
        let longer = busy.slow_s.max(busy.fast_s).max(f64::MIN_POSITIVE);
        let of = |class_s: f64| (class_s / longer).powf(self.power);
        longer * (of(busy.slow_s) + of(busy.fast_s)).powf(1.0 / self.power)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_after_the_other_adds_up_and_many_take_the_longer() {
        let balance = |depth| Pressure::new(std::iter::once(depth)).balance();
        let busy = Busy { slow_s: 3.0, fast_s: 4.0 };
        assert!(balance(1).is_sum() && (balance(1).seconds(busy) - 7.0).abs() < 1e-9);
        let many = balance(1024).seconds(busy);
        assert!((4.0..4.01).contains(&many), "{many}");
        assert_eq!(busy.plus(-5.0, 1.0), Busy { slow_s: 0.0, fast_s: 5.0 });
    }
}
