//! The hash of a key.

use std::hash::{BuildHasher, Hasher};
use std::sync::LazyLock;

use fastbloom::DefaultHasher;

/// Part of the format: never to be changed.
static HASHER: LazyLock<DefaultHasher> = LazyLock::new(|| DefaultHasher::seeded(b"tanada-kv filter"));

/// A key as filters know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeyHash(u64);

impl KeyHash {
    #[inline]
    pub(crate) fn of(key: &[u8]) -> KeyHash {
        let mut hasher = HASHER.build_hasher();
        hasher.write(key);
        KeyHash(hasher.finish())
    }

    /// The hash itself.
    pub(crate) fn get(self) -> u64 {
        self.0
    }

    /// Which of `parts` it belongs to. It takes the lower half, for the part itself looks at the upper bits first.
    #[inline]
    pub(super) fn part(self, parts: u32) -> u32 {
        ((u64::from(self.0 as u32) * u64::from(parts)) >> 32) as u32
    }
}
