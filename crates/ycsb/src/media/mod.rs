//! Storage that engines are measured on: the same for all of them, with a known speed.
//!
//! - [`LoopDisk`]: a file system on a loop device, with limits that the kernel enforces on everything below the file
//!   system. Any engine can use it: it is what comparisons run on. It takes root and the block-I/O controller of
//!   version 1 cgroups; without limits, root alone.
//! - a plain folder: whatever the machine has.
//! - emulated devices ([`CAPACITY_MODEL`], [`STAGING_MODEL`], `4xsata-qlc`, `nvme`): for engines on `tanada-io` alone,
//!   in virtual time, where a latency is the modelled one whatever this machine is doing.
//!
//! What the limits are not: a latency. An I/O within the limits takes what the machine takes. The kernel gives
//! allowances out ten times a second, so a device at its limit serves in bursts and then makes everyone wait for up to
//! 100 ms: percentiles near the top say how often an engine ran into the limit. That is so for every engine alike.

mod disk;
mod limits;
mod probe;

use serde::{Deserialize, Serialize};

pub use disk::LoopDisk;
pub(crate) use disk::free_room;
pub use limits::Limits;
pub use probe::random_reads_per_second;

/// [`Limits::CAPACITY`] as an emulated device.
pub const CAPACITY_MODEL: &str =
    "sata-ssd:read-rate=400MB/s,write-rate=120MB/s,command=66.667us,write-iops=4000,half-duplex=off";
/// [`Limits::STAGING`] as an emulated device.
pub const STAGING_MODEL: &str =
    "nvme:read-rate=1GB/s,write-rate=400MB/s,command=16.667us,write-iops=30000,write-buffer=1MiB";

/// What an engine's files lie on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MediaKind {
    /// Loop devices with the limits of [`Limits::CAPACITY`] and [`Limits::STAGING`].
    Limited,
    /// Loop devices without limits: the machine's own disk, but bytes are counted by class.
    Unlimited,
    /// Folders: the machine's own disk. Bytes are what an engine counts itself, and unknown if it does not.
    Folder,
}

impl MediaKind {
    /// The best this machine can do.
    pub fn available() -> MediaKind {
        match (disk::is_possible(), limits::controller()) {
            (true, Some(_)) => MediaKind::Limited,
            (true, None) => MediaKind::Unlimited,
            (false, _) => MediaKind::Folder,
        }
    }

    /// What files lie on, in words.
    pub(crate) fn told(self) -> &'static str {
        match self {
            MediaKind::Limited => "loop devices that are limited to the speed of a class",
            MediaKind::Unlimited => "loop devices without limits",
            MediaKind::Folder => "folders",
        }
    }

    /// As it is written in settings.
    pub fn name(self) -> &'static str {
        match self {
            MediaKind::Limited => "limited",
            MediaKind::Unlimited => "unlimited",
            MediaKind::Folder => "folder",
        }
    }
}
