//! The tiered volume: objects made of chunks, each mapped to a physical chunk of one media class.
//!
//! Above: relations that read and write objects. Below: `tanada-io` for devices, `tanada-base`.
//!
//! - A [`Volume`] is made of [`Parts`]: a device for the metadata, devices for each class, a clock. The core has no threads, no files and no
//!   time of its own; it runs wherever its futures are polled: on executors, under tokio, in a simulation.
//! - An [`Object`] is a named, growable sequence of bytes. What is written is durable when [`Object::sync`] has returned.
//! - A *class* is one or more striped devices of one speed; classes are ordered fastest first. A chunk has its home in one class, and may have a
//!   mirror in a faster one.
//!
//! The format on the devices is described in `docs/volume-format.md`.
#![forbid(unsafe_code)]

mod adopted;
mod check;
mod chunk;
mod class;
mod crash;
pub mod directory;
mod error;
mod metadata;
mod object;
mod parts;
mod relocation;
mod settings;
mod statistics;
mod volume;
mod waiting;

pub use adopted::{Identity, NoOpener, Opener};
pub use check::{CheckReport, Finding, Severity};
pub use chunk::Place;
pub use crash::{CRASH_POINTS, CrashPoints, CrashProbe, PlantedBug};
pub use error::{Error, ErrorKind, Result};
pub use object::{Attributes, ChunkInfo, Object, ObjectBackend};
pub use parts::{ClassParts, Parts};
pub use relocation::{Action, Budget, Decision, Progress, Relocated, Relocation, Timer};
pub use settings::{
    BLOCK_BYTES, ClassSettings, LARGEST_OBJECT, LONGEST_NAME, MOST_CLASSES, MOST_DEVICES, OpenOptions,
    VolumeSettings,
};
pub use statistics::{ChunkStatistics, DirectionStatistics, Histogram, IoStatistics, LATENCY_BUCKETS};
pub use volume::{ClassInfo, Volume};
