//! A simulated disk with faults, a deterministic executor, and the campaigns that prove the layers that write.
//!
//! Beside the house: it tests the layers below it and is never a dependency of what is shipped. Below: `tanada-volume`,
//! `tanada-io`, `tanada-base`.
//!
//! - [`Simulation::run`] runs a scenario on one thread in virtual time; a seed decides everything that is left open.
//! - A [`SimDisk`] gives [`Device`](tanada_io::Device)s that fail by [`Rule`]s and lose what was not synced.
//! - A [`History`](history::History) of concurrent transactions says which isolation level it keeps to.
//! - A [`Wreck`] is what a power cut finds; many different [survivors](Wreck::survivors) are drawn from one.
//!
//! ```
//! use tanada_base::SplitMix64;
//! use tanada_io::BufferPool;
//! use tanada_sim::{DiskOptions, Outcome, Simulation};
//!
//! let run = Simulation::run(42, |world| async move {
//!     let device = world.disk(DiskOptions::named("disk")).device();
//!     let mut buffer = BufferPool::new(0).allocate(4096);
//!     buffer.fill(1);
//!     let mut buffer = device.write(0, buffer).await?;
//!     device.sync().await?;
//!     buffer.fill(2);
//!     device.write(0, buffer).await?; // not synced
//!     world.cut_power();
//!     std::future::pending::<tanada_io::Result<()>>().await
//! });
//! assert!(matches!(run.outcome, Outcome::PowerCut));
//! let (name, image) = &run.wreck.survivors(&mut SplitMix64::new(1))[0];
//! assert_eq!(name, "disk");
//! assert!(image.to_bytes().chunks(512).all(|sector| sector == [1; 512] || sector == [2; 512]));
//! ```
#![forbid(unsafe_code)]

mod campaign;
mod disk;
mod executor;
mod fault;
pub mod history;
mod keyvalue;
mod oracle;
mod trace;

pub use campaign::{
    Case, DamageReport, Density, Failure, Report, Trial, a_device_is_gone, rot_of_a_superblock,
    rot_of_metadata, story_names,
};
pub use disk::{DiskImage, DiskOptions, DiskSet, IoNote, SimDisk, Tearing, Wreck, WreckedDisk};
pub use executor::{JoinHandle, Outcome, Run, Simulation, Sleep, VirtualClock, VirtualTimer, World};
pub use fault::{Fault, Rule, RuleNo, When};
pub use keyvalue::KeyValueTrial;
