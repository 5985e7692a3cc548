//! A policy that places chunks of a volume while others use it: what `tanada sql --volume` and `tanada mount` share.
//!
//! - [`costs_of`]: what the classes of a volume are good at.
//! - [`placer`]: the policy between the first and the last class.
//! - [`Steered`] and [`relocate`]: the task that lets the policy think and carries out its wishes, within a [`Rate`].
//! - [`Settled`]: those who wait until nothing is left to do.
//! - [`Kept`]: what was learned, in an object of the volume.

mod classes;
mod kept;
mod rate;
mod relocating;
mod settled;

use tanada_volume::{Budget, Object, Volume};

pub use classes::costs_of;
pub use kept::{KeepError, Kept, MEMORY};
pub use rate::Rate;
pub use relocating::{Next, Steered, relocate};
pub use settled::Settled;

use crate::{ChunkCount, Costs, ObjectNo, Placer, PlacerOptions, Result};

/// Of what a policy draws.
const SEED: u64 = 1;

/// A policy between the first and the last class of `volume`. It puts off what takes it longer than a moment.
///
/// # Errors
/// If there is no such policy, or it is none for volumes.
pub fn placer(volume: &Volume, policy: &str, costs: Costs) -> Result<Placer> {
    let [fast, slow] = class_names(volume);
    let options = PlacerOptions {
        policy: policy.to_owned(),
        fast,
        slow,
        costs,
        // The policy has weighed what the copy costs the queries: it is not to be held back once more. A wish is one
        // chunk, so a bandwidth limit is not the relocation's but [`Rate`]'s.
        budget: Budget { concurrency: 1, bytes_per_second: None, yields: false },
        most_chunks: None,
        seed: SEED,
    };
    let mut placer = Placer::new(volume, options)?;
    placer.defer();
    Ok(placer)
}

/// The first and the last class.
pub fn class_names(volume: &Volume) -> [String; 2] {
    let classes = volume.classes();
    let name =
        |class: Option<&tanada_volume::ClassInfo>| class.map(|class| class.name.clone()).unwrap_or_default();
    [name(classes.first()), name(classes.last())]
}

/// What the volume has counted for an object, chunk by chunk.
pub fn counted(no: ObjectNo, object: &Object) -> Vec<ChunkCount> {
    let count = |chunk: tanada_volume::ChunkInfo| {
        let statistics = chunk.statistics;
        ChunkCount {
            object: no,
            chunk: chunk.no,
            reads: u64::from(statistics.reads),
            bytes: statistics.bytes_read,
            sequential_share: f64::from(statistics.sequential_share()),
        }
    };
    object.chunks(0..u64::MAX).into_iter().map(count).collect()
}
