//! Rates of a block device, as the kernel's block-I/O controller enforces them.
//!
//! Version 1 of the controller is used, where limits of the root group hold for everything that no other group does,
//! write-back by the kernel included; so an engine's buffered writes are limited like its direct ones. Version 2 has no
//! limits for the root group.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::measure::BlockDevice;
use crate::{Error, ErrorKind, Result};

/// Rates that a device must not exceed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Bytes read a second.
    pub bytes_read_per_second: u64,
    /// Bytes written a second.
    pub bytes_written_per_second: u64,
    /// Reads a second.
    pub reads_per_second: u64,
    /// Writes a second.
    pub writes_per_second: u64,
}

impl Limits {
    /// A slow SSD: 400 and 120 MB/s, 15,000 and 4,000 IOPS.
    pub const CAPACITY: Limits = Limits {
        bytes_read_per_second: 400_000_000,
        bytes_written_per_second: 120_000_000,
        reads_per_second: 15_000,
        writes_per_second: 4_000,
    };
    /// A faster one: 1,000 and 400 MB/s, 60,000 and 30,000 IOPS.
    pub const STAGING: Limits = Limits {
        bytes_read_per_second: 1_000_000_000,
        bytes_written_per_second: 400_000_000,
        reads_per_second: 60_000,
        writes_per_second: 30_000,
    };
    /// None.
    const OFF: Limits = Limits {
        bytes_read_per_second: 0,
        bytes_written_per_second: 0,
        reads_per_second: 0,
        writes_per_second: 0,
    };

    /// Has the kernel hold `device` to them.
    ///
    /// # Errors
    /// `Missing` if it cannot be done here.
    pub fn apply(&self, device: BlockDevice) -> Result<()> {
        let Some(folder) = controller() else {
            let message = "limits on devices take root and the blkio controller of version 1 cgroups";
            return Err(Error::new(ErrorKind::Missing, message));
        };
        let rates = [
            ("read_bps", self.bytes_read_per_second),
            ("write_bps", self.bytes_written_per_second),
            ("read_iops", self.reads_per_second),
            ("write_iops", self.writes_per_second),
        ];
        for (name, rate) in rates {
            let path = folder.join(format!("blkio.throttle.{name}_device"));
            let line = format!("{}:{} {rate}", device.major, device.minor);
            fs::write(&path, line).map_err(|error| Error::at_path("write", &path, &error))?;
        }
        Ok(())
    }

    /// Takes any limits of `device` away.
    pub fn remove(device: BlockDevice) {
        // A device that goes takes its limits with it; nobody could do more about it.
        let _ = Limits::OFF.apply(device);
    }
}

/// The folder of the group that this process is in, if its limits can be set and reach write-back too: the root group
/// of version 1.
pub(super) fn controller() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let folder = folder_of(&mounts, &groups)?;
    let limit = folder.join("blkio.throttle.read_bps_device");
    fs::OpenOptions::new().write(true).open(limit).is_ok().then_some(folder)
}

fn folder_of(mounts: &str, groups: &str) -> Option<PathBuf> {
    let has = |list: &str| list.split(',').any(|item| item == "blkio");
    let is_in_root = groups.lines().any(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        fields.next().is_some_and(has) && fields.next() == Some("/")
    });
    let mount = mounts.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(' ').collect();
        match fields[..] {
            [_, folder, "cgroup", options, ..] if has(options) => Some(Path::new(folder).to_owned()),
            _ => None,
        }
    });
    mount.filter(|_| is_in_root)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_controller_is_found_where_the_process_is_in_its_root_group() {
        let mounts = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\ncgroup /a/cpu cgroup rw,cpu 0 0\ncgroup /a/blkio cgroup rw,blkio 0 0\n";
        assert_eq!(folder_of(mounts, "8:pids:/\n7:blkio:/\n0::/\n"), Some(PathBuf::from("/a/blkio")));
        assert_eq!(folder_of(mounts, "7:blkio:/other\n"), None);
        assert_eq!(folder_of("cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n", "0::/\n"), None);
    }
}
