//! Bytes that a block device read and wrote, as the kernel counts them: the same for every engine on it, file system
//! included.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::engine::ClassBytes;

/// The kernel counts sectors of this size, whatever the device's.
const SECTOR_BYTES: u64 = 512;

/// A block device, by its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockDevice {
    /// Its major number.
    pub major: u64,
    /// Its minor number.
    pub minor: u64,
}

impl BlockDevice {
    /// From `7:0`.
    pub fn parse(text: &str) -> Option<BlockDevice> {
        let (major, minor) = text.trim().split_once(':')?;
        Some(BlockDevice { major: major.parse().ok()?, minor: minor.parse().ok()? })
    }

    /// The device of the mount that holds `path`; `None` for file systems without one.
    pub fn of_path(path: &Path) -> Option<BlockDevice> {
        use std::os::unix::fs::MetadataExt;
        let number = fs::metadata(path).ok()?.dev();
        // Linux splits device numbers so (`gnu_dev_major`).
        let major = (number >> 8 & 0xfff) | (number >> 32 & !0xfff);
        let minor = (number & 0xff) | (number >> 12 & 0xff_ff00);
        let device = BlockDevice { major, minor };
        device.counters("").map(|_| device)
    }

    /// What it read and wrote since it was made.
    pub fn counters(&self, name: &str) -> Option<ClassBytes> {
        let path = format!("/sys/dev/block/{}:{}/stat", self.major, self.minor);
        parse(&fs::read_to_string(path).ok()?, name)
    }
}

fn parse(stat: &str, name: &str) -> Option<ClassBytes> {
    let fields: Vec<u64> = stat.split_ascii_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
    let sectors = |field: usize| fields.get(field).map(|sectors| sectors * SECTOR_BYTES);
    Some(ClassBytes { name: name.to_owned(), bytes_read: sectors(2)?, bytes_written: sectors(6)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sectors_are_found_in_the_kernels_line() {
        let stat = "  485  2  518274  289  163  266  199496  115  0  188  493  2  0  4194312  2  67  85";
        let counted = parse(stat, "staging").unwrap();
        assert_eq!((counted.bytes_read, counted.bytes_written), (518_274 * 512, 199_496 * 512));
        assert_eq!(parse("1 2 three", ""), None);
        assert_eq!(BlockDevice::parse("7:12\n"), Some(BlockDevice { major: 7, minor: 12 }));
        assert_eq!(BlockDevice::of_path(Path::new("/proc")), None);
    }
}
