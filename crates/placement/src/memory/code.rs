//! Memories as bytes.
//!
//! ```text
//! header   "TANADAPM", version u16, 0 u16, CRC-32C u32 of all behind it; big endian
//! part     kind u8, bytes u32, packed bytes u32, the packed bytes: a zstd frame
//! ```
//!
//! The first part is the names: bytes of a chunk, then the objects, by whose numbers the other parts name them. Chunks
//! of one object stand together, each told by its difference from the one before. Reads are told in quarters, bytes in
//! blocks of 512.
//!
//! Invariant: whatever the bytes, decoding ends with a memory or an error, and touches the layout only when all of it
//! is known to be right.

use std::collections::{BTreeMap, HashMap};

use tanada_base::Reader;

use super::{Memory, RememberedStatement};
use crate::action::{Action, Source};
use crate::costs::Reads;
use crate::footprint::Fingerprint;
use crate::layout::{ChunkNo, Layout, ObjectNo};
use crate::numbers::{Wrong, byte, narrow, put, put_name, take, take_count, take_long_count, take_name};
use crate::{Error, Result};

pub(super) const MAGIC: &[u8; 8] = b"TANADAPM";
const VERSION: u16 = 1;
const HEADER_BYTES: usize = 16;

const NAMES: u8 = 1;
const STATEMENT: u8 = 2;
const FOLLOWERS: u8 = 3;
const COUNTS: u8 = 4;
const WINDOWS: u8 = 5;
/// Only where there are any. Programs that know nothing of what is displaced take all of it for brought, and that for
/// gone.
const BROUGHT: u8 = 6;
/// What is said of each chunk there: a policy has brought it to the fast class,
const IS_BROUGHT: u64 = 1;
/// or somebody else's home or mirror there had to make room.
const HAD_HOME: u64 = 2;
const HAD_MIRROR: u64 = 3;

/// Bytes of all parts together.
const MOST_BYTES: usize = 64 << 20;

/// Chunks that objects which are not there may take up in the layout.
const MOST_ABSENT_CHUNKS: u64 = 1 << 24;

/// The level at which zstd is still quick.
const LEVEL: i32 = 3;

/// Which places in which objects, with what is said of each.
type Placed<T> = BTreeMap<u32, Vec<(u64, T)>>;

fn placed<T>(layout: &Layout, items: impl Iterator<Item = (ChunkNo, T)>) -> Placed<T> {
    let mut placed: Placed<T> = BTreeMap::new();
    for (chunk, item) in items {
        if let Some((object, place)) = layout.owner(chunk) {
            placed.entry(object.0).or_default().push((place, item));
        }
    }
    // An object that has grown has numbers in several runs.
    placed.values_mut().for_each(|places| places.sort_by_key(|(place, _)| *place));
    placed
}

fn put_placed<T>(placed: &Placed<T>, bytes: &mut Vec<u8>, mut put_item: impl FnMut(&T, &mut Vec<u8>)) {
    put(placed.len() as u64, bytes);
    for (object, places) in placed {
        put(u64::from(*object), bytes);
        put(places.len() as u64, bytes);
        let mut before = 0;
        for (place, item) in places {
            put(place - before, bytes);
            before = *place;
            put_item(item, bytes);
        }
    }
}

fn part(kind: u8, bytes: &[u8]) -> Vec<u8> {
    // Compression into memory has nothing to fail of; if it did, a part would be missing, which is no damage.
    let Ok(packed) = zstd::bulk::compress(bytes, LEVEL) else { return Vec::new() };
    let mut part = vec![kind];
    part.extend((bytes.len() as u32).to_be_bytes());
    part.extend((packed.len() as u32).to_be_bytes());
    part.extend(packed);
    part
}

/// Of the first `objects`.
pub(super) fn names(layout: &Layout, objects: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    put(layout.chunk_bytes(), &mut bytes);
    put(u64::from(objects), &mut bytes);
    (0..objects).for_each(|no| put_name(layout.name(ObjectNo(no)), &mut bytes));
    part(NAMES, &bytes)
}

pub(super) fn statement(statement: &RememberedStatement, layout: &Layout) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(statement.statement.0.to_be_bytes());
    put_weight(statement.runs, &mut bytes);
    put(statement.expected_pages as u64, &mut bytes);
    put(statement.segment_ios as u64, &mut bytes);
    put(statement.segments.len() as u64, &mut bytes);
    for segment in &statement.segments {
        let told = segment.iter().map(|(chunk, reads)| (*chunk, Told::of(reads)));
        let told = placed(layout, told.filter(|(_, told)| *told != Told::default()));
        put_placed(&told, &mut bytes, |told, bytes| told.put(bytes));
    }
    part(STATEMENT, &bytes)
}

/// Reads as they are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Told {
    /// In quarters.
    random: u64,
    close: u64,
    sequential: u64,
    /// Of 512 bytes.
    blocks: u64,
}

impl Told {
    fn of(reads: &Reads) -> Told {
        let quarters = |pages: f32| (pages.clamp(0.0, 1e9) * 4.0).round() as u64;
        let blocks = (reads.bytes.clamp(0.0, 1e15) / 512.0).round() as u64;
        let (random, close) = (quarters(reads.random), quarters(reads.close));
        Told { random, close, sequential: quarters(reads.sequential), blocks }
    }

    /// Most chunks are read at random, so the bits that say what follows go with that number.
    fn put(self, bytes: &mut Vec<u8>) {
        let more = [self.close, self.sequential, self.blocks];
        let flags = more.iter().fold(0, |flags, more| flags << 1 | u64::from(*more > 0));
        put(self.random << 3 | flags, bytes);
        more.into_iter().filter(|more| *more > 0).for_each(|more| put(more, bytes));
    }

    fn take(reader: &mut Reader<'_>) -> Result<Told, Wrong> {
        let random = take(reader)?;
        let mut more = |flag| if random & flag != 0 { take(reader) } else { Ok(0) };
        let (close, sequential, blocks) = (more(4)?, more(2)?, more(1)?);
        Ok(Told { random: random >> 3, close, sequential, blocks })
    }

    fn reads(self) -> Reads {
        let pages = |quarters: u64| quarters as f32 / 4.0;
        Reads {
            random: pages(self.random),
            close: pages(self.close),
            sequential: pages(self.sequential),
            bytes: self.blocks as f32 * 512.0,
        }
    }
}

pub(super) fn followers(memory: &Memory) -> Vec<u8> {
    let mut bytes = vec![u8::from(memory.last.is_some())];
    bytes.extend(memory.last.unwrap_or(Fingerprint(0)).0.to_be_bytes());
    put_weight(memory.trust, &mut bytes);
    put(memory.followers.len() as u64, &mut bytes);
    for (statement, follower, weight) in &memory.followers {
        bytes.extend(statement.0.to_be_bytes());
        bytes.extend(follower.0.to_be_bytes());
        put_weight(*weight, &mut bytes);
    }
    part(FOLLOWERS, &bytes)
}

pub(super) fn counts(counts: &[(ChunkNo, u64)], layout: &Layout) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_placed(&placed(layout, counts.iter().copied()), &mut bytes, |ios, bytes| put(*ios, bytes));
    part(COUNTS, &bytes)
}

pub(super) fn windows(windows: &[Vec<(u32, u32)>], layout: &Layout) -> Vec<u8> {
    let mut bytes = Vec::new();
    put(windows.len() as u64, &mut bytes);
    for window in windows {
        let window = placed(layout, window.iter().map(|(no, ios)| (ChunkNo(*no), *ios)));
        put_placed(&window, &mut bytes, |ios, bytes| put(u64::from(*ios), bytes));
    }
    part(WINDOWS, &bytes)
}

/// Nothing where there are none.
pub(super) fn brought(brought: &[ChunkNo], displaced: &[(ChunkNo, Action)], layout: &Layout) -> Vec<u8> {
    if brought.is_empty() && displaced.is_empty() {
        return Vec::new();
    }
    let had = |action| if matches!(action, Action::Mirror(_)) { HAD_MIRROR } else { HAD_HOME };
    let displaced = displaced.iter().map(|(chunk, action)| (*chunk, had(*action)));
    let told = placed(layout, brought.iter().map(|chunk| (*chunk, IS_BROUGHT)).chain(displaced));
    let mut bytes = Vec::new();
    put_placed(&told, &mut bytes, |what, bytes| put(*what, bytes));
    part(BROUGHT, &bytes)
}

/// The parts behind a header.
pub(super) fn file(parts: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = Vec::from(*MAGIC);
    bytes.extend(VERSION.to_be_bytes());
    bytes.extend([0; 2]);
    bytes.extend([0; 4]);
    parts.iter().for_each(|part| bytes.extend(part));
    let checksum = crc32c::crc32c(&bytes[HEADER_BYTES..]);
    bytes[HEADER_BYTES - 4..HEADER_BYTES].copy_from_slice(&checksum.to_be_bytes());
    bytes
}

/// Bytes of [`file`] beside the parts.
pub(super) const FRAME_BYTES: usize = HEADER_BYTES;

type Segments = Vec<Placed<Told>>;

/// What stands in a file, by the objects' numbers there.
#[derive(Debug, Default)]
struct Parsed {
    chunk_bytes: u64,
    names: Vec<String>,
    /// Chunks of each object that are named.
    chunks: Vec<u64>,
    /// Without segments, and those.
    statements: Vec<(RememberedStatement, Segments)>,
    followers: Vec<(Fingerprint, Fingerprint, f64)>,
    last: Option<Fingerprint>,
    trust: f64,
    counts: Placed<u64>,
    windows: Vec<Placed<u32>>,
    /// Displaced ones are among them.
    brought: Placed<u64>,
}

pub(super) fn decode(bytes: &[u8], layout: &mut Layout) -> Result<(Memory, Vec<ObjectNo>)> {
    let wrong = |what: Wrong| Error::corrupted(format!("what the policy had learned cannot be read: {what}"));
    let parsed = parse(bytes).map_err(wrong)?;
    if parsed.chunk_bytes != layout.chunk_bytes() {
        return Err(Error::invalid(format!(
            "what the policy had learned is of chunks of {} bytes, and these have {}",
            parsed.chunk_bytes,
            layout.chunk_bytes()
        )));
    }
    Ok(parsed.resolve(layout))
}

fn parse(bytes: &[u8]) -> Result<Parsed, Wrong> {
    let text = |error: tanada_base::ReadError| error.to_string();
    let mut reader = Reader::new(bytes);
    if reader.take(MAGIC.len()).map_err(text)? != MAGIC {
        return Err("it does not begin as such a file does".to_owned());
    }
    let version = reader.u16().map_err(text)?;
    if version != VERSION {
        return Err(format!("its version is {version}, and this program knows {VERSION}"));
    }
    reader.skip(2).map_err(text)?;
    let checksum = reader.u32().map_err(text)?;
    if crc32c::crc32c(reader.rest()) != checksum {
        return Err("its checksum is wrong".to_owned());
    }
    let mut parsed = Parsed::default();
    let mut left = MOST_BYTES;
    while !reader.is_empty() {
        let kind = byte(&mut reader)?;
        let (len, packed) = (reader.u32().map_err(text)? as usize, reader.u32().map_err(text)? as usize);
        let packed = reader.take(packed).map_err(text)?;
        left = left.checked_sub(len).ok_or_else(|| format!("more than {MOST_BYTES} bytes"))?;
        let bytes = zstd::bulk::decompress(packed, len).map_err(|error| error.to_string())?;
        let mut part = Reader::new(&bytes);
        if (kind == NAMES) != (parsed.chunk_bytes == 0) {
            return Err("the names do not come first".to_owned());
        }
        parsed.take_part(kind, &mut part)?;
        if !part.is_empty() {
            return Err(format!("{} bytes too many in a part of kind {kind}", part.remaining()));
        }
    }
    if parsed.chunk_bytes == 0 { Err("it has no names".to_owned()) } else { Ok(parsed) }
}

impl Parsed {
    fn take_part(&mut self, kind: u8, reader: &mut Reader<'_>) -> Result<(), Wrong> {
        match kind {
            NAMES => {
                self.chunk_bytes = take(reader)?.max(1);
                let count = take_long_count(reader, 1)?;
                self.names = (0..count).map(|_| take_name(reader)).collect::<Result<_, _>>()?;
                self.chunks = vec![0; count];
            }
            STATEMENT => self.take_statement(reader)?,
            FOLLOWERS => {
                let has_last = byte(reader)? != 0;
                let last = fingerprint(reader)?;
                self.last = has_last.then_some(last);
                self.trust = weight(reader)?.min(1.0);
                let count = take_long_count(reader, 20)?;
                let pair = |_| Ok::<_, Wrong>((fingerprint(reader)?, fingerprint(reader)?, weight(reader)?));
                self.followers = (0..count).map(pair).collect::<Result<_, _>>()?;
            }
            COUNTS => self.counts = self.take_placed(reader, take)?,
            WINDOWS => {
                let count = take_count(reader, 1)?;
                let ios = |reader: &mut Reader<'_>| narrow(take(reader)?, "a number of I/Os");
                self.windows = (0..count).map(|_| self.take_placed(reader, ios)).collect::<Result<_, _>>()?;
            }
            BROUGHT => self.brought = self.take_placed(reader, take)?,
            other => return Err(format!("{other} is no kind of part")),
        }
        Ok(())
    }

    fn take_statement(&mut self, reader: &mut Reader<'_>) -> Result<(), Wrong> {
        let statement = fingerprint(reader)?;
        let runs = weight(reader)?;
        let (expected_pages, segment_ios) = (take(reader)? as f64, take(reader)? as f64);
        if segment_ios < 1.0 {
            return Err("segments without I/Os".to_owned());
        }
        let count = take_count(reader, 1)?;
        let segments = (0..count).map(|_| self.take_placed(reader, Told::take)).collect::<Result<_, _>>()?;
        let head = RememberedStatement { statement, runs, expected_pages, segment_ios, segments: Vec::new() };
        self.statements.push((head, segments));
        Ok(())
    }

    fn take_placed<T>(
        &mut self,
        reader: &mut Reader<'_>,
        take_item: impl Fn(&mut Reader<'_>) -> Result<T, Wrong>,
    ) -> Result<Placed<T>, Wrong> {
        let mut placed = Placed::new();
        for _ in 0..take_count(reader, 2)? {
            let object: usize = narrow(take(reader)?, "an object")?;
            let chunks = self.chunks.get_mut(object).ok_or_else(|| format!("object {object} has no name"))?;
            let count = take_long_count(reader, 2)?;
            let mut places = Vec::with_capacity(count);
            let mut before = 0u64;
            for _ in 0..count {
                let place = before.checked_add(take(reader)?).filter(|place| *place < u64::from(u32::MAX));
                before = place.ok_or("a chunk beyond what objects may have")?;
                places.push((before, take_item(reader)?));
            }
            *chunks = (*chunks).max(before + 1);
            placed.insert(object as u32, places);
        }
        Ok(placed)
    }

    /// The objects' numbers in the layout, by those in the file; and those that had to be added.
    fn resolve_names(&self, layout: &mut Layout) -> (Vec<Option<ObjectNo>>, Vec<ObjectNo>) {
        let known: HashMap<String, ObjectNo> =
            (0..layout.objects()).map(ObjectNo).map(|no| (layout.name(no).to_owned(), no)).collect();
        let (mut added, mut absent_chunks) = (Vec::new(), 0);
        let mut resolve = |(name, chunks): (&String, &u64)| {
            if let Some(no) = known.get(name) {
                return Some(*no);
            }
            absent_chunks += chunks;
            if *chunks == 0 || absent_chunks > MOST_ABSENT_CHUNKS {
                return None;
            }
            let no = layout.add(name, chunks.saturating_mul(self.chunk_bytes));
            added.push(no);
            Some(no)
        };
        (self.names.iter().zip(&self.chunks).map(&mut resolve).collect(), added)
    }

    fn resolve(self, layout: &mut Layout) -> (Memory, Vec<ObjectNo>) {
        let (numbers, added) = self.resolve_names(layout);
        let layout = &*layout;
        let chunk = |object: u32, place: u64| {
            let no = numbers.get(object as usize).copied().flatten()?;
            layout.chunk(no, place.checked_mul(layout.chunk_bytes())?)
        };
        let segment = |placed: Placed<Told>| {
            let mut uses = resolved(placed, chunk);
            uses.sort_by_key(|(chunk, _)| *chunk);
            uses.into_iter().map(|(chunk, told)| (chunk, told.reads())).collect::<Vec<_>>()
        };
        let statements = self.statements.into_iter().map(|(head, segments)| RememberedStatement {
            segments: segments.into_iter().map(segment).collect(),
            ..head
        });
        let window = |placed: Placed<u32>| {
            let mut window: Vec<(u32, u32)> =
                resolved(placed, chunk).into_iter().map(|(chunk, ios)| (chunk.0, ios)).collect();
            window.sort_unstable();
            window
        };
        let mut counts = resolved(self.counts, chunk);
        counts.sort_unstable();
        let mut told = resolved(self.brought, chunk);
        told.sort_unstable();
        let displaced = |(chunk, what): &(ChunkNo, u64)| match *what {
            HAD_HOME => Some((*chunk, Action::Promote(Source::Copy))),
            HAD_MIRROR => Some((*chunk, Action::Mirror(Source::Copy))),
            _ => None,
        };
        let memory = Memory {
            statements: statements.collect(),
            followers: self.followers,
            last: self.last,
            trust: self.trust,
            counts,
            windows: self.windows.into_iter().map(window).collect(),
            displaced: told.iter().filter_map(displaced).collect(),
            brought: told.iter().filter(|told| displaced(told).is_none()).map(|(chunk, _)| *chunk).collect(),
        };
        (memory, added)
    }
}

fn resolved<T>(placed: Placed<T>, chunk: impl Fn(u32, u64) -> Option<ChunkNo>) -> Vec<(ChunkNo, T)> {
    let mut found = Vec::new();
    for (object, places) in placed {
        found.extend(places.into_iter().filter_map(|(place, item)| Some((chunk(object, place)?, item))));
    }
    found
}

fn fingerprint(reader: &mut Reader<'_>) -> Result<Fingerprint, Wrong> {
    reader.u64().map(Fingerprint).map_err(|error| error.to_string())
}

/// Counts of runs and weights of pairs come to no more.
const MOST_WEIGHT: f32 = 1e9;

fn put_weight(weight: f64, bytes: &mut Vec<u8>) {
    bytes.extend((weight as f32).clamp(0.0, MOST_WEIGHT).to_be_bytes());
}

fn weight(reader: &mut Reader<'_>) -> Result<f64, Wrong> {
    let weight = f32::from_bits(reader.u32().map_err(|error| error.to_string())?);
    if (0.0..=MOST_WEIGHT).contains(&weight) {
        Ok(f64::from(weight))
    } else {
        Err(format!("{weight} is no weight"))
    }
}

#[cfg(test)]
mod tests {
    use tanada_base::SplitMix64;

    use super::*;

    fn layout() -> Layout {
        let mut layout = Layout::new(1 << 20);
        layout.add("items", 40 << 20);
        layout
    }

    fn parts(layout: &Layout) -> [Vec<u8>; 5] {
        let uses = |no| (ChunkNo(no), Reads::random(no as f32));
        let told = RememberedStatement {
            statement: Fingerprint(7),
            runs: 2.0,
            expected_pages: 9.0,
            segment_ios: 2048.0,
            segments: vec![(0..9).map(uses).collect(), (3..5).map(uses).collect()],
        };
        let pairs = vec![(Fingerprint(1), Fingerprint(2), 0.5)];
        let memory = Memory { followers: pairs, last: Some(Fingerprint(1)), trust: 0.5, ..Memory::default() };
        let counted = [(ChunkNo(3), 70), (ChunkNo(9), 1000)];
        let window = vec![(1, 500), (17, 3)];
        let there = [ChunkNo(2), ChunkNo(30)];
        [
            statement(&told, layout),
            followers(&memory),
            counts(&counted, layout),
            windows(&[window], layout),
            brought(&there, &[(ChunkNo(5), Action::Mirror(Source::Copy))], layout),
        ]
    }

    /// Parts that differ in some bytes, rightly packed and sealed: whatever they say is a memory or an error, and
    /// nothing in between.
    #[test]
    fn changed_parts_never_panic() {
        let mut random = SplitMix64::new(11);
        let layout = layout();
        let parts = parts(&layout);
        let (mut good, mut bad) = (0, 0);
        for no in 0..40_000 {
            let kind = parts[no % 5][0];
            let mut raw = zstd::bulk::decompress(&parts[no % 5][9..], 1 << 20).unwrap();
            for _ in 0..random.below(4) {
                let at = random.below(raw.len() as u64) as usize;
                raw[at] = random.next_u64() as u8;
            }
            raw.truncate(raw.len() + 1 - random.below(2) as usize);
            let mut known = layout.clone();
            match decode(&file(&[names(&layout, 1), part(kind, &raw)]), &mut known) {
                Ok((memory, _)) => {
                    good += 1;
                    let _ = memory.to_bytes(&known);
                }
                Err(error) => {
                    bad += 1;
                    assert_eq!((error.kind(), known.objects()), (crate::ErrorKind::Corrupted, 1));
                }
            }
        }
        assert!(good > 1000 && bad > 1000, "{good} memories, {bad} errors");
    }

    #[test]
    fn objects_that_are_not_there_do_not_take_all_numbers() {
        let mut far = Vec::new();
        [1, 0, 1, 1 << 30, 5].into_iter().for_each(|number| put(number, &mut far));
        let mut other = Layout::new(1 << 20);
        let (memory, added) = decode(&file(&[names(&layout(), 1), part(COUNTS, &far)]), &mut other).unwrap();
        assert_eq!((memory.counts.len(), added.len(), other.chunks()), (0, 0, 0));
    }
}
