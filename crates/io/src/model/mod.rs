//! Models of storage devices: how long a disk, an SSD or an array of them would take.
//!
//! A [`ModelSpec`] (`8xhdd-7200`) says what to emulate. [`Timeline`](crate::Timeline) puts a model before a device: its
//! bytes come from that device, its completions when the model says so. What is emulated and what the figures come
//! from: `docs/device-models.md`.
//!
//! From the bottom up: `command` (events in, times out), `spindle` and `flash` (one device each), `array` (RAID-0 over
//! them), all of them without I/O, clock or threads; `placement` (files on the array's addresses), `modelled` (the
//! device that waits), `lateness` (of those who wait for it), `queue` (the array on its own).

mod array;
mod command;
mod flash;
mod keys;
pub(crate) mod lateness;
mod modelled;
mod placement;
mod preset;
mod queue;
mod spec;
mod spindle;

pub(crate) use array::Array;
pub(crate) use command::{Command, Completed, Nanos};
pub use modelled::ModelledArray;
pub(crate) use modelled::{Core, Finished};
pub use preset::{FlashSpec, MemberSpec, Preset, SpindleSpec};
pub use queue::ModelQueue;
pub use spec::ModelSpec;

#[cfg(test)]
mod check;
