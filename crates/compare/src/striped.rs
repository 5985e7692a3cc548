//! Locks by key, for engines without an atomic read-modify-write: what an application would have to do to lose no
//! change.

use std::hash::{BuildHasher, RandomState};

use parking_lot::{Mutex, MutexGuard};

/// So many keys can be changed at once.
const STRIPES: usize = 1024;

/// A lock for each of many groups of keys.
#[derive(Debug)]
pub struct Striped {
    locks: Vec<Mutex<()>>,
    hasher: RandomState,
}

impl Striped {
    /// All free.
    pub fn new() -> Striped {
        Striped { locks: (0..STRIPES).map(|_| Mutex::new(())).collect(), hasher: RandomState::new() }
    }

    /// Keeps others from changing `key`.
    pub fn lock(&self, key: &[u8]) -> MutexGuard<'_, ()> {
        self.locks[self.hasher.hash_one(key) as usize % STRIPES].lock()
    }
}
