//! The tiered volume: objects made of chunks, each mapped to a physical chunk of one media class.
//!
//! Above: relations that read and write objects. Below: `tanada-io` for devices, `tanada-base`.
//!
//! - A [`Volume`] is made of [`Parts`]: a device for the metadata, devices for each class, a clock. The core has no
//!   threads, no files and no time of its own; it runs wherever its futures are polled: on executors, under tokio, in a
//!   simulation.
//! - An [`Object`] is a named, growable sequence of bytes. What is written is durable when [`Object::sync`] has
//!   returned.
//! - A *class* is one or more striped devices of one speed; classes are ordered fastest first. A chunk has its home in
//!   one class, and may have a mirror in a faster one.
//!
//! ```
//! use tanada_io::{Device, DeviceOptions};
//! use tanada_volume::{Attributes, ClassSettings, OpenOptions, Parts, Relocation, Volume, VolumeSettings};
//!
//! # let folder = tempfile::tempdir().unwrap();
//! let device = |name: &str| {
//!     Device::open(folder.path().join(name), &DeviceOptions { create: true, ..DeviceOptions::default() })
//! };
//! let parts = || -> Result<Parts, tanada_io::Error> {
//!     let parts = Parts::new(device("metadata")?);
//!     Ok(parts.with_class("staging", vec![device("nvme")?]).with_class("capacity", vec![device("disk")?]))
//! };
//! let class = |name: &str| ClassSettings { name: name.to_owned(), size_bytes: 64 << 20, ..ClassSettings::default() };
//! let settings = VolumeSettings {
//!     id: *b"16 random bytes!",
//!     classes: vec![class("staging"), class("capacity")], // fastest first
//!     ..VolumeSettings::default()
//! };
//! # futures::executor::block_on(async {
//! let volume = Volume::create(parts()?, &settings).await?;
//! let object = volume.create_object("orders", &Attributes::default())?;
//! object.write_bytes(0, b"rice").await?;
//! object.sync().await?; // durable from here on
//! object.mirror_to(0..1, "staging", &Relocation::default()).await?;
//! volume.close().await?;
//!
//! let volume = Volume::open(parts()?, &OpenOptions::default()).await?;
//! assert_eq!(volume.open_object("orders")?.read_bytes(0, 100).await?, b"rice");
//! assert_eq!(volume.classes()[0].statistics.read.ios, 1); // from the mirror
//! # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
//! ```
//!
//! The format on the devices is described in `docs/volume-format.md`.
#![forbid(unsafe_code)]

mod adopted;
mod adoption;
mod check;
mod chunk;
mod class;
mod crash;
pub mod directory;
mod error;
#[doc(hidden)]
pub mod example;
mod metadata;
mod object;
mod page;
mod parts;
mod relocation;
mod settings;
mod statistics;
pub mod transform;
mod volume;
mod waiting;

pub use adopted::{Identity, NoOpener, Opener};
pub use check::{CheckReport, Finding, Severity};
pub use chunk::Place;
pub use crash::{CRASH_POINTS, CrashPoints, CrashProbe, PlantedBug};
pub use error::{Error, ErrorKind, Result};
pub use metadata::FileAttributes;
pub use object::{Attributes, ChunkInfo, Object, ObjectBackend};
pub use page::{OptimizeProgress, Optimized, PageStatistics};
pub use parts::{ClassParts, CleanerWork, Cleaners, Parts, SpawnCleaner};
pub use relocation::{Action, Budget, Decision, Progress, Relocated, Relocation, Timer};
pub use settings::{
    BLOCK_BYTES, ClassSettings, LARGEST_OBJECT, LONGEST_NAME, MOST_CLASSES, MOST_DEVICES, OpenOptions,
    VolumeSettings,
};
pub use statistics::{
    ChunkStatistics, DirectionStatistics, Histogram, IoStatistics, LATENCY_BUCKETS, PunchStatistics,
};
pub use transform::{Compression, KeyRing};
pub use volume::{Claim, ClassInfo, ClassListener, Folder, Volume};
