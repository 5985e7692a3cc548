//! What has to be so in a shard, looked after by tests.

use super::queue::{Block, Which};
use super::{Place, Shard, hash_of, header_at};

impl Shard {
    /// How many it holds. Looks after what has to be so.
    pub(in crate::cache::values) fn count_checked(&self) -> usize {
        let mut items = 0;
        let mut slots: Vec<usize> = [&self.free[..], &self.empty].concat();
        for (which, queue) in [(Which::Small, &self.small), (Which::Main, &self.main)] {
            let mut bytes = 0;
            let open = queue.open.map(|(no, used_bytes)| Block::Slot { no, used_bytes });
            for block in queue.blocks.iter().copied().chain(open) {
                match block {
                    Block::Large { no } => {
                        assert_eq!(self.large[no].queue, which);
                        bytes += self.large[no].bytes();
                        items += self.check(Place::large(no));
                    }
                    Block::Slot { no, used_bytes } => {
                        bytes += self.block_bytes;
                        slots.push(no);
                        let (begin, mut byte) = (no * self.block_bytes, 0);
                        while byte < used_bytes {
                            items += self.check(Place::at(begin + byte));
                            byte += header_at(&self.slots, &self.large, Place::at(begin + byte)).item_bytes();
                        }
                        assert_eq!(byte, used_bytes);
                    }
                }
            }
            assert_eq!(bytes, queue.bytes);
        }
        slots.sort_unstable();
        assert!(slots.into_iter().eq(0..self.fresh), "each slot is in one place");
        assert_eq!(self.large.iter().map(|(_, large)| large.bytes()).sum::<usize>(), self.large_bytes);
        assert_eq!(items, self.index.len());
        items
    }

    /// One if an item is live, and the index leads to it then.
    fn check(&self, place: Place) -> usize {
        let header = header_at(&self.slots, &self.large, place);
        let found = self.find(hash_of(header.owner, header.position), header.owner, header.position);
        assert_eq!(found == Some(place), header.is_live, "{header:?}");
        usize::from(header.is_live)
    }
}
