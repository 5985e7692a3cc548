//! The metadata on their device: two superblocks and a log of a checkpoint and a journal.
//!
//! See `docs/volume-format.md` for the whole. [`journal`] writes, [`replay`] reads, [`recovered`] is what was read.

mod block;
mod fields;
mod file;
pub(crate) mod journal;
pub(crate) mod record;
pub(crate) mod recovered;
pub(crate) mod replay;
mod successor;
pub(crate) mod superblock;

pub(crate) use fields::AttributeRecord;
pub use file::FileAttributes;
pub(crate) use file::{FileRecord, FolderRecord};
pub(crate) use journal::{Journal, Log, Queue, Rest, Snapshot};
pub(crate) use record::Record;
pub(crate) use recovered::{
    Recovered, RecoveredClass, RecoveredObject, WallTime, renamed_below, renamed_folders,
};
pub(crate) use replay::{Replayed, replay};
pub(crate) use successor::{InForce, read_superblock};
pub(crate) use superblock::{FIRST_LOG_OFFSET, Superblock};
