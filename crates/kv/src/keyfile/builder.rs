//! Fills one page after another.

use super::page::{HEADER_BYTES, PageAddress, PageKind, RESTART_INTERVAL, checksum};
use super::prefix::common_prefix;
use crate::wire::put_varint;

/// One page that is being filled.
#[derive(Debug)]
pub(super) struct PageBuilder {
    kind: PageKind,
    unit_bytes: usize,
    bytes: Vec<u8>,
    restarts: Vec<u16>,
    entries: u16,
    /// End of the first entry.
    first_end: usize,
    last_key: Vec<u8>,
}

/// In an index page an entry is a restart if it shares at most this many bytes with the one before.
const MAX_SHARED_AT_RESTART: usize = 32;

impl PageBuilder {
    pub(super) fn new(kind: PageKind, unit_bytes: usize) -> PageBuilder {
        let bytes = vec![0; HEADER_BYTES];
        PageBuilder {
            kind,
            unit_bytes,
            bytes,
            restarts: Vec::new(),
            entries: 0,
            first_end: 0,
            last_key: Vec::new(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries == 0
    }

    pub(super) fn last_key(&self) -> &[u8] {
        &self.last_key
    }

    pub(super) fn entries(&self) -> u16 {
        self.entries
    }

    /// Returns whether one more entry fits: into one unit, or one more than the first entry takes if that is longer.
    pub(super) fn has_room(&self, key: &[u8], payload: &[u8]) -> bool {
        let (shared, is_restart) = self.shares(key);
        // Three bytes for each length are more than enough for what fits into a unit.
        let needed = 9 + key.len() - shared + payload.len() + 2 * usize::from(is_restart);
        let units = if self.is_long() { self.first_end.div_ceil(self.unit_bytes) + 1 } else { 1 };
        self.bytes.len() + 2 * self.restarts.len() + needed <= units * self.unit_bytes
    }

    /// Returns whether it has more than a unit. Where the entries behind that begin no restart says, for its number is
    /// too small for some.
    fn is_long(&self) -> bool {
        self.bytes.len() >= self.unit_bytes
    }

    /// Returns how many bytes the next entry shares with the one before, and whether it is a restart.
    fn shares(&self, key: &[u8]) -> (usize, bool) {
        let shared = common_prefix(&self.last_key, key);
        let is_nth = usize::from(self.entries).is_multiple_of(RESTART_INTERVAL);
        // Index pages are few, and each is searched for many keys.
        let is_cheap = self.kind == PageKind::Index && shared <= MAX_SHARED_AT_RESTART;
        let is_restart = self.entries == 0 || (!self.is_long() && (is_nth || is_cheap));
        (if is_restart { 0 } else { shared }, is_restart)
    }

    /// Adds an entry; the page grows over its unit if need be.
    pub(super) fn add(&mut self, key: &[u8], payload: &[u8]) {
        let (shared, is_restart) = self.shares(key);
        if is_restart {
            self.restarts.push(self.bytes.len() as u16);
        }
        put_varint(&mut self.bytes, shared as u64);
        put_varint(&mut self.bytes, (key.len() - shared) as u64);
        put_varint(&mut self.bytes, payload.len() as u64);
        self.bytes.extend_from_slice(&key[shared..]);
        self.bytes.extend_from_slice(payload);
        self.entries += 1;
        if self.entries == 1 {
            self.first_end = self.bytes.len();
        }
        self.last_key.truncate(shared);
        self.last_key.extend_from_slice(&key[shared..]);
    }

    /// Units that the page takes.
    pub(super) fn units(&self) -> u16 {
        let bytes = self.bytes.len() + 2 * self.restarts.len();
        bytes.div_ceil(self.unit_bytes) as u16
    }

    /// The page that is to be written at `no`; the builder is empty afterwards.
    pub(super) fn finish(&mut self, no: u32) -> UnsealedPage {
        let address = PageAddress { no, units: self.units() };
        let mut bytes = std::mem::replace(&mut self.bytes, vec![0; HEADER_BYTES]);
        let restarts = std::mem::take(&mut self.restarts);
        let entries_end = bytes.len() as u32;
        bytes.resize(usize::from(address.units) * self.unit_bytes - 2 * restarts.len(), 0);
        for restart in &restarts {
            bytes.extend_from_slice(&restart.to_be_bytes());
        }
        let entries = std::mem::take(&mut self.entries);
        let restarts = restarts.len() as u16;
        UnsealedPage { kind: self.kind, address, entries_end, restarts, entries, bytes }
    }
}

/// A page without its header.
#[derive(Debug)]
pub(super) struct UnsealedPage {
    pub(super) kind: PageKind,
    pub(super) address: PageAddress,
    pub(super) entries_end: u32,
    pub(super) restarts: u16,
    pub(super) entries: u16,
    /// With space for the header.
    pub(super) bytes: Vec<u8>,
}

impl UnsealedPage {
    /// The page as it is written in file `file_no`, with the units of the leaf pages before and behind it.
    pub(super) fn seal(self, file_no: u64, units_before: u16, units_behind: u16) -> Vec<u8> {
        let mut page = self.bytes;
        page[4..8].copy_from_slice(&self.address.no.to_be_bytes());
        page[8..12].copy_from_slice(&self.entries_end.to_be_bytes());
        let numbers = [self.address.units, units_before, units_behind, self.restarts, self.entries];
        for (index, number) in numbers.into_iter().enumerate() {
            page[12 + 2 * index..14 + 2 * index].copy_from_slice(&number.to_be_bytes());
        }
        page[22] = self.kind as u8;
        let checksum = checksum(file_no, &page);
        page[..4].copy_from_slice(&checksum.to_be_bytes());
        page
    }
}
