//! The key-value engine's promises, simulated and on files.
#![allow(clippy::unwrap_used)]

mod cuts;
mod planted;
mod threads;
