//! What the log says: one record for each change of the metadata.
//!
//! A checkpoint is the same records, for all that there is. Records are applied in order; each says what is so
//! afterwards, so that applying a log is a matter of reading it once. A later program may write kinds of records that
//! this one does not know, under the same format version: a whole block with such a record is refused as a newer
//! program's, never passed over and never taken for damage. Numbers are big-endian, strings have their length before
//! them (2 bytes).

use tanada_base::{ReadError, Reader};

use super::fields::{AttributeRecord, class, put_id, put_text, text};
use super::file;
use super::file::FileRecord;
use crate::adopted::Identity;
use crate::chunk::Place;
use crate::settings::LONGEST_NAME;
use crate::statistics::ChunkStatistics;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Record {
    /// A class: new, or (in a checkpoint) as it is.
    Class {
        id: u8,
        rank: u8,
        segment_bytes: u64,
        chunks: u32,
        devices: u16,
        is_draining: bool,
        name: String,
    },
    ClassDraining {
        id: u8,
        is_draining: bool,
    },
    ClassChunks {
        id: u8,
        chunks: u32,
    },
    ClassRemoved {
        id: u8,
    },
    Object {
        id: u64,
        name: String,
        adopted: Option<(String, Identity)>,
    },
    Renamed {
        id: u64,
        name: String,
    },
    Deleted {
        id: u64,
    },
    Size {
        id: u64,
        size_bytes: u64,
        tail_is_stale: bool,
    },
    Attributes {
        id: u64,
        attributes: AttributeRecord,
    },
    /// `count` chunks from `first` lie in one piece from `place`.
    Mapped {
        id: u64,
        first: u64,
        count: u32,
        place: Place,
    },
    /// `count` chunks from `first` have neither home nor mirror any more.
    Unmapped {
        id: u64,
        first: u64,
        count: u64,
    },
    Mirrored {
        id: u64,
        chunk: u64,
        place: Place,
    },
    Unmirrored {
        id: u64,
        chunk: u64,
    },
    Statistics {
        id: u64,
        chunk: u64,
        statistics: ChunkStatistics,
    },
    /// Objects get numbers from here on.
    NextObject {
        id: u64,
    },
    /// All mirrors of the object are gone.
    AllUnmirrored {
        id: u64,
    },
    /// The adopted file is now this.
    Adopted {
        id: u64,
        identity: Identity,
    },
    /// When the checkpoint was made, in milliseconds since 1970: its heats are as of then.
    WallTime {
        ms: u64,
    },
    /// The object has pages of 2^`shift` bytes from here on; the first `pages` of them lie where they lay.
    Paged {
        id: u64,
        shift: u8,
        pages: u64,
    },
    /// What is done to new pages of the object.
    Transform {
        id: u64,
        algorithm: u8,
        level: u8,
        key: u16,
    },
    /// The words of neighbouring pages; 0 is a hole.
    Pages {
        id: u64,
        first: u64,
        words: Vec<u64>,
    },
    /// `count` pages from `first` are holes.
    PagesUnmapped {
        id: u64,
        first: u64,
        count: u64,
    },
    /// The size of an object that has pages, as its users see it.
    LogicalSize {
        id: u64,
        size_bytes: u64,
    },
    /// The check value of a key.
    Key {
        key: u16,
        check: [u8; 8],
    },
    /// Of a file or a folder.
    File(FileRecord),
    /// The last of a checkpoint, alone in its block: a CRC-32C of the records of all blocks before.
    CheckpointEnd {
        digest: u32,
    },
}

/// The tag of [`Record::CheckpointEnd`].
pub(crate) const CHECKPOINT_END: u8 = 19;

/// The highest tag that this program knows.
const LAST_TAG: u8 = *file::TAGS.end();

/// The tag of [`Record::Key`].
const KEY: u8 = 25;

fn put_place(out: &mut Vec<u8>, place: Place) {
    out.push(place.class);
    out.extend_from_slice(&place.no.to_be_bytes());
}

fn put_identity(out: &mut Vec<u8>, identity: &Identity) {
    out.extend_from_slice(&identity.file.to_be_bytes());
    out.extend_from_slice(&identity.size_bytes.to_be_bytes());
    out.extend_from_slice(&identity.modified_ns.to_be_bytes());
}

fn identity(reader: &mut Reader<'_>) -> Result<Identity, ReadError> {
    Ok(Identity {
        file: u128::from_be_bytes(reader.array()?),
        size_bytes: reader.u64()?,
        modified_ns: i128::from_be_bytes(reader.array()?),
    })
}

impl Record {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Record::Class { id, rank, segment_bytes, chunks, devices, is_draining, name } => {
                out.extend_from_slice(&[1, *id, *rank, u8::from(*is_draining)]);
                out.extend_from_slice(&segment_bytes.to_be_bytes());
                out.extend_from_slice(&chunks.to_be_bytes());
                out.extend_from_slice(&devices.to_be_bytes());
                put_text(out, name);
            }
            Record::ClassDraining { id, is_draining } => {
                out.extend_from_slice(&[2, *id, u8::from(*is_draining)]);
            }
            Record::ClassChunks { id, chunks } => {
                out.extend_from_slice(&[3, *id]);
                out.extend_from_slice(&chunks.to_be_bytes());
            }
            Record::ClassRemoved { id } => out.extend_from_slice(&[4, *id]),
            Record::Object { id, name, adopted } => {
                put_id(out, 5, *id);
                put_text(out, name);
                out.push(u8::from(adopted.is_some()));
                if let Some((path, identity)) = adopted {
                    put_text(out, path);
                    put_identity(out, identity);
                }
            }
            Record::Renamed { id, name } => {
                put_id(out, 6, *id);
                put_text(out, name);
            }
            Record::Deleted { id } => put_id(out, 7, *id),
            Record::Size { id, size_bytes, tail_is_stale } => {
                put_id(out, 8, *id);
                out.extend_from_slice(&size_bytes.to_be_bytes());
                out.push(u8::from(*tail_is_stale));
            }
            Record::Attributes { id, attributes } => {
                put_id(out, 9, *id);
                // 255 is no class.
                out.push(attributes.class.unwrap_or(u8::MAX));
                out.push(attributes.pin.unwrap_or(u8::MAX));
                out.extend_from_slice(&attributes.quota_bytes.unwrap_or(u64::MAX).to_be_bytes());
            }
            _ => self.encode_chunks(out),
        }
    }

    fn encode_chunks(&self, out: &mut Vec<u8>) {
        match self {
            Record::Mapped { id, first, count, place } => {
                put_id(out, 10, *id);
                out.extend_from_slice(&first.to_be_bytes());
                out.extend_from_slice(&count.to_be_bytes());
                put_place(out, *place);
            }
            Record::Unmapped { id, first, count } => {
                put_id(out, 11, *id);
                out.extend_from_slice(&first.to_be_bytes());
                out.extend_from_slice(&count.to_be_bytes());
            }
            Record::Mirrored { id, chunk, place } => {
                put_id(out, 12, *id);
                out.extend_from_slice(&chunk.to_be_bytes());
                put_place(out, *place);
            }
            Record::Unmirrored { id, chunk } => {
                put_id(out, 13, *id);
                out.extend_from_slice(&chunk.to_be_bytes());
            }
            Record::Statistics { id, chunk, statistics } => {
                put_id(out, 14, *id);
                out.extend_from_slice(&chunk.to_be_bytes());
                for count in [statistics.reads, statistics.writes, statistics.sequential] {
                    out.extend_from_slice(&count.to_be_bytes());
                }
                out.extend_from_slice(&statistics.bytes_read.to_be_bytes());
                out.extend_from_slice(&statistics.bytes_written.to_be_bytes());
                out.extend_from_slice(&statistics.heat.to_bits().to_be_bytes());
            }
            Record::NextObject { id } => put_id(out, 15, *id),
            Record::AllUnmirrored { id } => put_id(out, 16, *id),
            Record::Adopted { id, identity } => {
                put_id(out, 17, *id);
                put_identity(out, identity);
            }
            Record::WallTime { ms } => put_id(out, 18, *ms),
            Record::CheckpointEnd { digest } => {
                out.push(CHECKPOINT_END);
                out.extend_from_slice(&digest.to_be_bytes());
            }
            _ => self.encode_pages(out),
        }
    }

    fn encode_pages(&self, out: &mut Vec<u8>) {
        match self {
            Record::Paged { id, shift, pages } => {
                put_id(out, 20, *id);
                out.push(*shift);
                out.extend_from_slice(&pages.to_be_bytes());
            }
            Record::Transform { id, algorithm, level, key } => {
                put_id(out, 21, *id);
                out.extend_from_slice(&[*algorithm, *level]);
                out.extend_from_slice(&key.to_be_bytes());
            }
            Record::Pages { id, first, words } => {
                put_id(out, 22, *id);
                out.extend_from_slice(&first.to_be_bytes());
                out.extend_from_slice(&(words.len() as u16).to_be_bytes());
                for word in words {
                    out.extend_from_slice(&word.to_be_bytes());
                }
            }
            Record::PagesUnmapped { id, first, count } => {
                put_id(out, 23, *id);
                out.extend_from_slice(&first.to_be_bytes());
                out.extend_from_slice(&count.to_be_bytes());
            }
            Record::LogicalSize { id, size_bytes } => {
                put_id(out, 24, *id);
                out.extend_from_slice(&size_bytes.to_be_bytes());
            }
            Record::Key { key, check } => {
                out.push(KEY);
                out.extend_from_slice(&key.to_be_bytes());
                out.extend_from_slice(check);
            }
            Record::File(record) => record.encode(out),
            _ => {}
        }
    }

    /// The next record, or why there is none.
    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Record, NoRecord> {
        let at = reader.position();
        let tag = reader.u8().map_err(|error| NoRecord::Damaged(error.to_string()))?;
        if tag > LAST_TAG {
            return Err(NoRecord::Unknown(tag));
        }
        let decoded = Fields { tag }.decode(reader);
        decoded.unwrap_or_else(|error| Err(format!("the record at {at}: {error}"))).map_err(NoRecord::Damaged)
    }
}

/// Why there is no record.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NoRecord {
    /// It makes no sense.
    Damaged(String),
    /// Its kind is none that this program knows. Since the block's checksum is right, a program wrote it that does.
    Unknown(u8),
}

struct Fields {
    tag: u8,
}

fn place(reader: &mut Reader<'_>) -> Result<Place, ReadError> {
    Ok(Place { class: reader.u8()?, no: reader.u32()? })
}

impl Fields {
    fn decode(&self, reader: &mut Reader<'_>) -> Result<Result<Record, String>, ReadError> {
        let record = match self.tag {
            1 => {
                let (id, rank, is_draining) = (reader.u8()?, reader.u8()?, reader.u8()? == 1);
                let (segment_bytes, chunks, devices) = (reader.u64()?, reader.u32()?, reader.u16()?);
                let name = match text(reader, 255)? {
                    Ok(name) => name,
                    Err(why) => return Ok(Err(why)),
                };
                Record::Class { id, rank, segment_bytes, chunks, devices, is_draining, name }
            }
            2 => Record::ClassDraining { id: reader.u8()?, is_draining: reader.u8()? == 1 },
            3 => Record::ClassChunks { id: reader.u8()?, chunks: reader.u32()? },
            4 => Record::ClassRemoved { id: reader.u8()? },
            5 | 6 => return self.decode_names(reader),
            CHECKPOINT_END => Record::CheckpointEnd { digest: reader.u32()? },
            10..=14 => self.decode_chunks(reader)?,
            20..=24 => self.decode_pages(reader)?,
            KEY => Record::Key { key: reader.u16()?, check: reader.array()? },
            tag if file::TAGS.contains(&tag) => {
                return Ok(FileRecord::decode(tag, reader)?.map(Record::File));
            }
            0 => return Ok(Err("a record of kind 0".to_owned())),
            _ => self.decode_object(reader)?,
        };
        Ok(Ok(record))
    }

    fn decode_names(&self, reader: &mut Reader<'_>) -> Result<Result<Record, String>, ReadError> {
        let id = reader.u64()?;
        let name = match text(reader, LONGEST_NAME)? {
            Ok(name) => name,
            Err(why) => return Ok(Err(why)),
        };
        if self.tag == 6 {
            return Ok(Ok(Record::Renamed { id, name }));
        }
        let mut adopted = None;
        if reader.u8()? == 1 {
            let path = match text(reader, usize::from(u16::MAX))? {
                Ok(path) => path,
                Err(why) => return Ok(Err(why)),
            };
            adopted = Some((path, identity(reader)?));
        }
        Ok(Ok(Record::Object { id, name, adopted }))
    }

    fn decode_object(&self, reader: &mut Reader<'_>) -> Result<Record, ReadError> {
        let id = reader.u64()?;
        Ok(match self.tag {
            7 => Record::Deleted { id },
            8 => Record::Size { id, size_bytes: reader.u64()?, tail_is_stale: reader.u8()? == 1 },
            15 => Record::NextObject { id },
            16 => Record::AllUnmirrored { id },
            18 => Record::WallTime { ms: id },
            17 => Record::Adopted { id, identity: identity(reader)? },
            _ => {
                let (preferred, pin, quota) = (reader.u8()?, reader.u8()?, reader.u64()?);
                let quota_bytes = (quota != u64::MAX).then_some(quota);
                let attributes = AttributeRecord { class: class(preferred), pin: class(pin), quota_bytes };
                Record::Attributes { id, attributes }
            }
        })
    }

    fn decode_pages(&self, reader: &mut Reader<'_>) -> Result<Record, ReadError> {
        let id = reader.u64()?;
        Ok(match self.tag {
            20 => Record::Paged { id, shift: reader.u8()?, pages: reader.u64()? },
            21 => Record::Transform { id, algorithm: reader.u8()?, level: reader.u8()?, key: reader.u16()? },
            22 => {
                let (first, count) = (reader.u64()?, reader.u16()?);
                let words = (0..count).map(|_| reader.u64()).collect::<Result<Vec<u64>, ReadError>>()?;
                Record::Pages { id, first, words }
            }
            23 => Record::PagesUnmapped { id, first: reader.u64()?, count: reader.u64()? },
            _ => Record::LogicalSize { id, size_bytes: reader.u64()? },
        })
    }

    fn decode_chunks(&self, reader: &mut Reader<'_>) -> Result<Record, ReadError> {
        let (id, chunk) = (reader.u64()?, reader.u64()?);
        Ok(match self.tag {
            10 => Record::Mapped { id, first: chunk, count: reader.u32()?, place: place(reader)? },
            11 => Record::Unmapped { id, first: chunk, count: reader.u64()? },
            12 => Record::Mirrored { id, chunk, place: place(reader)? },
            13 => Record::Unmirrored { id, chunk },
            _ => {
                let statistics = ChunkStatistics {
                    reads: reader.u32()?,
                    writes: reader.u32()?,
                    sequential: reader.u32()?,
                    bytes_read: reader.u64()?,
                    bytes_written: reader.u64()?,
                    heat: f32::from_bits(reader.u32()?),
                };
                Record::Statistics { id, chunk, statistics }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Vec<Record> {
        let place = Place { class: 2, no: 77 };
        let identity = Identity { file: 5 << 70, size_bytes: 999, modified_ns: -3 };
        vec![
            Record::Class {
                id: 1,
                rank: 0,
                segment_bytes: 131072,
                chunks: 9,
                devices: 3,
                is_draining: true,
                name: "staging".to_owned(),
            },
            Record::ClassDraining { id: 1, is_draining: true },
            Record::ClassChunks { id: 1, chunks: 8 },
            Record::ClassRemoved { id: 1 },
            Record::Object { id: 7, name: "水".to_owned(), adopted: None },
            Record::Object { id: 8, name: "b".to_owned(), adopted: Some(("x/y".to_owned(), identity)) },
            Record::Renamed { id: 8, name: "c".to_owned() },
            Record::Deleted { id: 8 },
            Record::Size { id: 7, size_bytes: 1 << 40, tail_is_stale: true },
            Record::Attributes { id: 7, attributes: AttributeRecord::default() },
            Record::Attributes {
                id: 7,
                attributes: AttributeRecord { class: Some(0), pin: Some(3), quota_bytes: Some(0) },
            },
            Record::Mapped { id: 7, first: 3, count: 40, place },
            Record::Paged { id: 7, shift: 14, pages: 9 },
            Record::Transform { id: 7, algorithm: 2, level: 22, key: 65535 },
            Record::Pages { id: 7, first: 1 << 40, words: vec![0, 1, u64::MAX] },
            Record::PagesUnmapped { id: 7, first: 3, count: u64::MAX },
            Record::LogicalSize { id: 7, size_bytes: 12345 },
            Record::Key { key: 3, check: *b"8 bytes!" },
            Record::Unmapped { id: 7, first: 3, count: u64::MAX },
            Record::Mirrored { id: 7, chunk: 3, place },
            Record::Unmirrored { id: 7, chunk: 3 },
            Record::Statistics {
                id: 7,
                chunk: 4,
                statistics: ChunkStatistics {
                    reads: 1,
                    writes: 2,
                    sequential: 3,
                    bytes_read: 4,
                    bytes_written: 5,
                    heat: 6.5,
                },
            },
            Record::NextObject { id: 99 },
            Record::AllUnmirrored { id: 7 },
            Record::Adopted { id: 7, identity },
            Record::WallTime { ms: 1 << 41 },
            Record::CheckpointEnd { digest: 0xfeed },
        ]
    }

    #[test]
    fn every_record_comes_back_as_written() {
        let mut bytes = Vec::new();
        samples().iter().for_each(|record| record.encode(&mut bytes));
        let mut reader = Reader::new(&bytes);
        for record in samples() {
            assert_eq!(Record::decode(&mut reader), Ok(record));
        }
        assert!(reader.is_empty());
    }

    #[test]
    fn kinds_that_are_unknown_are_no_damage() {
        let decode = |bytes: &[u8]| Record::decode(&mut Reader::new(bytes));
        for tag in LAST_TAG + 1..=u8::MAX {
            assert_eq!(decode(&[tag; 100]), Err(NoRecord::Unknown(tag)));
        }
        for tag in 0..=LAST_TAG {
            assert!(!matches!(decode(&[tag]), Ok(_) | Err(NoRecord::Unknown(_))), "{tag} is cut short");
        }
        assert!(matches!(decode(&[0; 100]), Err(NoRecord::Damaged(_))));
    }

    #[test]
    fn no_bytes_make_decoding_panic() {
        let mut bytes = Vec::new();
        samples().iter().for_each(|record| record.encode(&mut bytes));
        let mut random = tanada_base::SplitMix64::new(1);
        for _ in 0..5000 {
            let mut damaged = bytes.clone();
            let place = random.below(bytes.len() as u64) as usize;
            damaged[place] = random.next_u64() as u8;
            damaged.truncate(random.below(bytes.len() as u64 + 1) as usize);
            let mut reader = Reader::new(&damaged);
            while !reader.is_empty() && Record::decode(&mut reader).is_ok() {}
        }
    }
}
