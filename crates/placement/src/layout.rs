//! Which chunk holds which bytes of which object.
//!
//! Policies know chunks by number alone, from 0 on, over all objects. What a number stands for is the layout's: runs of
//! numbers are given to objects as they appear and grow, and stay theirs.
//!
//! Invariant: runs do not overlap, and their numbers ascend in the order in which they were given out.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// The number of a chunk, over all objects. A chunk is what a policy places at once: a chunk of the volume, or a block
/// of a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ChunkNo(pub u32);

impl ChunkNo {
    /// As an index into tables.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl std::fmt::Display for ChunkNo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "chunk {}", self.0)
    }
}

/// The number of an object, in the order in which they were added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ObjectNo(pub u32);

/// One of the two classes that a policy places chunks in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Tier {
    /// The faster, smaller one.
    Fast,
    /// The slower one, which has room for everything.
    Slow,
}

/// What a user has ruled about an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Rule {
    /// Its chunks belong there, whatever a policy thinks.
    pub pin: Option<Tier>,
    /// At most so many of its chunks in the fast class.
    pub quota_chunks: Option<u32>,
}

#[derive(Debug, Clone, Copy)]
struct Run {
    object: ObjectNo,
    /// The first chunk's place in its object, counted in chunks.
    start: u64,
    first: u32,
    chunks: u32,
}

#[derive(Debug, Clone)]
struct Object {
    name: String,
    bytes: u64,
    rule: Rule,
    runs: Vec<usize>,
}

/// Objects and their chunks.
///
/// ```
/// use tanada_placement::{ChunkNo, Layout};
/// let mut layout = Layout::new(1 << 20);
/// let orders = layout.add("orders", 5 << 20);
/// let items = layout.add("items", (3 << 20) + 1);
/// assert_eq!(layout.chunk(items, 3 << 20), Some(ChunkNo(8)));
/// assert_eq!(layout.owner(ChunkNo(4)), Some((orders, 4)));
/// assert_eq!(layout.chunks(), 9);
/// ```
#[derive(Debug, Clone)]
pub struct Layout {
    chunk_bytes: u64,
    objects: Vec<Object>,
    runs: Vec<Run>,
    end: u32,
    /// Objects with a rule.
    ruled: u32,
}

impl Layout {
    /// Without objects. `chunk_bytes` is at least 1.
    pub fn new(chunk_bytes: u64) -> Layout {
        Layout { chunk_bytes: chunk_bytes.max(1), objects: Vec::new(), runs: Vec::new(), end: 0, ruled: 0 }
    }

    /// Bytes of a chunk.
    pub fn chunk_bytes(&self) -> u64 {
        self.chunk_bytes
    }

    /// Chunks of all objects; their numbers are below this.
    pub fn chunks(&self) -> u32 {
        self.end
    }

    /// Objects added so far.
    pub fn objects(&self) -> u32 {
        self.objects.len() as u32
    }

    /// A further object of `bytes`.
    pub fn add(&mut self, name: &str, bytes: u64) -> ObjectNo {
        let no = ObjectNo(self.objects());
        let object = Object { name: name.to_owned(), bytes: 0, rule: Rule::default(), runs: Vec::new() };
        self.objects.push(object);
        self.grow(no, bytes);
        no
    }

    /// The object has `bytes` now, if it had fewer. New chunks get the next numbers; beyond `u32::MAX` chunks there are
    /// none.
    pub fn grow(&mut self, object: ObjectNo, bytes: u64) {
        let Some(entry) = self.objects.get_mut(object.0 as usize).filter(|entry| entry.bytes < bytes) else {
            return;
        };
        let start = entry.bytes.div_ceil(self.chunk_bytes);
        let more = bytes.div_ceil(self.chunk_bytes) - start;
        let chunks = u32::try_from(more).unwrap_or(u32::MAX).min(u32::MAX - self.end);
        entry.bytes = bytes;
        if chunks > 0 {
            entry.runs.push(self.runs.len());
            self.runs.push(Run { object, start, first: self.end, chunks });
            self.end += chunks;
        }
    }

    /// Sets what a user has ruled.
    pub fn set_rule(&mut self, object: ObjectNo, rule: Rule) {
        if let Some(entry) = self.objects.get_mut(object.0 as usize) {
            let before = std::mem::replace(&mut entry.rule, rule);
            self.ruled += u32::from(rule != Rule::default());
            self.ruled -= u32::from(before != Rule::default());
        }
    }

    /// What a user has ruled about an object.
    pub fn rule(&self, object: ObjectNo) -> Rule {
        self.objects.get(object.0 as usize).map_or(Rule::default(), |object| object.rule)
    }

    /// What a user has ruled about the object of a chunk.
    pub fn rule_of(&self, chunk: ChunkNo) -> Rule {
        self.owner(chunk).map_or(Rule::default(), |(object, _)| self.rule(object))
    }

    /// Whether its object is pinned to that class.
    pub fn is_pinned_to(&self, chunk: ChunkNo, tier: Tier) -> bool {
        self.has_rules() && self.rule_of(chunk).pin == Some(tier)
    }

    /// Whether its object is pinned, to whichever class: then no policy moves it.
    pub fn is_pinned(&self, chunk: ChunkNo) -> bool {
        self.has_rules() && self.rule_of(chunk).pin.is_some()
    }

    /// Whether there is any rule.
    pub fn has_rules(&self) -> bool {
        self.ruled > 0
    }

    /// The object's name.
    pub fn name(&self, object: ObjectNo) -> &str {
        self.objects.get(object.0 as usize).map_or("", |object| &object.name)
    }

    /// The chunk that holds the object's byte at `offset`.
    pub fn chunk(&self, object: ObjectNo, offset: u64) -> Option<ChunkNo> {
        let place = offset / self.chunk_bytes;
        let runs = &self.objects.get(object.0 as usize)?.runs;
        let runs = runs.iter().filter_map(|run| self.runs.get(*run));
        runs.rev().find_map(|run| {
            let inside = place.checked_sub(run.start)?;
            (inside < u64::from(run.chunks)).then(|| ChunkNo(run.first + inside as u32))
        })
    }

    /// The object of a chunk, and which of its chunks it is.
    pub fn owner(&self, chunk: ChunkNo) -> Option<(ObjectNo, u64)> {
        let run = self.runs.partition_point(|run| run.first <= chunk.0).checked_sub(1)?;
        let run = self.runs.get(run)?;
        let inside = chunk.0 - run.first;
        (inside < run.chunks).then(|| (run.object, run.start + u64::from(inside)))
    }

    /// The numbers of the chunks that hold `len` bytes at `offset` of the object.
    pub fn range(&self, object: ObjectNo, offset: u64, len: u64) -> Vec<Range<u32>> {
        let Some(entry) = self.objects.get(object.0 as usize).filter(|_| len > 0) else { return Vec::new() };
        let (from, to) = (offset / self.chunk_bytes, offset.saturating_add(len).div_ceil(self.chunk_bytes));
        let runs = entry.runs.iter().filter_map(|run| self.runs.get(*run));
        let inside = runs.map(|run| {
            let clamp = |place: u64| place.saturating_sub(run.start).min(u64::from(run.chunks)) as u32;
            run.first + clamp(from)..run.first + clamp(to)
        });
        inside.filter(|range| !range.is_empty()).collect()
    }

    /// The numbers of all chunks of the object.
    pub fn all(&self, object: ObjectNo) -> Vec<Range<u32>> {
        self.range(object, 0, u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_that_grows_keeps_its_chunks() {
        let mut layout = Layout::new(10);
        let (a, b) = (layout.add("a", 25), layout.add("b", 10));
        assert_eq!(layout.chunk(a, 29), Some(ChunkNo(2)));
        layout.grow(a, 31);
        layout.grow(a, 5);
        assert_eq!((layout.chunk(a, 0), layout.chunk(a, 30)), (Some(ChunkNo(0)), Some(ChunkNo(4))));
        assert_eq!((layout.chunk(a, 40), layout.chunk(b, 9)), (None, Some(ChunkNo(3))));
        assert_eq!(layout.owner(ChunkNo(4)), Some((a, 3)));
        assert_eq!(layout.owner(ChunkNo(5)), None);
        assert_eq!(layout.range(a, 15, 16), [1..3, 4..5]);
        assert_eq!(layout.all(b).first(), Some(&(3..4)));
        assert!(layout.range(ObjectNo(9), 0, 1).is_empty());
    }

    #[test]
    fn placement_rules_belong_to_objects() {
        let mut layout = Layout::new(10);
        let (_, b) = (layout.add("a", 25), layout.add("b", 10));
        assert!(!layout.has_rules());
        layout.set_rule(b, Rule { pin: Some(Tier::Slow), quota_chunks: None });
        assert_eq!(layout.rule_of(ChunkNo(3)).pin, Some(Tier::Slow));
        assert_eq!(layout.rule_of(ChunkNo(2)), Rule::default());
        layout.set_rule(b, Rule { pin: None, quota_chunks: Some(1) });
        assert!(layout.has_rules());
        layout.set_rule(b, Rule::default());
        assert!(!layout.has_rules());
    }
}
