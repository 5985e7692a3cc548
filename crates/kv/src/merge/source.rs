//! What a merge draws from.

use futures::future::BoxFuture;

use crate::Result;
use crate::entry::{SequenceNo, Version};

/// Which way a source is walked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// By key ascending, the newest version of a key first.
    Forward,
    /// Exactly the other way round.
    Reverse,
}

/// The result of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) enum Step {
    /// The source is at a version, or at its end.
    Done,
    /// The step can be repeated once [`Source::load`] has returned.
    Load,
}

/// Versions in order: a memtable, a key file, or what else has them.
///
/// A source begins at no version; it is walked in the direction of its last [`seek`](Source::seek).
pub(crate) trait Source: Send {
    /// Goes to the first version whose key is not smaller than `bound`; in reverse to the last one whose key is
    /// smaller. Without a bound to the very first, or last.
    ///
    /// # Errors
    /// If what it holds in memory is corrupted.
    fn seek(&mut self, direction: Direction, bound: Option<&[u8]>) -> Result<Step>;

    /// Goes one version further.
    ///
    /// # Errors
    /// As [`seek`](Source::seek).
    fn advance(&mut self) -> Result<Step>;

    /// Ends what a step began, where that needs a device.
    ///
    /// # Errors
    /// If a device fails or bytes are not what was written.
    fn load(&mut self) -> BoxFuture<'_, Result<()>>;

    /// The key of the version it is at; `None` at the end, or while it has to load.
    fn key(&self) -> Option<&[u8]>;

    /// The sequence number of the version it is at. Without a version it means nothing.
    fn sequence(&self) -> SequenceNo;

    /// The version it is at.
    ///
    /// # Errors
    /// As [`seek`](Source::seek).
    fn version(&self) -> Result<Version>;
}
