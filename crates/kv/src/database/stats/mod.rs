//! Counters over the life of a database, and its present state.

pub(crate) mod activity;
pub(crate) mod collect;
pub(crate) mod counters;
pub(crate) mod lifetime;
pub(crate) mod statistics;
