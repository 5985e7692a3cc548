//! Another engine, in a program of its own: it is told a [`Job`] as JSON on its standard input and answers with a
//! [`Run`] on its standard output.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde::Serialize;

use super::Job;
use super::guard::Guard;
use crate::measure::Run;
use crate::{Error, ErrorKind, Result};

/// The program's name.
const PROGRAM: &str = "tanada-compare";

/// The engines that it knows.
const ENGINES: [&str; 4] = ["rocksdb", "rocksdb-usual-levels", "rocksdb-blob", "fjall"];

/// An engine to compare with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Peer {
    /// The program that runs it.
    pub program: PathBuf,
    /// What the program calls it: `rocksdb`, `rocksdb-usual-levels`, `rocksdb-blob`, `fjall`.
    pub engine: String,
}

impl Peer {
    /// The engine, run by the program that lies beside this one.
    ///
    /// # Errors
    /// `InvalidInput` for an engine that is not known, `Missing` if the program does not lie there.
    pub fn beside_this_program(engine: &str) -> Result<Peer> {
        check_engine(engine)?;
        let own = std::env::current_exe().map_err(Error::failed)?;
        let beside = own.ancestors().skip(1).take(2).map(|folder| folder.join(PROGRAM));
        let found = beside.clone().find(|path| path.is_file());
        found.map(|program| Peer { program, engine: engine.to_owned() }).ok_or_else(|| {
            let folder = own.parent().unwrap_or(&own).display();
            let how = "build it in crates/compare with cargo build --release and put it there";
            Error::new(ErrorKind::Missing, format!("{PROGRAM} is not in {folder}: {how}"))
        })
    }

    /// Whether the engine is known and its program there.
    pub(super) fn check(&self) -> Result<()> {
        check_engine(&self.engine)?;
        if self.program.is_file() {
            return Ok(());
        }
        let message = format!("{} is not there: crates/compare builds it", self.program.display());
        Err(Error::new(ErrorKind::Missing, message))
    }

    /// Has the program do `job`.
    ///
    /// # Errors
    /// If it cannot be started, fails, or answers with something else.
    pub(super) fn perform(&self, job: &Job, guard: &Guard) -> Result<Run> {
        let program = self.program.display();
        let mut child =
            Command::new(&self.program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(
                |error| Error::new(ErrorKind::Missing, format!("cannot start {program}: {error}")),
            )?;
        guard.runs(Some(child.id()));
        let text = serde_json::to_vec(job).map_err(Error::failed)?;
        if let Some(mut input) = child.stdin.take() {
            // A program that does not listen says on its own what is wrong.
            let _ = input.write_all(&text);
        }
        let output = child.wait_with_output();
        guard.runs(None);
        let output = output.map_err(Error::failed)?;
        if !output.status.success() {
            return Err(Error::failed(format!("{program} failed with {}", output.status)));
        }
        serde_json::from_slice(&output.stdout)
            .map_err(|error| Error::failed(format!("{program} did not answer with a run: {error}")))
    }
}

fn check_engine(engine: &str) -> Result<()> {
    if ENGINES.contains(&engine) {
        return Ok(());
    }
    Err(Error::invalid(format!("there is no {engine:?} to compare with, but {}", ENGINES.join(", "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let error = Peer::beside_this_program("rocksdb").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Missing);
        assert!(error.to_string().contains("tanada-compare is not in"));
    }
}
