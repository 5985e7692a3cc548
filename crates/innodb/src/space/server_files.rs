//! The files of a server that say whether it has run: its redo log and its system tablespaces.
//!
//! A server that starts writes to them before it changes a table, and what it has changed may lie in its redo log alone
//! for a while. So what was learned of a table is worth something only as long as these files are what they were.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::files::{FileStamp, Files};

/// Names in a data directory, of both servers.
const NAMES: [&str; 4] = ["ibdata1", "ib_logfile0", "mysql.ibd", "#innodb_redo"];

/// Stamps of the files, taken when a directory was mounted.
#[derive(Debug, Default)]
pub(crate) struct ServerFiles {
    stamps: Vec<(PathBuf, Option<FileStamp>)>,
    /// Whether the server did not leave its files clean, and they are read all the same.
    is_stale: AtomicBool,
}

impl ServerFiles {
    /// The files in `folder` as they are now.
    pub(crate) fn now(files: &dyn Files, folder: &Path) -> ServerFiles {
        let named = NAMES.iter().map(|name| folder.join(name));
        let logs = files.entries(&folder.join("#innodb_redo")).unwrap_or_default();
        let mut paths: Vec<PathBuf> = named.chain(logs).collect();
        paths.sort_unstable();
        let stamps = paths.into_iter().map(|path| (path.clone(), files.stamp(&path).ok())).collect();
        ServerFiles { stamps, is_stale: AtomicBool::new(false) }
    }

    /// Notes that the server did not leave its files clean, and that they are read all the same.
    pub(crate) fn accept_stale(&self) {
        self.is_stale.store(true, Ordering::Relaxed);
    }

    /// Whether that was noted.
    pub(crate) fn is_stale(&self) -> bool {
        self.is_stale.load(Ordering::Relaxed)
    }

    /// The first of them that is not what it was, or was not there.
    pub(crate) fn changed(&self, files: &dyn Files) -> Option<&Path> {
        let is_changed = |(path, stamp): &&(PathBuf, Option<FileStamp>)| files.stamp(path).ok() != *stamp;
        self.stamps.iter().find(is_changed).map(|(path, _)| path.as_path())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HostFiles;

    #[test]
    fn a_log_that_is_written_replaced_or_new_is_a_change() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("ib_logfile0");
        std::fs::write(&log, b"log").unwrap();
        let files = ServerFiles::now(&HostFiles, folder.path());
        assert_eq!(files.changed(&HostFiles), None);
        std::fs::write(&log, b"longer").unwrap();
        assert_eq!(files.changed(&HostFiles), Some(log.as_path()));
        let files = ServerFiles::now(&HostFiles, folder.path());
        std::fs::create_dir(folder.path().join("#innodb_redo")).unwrap();
        assert!(files.changed(&HostFiles).is_some());
        assert_eq!(ServerFiles::default().changed(&HostFiles), None);
    }
}
