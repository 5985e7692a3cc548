//! What a device lies on: decides which measurements tell how fast it is.

use std::fmt;

use crate::ModelSpec;

/// What a device lies on.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Medium {
    /// Nobody knows.
    #[default]
    Unknown,
    /// A disk or a partition of this machine, by its device number as `stat(2)` gives it.
    Disk(u64),
    /// An emulated device.
    Model {
        /// What is emulated.
        spec: ModelSpec,
        /// Bytes over which what it holds is spread.
        extent_bytes: u64,
    },
}

impl Medium {
    /// The disk that a file, a folder or a block device lies on.
    pub fn of_metadata(metadata: &std::fs::Metadata) -> Medium {
        use std::os::unix::fs::MetadataExt;
        Medium::Disk(if metadata.rdev() != 0 { metadata.rdev() } else { metadata.dev() })
    }
}

impl fmt::Display for Medium {
    /// `unknown`, `disk 8:3` or `8xhdd-7200 (emulated)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Medium::Unknown => f.write_str("unknown"),
            Medium::Disk(number) => write!(f, "disk {}:{}", major(*number), minor(*number)),
            Medium::Model { spec, .. } => write!(f, "{spec} (emulated)"),
        }
    }
}

/// As `makedev(3)` has it on Linux.
fn major(device: u64) -> u64 {
    ((device >> 8) & 0xfff) | ((device >> 32) & !0xfff)
}

fn minor(device: u64) -> u64 {
    (device & 0xff) | ((device >> 12) & 0xffff_ff00)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Device, DeviceOptions, Timeline};

    #[test]
    fn a_file_lies_on_the_disk_of_its_folder_and_an_emulated_one_on_the_model() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, [0; 4096]).unwrap();
        let device = Device::open(&path, &DeviceOptions::default()).unwrap();
        assert_eq!(device.medium(), Medium::of_metadata(&std::fs::metadata(folder.path()).unwrap()));
        let spec: ModelSpec = "2xhdd-7200".parse().unwrap();
        let device = Timeline::real().array(&spec, 1).place(device).unwrap();
        assert!(matches!(device.medium(), Medium::Model { spec: found, .. } if found == spec));
        assert_eq!(device.medium().to_string(), "2xhdd-7200 (emulated)");
        assert_eq!(Medium::Disk(0x803).to_string(), "disk 8:3");
    }
}
