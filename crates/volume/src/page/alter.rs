//! Changing what is done to new pages of an object: metadata only.
//!
//! An object that has no pages gets them where it lies: each page is its own image, until it is written again. Pages
//! keep their size.

use std::num::NonZeroU16;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::recovered::identity;
use super::space::Space;
use super::{PageSettings, PageState, Pages, Stored};
use crate::metadata::{Queue, Record};
use crate::settings::{BLOCK_BYTES, LARGEST_OBJECT};
use crate::transform::{DEFAULT_PAGE_BYTES, check_page_bytes};
use crate::volume::Core;
use crate::{Attributes, Error, ErrorKind, Object, Result};

/// What attributes ask for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    pub(crate) settings: PageSettings,
    pub(crate) page_bytes: Option<u32>,
}

impl Wanted {
    /// Whether they ask for anything that a plain object has not.
    pub(crate) fn is_plain(&self) -> bool {
        self.settings == PageSettings::default() && self.page_bytes.is_none()
    }

    pub(crate) fn shift(&self) -> u32 {
        self.page_bytes.unwrap_or(DEFAULT_PAGE_BYTES).trailing_zeros()
    }
}

impl Core {
    /// What attributes ask for, if that can be had; `known` is the key of the object already, which nobody has to bring
    /// for anything else.
    pub(crate) fn wanted(&self, attributes: &Attributes, known: Option<NonZeroU16>) -> Result<Wanted> {
        attributes.compression.check()?;
        let key = attributes.encryption.map(|key| {
            let id = NonZeroU16::new(key);
            id.ok_or_else(|| Error::invalid("the identifier of a key is a number from 1 to 65535"))
        });
        let key = key.transpose()?;
        if let Some(key) = key.filter(|key| Some(*key) != known) {
            self.keys.cipher(key)?;
        }
        let settings = PageSettings { compression: attributes.compression, key };
        let wanted = Wanted { settings, page_bytes: attributes.page_bytes };
        if !wanted.is_plain() {
            check_page_bytes(attributes.page_bytes.unwrap_or(DEFAULT_PAGE_BYTES), self.chunk_bytes)?;
        }
        Ok(wanted)
    }

    /// The records of settings; that of the key, if the metadata have no check value of it.
    pub(crate) fn settings_records(&self, id: u64, settings: PageSettings) -> Vec<Record> {
        let mut records = Vec::new();
        if let Some(key) = settings.key
            && let Some(check) = self.keys.check_value(key)
            && self.key_checks.lock().insert(key, check).is_none()
        {
            records.push(Record::Key { key: key.get(), check });
        }
        records.push(Record::Transform {
            id,
            algorithm: settings.compression.algorithm() as u8,
            level: settings.compression.level(),
            key: settings.key.map_or(0, NonZeroU16::get),
        });
        records
    }

    /// The pages of an object that is made with a transform.
    pub(crate) fn new_pages(&self, wanted: &Wanted) -> Arc<Pages> {
        let blocks_per_chunk = (self.chunk_bytes / BLOCK_BYTES) as u32;
        let space = Space::new(blocks_per_chunk, 0, LARGEST_OBJECT / self.chunk_bytes);
        let state = PageState::new(super::map::PageMap::default(), space, 0);
        Arc::new(Pages::new(wanted.shift(), 0, wanted.settings, state))
    }
}

impl Object {
    /// Changes what is said about the object, as [`set_attributes`](Object::set_attributes); an object without a
    /// transform may get one. Only metadata change: pages that are there stay as they are until they are written, or
    /// all of them by [`optimize`](Object::optimize).
    ///
    /// # Errors
    /// `InvalidInput` for an unknown level, a page size that does not fit or is another than the object has, or an
    /// adopted file; `MissingKey`; `NotFound` if there is no such class; and as [`sync`](Object::sync).
    pub async fn alter(&self, attributes: &Attributes) -> Result<()> {
        self.check_writable()?;
        let wanted = self.wanted(attributes)?;
        if self.state.pages.get().is_none() && !wanted.is_plain() && !self.is_adopted() {
            self.add_pages(&wanted).await?;
        }
        self.set_attributes(attributes)
    }

    /// What attributes ask for, if that can be had.
    pub(crate) fn wanted(&self, attributes: &Attributes) -> Result<Wanted> {
        let known = self.state.pages.get().and_then(|pages| pages.settings.lock().key);
        self.core.wanted(attributes, known)
    }

    /// Whether attributes can be set without anything else.
    pub(crate) fn check_transform(&self, wanted: &Wanted) -> Result<()> {
        let name = || self.name();
        match self.state.pages.get() {
            None if wanted.is_plain() => Ok(()),
            None if self.is_adopted() => {
                let why = "is an adopted file, which is read as it is: import it to compress or encrypt it";
                Err(Error::invalid(format!("object {:?} {why}", name())))
            }
            None => {
                Err(Error::invalid(format!("object {:?} has no transform: alter it to give it one", name())))
            }
            Some(pages) => match wanted.page_bytes {
                Some(bytes) if u64::from(bytes) != pages.page_bytes() => Err(Error::invalid(format!(
                    "object {:?} has pages of {} bytes, which cannot change: import its data into an object with pages of {bytes}",
                    name(),
                    pages.page_bytes()
                ))),
                _ => Ok(()),
            },
        }
    }

    /// Sets what is done to new pages, within a change of the journal.
    pub(crate) fn set_transform(&self, wanted: &Wanted, queue: &mut Queue) {
        let Some(pages) = self.state.pages.get() else { return };
        let mut settings = pages.settings.lock();
        if *settings != wanted.settings {
            *settings = wanted.settings;
            for record in self.core.settings_records(self.state.id, wanted.settings) {
                queue.push(&record);
            }
        }
    }

    /// Gives a plain object pages.
    async fn add_pages(&self, wanted: &Wanted) -> Result<()> {
        // Nobody may be in a sync, which waits for holds.
        let _turn = self.state.sync_turns.hold(0..=0, true).await;
        let _hold = self.state.holds.hold(0..=u64::MAX, true).await;
        self.check_writable()?;
        if self.state.pages.get().is_some() {
            return Ok(());
        }
        // All chunks have to be in the metadata: from here on pages lie in them.
        self.sync_alone().await?;
        let (state, chunk_bytes, shift) = (&self.state, self.core.chunk_bytes, wanted.shift());
        let (added, lsn) = self.core.journal.change(|queue| {
            if state.is_deleted.load(Ordering::SeqCst) {
                return Err(Error::new(
                    ErrorKind::NotFound,
                    format!("object {:?} was deleted", state.name.read()),
                ));
            }
            let size = state.size();
            let page_count = size.div_ceil(1 << shift);
            let stored = size.next_multiple_of(chunk_bytes);
            let table = state.table.read();
            let map = identity(&table, chunk_bytes, shift, page_count);
            let most = LARGEST_OBJECT / chunk_bytes;
            let mut space = Space::new((chunk_bytes / BLOCK_BYTES) as u32, stored / chunk_bytes, most);
            let is_sound = {
                let mut all = map.iter_from(0).filter_map(|(_, word)| Stored::of(word));
                all.all(|page| space.take_this(page.block, page.blocks))
            };
            debug_assert!(is_sound);
            drop(table);
            let pages = Pages::new(shift, size, wanted.settings, PageState::new(map, space, size));
            queue.push(&Record::Size { id: state.id, size_bytes: stored, tail_is_stale: false });
            queue.push(&Record::Paged { id: state.id, shift: shift as u8, pages: page_count });
            queue.push(&Record::LogicalSize { id: state.id, size_bytes: size });
            for record in self.core.settings_records(state.id, wanted.settings) {
                queue.push(&record);
            }
            state.size.store(stored, Ordering::SeqCst);
            state.journaled_size.store(stored, Ordering::SeqCst);
            state.tail_is_stale.store(false, Ordering::SeqCst);
            let was_plain = state.pages.set(Arc::new(pages)).is_ok();
            debug_assert!(was_plain, "two have added pages");
            Ok(())
        });
        added?;
        // CRASH: with the record or without it, the pages are where they were.
        self.core.crash.reached("page.before-alter");
        self.core.commit(lsn).await
    }
}
