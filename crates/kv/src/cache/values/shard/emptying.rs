//! Which block is emptied, and what of it stays: steps 2 and 3 of a shard.

use std::ops::Range;

use super::queue::{Block, Which};
use super::{Place, Shard, hash_of};
use crate::cache::values::item::{HEADER_BYTES, Header, MAX_USES};

/// The small queue of S3-FIFO has this fraction (1/n) of the bytes.
const SMALL_QUEUE_DIVISOR: usize = 10;

/// At most this fraction of a block survives when it is evicted.
const STAYING_PART: (usize, usize) = (3, 4);

impl Shard {
    /// Empties a block; whether there was one.
    pub(super) fn empty_one(&mut self) -> bool {
        let all_bytes = self.small.bytes + self.main.bytes;
        let has_its_part = self.small.bytes * SMALL_QUEUE_DIVISOR >= all_bytes;
        let which = if has_its_part || self.main.is_empty() { Which::Small } else { Which::Main };
        let Some(block) = self.queue(which).pop() else { return false };
        match block {
            Block::Large { no } => {
                let bytes = self.large[no].bytes();
                self.queue(which).bytes -= bytes;
                self.pass_large(which, no);
            }
            Block::Slot { no, used_bytes } => {
                self.queue(which).bytes -= self.block_bytes;
                let may_all_stay =
                    which == Which::Small && self.small.bytes * SMALL_QUEUE_DIVISOR <= 2 * all_bytes;
                let most =
                    if may_all_stay { used_bytes } else { used_bytes / STAYING_PART.1 * STAYING_PART.0 };
                self.empty_slot(which, no * self.block_bytes..no * self.block_bytes + used_bytes, most);
                self.free.push(no);
            }
        }
        self.trim();
        true
    }

    /// Drops or moves on all that is in a part of the slots; moves on `staying` bytes at most.
    fn empty_slot(&mut self, which: Which, bytes: Range<usize>, mut staying: usize) {
        let least_uses = self.least_uses(bytes.clone(), staying);
        let mut byte = bytes.start;
        while byte < bytes.end {
            let header = Header::read(&self.slots.bytes()[byte..byte + HEADER_BYTES]);
            let item_bytes = header.item_bytes();
            if header.is_live {
                let stays = header.uses >= least_uses && item_bytes <= staying;
                if stays && self.move_on(which, byte, &header, least_uses) {
                    staying -= item_bytes;
                } else {
                    self.drop_item(which, Place::at(byte), &header);
                }
            }
            byte += item_bytes;
        }
    }

    /// The uses of what stays of a block: one, or more if that would be more than `most` bytes.
    fn least_uses(&self, bytes: Range<usize>, most: usize) -> u8 {
        let mut by_uses = [0; MAX_USES as usize + 1];
        let mut byte = bytes.start;
        while byte < bytes.end {
            let header = Header::read(&self.slots.bytes()[byte..byte + HEADER_BYTES]);
            let item_bytes = header.item_bytes();
            if header.is_live {
                by_uses[header.uses.min(MAX_USES) as usize] += item_bytes;
            }
            byte += item_bytes;
        }
        let fits = |least: &u8| by_uses[*least as usize..].iter().sum::<usize>() <= most;
        (1..MAX_USES).find(fits).unwrap_or(MAX_USES)
    }

    /// Moves an item to the end of the main queue, if there is space.
    fn move_on(&mut self, which: Which, byte: usize, header: &Header, least_uses: u8) -> bool {
        let item_bytes = header.item_bytes();
        if self.room(Which::Main) < item_bytes && !self.open(Which::Main) {
            return false;
        }
        let to = self.take(Which::Main, item_bytes);
        self.slots.bytes_mut().copy_within(byte..byte + item_bytes, to);
        let uses = if which == Which::Main { header.uses - least_uses } else { 0 };
        self.set_header(Place::at(to), &Header { uses, ..*header });
        let (hash, from) = (hash_of(header.owner, header.position), Place::at(byte));
        if let Some(place) = self.index.find_mut(hash, |place| *place == from) {
            *place = Place::at(to);
        }
        #[cfg(test)]
        {
            self.moved_bytes += item_bytes;
        }
        true
    }

    fn drop_item(&mut self, which: Which, place: Place, header: &Header) {
        let hash = hash_of(header.owner, header.position);
        if let Ok(entry) = self.index.find_entry(hash, |other| *other == place) {
            entry.remove();
        }
        if which == Which::Small {
            self.ghosts.add(hash);
        }
    }

    fn pass_large(&mut self, which: Which, no: usize) {
        let header = self.large[no].header;
        if header.is_live && header.uses > 0 {
            let large = &mut self.large[no];
            large.header.uses = if which == Which::Main { header.uses - 1 } else { 0 };
            large.queue = Which::Main;
            self.main.bytes += self.large[no].bytes();
            self.main.blocks.push_back(Block::Large { no });
            return;
        }
        if header.is_live {
            self.drop_item(which, Place::large(no), &header);
        }
        self.large_bytes -= self.large.remove(no).bytes();
    }
}
