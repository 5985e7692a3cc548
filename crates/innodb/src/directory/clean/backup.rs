//! What mariabackup and xtrabackup note beside a backup: `backup_type = full-prepared` and the like.

use std::fs;
use std::path::Path;

use super::{not_clean, unreadable};
use crate::Result;

const NOTES: [&str; 2] = ["mariadb_backup_checkpoints", "xtrabackup_checkpoints"];

/// Whether `folder` is a prepared backup. mariabackup notes "log-applied": it leaves it to the server to roll back what was not committed.
///
/// # Errors
/// If it is a backup that was not prepared.
pub(super) fn is_prepared(folder: &Path) -> Result<bool> {
    let Some(path) = NOTES.iter().map(|name| folder.join(name)).find(|path| path.exists()) else {
        return Ok(false);
    };
    let note = fs::read(&path).map_err(|error| unreadable(&path, &error))?;
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
    use super::*;
    use crate::ErrorKind;

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
