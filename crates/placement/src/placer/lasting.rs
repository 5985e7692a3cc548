//! What a policy has learned, from one session to the next, and from a volume's own statistics.

use std::collections::BTreeSet;

use super::Placer;
use crate::Result;
use crate::layout::{ChunkNo, ObjectNo, Rule, Tier};
use crate::memory::Memory;
use crate::policy::Counted;

/// What a volume's statistics tell of a chunk.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChunkCount {
    /// Of which object.
    pub object: ObjectNo,
    /// Which of its chunks.
    pub chunk: u64,
    /// Reads.
    pub reads: u64,
    /// Bytes read.
    pub bytes: u64,
    /// The part of the reads that were sequential, 0 to 1.
    pub sequential_share: f64,
}

impl Placer {
    /// What the policy has learned, as bytes, [`crate::MOST_MEMORY_BYTES`] at most; what it was told to remember and
    /// did not meet again is among it, and so is what other policies have learned before. Nothing if nothing was
    /// learned.
    pub fn memory(&self) -> Vec<u8> {
        let mut memory = self.learned();
        // What is there again, or whose room was not taken after all, needs nobody to bring it back.
        memory.displaced.retain(|(chunk, _)| !self.is_fast(*chunk));
        self.told(&memory)
    }

    fn learned(&self) -> Memory {
        let memory = self.policy.memory().beside(&self.remembered);
        let brought = self.still_brought();
        match &self.unfaded {
            // Nothing ran: it is no older than it was, and what I/Os alone or chunks on their way have changed is as it
            // is now.
            Some(unfaded) => {
                Memory { brought, displaced: memory.displaced, windows: memory.windows, ..unfaded.clone() }
            }
            None => Memory { brought, ..memory },
        }
    }

    fn told(&self, memory: &Memory) -> Vec<u8> {
        if memory.is_empty() { Vec::new() } else { memory.to_bytes(&self.layout) }
    }

    /// What policies have brought to the fast class and lies there still, as far as its object is there.
    fn still_brought(&self) -> Vec<ChunkNo> {
        let has_it = |name: &String| self.volume.open_object(name).is_ok();
        let absent: BTreeSet<ObjectNo> =
            self.absent.iter().filter(|(name, _)| has_it(name)).map(|(_, no)| *no).collect();
        let is_there = |chunk: &ChunkNo| {
            let owner = self.layout.owner(*chunk);
            owner.is_some_and(|(object, _)| absent.contains(&object)) || self.is_fast(*chunk)
        };
        self.brought.iter().copied().map(ChunkNo).filter(is_there).collect()
    }

    /// Takes over what was learned in another session. It fades with each session in which a query begins; where none
    /// does, [`Placer::memory`] gives it back as it was. Objects are found by their names; those that are added later
    /// find what is known of them then. Once, before queries run.
    ///
    /// # Errors
    /// If the bytes are not [`Placer::memory`]'s, are damaged, of another version, or of chunks of another size. Then
    /// nothing is remembered.
    pub fn remember(&mut self, bytes: &[u8]) -> Result<()> {
        self.take_over(bytes, true)
    }

    /// Takes over what another policy has learned in this session: it does not fade once more. What is under way for
    /// the other one is known from now on, and counts in quotas; [`Placer::finish_former`] is to be told what comes of
    /// it.
    ///
    /// # Errors
    /// As [`Placer::remember`].
    pub fn follow(&mut self, other: &Placer) -> Result<()> {
        let running = other.running.values().filter(|decision| decision.action.takes_room());
        let coming = running.map(|decision| decision.chunk).chain(other.former.iter().copied().map(ChunkNo));
        for (object, place) in coming
            .filter_map(|chunk| other.member_of(chunk))
            .map(|(_, member, place)| (&member.object, place))
        {
            if let Some((no, chunk)) = self.chunk_in(object, place) {
                self.former.insert(chunk.0);
                self.recount(no);
            }
        }
        self.take_over(&other.told(&other.learned()), other.unfaded.is_some())
    }

    fn take_over(&mut self, bytes: &[u8], fades: bool) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let (mut memory, absent) = Memory::from_bytes(bytes, &mut self.layout)?;
        if fades {
            self.unfaded = Some(memory.clone());
            memory.fade();
        }
        for no in absent {
            // Until it comes, no room is its.
            self.layout.set_rule(no, Rule { pin: Some(Tier::Slow), quota_chunks: None });
            self.absent.insert(self.layout.name(no).to_owned(), no);
        }
        self.members.resize_with(self.layout.objects() as usize, || None);
        for chunk in &memory.brought {
            self.brought.insert(chunk.0);
            self.policy.was_brought(*chunk);
        }
        self.remembered = memory.clone();
        self.policy.remember(memory);
        Ok(())
    }

    /// Tells a policy that learns what a volume's statistics say, where no recorded run is at hand. [`Placer::prepare`]
    /// is next.
    pub fn train_counts(&mut self, counts: &[ChunkCount]) {
        let counted = |count: &ChunkCount| {
            let offset = count.chunk.checked_mul(self.layout.chunk_bytes())?;
            let chunk = self.layout.chunk(count.object, offset)?;
            let ChunkCount { reads, bytes, sequential_share, .. } = *count;
            Some(Counted { chunk, reads, bytes, sequential_share })
        };
        let counted: Vec<Counted> = counts.iter().filter_map(counted).collect();
        self.policy.train_counts(&counted);
    }
}
