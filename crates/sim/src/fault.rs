//! Faults: what goes wrong, on which disk, and when.
//!
//! A campaign injects [`Rule`]s; each I/O asks them in their order and the first that strikes decides. "Fail the n-th
//! I/O, n = 0, 1, 2, ... until none fails" is [`Rule::nth`] with [`World::struck`](crate::World::struck) as the end.

use std::fmt;
use std::str::FromStr;

use parking_lot::Mutex;
use tanada_base::SplitMix64;
use tanada_io::Operation;

/// What goes wrong with an I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// EIO. A write leaves any subset of its sectors behind. A sync leaves what it covered undefined: part of it is
    /// durable, the rest never will be, even though later syncs succeed and the cache may go on showing it
    /// ("fsyncgate").
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

const FAULTS: [(&str, Fault); 9] = [
    ("error", Fault::Error),
    ("no-space", Fault::NoSpace),
    ("short", Fault::Short),
    ("misdirected", Fault::Misdirected),
    ("flip-on-read", Fault::FlipOnRead),
    ("flip-on-write", Fault::FlipOnWrite),
    ("lost-punch", Fault::LostPunch),
    ("lost-write", Fault::LostWrite),
    ("lying-sync", Fault::LyingSync),
];

const OPERATIONS: [(&str, Operation); 4] = [
    ("read", Operation::Read),
    ("write", Operation::Write),
    ("sync", Operation::Sync),
    ("punch", Operation::Punch),
];

/// As a word of a command: `error/nth=3/sync/disk=2`.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = FAULTS.iter().find(|(_, fault)| *fault == self.fault).map_or("", |(name, _)| name);
        match self.when {
            When::Always => write!(f, "{name}/always")?,
            When::Nth(n) => write!(f, "{name}/nth={n}")?,
            When::From(n) => write!(f, "{name}/from={n}")?,
            When::PerMillion(chance) => write!(f, "{name}/per-million={chance}")?,
        }
        if let Some((name, _)) = OPERATIONS.iter().find(|(_, operation)| Some(*operation) == self.operation) {
            write!(f, "/{name}")?;
        }
        self.disk.map_or(Ok(()), |disk| write!(f, "/disk={disk}"))
    }
}

impl FromStr for Rule {
    type Err = String;

    fn from_str(text: &str) -> Result<Rule, String> {
        let mut parts = text.split('/');
        let first = parts.next().unwrap_or_default();
        let fault = FAULTS.iter().find(|(name, _)| *name == first);
        let (_, fault) = fault.ok_or_else(|| format!("there is no fault {first:?}"))?;
        let mut rule = Rule::new(*fault, When::Always);
        for part in parts {
            let (name, value) = part.split_once('=').unwrap_or((part, "0"));
            let number = value.parse::<u64>().map_err(|error| format!("{part}: {error}"))?;
            let operation = OPERATIONS.iter().find(|(known, _)| *known == name);
            match (name, operation) {
                (_, Some((_, operation))) => rule.operation = Some(*operation),
                ("always", None) => rule.when = When::Always,
                ("nth", None) => rule.when = When::Nth(number),
                ("from", None) => rule.when = When::From(number),
                ("per-million", None) => rule.when = When::PerMillion(number as u32),
                ("disk", None) => rule.disk = Some(number as usize),
                _ => return Err(format!("{part:?} says nothing about a fault")),
            }
        }
        Ok(rule)
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

    /// How often any fault struck.
    pub(crate) fn struck_in_all(&self) -> u64 {
        self.entries.lock().iter().map(|entry| entry.struck).sum()
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
    fn rules_are_words() {
        let rules = [
            Rule::nth(Fault::Error, 3).of(Operation::Sync).on(2),
            Rule::new(Fault::LyingSync, When::PerMillion(7)),
            Rule::new(Fault::FlipOnRead, When::Always),
            Rule::new(Fault::NoSpace, When::From(9)).on(0),
        ];
        for rule in rules {
            assert_eq!(rule.to_string().parse(), Ok(rule));
        }
        assert_eq!(rules[0].to_string(), "error/nth=3/sync/disk=2");
        assert!("nothing".parse::<Rule>().is_err() && "error/nth=x".parse::<Rule>().is_err());
        assert!("error/sometimes".parse::<Rule>().is_err());
    }

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
