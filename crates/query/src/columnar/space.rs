//! The place of the mirrors: a folder of the host or of a volume, how full it may be, and what is deleted first.
//!
//! Who makes mirrors holds a lock on the folder, so that several processes do not make the same ones. Only its holder
//! writes, so whatever is unfinished in the folder when the lock is taken was left by a process that ended.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use rustix::fs::{FlockOperation, flock};
use tanada_io::Executors;

use super::identity::{ENDING, MirrorKey};
use crate::store::{FileStore, Folders, Medium};
use crate::{Error, ErrorKind, Result};

/// The file that is locked.
const LOCK: &str = ".lock";
/// What names of unfinished files end with.
const UNFINISHED: &str = ".tanada-tmp";

/// A folder for mirrors.
#[derive(Debug)]
pub(super) struct Space {
    pub(super) store: FileStore,
    folder: String,
    /// The folder, if it is one of the host.
    path: Option<PathBuf>,
}

/// A mirror in the folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) bytes: u64,
    pub(super) used: SystemTime,
}

impl Space {
    /// The folder at `path` of the host, which is made if need be.
    ///
    /// # Errors
    /// If it is no folder, or cannot be made.
    pub(super) fn of_host(path: &Path, executors: &Arc<Executors>) -> Result<Space> {
        let failed = |error: std::io::Error| {
            let message = format!("cannot keep mirrors in {}: {error}", path.display());
            Error::new(ErrorKind::Io, message)
        };
        std::fs::create_dir_all(path).map_err(failed)?;
        let path = path.canonicalize().map_err(failed)?;
        let folder = Folders::name(&path)?;
        let store = FileStore::unwatched(Arc::new(Folders), Arc::clone(executors));
        Ok(Space { store, folder, path: Some(path) })
    }

    /// The folder called `folder` of another medium.
    pub(super) fn of_medium(medium: Arc<dyn Medium>, folder: String, executors: &Arc<Executors>) -> Space {
        Space { store: FileStore::unwatched(medium, Arc::clone(executors)), folder, path: None }
    }

    /// What people call it.
    pub(super) fn shown(&self) -> String {
        self.store.medium().shown(&self.folder)
    }

    /// The whole name of a file in it.
    pub(super) fn at(&self, name: &str) -> String {
        if self.folder.is_empty() { name.to_owned() } else { format!("{}/{name}", self.folder) }
    }

    /// Names of all mirrors.
    pub(super) fn names(&self) -> Vec<String> {
        self.entries().into_iter().filter(|name| name.ends_with(ENDING)).collect()
    }

    fn entries(&self) -> Vec<String> {
        // A folder of a volume is there when there is something in it.
        let entries = self.store.medium().entries(&self.folder).unwrap_or_default();
        entries.into_iter().filter(|entry| !entry.is_folder).map(|entry| entry.name).collect()
    }

    /// All mirrors with their sizes.
    pub(super) fn kept(&self) -> BTreeMap<String, Kept> {
        let with_facts = |name: String| {
            let kept = self.facts(&name)?;
            Some((name, kept))
        };
        self.names().into_iter().filter_map(with_facts).collect()
    }

    fn facts(&self, name: &str) -> Option<Kept> {
        match &self.path {
            Some(path) => {
                let metadata = std::fs::metadata(path.join(name)).ok()?;
                let used = metadata.accessed().unwrap_or(SystemTime::UNIX_EPOCH);
                Some(Kept { bytes: metadata.len(), used })
            }
            None => {
                let opened = self.store.opened(&self.at(name)).ok()?;
                Some(Kept { bytes: opened.identity.bytes, used: SystemTime::UNIX_EPOCH })
            }
        }
    }

    /// Notes that a mirror is used now.
    pub(super) fn touch(&self, name: &str) {
        let Some(path) = &self.path else { return };
        let times = std::fs::FileTimes::new().set_accessed(SystemTime::now());
        // Where that is not allowed, the mirror counts as old.
        let _ = File::open(path.join(name)).and_then(|file| file.set_times(times));
    }

    /// Deletes a mirror; one that is being read stays until that is over.
    pub(super) async fn delete(&self, name: &str) {
        let at = self.at(name);
        self.store.forget(&at);
        let medium = Arc::clone(self.store.medium());
        let removed = self.store.executors().spawn(move || async move { medium.remove(&at).await });
        // Another process may have been faster.
        let _ = removed.await;
    }

    /// Takes the lock, and deletes what was left unfinished; `None` if another process makes mirrors.
    ///
    /// # Errors
    /// If nothing can be written there.
    pub(super) async fn lock(&self) -> Result<Option<Lock>> {
        let lock = match &self.path {
            None => Lock { _file: None },
            Some(path) => {
                let file = File::options().create(true).append(true).open(path.join(LOCK));
                let file = file.map_err(|error| {
                    Error::new(ErrorKind::Io, format!("cannot write to {}: {error}", path.display()))
                })?;
                if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
                    return Ok(None);
                }
                Lock { _file: Some(file) }
            }
        };
        for left in self.entries().into_iter().filter(|name| name.ends_with(UNFINISHED)) {
            self.delete(&left).await;
        }
        Ok(Some(lock))
    }

    /// Deletes mirrors of the table in another state of its files.
    pub(super) async fn delete_stale(&self, key: &MirrorKey) {
        for name in self.names().into_iter().filter(|name| key.makes_stale(name)) {
            self.delete(&name).await;
        }
    }

    /// Makes room for `bytes` more within `limit`: deletes mirrors that `may_go`, those that were not used for the
    /// longest time first. Whether there is room now.
    pub(super) async fn make_room(&self, bytes: u64, limit: u64, may_go: impl Fn(&str) -> bool) -> bool {
        let kept = self.kept();
        let mut total: u64 = kept.values().map(|kept| kept.bytes).sum();
        let Some(allowed) = limit.checked_sub(bytes) else { return false };
        let mut old: Vec<(String, Kept)> = kept.into_iter().filter(|(name, _)| may_go(name)).collect();
        old.sort_unstable_by(|one, other| (one.1.used, &one.0).cmp(&(other.1.used, &other.0)));
        let gains: u64 = old.iter().map(|(_, kept)| kept.bytes).sum();
        if total.saturating_sub(gains) > allowed {
            return false;
        }
        for (name, kept) in old {
            if total <= allowed {
                break;
            }
            self.delete(&name).await;
            total -= kept.bytes;
        }
        true
    }
}

/// The right to make mirrors.
#[derive(Debug)]
pub(super) struct Lock {
    _file: Option<File>,
}
