//! Walks the versions of a key file.
//!
//! Within a page a step neither waits nor allocates. From page to page there are two ways: through the cache, for those
//! who read a little; or reading ahead past the cache in large pieces, for those who read everything once.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;

use super::page::{Page, PageAddress, RawEntry, sequence_of};
use super::{KeyFile, payload};
use crate::Result;
use crate::entry::{SequenceNo, Version};
use crate::merge::{Direction, Source, Step};
use crate::wire::Malformed;

/// How the cursor reads pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Cached,
    /// Forward only: that many bytes at once.
    Ahead(usize),
}

/// The purpose of a page load.
#[derive(Debug, Clone)]
enum Target {
    /// The cursor seeks a bound.
    Bound(Option<Bytes>),
    /// The first or the last entry of the page there.
    Page(PageAddress),
}

/// A position in a key file.
#[derive(Debug)]
pub(crate) struct KeyCursor {
    file: KeyFile,
    access: Access,
    direction: Direction,
    page: Option<Arc<Page>>,
    /// Offset of the entry in the page.
    at: usize,
    payload_at: usize,
    end: usize,
    is_valid: bool,
    key: Vec<u8>,
    sequence: SequenceNo,
    target: Option<Target>,
    /// Leaf pages that were read ahead, from that page number on.
    ahead: Option<(u32, Bytes)>,
}

impl KeyCursor {
    pub(crate) fn new(file: KeyFile, access: Access) -> KeyCursor {
        KeyCursor {
            file,
            access,
            direction: Direction::Forward,
            page: None,
            at: 0,
            payload_at: 0,
            end: 0,
            is_valid: false,
            key: Vec::new(),
            sequence: 0,
            target: None,
            ahead: None,
        }
    }

    async fn load_target(&mut self) -> Result<()> {
        match self.target.clone() {
            Some(Target::Bound(bound)) => self.load_bound(bound).await?,
            Some(Target::Page(address)) => {
                let page = self.load_page(address).await?;
                self.enter(page)?;
            }
            None => {}
        }
        self.target = None;
        Ok(())
    }

    async fn load_bound(&mut self, bound: Option<Bytes>) -> Result<()> {
        let file = self.file.clone();
        let Some(bound) = bound else {
            let page = match self.direction {
                Direction::Forward => file.first_leaf().await?,
                Direction::Reverse => file.last_leaf().await?,
            };
            return page.map_or(Ok(()), |page| self.enter(page));
        };
        let Some(page) = file.leaf_for(&bound, SequenceNo::MAX).await? else { return Ok(()) };
        let found = page.search(&bound, SequenceNo::MAX).map(|found| found.map(|found| found.at));
        let found = found.map_err(|malformed| file.malformed(page.address, malformed))?;
        self.page = Some(page.clone());
        match (self.direction, found) {
            (Direction::Forward, Some(at)) => self.place(at),
            (Direction::Forward, None) => match page.next {
                Some(next) => {
                    let next = self.load_page(next).await?;
                    self.enter(next)
                }
                None => Ok(()),
            },
            (Direction::Reverse, found) => {
                let at = found.unwrap_or(page.entries_end());
                if self.place_before(at)? {
                    return Ok(());
                }
                match page.previous {
                    Some(previous) => {
                        let previous = self.load_page(previous).await?;
                        self.enter(previous)
                    }
                    None => Ok(()),
                }
            }
        }
    }

    async fn load_page(&mut self, address: PageAddress) -> Result<Arc<Page>> {
        let Access::Ahead(len) = self.access else { return self.file.leaf(address).await };
        if self.direction == Direction::Reverse {
            return self.file.leaf(address).await;
        }
        if let Some(page) = self.read_ahead(address)? {
            return Ok(page);
        }
        let wanted = len.max(self.file.page_bytes(address));
        self.ahead = Some((address.no, self.file.read_leaves(address.no, wanted).await?));
        match self.read_ahead(address)? {
            Some(page) => Ok(page),
            None => Err(self.file.malformed(address, Malformed::new(0, "a page ends behind its file"))),
        }
    }

    /// The page, if it was read ahead.
    fn read_ahead(&self, address: PageAddress) -> Result<Option<Arc<Page>>> {
        let Some((first, bytes)) = &self.ahead else { return Ok(None) };
        let unit = self.file.page_bytes(PageAddress { no: 0, units: 1 });
        let Some(from) = address.no.checked_sub(*first).map(|units| units as usize * unit) else {
            return Ok(None);
        };
        let end = from + self.file.page_bytes(address);
        if end > bytes.len() {
            return Ok(None);
        }
        self.file.parse_leaf(bytes.slice(from..end), address).map(|page| Some(Arc::new(page)))
    }

    /// Goes to the first entry of `page`, in reverse to the last one.
    fn enter(&mut self, page: Arc<Page>) -> Result<()> {
        let end = page.entries_end();
        let address = page.address;
        let first = page.restart(0).map_err(|malformed| self.file.malformed(address, malformed))?;
        self.page = Some(page);
        match self.direction {
            Direction::Forward => self.place(first),
            Direction::Reverse => self.place_before(end).map(drop),
        }
    }

    /// Goes to the entry at `at`, building its key from the restart before it.
    fn place(&mut self, at: usize) -> Result<()> {
        self.with_page(|cursor, page| {
            let mut next = page.restart_at_or_before(at)?;
            cursor.key.clear();
            loop {
                let entry = page.entry(next)?;
                cursor.set(next, &entry)?;
                if next >= at {
                    return Ok(());
                }
                next = entry.end;
            }
        })
    }

    /// Goes to the last entry before `at`; `false` if there is none.
    fn place_before(&mut self, at: usize) -> Result<bool> {
        self.with_page(|cursor, page| {
            cursor.is_valid = false;
            if at <= page.restart(0)? {
                return Ok(false);
            }
            let mut next = page.restart_at_or_before(at - 1)?;
            cursor.key.clear();
            while next < at {
                let entry = page.entry(next)?;
                cursor.set(next, &entry)?;
                next = entry.end;
            }
            Ok(true)
        })
    }

    fn with_page<T>(
        &mut self,
        work: impl FnOnce(&mut KeyCursor, &Page) -> Result<T, Malformed>,
    ) -> Result<T> {
        let Some(page) = self.page.take() else {
            return Err(crate::Error::corrupted("a cursor without a page"));
        };
        let result = work(self, &page).map_err(|malformed| self.file.malformed(page.address, malformed));
        self.page = Some(page);
        result
    }

    /// Takes the entry at `at`, of which `key` holds the key before.
    #[inline]
    fn set(&mut self, at: usize, entry: &RawEntry<'_>) -> Result<(), Malformed> {
        if entry.shared > self.key.len() {
            return Err(Malformed::new(at, "a key shares more than there is"));
        }
        self.key.truncate(entry.shared);
        self.key.extend_from_slice(entry.suffix);
        self.sequence = sequence_of(entry.payload)?;
        (self.at, self.payload_at, self.end) = (at, entry.payload_at, entry.end);
        self.is_valid = true;
        Ok(())
    }

    /// Goes over to the page at `address`, at once if it is at hand.
    fn turn(&mut self, address: Option<PageAddress>) -> Result<Step> {
        self.is_valid = false;
        let Some(address) = address else { return Ok(Step::Done) };
        let at_hand = match (self.access, self.direction) {
            (Access::Ahead(_), Direction::Forward) => self.read_ahead(address)?,
            _ => self.file.cached_leaf(address),
        };
        match at_hand {
            Some(page) => self.enter(page).map(|()| Step::Done),
            None => {
                self.target = Some(Target::Page(address));
                Ok(Step::Load)
            }
        }
    }
}

impl Source for KeyCursor {
    fn seek(&mut self, direction: Direction, bound: Option<&[u8]>) -> Result<Step> {
        self.direction = direction;
        self.is_valid = false;
        self.page = None;
        if self.file.info().entries == 0 {
            return Ok(Step::Done);
        }
        self.target = Some(Target::Bound(bound.map(Bytes::copy_from_slice)));
        Ok(Step::Load)
    }

    fn advance(&mut self) -> Result<Step> {
        if !self.is_valid {
            return Ok(Step::Done);
        }
        let Some(page) = self.page.take() else { return Ok(Step::Done) };
        match self.direction {
            Direction::Forward => {
                let next = self.end;
                if page.is_end(next) {
                    let address = page.next;
                    self.page = Some(page);
                    return self.turn(address);
                }
                let set = page.entry(next).and_then(|entry| self.set(next, &entry));
                let set = set.map_err(|malformed| self.file.malformed(page.address, malformed));
                self.page = Some(page);
                set?;
            }
            Direction::Reverse => {
                let address = page.previous;
                self.page = Some(page);
                if !self.place_before(self.at)? {
                    return self.turn(address);
                }
            }
        }
        Ok(Step::Done)
    }

    fn load(&mut self) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.load_target())
    }

    #[inline]
    fn key(&self) -> Option<&[u8]> {
        self.is_valid.then_some(&*self.key)
    }

    #[inline]
    fn sequence(&self) -> SequenceNo {
        self.sequence
    }

    fn version(&self) -> Result<Version> {
        let Some(page) = self.page.as_ref().filter(|_| self.is_valid) else {
            return Err(crate::Error::corrupted("a cursor without a version"));
        };
        payload::version(page.bytes(), self.payload_at, self.end)
            .map_err(|malformed| self.file.malformed(page.address, malformed))
    }
}
