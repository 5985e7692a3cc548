//! Whether a server is running on a folder: servers hold record locks on the system tablespace, and MariaDB (some
//! versions of it, only) on the control file of the Aria engine.

use std::path::Path;

use super::not_clean;
use crate::Result;
use crate::files::Files;

const LOCKED: [&str; 2] = ["ibdata1", "aria_log_control"];

/// Refuses the folder if another process holds a server's lock in it. Where locks cannot be asked for, the other checks
/// have to do.
pub(super) fn refuse_if_locked(disk: &dyn Files, folder: &Path) -> Result<()> {
    for name in LOCKED {
        if let Some(lock) = disk.lock(&folder.join(name)) {
            let process = lock.process.map_or_else(String::new, |process| format!(" (process {process})"));
            return Err(not_clean(folder, &format!("a server is running on it{process}")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HostFiles;

    #[test]
    fn a_folder_nobody_has_locked_passes() {
        let folder = tempfile::tempdir().unwrap();
        assert!(refuse_if_locked(&HostFiles, folder.path()).is_ok());
        for name in LOCKED {
            std::fs::write(folder.path().join(name), b"x").unwrap();
        }
        assert!(refuse_if_locked(&HostFiles, folder.path()).is_ok());
    }
}
