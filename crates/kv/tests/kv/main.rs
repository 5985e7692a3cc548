//! What a user of the engine relies on, a file for each behaviour.
#![allow(clippy::unwrap_used)]

mod batches;
mod blocking;
mod bulk;
mod caching;
mod check;
mod copies;
mod crash_points;
mod cursors;
mod documents;
mod dropped;
mod durability;
mod expiry;
mod format;
mod lifecycle;
mod mirrors;
mod model;
mod policies;
mod settings;
mod space;
mod tiers;
mod transactions;
mod unseen_loads;
mod volumes;
