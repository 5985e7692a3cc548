//! Whether a server is running on a folder: servers hold record locks on the system tablespace, and MariaDB (some versions of it, only)
//! on the control file of the Aria engine.

use std::fs::File;
use std::path::Path;

use rustix::process::{Flock, FlockType, fcntl_getlk};

use super::not_clean;
use crate::Result;

const LOCKED: [&str; 2] = ["ibdata1", "aria_log_control"];

/// Refuses the folder if another process holds a server's lock in it. Where locks cannot be asked for, the other checks have to do.
pub(super) fn refuse_if_locked(folder: &Path) -> Result<()> {
    for name in LOCKED {
        let Ok(file) = File::open(folder.join(name)) else { continue };
        // A lock for reading conflicts with the server's lock for writing only.
        if let Ok(Some(lock)) = fcntl_getlk(&file, &Flock::from(FlockType::ReadLock)) {
            let process =
                lock.pid.map_or_else(String::new, |pid| format!(" (process {})", pid.as_raw_nonzero()));
            return Err(not_clean(folder, &format!("a server is running on it{process}")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_nobody_has_locked_passes() {
        let folder = tempfile::tempdir().unwrap();
        assert!(refuse_if_locked(folder.path()).is_ok());
        for name in LOCKED {
            std::fs::write(folder.path().join(name), b"x").unwrap();
        }
        assert!(refuse_if_locked(folder.path()).is_ok());
    }
}
