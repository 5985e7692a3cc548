//! What threads share, for modules that are also built with the types of a model checker (`interleaving`): these say
//! `super::sync`, and have one of the two as their neighbour.

pub(crate) use parking_lot::{Mutex, RwLock};
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// Runs a test: here as it is, there in every order of its threads.
#[cfg(test)]
pub(crate) fn model(test: impl Fn() + Send + Sync + 'static) {
    test();
}
