//! Whoever wants to know of each I/O of a query: what placement and traces are told.

use std::fmt;
use std::path::Path;
use std::time::Duration;

/// A read that has come to its end. Times are those of the context's clock: of the machine, or of virtual time.
#[derive(Debug, Clone, Copy)]
pub struct ObservedRead<'a> {
    /// The file, as the layer that reads it names it.
    pub file: &'a Path,
    /// Where in the file, in bytes.
    pub offset: u64,
    /// Bytes.
    pub bytes: u64,
    /// When it was sent to the device.
    pub started: Duration,
    /// When it was complete.
    pub ended: Duration,
    /// Which I/O of the query it is, in the order in which they were sent, from 1 on.
    pub no: u64,
    /// Which I/O of the query had ended last when it was sent. `None` if it waited at the gate, where any other's end
    /// lets it in; and of the first ones.
    pub after: Option<u64>,
}

/// Is told of each read of the contexts that it was given to, on the thread that read.
pub trait IoObserver: fmt::Debug + Send + Sync {
    /// A read is complete. Called often: returns at once.
    fn read(&self, read: &ObservedRead<'_>);
}
