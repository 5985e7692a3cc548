//! Reads key files.
//!
//! A lookup: 1. is the key within the file's keys; 2. does the filter let it pass; 3. from the resident root down the
//! index; 4. the leaf page. Every page comes from the cache, or from the device in one I/O.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use tanada_io::{Buffer, BufferPool};
use tanada_volume::{BLOCK_BYTES, Object};

use super::filter::{FilterPart, FilterShape, ResidentFilter};
use super::footer::{FOOTER_BYTES, FORMAT, Footer, FooterError, parse_tail};
use super::hash::KeyHash;
use super::info::KeyFileInfo;
use super::page::{Page, PageAddress, PageKind};
use super::payload;
use crate::cache::{Cache, CacheKey, Cached, Owner, Rank};
use crate::entry::{SequenceNo, Version};
use crate::objects::Lease;
use crate::tombstone::RangeTombstones;
use crate::wire::Malformed;
use crate::{Error, ErrorKind, Result};

/// Bytes of a filter that one I/O reads.
const FILTER_READ_BYTES: u32 = 1 << 20;

/// An open key file. Cheap to clone.
#[derive(Clone)]
pub(crate) struct KeyFile {
    shared: Arc<Shared>,
}

struct Shared {
    file_no: u64,
    object: Object,
    _lease: Lease,
    cache: Arc<Cache>,
    buffers: Arc<BufferPool>,
    owner: Owner,
    footer: Footer,
    root: Option<Arc<Page>>,
    info: KeyFileInfo,
    tombstones: RangeTombstones,
    resident: OnceLock<ResidentFilter>,
}

impl fmt::Debug for KeyFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyFile").field("file_no", &self.shared.file_no).finish_non_exhaustive()
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let pages = self.footer.tail_offset / u64::from(self.footer.unit_bytes.max(1));
        self.cache.file_is_gone(self.owner, u32::try_from(pages).unwrap_or(u32::MAX));
    }
}

/// A buffer, shared without copying it.
struct Owned(Buffer);

impl AsRef<[u8]> for Owned {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// Reads whole blocks: `len` bytes at `offset`, all of them there.
pub(crate) async fn read_blocks(
    object: &Object,
    buffers: &Arc<BufferPool>,
    offset: u64,
    len: usize,
) -> Result<Bytes> {
    read_needed(object, buffers, offset, len, 0..len).await
}

/// The same, of which only the bytes in `needed` have to be what the object has.
pub(crate) async fn read_needed(
    object: &Object,
    buffers: &Arc<BufferPool>,
    offset: u64,
    len: usize,
    needed: Range<usize>,
) -> Result<Bytes> {
    let read = object.read_needed(offset, buffers.allocate(len), needed).await;
    let buffer = read.map_err(|error| {
        Error::volume(
            format!("cannot read {len} bytes at offset {offset} of object {:?}", object.name()),
            &error,
        )
    })?;
    if buffer.len() != len {
        let name = object.name();
        return Err(Error::corrupted(format!("object {name:?}: {len} bytes at offset {offset} are cut off")));
    }
    Ok(Bytes::from_owner(Owned(buffer)))
}

impl KeyFile {
    /// Opens the file that was written as `file_no`.
    ///
    /// # Errors
    /// `Corrupted` if it is not one, `FutureFormat`, or if a device fails.
    pub(crate) async fn open(
        file_no: u64,
        object: Object,
        lease: Lease,
        cache: &Arc<Cache>,
        buffers: &Arc<BufferPool>,
    ) -> Result<KeyFile> {
        let size = object.size_bytes();
        let footer_at = size.checked_sub(FOOTER_BYTES as u64).filter(|at| at.is_multiple_of(BLOCK_BYTES));
        let Some(footer_at) = footer_at else {
            return Err(Error::corrupted(format!(
                "object {:?}: {size} bytes are no key file",
                object.name()
            )));
        };
        let block = read_blocks(&object, buffers, footer_at, FOOTER_BYTES).await?;
        let footer = Footer::parse(&block, file_no, footer_at).map_err(|error| match error {
            FooterError::Malformed(malformed) => malformed.of(object.name(), footer_at),
            FooterError::Future(format) => Error::new(
                ErrorKind::FutureFormat,
                format!(
                    "object {:?}: a key file of format {format} at offset {footer_at}, and this program knows {FORMAT} at most",
                    object.name()
                ),
            ),
        })?;
        let (info, tombstones) = read_tail(&object, buffers, &footer).await?;
        let tombstones = RangeTombstones::new(tombstones);
        let mut shared = Shared {
            file_no,
            object,
            _lease: lease,
            cache: cache.clone(),
            buffers: buffers.clone(),
            owner: Owner::next(cache),
            footer,
            root: None,
            info,
            tombstones,
            resident: OnceLock::new(),
        };
        if let Some((levels, address)) = footer.root {
            shared.root = Some(Arc::new(shared.read_to_search(address, levels).await?));
        }
        Ok(KeyFile { shared: Arc::new(shared) })
    }

    /// Reads all of the filter, to hold it as long as the file is open. If one in `most_part` parts of memory is used
    /// up for filters, its parts come through the cache as they are wanted.
    ///
    /// # Errors
    /// `Corrupted`, or if a device fails.
    pub(crate) async fn hold_filter(&self, most_part: u64) -> Result<()> {
        let shared = &*self.shared;
        let parts = shared.footer.filter.parts;
        if parts == 0 || shared.resident.get().is_some() {
            return Ok(());
        }
        shared.check_filter()?;
        let bytes = u64::from(parts) * u64::from(shared.footer.unit_bytes);
        let Some(reserved) = shared.cache.reserve(bytes, most_part) else { return Ok(()) };
        let mut held = Vec::with_capacity(parts as usize);
        for some in shared.filter_reads() {
            for part in shared.read_filter(some).await? {
                held.push(part?);
            }
        }
        // A concurrent caller has set the same.
        let _ = shared.resident.set(ResidentFilter { parts: held, _reserved: reserved });
        Ok(())
    }

    #[cfg(test)]
    pub(crate) fn no(&self) -> u64 {
        self.shared.file_no
    }

    /// Of the index.
    #[cfg(test)]
    pub(crate) fn levels(&self) -> u8 {
        self.shared.footer.root.map_or(0, |(levels, _)| levels)
    }

    pub(crate) fn info(&self) -> &KeyFileInfo {
        &self.shared.info
    }

    /// Returns the cache of its pages.
    pub(crate) fn cache(&self) -> &Cache {
        &self.shared.cache
    }

    /// Its range tombstones.
    pub(crate) fn tombstones(&self) -> &RangeTombstones {
        &self.shared.tombstones
    }

    /// The error for bytes of `page` that are not what was written.
    pub(super) fn malformed(&self, page: PageAddress, malformed: Malformed) -> Error {
        self.shared.malformed(page, malformed)
    }

    /// The newest version of `key` that `snapshot` sees, range tombstones not looked at.
    ///
    /// # Errors
    /// `Corrupted`, or if a device fails.
    pub(crate) async fn get(
        &self,
        key: &[u8],
        hash: KeyHash,
        snapshot: SequenceNo,
    ) -> Result<Option<Version>> {
        if snapshot < self.shared.info.smallest_sequence {
            return Ok(None);
        }
        // A filter only saves reads: without it the pages say the same.
        if !self.may_contain(key, hash).await.unwrap_or(true) {
            return Ok(None);
        }
        let Some(mut leaf) = self.leaf_for(key, snapshot).await? else { return Ok(None) };
        loop {
            match self.search(&leaf, key, snapshot)? {
                Searched::Found(version) => return Ok(Some(version)),
                Searched::Absent => return Ok(None),
                // The key's newer versions end the page; the ones that the snapshot sees may begin the next one.
                Searched::Behind => match leaf.next {
                    Some(next) => leaf = self.leaf(next).await?,
                    None => return Ok(None),
                },
            }
        }
    }

    fn search(&self, leaf: &Page, key: &[u8], snapshot: SequenceNo) -> Result<Searched> {
        let searched = || -> Result<Searched, Malformed> {
            match leaf.search(key, snapshot)? {
                Some(found) if found.is_equal => {
                    let entry = found.entry;
                    Ok(Searched::Found(payload::version(leaf.bytes(), entry.payload_at, entry.end)?))
                }
                Some(_) => Ok(Searched::Absent),
                None if leaf.ends_with(key)? => Ok(Searched::Behind),
                None => Ok(Searched::Absent),
            }
        };
        searched().map_err(|malformed| self.malformed(leaf.address, malformed))
    }

    /// Returns whether the file may have versions of `key`: it has its range, and the filter lets it pass. A filter in
    /// memory is asked first: it lets few pass, and the first key and the last one lie elsewhere in memory.
    ///
    /// # Errors
    /// `Corrupted`, or if the device fails: then it may have some.
    pub(crate) async fn may_contain(&self, key: &[u8], hash: KeyHash) -> Result<bool> {
        let shared = &*self.shared;
        if let Some(resident) = shared.resident.get() {
            return Ok(resident.may_contain(hash) && shared.is_in_range(key));
        }
        if !shared.is_in_range(key) {
            return Ok(false);
        }
        let Some(address) = shared.footer.filter.page_of(hash) else { return Ok(true) };
        let key = CacheKey::page(shared.owner, address);
        let cached = match shared.cache.get(Rank::Upper, &key) {
            Some(cached) => cached,
            None => {
                let load = Box::pin(shared.load_filter(address));
                shared.cache.get_or_load(Rank::Upper, key, load).await?
            }
        };
        match cached {
            Cached::Filter(part) => Ok(part.may_contain(hash)),
            _ => Err(shared.malformed(address, Malformed::new(0, "no part of a filter"))),
        }
    }

    /// The same, as far as it is known without reading; `None` if it is not, or there is no filter.
    pub(crate) fn may_contain_at_once(&self, key: &[u8], hash: KeyHash) -> Option<bool> {
        let shared = &*self.shared;
        if let Some(resident) = shared.resident.get() {
            return Some(resident.may_contain(hash) && shared.is_in_range(key));
        }
        if !shared.is_in_range(key) {
            return Some(false);
        }
        let address = shared.footer.filter.page_of(hash)?;
        match shared.cache.get(Rank::Upper, &CacheKey::page(shared.owner, address)) {
            Some(Cached::Filter(part)) => Some(part.may_contain(hash)),
            _ => None,
        }
    }

    pub(crate) fn has_filter(&self) -> bool {
        self.shared.footer.filter.parts > 0
    }

    /// The leaf page where `(key, sequence)` is, or would be; `None` if there is no page.
    pub(super) async fn leaf_for(&self, key: &[u8], sequence: SequenceNo) -> Result<Option<Arc<Page>>> {
        let shared = &*self.shared;
        let (Some(root), Some((levels, _))) = (&shared.root, shared.footer.root) else { return Ok(None) };
        let mut page = root.clone();
        for level in (0..levels).rev() {
            let child = page.search_child(key, sequence).and_then(|entry| payload::page(entry.payload));
            let child = child.map_err(|malformed| shared.malformed(page.address, malformed))?;
            page = self.page(child, level).await?;
        }
        Ok(Some(page))
    }

    /// The first leaf page.
    pub(super) async fn first_leaf(&self) -> Result<Option<Arc<Page>>> {
        self.leaf_for(&[], SequenceNo::MAX).await
    }

    /// The last leaf page.
    pub(super) async fn last_leaf(&self) -> Result<Option<Arc<Page>>> {
        self.leaf_for(&self.shared.info.last_key, 0).await
    }

    /// A leaf page if it is held.
    pub(super) fn cached_leaf(&self, address: PageAddress) -> Option<Arc<Page>> {
        let key = CacheKey::page(self.shared.owner, address);
        match self.shared.cache.get(Rank::Lower, &key) {
            Some(Cached::Page(page)) => Some(page),
            _ => None,
        }
    }

    /// The leaf page at `address`.
    pub(super) async fn leaf(&self, address: PageAddress) -> Result<Arc<Page>> {
        self.page(address, 0).await
    }

    async fn page(&self, address: PageAddress, level: u8) -> Result<Arc<Page>> {
        let shared = &*self.shared;
        let key = CacheKey::page(shared.owner, address);
        let rank = if level == 0 { Rank::Lower } else { Rank::Upper };
        let cached = match shared.cache.get(rank, &key) {
            Some(cached) => cached,
            None => {
                let load = Box::pin(shared.load_page(address, level));
                shared.cache.get_or_load(rank, key, load).await?
            }
        };
        match cached {
            Cached::Page(page) => Ok(page),
            _ => Err(shared.malformed(address, Malformed::new(22, "another kind of page"))),
        }
    }

    /// The bytes of the leaf pages from `no` on, about `len` of them; they are not cached.
    pub(super) async fn read_leaves(&self, no: u32, len: usize) -> Result<Bytes> {
        let shared = &*self.shared;
        let unit = u64::from(shared.footer.unit_bytes);
        let (from, end) = (u64::from(no) * unit, u64::from(shared.footer.leaves_end) * unit);
        let len = (len as u64).next_multiple_of(unit).min(end.saturating_sub(from)) as usize;
        read_blocks(&shared.object, &shared.buffers, from, len).await
    }

    /// The leaf page at `address`, whose bytes were read.
    pub(super) fn parse_leaf(&self, bytes: Bytes, address: PageAddress) -> Result<Page> {
        let page = Page::parse(bytes, self.shared.file_no, address);
        let page = page.map_err(|malformed| self.malformed(address, malformed))?;
        self.shared.check_kind(&page, 0)?;
        Ok(page)
    }

    /// Returns the damage of the filter on the device, part by part: `Corrupted`, or the error of the read.
    pub(super) async fn damage_of_filter(&self) -> Vec<Error> {
        let shared = &*self.shared;
        if let Err(error) = shared.check_filter() {
            return vec![error];
        }
        let mut damage = Vec::new();
        for some in shared.filter_reads() {
            match shared.read_filter(some).await {
                Ok(parts) => damage.extend(parts.into_iter().filter_map(Result::err)),
                Err(error) => damage.push(error),
            }
        }
        damage
    }

    /// The index's levels and its root; `None` if there is no page at all.
    pub(super) fn root(&self) -> Option<(u8, PageAddress)> {
        self.shared.footer.root
    }

    /// The pages below the index page at `address`, as it is on the device.
    ///
    /// # Errors
    /// `Corrupted`, or if the device fails.
    pub(super) async fn read_children(&self, address: PageAddress, level: u8) -> Result<Vec<PageAddress>> {
        let page = self.shared.read_page(address).await?;
        self.shared.check_kind(&page, level)?;
        children(&page).map_err(|malformed| self.malformed(address, malformed))
    }

    /// Bytes of a page at `address`.
    pub(super) fn page_bytes(&self, address: PageAddress) -> usize {
        usize::from(address.units) * self.shared.footer.unit_bytes as usize
    }
}

/// The pages below one of the index.
fn children(page: &Page) -> Result<Vec<PageAddress>, Malformed> {
    let mut children = Vec::new();
    let mut at = page.restart(0)?;
    while !page.is_end(at) {
        let entry = page.entry(at)?;
        children.push(payload::page(entry.payload)?);
        at = entry.end;
    }
    Ok(children)
}

/// The result of a search in a leaf page.
enum Searched {
    Found(Version),
    Absent,
    /// The key may be in the next page.
    Behind,
}

impl Shared {
    #[inline]
    fn is_in_range(&self, key: &[u8]) -> bool {
        key >= &*self.info.first_key && key <= &*self.info.last_key
    }

    fn malformed(&self, page: PageAddress, malformed: Malformed) -> Error {
        malformed.of(self.object.name(), u64::from(page.no) * u64::from(self.footer.unit_bytes))
    }

    async fn read_page(&self, address: PageAddress) -> Result<Page> {
        let unit = u64::from(self.footer.unit_bytes);
        let offset = u64::from(address.no) * unit;
        let len = u64::from(address.units) * unit;
        if offset + len > self.footer.tail_offset {
            return Err(self.malformed(address, Malformed::new(0, "no page")));
        }
        let bytes = read_blocks(&self.object, &self.buffers, offset, len as usize).await?;
        // Cached bytes are copied, so that they do not keep I/O buffers: registered buffers are few, and others are
        // aligned, which wastes memory.
        let bytes = Bytes::copy_from_slice(&bytes);
        Page::parse(bytes, self.file_no, address).map_err(|malformed| self.malformed(address, malformed))
    }

    fn check_kind(&self, page: &Page, level: u8) -> Result<()> {
        let expected = if level == 0 { PageKind::Leaf } else { PageKind::Index };
        if page.kind == expected {
            return Ok(());
        }
        Err(self.malformed(page.address, Malformed::new(22, "another kind of page")))
    }

    /// A page of leaves or of the index, which is held.
    async fn read_to_search(&self, address: PageAddress, level: u8) -> Result<Page> {
        let page = self.read_page(address).await?;
        self.check_kind(&page, level)?;
        page.with_heads().map_err(|malformed| self.malformed(address, malformed))
    }

    async fn load_page(&self, address: PageAddress, level: u8) -> Result<Cached> {
        Ok(Cached::Page(Arc::new(self.read_to_search(address, level).await?)))
    }

    /// Returns whether all of the filter lies among the file's pages.
    fn check_filter(&self) -> Result<()> {
        let FilterShape { first_page, parts, .. } = self.footer.filter;
        let end = u64::from(first_page) + u64::from(parts);
        if end * u64::from(self.footer.unit_bytes) <= self.footer.tail_offset {
            return Ok(());
        }
        let first = PageAddress { no: first_page, units: 1 };
        Err(self.malformed(first, Malformed::new(0, "a filter ends behind the file's pages")))
    }

    /// The filter's pages, as many at a time as are read at once.
    fn filter_reads(&self) -> impl Iterator<Item = Range<u32>> + use<> {
        let FilterShape { first_page, parts, .. } = self.footer.filter;
        let at_once = (FILTER_READ_BYTES / self.footer.unit_bytes.max(1)).max(1);
        let end = first_page + parts;
        (first_page..end).step_by(at_once as usize).map(move |no| no..end.min(no.saturating_add(at_once)))
    }

    /// The parts of the filter in those pages.
    async fn read_filter(&self, pages: Range<u32>) -> Result<Vec<Result<FilterPart>>> {
        let unit = self.footer.unit_bytes as usize;
        let (offset, len) = (u64::from(pages.start) * unit as u64, pages.len() * unit);
        let bytes = read_blocks(&self.object, &self.buffers, offset, len).await?;
        let part = |(no, page): (u32, &[u8])| {
            let address = PageAddress { no, units: 1 };
            let page = Page::parse(bytes.slice_ref(page), self.file_no, address);
            let part = page.and_then(|page| FilterPart::parse(&page, self.footer.filter.hashes));
            part.map_err(|malformed| self.malformed(address, malformed))
        };
        Ok(pages.zip(bytes.chunks_exact(unit)).map(part).collect())
    }

    async fn load_filter(&self, address: PageAddress) -> Result<Cached> {
        let page = self.read_page(address).await?;
        let part = FilterPart::parse(&page, self.footer.filter.hashes);
        Ok(Cached::Filter(Arc::new(part.map_err(|malformed| self.malformed(address, malformed))?)))
    }
}

async fn read_tail(
    object: &Object,
    buffers: &Arc<BufferPool>,
    footer: &Footer,
) -> Result<(KeyFileInfo, Vec<crate::entry::RangeTombstone>)> {
    let offset = footer.tail_offset;
    let malformed = |malformed: Malformed| malformed.of(object.name(), offset);
    if !offset.is_multiple_of(BLOCK_BYTES) {
        return Err(malformed(Malformed::new(0, "a key file's tail begins within a block")));
    }
    let len = footer.tail_bytes.next_multiple_of(BLOCK_BYTES) as usize;
    let bytes = read_blocks(object, buffers, offset, len).await?;
    let tail = &bytes[..footer.tail_bytes as usize];
    if crc32c::crc32c(tail) != footer.tail_checksum {
        return Err(malformed(Malformed::new(0, "the checksum of a key file's tail is wrong")));
    }
    parse_tail(tail).map_err(malformed)
}
