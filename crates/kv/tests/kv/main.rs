//! What a user of the engine relies on, a file for each behaviour.

mod batches;
mod common;
mod durability;
mod lifecycle;
mod model;
mod transactions;
