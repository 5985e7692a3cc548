//! MySQL's redo log.
//!
//! After a clean shutdown nothing follows the last checkpoint, and page 0 of `ibdata1` holds the same LSN as the one up
//! to which all files were flushed; it is only written then (`log0log.cc`, `fil0fil.cc`).
//!
//! From 8.0.30 on, `#innodb_redo` holds files `#ib_redoN` (those that end in `_tmp` are spares), each with a header
//! block (format, UUID, LSN of its first byte at 8, flags at 48), two checkpoint blocks at 512 and 1536 (LSN at 8), and
//! the log from 2048. Before, `ib_logfile0`, `ib_logfile1`, ... form a ring; the checkpoint blocks in the first of them
//! count up (number at 0, LSN at 8, offset in the ring at 16).

use std::path::{Path, PathBuf};

use super::blocks::{self, BLOCK};
use super::{CleanLog, LogFile, READ_BACK, changes, not_clean, unreadable};
use crate::files::Files;
use crate::page::header::{self, u32_at, u64_at};
use crate::space::LoggedPages;
use crate::{Error, ErrorKind, Lsn, Result};

/// Where the log lies from 8.0.30 on.
pub(super) const REDO_FOLDER: &str = "#innodb_redo";

const LOG_START: u64 = 2048;
const CHECKPOINTS: [u64; 2] = [512, 1536];
/// Header flag: changes were made while logging was off, so a crash loses them
/// (`ALTER INSTANCE DISABLE INNODB REDO_LOG`).
const CRASH_UNSAFE: u32 = 1 << 1;

/// In a block of the log, its length, whose highest bit says that the rest is encrypted.
const BLOCK_LENGTH: usize = 4;
const BLOCK_ENCRYPTED: u8 = 1 << 7;

/// Verifies a log of 8.0.30 or later; returns where it ends, and the changes in it.
pub(super) async fn verify_folder(disk: &dyn Files, folder: &Path) -> Result<CleanLog> {
    let redo = folder.join(REDO_FOLDER);
    let entries = disk.entries(&redo).map_err(|error| unreadable(&redo, &error))?;
    let in_use = |path: &PathBuf| path.file_name().and_then(|name| name.to_str()).is_some_and(is_in_use);
    let mut files = Vec::new();
    for path in entries.into_iter().filter(in_use) {
        let file = LogFile::open(disk, &path)?;
        let header = file.read(0, BLOCK).await?;
        if !blocks::is_intact(&header) {
            return Err(not_clean(folder, &format!("the redo log file {} is damaged", path.display())));
        }
        if u32_at(&header, 48) & CRASH_UNSAFE != 0 {
            return Err(not_clean(folder, "the server was stopped while its redo log was disabled"));
        }
        files.push((u64_at(&header, 8), file));
    }
    let mut newest: Option<u64> = None;
    for (_, file) in &files {
        for offset in CHECKPOINTS {
            let block = file.read(offset, BLOCK).await?;
            if blocks::is_intact(&block) {
                newest = newest.max(Some(u64_at(&block, 8)));
            }
        }
    }
    let Some(checkpoint) = newest.filter(|lsn| *lsn > 0) else {
        return Err(not_clean(folder, "its redo log has no checkpoint"));
    };
    // The file that starts last before the checkpoint holds it.
    let holder = files.iter().filter(|(start, _)| *start <= checkpoint).max_by_key(|(start, _)| *start);
    let Some((start, file)) = holder else {
        return Err(not_clean(folder, "its redo log lacks the file with the last checkpoint"));
    };
    let block_at = LOG_START + (checkpoint - start) / BLOCK as u64 * BLOCK as u64;
    verify_readable(folder, file, block_at).await?;
    let end = verify_end(disk, folder, checkpoint, file, block_at).await?;
    files.sort_unstable_by_key(|(start, _)| *start);
    Ok(CleanLog::new(end, changes_before(checkpoint, &files).await?))
}

/// The changes before the checkpoint in files with the LSN that each starts with, in that order.
async fn changes_before(checkpoint: u64, files: &[(u64, LogFile<'_>)]) -> Result<LoggedPages> {
    let mut pages = LoggedPages::default();
    let block = BLOCK as u64;
    let oldest = checkpoint.saturating_sub(READ_BACK) / block * block;
    for (start, file) in files.iter().filter(|(start, _)| *start < checkpoint && start % block == 0) {
        let from = oldest.max(*start);
        let end = checkpoint.next_multiple_of(block).min(start + file.len.saturating_sub(LOG_START));
        if from < end {
            let blocks = file.read(LOG_START + (from - start), (end - from) as usize).await?;
            changes::add_mysql(&blocks, from, checkpoint, &mut pages);
        }
    }
    Ok(pages)
}

/// `#ib_redo17`, but not `#ib_redo17_tmp`.
fn is_in_use(name: &str) -> bool {
    let number = name.strip_prefix("#ib_redo").unwrap_or_default();
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// Verifies a log of before 8.0.30; returns where it ends.
pub(super) async fn verify_files(disk: &dyn Files, format: u32, folder: &Path) -> Result<CleanLog> {
    let first = LogFile::open(disk, &folder.join("ib_logfile0"))?;
    let mut newest: Option<(u64, u64, u64)> = None;
    for offset in CHECKPOINTS {
        let block = first.read(offset, BLOCK).await?;
        if blocks::is_intact(&block) {
            newest = newest.max(Some((u64_at(&block, 0), u64_at(&block, 8), u64_at(&block, 16))));
        }
    }
    let Some((_, checkpoint, offset)) = newest.filter(|(_, lsn, _)| *lsn > 0) else {
        return Err(not_clean(folder, &format!("its redo log (format {format}) has no checkpoint")));
    };
    let number = offset / first.len.max(1);
    let file = match number {
        0 => first,
        1..100 => LogFile::open(disk, &folder.join(format!("ib_logfile{number}")))?,
        _ => return Err(not_clean(folder, "its last checkpoint lies outside of the redo log")),
    };
    let block_at = offset % file.len.max(1) / BLOCK as u64 * BLOCK as u64;
    verify_readable(folder, &file, block_at).await?;
    let end = verify_end(disk, folder, checkpoint, &file, block_at).await?;
    Ok(CleanLog::new(end, LoggedPages::default()))
}

/// The block of the checkpoint, at `block_at` of `file`, may not be encrypted.
async fn verify_readable(folder: &Path, file: &LogFile<'_>, block_at: u64) -> Result<()> {
    let block = file.read(block_at, BLOCK).await?;
    if block.get(BLOCK_LENGTH).is_none_or(|byte| byte & BLOCK_ENCRYPTED == 0) || blocks::is_intact(&block) {
        return Ok(());
    }
    let what = "its redo log is encrypted, so that a clean shutdown cannot be verified; shut the server down after \
                SET GLOBAL innodb_redo_log_encrypt = OFF; --allow-stale reads the files as they are";
    Err(Error::new(ErrorKind::Unsupported, format!("{}: {what}", folder.display())))
}

/// Nothing may follow the checkpoint, whose block lies at `block_at` of `file`. Returns the checkpoint, which is the
/// end.
async fn verify_end(
    disk: &dyn Files,
    folder: &Path,
    checkpoint: u64,
    file: &LogFile<'_>,
    block_at: u64,
) -> Result<Lsn> {
    match blocks::log_after(checkpoint, &file.read(block_at, BLOCK).await?) {
        None => return Err(not_clean(folder, "its redo log is damaged at the last checkpoint")),
        Some(log) if !log.is_empty() => {
            return Err(not_clean(
                folder,
                "the server was not shut down cleanly: its redo log goes on after the last checkpoint",
            ));
        }
        Some(_) => {}
    }
    match flushed_lsn(disk, folder).await? {
        Some(flushed) if flushed != checkpoint => Err(not_clean(
            folder,
            &format!(
                "the server was not shut down cleanly: its files were last flushed at LSN {flushed}, its checkpoint is at {checkpoint}"
            ),
        )),
        _ => Ok(Lsn(checkpoint)),
    }
}

/// The LSN in page 0 of `ibdata1`, if it is there (`innodb_data_file_path` may name it otherwise).
async fn flushed_lsn(disk: &dyn Files, folder: &Path) -> Result<Option<u64>> {
    let path = folder.join("ibdata1");
    if !disk.exists(&path) {
        return Ok(None);
    }
    let page = LogFile::open(disk, &path)?.read(0, header::DATA).await?;
    Ok((page.len() == header::DATA).then(|| u64_at(&page, header::FLUSH_LSN)))
}

#[cfg(test)]
mod tests {
    use super::super::blocks::tests::{block, seal};
    use std::fs;

    use super::*;
    use crate::HostFiles;

    fn verify_folder(folder: &Path) -> Result<Lsn> {
        futures::executor::block_on(super::verify_folder(&HostFiles, folder)).map(|log| log.lsn)
    }

    const START: u64 = 8192;
    const CHECKPOINT: u64 = START + 512 + 100;

    fn file_header(start: u64, flags: u32, checkpoints: [u64; 2]) -> Vec<u8> {
        let mut file = vec![0; LOG_START as usize];
        file[3] = 6;
        file[8..16].copy_from_slice(&start.to_be_bytes());
        file[48..52].copy_from_slice(&flags.to_be_bytes());
        seal(&mut file[..512]);
        for (at, lsn) in [512, 1536].into_iter().zip(checkpoints) {
            file[at + 8..at + 16].copy_from_slice(&lsn.to_be_bytes());
            seal(&mut file[at..at + 512]);
        }
        file
    }

    /// A data directory whose log ends at `end` of the checkpoint's block.
    fn directory(end: u16, flags: u32, flushed: u64) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join(REDO_FOLDER)).unwrap();
        let mut file = file_header(START, flags, [CHECKPOINT - 300, CHECKPOINT]);
        file.extend(block(START, 512));
        file.extend(block(START + 512, end));
        file.extend([0; 512]);
        fs::write(folder.path().join(REDO_FOLDER).join("#ib_redo2"), file).unwrap();
        let spare = file_header(START + (1 << 20), 0, [0, START + (1 << 20)]);
        fs::write(folder.path().join(REDO_FOLDER).join("#ib_redo3_tmp"), spare).unwrap();
        let mut page = vec![0; 4096];
        page[26..34].copy_from_slice(&flushed.to_be_bytes());
        fs::write(folder.path().join("ibdata1"), page).unwrap();
        folder
    }

    #[test]
    fn a_log_that_ends_at_its_checkpoint_is_clean() {
        assert_eq!(verify_folder(directory(100, 0, CHECKPOINT).path()).unwrap(), Lsn(CHECKPOINT));
    }

    #[test]
    fn anything_after_the_checkpoint_an_older_flush_or_a_disabled_log_is_not() {
        for folder in [
            directory(101, 0, CHECKPOINT),
            directory(100, 0, CHECKPOINT - 1),
            directory(100, CRASH_UNSAFE, CHECKPOINT),
        ] {
            assert_eq!(verify_folder(folder.path()).unwrap_err().kind(), ErrorKind::NotClean);
        }
    }

    #[test]
    fn a_damaged_log_is_not_clean() {
        for offset in [5, LOG_START as usize + 512 + 50] {
            let folder = directory(100, 0, CHECKPOINT);
            let path = folder.path().join(REDO_FOLDER).join("#ib_redo2");
            let mut file = fs::read(&path).unwrap();
            file[offset] ^= 1;
            fs::write(&path, file).unwrap();
            assert_eq!(
                verify_folder(folder.path()).unwrap_err().kind(),
                ErrorKind::NotClean,
                "offset {offset}"
            );
        }
    }

    #[test]
    fn an_encrypted_log_is_told_from_a_damaged_one() {
        let folder = directory(100, 0, CHECKPOINT);
        let path = folder.path().join(REDO_FOLDER).join("#ib_redo2");
        let mut file = fs::read(&path).unwrap();
        let block = LOG_START as usize + 512;
        file[block + BLOCK_LENGTH] |= BLOCK_ENCRYPTED;
        file[block + 12..block + 512].fill(0x5e);
        fs::write(&path, file).unwrap();
        let error = verify_folder(folder.path()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("innodb_redo_log_encrypt = OFF"), "{error}");
    }

    #[test]
    fn spares_are_told_from_files_in_use() {
        assert!(is_in_use("#ib_redo17"));
        for name in ["#ib_redo17_tmp", "#ib_redo", "ib_redo1", "#ib_redo1x"] {
            assert!(!is_in_use(name), "{name}");
        }
    }
}
