//! What one client does next.
//!
//! 1. The operation is drawn by the workload's proportions.
//! 2. An insert takes the next number of the counter that all clients share.
//! 3. Anything else draws a record; one that is not there yet, by the counter, is drawn again.

use std::sync::Arc;

use tanada_base::SplitMix64;

use super::{Distribution, LONGEST_SCAN, Operation, Workload};
use crate::draw::{AcknowledgedCounter, Hotspot, Latest, ScrambledZipfian, fnv_hash_64, unit};

/// An operation on a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drawn {
    /// What is done.
    pub operation: Operation,
    /// The record's number.
    pub record: u64,
    /// Records of a scan; 1 for anything else.
    pub length: u64,
}

#[derive(Debug, Clone)]
enum Chooser {
    Zipfian(ScrambledZipfian),
    Latest(Latest),
    Hotspot(Hotspot),
    Uniform(u64),
    Sequential { next: u64, step: u64, count: u64 },
}

/// A client's numbers.
fn random(workload: Workload, client: u64) -> SplitMix64 {
    SplitMix64::new(0x5963_7362 ^ client << 32 ^ u64::from(u32::from(workload.letter())))
}

/// The sequence of one client's operations.
#[derive(Debug, Clone)]
pub struct Draws {
    workload: Workload,
    random: SplitMix64,
    chooser: Chooser,
    inserted: Arc<AcknowledgedCounter>,
}

impl Draws {
    /// For the first of `clients` clients that together do `operations` operations of `workload`, on the records that
    /// `inserted` knows. `distribution` is the workload's own if it is not given. Takes a time proportional to the
    /// records if the newest are drawn most.
    pub fn new(
        workload: Workload,
        distribution: Option<Distribution>,
        inserted: Arc<AcknowledgedCounter>,
        operations: u64,
        clients: u64,
    ) -> Draws {
        let count = inserted.count();
        let chooser = match distribution.unwrap_or(workload.distribution()) {
            Distribution::Zipfian => {
                // As YCSB does: room for twice the records that are expected, so that popular ones stay the same; its
                // bound is inclusive.
                let expected = (operations as f64 * workload.insert_proportion() * 2.0) as u64;
                Chooser::Zipfian(ScrambledZipfian::new(count + expected + 1))
            }
            Distribution::Latest => Chooser::Latest(Latest::new(inserted.last())),
            Distribution::Hotspot => Chooser::Hotspot(Hotspot::new(count, 0.2, 0.8)),
            Distribution::Uniform => Chooser::Uniform(count),
            Distribution::Sequential => Chooser::Sequential { next: 0, step: clients, count },
        };
        Draws { workload, random: random(workload, 0), chooser, inserted }
    }

    /// Another client's sequence, which takes no time to make.
    #[must_use]
    pub fn of_client(&self, client: u64) -> Draws {
        let mut draws = Draws { random: random(self.workload, client), ..self.clone() };
        if let Chooser::Sequential { next, .. } = &mut draws.chooser {
            *next = client;
        }
        draws
    }

    /// The same with another sequence for each seed.
    #[must_use]
    pub fn seeded(mut self, seed: u64) -> Draws {
        self.random = SplitMix64::new(self.random.next_u64() ^ fnv_hash_64(seed));
        self
    }

    /// The client's source of random numbers.
    pub fn random(&mut self) -> &mut SplitMix64 {
        &mut self.random
    }

    /// The next operation. Who inserts tells the counter when the record is there.
    pub fn draw(&mut self) -> Drawn {
        let operation = self.operation();
        let record = match operation {
            Operation::Insert => self.inserted.take(),
            _ => self.record(),
        };
        let length = match operation {
            Operation::Scan => 1 + self.random.below(LONGEST_SCAN),
            _ => 1,
        };
        Drawn { operation, record, length }
    }

    fn operation(&mut self) -> Operation {
        let mut left = unit(&mut self.random);
        let proportions = self.workload.proportions();
        for (operation, proportion) in proportions {
            if left < *proportion {
                return *operation;
            }
            left -= proportion;
        }
        // Rounding alone comes here.
        proportions[0].0
    }

    fn record(&mut self) -> u64 {
        loop {
            let last = self.inserted.last();
            let record = match &mut self.chooser {
                Chooser::Zipfian(zipfian) => zipfian.next(&mut self.random),
                Chooser::Latest(latest) => latest.next(last, &mut self.random),
                Chooser::Hotspot(hotspot) => hotspot.next(&mut self.random),
                Chooser::Uniform(count) => self.random.below(*count),
                Chooser::Sequential { next, step, count } => {
                    let record = *next % (*count).max(1);
                    *next += *step;
                    record
                }
            };
            if record <= last {
                return record;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws(workload: Workload, distribution: Distribution, count: u64) -> Draws {
        let inserted = Arc::new(AcknowledgedCounter::new(count));
        Draws::new(workload, Some(distribution), inserted, 1000, 1)
    }

    #[test]
    fn only_records_that_are_there_are_drawn() {
        for distribution in [
            Distribution::Zipfian,
            Distribution::Latest,
            Distribution::Hotspot,
            Distribution::Uniform,
            Distribution::Sequential,
        ] {
            for count in [1, 2, 100] {
                let mut draws = draws(Workload::C, distribution, count);
                assert!((0..2000).all(|_| draws.draw().record < count), "{distribution:?} {count}");
            }
        }
    }

    #[test]
    fn seeds_give_other_sequences() {
        let sequence = |seed| {
            let mut draws = draws(Workload::C, Distribution::Uniform, 1000).seeded(seed);
            (0..20).map(|_| draws.draw().record).collect::<Vec<_>>()
        };
        assert_eq!(sequence(1), sequence(1));
        assert_ne!(sequence(1), sequence(2));
    }

    #[test]
    fn clients_have_sequences_of_their_own() {
        let inserted = Arc::new(AcknowledgedCounter::new(1000));
        for distribution in [Distribution::Latest, Distribution::Sequential] {
            let first = Draws::new(Workload::C, Some(distribution), inserted.clone(), 1000, 3);
            let sequence = |client| {
                let mut draws = first.of_client(client);
                (0..20).map(|_| draws.draw().record).collect::<Vec<_>>()
            };
            assert_eq!(sequence(1), sequence(1));
            assert_ne!(sequence(1), sequence(2), "{distribution:?}");
        }
        let sequential = Draws::new(Workload::C, Some(Distribution::Sequential), inserted, 1000, 3);
        let mut third = sequential.of_client(2);
        assert_eq!([third.draw().record, third.draw().record], [2, 5]);
    }

    #[test]
    fn an_insert_that_is_not_acknowledged_is_not_read() {
        let inserted = Arc::new(AcknowledgedCounter::new(10));
        let mut draws = Draws::new(Workload::D, None, inserted.clone(), 1000, 1);
        let mut first = None;
        for _ in 0..1000 {
            let drawn = draws.draw();
            match drawn.operation {
                Operation::Insert => first = first.or(Some(drawn.record)),
                _ => assert!(drawn.record < 10),
            }
        }
        assert_eq!(first, Some(10));
        inserted.acknowledge(10);
        assert!(
            (0..1000).any(|_| draws.draw() == Drawn { operation: Operation::Read, record: 10, length: 1 })
        );
    }
}
