//! What is done to trees beside reads and writes, and in which order.

pub(crate) mod claims;
pub(crate) mod coalescing;
pub(crate) mod installer;
pub(crate) mod low_space;
pub(crate) mod manual;
pub(crate) mod merges;
pub(crate) mod pick;
pub(crate) mod promotion;
pub(crate) mod relocation;
pub(crate) mod runner;
pub(crate) mod scheduler;
pub(crate) mod surroundings;
pub(crate) mod tombstones;
pub(crate) mod turn;
