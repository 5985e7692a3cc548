//! Doors for fuzzers: all that is read from a device, from any bytes. Whatever they are, there is an error or something
//! that could have been written; nothing panics, nothing runs for ever, and no more memory is asked for than what is
//! there could fill.
//!
//! - [`parse`]: parts by themselves;
//! - [`Files`]: whole objects, with checksums [made right](mend), so that what is behind them is reached.

mod mend;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use bytes::Bytes;
use tanada_volume::Volume;

use crate::Result;
use crate::cache::{Cache, Owner, VersionId};
use crate::entry::{Codec, LONGEST_VALUE, Pointer};
use crate::environment::wait_for;
use crate::keyfile::{Access, KeyCursor, KeyFile, KeyHash, hostile};
use crate::log::frame::claimed_frame;
use crate::log::group::GroupHeader;
use crate::log::replay::{ReplayFrom, replay};
use crate::manifest::{DatabaseRecord, Record, frame, journal};
use crate::merge::{Direction, Source, Step};
use crate::objects::{ObjectKind, Objects};
use crate::settings::{DatabaseSettings, StoreSettings};
use crate::tree::policy::{ClassChoice, MediaPolicy, OfferedClass};
use crate::value::{Segments, Wanted, codec};
use crate::wire::Decoder;

/// Kinds of parts.
pub const PARTS: u8 = 8;

/// Kinds of objects.
pub const KINDS: u8 = 4;

/// Most entries of a key file: a longer walk does not terminate.
const MAX_ENTRIES: usize = 1 << 20;

/// The identity of the database that hostile logs are of.
const DATABASE: u64 = 77;

/// Reads `bytes` as one of the parts of what is stored. Errors are as good as anything.
pub fn parse(kind: u8, bytes: &[u8]) {
    match kind % PARTS {
        0 => drop(GroupHeader::decode(bytes)),
        1 => {
            let number = bytes.get(8..16).and_then(|lsn| lsn.first_chunk());
            let lsn = number.map_or(0, |lsn| u64::from_be_bytes(*lsn));
            if let Some(frame) = claimed_frame(bytes, lsn, 0) {
                assert!(frame.payload.operations().count() <= bytes.len());
            }
        }
        2 => drop(hostile::page(bytes)),
        3 => hostile::ends(bytes),
        4 => {
            let mut state = DatabaseRecord::default();
            let mut decoder = Decoder::new(bytes);
            while decoder.finish().is_err() {
                let Ok(record) = Record::decode(&mut decoder) else { break };
                if state.apply(&record).is_err() {
                    break;
                }
            }
            state.snapshot();
        }
        5 => drop(frame::decode(bytes, 0)),
        6 => {
            let Some((len, stored)) = bytes.split_first_chunk() else { return };
            let len = u32::from_be_bytes(*len) as usize % (LONGEST_VALUE + 2);
            for codec in [Codec::None, Codec::Lz4, Codec::Zstd] {
                let value = codec::decompress(codec, &Bytes::copy_from_slice(stored), len);
                assert!(value.is_none_or(|value| value.len() == len));
            }
        }
        _ => settings(bytes),
    }
}

/// What is written as JSON: policies and settings.
fn settings(bytes: &[u8]) {
    if let Ok(policy) = serde_json::from_slice::<MediaPolicy>(bytes) {
        let text = serde_json::to_vec(&policy).unwrap_or_default();
        assert_eq!(serde_json::from_slice::<MediaPolicy>(&text).ok(), Some(policy.clone()));
        let class = |name: &str| OfferedClass { name: name.to_owned(), takes_objects: true };
        drop(policy.resolve(&[class("fast"), class("slow")], &ClassChoice::Fastest));
        drop(policy.resolve(&[], &ClassChoice::Fastest));
    }
    if let Ok(settings) = serde_json::from_slice::<StoreSettings>(bytes) {
        drop(settings.check());
    }
    if let Ok(settings) = serde_json::from_slice::<DatabaseSettings>(bytes) {
        drop(settings.check());
    }
}

/// A volume in which hostile objects are put.
pub struct Files {
    objects: Arc<Objects>,
    cache: Arc<Cache>,
}

impl Files {
    /// Of a database that is not there, in `volume`.
    pub fn new(volume: &Volume) -> Files {
        let objects = Objects::new(volume.clone(), "hostile", 1, tanada_io::BufferPool::new(0));
        Files { objects, cache: Cache::new(1 << 20) }
    }

    /// Writes `bytes` as an object and reads it: as a log segment, a key file, a manifest or a value segment. How much
    /// was found: frames, versions, stores, values.
    ///
    /// # Errors
    /// Whatever is wrong with it.
    pub fn read(&self, kind: u8, bytes: &[u8]) -> Result<usize> {
        let object_kind = match kind % KINDS {
            0 | 3 => ObjectKind::Segment,
            1 => ObjectKind::Keys,
            _ => ObjectKind::Manifest,
        };
        let (lease, object) = self.objects.create(object_kind, None)?;
        let no = lease.no();
        let mut bytes = bytes.to_vec();
        bytes.resize(bytes.len().next_multiple_of(4096), 0);
        match kind % KINDS {
            0 => mend::log(&mut bytes, no, DATABASE),
            1 => hostile::mend(&mut bytes, no),
            2 => mend::manifest(&mut bytes, no),
            _ => {}
        }
        let read = async {
            if !bytes.is_empty() {
                let written = object.write_bytes(0, &bytes).await;
                written.map_err(|error| crate::Error::volume("cannot write", &error))?;
            }
            match kind % KINDS {
                0 => self.log(no, &bytes).await,
                1 => {
                    let buffers = self.objects.buffers();
                    let file = KeyFile::open(no, object, lease, &self.cache, buffers).await?;
                    keys(&file).await
                }
                2 => {
                    let state = journal::recover(&self.objects).await?;
                    Ok(state.map_or(0, |state| state.stores.len()))
                }
                _ => self.values(no, &bytes).await,
            }
        };
        let read = wait_for(read);
        wait_for(self.objects.delete(object_kind, no))?;
        read
    }

    async fn log(&self, no: u64, bytes: &[u8]) -> Result<usize> {
        // The log begins where the segment says that it does.
        let first = GroupHeader::decode(bytes);
        let from = ReplayFrom {
            database: DATABASE,
            lsn: first.map_or(0, |group| group.lsn),
            segment: Some(no),
            durable: 0,
            takes_torn: false,
        };
        let segments = Segments::new(&self.objects, &self.cache, None);
        let mut frames = 0;
        let mut on_frame = |frame: crate::log::frame::Frame, _| {
            frame.payload.operations().for_each(drop);
            frames += 1;
            Ok(())
        };
        replay(&self.objects, &segments, &[no], from, &mut on_frame, &mut |_| ()).await?;
        Ok(frames)
    }

    /// Pointers of any kind into a segment, some of which are right.
    async fn values(&self, no: u64, bytes: &[u8]) -> Result<usize> {
        let segments = Segments::new(&self.objects, &self.cache, None);
        let segment = segments.open(no)?;
        let mut pointers = Vec::new();
        for drawn in bytes.chunks_exact(16).take(64) {
            let number =
                |at: usize| u32::from_be_bytes([drawn[at], drawn[at + 1], drawn[at + 2], drawn[at + 3]]);
            // Often within the segment, and at times as far away as can be said.
            let offset =
                if drawn[15] == 0 { u64::MAX - u64::from(number(0)) } else { u64::from(number(0)) % 20_000 };
            let stored_len = number(4) % if drawn[14] == 0 { u32::MAX } else { 5000 };
            let end = offset.saturating_add(stored_len.into()) as usize;
            let stored = bytes.get(offset as usize..end).unwrap_or_default();
            let codec = [Codec::None, Codec::Lz4, Codec::Zstd][usize::from(drawn[13]) % 3];
            let checksum = crc32c::crc32c(stored);
            pointers.push(Pointer { segment: no, offset, stored_len, len: number(8), codec, checksum });
        }
        for pointer in &pointers {
            if let Ok(value) = segment.read_uncached(pointer).await {
                assert!(pointer.codec == Codec::None || value.len() == pointer.len as usize);
            }
        }
        let store = Owner::next(&self.cache);
        let id = |sequence| VersionId::new(store, b"key", sequence);
        let wanted =
            |(pointer, no): (&Pointer, u64)| Wanted { id: id(no), pointer: *pointer, first_home: None };
        let wanted: Vec<_> = pointers.iter().zip(0..).map(wanted).collect();
        segments.read_all(&wanted, |_, _| None).await.map(|(values, _)| values.len())
    }
}

async fn settle(cursor: &mut KeyCursor, step: Step) -> Result<()> {
    if step == Step::Load { cursor.load().await } else { Ok(()) }
}

/// Reads a key file in every way. What goes wrong in one of them does not keep from the next.
async fn keys(file: &KeyFile) -> Result<usize> {
    let mut read = Ok(0);
    for (direction, access) in [
        (Direction::Forward, Access::Cached),
        (Direction::Reverse, Access::Cached),
        (Direction::Forward, Access::Ahead(64 << 10)),
    ] {
        let walked = walk(file, direction, access).await;
        read = read.and(walked);
    }
    for key in [&file.info().first_key[..], &file.info().last_key, b"", b"key/0500", &[0xff; 40]] {
        for snapshot in [0, 100, u64::MAX] {
            let found = file.get(key, KeyHash::of(key), snapshot).await;
            read = read.and_then(|entries| found.map(|_| entries));
        }
    }
    read
}

async fn walk(file: &KeyFile, direction: Direction, access: Access) -> Result<usize> {
    let mut entries = 0;
    for bound in [None, Some(&b"key/0400"[..])] {
        let mut cursor = KeyCursor::new(file.clone(), access);
        let step = cursor.seek(direction, bound)?;
        settle(&mut cursor, step).await?;
        while cursor.key().is_some() {
            cursor.version()?;
            let step = cursor.advance()?;
            settle(&mut cursor, step).await?;
            entries += 1;
            assert!(entries < MAX_ENTRIES, "a walk without an end");
        }
    }
    Ok(entries)
}
