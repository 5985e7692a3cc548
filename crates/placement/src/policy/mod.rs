//! Policies: which chunks belong in the fast class, as state machines.
//!
//! A policy is told of [events](Event) and answers with [decisions](Decision). It does no I/O, has no clock and no
//! randomness of its own, so it runs live, in replayed traces and in unit tests alike, and the same events give the
//! same decisions. What each one does and whose it is: `docs/placement.md`.

mod benefit;
mod fixed;
mod history;
mod off;
mod options;
mod plan;
mod quotas;
mod residency;
mod spike;

use std::fmt;

use crate::action::{Decision, Route};
use crate::event::{Context, Event, Io};
use crate::footprint::Fingerprint;
use crate::layout::ChunkNo;
use crate::memory::Memory;
use crate::{Error, Result};
pub use options::{MOST_COUNTED, Options};

/// What a policy places at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Granularity {
    /// Chunks of the volume.
    Chunk,
    /// Blocks of so many bytes, as caches do. Only where the fast class is run as a cache: in replays.
    Block(u64),
}

/// What was read of a chunk in all.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Counted {
    /// Which.
    pub chunk: ChunkNo,
    /// Reads.
    pub reads: u64,
    /// Bytes read.
    pub bytes: u64,
    /// The part of the reads that were sequential, 0 to 1.
    pub sequential_share: f64,
}

/// Decides what lies in the fast class.
pub trait Policy: fmt::Debug + Send {
    /// As it is registered.
    fn name(&self) -> &'static str;

    /// A copy of it as it is: what is tried on that changes nothing here.
    fn boxed(&self) -> Box<dyn Policy>;

    /// What it places at once.
    fn granularity(&self) -> Granularity {
        Granularity::Chunk
    }

    /// Whether it learns from a run before.
    fn learns(&self) -> bool {
        false
    }

    /// Is told of a run before the one that counts.
    fn train(&mut self, _context: &Context<'_>, _event: &Event<'_>) {}

    /// Is told what was read of chunks in all, where no recorded run is at hand.
    fn train_counts(&mut self, _counts: &[Counted]) {}

    /// What it has learned, for another session.
    fn memory(&self) -> Memory {
        Memory::default()
    }

    /// Takes over what it had learned in another session; chunks and statements that it does not know of are news.
    fn remember(&mut self, _memory: Memory) {}

    /// What it was told to lie in the fast class from before was brought there by a policy: nobody else wants it there.
    fn was_brought(&mut self, _chunk: ChunkNo) {}

    /// Runs of the statement that it remembers.
    fn runs_of(&self, _statement: Fingerprint) -> u32 {
        0
    }

    /// The run that counts is about to begin: what is to lie in the fast class beforehand.
    fn prepare(&mut self, _context: &Context<'_>, _decisions: &mut Vec<Decision>) {}

    /// A session on a volume begins: as [`prepare`](Self::prepare), but chunks may lie in the fast class already, and
    /// copies take time.
    fn begin_session(&mut self, context: &Context<'_>, decisions: &mut Vec<Decision>) {
        self.prepare(context, decisions);
    }

    /// Something happened; what is to be done is added to `decisions`.
    fn handle(&mut self, context: &Context<'_>, event: &Event<'_>, decisions: &mut Vec<Decision>);

    /// From now on what takes longer than a moment is left to [`think`](Self::think), so that whoever tells of an I/O
    /// does not wait for it.
    fn defer(&mut self) {}

    /// Whether [`think`](Self::think) has something to do.
    fn wants_to_think(&self) -> bool {
        false
    }

    /// When [`think`](Self::think) will have something to do though nothing happens until then, by the time of events.
    fn thinks_at_ns(&self) -> Option<u64> {
        None
    }

    /// What was deferred; what is to be done is added to `decisions`.
    fn think(&mut self, _context: &Context<'_>, _decisions: &mut Vec<Decision>) {}

    /// Where an I/O goes; asked after the event of a write and before that of a read.
    fn route(&mut self, _io: &Io) -> Route {
        Route::Mapped
    }
}

/// Makes a policy of the options behind its name, and a seed for what it draws.
pub type Make = fn(&mut Options, u64) -> Result<Box<dyn Policy>>;

/// A policy that can be made by name.
#[derive(Debug, Clone, Copy)]
pub struct Registered {
    /// Its name.
    pub name: &'static str,
    /// What it does, in a line.
    pub summary: &'static str,
    /// Makes one.
    pub make: Make,
}

/// The policies that can act on a volume, ours first.
pub const POLICIES: [Registered; 6] = [
    Registered {
        name: "benefit",
        summary: "what saves most time for this query and the likely next ones, if it pays back (default)",
        make: benefit::make,
    },
    Registered { name: "off", summary: "nothing is moved", make: off::make },
    Registered {
        name: "static",
        summary: "FST: most I/Os in a training run, placed once",
        make: fixed::make,
    },
    Registered {
        name: "plan",
        summary: "PST: chunks that the query's plan names, by their I/Os in a training run; no-counts",
        make: plan::make,
    },
    Registered {
        name: "history",
        summary: "KNOWAC, LAM: what the cycle's history foresees; window=N, ahead=N",
        make: history::make,
    },
    Registered {
        name: "spike",
        summary: "areas with most I/Os of the last seconds; window=SECONDS, share=PERCENT, area=PERCENT, quiet=N",
        make: spike::make,
    },
];

/// The policy that `text` describes: `name[:option[=value],...]`. `seed` is for what a policy draws; the same seed, the
/// same decisions.
///
/// ```
/// let policy = tanada_placement::policy("history:window=40", 0)?;
/// assert_eq!(policy.name(), "history");
/// let error = tanada_placement::policy("mru", 0).unwrap_err();
/// assert!(error.to_string().contains("benefit, off, static, plan"));
/// # Ok::<(), tanada_placement::Error>(())
/// ```
///
/// # Errors
/// If there is no such policy or option, with what there is.
pub fn policy(text: &str, seed: u64) -> Result<Box<dyn Policy>> {
    policy_among(&POLICIES, text, seed)
}

/// As [`policy()`], of others.
///
/// # Errors
/// If there is no such policy or option, with what there is.
pub fn policy_among(policies: &[Registered], text: &str, seed: u64) -> Result<Box<dyn Policy>> {
    let (name, mut options) = Options::parse(text)?;
    let registered = policies.iter().find(|registered| registered.name == name).ok_or_else(|| {
        let names: Vec<_> = policies.iter().map(|registered| registered.name).collect();
        Error::invalid(format!("there is no placement policy {name:?}; there are {}", names.join(", ")))
    })?;
    let policy = (registered.make)(&mut options, seed)?;
    options.finish()?;
    Ok(policy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Bench;

    /// The policy that `text` describes, on a bench.
    pub(crate) fn bench(text: &str, chunks: u64, capacity: u32) -> Bench {
        Bench::new(policy(text, 1).unwrap(), chunks, capacity)
    }

    #[test]
    fn policies_are_made_by_name_and_refuse_unknown_options() {
        for registered in POLICIES {
            assert_eq!(policy(registered.name, 1).unwrap().name(), registered.name);
            let error = policy(&format!("{}:no-such-option", registered.name), 1).unwrap_err();
            assert!(error.to_string().contains("no-such-option"), "{error}");
        }
    }

    #[test]
    fn numbers_that_no_policy_can_use_are_refused() {
        for (text, expected) in [
            ("history:window=1,ahead=4294967295", "ahead is a number from 1 to 1024"),
            ("history:window=4294967295", "window is a number from 1 to 134217728"),
        ] {
            let error = policy(text, 1).unwrap_err().to_string();
            assert!(error.ends_with(expected), "{error}");
        }
    }
}
