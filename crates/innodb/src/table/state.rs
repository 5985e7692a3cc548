//! The state of a table's files: what its rows follow from beside its definition, so that equal states of one
//! definition have the same rows.
//!
//! 1. Each tablespace is the file that was opened: device, inode, size, both times, the LSN of its first page.
//! 2. Whether checksums are verified decides what is believed.
//! 3. A server that has run since the directory was mounted leaves a trace in its own files, and where its log ends is
//!    a part of the state: pages are compared with that when they are read.

use std::fmt::Write;

use super::Table;
use crate::{Error, ErrorKind, Result};

/// The state of a table's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableState {
    /// All that the rows follow from beside the definition.
    pub text: String,
    /// When any of the files was last touched, in nanoseconds since 1970, by the clock of the file system. A file that
    /// is touched within one tick of that clock may change again without a trace.
    pub newest_ns: i128,
}

impl Table {
    /// The state of its files now.
    ///
    /// # Errors
    /// With the reason if it cannot be told, or is not that in which they were mounted.
    pub fn state(&self) -> Result<TableState> {
        let unknown = |what: String| Error::new(ErrorKind::Unsupported, what);
        let environment = &self.environment;
        let accepts_stale = environment.log_end.as_ref().is_some_and(|log| log.accept_stale);
        if environment.server_files.is_stale() || accepts_stale {
            return Err(unknown("the server may not have left its files clean".to_owned()));
        }
        if let Some(path) = environment.server_files.changed(&*environment.files) {
            return Err(unknown(format!("{} has changed since it was mounted", path.display())));
        }
        let log = environment.log_end.as_ref().map(|log| log.lsn.0);
        let mut text = format!("log end {log:?}, checksums {}", environment.verify_checksums);
        let mut newest_ns = i128::MIN;
        for space in &self.spaces {
            let path = space.path();
            let opened = space.stamp().ok_or_else(|| {
                unknown(format!("changes of {} would not be noticed where it lies", path.display()))
            })?;
            let now = environment.files.stamp(path);
            if now.ok() != Some(opened) {
                return Err(unknown(format!("{} has changed since it was opened", path.display())));
            }
            newest_ns = newest_ns.max(opened.newest_ns());
            let (id, first_lsn) = (space.id().0, space.first_lsn().0);
            // Writing to a text does not fail.
            let _ = write!(text, "\n{opened:?}, space {id}, LSN {first_lsn}");
        }
        Ok(TableState { text, newest_ns })
    }
}
