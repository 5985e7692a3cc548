//! Settings of what is open: they change while it is in use.
//!
//! Who does something takes all of them once, so that they fit together until it is done. What each write asks for lies
//! beside them, to be read without a lock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU32, Ordering};

use parking_lot::RwLock;

use crate::settings::{Compression, DatabaseSettings, Durability, StoreSettings};

/// Settings of an open database.
#[derive(Debug)]
pub(crate) struct LiveDatabaseSettings {
    all: RwLock<Arc<DatabaseSettings>>,
    /// `durability` in milliseconds; 0 is a sync.
    within_ms: AtomicU16,
}

fn within_ms(durability: Durability) -> u16 {
    match durability {
        Durability::Sync => 0,
        Durability::Within(ms) => ms,
    }
}

impl LiveDatabaseSettings {
    pub(crate) fn new(settings: DatabaseSettings) -> LiveDatabaseSettings {
        let within_ms = AtomicU16::new(within_ms(settings.durability));
        LiveDatabaseSettings { all: RwLock::new(Arc::new(settings)), within_ms }
    }

    /// As they are now.
    pub(crate) fn now(&self) -> Arc<DatabaseSettings> {
        self.all.read().clone()
    }

    pub(crate) fn set(&self, settings: DatabaseSettings) {
        let mut all = self.all.write();
        self.within_ms.store(within_ms(settings.durability), Ordering::Relaxed);
        *all = Arc::new(settings);
    }

    pub(crate) fn durability(&self) -> Durability {
        match self.within_ms.load(Ordering::Relaxed) {
            0 => Durability::Sync,
            ms => Durability::Within(ms),
        }
    }
}

/// Settings of a store of an open database.
#[derive(Debug)]
pub(crate) struct LiveStoreSettings {
    all: RwLock<Arc<StoreSettings>>,
    separate_from_bytes: AtomicU32,
    compresses: AtomicBool,
    /// 0 for ever.
    time_to_live_s: AtomicU32,
}

impl LiveStoreSettings {
    pub(crate) fn new(settings: &StoreSettings) -> LiveStoreSettings {
        let live = LiveStoreSettings {
            all: RwLock::default(),
            separate_from_bytes: AtomicU32::default(),
            compresses: AtomicBool::default(),
            time_to_live_s: AtomicU32::default(),
        };
        live.set(settings);
        live
    }

    /// As they are now.
    pub(crate) fn now(&self) -> Arc<StoreSettings> {
        self.all.read().clone()
    }

    pub(crate) fn set(&self, settings: &StoreSettings) {
        let mut all = self.all.write();
        self.separate_from_bytes.store(settings.separate_from_bytes, Ordering::Relaxed);
        self.compresses.store(settings.compression != Compression::None, Ordering::Relaxed);
        self.time_to_live_s.store(settings.time_to_live_s.unwrap_or(0), Ordering::Relaxed);
        *all = Arc::new(settings.clone());
    }

    pub(crate) fn separate_from_bytes(&self) -> usize {
        self.separate_from_bytes.load(Ordering::Relaxed) as usize
    }

    /// Returns whether values are compressed unless a write says otherwise.
    pub(crate) fn compresses(&self) -> bool {
        self.compresses.load(Ordering::Relaxed)
    }

    pub(crate) fn time_to_live_s(&self) -> Option<u32> {
        Some(self.time_to_live_s.load(Ordering::Relaxed)).filter(|seconds| *seconds > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn live_settings_are_visible_to_writes() {
        let database = LiveDatabaseSettings::new(DatabaseSettings::default());
        assert_eq!(database.durability(), Durability::Within(100));
        database.set(DatabaseSettings { durability: Durability::Sync, ..DatabaseSettings::default() });
        assert_eq!((database.durability(), database.now().durability), (Durability::Sync, Durability::Sync));

        let store = LiveStoreSettings::new(&StoreSettings::default());
        assert_eq!(
            (store.separate_from_bytes(), store.compresses(), store.time_to_live_s()),
            (256, false, None)
        );
        let settings = StoreSettings {
            separate_from_bytes: 9,
            compression: Compression::Lz4,
            time_to_live_s: Some(7),
            ..StoreSettings::default()
        };
        store.set(&settings);
        assert_eq!(
            (store.separate_from_bytes(), store.compresses(), store.time_to_live_s()),
            (9, true, Some(7))
        );
        assert_eq!(*store.now(), settings);
    }
}
