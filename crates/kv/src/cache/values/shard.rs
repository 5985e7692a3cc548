//! Some of the values that are held.
//!
//! What is read again stays (S3-FIFO: Yang and others, FIFO queues are all you need for cache eviction, SOSP 2023), but
//! for that blocks are what queues consist of, and what comes free is a whole block:
//!
//! 1. A new value goes to the end of the small queue's last block. If it was pushed out of that queue not long ago, or
//!    takes the place of a value that was used, it goes to the main queue's.
//! 2. If a block is needed and may not be had, one is emptied: the small queue's first, if that queue has a tenth of
//!    all, or the main one's.
//! 3. What was used in a small queue's block goes on to the main queue; what was used in the main one's once more to
//!    its end, with a use less. The rest is dropped. At most three quarters of a block stay, those with the most uses,
//!    unless it is of a small queue that has no more than it is meant to have: so to get one block no more than a few
//!    are copied, however often all is used.
//!
//! Invariants:
//! - the index leads to each live item, and to nothing else;
//! - a slot is part of one block, or is free with memory (`free`), or is one that takes none (`empty`, and those from
//!   `fresh` on);
//! - all together take what they may at most, but for what the index grew by since.

#[cfg(test)]
mod checked;
mod emptying;
mod queue;

use bytes::Bytes;
use hashbrown::HashTable;
use tanada_io::Slots;

use super::super::cached_version::{Newest, later};
use super::ghosts::Ghosts;
use super::item::{HEADER_BYTES, Header, MAX_USES, UNIT_BYTES};
use crate::entry::SequenceNo;
use queue::{Block, Queue, Which};

/// An item larger than this fraction (1/n) of a block is allocated on its own.
const LARGE_ITEM_DIVISOR: usize = 4;

/// Bytes of a large item beside its value.
const LARGE_ITEM_OVERHEAD_BYTES: usize = 128;

/// A large item has at most this fraction (1/n) of its shard.
const MAX_LARGE_ITEM_DIVISOR: usize = 4;

/// Where an item is: in units from the first slot on, or which of the large ones it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place(u32);

/// Marks a place that is an index into the large items.
const LARGE_ITEM_BIT: u32 = 1 << 31;

/// Slots that can be told by a place.
pub(super) fn most_slots(block_bytes: usize) -> usize {
    LARGE_ITEM_BIT as usize / (block_bytes / UNIT_BYTES)
}

impl Place {
    fn at(byte: usize) -> Place {
        Place((byte / UNIT_BYTES) as u32)
    }

    fn large(no: usize) -> Place {
        Place(no as u32 | LARGE_ITEM_BIT)
    }

    fn found(self) -> At {
        match self.0 & LARGE_ITEM_BIT {
            0 => At::Byte(self.0 as usize * UNIT_BYTES),
            _ => At::Large((self.0 & !LARGE_ITEM_BIT) as usize),
        }
    }
}

enum At {
    Byte(usize),
    Large(usize),
}

/// An item that has memory of its own.
#[derive(Debug)]
struct Large {
    queue: Which,
    header: Header,
    value_and_key: Bytes,
}

impl Large {
    fn bytes(&self) -> usize {
        self.value_and_key.len() / 8 * 9 + LARGE_ITEM_OVERHEAD_BYTES
    }
}

/// A value to be held.
pub(super) struct Put<'a> {
    /// `uses` and `is_live` are of no account.
    pub(super) header: Header,
    pub(super) value: &'a [u8],
    pub(super) key: &'a [u8],
}

pub(super) struct Shard {
    slots: Slots,
    block_bytes: usize,
    most_bytes: usize,
    index: HashTable<Place>,
    small: Queue,
    main: Queue,
    /// Slots that have memory and are in no block.
    free: Vec<usize>,
    /// Slots that were given back.
    empty: Vec<usize>,
    /// From this one on no slot was ever used.
    fresh: usize,
    large: slab::Slab<Large>,
    large_bytes: usize,
    ghosts: Ghosts,
    /// Bytes that were copied while blocks were emptied.
    #[cfg(test)]
    pub(super) moved_bytes: usize,
}

/// What the index goes by.
#[inline]
pub(super) fn hash_of(owner: u64, position: u64) -> u64 {
    position.wrapping_add(owner.wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

fn header_at(slots: &Slots, large: &slab::Slab<Large>, place: Place) -> Header {
    match place.found() {
        At::Byte(byte) => Header::read(&slots.bytes()[byte..byte + HEADER_BYTES]),
        At::Large(no) => large[no].header,
    }
}

fn hash_at(slots: &Slots, large: &slab::Slab<Large>, place: Place) -> u64 {
    let header = header_at(slots, large, place);
    hash_of(header.owner, header.position)
}

impl Shard {
    /// One that never has more than this many bytes.
    pub(super) fn new(block_bytes: usize, bytes: usize) -> Shard {
        // What is moved while a block is emptied needs another one.
        let count = (bytes / block_bytes + 2).min(most_slots(block_bytes));
        Shard {
            slots: Slots::new(block_bytes, count),
            block_bytes,
            most_bytes: bytes,
            index: HashTable::new(),
            small: Queue::default(),
            main: Queue::default(),
            free: Vec::new(),
            empty: Vec::new(),
            fresh: 0,
            large: slab::Slab::new(),
            large_bytes: 0,
            ghosts: Ghosts::default(),
            #[cfg(test)]
            moved_bytes: 0,
        }
    }

    /// What it takes.
    pub(super) fn bytes(&self) -> usize {
        let slots = self.fresh - self.empty.len();
        slots * self.block_bytes + self.large_bytes + self.index.allocation_size() + self.ghosts.bytes()
    }

    fn find(&self, hash: u64, owner: u64, position: u64) -> Option<Place> {
        let (slots, large) = (&self.slots, &self.large);
        let is_it = |place: &Place| {
            let header = header_at(slots, large, *place);
            header.owner == owner && header.position == position
        };
        self.index.find(hash, is_it).copied()
    }

    /// What is known of an item, whoever's it is.
    pub(super) fn peek(&self, owner: u64, position: u64) -> Option<Header> {
        let place = self.find(hash_of(owner, position), owner, position)?;
        Some(header_at(&self.slots, &self.large, place))
    }

    /// The same with its value and its key, which are copied but for large ones. It counts as a use.
    pub(super) fn get(&mut self, owner: u64, position: u64) -> Option<(Header, Bytes)> {
        let place = self.find(hash_of(owner, position), owner, position)?;
        let mut header = header_at(&self.slots, &self.large, place);
        if header.uses < MAX_USES {
            header.uses += 1;
            self.set_header(place, &header);
        }
        let bytes = match place.found() {
            At::Byte(byte) => {
                let begin = byte + HEADER_BYTES;
                Bytes::copy_from_slice(&self.slots.bytes()[begin..begin + header.content_bytes()])
            }
            At::Large(no) => self.large[no].value_and_key.clone(),
        };
        Some((header, bytes))
    }

    /// What is known of being the newest version is known from now on, if that version is held.
    pub(super) fn note_newest(
        &mut self,
        owner: u64,
        position: u64,
        (sequence, key): (SequenceNo, &[u8]),
        newest: Newest,
    ) {
        let Some(place) = self.find(hash_of(owner, position), owner, position) else { return };
        let mut header = header_at(&self.slots, &self.large, place);
        if header.sequence == sequence && self.content(place, &header).1 == key {
            header.newest = later(header.newest, Some(newest));
            self.set_header(place, &header);
        }
    }

    fn set_header(&mut self, place: Place, header: &Header) {
        match place.found() {
            At::Byte(byte) => header.write(&mut self.slots.bytes_mut()[byte..byte + HEADER_BYTES]),
            At::Large(no) => self.large[no].header = *header,
        }
    }

    /// What is held is of no use any more.
    pub(super) fn forget(&mut self, owner: u64, position: u64) {
        let hash = hash_of(owner, position);
        if let Some(place) = self.find(hash, owner, position) {
            self.remove(hash, place);
        }
    }

    fn remove(&mut self, hash: u64, place: Place) {
        if let Ok(entry) = self.index.find_entry(hash, |other| *other == place) {
            entry.remove();
        }
        let mut header = header_at(&self.slots, &self.large, place);
        header.is_live = false;
        self.set_header(place, &header);
        if let At::Large(no) = place.found() {
            let large = &mut self.large[no];
            let (queue, before) = (large.queue, large.bytes());
            large.value_and_key = Bytes::new();
            let less = before - large.bytes();
            self.large_bytes -= less;
            self.queue(queue).bytes -= less;
        }
    }

    /// Holds a value, unless a later one is held of its key; what is known of one and the same is joined.
    pub(super) fn put(&mut self, put: &Put<'_>) {
        let mut header = Header { uses: 0, is_live: true, ..put.header };
        let hash = hash_of(header.owner, header.position);
        let mut to_main = false;
        if let Some(place) = self.find(hash, header.owner, header.position) {
            let before = header_at(&self.slots, &self.large, place);
            if before.sequence > header.sequence {
                return;
            }
            header.uses = before.uses;
            if before.sequence == header.sequence && self.content(place, &before) == (put.value, put.key) {
                header.newest = later(before.newest, header.newest);
                self.set_header(place, &header);
                return;
            }
            let has_same_sizes =
                (before.value_bytes, before.key_bytes) == (header.value_bytes, header.key_bytes);
            if let At::Byte(byte) = place.found()
                && has_same_sizes
            {
                self.write(byte, &header, put);
                return;
            }
            self.remove(hash, place);
            to_main = before.uses > 0;
        }
        let queue = if self.ghosts.take(hash) || to_main { Which::Main } else { Which::Small };
        if let Some(place) = self.append(queue, &header, put) {
            self.note(hash, place);
        }
    }

    /// Value and key of an item.
    fn content(&self, place: Place, header: &Header) -> (&[u8], &[u8]) {
        let bytes = match place.found() {
            At::Byte(byte) => &self.slots.bytes()[byte + HEADER_BYTES..][..header.content_bytes()],
            At::Large(no) => &self.large[no].value_and_key[..],
        };
        bytes.split_at((header.value_bytes as usize).min(bytes.len()))
    }

    /// The index leads to a new item.
    fn note(&mut self, hash: u64, place: Place) {
        let (slots, large) = (&self.slots, &self.large);
        self.index.insert_unique(hash, place, |place| hash_at(slots, large, *place));
        self.ghosts.fit(self.index.len());
    }

    fn write(&mut self, byte: usize, header: &Header, put: &Put<'_>) {
        let item = &mut self.slots.bytes_mut()[byte..byte + header.item_bytes()];
        header.write(item);
        let value_end = HEADER_BYTES + put.value.len();
        item[HEADER_BYTES..value_end].copy_from_slice(put.value);
        item[value_end..value_end + put.key.len()].copy_from_slice(put.key);
    }

    /// Puts an item behind the others of a queue, for which others may have to go; `None` if there is no space for it
    /// at all.
    fn append(&mut self, which: Which, header: &Header, put: &Put<'_>) -> Option<Place> {
        let item_bytes = header.item_bytes();
        if item_bytes > self.block_bytes / LARGE_ITEM_DIVISOR {
            return self.append_large(which, header, put);
        }
        if self.room(which) < item_bytes {
            // What was moved on meanwhile may have opened a block of this queue.
            let has_room = self.make_room_for_block() && (self.room(which) >= item_bytes || self.open(which));
            if !has_room {
                return None;
            }
        }
        let byte = self.take(which, item_bytes);
        self.write(byte, header, put);
        Some(Place::at(byte))
    }

    fn append_large(&mut self, queue: Which, header: &Header, put: &Put<'_>) -> Option<Place> {
        if header.item_bytes() > self.most_with_spare() / MAX_LARGE_ITEM_DIVISOR
            || self.large.len() >= LARGE_ITEM_BIT as usize
        {
            return None;
        }
        let value_and_key = [put.value, put.key].concat().into();
        let large = Large { queue, header: *header, value_and_key };
        let bytes = large.bytes();
        if !self.make_room(bytes) {
            return None;
        }
        let no = self.large.insert(large);
        self.large_bytes += bytes;
        let queue = self.queue(queue);
        queue.bytes += bytes;
        queue.blocks.push_back(Block::Large { no });
        Some(Place::large(no))
    }

    fn queue(&mut self, which: Which) -> &mut Queue {
        match which {
            Which::Small => &mut self.small,
            Which::Main => &mut self.main,
        }
    }

    /// Bytes that are left in the open block of a queue.
    fn room(&mut self, which: Which) -> usize {
        let open = self.queue(which).open;
        open.map_or(0, |(_, used_bytes)| self.block_bytes - used_bytes)
    }

    /// Takes so many of them, which there are: where they begin.
    fn take(&mut self, which: Which, bytes: usize) -> usize {
        let block_bytes = self.block_bytes;
        let open = self.queue(which).open.as_mut();
        let (no, used_bytes) = open.expect("who takes has seen that there is room");
        let byte = *no * block_bytes + *used_bytes;
        *used_bytes += bytes;
        byte
    }

    /// Another block for a queue; whether there is one.
    fn open(&mut self, which: Which) -> bool {
        let no = match self.free.pop().or_else(|| self.empty.pop()) {
            Some(no) => no,
            None if self.fresh < self.slots.count() => {
                self.fresh += 1;
                self.fresh - 1
            }
            None => return false,
        };
        let bytes = self.block_bytes;
        let queue = self.queue(which);
        if let Some((no, used_bytes)) = queue.open.replace((no, 0)) {
            queue.blocks.push_back(Block::Slot { no, used_bytes });
        }
        queue.bytes += bytes;
        true
    }

    /// Empties blocks until another one may be filled; whether it may.
    fn make_room_for_block(&mut self) -> bool {
        if self.slots.count() == 0 {
            return false;
        }
        while self.bytes() - self.free.len() * self.block_bytes + self.block_bytes > self.most_with_spare()
            || !self.has_slot()
        {
            if !self.empty_one() {
                return false;
            }
        }
        // The index may have grown by more than a block since.
        while self.free.len() > 1 && self.bytes() > self.most_bytes {
            let no = self.free.pop();
            no.into_iter().for_each(|no| self.give_back(no));
        }
        true
    }

    /// Returns whether another block can be opened.
    fn has_slot(&self) -> bool {
        !self.free.is_empty() || !self.empty.is_empty() || self.fresh < self.slots.count()
    }

    /// Empties blocks until something may be held that lies in none; whether it may.
    fn make_room(&mut self, bytes: usize) -> bool {
        while self.bytes() + bytes > self.most_with_spare() {
            match self.free.pop() {
                Some(no) => self.give_back(no),
                None if self.empty_one() => {}
                None => return false,
            }
        }
        true
    }

    /// Bytes at most, but for the block that may be needed for what stays while another one is emptied.
    fn most_with_spare(&self) -> usize {
        self.most_bytes.saturating_sub(self.block_bytes)
    }

    fn give_back(&mut self, no: usize) {
        self.slots.give_back(no);
        self.empty.push(no);
    }

    /// May have this many bytes from now on. Drops about `most` of what is too much; whether that was enough.
    pub(super) fn shrink(&mut self, bytes: usize, most: usize) -> bool {
        self.trim();
        self.most_bytes = bytes.max(self.bytes().saturating_sub(most));
        while self.bytes() > self.most_bytes {
            if let Some(no) = self.free.pop() {
                self.give_back(no);
            } else if !self.empty_one() {
                break;
            }
        }
        self.bytes() <= bytes || (self.small.is_empty() && self.main.is_empty())
    }

    /// Makes what leads to items smaller if these have become far fewer.
    fn trim(&mut self) {
        if self.index.len() < self.index.capacity() / 4 {
            let (slots, large) = (&self.slots, &self.large);
            self.index.shrink_to(self.index.len() * 2, |place| hash_at(slots, large, *place));
            self.ghosts.fit(self.index.len());
        }
    }
}
