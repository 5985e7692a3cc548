//! Whether a transaction is left unfinished: its changes are in the tables, but may yet be taken back.
//!
//! A clean shutdown leaves none, apart from XA transactions that are prepared. A prepared backup may hold some (they
//! are rolled back when a server starts on it), and so may the files of a server that crashed while it was idle.
//!
//! 1. Page 5 of the system tablespace lists 128 rollback segments as space and page; MySQL's undo tablespaces list
//!    theirs on page 3 (`trx0sys.h`, `fsp0fsp.h`).
//! 2. A rollback segment lists undo logs as pages of its space, one slot for each 16 bytes of page size, from 72
//!    (`trx0rseg.h`).
//! 3. The first page of an undo log has its state at 56: 1 is that of a running transaction, 5 and above of a prepared
//!    one (`trx0undo.h`).

use std::path::{Path, PathBuf};

use super::super::mysql_dictionary::DICTIONARY;
use super::{CleanLog, LogFile};
use crate::files::Files;
use crate::page::codec::PageCodec;
use crate::page::header::{self, link_at, u16_at, u32_at};
use crate::space::header::{PREFIX_BYTES, SpaceHeader};
use crate::{Error, ErrorKind, PageNo, Result, Server, SpaceId};

const SYSTEM_SPACE: SpaceId = SpaceId(0);
const TRX_SYS_PAGE: PageNo = PageNo(5);
const TRX_SYS_TYPE: u16 = 7;
const RSEG_ARRAY_PAGE: PageNo = PageNo(3);
const RSEG_ARRAY_TYPE: u16 = 21;
const UNDO_LOG_TYPE: u16 = 2;

/// Where the lists of rollback segments start on either page.
const RSEGS: usize = 56;
const RSEG_COUNT: usize = 128;
const UNDO_SLOTS: usize = 72;
const UNDO_STATE: usize = 56;
const STATE_ACTIVE: u16 = 1;
const STATE_PREPARED: u16 = 5;

/// The numbers of undo logs of running and of prepared transactions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Unfinished {
    pub(super) active: u32,
    pub(super) prepared: u32,
    /// What could not be asked because it lies elsewhere.
    pub(super) elsewhere: Option<String>,
}

/// Counts the unfinished transactions in the system tablespace and the undo tablespaces of `folder`, as far as they lie
/// there.
///
/// # Errors
/// If a page on the way is damaged, encrypted, or of another time than the redo log.
pub(super) async fn unfinished(
    disk: &dyn Files,
    folder: &Path,
    named: Option<&[PathBuf]>,
    log: Option<&CleanLog>,
) -> Result<Unfinished> {
    let mut paths = undo_files(disk, folder)?;
    paths.extend(named.into_iter().flatten().filter(|path| disk.is_file(path)).cloned());
    paths.sort_unstable();
    paths.dedup();
    let mut spaces = Vec::new();
    for path in &paths {
        spaces.push(UndoSpace::open(disk, path, log).await?);
    }
    let mut count = Unfinished { elsewhere: lacking(disk, folder, named, &spaces), ..Unfinished::default() };
    for space in &spaces {
        for (rseg_space, rseg) in space.rollback_segments().await? {
            match spaces.iter().find(|space| space.id() == rseg_space) {
                Some(owner) => owner.count_unfinished(rseg, &mut count).await?,
                None => {
                    let what =
                        format!("undo tablespace {rseg_space} is not there (see innodb_undo_directory)");
                    count.elsewhere.get_or_insert(what);
                }
            }
        }
    }
    Ok(count)
}

/// What the server had and was not found. Undo tablespaces of MySQL that were left out of a copy are a lack even after
/// a clean shutdown, which leaves XA transactions that are prepared: a server that starts on the copy makes new undo
/// tablespaces and takes their rows for committed.
fn lacking(
    disk: &dyn Files,
    folder: &Path,
    named: Option<&[PathBuf]>,
    spaces: &[UndoSpace<'_>],
) -> Option<String> {
    if !spaces.iter().any(|space| space.id() == SYSTEM_SPACE) {
        return Some("the system tablespace is not there (see innodb_data_home_dir)".to_owned());
    }
    if let Some(named) = named {
        let mut lost: Vec<String> =
            named.iter().filter(|path| !disk.is_file(path)).map(|path| path.display().to_string()).collect();
        lost.sort_unstable();
        let (tablespace, is) = if lost.len() == 1 { ("tablespace", "is") } else { ("tablespaces", "are") };
        return (!lost.is_empty())
            .then(|| format!("the undo {tablespace} {} {is} not there", lost.join(", ")));
    }
    // MySQL has two undo tablespaces at least.
    let is_mysql = disk.exists(&folder.join(DICTIONARY));
    let lacks = is_mysql && spaces.iter().all(|space| space.id() == SYSTEM_SPACE);
    lacks.then(|| "the undo tablespaces are not there (see innodb_undo_directory)".to_owned())
}

/// `ibdata1` and the undo tablespaces in `folder`.
fn undo_files(disk: &dyn Files, folder: &Path) -> Result<Vec<PathBuf>> {
    let mut entries = disk.entries(folder).map_err(|error| super::unreadable(folder, &error))?;
    let is_system = |path: &Path| path.file_name().is_some_and(|name| name == "ibdata1");
    entries.retain(|path| (is_system(path) || is_undo_file(path)) && disk.is_file(path));
    Ok(entries)
}

/// Whether a file is called as undo tablespaces are: `undo001` by MariaDB, `undo_001` and `*.ibu` by MySQL.
pub(in super::super) fn is_undo_file(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let number = name.strip_prefix("undo").map(|rest| rest.strip_prefix('_').unwrap_or(rest));
    let numbered =
        number.is_some_and(|number| number.len() == 3 && number.bytes().all(|byte| byte.is_ascii_digit()));
    name.ends_with(".ibu") || numbered
}

/// A tablespace with rollback segments, read page by page.
struct UndoSpace<'a> {
    file: LogFile<'a>,
    codec: PageCodec,
    server: Server,
}

impl UndoSpace<'_> {
    async fn open<'a>(disk: &'a dyn Files, path: &Path, log: Option<&CleanLog>) -> Result<UndoSpace<'a>> {
        let file = LogFile::open(disk, path)?;
        let header = SpaceHeader::parse(&file.read(0, PREFIX_BYTES).await?, path)?;
        let codec = PageCodec {
            format: header.format,
            page_size: header.page_size,
            space: header.space,
            verify: true,
            log_end: log.map(|log| log.lsn),
            logged: log.and_then(|log| log.pages.of(header.space).cloned()),
        };
        Ok(UndoSpace { file, codec, server: header.server })
    }

    fn id(&self) -> SpaceId {
        self.codec.space
    }

    async fn page(&self, no: PageNo) -> Result<Vec<u8>> {
        let len = self.codec.page_size.bytes();
        let image = self.file.read(u64::from(no.0) * len as u64, len).await?;
        let place = |kind, what: &dyn std::fmt::Display| {
            Error::new(kind, format!("{}: space {}, page {no}: {what}", self.file.path.display(), self.id()))
        };
        let decoded = self.codec.decode(&image, no).map_err(|fault| place(fault.kind(), &fault))?;
        Ok(decoded.unwrap_or(image))
    }

    async fn rollback_segments(&self) -> Result<Vec<(SpaceId, PageNo)>> {
        let (list, list_type, entry) = match self.id() {
            SYSTEM_SPACE => (TRX_SYS_PAGE, TRX_SYS_TYPE, 8),
            _ => (RSEG_ARRAY_PAGE, RSEG_ARRAY_TYPE, 4),
        };
        let page = self.page(list).await?;
        let found = u16_at(&page, header::TYPE);
        if found != list_type {
            // MariaDB's undo tablespaces have no list of their own.
            if self.server == Server::MariaDb && self.id() != SYSTEM_SPACE {
                return Ok(Vec::new());
            }
            let what = format!("page {list} has type {found} and no list of rollback segments");
            let what = format!("{}: {what}", self.file.path.display());
            return Err(Error::new(ErrorKind::Corrupt, what));
        }
        let segment = |at: usize| {
            let space = if entry == 8 { SpaceId(u32_at(&page, at)) } else { self.id() };
            Some((space, link_at(&page, at + entry - 4)?))
        };
        Ok((0..RSEG_COUNT).filter_map(|i| segment(RSEGS + i * entry)).collect())
    }

    async fn count_unfinished(&self, rseg: PageNo, count: &mut Unfinished) -> Result<()> {
        let page = self.page(rseg).await?;
        let slots = page.len() / 16;
        for undo in (0..slots).filter_map(|slot| link_at(&page, UNDO_SLOTS + slot * 4)) {
            let log = self.page(undo).await?;
            if u16_at(&log, header::TYPE) != UNDO_LOG_TYPE {
                let what = format!("{}: page {undo} is no undo log", self.file.path.display());
                return Err(Error::new(ErrorKind::Corrupt, what));
            }
            match u16_at(&log, UNDO_STATE) {
                STATE_ACTIVE => count.active += 1,
                STATE_PREPARED.. => count.prepared += 1,
                _ => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HostFiles;
    use crate::page::checksum::seal;

    const PAGE: usize = 4096;

    fn put(page: &mut [u8], at: usize, value: u32) {
        page[at..at + 4].copy_from_slice(&value.to_be_bytes());
    }

    fn page(space: u32, no: u32, page_type: u16, fill: impl FnOnce(&mut [u8])) -> Vec<u8> {
        let mut page = vec![0; PAGE];
        put(&mut page, header::NUMBER, no);
        put(&mut page, header::SPACE, space);
        page[header::TYPE..header::TYPE + 2].copy_from_slice(&page_type.to_be_bytes());
        fill(&mut page);
        seal::crc32(&mut page);
        page
    }

    /// A space of eight pages: `list` on its page, a rollback segment on page 6, an undo log in `state` on page 7.
    fn space(id: u32, list: u32, list_type: u16, fill: impl FnOnce(&mut [u8]), state: u16) -> Vec<u8> {
        let mut pages = vec![vec![0; PAGE]; 8];
        pages[0] = page(id, 0, 8, |page| {
            put(page, 38, id);
            // MySQL, 4 KiB.
            put(page, 54, 0x40c1);
        });
        pages[list as usize] = page(id, list, list_type, fill);
        pages[6] = page(id, 6, 6, |page| {
            page[UNDO_SLOTS..UNDO_SLOTS + PAGE / 4].fill(0xff);
            put(page, UNDO_SLOTS + 4 * 100, 7);
        });
        pages[7] = page(id, 7, UNDO_LOG_TYPE, |page| page[UNDO_STATE + 1] = state as u8);
        pages.concat()
    }

    const UNDO_SPACE: u32 = 0xffff_ffef;

    /// A system tablespace with a rollback segment of its own, and one in `other`.
    fn system_space(state: u16, other: u32) -> Vec<u8> {
        let list = |page: &mut [u8]| {
            page[RSEGS..RSEGS + 8 * RSEG_COUNT].fill(0xff);
            for (slot, space) in [(3, 0), (4, other)] {
                put(page, RSEGS + 8 * slot, space);
                put(page, RSEGS + 8 * slot + 4, 6);
            }
        };
        space(0, 5, TRX_SYS_TYPE, list, state)
    }

    fn undo_space(state: u16) -> Vec<u8> {
        let list = |page: &mut [u8]| {
            page[RSEGS..RSEGS + 4 * RSEG_COUNT].fill(0xff);
            put(page, RSEGS + 4 * 127, 6);
        };
        space(UNDO_SPACE, 3, RSEG_ARRAY_TYPE, list, state)
    }

    fn count(files: &[(&str, Vec<u8>)]) -> Result<Unfinished> {
        let folder = tempfile::tempdir().unwrap();
        for (name, bytes) in files {
            std::fs::write(folder.path().join(name), bytes).unwrap();
        }
        futures::executor::block_on(unfinished(&HostFiles, folder.path(), None, None))
    }

    #[test]
    fn running_and_prepared_transactions_are_counted_in_all_spaces() {
        for (state, active, prepared) in [(1, 1, 0), (2, 0, 0), (3, 0, 0), (4, 0, 0), (5, 0, 1), (7, 0, 1)] {
            let expected = |times: u32| Unfinished {
                active: times * active,
                prepared: times * prepared,
                elsewhere: None,
            };
            // Both slots are of the same segment here.
            assert_eq!(count(&[("ibdata1", system_space(state, 0))]).unwrap(), expected(2), "state {state}");
            for (name, other, times) in [("undo_001", 0, 1), ("undo002", UNDO_SPACE, 2), ("mine.ibu", 0, 1)] {
                let files = [("ibdata1", system_space(2, other)), (name, undo_space(state))];
                assert_eq!(count(&files).unwrap(), expected(times), "state {state} in {name}");
            }
        }
    }

    #[test]
    fn undo_logs_in_other_directories_are_reported() {
        let sound = || system_space(2, 0);
        for (files, what) in [
            (vec![], "the system tablespace is not there"),
            (vec![("undo_001", undo_space(2))], "the system tablespace is not there"),
            (vec![("undo_001.bak", vec![1; 10]), ("undone", vec![])], "the system tablespace is not there"),
            (vec![("ibdata1", system_space(2, 77))], "undo tablespace 77 is not there"),
            (vec![("ibdata1", sound()), ("mysql.ibd", vec![])], "the undo tablespaces are not there"),
        ] {
            let count = count(&files).unwrap();
            assert!(count.elsewhere.as_deref().unwrap().starts_with(what), "{count:?}");
            assert_eq!((count.active, count.prepared), (0, 0));
        }
        let all = [("ibdata1", sound()), ("mysql.ibd", vec![]), ("undo_001", undo_space(2))];
        assert_eq!(count(&all).unwrap(), Unfinished::default());
    }

    #[test]
    fn undo_tablespaces_that_the_dictionary_names_are_asked_where_they_are() {
        let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(folder.path().join("ibdata1"), system_space(2, 0)).unwrap();
        std::fs::write(folder.path().join("mysql.ibd"), []).unwrap();
        let far = other.path().join("undo_001");
        let count = |named: &[PathBuf]| {
            futures::executor::block_on(unfinished(&HostFiles, folder.path(), Some(named), None)).unwrap()
        };
        // Left out of a copy, or lost where the copy does not reach.
        for path in [&far, &folder.path().join("undo_001")] {
            let lost = count(std::slice::from_ref(path)).elsewhere.unwrap();
            assert!(lost.contains(&path.display().to_string()), "{lost}");
        }
        std::fs::write(&far, undo_space(1)).unwrap();
        assert_eq!(count(&[far]), Unfinished { active: 1, ..Unfinished::default() });
    }

    #[test]
    fn damage_on_the_way_is_an_error() {
        for page in 5..8 {
            let mut bytes = system_space(2, 0);
            bytes[page * PAGE + 1000] ^= 1;
            assert_eq!(count(&[("ibdata1", bytes)]).unwrap_err().kind(), ErrorKind::Corrupt, "page {page}");
        }
        let cut = system_space(2, 0)[..7 * PAGE].to_vec();
        assert_eq!(count(&[("ibdata1", cut)]).unwrap_err().kind(), ErrorKind::Corrupt);
    }

    /// It was a warning, and rows that a server would have taken back were seen.
    #[test]
    fn a_folder_whose_undo_logs_are_damaged_is_refused() {
        let state = |bytes: &[u8]| {
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join("ibdata1"), bytes).unwrap();
            futures::executor::block_on(super::super::refuse_unfinished(
                &HostFiles,
                folder.path(),
                None,
                None,
            ))
        };
        let sound = system_space(2, 0);
        assert_eq!(state(&sound).unwrap(), super::super::CleanState::Verified);
        for at in [header::TYPE, 5 * PAGE + 1000, 6 * PAGE + 1000, 7 * PAGE + UNDO_STATE] {
            let mut damaged = sound.clone();
            damaged[at] ^= 0x55;
            let error = state(&damaged).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotClean, "{at}");
            assert!(
                error.to_string().contains("--allow-stale") && error.to_string().contains("ibdata1"),
                "{error}"
            );
        }
    }
}
