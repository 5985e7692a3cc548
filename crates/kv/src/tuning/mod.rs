//! All numbers of the engine that somebody may want to tune, in one place.
//!
//! Each has its unit in its name or its type: bytes, chunks, seconds; a `divisor` n stands for the fraction 1/n, a
//! `factor` multiplies, a `fraction` is between 0 and 1. They are no settings: users set what `settings` has.
//!
//! What was measured is in `docs/decisions`:
//!
//! | group | measurement |
//! |---|---|
//! | [`reads::LIMITER`] | decision 15: YCSB A on disks with an IOPS quota |
//! | [`writes::FLUSHES`], `max_visible_per_mille` | decision 14: tables of which most is overwritten |
//! | [`mirrors::EVICTION`], [`mirrors::ROOMS`] | decision 8: mirrors beside spills |
//! | [`reads::REPLICAS`] | the two copies of decision 8 |
//!
//! The others are choices that no run was made for: none of them was halved and doubled by itself yet.

pub(crate) mod maintenance;
pub(crate) mod mirrors;
pub(crate) mod reads;
pub(crate) mod space;
pub(crate) mod tree;
pub(crate) mod writes;
