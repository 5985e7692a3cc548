//! A server that runs as a process of its own, with a log, for as long as a benchmark needs it.
//!
//! It is killed when [`Process`] is dropped before it was waited for: then the benchmark has failed, and its files are
//! of no use to anybody.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::{Error, Result};

/// How long a server may take to answer, and to stop.
const PATIENCE: Duration = Duration::from_secs(300);

const PAUSE: Duration = Duration::from_millis(50);

/// A running server.
#[derive(Debug)]
pub(crate) struct Process {
    child: Option<Child>,
    name: &'static str,
    log: PathBuf,
}

impl Process {
    /// Starts the program `name`, which belongs to `package`; what it says goes to `log`.
    pub(crate) fn start(
        mut command: Command,
        name: &'static str,
        package: &str,
        log: &Path,
    ) -> Result<Process> {
        let file = std::fs::File::create(log).map_err(|error| Error::at_path("write", log, &error))?;
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(file)
            .spawn()
            .map_err(|error| Error::program(name, package, &error))?;
        Ok(Process { child: Some(child), name, log: log.to_owned() })
    }

    /// The number of the process.
    pub(crate) fn id(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Waits until `answers` says that the server answers.
    pub(crate) async fn until(&mut self, answers: impl AsyncFn() -> bool) -> Result<()> {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            if let Some(Ok(Some(status))) = self.child.as_mut().map(Child::try_wait) {
                return Err(Error::failed(format!("{} ended ({status}): {}", self.name, self.said())));
            }
            if answers().await {
                return Ok(());
            }
            tokio::time::sleep(PAUSE).await;
        }
        Err(Error::failed(format!("{} does not answer: {}", self.name, self.said())))
    }

    /// Waits until the server, which was asked to stop, has ended well.
    pub(crate) async fn ended(mut self) -> Result<()> {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            let Some(child) = &mut self.child else { return Ok(()) };
            match child.try_wait() {
                Ok(Some(status)) if status.success() => {
                    self.child = None;
                    return Ok(());
                }
                Ok(None) => tokio::time::sleep(PAUSE).await,
                Ok(Some(status)) => {
                    self.child = None;
                    return Err(Error::failed(format!("{} ended ({status}): {}", self.name, self.said())));
                }
                Err(error) => return Err(Error::failed(format!("{} is lost: {error}", self.name))),
            }
        }
        Err(Error::failed(format!("{} does not stop: {}", self.name, self.said())))
    }

    /// The first error in its log, or else the last line.
    fn said(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let is_error = |line: &&str| line.contains("[ERROR]") || line.contains("FATAL:");
        let error = text.lines().find(is_error);
        error.or(text.lines().last()).unwrap_or("it wrote no log").to_owned()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
