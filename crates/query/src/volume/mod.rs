//! Databases in a tiered volume: objects that are InnoDB files, adopted where they lie or imported, appear as
//! databases.
//!
//! - [`VolumeFiles`]: the objects of a volume as a tree of files for the InnoDB reader;
//! - [`mounts`](databases): which folders of that tree are data directories or databases;
//! - [`settings`]: how a volume's folder is opened on this machine, emulated classes included.
//!
//! Reads of pages go through the object's device, so depth and completions are those of the classes' devices, and the
//! volume counts them.

mod files;
mod mounts;

use std::sync::Arc;

use tanada_io::{Executors, ModelSpec, Timeline};
use tanada_volume::directory::{Keys, Settings};

pub use files::VolumeFiles;
pub use mounts::databases;

/// Seed of emulated devices: the same volume behaves the same in every run.
const MODEL_SEED: u64 = 0x7461_6e61_6461;

/// How to open a volume's folder on `executors`: with their method and buffers, and with the device models that its
/// classes name, in virtual time if there is one.
pub fn settings(executors: &Arc<Executors>) -> Settings {
    Settings {
        method: executors.method(),
        model: Some(Arc::new(|model| {
            let spec: ModelSpec = model.parse()?;
            let timeline = Timeline::current_virtual().unwrap_or_else(Timeline::real);
            Ok(timeline.array(&spec, MODEL_SEED))
        })),
        buffers: Some(executors.buffers().clone()),
        clock: None,
        keys: Keys::Environment,
        ..Settings::default()
    }
}
