//! Whether the server left its files clean.
//!
//! Pages of a running or crashed server miss changes that are only in its redo log, and hold changes of transactions
//! that never committed. These are accepted:
//!
//! 1. a data directory that no process has locked, whose redo log ends at its last checkpoint, and none of whose
//!    transactions is unfinished;
//! 2. a backup without a redo log that the backup tool noted as prepared, and the same about transactions;
//! 3. a folder without redo log and system tablespace, so copied away from its server. Nothing can be verified then,
//!    which is reported as a warning, unless every file came from `FLUSH TABLES ... FOR EXPORT`.
//!
//! Parts of a server's files may lie elsewhere (`innodb_data_home_dir`, `innodb_undo_directory`); what that leaves open
//! is a warning too. A redo log that lies elsewhere (`innodb_log_group_home_dir`) leaves everything open, so its lack
//! beside a system tablespace is a refusal.
//!
//! The end of the redo log is what every page is compared with when it is read ([`LogEnd`](crate::space::LogEnd)): a
//! page that is newer was copied later than the log, from a running server. The log before its end tells of pages that
//! are older than they should be ([`LoggedPages`]): their files were copied earlier.
//!
//! The redo log is looked for in the folder and, since the folder may be that of one database, beside it.

mod backup;
mod blocks;
mod changes;
mod mariadb;
mod mysql;
mod running;
mod undo;

pub(super) use undo::is_undo_file;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::files::{FileKind, Files};
use crate::space::LoggedPages;
use crate::{Error, ErrorKind, Lsn, Result};

/// Why files may be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CleanState {
    /// The redo log or the backup's own note says so.
    Verified,
    /// Nothing contradicts, but it could not be verified: a warning for the user.
    Unverified(String),
}

/// What the redo log beside some files tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogState {
    /// The data directory, if the files lie in one; else the folder of the files without links.
    folder: PathBuf,
    is_data_directory: bool,
    /// Where the log ends, and what it has. `None` without a log, as in a prepared backup.
    pub(crate) end: Option<CleanLog>,
}

/// A redo log that ends at its last checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CleanLog {
    /// The end.
    pub(crate) lsn: Lsn,
    /// Changes before it, as far back as was read.
    pub(crate) pages: Arc<LoggedPages>,
}

impl CleanLog {
    fn new(lsn: Lsn, pages: LoggedPages) -> CleanLog {
        CleanLog { lsn, pages: Arc::new(pages) }
    }
}

/// Most bytes of a log that are read for the changes in it.
const READ_BACK: u64 = 16 << 20;

/// Verifies that no server runs on `folder`, a data directory or the folder of one database, and that the redo log ends
/// at its last checkpoint.
///
/// # Errors
/// [`ErrorKind::NotClean`], with the reason and the ways out, if not; [`ErrorKind::Unsupported`] if the redo
/// log is encrypted.
pub(crate) async fn verify_log(disk: &dyn Files, folder: &Path) -> Result<LogState> {
    match data_directory(disk, folder)? {
        Some(folder) => {
            let end = verify_data_directory(disk, &folder).await?;
            Ok(LogState { folder, is_data_directory: true, end })
        }
        None => {
            let folder = disk.real_path(folder).map_err(|error| unreadable(folder, &error))?;
            Ok(LogState { folder, is_data_directory: false, end: None })
        }
    }
}

/// Checks that no transaction was left unfinished in the data directory of `log`, or that the folder without a log, or
/// `only` some tablespaces of it, were copied away in a clean state. `undo` are the undo tablespaces that MySQL's
/// dictionary names, if it could be asked.
///
/// # Errors
/// [`ErrorKind::NotClean`], with the reason and the ways out, if the server did not leave the files clean.
pub(crate) async fn verify_clean(
    disk: &dyn Files,
    log: &LogState,
    only: Option<&[PathBuf]>,
    undo: Option<&[PathBuf]>,
) -> Result<CleanState> {
    match log.is_data_directory {
        true => refuse_unfinished(disk, &log.folder, undo, log.end.as_ref()).await,
        false => verify_copied_folder(disk, &log.folder, only).await,
    }
}

/// The data directory that `folder` is or lies in, as far as its files tell.
///
/// # Errors
/// If `folder` does not exist.
pub(crate) fn data_directory(disk: &dyn Files, folder: &Path) -> Result<Option<PathBuf>> {
    let real = disk.real_path(folder).map_err(|error| unreadable(folder, &error))?;
    let is_data_directory = |folder: &&Path| {
        ["ibdata1", "ib_logfile0", mysql::REDO_FOLDER].iter().any(|name| disk.exists(&folder.join(name)))
    };
    let found = [Some(real.as_path()), real.parent()].into_iter().flatten().find(is_data_directory);
    Ok(found.map(Path::to_owned))
}

/// Returns the redo log, if there is one.
async fn verify_data_directory(disk: &dyn Files, folder: &Path) -> Result<Option<CleanLog>> {
    running::refuse_if_locked(disk, folder)?;
    let is_backup = backup::is_prepared(disk, folder).await?;
    let mariadb_log = folder.join("ib_logfile0");
    if disk.is_folder(&folder.join(mysql::REDO_FOLDER)) {
        mysql::verify_folder(disk, folder).await.map(Some)
    } else if disk.exists(&mariadb_log) {
        verify_log_files(disk, &mariadb_log, folder).await
    } else if is_backup {
        Ok(None)
    } else {
        let what = "the redo log is not beside ibdata1, so that a clean shutdown cannot be verified";
        Err(not_clean(folder, what))
    }
}

/// Refuses a folder with unfinished transactions, whose rows would be seen.
async fn refuse_unfinished(
    disk: &dyn Files,
    folder: &Path,
    undo: Option<&[PathBuf]>,
    log: Option<&CleanLog>,
) -> Result<CleanState> {
    let unknown = |why: &dyn std::fmt::Display| {
        let what = "it is not known whether all transactions were finished";
        Ok(CleanState::Unverified(format!("{}: {what}: {why}", folder.display())))
    };
    match undo::unfinished(disk, folder, undo, log).await {
        Ok(undo::Unfinished { active: 0, prepared: 0, elsewhere: None }) => Ok(CleanState::Verified),
        Ok(undo::Unfinished { active: 0, prepared: 0, elsewhere: Some(what) }) => unknown(&what),
        Ok(undo::Unfinished { active: 0, .. }) => Err(not_clean(
            folder,
            "an XA transaction is prepared, but neither committed nor rolled back (see XA RECOVER)",
        )),
        Ok(_) => Err(not_clean(
            folder,
            "a transaction was not rolled back; a server that starts on a copy of the files does so",
        )),
        Err(error) if matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::InvalidInput) => {
            let what = format!("whether all transactions were finished cannot be read any more ({error})");
            Err(not_clean(folder, &what))
        }
        Err(error) if error.kind() == ErrorKind::NotClean => Err(error),
        Err(error) => unknown(&error),
    }
}

/// `ib_logfile0` is MariaDB's log, or that of MySQL before 8.0.30. `None` if it is empty.
async fn verify_log_files(disk: &dyn Files, log: &Path, folder: &Path) -> Result<Option<CleanLog>> {
    let file = LogFile::open(disk, log)?;
    // Preparing a backup leaves an empty file: the server makes a new log.
    if file.len == 0 {
        return Ok(None);
    }
    let header = file.read(0, 4).await?;
    match u32::from_be_bytes(header.first_chunk().copied().unwrap_or_default()) {
        format @ 1..=6 => mysql::verify_files(disk, format, folder).await.map(Some),
        format => mariadb::verify(format, &file, folder).await.map(Some),
    }
}

/// A folder without any log: every table has its `.cfg` if they were flushed for export.
async fn verify_copied_folder(
    disk: &dyn Files,
    folder: &Path,
    only: Option<&[PathBuf]>,
) -> Result<CleanState> {
    if backup::is_prepared(disk, folder).await? {
        return Ok(CleanState::Verified);
    }
    let files = match only {
        Some(only) => only.to_vec(),
        None => disk.entries(folder).map_err(|error| unreadable(folder, &error))?,
    };
    let mut tablespaces =
        files.iter().filter(|path| path.extension().is_some_and(|extension| extension == "ibd")).peekable();
    if tablespaces.peek().is_some() && tablespaces.all(|path| disk.exists(&path.with_extension("cfg"))) {
        return Ok(CleanState::Verified);
    }
    Ok(CleanState::Unverified(format!(
        "{}: there is no redo log beside these files, so it is not known whether the server had written all of them",
        folder.display()
    )))
}

/// The refusal, with the ways out.
fn not_clean(folder: &Path, reason: &str) -> Error {
    Error::new(
        ErrorKind::NotClean,
        format!(
            "{}: {reason}; shut the server down cleanly (SET GLOBAL innodb_fast_shutdown = 0; SHUTDOWN), or copy the files under \
             FLUSH TABLES ... FOR EXPORT, or use a prepared backup (mariabackup or xtrabackup --prepare); --allow-stale reads them as they are",
            folder.display()
        ),
    )
}

fn unreadable(path: &Path, error: &std::io::Error) -> Error {
    let kind = if error.kind() == std::io::ErrorKind::NotFound { ErrorKind::NotFound } else { ErrorKind::Io };
    Error::new(kind, format!("cannot read {}: {error}", path.display()))
}

/// A log file, read at any place.
#[derive(Debug)]
struct LogFile<'a> {
    disk: &'a dyn Files,
    path: PathBuf,
    len: u64,
}

impl LogFile<'_> {
    fn open<'a>(disk: &'a dyn Files, path: &Path) -> Result<LogFile<'a>> {
        let len = match disk.kind(path).map_err(|error| unreadable(path, &error))? {
            FileKind::File { bytes } => bytes,
            FileKind::Folder => {
                return Err(unreadable(path, &std::io::ErrorKind::IsADirectory.into()));
            }
        };
        Ok(LogFile { disk, path: path.to_owned(), len })
    }

    /// Up to `len` bytes at `offset`; fewer at the end of the file.
    async fn read(&self, offset: u64, len: usize) -> Result<Vec<u8>> {
        self.disk.read(&self.path, offset, len).await.map_err(|error| unreadable(&self.path, &error))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::*;
    use crate::HostFiles;

    fn verify_clean(folder: &Path) -> Result<CleanState> {
        verify_clean_of(folder, None)
    }

    fn verify_clean_of(folder: &Path, only: Option<&[PathBuf]>) -> Result<CleanState> {
        futures::executor::block_on(async {
            let log = verify_log(&HostFiles, folder).await?;
            super::verify_clean(&HostFiles, &log, only, None).await
        })
    }

    #[test]
    fn a_copied_folder_is_unverified_unless_all_of_it_was_exported() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str| fs::write(folder.path().join(name), b"").unwrap();
        assert!(matches!(verify_clean(folder.path()).unwrap(), CleanState::Unverified(_)));
        write("a.ibd");
        write("a.cfg");
        assert_eq!(verify_clean(folder.path()).unwrap(), CleanState::Verified);
        write("b.ibd");
        assert!(matches!(verify_clean(folder.path()).unwrap(), CleanState::Unverified(_)));
        for (name, is_verified) in [("a.ibd", true), ("b.ibd", false)] {
            let only = [folder.path().join(name)];
            let state = verify_clean_of(folder.path(), Some(&only)).unwrap();
            assert_eq!(state == CleanState::Verified, is_verified, "{name}");
        }
        let missing = verify_clean(&folder.path().join("none")).unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NotFound);
    }

    #[test]
    fn a_system_tablespace_without_its_log_is_refused_also_from_a_database_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("shop");
        fs::create_dir(&database).unwrap();
        fs::write(folder.path().join("ibdata1"), b"").unwrap();
        for folder in [folder.path(), database.as_path()] {
            let error = verify_clean(folder).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotClean);
            for way in ["innodb_fast_shutdown", "FOR EXPORT", "--prepare", "--allow-stale"] {
                assert!(error.to_string().contains(way), "{error}");
            }
        }
    }

    /// Formats of all logs, so that noise gets past the first check.
    const FORMATS: [u32; 7] = [0x5068_7973, 0x5048_5953, 0xf09f_979d, 1, 6, 0, u32::MAX];

    proptest! {
        /// Noise is never clean, and never a panic.
        #[test]
        fn noise_in_place_of_a_log_is_not_clean(
            format in prop::sample::select(&FORMATS[..]),
            noise in prop::collection::vec(any::<u8>(), 0..3000),
            len in 4usize..40_000,
        ) {
            let folder = tempfile::tempdir().unwrap();
            let mut log = [&format.to_be_bytes()[..], &noise].concat();
            log.resize(len, 0);
            fs::write(folder.path().join("ib_logfile0"), &log).unwrap();
            prop_assert!(verify_clean(folder.path()).is_err());
            fs::remove_file(folder.path().join("ib_logfile0")).unwrap();
            fs::create_dir(folder.path().join(mysql::REDO_FOLDER)).unwrap();
            fs::write(folder.path().join(mysql::REDO_FOLDER).join("#ib_redo1"), &log).unwrap();
            prop_assert!(verify_clean(folder.path()).is_err());
        }
    }
}
