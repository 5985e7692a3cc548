//! How a tree changes: an edit is made durable by the manifest, then applied to the tree in memory.
//!
//! The changes of an edit are applied one after the other. Places are named relative to kvsets that are there, because
//! a flush may have put others on top meanwhile.

use bytes::Bytes;

use crate::entry::SegmentNo;
use crate::keyfile::KeyFileInfo;
use crate::wire::{Decoder, Malformed, put_blob, put_varint};

/// The number of a key file, and of the kvset in it. Segments and key files of a database draw numbers from one
/// sequence.
pub(crate) type KvsetNo = u64;

/// The number of a leaf in its tree; no two that are there have the same.
pub(crate) type LeafNo = u64;

/// The place of a kvset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Place {
    Root,
    Leaf(LeafNo),
    /// Spilled kvsets, in databases of earlier versions of the program; ignored.
    Spilled,
}

/// The position among the kvsets of a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Position {
    /// Newest of all.
    Top,
    /// Newer than that one by one step.
    Above(KvsetNo),
}

/// The kind of a kvset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum KvsetKind {
    #[default]
    Data,
    /// Repeats versions of the kvsets below it in its leaf, with values that were copied to a faster class. Without it
    /// nothing is lost as long as those are there.
    Promoted,
}

/// A kvset, as the manifest knows it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct KvsetRecord {
    pub(crate) no: KvsetNo,
    pub(crate) kind: KvsetKind,
    pub(crate) info: KeyFileInfo,
}

impl AsRef<KvsetRecord> for KvsetRecord {
    fn as_ref(&self) -> &KvsetRecord {
        self
    }
}

/// A value segment, as the manifest knows it. It leaves the tree when no kvset references it any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SegmentRecord {
    pub(crate) no: SegmentNo,
    /// Bytes of values in it, referenced or not.
    pub(crate) stored_bytes: u64,
    /// The class it was meant for.
    pub(crate) class: Option<String>,
}

/// One step of an edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    /// A leaf begins at `start` and ends where the next one begins; the leaf that `start` lay in ends there now.
    AddLeaf {
        leaf: LeafNo,
        start: Bytes,
    },
    /// The leaf is none any more: what it has goes on top of the leaf before it, to which its keys belong now.
    JoinLeaf {
        leaf: LeafNo,
    },
    AddKvset {
        place: Place,
        position: Position,
        kvset: KvsetRecord,
    },
    RemoveKvset {
        place: Place,
        kvset: KvsetNo,
    },
    AddSegment {
        segment: SegmentRecord,
    },
    /// The log segment mirrors this many (more) bytes of values of leaves.
    AddMirror {
        segment: SegmentNo,
        stored_bytes: u64,
    },
    /// None may any more.
    RemoveMirror {
        segment: SegmentNo,
    },
}

/// Changes of a tree that become durable together.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Edit {
    pub(crate) changes: Vec<Change>,
}

const FORMAT: u8 = 1;

impl Edit {
    pub(crate) fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.push(FORMAT);
        put_varint(out, self.changes.len() as u64);
        for change in &self.changes {
            change.encode(out);
        }
    }

    pub(crate) fn decode(decoder: &mut Decoder<'_>) -> Result<Edit, Malformed> {
        let format = decoder.u8()?;
        if format != FORMAT {
            return Err(decoder.unknown("an edit of format", format, u64::from(FORMAT)));
        }
        let mut edit = Edit::default();
        for _ in 0..decoder.varint()? {
            edit.changes.push(Change::decode(decoder)?);
        }
        Ok(edit)
    }
}

impl Change {
    /// The largest that there is.
    pub(crate) const LAST_KIND: u8 = 7;

    /// Returns the kind byte that precedes its fields.
    pub(crate) fn kind(&self) -> u8 {
        match self {
            Change::AddLeaf { .. } => 1,
            Change::AddKvset { .. } => 2,
            Change::RemoveKvset { .. } => 3,
            Change::AddSegment { .. } => 4,
            Change::AddMirror { .. } => 5,
            Change::RemoveMirror { .. } => 6,
            Change::JoinLeaf { .. } => 7,
        }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.kind());
        match self {
            Change::AddLeaf { leaf, start } => {
                put_varint(out, *leaf);
                put_blob(out, start);
            }
            Change::JoinLeaf { leaf } => put_varint(out, *leaf),
            Change::AddKvset { place, position, kvset } => {
                place.encode(out);
                match position {
                    Position::Top => out.push(0),
                    Position::Above(below) => {
                        out.push(1);
                        put_varint(out, *below);
                    }
                }
                put_varint(out, kvset.no);
                out.push(u8::from(kvset.kind == KvsetKind::Promoted));
                kvset.info.encode(out);
            }
            Change::RemoveKvset { place, kvset } => {
                place.encode(out);
                put_varint(out, *kvset);
            }
            Change::AddSegment { segment } => {
                put_varint(out, segment.no);
                put_varint(out, segment.stored_bytes);
                out.push(u8::from(segment.class.is_some()));
                if let Some(class) = &segment.class {
                    put_blob(out, class.as_bytes());
                }
            }
            Change::AddMirror { segment, stored_bytes } => {
                put_varint(out, *segment);
                put_varint(out, *stored_bytes);
            }
            Change::RemoveMirror { segment } => put_varint(out, *segment),
        }
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Change, Malformed> {
        Ok(match decoder.u8()? {
            1 => Change::AddLeaf { leaf: decoder.varint()?, start: Bytes::copy_from_slice(decoder.blob()?) },
            2 => Change::AddKvset {
                place: Place::decode(decoder)?,
                position: match decoder.u8()? {
                    0 => Position::Top,
                    1 => Position::Above(decoder.varint()?),
                    _ => return Err(decoder.malformed("an unknown position")),
                },
                kvset: KvsetRecord {
                    no: decoder.varint()?,
                    kind: match decoder.u8()? {
                        0 => KvsetKind::Data,
                        1 => KvsetKind::Promoted,
                        kind => return Err(decoder.unknown("a kvset of kind", kind, 1)),
                    },
                    info: KeyFileInfo::decode(decoder)?,
                },
            },
            3 => Change::RemoveKvset { place: Place::decode(decoder)?, kvset: decoder.varint()? },
            4 => {
                let (no, stored_bytes) = (decoder.varint()?, decoder.varint()?);
                let class = match decoder.u8()? {
                    0 => None,
                    1 => {
                        let name = std::str::from_utf8(decoder.blob()?);
                        Some(name.map_err(|_| decoder.malformed("a class's name is not UTF-8"))?.to_owned())
                    }
                    _ => return Err(decoder.malformed("neither a class nor none")),
                };
                Change::AddSegment { segment: SegmentRecord { no, stored_bytes, class } }
            }
            5 => Change::AddMirror { segment: decoder.varint()?, stored_bytes: decoder.varint()? },
            6 => Change::RemoveMirror { segment: decoder.varint()? },
            7 => Change::JoinLeaf { leaf: decoder.varint()? },
            kind => return Err(decoder.unknown("a change of kind", kind, Change::LAST_KIND.into())),
        })
    }
}

impl Place {
    fn encode(self, out: &mut Vec<u8>) {
        match self {
            Place::Root => out.push(0),
            Place::Leaf(leaf) => {
                out.push(1);
                put_varint(out, leaf);
            }
            Place::Spilled => out.push(2),
        }
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Place, Malformed> {
        match decoder.u8()? {
            0 => Ok(Place::Root),
            1 => Ok(Place::Leaf(decoder.varint()?)),
            2 => Ok(Place::Spilled),
            place => Err(decoder.unknown("a place of kind", place, 2)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::keyfile::SegmentReferences;

    fn sample() -> Edit {
        let info = KeyFileInfo {
            entries: 3,
            deletes: 1,
            range_tombstones: 2,
            key_bytes: 300,
            inline_bytes: 40,
            size_bytes: 8192,
            first_key: Bytes::from_static(b"a"),
            last_key: Bytes::from(vec![7; 300]),
            smallest_sequence: 5,
            largest_sequence: u64::MAX,
            first_expiry_s: Some(u32::MAX),
            references: vec![
                SegmentReferences { segment: 1, values: 2, stored_bytes: 3 },
                SegmentReferences { segment: 9, values: 1, stored_bytes: 1 << 40 },
            ],
        };
        let kvset = KvsetRecord { no: 77, kind: KvsetKind::Promoted, info };
        let segment = SegmentRecord { no: 9, stored_bytes: 1 << 40, class: Some("capacity".to_owned()) };
        let place = Place::Leaf(300);
        Edit {
            changes: vec![
                Change::AddLeaf { leaf: 300, start: Bytes::from_static(b"") },
                Change::AddSegment { segment },
                Change::AddKvset { place, position: Position::Top, kvset: KvsetRecord::default() },
                Change::AddKvset { place, position: Position::Above(0), kvset },
                Change::RemoveKvset { place: Place::Root, kvset: 4 },
                Change::RemoveKvset { place: Place::Spilled, kvset: 5 },
                Change::AddMirror { segment: 12, stored_bytes: 1 << 33 },
                Change::RemoveMirror { segment: 300 },
                Change::JoinLeaf { leaf: 1 << 20 },
            ],
        }
    }

    #[test]
    fn an_edit_is_read_as_it_was_written() {
        let mut out = Vec::new();
        sample().encode(&mut out);
        let mut decoder = Decoder::new(&out);
        assert_eq!(Edit::decode(&mut decoder), Ok(sample()));
        assert_eq!(decoder.finish(), Ok(()));
        for len in 0..out.len() {
            assert!(Edit::decode(&mut Decoder::new(&out[..len])).is_err(), "cut off at {len}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_give_an_edit_or_an_error(mut bytes: Vec<u8>) {
            bytes.insert(0, FORMAT);
            let _ = Edit::decode(&mut Decoder::new(&bytes));
        }
    }
}
