//! Policies: which chunks belong in the fast class, as state machines.
//!
//! A policy is told of [events](Event) and answers with [decisions](Decision). It does no I/O, has no clock and no
//! randomness of its own, so it runs live, in replayed traces and in unit tests alike, and the same events give the
//! same decisions. What each one does and whose it is: `docs/placement.md`.

mod benefit;
mod blocks;
mod bufferpool_extension;
mod fixed;
mod history;
mod in_page_logging;
mod learned;
mod lru;
mod off;
mod options;
mod plan;
mod priority;
mod quotas;
mod residency;
mod smq;
mod streams;
mod write_back;

use std::fmt;

use crate::action::{Decision, Route};
use crate::event::{Context, Event, Io};
use crate::footprint::Fingerprint;
use crate::layout::ChunkNo;
use crate::memory::Memory;
use crate::{Error, Result};
use options::Options;

/// What a policy places at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Granularity {
    /// Chunks of the volume.
    Chunk,
    /// Blocks of so many bytes, as caches do. Only where the fast class is run as a cache: in simulation.
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

/// A policy that can be made by name.
#[derive(Debug, Clone, Copy)]
pub struct Registered {
    /// Its name.
    pub name: &'static str,
    /// What it does, in a line.
    pub summary: &'static str,
    /// Whether it can act on a volume; the others are caches of blocks, for simulation.
    pub is_live: bool,
    make: fn(&mut Options, u64) -> Result<Box<dyn Policy>>,
}

/// All policies, ours first.
pub const POLICIES: [Registered; 12] = [
    Registered {
        name: "benefit",
        summary: "what saves most time for this query and the likely next ones, if it pays back (default)",
        is_live: true,
        make: benefit::make,
    },
    Registered { name: "off", summary: "nothing is moved", is_live: true, make: off::make },
    Registered {
        name: "static",
        summary: "FST: most I/Os in a training run, placed once",
        is_live: true,
        make: fixed::make,
    },
    Registered {
        name: "plan",
        summary: "PST: chunks that the query's plan names, by their I/Os in a training run",
        is_live: true,
        make: plan::make,
    },
    Registered {
        name: "lru",
        summary: "FlashCache: a read cache of blocks; fifo, skip-sequential[=SIZE], ways=N, block=SIZE",
        is_live: false,
        make: lru::make,
    },
    Registered {
        name: "write-back",
        summary: "bcache: a write-back cache in buckets; cutoff=SIZE, bucket=SIZE, dirty=PERCENT, block=SIZE",
        is_live: false,
        make: write_back::make,
    },
    Registered {
        name: "smq",
        summary: "dm-cache: multi-queue hotspots; block=SIZE",
        is_live: false,
        make: smq::make,
    },
    Registered {
        name: "priority",
        summary: "hStorage-DB: a block cache by the requests' class and plan level; block=SIZE",
        is_live: false,
        make: priority::make,
    },
    Registered {
        name: "learned",
        summary: "CLIC: a block cache by learned hint sets; window=N, top=N, block=SIZE",
        is_live: false,
        make: learned::make,
    },
    Registered {
        name: "history",
        summary: "KNOWAC, LAM: what the cycle's history foresees; window=N, ahead=N",
        is_live: true,
        make: history::make,
    },
    Registered {
        name: "bufferpool-extension",
        summary: "clean pages that the page cache gives up, LRU-2; block=SIZE",
        is_live: false,
        make: bufferpool_extension::make,
    },
    Registered {
        name: "in-page-logging",
        summary: "updates go to log sectors of their erase unit; unit=SIZE, sectors=N",
        is_live: false,
        make: in_page_logging::make,
    },
];

/// The policy that `text` describes: `name[:option[=value],...]`. `seed` is for what a policy draws; the same seed, the
/// same decisions.
///
/// ```
/// let policy = tanada_placement::policy("lru:fifo,skip-sequential", 0)?;
/// assert_eq!(policy.name(), "lru");
/// let error = tanada_placement::policy("mru", 0).unwrap_err();
/// assert!(error.to_string().contains("benefit, off, static, plan"));
/// # Ok::<(), tanada_placement::Error>(())
/// ```
///
/// # Errors
/// If there is no such policy or option, with what there is.
pub fn policy(text: &str, seed: u64) -> Result<Box<dyn Policy>> {
    let (name, mut options) = Options::parse(text)?;
    let registered = POLICIES.iter().find(|registered| registered.name == name).ok_or_else(|| {
        let names: Vec<_> = POLICIES.iter().map(|registered| registered.name).collect();
        Error::invalid(format!("there is no placement policy {name:?}; there are {}", names.join(", ")))
    })?;
    let policy = (registered.make)(&mut options, seed)?;
    options.finish()?;
    Ok(policy)
}

#[cfg(test)]
mod tests {
    use super::*;

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
            ("in-page-logging:sectors=4294967295", "sectors is a number from 1 to 256"),
            ("in-page-logging:unit=4KiB,sectors=9", "sectors is a number from 1 to 8"),
            ("history:window=1,ahead=4294967295", "ahead is a number from 1 to 1024"),
            ("history:window=4294967295", "window is a number from 1 to 134217728"),
            ("write-back:dirty=101", "dirty is a number from 0 to 100"),
            ("lru:ways=4294967295", "ways is a number from 1 to 134217728"),
            ("learned:top=0", "top is a number from 1 to 134217728"),
            ("learned:window=18446744073709551615", "window is a number from 1 to 134217728"),
            ("smq:block=18446744073709551615", "block is 512 bytes to 1 GiB"),
        ] {
            let error = policy(text, 1).unwrap_err().to_string();
            assert!(error.ends_with(expected), "{error}");
        }
    }
}
