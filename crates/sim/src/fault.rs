//! Faults: what goes wrong, on which disk, and when.
//!
//! A campaign injects [`Rule`]s; each I/O asks them in their order and the first that strikes decides. "Fail the n-th I/O, n = 0, 1, 2, ... until
//! none fails" is [`Rule::nth`] with [`World::struck`](crate::World::struck) as the end.

use parking_lot::Mutex;
use tanada_base::SplitMix64;
use tanada_io::Operation;

/// What goes wrong with an I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// EIO. A write leaves any subset of its sectors behind. A sync leaves what it covered undefined: part of it is durable, the rest never
    /// will be, even though later syncs succeed and the cache may go on showing it ("fsyncgate").
    Error,
    /// ENOSPC for a write; nothing is written.
    NoSpace,
    /// A read or a write transfers only its first sectors, and says so.
    Short,
    /// A write lands on other sectors of the same disk, and is reported as done.
    Misdirected,
    /// A read returns one flipped bit; the disk holds the right one.
    FlipOnRead,
    /// A write leaves one flipped bit behind, and is reported as done.
    FlipOnWrite,
    /// A punch is reported as done and did nothing.
    LostPunch,
    /// A write is reported as done and did nothing.
    LostWrite,
    /// A sync is reported as done and made nothing durable.
    LyingSync,
}

impl Fault {
    /// Whether it can befall `operation`.
    pub fn befalls(self, operation: Operation) -> bool {
        match self {
            Fault::Error => true,
            Fault::NoSpace | Fault::Misdirected | Fault::FlipOnWrite | Fault::LostWrite => {
                operation == Operation::Write
            }
            Fault::Short => matches!(operation, Operation::Read | Operation::Write),
            Fault::FlipOnRead => operation == Operation::Read,
            Fault::LostPunch => operation == Operation::Punch,
            Fault::LyingSync => operation == Operation::Sync,
        }
    }
}

/// When a rule strikes, counted in the I/Os that its fault can befall.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Each time.
    Always,
    /// The one with this number, from 0.
    Nth(u64),
    /// The one with this number, and all that follow.
    From(u64),
    /// With this chance in a million.
    PerMillion(u32),
}

/// A fault with its place and time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// What goes wrong.
    pub fault: Fault,
    /// When.
    pub when: When,
    /// Only on the disk of this number ([`SimDisk::no`](crate::SimDisk::no)).
    pub disk: Option<usize>,
    /// Only this operation.
    pub operation: Option<Operation>,
}

impl Rule {
    /// `fault`, at a time.
    pub fn new(fault: Fault, when: When) -> Rule {
        Rule { fault, when, disk: None, operation: None }
    }

    /// `fault` at the `n`-th I/O that it can befall.
    pub fn nth(fault: Fault, n: u64) -> Rule {
        Rule::new(fault, When::Nth(n))
    }

    /// The same, on one disk.
    #[must_use]
    pub fn on(mut self, disk: usize) -> Rule {
        self.disk = Some(disk);
        self
    }

    /// The same, for one operation.
    #[must_use]
    pub fn of(mut self, operation: Operation) -> Rule {
        self.operation = Some(operation);
        self
    }

    fn concerns(&self, disk: usize, operation: Operation) -> bool {
        self.fault.befalls(operation)
            && self.disk.is_none_or(|only| only == disk)
            && self.operation.is_none_or(|only| only == operation)
    }
}

/// Names an injected rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleNo(usize);

#[derive(Debug)]
struct Entry {
    rule: Rule,
    is_active: bool,
    met: u64,
    struck: u64,
}

/// The rules of a simulation.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    entries: Mutex<Vec<Entry>>,
}

impl Faults {
    pub(crate) fn add(&self, rule: Rule) -> RuleNo {
        let mut entries = self.entries.lock();
        entries.push(Entry { rule, is_active: true, met: 0, struck: 0 });
        RuleNo(entries.len() - 1)
    }

    pub(crate) fn struck(&self, no: RuleNo) -> u64 {
        self.entries.lock()[no.0].struck
    }

    /// Ends all rules; their counts stay.
    pub(crate) fn clear(&self) {
        self.entries.lock().iter_mut().for_each(|entry| entry.is_active = false);
    }

    /// What befalls the next I/O.
    pub(crate) fn decide(&self, disk: usize, operation: Operation, random: &mut SplitMix64) -> Option<Fault> {
        let mut entries = self.entries.lock();
        let mut decided = None;
        for entry in
            entries.iter_mut().filter(|entry| entry.is_active && entry.rule.concerns(disk, operation))
        {
            let no = entry.met;
            entry.met += 1;
            let strikes = match entry.rule.when {
                When::Always => true,
                When::Nth(n) => no == n,
                When::From(n) => no >= n,
                When::PerMillion(chance) => random.below(1_000_000) < u64::from(chance),
            };
            if strikes && decided.is_none() {
                entry.struck += 1;
                decided = Some(entry.rule.fault);
            }
        }
        decided
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_strike_where_and_when_they_say() {
        let faults = Faults::default();
        let mut random = SplitMix64::new(1);
        let nth = faults.add(Rule::nth(Fault::Error, 1).on(2).of(Operation::Write));
        let mut ask = |disk, operation| faults.decide(disk, operation, &mut random);
        assert_eq!(ask(2, Operation::Write), None);
        assert_eq!(ask(1, Operation::Write), None);
        assert_eq!(ask(2, Operation::Read), None);
        assert_eq!(ask(2, Operation::Write), Some(Fault::Error));
        assert_eq!(ask(2, Operation::Write), None);
        assert_eq!(faults.struck(nth), 1);
        faults.add(Rule::new(Fault::LostPunch, When::From(1)));
        assert_eq!(ask(0, Operation::Punch), None);
        assert_eq!(ask(0, Operation::Sync), None);
        assert_eq!(ask(0, Operation::Punch), Some(Fault::LostPunch));
        faults.clear();
        assert_eq!(ask(0, Operation::Punch), None);
    }
}
