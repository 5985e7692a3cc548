//! How long queries take that keep both classes busy.
//!
//! One I/O after the other takes the time of both classes, one added to the other. Many in flight take that of the
//! busier class, nearly. Between them lies a norm of both times whose power grows with the depth: two stations that `n`
//! customers go round between are `(n + 1) / n` times as long busy as each of them, if both have as much to do; so that
//! is what two equal times come to. What a second less of a class gains is the slope of that norm: nearly nothing where
//! the other class has more to do.
//!
//! A copy is one more customer. Beside `n` others they lose `n / (n + 1)` of the time that it takes, the rest is what
//! the class had left; and only those lose who are in that class at the time: who reads one page after the other from
//! disks hardly notices what is written to the SSD.

use crate::costs::{Costs, Load, Reads};

/// I/Os in flight that count as one customer: they come in bursts, and wait for one another.
const IOS_OF_A_CUSTOMER: f64 = 8.0;

/// I/Os in flight of a query up to which the slow class's slope is believed. Deeper queues make a step of it, and how
/// much either class has to do is known only roughly: believed altogether, it keeps from the fast class what would pay;
/// not at all, copies go on where the fast class is busy all the time.
const BELIEVED_DEPTH: f64 = 32.0;

/// With this part of the slow class's time for the same reads, or more, the fast class is about as fast: figures of
/// devices are not more exact,
const ALIKE: f64 = 0.8;

/// and then it has to save more than this part of it.
const LEAST_SAVING: f64 = 0.1;

/// With this much of it the fast class is the slower one.
const SLOWER: f64 = 1.1;

/// Places on the way from one state to another at which weights are taken.
const STEPS: u32 = 4;

/// Seconds that both classes are busy.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Busy {
    pub(super) slow_s: f64,
    pub(super) fast_s: f64,
}

impl Busy {
    /// Both alike.
    const EVEN: Busy = Busy { slow_s: 1.0, fast_s: 1.0 };

    pub(super) fn plus(self, slow_s: f64, fast_s: f64) -> Busy {
        Busy { slow_s: (self.slow_s + slow_s).max(0.0), fast_s: self.fast_s + fast_s }
    }
}

/// What holds for all that queries have under way.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Pressure {
    /// I/Os in flight of the one that has most.
    pub(super) deepest: u32,
    /// I/Os in flight, of all of them.
    pub(super) depth: u32,
    /// What does not wait for one another.
    pub(super) customers: f64,
    /// What a second of each class counts.
    pub(super) weights: Busy,
    /// How often a read at random comes between those of a stream in the slow class.
    pub(super) interference: f64,
    /// What a second that a copy keeps each class busy counts.
    pub(super) copies: Busy,
}

impl Pressure {
    /// Of queries that keep so many I/Os in flight each, before anything is known of them.
    pub(super) fn new(depths: impl Iterator<Item = u32>) -> Pressure {
        let (mut deepest, mut depth, mut customers) = (1, 0u32, 0.0);
        for each in depths {
            deepest = deepest.max(each);
            depth = depth.saturating_add(each);
            customers += (f64::from(each) / IOS_OF_A_CUSTOMER).max(1.0);
        }
        Pressure {
            deepest,
            depth: depth.max(1),
            customers: customers.max(1.0),
            weights: Busy::EVEN,
            interference: 0.0,
            copies: Busy::EVEN,
        }
    }

    pub(super) fn balance(&self) -> Balance {
        Balance::of(self.customers)
    }

    /// What copies hold queries up that keep the classes so busy. Copies are one more customer: they take
    /// their share of what a class can do, from those who are there at that time.
    pub(super) fn held_up_by_copies(&self, busy: Busy) -> Busy {
        if busy.slow_s + busy.fast_s <= 0.0 {
            return self.copies;
        }
        let share = self.customers / (self.customers + 1.0);
        let weights = Balance::of(self.customers + 1.0).weights(busy);
        Busy { slow_s: share * weights.slow_s, fast_s: share * weights.fast_s }
    }

    /// Seconds that such reads save from the fast class under it. Negative where the slow class is better. What the
    /// fast class takes longer for by itself saves nothing, however idle it is: what it would take from the other is
    /// known only roughly.
    pub(super) fn saved_s(&self, costs: &Costs, reads: &Reads, load: Load) -> f64 {
        let busy = compared(costs, reads, load);
        let certainty = (BELIEVED_DEPTH / f64::from(self.deepest)).min(1.0);
        let saved_s = busy.slow_s * self.weights.slow_s.powf(certainty) - busy.fast_s * self.weights.fast_s;
        let is_slower = busy.fast_s > SLOWER * costs.slow.busy_s(reads, load);
        if is_slower { saved_s.min(busy.slow_s - busy.fast_s) } else { saved_s }
    }

    /// Seconds that queries are held up by copying `bytes` up.
    pub(super) fn copy_up_s(&self, costs: &Costs, bytes: f64) -> f64 {
        bytes * (costs.slow.chunk_read_s * self.copies.slow_s + costs.fast.chunk_write_s * self.copies.fast_s)
    }
}

/// Seconds that such reads keep either class busy, the slow one's as far as they count: less, where both are about as
/// fast.
pub(super) fn compared(costs: &Costs, reads: &Reads, load: Load) -> Busy {
    let (slow_s, fast_s) = (costs.slow.busy_s(reads, load), costs.fast.busy_s(reads, load));
    let counts = if fast_s > ALIKE * slow_s { 1.0 - LEAST_SAVING } else { 1.0 };
    Busy { slow_s: slow_s * counts, fast_s }
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
    fn of(customers: f64) -> Balance {
        Balance { power: std::f64::consts::LN_2 / ((customers + 1.0) / customers).ln() }
    }

    /// Whether it is all the same how the classes share the work.
    pub(super) fn is_sum(&self) -> bool {
        self.power <= 1.0
    }

    /// What a second less of each class gains: nothing as long as the other one has much more to do.
    pub(super) fn weights(&self, busy: Busy) -> Busy {
        if self.is_sum() || busy.slow_s + busy.fast_s <= 0.0 {
            return Busy::EVEN;
        }
        let weight = |class_s: f64| (class_s / self.seconds(busy)).powf(self.power - 1.0);
        Busy { slow_s: weight(busy.slow_s), fast_s: weight(busy.fast_s) }
    }

    /// The same, in the mean on the way from `one` to `other`.
    pub(super) fn weights_between(&self, one: Busy, other: Busy) -> Busy {
        let mut sum = Busy::default();
        for step in 0..STEPS {
            let way = (f64::from(step) + 0.5) / f64::from(STEPS);
            let between = |one: f64, other: f64| one + (other - one) * way;
            let weights = self.weights(Busy {
                slow_s: between(one.slow_s, other.slow_s),
                fast_s: between(one.fast_s, other.fast_s),
            });
            sum = sum.plus(weights.slow_s / f64::from(STEPS), weights.fast_s / f64::from(STEPS));
        }
        sum
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
    fn serial_times_add_up_and_concurrent_times_overlap() {
        let balance = |depth| Pressure::new(std::iter::once(depth)).balance();
        let busy = Busy { slow_s: 3.0, fast_s: 4.0 };
        assert!(balance(1).is_sum() && (balance(1).seconds(busy) - 7.0).abs() < 1e-9);
        let many = balance(1024).seconds(busy);
        assert!((4.0..4.01).contains(&many), "{many}");
        assert_eq!(busy.plus(-5.0, 1.0), Busy { slow_s: 0.0, fast_s: 5.0 });
    }

    #[test]
    fn copies_delay_running_queries_by_their_share_only() {
        let held_up = |depth, slow_s, fast_s| {
            let pressure = Pressure::new(std::iter::once(depth));
            pressure.held_up_by_copies(Busy { slow_s, fast_s })
        };
        assert_eq!(held_up(1, 5.0, 0.0), Busy { slow_s: 0.5, fast_s: 0.0 });
        assert_eq!(held_up(1, 0.0, 5.0), Busy { slow_s: 0.0, fast_s: 0.5 });
        let both = held_up(1, 5.0, 5.0);
        assert!((0.3..0.5).contains(&both.slow_s) && both.slow_s == both.fast_s, "{both:?}");
        assert!(held_up(256, 5.0, 1.0).slow_s > 0.95, "deep queues leave nothing idle");
        assert_eq!(held_up(32, 0.0, 0.0), Busy::EVEN, "nothing is known");
    }

    #[test]
    fn savings_of_the_slow_class_are_discounted_by_queue_depth() {
        let costs = Costs::default();
        let slow_s = |depths: &[u32]| {
            let weights = Busy { slow_s: 0.25, fast_s: 0.0 };
            let pressure = Pressure { weights, ..Pressure::new(depths.iter().copied()) };
            let load = Load { depth: 32, ..Load::IN_ORDER };
            pressure.saved_s(&costs, &Reads::random(1.0), load) / costs.slow.random_s(32)
        };
        assert!((slow_s(&[1]) - 0.25).abs() < 1e-9, "{}", slow_s(&[1]));
        assert!((slow_s(&[32; 8]) - 0.25).abs() < 1e-9, "{}", slow_s(&[32; 8]));
        assert!((slow_s(&[32, 64]) - 0.5).abs() < 1e-9, "{}", slow_s(&[32, 64]));
        assert!(slow_s(&[256]) > 0.8, "{}", slow_s(&[256]));
    }

    #[test]
    fn a_class_that_is_slower_or_hardly_faster_saves_nothing() {
        let saved_s = |fast_s: f64, fast_weight: f64| {
            let mut costs = Costs::default();
            (costs.slow.random_read_s, costs.fast.random_read_s) = ([1.0; 5], [fast_s; 5]);
            let weights = Busy { slow_s: 1.0, fast_s: fast_weight };
            let pressure = Pressure { weights, ..Pressure::new(std::iter::once(32)) };
            pressure.saved_s(&costs, &Reads::random(1.0), Load::IN_ORDER)
        };
        assert!((saved_s(0.5, 1.0) - 0.5).abs() < 1e-9);
        assert!(saved_s(0.95, 1.0) < 0.0, "within what figures are wrong by");
        assert!(saved_s(1.0, 0.1) > 0.5, "as fast and idle");
        assert!(saved_s(1.2, 0.1) < 0.0, "idle, but slower");
    }

    #[test]
    fn a_second_of_the_class_with_less_to_do_counts_little() {
        let balance = |depth| Pressure::new(std::iter::once(depth)).balance();
        let busy = Busy { slow_s: 1.0, fast_s: 4.0 };
        assert_eq!(balance(1).weights(busy), Busy::EVEN, "all of it adds up");
        let weights = balance(64).weights(busy);
        assert!(weights.slow_s < 0.01 && weights.fast_s > 0.95, "{weights:?}");
        let way = balance(64).weights_between(Busy { slow_s: 20.0, fast_s: 0.0 }, busy);
        assert!((0.5..0.9).contains(&way.slow_s), "there was more to do before: {way:?}");
    }
}
