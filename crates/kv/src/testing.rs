//! What several tests need: a small volume in a folder.

use std::sync::Arc;

use tanada_io::{BufferPool, Device, DeviceOptions, Method};
use tanada_volume::{ClassSettings, Parts, Volume, VolumeSettings};
use tempfile::TempDir;

use crate::cache::Cache;
use crate::objects::Objects;

/// A volume of two classes, and what goes with it.
pub(crate) struct Bench {
    _folder: TempDir,
    pub(crate) objects: Arc<Objects>,
    pub(crate) cache: Arc<Cache>,
}

impl Bench {
    pub(crate) async fn new() -> Bench {
        Bench::with_cache(64 << 20).await
    }

    pub(crate) async fn with_cache(cache_bytes: u64) -> Bench {
        let folder = tempfile::tempdir().unwrap();
        let device = |name: &str| {
            let options = DeviceOptions { method: Method::Buffered, writable: true, create: true };
            Device::open(folder.path().join(name), &options).unwrap()
        };
        let parts = Parts::new(device("metadata"))
            .with_class("fast", vec![device("fast")])
            .with_class("slow", vec![device("slow")]);
        let class = |name: &str| ClassSettings {
            name: name.to_owned(),
            size_bytes: 4 << 30,
            ..ClassSettings::default()
        };
        let settings = VolumeSettings {
            id: *b"0123456789abcdef",
            chunk_bytes: 64 << 10,
            classes: vec![class("fast"), class("slow")],
            ..VolumeSettings::default()
        };
        let volume = Volume::create(parts, &settings).await.unwrap();
        let objects = Objects::new(volume, "test", 1, BufferPool::new(0));
        Bench { _folder: folder, objects, cache: Cache::new(cache_bytes) }
    }
}
