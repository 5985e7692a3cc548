//! Which chunk is where, and which room of the fast class is free: the truth that policies' wishes are held against.
//!
//! Invariants: a slot is free or belongs to one chunk; chunks with a slot are never more than the capacity.

use tanada_placement::{ChunkNo, Layout, Tier};

const NO_SLOT: u32 = u32::MAX;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Held {
    /// Nothing of it is in the fast class.
    Not,
    /// Room is reserved, the copy is under way.
    Reserved,
    /// A copy.
    Mirror,
    /// Its home.
    Home,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    slot: u32,
    held: Held,
}

#[derive(Debug)]
pub(super) struct Store {
    entries: Vec<Entry>,
    free: Vec<u32>,
    capacity: u32,
    taken: u32,
    most_taken: u32,
    /// Per object: chunks with room, and the most allowed.
    quotas: Vec<(u32, u32)>,
    has_rules: bool,
}

impl Store {
    pub(super) fn new(layout: &Layout, capacity: u32) -> Store {
        let quota = |object| {
            let first = layout.all(tanada_placement::ObjectNo(object)).first().map_or(0, |range| range.start);
            (0, layout.rule_of(ChunkNo(first)).quota_chunks.unwrap_or(u32::MAX))
        };
        Store {
            entries: vec![Entry { slot: NO_SLOT, held: Held::Not }; layout.chunks() as usize],
            free: (0..capacity).rev().collect(),
            capacity,
            taken: 0,
            most_taken: 0,
            quotas: (0..layout.objects()).map(quota).collect(),
            has_rules: layout.has_rules(),
        }
    }

    pub(super) fn exists(&self, chunk: ChunkNo) -> bool {
        chunk.index() < self.entries.len()
    }

    pub(super) fn held(&self, chunk: ChunkNo) -> Held {
        self.entries[chunk.index()].held
    }

    /// The slot that reads of the chunk go to.
    pub(super) fn readable(&self, chunk: ChunkNo) -> Option<u32> {
        let entry = self.entries[chunk.index()];
        matches!(entry.held, Held::Mirror | Held::Home).then_some(entry.slot)
    }

    /// The slot that the chunk has room in.
    pub(super) fn slot(&self, chunk: ChunkNo) -> Option<u32> {
        Some(self.entries[chunk.index()].slot).filter(|slot| *slot != NO_SLOT)
    }

    pub(super) fn is_full(&self) -> bool {
        self.free.is_empty()
    }

    pub(super) fn most_taken(&self) -> u32 {
        self.most_taken
    }

    /// Whether a user's rules let the chunk in.
    pub(super) fn allows(&self, layout: &Layout, chunk: ChunkNo) -> bool {
        if !self.has_rules {
            return true;
        }
        let owner = layout.owner(chunk).and_then(|(object, _)| self.quotas.get(object.0 as usize));
        let (taken, most) = owner.copied().unwrap_or((0, 0));
        layout.rule_of(chunk).pin != Some(Tier::Slow) && taken < most
    }

    /// Gives the chunk room; `None` if there is none.
    pub(super) fn reserve(&mut self, layout: &Layout, chunk: ChunkNo) -> Option<u32> {
        let slot = self.free.pop()?;
        self.entries[chunk.index()] = Entry { slot, held: Held::Reserved };
        self.count(layout, chunk, 1);
        self.taken += 1;
        self.most_taken = self.most_taken.max(self.taken);
        assert!(self.taken <= self.capacity, "more chunks in the fast class than it has room for");
        Some(slot)
    }

    /// What the chunk has room for is there now.
    pub(super) fn hold(&mut self, chunk: ChunkNo, held: Held) {
        let entry = &mut self.entries[chunk.index()];
        assert!(entry.slot != NO_SLOT && held != Held::Not, "{chunk} has no room in the fast class");
        entry.held = held;
    }

    /// The chunk gives up its room.
    pub(super) fn release(&mut self, layout: &Layout, chunk: ChunkNo) {
        let entry =
            std::mem::replace(&mut self.entries[chunk.index()], Entry { slot: NO_SLOT, held: Held::Not });
        if entry.slot != NO_SLOT {
            self.free.push(entry.slot);
            self.taken -= 1;
            self.count(layout, chunk, u32::MAX);
        }
    }

    fn count(&mut self, layout: &Layout, chunk: ChunkNo, by: u32) {
        if self.has_rules
            && let Some((object, _)) = layout.owner(chunk)
            && let Some((taken, _)) = self.quotas.get_mut(object.0 as usize)
        {
            *taken = taken.wrapping_add(by);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tanada_placement::{ObjectNo, Rule};

    #[test]
    fn room_is_given_once_and_comes_back() {
        let mut layout = Layout::new(10);
        layout.add("a", 100);
        let mut store = Store::new(&layout, 2);
        let (first, second) = (store.reserve(&layout, ChunkNo(1)), store.reserve(&layout, ChunkNo(2)));
        assert!(first.is_some() && second.is_some() && first != second);
        assert_eq!((store.reserve(&layout, ChunkNo(3)), store.is_full()), (None, true));
        assert_eq!(store.readable(ChunkNo(1)), None);
        store.hold(ChunkNo(1), Held::Mirror);
        assert_eq!(store.readable(ChunkNo(1)), first);
        store.release(&layout, ChunkNo(1));
        store.release(&layout, ChunkNo(1));
        assert_eq!((store.reserve(&layout, ChunkNo(3)), store.most_taken()), (first, 2));
    }

    #[test]
    fn quotas_and_pins_are_obeyed() {
        let mut layout = Layout::new(10);
        layout.add("a", 50);
        layout.add("b", 50);
        layout.set_rule(ObjectNo(0), Rule { pin: None, quota_chunks: Some(1) });
        layout.set_rule(ObjectNo(1), Rule { pin: Some(Tier::Slow), quota_chunks: None });
        let mut store = Store::new(&layout, 9);
        assert!(store.allows(&layout, ChunkNo(0)) && !store.allows(&layout, ChunkNo(5)));
        store.reserve(&layout, ChunkNo(0));
        assert!(!store.allows(&layout, ChunkNo(1)));
        store.release(&layout, ChunkNo(0));
        assert!(store.allows(&layout, ChunkNo(1)));
    }
}
