//! What the redo log beside some files says about the age of their pages.
//!
//! After a clean shutdown all changes are in the files: no page is newer than the end of the log ([`LogEnd`]), and none
//! is older than the last of its changes that the log still has ([`LoggedPages`]). A page that is newer was copied
//! later than the log, from a running server; one that is older was copied earlier, or comes from an older copy.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{Tablespace, fault_in};
use crate::page::codec::{PageCodec, PageFault};
use crate::page::header::{self, u64_at};
use crate::{Lsn, PageNo, Result, SpaceId};

/// Pages whose age is checked when a file is opened: those that the redo log has the last changes of.
const LAST_CHANGES: usize = 8;

/// The end of the redo log of one data directory, and the changes that it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogEnd {
    /// The end, which no page of its files may be newer than.
    pub(crate) lsn: Lsn,
    /// Whether pages of another time are read all the same (`--allow-stale`), with a warning for each file.
    pub(crate) accept_stale: bool,
    /// Changes before the end.
    pub(crate) pages: Arc<LoggedPages>,
}

/// Pages of one tablespace with the LSN at which the log's last change of each begins. The LSN of a page is where its
/// last change ends, so that it is greater.
pub(crate) type PageLsns = HashMap<PageNo, Lsn>;

/// The pages that a log has changes of. MySQL's log shows only some of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LoggedPages {
    spaces: HashMap<SpaceId, Arc<PageLsns>>,
}

impl LoggedPages {
    /// The pages of a tablespace, if there are any.
    pub(crate) fn of(&self, space: SpaceId) -> Option<&Arc<PageLsns>> {
        self.spaces.get(&space).filter(|pages| !pages.is_empty())
    }

    /// Notes a change that begins at `lsn`; changes come in the order of the log.
    pub(crate) fn changed(&mut self, space: SpaceId, page: PageNo, lsn: Lsn) {
        Arc::make_mut(self.spaces.entry(space).or_default()).insert(page, lsn);
    }

    /// Notes that the file of a tablespace was deleted, or begun anew: what is there now may have come from elsewhere,
    /// by IMPORT TABLESPACE, which writes pages without an LSN.
    pub(crate) fn replaced(&mut self, space: SpaceId) {
        self.spaces.remove(&space);
    }

    /// Notes that a page was given back: the server need not have written it any more.
    pub(crate) fn freed(&mut self, space: SpaceId, page: PageNo) {
        if let Some(pages) = self.spaces.get_mut(&space) {
            Arc::make_mut(pages).remove(&page);
        }
    }
}

/// Whether a page has the last of its changes that the redo log has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Age {
    Current,
    /// It was changed last at this LSN.
    Older(Lsn),
    /// It is all zeros or was cut off, as a page is that was not written yet.
    Lost,
    Damaged,
}

/// The `count` pages that were changed last.
pub(crate) fn changed_last(pages: &PageLsns, count: usize) -> Vec<(PageNo, Lsn)> {
    let mut last: Vec<(PageNo, Lsn)> = pages.iter().map(|(page, lsn)| (*page, *lsn)).collect();
    last.sort_unstable_by_key(|(page, lsn)| (std::cmp::Reverse(*lsn), *page));
    last.truncate(count);
    last
}

impl Tablespace {
    /// Refuses a file that lacks one of the last changes that the redo log has of it, or warns of it if stale data is
    /// accepted. A page that is lost says nothing unless all of them are: it is an error when it is read.
    pub(super) async fn check_last_changes(&self) -> Result<()> {
        let Some(log) = &self.environment.log_end else { return Ok(()) };
        let Some(logged) = log.pages.of(self.id()) else { return Ok(()) };
        let codec = PageCodec { logged: None, log_end: None, ..self.codec.clone() };
        let mut last = changed_last(logged, LAST_CHANGES);
        // Page 0 has a part in most changes.
        if let Some(lsn) = logged.get(&PageNo(0)).filter(|_| last.iter().all(|(no, _)| no.0 != 0)) {
            last.push((PageNo(0), *lsn));
        }
        let ages = last.iter().map(|(no, logged)| self.age_on_disk(&codec, *no, *logged));
        let ages = futures::future::try_join_all(ages).await?;
        let is_damaged = ages.contains(&Age::Current) || ages.contains(&Age::Damaged);
        let stale = last.iter().zip(&ages).find_map(|(page, age)| match age {
            Age::Older(lsn) => Some((*page, *lsn)),
            Age::Lost if !is_damaged => Some((*page, Lsn(0))),
            _ => None,
        });
        let Some(((no, logged), lsn)) = stale else { return Ok(()) };
        let error = fault_in(&self.path, self.id(), no, &PageFault::Older { lsn, logged });
        if !log.accept_stale {
            return Err(error);
        }
        tanada_io::warn(&format!("stale data accepted: {error}"));
        Ok(())
    }

    /// Whether page `no` has its last change, which begins at `logged`.
    async fn age_on_disk(&self, codec: &PageCodec, no: PageNo, logged: Lsn) -> Result<Age> {
        if no.0 >= self.pages {
            // The files of tables never shrink, those of undo logs and of the system do.
            let is_table = self.path.extension().is_some_and(|extension| extension == "ibd");
            return Ok(match is_table {
                true if no.0 < self.header.size_pages => Age::Lost,
                true => Age::Older(Lsn(0)),
                false => Age::Current,
            });
        }
        let images = self.read_unadmitted(no).await?;
        let image = images.buffer.get(images.start..).unwrap_or_default();
        let Some(image) = image.get(..self.page_size().bytes()) else { return Ok(Age::Lost) };
        let lsn = Lsn(u64_at(image, header::LSN));
        Ok(match codec.decode(image, no) {
            Err(_) => Age::Damaged,
            Ok(_) if image.iter().all(|byte| *byte == 0) => Age::Lost,
            Ok(_) if lsn < logged => Age::Older(lsn),
            Ok(_) => Age::Current,
        })
    }

    /// Warns, once for the file, of a page that is newer than the end of the redo log and is to be read all the same.
    pub(super) fn note_age(&self, image: &[u8], no: PageNo) {
        let log = self.environment.log_end.as_ref().filter(|log| log.accept_stale);
        let Some(end) = log.map(|log| log.lsn) else { return };
        let lsn = Lsn(u64_at(image, header::LSN));
        if lsn > end && !self.has_newer.swap(true, Ordering::Relaxed) {
            tanada_io::warn(&format!(
                "{}: stale data accepted: page {no} was changed at LSN {lsn}, but the redo log of its directory ends at LSN {end}",
                self.path.display()
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_was_freed_is_not_expected_to_be_written() {
        let mut log = LoggedPages::default();
        let (space, page) = (SpaceId(5), PageNo(3));
        log.changed(space, page, Lsn(100));
        log.changed(space, PageNo(4), Lsn(200));
        log.changed(space, page, Lsn(300));
        let pages = log.of(space).unwrap();
        assert_eq!(changed_last(pages, 1), [(page, Lsn(300))]);
        log.freed(space, page);
        log.freed(SpaceId(6), page);
        assert_eq!(changed_last(log.of(space).unwrap(), 8), [(PageNo(4), Lsn(200))]);
        assert_eq!(log.of(SpaceId(6)), None);
    }
}
