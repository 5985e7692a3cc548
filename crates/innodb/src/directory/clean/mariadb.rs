//! MariaDB's redo log, `ib_logfile0`.
//!
//! After a clean shutdown the last checkpoint is followed by a FILE_CHECKPOINT record, which repeats its LSN, maybe by
//! more of these, and by nothing else.
//!
//! Since 10.8 (format "Phys", `log0log.h`): LSN of the first byte at 8; how it is encrypted, if it is, at 48 (newer
//! servers have a format of its own for that); checkpoints at 4096 and 8192 (LSN, LSN where the log goes on, zeros,
//! crc32c at 60); from 12288 on a ring of mini-transactions. One is a row of records, a byte that says in which turn of
//! the ring it was written (0 or 1, first 1), and the crc32c of the records. A record's first byte has its length in
//! the low four bits (0: a number in one to five bytes follows); records are never 0 or 1. 11.x is the same. 10.5 to
//! 10.7 (format "PHYS"): one file, checkpoints and log in [blocks], as in MySQL before 8.0.30; the same records, with a
//! 0 at the end of a mini-transaction.

use std::path::Path;

use super::blocks::{self, BLOCK};
use super::{CleanLog, LogFile, READ_BACK, changes, not_clean};
use crate::page::header::{u32_at, u64_at};
use crate::space::LoggedPages;
use crate::{Error, ErrorKind, Lsn, Result};

const FORMAT_10_8: u32 = 0x5068_7973;
const FORMAT_10_5: u32 = 0x5048_5953;
/// The same, encrypted.
const ENCRYPTED: [u32; 2] = [0xf09f_979d, FORMAT_10_5 | 1 << 31];

/// In the header of a log of 10.8, where it says how it is encrypted.
const ENCRYPTION: usize = 48;

const FILE_CHECKPOINT: u8 = 0xfa;
/// Type and length, two zeros for space and page, the LSN.
const FILE_CHECKPOINT_BYTES: usize = 11;

/// Verifies the log `file` of `folder`; returns where it ends, and the changes of a log of 10.8 or later.
pub(super) async fn verify(format: u32, file: &LogFile<'_>, folder: &Path) -> Result<CleanLog> {
    let encrypted_by_header = format == FORMAT_10_8 && u32_at(&file.read(0, BLOCK).await?, ENCRYPTION) != 0;
    if encrypted_by_header || ENCRYPTED.contains(&format) {
        let what = "its redo log is encrypted, so that a clean shutdown cannot be verified; start the server with \
                    innodb_encrypt_log = OFF and shut it down; --allow-stale reads the files as they are";
        return Err(Error::new(ErrorKind::Unsupported, format!("{}: {what}", folder.display())));
    }
    let ends = match format {
        FORMAT_10_8 => match Ring::open(file).await? {
            Some(ring) => Some(match ring.end().await? {
                Some(end) => Some(CleanLog::new(end, ring.changes().await?)),
                None => None,
            }),
            None => None,
        },
        FORMAT_10_5 => {
            end_in_blocks(file).await?.map(|end| Some(CleanLog::new(end?, LoggedPages::default())))
        }
        _ => {
            return Err(not_clean(
                folder,
                &format!("the format of its redo log ({format:#010x}) is not known"),
            ));
        }
    };
    match ends {
        Some(Some(end)) => Ok(end),
        Some(None) => Err(not_clean(
            folder,
            "the server was not shut down cleanly: its redo log goes on after the last checkpoint",
        )),
        None => Err(not_clean(folder, "its redo log is damaged or has no checkpoint")),
    }
}

/// Whether `log`, which starts at the checkpoint `lsn`, starts with the record of it.
fn starts_with_checkpoint(log: &[u8], lsn: u64) -> bool {
    log.len() >= FILE_CHECKPOINT_BYTES && log[..3] == [FILE_CHECKPOINT, 0, 0] && u64_at(log, 3) == lsn
}

/// The log of 10.8 and later.
struct Ring<'a> {
    file: &'a LogFile<'a>,
    first_lsn: u64,
    checkpoint: u64,
    /// Where the log goes on after the checkpoint; the same, if no file was changed since.
    end: u64,
}

/// Where the ring starts.
const RING: u64 = 12288;
/// Behind the records of a mini-transaction: the turn and the checksum.
const MINI_TRANSACTION_END: usize = 5;

impl Ring<'_> {
    /// `None` if the header or both checkpoints are damaged.
    async fn open<'f>(file: &'f LogFile<'f>) -> Result<Option<Ring<'f>>> {
        let header = file.read(0, BLOCK).await?;
        if !blocks::is_intact(&header) || file.len <= RING {
            return Ok(None);
        }
        let first_lsn = u64_at(&header, 8);
        let mut newest = None;
        for offset in [4096, 8192] {
            let block = file.read(offset, 64).await?;
            if block.len() == 64 && crc32c::crc32c(&block[..60]) == u32_at(&block, 60) {
                newest = newest.max(Some((u64_at(&block, 0), u64_at(&block, 8))));
            }
        }
        let newest = newest.filter(|(checkpoint, end)| *checkpoint >= first_lsn && *end >= *checkpoint);
        Ok(newest.map(|(checkpoint, end)| Ring { file, first_lsn, checkpoint, end }))
    }

    fn capacity(&self) -> u64 {
        self.file.len - RING
    }

    /// Where the log ends, if that is at its last checkpoint.
    async fn end(&self) -> Result<Option<Lsn>> {
        /// Mini-transactions are far shorter than this.
        const LONGEST: usize = 4 << 20;
        if self.end != self.checkpoint {
            return Ok(None);
        }
        let log = self.read(self.checkpoint, LONGEST).await?;
        let mut at = 0;
        while let Some(length) = self.mini_transaction(&log[at..], self.checkpoint + at as u64) {
            if !starts_with_checkpoint(&log[at..], self.checkpoint) || length != FILE_CHECKPOINT_BYTES + 5 {
                return Ok(None);
            }
            at += length;
        }
        Ok((at > 0).then(|| Lsn(self.checkpoint + at as u64)))
    }

    /// The changes before the checkpoint, as far back as the ring has them, and no further than [`READ_BACK`].
    async fn changes(&self) -> Result<LoggedPages> {
        /// What was written after the checkpoint is over the oldest.
        const OVERWRITTEN: u64 = 64 << 10;
        /// Tries to find where a mini-transaction begins.
        const TRIES: usize = 64 << 10;
        let mut pages = LoggedPages::default();
        let back = self.capacity().saturating_sub(OVERWRITTEN).min(READ_BACK);
        let oldest = self.checkpoint.saturating_sub(back).max(self.first_lsn);
        let log = self.read(oldest, (self.checkpoint - oldest) as usize).await?;
        let (mut at, mut tries) = (0, 0);
        while at < log.len() && tries < TRIES {
            let lsn = oldest + at as u64;
            match self.mini_transaction(&log[at..], lsn) {
                Some(length) => {
                    let records = &log[at..at + length - MINI_TRANSACTION_END];
                    changes::add_mariadb(records, Lsn(lsn), record_bytes, &mut pages);
                    at += length;
                }
                None => {
                    // Pages that were freed in between would be taken for stale.
                    pages = LoggedPages::default();
                    at += 1;
                    tries += 1;
                }
            }
        }
        Ok(if at < log.len() { LoggedPages::default() } else { pages })
    }

    /// Up to `len` bytes from `lsn` on, not more than the ring holds.
    async fn read(&self, lsn: u64, len: usize) -> Result<Vec<u8>> {
        let len = len.min(usize::try_from(self.capacity()).unwrap_or(usize::MAX));
        let at = (lsn - self.first_lsn) % self.capacity();
        let mut bytes = self.file.read(RING + at, len).await?;
        let rest = len - bytes.len();
        bytes.extend(self.file.read(RING, rest).await?);
        Ok(bytes)
    }

    /// The length of the mini-transaction that `log`, which starts at `lsn`, starts with; `None` if the log ends there.
    fn mini_transaction(&self, log: &[u8], lsn: u64) -> Option<usize> {
        let mut at = 0;
        while *log.get(at)? > 1 {
            at = at.checked_add(record_bytes(&log[at..])?)?;
        }
        let records = log.get(..at).filter(|records| !records.is_empty())?;
        let turn = (lsn + at as u64 - self.first_lsn) / self.capacity();
        let is_of_this_turn = u64::from(log[at]) == 1 - turn % 2;
        let checksum = log.get(at + 1..at + 5)?;
        (is_of_this_turn && crc32c::crc32c(records) == u32_at(checksum, 0)).then_some(at + 5)
    }
}

/// The length of the record that `log` starts with.
fn record_bytes(log: &[u8]) -> Option<usize> {
    let short = usize::from(log.first()? & 15);
    if short != 0 {
        return Some(1 + short);
    }
    let (length, _) = changes::number(log.get(1..))?;
    usize::try_from(length).ok()?.checked_add(16)
}

/// Where a log of 10.5 to 10.7 ends, if that is at its last checkpoint. `None` if the log is damaged.
async fn end_in_blocks(file: &LogFile<'_>) -> Result<Option<Option<Lsn>>> {
    let mut newest = None;
    for offset in [512, 1536] {
        let block = file.read(offset, BLOCK).await?;
        if blocks::is_intact(&block) {
            newest = newest.max(Some((u64_at(&block, 0), u64_at(&block, 8), u64_at(&block, 16))));
        }
    }
    let Some((_, checkpoint, offset)) = newest.filter(|(_, lsn, _)| *lsn > 0) else { return Ok(None) };
    // The ring starts behind the file's header.
    const START: u64 = 2048;
    let aligned = offset / BLOCK as u64 * BLOCK as u64;
    let mut read = file.read(aligned, 4 * BLOCK).await?;
    read.extend(file.read(START, 4 * BLOCK - read.len()).await?);
    let Some(log) = blocks::log_after(checkpoint, &read) else { return Ok(None) };
    let is_checkpoint = |records: &[u8]| {
        records.len() == FILE_CHECKPOINT_BYTES + 1 && starts_with_checkpoint(records, checkpoint)
    };
    let ends = log.chunks(FILE_CHECKPOINT_BYTES + 1).all(is_checkpoint);
    Ok(Some(ends.then(|| Lsn(blocks::lsn_after(checkpoint, log.len())))))
}

#[cfg(test)]
mod tests {
    use super::super::blocks::tests::seal;
    use super::*;
    use crate::HostFiles;

    const FIRST: u64 = 12288;
    const CAPACITY: u64 = 1024;

    fn mini_transaction(records: &[u8], turn: u8) -> Vec<u8> {
        [records, &[turn], &crc32c::crc32c(records).to_be_bytes()].concat()
    }

    fn checkpoint_record(lsn: u64) -> Vec<u8> {
        [&[FILE_CHECKPOINT, 0, 0][..], &lsn.to_be_bytes()].concat()
    }

    /// Where a log of 10.8 with a checkpoint at `lsn`, followed by `log`, ends, if it is clean.
    fn ring(lsn: u64, log: &[u8]) -> Result<Lsn> {
        let mut file = vec![0; (RING + CAPACITY) as usize];
        file[..4].copy_from_slice(&FORMAT_10_8.to_be_bytes());
        file[8..16].copy_from_slice(&FIRST.to_be_bytes());
        seal(&mut file[..512]);
        for (at, lsn) in [(4096, lsn), (8192, FIRST)] {
            file[at..at + 8].copy_from_slice(&lsn.to_be_bytes());
            file[at + 8..at + 16].copy_from_slice(&lsn.to_be_bytes());
            let crc = crc32c::crc32c(&file[at..at + 60]).to_be_bytes();
            file[at + 60..at + 64].copy_from_slice(&crc);
        }
        for (i, byte) in log.iter().enumerate() {
            file[(RING + (lsn - FIRST + i as u64) % CAPACITY) as usize] = *byte;
        }
        check(FORMAT_10_8, &file)
    }

    fn check(format: u32, bytes: &[u8]) -> Result<Lsn> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ib_logfile0");
        std::fs::write(&path, bytes).unwrap();
        let file = LogFile::open(&HostFiles, &path).unwrap();
        futures::executor::block_on(verify(format, &file, folder.path())).map(|log| log.lsn)
    }

    fn assert_not_clean(result: Result<Lsn>) {
        assert_eq!(result.unwrap_err().kind(), ErrorKind::NotClean);
    }

    #[test]
    fn a_ring_that_ends_with_checkpoints_is_clean_wherever_it_wraps() {
        for lsn in [
            FIRST,
            FIRST + 1000,
            FIRST + CAPACITY - 16,
            FIRST + CAPACITY - 14,
            FIRST + CAPACITY - 12,
            FIRST + CAPACITY,
        ] {
            // The byte after the records decides about the turn.
            let turn = if lsn + 11 < FIRST + CAPACITY { 1 } else { 0 };
            let last = mini_transaction(&checkpoint_record(lsn), turn);
            assert_eq!(ring(lsn, &last).unwrap(), Lsn(lsn + 16));
            assert_not_clean(ring(lsn, &mini_transaction(&checkpoint_record(lsn), 1 - turn)));
            let next_turn = if lsn + 16 + 11 < FIRST + CAPACITY { 1 } else { 0 };
            let twice = [last.clone(), mini_transaction(&checkpoint_record(lsn), next_turn)].concat();
            assert_eq!(ring(lsn, &twice).unwrap(), Lsn(lsn + 32));
            let write = [0x35, 1, 2, 3, 4, 5];
            let next_turn = if lsn + 16 + 6 < FIRST + CAPACITY { 1 } else { 0 };
            assert_not_clean(ring(lsn, &[last.clone(), mini_transaction(&write, next_turn)].concat()));
            // What was left there in the last turn does not count, nor what was torn.
            ring(lsn, &[last.clone(), mini_transaction(&write, 1 - next_turn)].concat()).unwrap();
            let mut torn = mini_transaction(&write, next_turn);
            torn[3] ^= 1;
            ring(lsn, &[last, torn].concat()).unwrap();
        }
    }

    #[test]
    fn no_checkpoint_record_or_another_is_not_clean() {
        assert_not_clean(ring(FIRST + 100, &[]));
        assert_not_clean(ring(FIRST + 100, &mini_transaction(&checkpoint_record(FIRST), 1)));
        assert_not_clean(check(FORMAT_10_8, &[0; 20000]));
        assert_not_clean(check(FORMAT_10_8, &[]));
        assert_not_clean(check(104, &[0; 4096]));
    }

    #[test]
    fn an_encrypted_log_is_said_to_be_one() {
        for format in ENCRYPTED {
            assert_eq!(check(format, &[0; 4096]).unwrap_err().kind(), ErrorKind::Unsupported);
        }
        let mut header = [0; 4096];
        header[ENCRYPTION + 3] = 1;
        assert_eq!(check(FORMAT_10_8, &header).unwrap_err().kind(), ErrorKind::Unsupported);
    }

    #[test]
    fn record_lengths_in_every_form() {
        for (record, length) in [
            (&[0x35, 9][..], Some(6)),
            (&[0x30, 0], Some(16)),
            (&[0x30, 0x7f], Some(143)),
            (&[0x30, 0x80, 0], Some(144)),
            (&[0x30, 0xc0, 0, 0], Some(0x4080 + 16)),
            (&[0x30, 0xe0, 0, 0, 1], Some(0x20_4081 + 16)),
            (&[0x30, 0xf0, 0, 0, 0, 0], Some(0x1020_4080 + 16)),
            (&[0x30, 0xff, 0, 0, 0, 0], None),
            (&[0x30, 0xe0, 0], None),
            (&[0x30], None),
            (&[], None),
        ] {
            assert_eq!(record_bytes(record), length, "{record:x?}");
        }
    }

    /// Whether a log of 10.5 whose first block after the checkpoint holds `records` is clean.
    fn block_log(records: &[u8]) -> Result<Lsn> {
        let lsn = 8192 + 100u64;
        let mut file = vec![0; 8192];
        file[512..520].copy_from_slice(&3u64.to_be_bytes());
        file[520..528].copy_from_slice(&lsn.to_be_bytes());
        file[528..536].copy_from_slice(&(4096 + 100u64).to_be_bytes());
        seal(&mut file[512..1024]);
        let mut block = super::super::blocks::tests::block(8192, 100 + records.len() as u16);
        block[100..100 + records.len()].copy_from_slice(records);
        seal(&mut block);
        file[4096..4608].copy_from_slice(&block);
        check(FORMAT_10_5, &file)
    }

    #[test]
    fn a_log_in_blocks_that_ends_with_checkpoints_is_clean() {
        let checkpoint = [&checkpoint_record(8192 + 100)[..], &[0]].concat();
        for times in 0..3 {
            let end = block_log(&checkpoint.repeat(times)).unwrap();
            assert_eq!(end, Lsn(8192 + 100 + 12 * times as u64));
        }
        assert_not_clean(block_log(&[&checkpoint[..], &[0x35, 1, 2, 3, 4, 5, 0]].concat()));
        assert_not_clean(block_log(&checkpoint[..11]));
    }
}
