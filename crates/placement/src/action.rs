//! What policies want done, and why.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::layout::{ChunkNo, Layout};

/// Where the bytes of a chunk that goes to the fast class come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Source {
    /// They are copied from the slow class.
    Copy,
    /// All of them are in memory, having just been read or evicted: it costs a write to the fast class alone.
    Memory,
    /// They are those of the write that the policy is just told of, which then goes to the fast class.
    Written,
}

/// What a policy wants for a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Action {
    /// Its home moves to the fast class.
    Promote(Source),
    /// Its home moves to the slow class.
    Demote,
    /// It gets a copy in the fast class; reads go there until it is written.
    Mirror(Source),
    /// Its copy in the fast class is given up, which costs nothing.
    DropMirror,
    /// Its home in the fast class is written back to the slow class; what was the home becomes a mirror.
    Clean,
    /// What was logged for it in the fast class is brought to its home.
    Merge,
}

impl Action {
    /// Whether it takes a chunk's room in the fast class.
    pub fn takes_room(self) -> bool {
        matches!(self, Action::Promote(_) | Action::Mirror(_))
    }

    /// The verb.
    pub fn order(self) -> &'static str {
        match self {
            Action::Promote(_) => "move up",
            Action::Demote => "move down",
            Action::Mirror(_) => "mirror",
            Action::DropMirror => "drop the mirror of",
            Action::Clean => "write back",
            Action::Merge => "merge the log into",
        }
    }

    /// The verb, in the past tense.
    pub fn verb(self) -> &'static str {
        match self {
            Action::Promote(_) => "moved up",
            Action::Demote => "moved down",
            Action::Mirror(_) => "mirrored",
            Action::DropMirror => "dropped the mirror of",
            Action::Clean => "wrote back",
            Action::Merge => "merged the log into",
        }
    }
}

/// Why a policy wants something.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Reason {
    /// It was among the chunks with most I/Os in the training run.
    Trained {
        /// Its I/Os then.
        ios: u64,
        /// Its place among all, from 0.
        rank: u32,
    },
    /// The plan of the query names it.
    Planned {
        /// Its I/Os in the training run.
        ios: u64,
        /// Its place among all that the plan names, from 0.
        rank: u32,
    },
    /// It was read or written just now.
    Referenced,
    /// It was hit more often than what the threshold asks for.
    Hot {
        /// Its level or count.
        level: u32,
        /// The threshold.
        threshold: u32,
    },
    /// The request's class is let in before the victim's.
    Class {
        /// Its priority, 0 highest.
        priority: u32,
    },
    /// Its hint set promises to be read again soon.
    Promising {
        /// The hint set's priority: re-reads a request over their distance.
        priority: f64,
    },
    /// The history says that it will be hot soon.
    Foreseen {
        /// In so many windows.
        windows: u32,
        /// I/Os then.
        ios: u32,
    },
    /// It was part of a small area with most of the last I/Os.
    Spike {
        /// Its I/Os
        ios: u32,
        /// in so many seconds.
        seconds: u32,
    },
    /// The page cache gave it up, clean.
    Evicted,
    /// It is the least valuable, and room is wanted for another.
    MakesRoom {
        /// For whom.
        other: ChunkNo,
    },
    /// Nothing wants it any more.
    Unwanted,
    /// Too much of the fast class is not written back.
    TooDirty {
        /// Dirty chunks, in percent of the fast class.
        percent: u32,
    },
    /// Its log sectors are used up.
    LogFull {
        /// Log sectors.
        sectors: u32,
    },
    /// A user pinned its object.
    Pinned,
    /// It lay there before a query needed the room.
    Returns,
    /// The running query is expected to read it from now on.
    Expected {
        /// Random reads expected.
        random: f32,
        /// Sequential bytes expected.
        sequential_bytes: f32,
        /// Seconds that moving it costs.
        cost_s: f32,
    },
    /// Reads of it from the slow class, that nothing announced, have cost as much as moving it would.
    Rented {
        /// Seconds spent.
        spent_s: f32,
        /// Seconds that moving it costs.
        cost_s: f32,
    },
    /// A query that is likely to follow is expected to read it.
    Likely {
        /// The chance, in percent.
        percent: u32,
        /// Seconds that it would save then.
        saves_s: f32,
    },
}

impl Reason {
    /// In words, with chunks named by their object and their place in it.
    pub fn told(&self, layout: &Layout) -> String {
        match self {
            Reason::MakesRoom { other } => match layout.owner(*other) {
                Some((object, chunk)) => {
                    format!("chunk {chunk} of {} is worth more and needs the room", layout.name(object))
                }
                None => self.to_string(),
            },
            _ => self.to_string(),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Trained { ios, rank } => {
                write!(f, "it had {ios} I/Os in the training run, number {} of all", rank + 1)
            }
            Reason::Planned { ios, rank } => {
                write!(f, "the query's plan names it, with {ios} I/Os before, number {} of those", rank + 1)
            }
            Reason::Referenced => f.write_str("it was used just now"),
            Reason::Hot { level, threshold } => write!(f, "its level is {level}, {threshold} is enough"),
            Reason::Class { priority } => write!(f, "its request has priority {priority}"),
            Reason::Promising { priority } => {
                write!(f, "its hint set is worth {priority:.3e} re-reads a request and distance")
            }
            Reason::Foreseen { windows, ios } => {
                write!(f, "the history foresees {ios} I/Os in {windows} windows")
            }
            Reason::Spike { ios, seconds } => {
                write!(f, "it had {ios} I/Os within {seconds} s, with few others most of all")
            }
            Reason::Evicted => f.write_str("the page cache gave it up, clean"),
            Reason::MakesRoom { other } => write!(f, "{other} is worth more and needs the room"),
            Reason::Unwanted => f.write_str("nothing wants it any more"),
            Reason::TooDirty { percent } => write!(f, "{percent} % of the fast class are not written back"),
            Reason::LogFull { sectors } => write!(f, "its {sectors} log sectors are used up"),
            Reason::Pinned => f.write_str("its object is pinned there"),
            Reason::Returns => f.write_str("it lay there before a query needed the room"),
            Reason::Expected { random, sequential_bytes, cost_s } => write!(
                f,
                "the running query will read it {random:.0} times at random and {:.2} MB in sequence, moving it costs {:.1} ms",
                sequential_bytes / 1e6,
                cost_s * 1e3
            ),
            Reason::Rented { spent_s, cost_s } => write!(
                f,
                "reads of it that nothing announced took {:.1} ms, moving it costs {:.1} ms",
                spent_s * 1e3,
                cost_s * 1e3
            ),
            Reason::Likely { percent, saves_s } => {
                write!(
                    f,
                    "a query that follows with a chance of {percent} % would save {:.1} ms",
                    saves_s * 1e3
                )
            }
        }
    }
}

/// What a policy wants done.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// On which chunk.
    pub chunk: ChunkNo,
    /// What.
    pub action: Action,
    /// Copies with a lower number go first; those with the same in the order in which they came.
    pub order: u32,
    /// Why.
    pub reason: Reason,
    /// Seconds that it is expected to save, its own cost subtracted; 0 where the policy does not reckon.
    pub gain_s: f32,
}

impl Decision {
    /// With no order and no reckoned gain.
    pub fn new(chunk: ChunkNo, action: Action, reason: Reason) -> Decision {
        Decision { chunk, action, order: 0, reason, gain_s: 0.0 }
    }

    /// In one sentence.
    ///
    /// ```
    /// use tanada_placement::{Action, ChunkNo, Decision, Reason, Source};
    /// let reason = Reason::Trained { ios: 312, rank: 3 };
    /// let decision = Decision::new(ChunkNo(17), Action::Promote(Source::Copy), reason);
    /// assert_eq!(decision.explain(), "moved up chunk 17: it had 312 I/Os in the training run, number 4 of all.");
    /// ```
    pub fn explain(&self) -> String {
        let gain =
            if self.gain_s > 0.0 { format!("; saves {:.1} ms", self.gain_s * 1e3) } else { String::new() };
        format!("{} {}: {}{gain}.", self.action.verb(), self.chunk, self.reason)
    }
}

/// Where an I/O goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Route {
    /// Where its chunk lies.
    #[default]
    Mapped,
    /// A write goes to the chunk's log in the fast class instead, as so many bytes.
    Logged {
        /// Bytes.
        bytes: u32,
    },
    /// A read needs the chunk's log in the fast class besides.
    WithLog {
        /// Bytes of the log.
        bytes: u32,
    },
}
