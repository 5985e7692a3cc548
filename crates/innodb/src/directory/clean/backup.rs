//! What mariabackup and xtrabackup note beside a backup: `backup_type = full-prepared` and the like.

use std::path::Path;

use super::{not_clean, unreadable};
use crate::Result;
use crate::files::Files;

/// Notes are a few lines.
const LONGEST_NOTE: usize = 64 << 10;
const NOTES: [&str; 2] = ["mariadb_backup_checkpoints", "xtrabackup_checkpoints"];

/// Whether `folder` is a prepared backup. mariabackup notes "log-applied": it leaves it to the server to roll back what
/// was not committed.
///
/// # Errors
/// If it is a backup that was not prepared.
pub(super) async fn is_prepared(disk: &dyn Files, folder: &Path) -> Result<bool> {
    let Some(path) = NOTES.iter().map(|name| folder.join(name)).find(|path| disk.exists(path)) else {
        return Ok(false);
    };
    let note = disk.read(&path, 0, LONGEST_NOTE).await.map_err(|error| unreadable(&path, &error))?;
    let note = String::from_utf8_lossy(&note);
    let kind = note.lines().find_map(|line| {
        let (key, value) = line.split_once('=')?;
        (key.trim() == "backup_type").then(|| value.trim().to_owned())
    });
    match kind.as_deref() {
        Some("full-prepared" | "log-applied") => Ok(true),
        kind => {
            let kind = kind.unwrap_or("unknown");
            Err(not_clean(folder, &format!("it is a backup that was not prepared (backup_type = {kind})")))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::{ErrorKind, HostFiles};

    fn is_prepared(folder: &Path) -> Result<bool> {
        futures::executor::block_on(super::is_prepared(&HostFiles, folder))
    }

    fn with_note(note: &str) -> Result<bool> {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(NOTES[1]), note).unwrap();
        is_prepared(folder.path())
    }

    #[test]
    fn prepared_backups_pass_and_others_do_not() {
        for note in ["backup_type = full-prepared\nfrom_lsn = 0\n", "backup_type=log-applied"] {
            assert!(with_note(note).unwrap());
        }
        for note in ["backup_type = full-backuped", "backup_type = incremental", "", "\u{0}\n="] {
            assert_eq!(with_note(note).unwrap_err().kind(), ErrorKind::NotClean, "{note:?}");
        }
        assert!(!is_prepared(tempfile::tempdir().unwrap().path()).unwrap());
    }
}
