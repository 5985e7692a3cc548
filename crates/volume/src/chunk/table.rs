//! The chunks of one object: a directory of leaves, made when first needed, so that what was never written costs
//! nothing.

use std::sync::Arc;

use super::Chunk;

/// Chunks of one leaf: few, for there are volumes of many small objects.
pub(crate) const CHUNKS_PER_LEAF: u64 = 8;

/// Neighbouring chunks. Shared by the table and by the I/Os on its chunks, which count themselves here.
#[derive(Debug)]
pub(crate) struct Leaf {
    chunks: [Chunk; CHUNKS_PER_LEAF as usize],
}

impl Leaf {
    /// Chunk `no` of the object; the leaf must be the one that has it.
    pub(crate) fn chunk(&self, no: u64) -> &Chunk {
        &self.chunks[(no % CHUNKS_PER_LEAF) as usize]
    }
}

/// All chunks of an object. A clone has the same leaves.
#[derive(Debug, Clone, Default)]
pub(crate) struct ChunkTable {
    leaves: Vec<Option<Arc<Leaf>>>,
}

impl ChunkTable {
    /// The leaf of chunk `no`, if anything is known of it or its neighbours.
    pub(crate) fn leaf(&self, no: u64) -> Option<&Arc<Leaf>> {
        self.leaves.get((no / CHUNKS_PER_LEAF) as usize)?.as_ref()
    }

    /// The chunk, if anything is known of it.
    pub(crate) fn chunk(&self, no: u64) -> Option<&Chunk> {
        self.leaf(no).map(|leaf| leaf.chunk(no))
    }

    /// The leaf of chunk `no`, made if need be.
    pub(crate) fn leaf_or_new(&mut self, no: u64) -> &Arc<Leaf> {
        let place = (no / CHUNKS_PER_LEAF) as usize;
        if place >= self.leaves.len() {
            self.leaves.resize(place + 1, None);
        }
        self.leaves[place]
            .get_or_insert_with(|| Arc::new(Leaf { chunks: std::array::from_fn(|_| Chunk::default()) }))
    }

    /// All chunks from `first` on that have a leaf, with their numbers.
    pub(crate) fn iter_from(&self, first: u64) -> impl Iterator<Item = (u64, &Chunk)> {
        let first_leaf = first / CHUNKS_PER_LEAF;
        let leaves = self.leaves.iter().enumerate().skip(first_leaf as usize);
        leaves
            .flat_map(move |(place, leaf)| {
                let base = place as u64 * CHUNKS_PER_LEAF;
                leaf.iter().flat_map(move |leaf| {
                    leaf.chunks.iter().enumerate().map(move |(i, chunk)| (base + i as u64, chunk))
                })
            })
            .filter(move |(no, _)| *no >= first)
    }

    /// Forgets the leaves that lie wholly at or behind `first`.
    pub(crate) fn cut(&mut self, first: u64) {
        self.leaves.truncate(first.div_ceil(CHUNKS_PER_LEAF) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::Place;

    #[test]
    fn chunks_are_found_where_they_were_put() {
        let mut table = ChunkTable::default();
        for no in [0, 63, 64, 1000] {
            table.leaf_or_new(no).chunk(no).home.set(Some(Place { class: 0, no: no as u32 }));
        }
        let mapped: Vec<u64> =
            table.iter_from(63).filter(|(_, chunk)| chunk.home.get().is_some()).map(|(no, _)| no).collect();
        assert_eq!(mapped, [63, 64, 1000]);
        assert!(table.chunk(500).is_none());
        table.cut(65);
        assert!(table.chunk(1000).is_none());
        assert!(table.chunk(64).is_some());
        assert_eq!(table.leaves.len(), 9);
    }
}
