//! The distributions of YCSB, by its definitions (`site.ycsb.generator`), so that keys are drawn with the same
//! probabilities as there.
//!
//! Numbers come from [`SplitMix64`], one for each client, so a run is reproducible as far as the clients' order is.

mod acknowledged;
mod hash;
mod hotspot;
mod latest;
mod scrambled;
mod zipfian;

use tanada_base::SplitMix64;

pub use acknowledged::AcknowledgedCounter;
pub use hash::fnv_hash_64;
pub use hotspot::Hotspot;
pub use latest::Latest;
pub use scrambled::ScrambledZipfian;
pub use zipfian::{ZIPFIAN_CONSTANT, Zipfian, zeta};

/// A number from 0 to below 1, with 53 random bits.
pub fn unit(random: &mut SplitMix64) -> f64 {
    (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}
