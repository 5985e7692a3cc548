//! Our types as those of FUSE's library.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{FileAttr, FileType, INodeNo, TimeOrNow};

use crate::system::Attributes;
use crate::{Errno, Kind};

impl From<Errno> for fuser::Errno {
    fn from(error: Errno) -> fuser::Errno {
        fuser::Errno::from_i32(error.number())
    }
}

/// A kind as the kernel calls it.
pub(super) fn file_type(kind: Kind) -> FileType {
    match kind {
        Kind::Folder => FileType::Directory,
        Kind::File => FileType::RegularFile,
    }
}

/// A time from nanoseconds since 1970.
fn time(ns: i64) -> SystemTime {
    let distance = Duration::from_nanos(ns.unsigned_abs());
    let time = if ns < 0 { UNIX_EPOCH.checked_sub(distance) } else { UNIX_EPOCH.checked_add(distance) };
    time.unwrap_or(UNIX_EPOCH)
}

/// Nanoseconds since 1970, as near as they can be had.
pub(super) fn nanoseconds(time: TimeOrNow) -> i64 {
    let time = match time {
        TimeOrNow::SpecificTime(time) => time,
        TimeOrNow::Now => SystemTime::now(),
    };
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_nanos()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_nanos()).map_or(i64::MIN, |ns| -ns),
    }
}

/// What `stat` says, as the kernel wants it.
pub(super) fn attributes(from: &Attributes) -> FileAttr {
    FileAttr {
        ino: INodeNo(from.ino),
        size: from.size,
        blocks: from.allocated_bytes / 512,
        // Reads leave no trace.
        atime: time(from.file.modified_ns),
        mtime: time(from.file.modified_ns),
        ctime: time(from.file.changed_ns),
        crtime: UNIX_EPOCH,
        kind: file_type(from.kind),
        perm: (from.file.mode & 0o7777) as u16,
        nlink: from.links,
        uid: from.file.uid,
        gid: from.file.gid,
        rdev: 0,
        blksize: 4096,
        flags: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_before_and_after_1970_come_back() {
        for ns in [0, 1, -1, 1_764_454_000_123_456_789, -1_000_000_007] {
            assert_eq!(nanoseconds(TimeOrNow::SpecificTime(time(ns))), ns);
        }
    }
}
