//! What unit tests need: small volumes of two classes, whose files go when they do.

use std::sync::Arc;

use tanada_io::{BufferPool, Device, DeviceOptions, Method};
use tanada_volume::{ClassSettings, Parts, Volume, VolumeSettings};

use crate::cache::Cache;
use crate::environment::{ThreadEnvironment, wait_for};
use crate::objects::Objects;

/// A volume with a fast class and a slow one.
pub(crate) struct TestVolume {
    pub(crate) volume: Volume,
    _folder: tempfile::TempDir,
}

impl TestVolume {
    /// One of chunks as large as those of real volumes' smallest ones.
    pub(crate) fn new() -> TestVolume {
        wait_for(TestVolume::with(256 << 10, (256 << 20, 1 << 30), Method::default()))
    }

    async fn with(chunk_bytes: u64, (fast, slow): (u64, u64), method: Method) -> TestVolume {
        let folder = tempfile::tempdir().unwrap();
        let device = |name: &str| {
            let options = DeviceOptions { method, writable: true, create: true };
            Device::open(folder.path().join(name), &options).unwrap()
        };
        let parts = Parts::new(device("metadata"))
            .with_class("fast", vec![device("fast")])
            .with_class("slow", vec![device("slow")]);
        let class = |name: &str, size_bytes| ClassSettings {
            name: name.to_owned(),
            size_bytes,
            ..ClassSettings::default()
        };
        let settings = VolumeSettings {
            id: *b"16 random bytes!",
            chunk_bytes,
            classes: vec![class("fast", fast), class("slow", slow)],
            ..VolumeSettings::default()
        };
        let volume = Volume::create(parts, &settings).await.unwrap();
        TestVolume { volume, _folder: folder }
    }

    pub(crate) fn objects(&self) -> Arc<Objects> {
        Objects::new(self.volume.clone(), "test", 1, BufferPool::new(0))
    }

    pub(crate) fn environment(&self) -> Arc<ThreadEnvironment> {
        ThreadEnvironment::new()
    }
}

/// Objects in a volume of small chunks, and a cache.
pub(crate) struct Bench {
    _volume: TestVolume,
    pub(crate) objects: Arc<Objects>,
    pub(crate) cache: Arc<Cache>,
}

impl Bench {
    pub(crate) async fn new() -> Bench {
        Bench::with_cache(64 << 20).await
    }

    pub(crate) async fn with_cache(cache_bytes: u64) -> Bench {
        let volume = TestVolume::with(64 << 10, (4 << 30, 4 << 30), Method::Buffered).await;
        Bench { objects: volume.objects(), _volume: volume, cache: Cache::new(cache_bytes) }
    }
}
