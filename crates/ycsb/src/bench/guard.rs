//! What is left when a benchmark is stopped, cleaned up by a process that outlives it.
//!
//! A shell waits for the end of its standard input, whose other end this process alone has: so it notices any end, that
//! by SIGKILL included, and needs no signals, which it ignores. Then it ends the program of another engine if one runs,
//! unmounts what is mounted in the folder, and removes the folder. After a benchmark that ended by itself nothing of
//! that is there.

use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use parking_lot::Mutex;

use crate::{Error, Result};

const SCRIPT: &str = r#"
trap '' INT TERM HUP
while read -r running; do peer=$running; done
[ -n "$peer" ] && kill "$peer"
[ -d "$1" ] || exit 0
for mounted in "$1"/*/; do
    mountpoint -q "$mounted" || continue
    umount "$mounted" || umount --lazy "$mounted"
done
rm -rf --one-file-system "$1"
"#;

/// Guards a folder as long as it lives; whatever of it is there afterwards goes.
#[derive(Debug)]
pub(super) struct Guard {
    shell: Mutex<Child>,
}

impl Guard {
    /// Begins.
    pub fn of(folder: &Path) -> Result<Guard> {
        // Its own words are of no use to whoever stopped the benchmark.
        let shell = Command::new("sh")
            .args(["-c", SCRIPT, "guard"])
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let shell = shell.map_err(|error| Error::failed(format!("cannot start sh: {error}")))?;
        Ok(Guard { shell: Mutex::new(shell) })
    }

    /// From now on a program runs that has to end with this one; or, for none, does not any more.
    pub fn runs(&self, program: Option<u32>) {
        let line = program.map(|id| id.to_string()).unwrap_or_default();
        if let Some(input) = &mut self.shell.lock().stdin {
            // Without the shell nothing can be done.
            let _ = writeln!(input, "{line}");
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let shell = self.shell.get_mut();
        drop(shell.stdin.take());
        let _ = shell.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    #[test]
    fn guards_remove_folders_and_stop_programs() {
        let folder = tempfile::tempdir().unwrap();
        let left = folder.path().join("left behind");
        std::fs::create_dir_all(left.join("capacity/database")).unwrap();
        std::fs::write(left.join("capacity/database/file"), b"x").unwrap();
        let mut program = Command::new("sleep").arg("1000").spawn().unwrap();
        let guard = Guard::of(&left).unwrap();
        guard.runs(Some(program.id()));
        drop(guard);
        assert!(!left.exists() && folder.path().exists());
        assert!(program.wait().unwrap().signal().is_some());
    }

    #[test]
    fn a_program_that_has_ended_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let mut program = Command::new("sleep").arg("1000").spawn().unwrap();
        let guard = Guard::of(&folder.path().join("gone")).unwrap();
        guard.runs(Some(program.id()));
        guard.runs(None);
        drop(guard);
        assert!(program.try_wait().unwrap().is_none(), "it runs");
        program.kill().unwrap();
        program.wait().unwrap();
    }
}
