//! Pages: entries in order, searched without decoding them all.
//!
//! ```text
//! header   checksum u32, page number u32, end of the entries u32, units u16,
//!          units of the leaf page before u16 and behind u16 (0 if there is none),
//!          restarts u16, entries u16, kind u8, 0 u8: 24 bytes
//! entries  shared varint, suffix length varint, payload length varint, suffix, payload
//! zeros
//! restarts offset u16 each, up to the end of the page
//! ```
//!
//! A key is what it shares with the key before, and a suffix; at every restart the whole key is there: every sixteenth
//! in a leaf page, and those of an index page that share little. A search goes by halves over the restarts, then entry
//! by entry, comparing suffixes only where the key before matched so far: no key is put together.
//!
//! A page that is searched often has *heads* in memory: eight bytes of the key of each restart, behind what all of
//! these begin with. They lie side by side, so that a search need not touch the page in one place after the other,
//! which takes longer than all that is compared.
//!
//! Entries are ordered by key ascending, then by sequence number descending. A page has one *unit* (4 KiB by default)
//! unless its first entry needs more; then it has no second entry.
//!
//! The checksum is over all other bytes of the page, and begins with the number of the file: a page of another file, or
//! of another place in this one, is not taken for it.

use std::cmp::Ordering;
use std::ops::Range;

use bytes::Bytes;

use super::prefix::common_prefix;
use crate::entry::SequenceNo;
use crate::wire::{Decoder, Malformed};

/// Bytes of the header.
pub(super) const HEADER_BYTES: usize = 24;

/// Entries from one restart to the next, at most.
pub(super) const RESTART_INTERVAL: usize = 16;

/// The kind of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageKind {
    /// Versions of keys.
    Leaf = 1,
    /// Pages below it.
    Index = 2,
    /// A part of the filter.
    Filter = 3,
}

/// The address of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PageAddress {
    /// In units from the beginning of the file.
    pub(crate) no: u32,
    pub(crate) units: u16,
}

/// A page whose checksum was right.
#[derive(Debug, Clone)]
pub(crate) struct Page {
    bytes: Bytes,
    pub(crate) kind: PageKind,
    pub(crate) address: PageAddress,
    /// The leaf pages before and behind this one, if it is one.
    pub(crate) previous: Option<PageAddress>,
    pub(crate) next: Option<PageAddress>,
    entries_end: u32,
    restarts: u16,
    heads: Option<Heads>,
}

/// Prefixes of the restart keys of a page, for searches that touch little memory.
#[derive(Debug, Clone)]
struct Heads {
    /// The range of the page with their common prefix.
    common: Range<usize>,
    /// The next eight bytes of each, as a number in key order.
    heads: Box<[u64]>,
}

/// The first eight bytes of `key`, as if zeros followed it. Of two different ones the smaller is of the smaller key.
#[inline]
fn head_of(key: &[u8]) -> u64 {
    match key.first_chunk() {
        Some(head) => u64::from_be_bytes(*head),
        None => key.iter().rev().fold(0, |head, byte| head >> 8 | u64::from(*byte) << 56),
    }
}

/// An entry as it lies in a page.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RawEntry<'a> {
    /// Bytes that its key shares with the key before.
    pub(crate) shared: usize,
    /// The rest of its key.
    pub(crate) suffix: &'a [u8],
    pub(crate) payload: &'a [u8],
    /// Offset of the payload in the page.
    pub(crate) payload_at: usize,
    /// Offset of the next entry.
    pub(crate) end: usize,
}

/// The result of a search: the first entry that is not smaller.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found<'a> {
    /// Offset of the entry.
    pub(crate) at: usize,
    /// Whether its key is the one that was sought.
    pub(crate) is_equal: bool,
    pub(crate) entry: RawEntry<'a>,
}

/// The checksum of a page of file `file_no`, without its first four bytes.
pub(super) fn checksum(file_no: u64, page: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&file_no.to_be_bytes()), page.get(4..).unwrap_or_default())
}

/// The sequence number of a payload: it follows the flags.
#[inline]
pub(crate) fn sequence_of(payload: &[u8]) -> Result<SequenceNo, Malformed> {
    Decoder::at(payload, 1).varint()
}

impl Page {
    /// Checks the page at `address` of file `file_no`.
    ///
    /// # Errors
    /// If it is not what was written there.
    pub(crate) fn parse(bytes: Bytes, file_no: u64, address: PageAddress) -> Result<Page, Malformed> {
        let mut decoder = Decoder::new(&bytes);
        if decoder.u32()? != checksum(file_no, &bytes) {
            return Err(Malformed::new(0, "a page's checksum is wrong"));
        }
        if decoder.u32()? != address.no {
            return Err(Malformed::new(4, "a page lies where another one should"));
        }
        let entries_end = decoder.u32()?;
        let (units, units_before, units_behind) = (decoder.u16()?, decoder.u16()?, decoder.u16()?);
        let (restarts, entries) = (decoder.u16()?, decoder.u16()?);
        let kind = match decoder.u8()? {
            1 => PageKind::Leaf,
            2 => PageKind::Index,
            3 => PageKind::Filter,
            _ => return Err(Malformed::new(22, "an unknown kind of page")),
        };
        if units != address.units {
            return Err(Malformed::new(12, "a page has another length"));
        }
        let restarts_at = bytes.len().checked_sub(2 * usize::from(restarts));
        let fits = restarts_at
            .is_some_and(|restarts_at| (HEADER_BYTES..=restarts_at).contains(&(entries_end as usize)));
        let is_empty = entries == 0 || restarts == 0;
        if !fits || (is_empty && kind != PageKind::Filter) {
            return Err(Malformed::new(8, "a page's parts overlap"));
        }
        let neighbour = |no: Option<u32>, units: u16| no.map(|no| PageAddress { no, units });
        let no_before = address.no.checked_sub(u32::from(units_before));
        let no_behind = address.no.checked_add(u32::from(units));
        Ok(Page {
            bytes,
            kind,
            address,
            previous: neighbour(no_before, units_before).filter(|_| units_before > 0),
            next: neighbour(no_behind, units_behind).filter(|_| units_behind > 0),
            entries_end,
            restarts,
            heads: None,
        })
    }

    /// The same, to be searched often.
    ///
    /// # Errors
    /// If an entry ends behind the page.
    pub(super) fn with_heads(self) -> Result<Page, Malformed> {
        let restarts = self.restarts();
        if restarts == 0 {
            return Ok(self);
        }
        let key = |index| Ok(self.entry(self.restart(index)?)?.suffix);
        let (first, last) = (key(0)?, key(restarts - 1)?);
        let common = common_prefix(first, last);
        let heads = (0..restarts).map(|index| Ok(head_of(key(index)?.get(common..).unwrap_or_default())));
        let heads = heads.collect::<Result<Box<[u64]>, Malformed>>()?;
        let at = self.entry(self.restart(0)?)?.payload_at - first.len();
        Ok(Page { heads: Some(Heads { common: at..at + common, heads }), ..self })
    }

    /// One that says nothing.
    #[cfg(test)]
    pub(crate) fn blank(bytes: usize) -> Page {
        let address = PageAddress { no: 0, units: 1 };
        let (kind, bytes) = (PageKind::Leaf, vec![0; bytes].into());
        Page { bytes, kind, address, previous: None, next: None, entries_end: 0, restarts: 0, heads: None }
    }

    /// Bytes in memory.
    pub(crate) fn size_bytes(&self) -> usize {
        self.bytes.len() + self.heads.as_ref().map_or(0, |heads| size_of_val(&*heads.heads))
    }

    /// All its bytes.
    pub(crate) fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Returns the bytes between the header and the restarts.
    pub(crate) fn body(&self) -> &[u8] {
        &self.bytes[HEADER_BYTES..self.entries_end as usize]
    }

    pub(crate) fn restarts(&self) -> usize {
        usize::from(self.restarts)
    }

    /// Returns the offset of restart `index`.
    #[inline]
    pub(crate) fn restart(&self, index: usize) -> Result<usize, Malformed> {
        let at = self.bytes.len() - 2 * (usize::from(self.restarts) - index);
        Decoder::at(&self.bytes, at).u16().map(usize::from)
    }

    /// Returns whether there is no entry at `at`, because it is the end.
    #[inline]
    pub(crate) fn is_end(&self, at: usize) -> bool {
        at >= self.entries_end as usize
    }

    /// Behind the last entry.
    pub(crate) fn entries_end(&self) -> usize {
        self.entries_end as usize
    }

    /// The last restart that is not behind `at`; the first one if all are.
    pub(crate) fn restart_at_or_before(&self, at: usize) -> Result<usize, Malformed> {
        let (mut low, mut high) = (0, self.restarts());
        while low + 1 < high {
            let middle = usize::midpoint(low, high);
            if self.restart(middle)? <= at {
                low = middle;
            } else {
                high = middle;
            }
        }
        self.restart(low)
    }

    /// Returns whether its last entry is of `key`.
    pub(crate) fn ends_with(&self, key: &[u8]) -> Result<bool, Malformed> {
        let mut at = self.restart_at_or_before(self.entries_end())?;
        let mut last = Vec::new();
        while !self.is_end(at) {
            let entry = self.entry(at)?;
            last.truncate(entry.shared);
            last.extend_from_slice(entry.suffix);
            at = entry.end;
        }
        Ok(last == key)
    }

    /// The entry at `at`.
    #[inline]
    pub(crate) fn entry(&self, at: usize) -> Result<RawEntry<'_>, Malformed> {
        let bytes = &self.bytes[..self.entries_end as usize];
        // Nearly always the three lengths take a byte each.
        let (shared, suffix_len, payload_len, suffix_at) = match bytes.get(at..at + 3) {
            Some(&[shared, suffix_len, payload_len]) if (shared | suffix_len | payload_len) < 0x80 => {
                (usize::from(shared), usize::from(suffix_len), usize::from(payload_len), at + 3)
            }
            _ => {
                let mut decoder = Decoder::at(bytes, at);
                let lengths = (decoder.varint_usize()?, decoder.varint_usize()?, decoder.varint_usize()?);
                (lengths.0, lengths.1, lengths.2, decoder.position())
            }
        };
        let payload_at = suffix_at.saturating_add(suffix_len);
        let end = payload_at.saturating_add(payload_len);
        match (bytes.get(suffix_at..payload_at), bytes.get(payload_at..end)) {
            (Some(suffix), Some(payload)) => Ok(RawEntry { shared, suffix, payload, payload_at, end }),
            _ => Err(Malformed::new(at, "an entry ends behind its page")),
        }
    }

    /// A restart whose key is smaller than `key`, or the first one, and one behind it whose key is larger, or the end:
    /// as far as heads tell.
    #[inline]
    fn restarts_around(&self, key: &[u8]) -> (usize, usize) {
        let all = self.restarts();
        let Some(Heads { common, heads }) = &self.heads else { return (0, all) };
        let common = self.bytes.get(common.clone()).unwrap_or_default();
        let (start, rest) = key.split_at(common.len().min(key.len()));
        match start.cmp(common) {
            Ordering::Less => (0, 1),
            Ordering::Greater => (all - 1, all),
            Ordering::Equal => {
                let head = head_of(rest);
                let smaller = heads.partition_point(|other| *other < head);
                let equal = heads[smaller..].iter().take_while(|other| **other == head).count();
                (smaller.saturating_sub(1), (smaller + equal).max(1))
            }
        }
    }

    /// The last restart whose entry is before `(key, sequence)`, or with `or_equal` not behind it; the first one if
    /// there is none. And the restart that follows it.
    fn restart_before(
        &self,
        key: &[u8],
        sequence: SequenceNo,
        or_equal: bool,
    ) -> Result<(usize, usize), Malformed> {
        let (mut low, mut high) = self.restarts_around(key);
        while low + 1 < high {
            let middle = usize::midpoint(low, high);
            let entry = self.entry(self.restart(middle)?)?;
            let order = match entry.suffix.cmp(key) {
                Ordering::Equal => sequence.cmp(&sequence_of(entry.payload)?),
                unequal => unequal,
            };
            if order == Ordering::Less || (or_equal && order == Ordering::Equal) {
                low = middle;
            } else {
                high = middle;
            }
        }
        let next = if low + 1 < self.restarts() { self.restart(low + 1)? } else { usize::MAX };
        Ok((self.restart(low)?, next))
    }

    /// The first entry that is not before `(key, sequence)`, and where it is; `None` if all are.
    pub(crate) fn search(&self, key: &[u8], sequence: SequenceNo) -> Result<Option<Found<'_>>, Malformed> {
        let (mut at, next_restart) = self.restart_before(key, sequence, false)?;
        // Bytes that the sought key has in common with the key before, which is smaller.
        let mut matched = 0;
        while !self.is_end(at) {
            let entry = self.entry(at)?;
            if at == next_restart {
                matched = 0;
            }
            match compare(&entry, key, sequence, &mut matched)? {
                Ordering::Less => at = entry.end,
                order => return Ok(Some(Found { at, is_equal: order == Ordering::Equal, entry })),
            }
        }
        Ok(None)
    }

    /// In an index page: the last entry that is not behind `(key, sequence)`, or the first one, and the entry that
    /// follows it.
    pub(crate) fn search_child(&self, key: &[u8], sequence: SequenceNo) -> Result<RawEntry<'_>, Malformed> {
        let (mut at, next_restart) = self.restart_before(key, sequence, true)?;
        let mut child = self.entry(at)?;
        let mut matched = 0;
        // The next restart is behind what is sought.
        while !self.is_end(at) && at != next_restart {
            let entry = self.entry(at)?;
            match compare(&entry, key, sequence, &mut matched)? {
                Ordering::Less => child = entry,
                // With the same key: exactly this one only if the numbers are the same, too.
                Ordering::Equal if sequence_of(entry.payload)? == sequence => return Ok(entry),
                _ => return Ok(child),
            }
            at = entry.end;
        }
        Ok(child)
    }
}

/// Compares an entry with what is sought, given how much of it matched the entry before (which is smaller). Equal means
/// the same key, and a sequence number that is not larger.
#[inline]
fn compare(
    entry: &RawEntry<'_>,
    key: &[u8],
    sequence: SequenceNo,
    matched: &mut usize,
) -> Result<Ordering, Malformed> {
    if entry.shared != *matched {
        // It differs from the entry before behind where that differed from the key (so it is smaller, too), or where
        // that still matched.
        return Ok(entry.shared.cmp(matched).reverse());
    }
    let rest = &key[*matched..];
    let common = entry.suffix.iter().zip(rest).take_while(|(a, b)| a == b).count();
    match (entry.suffix.get(common), rest.get(common)) {
        (None, None) => {
            *matched += common;
            let is_older = sequence_of(entry.payload)? <= sequence;
            Ok(if is_older { Ordering::Equal } else { Ordering::Less })
        }
        (Some(_), None) => Ok(Ordering::Greater),
        (Some(a), Some(b)) if a > b => Ok(Ordering::Greater),
        _ => {
            *matched += common;
            Ok(Ordering::Less)
        }
    }
}
