//! Records of a manifest.

use crate::database::Activity;
use crate::entry::{SegmentNo, SequenceNo};
use crate::log::Lsn;
use crate::log::frame::StoreNo;
use crate::settings::{DatabaseSettings, StoreSettings};
use crate::tree::Edit;
use crate::wire::{Decoder, Malformed, Newer, put_blob, put_varint};

/// Format of manifests: 2 has what was done over all openings, and of a copy whether it is finished.
pub(crate) const FORMAT: u64 = 2;

/// The record of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct LogRecord {
    /// A replay begins here,
    pub(crate) begin: Lsn,
    /// in this segment, if there is one.
    pub(crate) segment: Option<SegmentNo>,
    /// The log is durable up to here at least.
    pub(crate) durable: Lsn,
    /// The largest sequence number so far.
    pub(crate) sequence: SequenceNo,
}

/// One change of a database.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Record {
    /// The first record of a manifest.
    Database {
        format: u64,
        identity: u64,
        next_store: StoreNo,
    },
    Settings(Box<DatabaseSettings>),
    Store {
        no: StoreNo,
        name: String,
    },
    StoreSettings {
        no: StoreNo,
        settings: Box<StoreSettings>,
    },
    StoreDropped {
        no: StoreNo,
    },
    Edit {
        store: StoreNo,
        edit: Edit,
    },
    /// Writes to the store before `lsn` are in its kvsets.
    Flushed {
        store: StoreNo,
        lsn: Lsn,
    },
    Log(LogRecord),
    /// Number of this opening of the database.
    Epoch(u64),
    /// All numbers of objects are smaller.
    NextObject(u64),
    /// The snapshot is complete.
    SnapshotEnd,
    /// Counters over all openings.
    Activity(Box<Activity>),
    /// Whether the database is a copy that is being made, of which something may be missing.
    Unfinished(bool),
}

fn put_json<T: serde::Serialize>(out: &mut Vec<u8>, value: &T) {
    // Settings have no keys that are not strings, so this cannot fail.
    put_blob(out, &serde_json::to_vec(value).unwrap_or_default());
}

fn json<T: serde::de::DeserializeOwned>(decoder: &mut Decoder<'_>) -> Result<T, Malformed> {
    let blob = decoder.blob()?;
    serde_json::from_slice(blob).map_err(|_| match serde_json::from_slice::<serde_json::Value>(blob) {
        // The frame's checksum was right, and it is JSON: with settings, or values of them, that are not known here.
        Ok(_) => Malformed { newer: Some(Newer::Settings), ..decoder.malformed("settings") },
        Err(_) => decoder.malformed("settings cannot be read"),
    })
}

fn string(decoder: &mut Decoder<'_>) -> Result<String, Malformed> {
    let blob = decoder.blob()?.to_vec();
    String::from_utf8(blob).map_err(|_| decoder.malformed("a name is not UTF-8"))
}

impl Record {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Record::Database { format, identity, next_store } => {
                out.push(1);
                put_varint(out, *format);
                put_varint(out, *identity);
                put_varint(out, u64::from(*next_store));
            }
            Record::Settings(settings) => {
                out.push(2);
                put_json(out, settings);
            }
            Record::Store { no, name } => {
                out.push(3);
                put_varint(out, u64::from(*no));
                put_blob(out, name.as_bytes());
            }
            Record::StoreSettings { no, settings } => {
                out.push(4);
                put_varint(out, u64::from(*no));
                put_json(out, settings);
            }
            Record::StoreDropped { no } => {
                out.push(5);
                put_varint(out, u64::from(*no));
            }
            Record::Edit { store, edit } => {
                out.push(6);
                put_varint(out, u64::from(*store));
                edit.encode(out);
            }
            Record::Flushed { store, lsn } => {
                out.push(7);
                put_varint(out, u64::from(*store));
                put_varint(out, *lsn);
            }
            Record::Log(log) => {
                out.push(8);
                put_varint(out, log.begin);
                put_varint(out, log.segment.map_or(0, |segment| segment + 1));
                put_varint(out, log.durable);
                put_varint(out, log.sequence);
            }
            Record::Epoch(epoch) => {
                out.push(9);
                put_varint(out, *epoch);
            }
            Record::NextObject(no) => {
                out.push(10);
                put_varint(out, *no);
            }
            Record::SnapshotEnd => out.push(11),
            Record::Activity(activity) => {
                out.push(12);
                put_json(out, activity);
            }
            Record::Unfinished(is_unfinished) => out.extend([13, u8::from(*is_unfinished)]),
        }
    }

    pub(crate) fn decode(decoder: &mut Decoder<'_>) -> Result<Record, Malformed> {
        Ok(match decoder.u8()? {
            1 => Record::Database {
                format: decoder.varint()?,
                identity: decoder.varint()?,
                next_store: decoder.varint_u32()?,
            },
            2 => Record::Settings(Box::new(json(decoder)?)),
            3 => Record::Store { no: decoder.varint_u32()?, name: string(decoder)? },
            4 => Record::StoreSettings { no: decoder.varint_u32()?, settings: Box::new(json(decoder)?) },
            5 => Record::StoreDropped { no: decoder.varint_u32()? },
            6 => Record::Edit { store: decoder.varint_u32()?, edit: Edit::decode(decoder)? },
            7 => Record::Flushed { store: decoder.varint_u32()?, lsn: decoder.varint()? },
            8 => Record::Log(LogRecord {
                begin: decoder.varint()?,
                segment: decoder.varint()?.checked_sub(1),
                durable: decoder.varint()?,
                sequence: decoder.varint()?,
            }),
            9 => Record::Epoch(decoder.varint()?),
            10 => Record::NextObject(decoder.varint()?),
            11 => Record::SnapshotEnd,
            12 => Record::Activity(Box::new(json(decoder)?)),
            13 => Record::Unfinished(decoder.u8()? != 0),
            kind => return Err(decoder.unknown("a record of kind", kind, 13)),
        })
    }
}
