//! Writes a key file from its first key to its last.
//!
//! 1. Entries fill leaf pages. A page is written when the next one is full, because it says how long that is.
//! 2. Of every leaf page a *separator* is kept: the shortest key that is larger than all keys before the page, and not
//!    larger than its own. If a key's versions go over the boundary, the separator is that key with the sequence number
//!    of the page's first entry.
//! 3. At the end: the index, level by level, then the filter, the tail and the footer. Then all is synced.

use std::sync::Arc;

use bytes::Bytes;
use tanada_io::BufferPool;
use tanada_volume::{BLOCK_BYTES, Object};

use super::builder::{PageBuilder, UnsealedPage};
use super::filter::FilterBuilder;
use super::footer::{FOOTER_BYTES, Footer, MAX_LEVELS, encode_tail};
use super::info::{KeyFileInfo, SegmentReferences};
use super::page::{PageAddress, PageKind};
use super::payload;
use super::prefix::common_prefix;
use crate::entry::{Content, LONGEST_KEY, RangeTombstone, SegmentNo, SequenceNo, Version};
use crate::stream::{Pieces, StreamWriter, sync};
use crate::{Error, Result};

/// Options of a key file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeyFileOptions {
    /// The smallest page: a multiple of 4 KiB, at most 64 KiB.
    pub(crate) page_bytes: u32,
    /// Bits of the filter for each key; 0 for no filter.
    pub(crate) filter_bits_per_key: u32,
    pub(crate) pieces: Pieces,
}

impl Default for KeyFileOptions {
    fn default() -> KeyFileOptions {
        KeyFileOptions { page_bytes: 4096, filter_bits_per_key: 10, pieces: Pieces::default() }
    }
}

/// A page, and the smallest key and sequence number that lead to it.
#[derive(Debug)]
struct Child {
    separator: Box<[u8]>,
    sequence: SequenceNo,
    address: PageAddress,
}

/// Writes one key file.
#[derive(Debug)]
pub(crate) struct KeyFileWriter {
    file_no: u64,
    options: KeyFileOptions,
    stream: StreamWriter,
    leaf: PageBuilder,
    /// The last full leaf page, and the units of the one before it.
    pending: Option<(UnsealedPage, u16)>,
    next_page: u32,
    children: Vec<Child>,
    /// The last key before the page that is being filled, if there is one.
    has_boundary: bool,
    boundary: Vec<u8>,
    last_sequence: SequenceNo,
    filter: FilterBuilder,
    references: Vec<SegmentReferences>,
    tombstones: Vec<RangeTombstone>,
    info: KeyFileInfo,
    payload: Vec<u8>,
}

fn too_large() -> Error {
    Error::invalid("a key file cannot have that many pages")
}

impl KeyFileWriter {
    /// Writes file `file_no` to `object`, which is empty.
    pub(crate) fn new(
        file_no: u64,
        object: Object,
        buffers: &Arc<BufferPool>,
        options: KeyFileOptions,
    ) -> KeyFileWriter {
        let unit_bytes = options.page_bytes as usize;
        KeyFileWriter {
            file_no,
            options,
            stream: StreamWriter::new(object, buffers, options.pieces),
            leaf: PageBuilder::new(PageKind::Leaf, unit_bytes),
            pending: None,
            next_page: 0,
            children: Vec::new(),
            has_boundary: false,
            boundary: Vec::new(),
            last_sequence: 0,
            filter: FilterBuilder::new(options.filter_bits_per_key, unit_bytes),
            references: Vec::new(),
            tombstones: Vec::new(),
            info: KeyFileInfo { smallest_sequence: SequenceNo::MAX, ..KeyFileInfo::default() },
            payload: Vec::new(),
        }
    }

    /// Returns whether nothing was added.
    pub(crate) fn is_empty(&self) -> bool {
        self.info.entries == 0 && self.tombstones.is_empty()
    }

    /// Adds a version: with a larger key than the one before, or the same key and a smaller sequence number.
    ///
    /// # Errors
    /// `InvalidInput` if it is out of order or its key too long, or if the volume has no space or a device fails.
    pub(crate) async fn add(&mut self, key: &[u8], version: &Version) -> Result<()> {
        let is_new_key = self.check_order(key, version.sequence)?;
        self.payload.clear();
        payload::put_version(&mut self.payload, version);
        if !self.leaf.is_empty() && !self.leaf.has_room(key, &self.payload) {
            self.end_leaf().await?;
        }
        if self.leaf.is_empty() {
            self.begin_leaf(key, version.sequence);
        }
        self.leaf.add(key, &self.payload);
        self.last_sequence = version.sequence;
        self.count(key, version);
        if is_new_key {
            self.filter.add(key);
        }
        if self.leaf.units() > 1 {
            self.end_leaf().await?;
        }
        Ok(())
    }

    /// Adds a range tombstone; in any order.
    pub(crate) fn add_range_tombstone(&mut self, tombstone: RangeTombstone) {
        self.info.smallest_sequence = self.info.smallest_sequence.min(tombstone.sequence);
        self.info.largest_sequence = self.info.largest_sequence.max(tombstone.sequence);
        self.tombstones.push(tombstone);
    }

    /// Returns whether the key is another one than before.
    fn check_order(&self, key: &[u8], sequence: SequenceNo) -> Result<bool> {
        if key.len() > LONGEST_KEY {
            return Err(Error::invalid(format!("a key of {} bytes: {LONGEST_KEY} at most", key.len())));
        }
        let last = if self.leaf.is_empty() { &self.boundary } else { self.leaf.last_key() };
        let is_first = self.info.entries == 0;
        let is_in_order = is_first || key > last || (key == last && sequence < self.last_sequence);
        if !is_in_order || sequence == SequenceNo::MAX {
            let object = self.stream.object().name();
            return Err(Error::invalid(format!("object {object:?}: a version is added out of order")));
        }
        Ok(is_first || key != last)
    }

    /// The page that is being filled has its first entry.
    fn begin_leaf(&mut self, key: &[u8], sequence: SequenceNo) {
        let (separator, sequence) = if !self.has_boundary {
            (&[][..], SequenceNo::MAX)
        } else if self.boundary == key {
            (key, sequence)
        } else {
            (&key[..common_prefix(&self.boundary, key) + 1], SequenceNo::MAX)
        };
        // Its address is known when it is full.
        let address = PageAddress { no: self.next_page, units: 1 };
        self.children.push(Child { separator: separator.into(), sequence, address });
    }

    async fn end_leaf(&mut self) -> Result<()> {
        self.boundary.clear();
        self.boundary.extend_from_slice(self.leaf.last_key());
        self.has_boundary = true;
        let page = self.leaf.finish(self.next_page);
        let units = page.address.units;
        self.next_page = self.next_page.checked_add(u32::from(units)).ok_or_else(too_large)?;
        if let Some(child) = self.children.last_mut() {
            child.address = page.address;
        }
        let units_before = self.pending.as_ref().map_or(0, |(pending, _)| pending.address.units);
        if let Some((pending, units_before)) = self.pending.replace((page, units_before)) {
            self.stream.append(&pending.seal(self.file_no, units_before, units)).await?;
        }
        Ok(())
    }

    fn count(&mut self, key: &[u8], version: &Version) {
        let info = &mut self.info;
        if info.entries == 0 {
            info.first_key = Bytes::copy_from_slice(key);
        }
        info.entries += 1;
        info.key_bytes += key.len() as u64;
        info.smallest_sequence = info.smallest_sequence.min(version.sequence);
        info.largest_sequence = info.largest_sequence.max(version.sequence);
        if let Some(expires_s) = version.expires_s {
            info.first_expiry_s = Some(info.first_expiry_s.map_or(expires_s, |first| first.min(expires_s)));
        }
        match &version.content {
            Content::Deleted => info.deletes += 1,
            Content::Inline(value) => info.inline_bytes += value.len() as u64,
            Content::At(pointer) => self.reference(pointer.segment, u64::from(pointer.stored_len)),
        }
    }

    fn reference(&mut self, segment: SegmentNo, stored_bytes: u64) {
        let found = self.references.binary_search_by_key(&segment, |references| references.segment);
        let index = found.unwrap_or_else(|index| {
            self.references.insert(index, SegmentReferences { segment, values: 0, stored_bytes: 0 });
            index
        });
        self.references[index].values += 1;
        self.references[index].stored_bytes += stored_bytes;
    }

    /// Writes the rest and makes the file durable.
    ///
    /// # Errors
    /// If the volume has no space or a device fails.
    pub(crate) async fn finish(self) -> Result<(KeyFileInfo, Object)> {
        let (info, object) = self.finish_unsynced().await?;
        sync(&object).await?;
        Ok((info, object))
    }

    /// Writes the rest; the file is durable after the next sync of its object.
    ///
    /// # Errors
    /// As [`finish`](Self::finish).
    pub(crate) async fn finish_unsynced(mut self) -> Result<(KeyFileInfo, Object)> {
        if !self.leaf.is_empty() {
            self.end_leaf().await?;
        }
        if let Some((pending, units_before)) = self.pending.take() {
            self.stream.append(&pending.seal(self.file_no, units_before, 0)).await?;
        }
        let leaves_end = self.next_page;
        self.info.last_key = Bytes::copy_from_slice(&self.boundary);
        let root = self.write_index().await?;
        let filter = std::mem::replace(&mut self.filter, FilterBuilder::new(0, 0));
        let (filter, pages) = filter.finish(self.file_no, self.next_page).await;
        self.next_page = self.next_page.checked_add(filter.parts).ok_or_else(too_large)?;
        for page in pages {
            self.stream.append(&page).await?;
        }
        if self.is_empty() {
            self.info.smallest_sequence = 0;
        }
        self.info.range_tombstones = self.tombstones.len() as u64;
        self.info.references = std::mem::take(&mut self.references);
        let tail_offset = self.stream.position();
        // The tail tells the size of the file, of which it is part: the lengths of numbers may differ, blocks hardly.
        let mut tail = encode_tail(&self.info, &self.tombstones);
        self.info.size_bytes =
            (tail_offset + tail.len() as u64 + 16).next_multiple_of(BLOCK_BYTES) + FOOTER_BYTES as u64;
        tail = encode_tail(&self.info, &self.tombstones);
        self.stream.append(&tail).await?;
        let rest = self.info.size_bytes - FOOTER_BYTES as u64 - self.stream.position();
        self.stream.append(&vec![0; rest as usize]).await?;
        let footer = Footer {
            file_no: self.file_no,
            unit_bytes: self.options.page_bytes,
            root,
            leaves_end,
            filter,
            tail_offset,
            tail_bytes: tail.len() as u64,
            tail_checksum: crc32c::crc32c(&tail),
        };
        self.stream.append(&footer.encode()).await?;
        let object = self.stream.finish().await?;
        Ok((self.info, object))
    }

    /// The index's levels and its root.
    async fn write_index(&mut self) -> Result<Option<(u8, PageAddress)>> {
        let mut children = std::mem::take(&mut self.children);
        let mut levels = 0;
        while children.len() > 1 {
            children = self.write_level(children).await?;
            levels += 1;
            if levels > MAX_LEVELS {
                return Err(too_large());
            }
        }
        Ok(children.pop().map(|root| (levels, root.address)))
    }

    async fn write_level(&mut self, children: Vec<Child>) -> Result<Vec<Child>> {
        let mut builder = PageBuilder::new(PageKind::Index, self.options.page_bytes as usize);
        let mut above = Vec::new();
        let mut first: Option<(Box<[u8]>, SequenceNo)> = None;
        for child in children {
            self.payload.clear();
            payload::put_page(&mut self.payload, child.sequence, child.address);
            // Two children at least, be they as long as they like: otherwise the levels would never end.
            if builder.entries() >= 2 && !builder.has_room(&child.separator, &self.payload) {
                above.push(self.end_index_page(&mut builder, first.take()).await?);
            }
            builder.add(&child.separator, &self.payload);
            first.get_or_insert((child.separator, child.sequence));
        }
        if !builder.is_empty() {
            above.push(self.end_index_page(&mut builder, first).await?);
        }
        Ok(above)
    }

    async fn end_index_page(
        &mut self,
        builder: &mut PageBuilder,
        first: Option<(Box<[u8]>, SequenceNo)>,
    ) -> Result<Child> {
        let page = builder.finish(self.next_page);
        let address = page.address;
        self.next_page = self.next_page.checked_add(u32::from(address.units)).ok_or_else(too_large)?;
        self.stream.append(&page.seal(self.file_no, 0, 0)).await?;
        let (separator, sequence) = first.unwrap_or_default();
        Ok(Child { separator, sequence, address })
    }
}
