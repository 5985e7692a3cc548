//! What unit tests need: a volume in a folder.

use std::sync::Arc;

use tanada_io::{BufferPool, Device, DeviceOptions};
use tanada_volume::{ClassSettings, Parts, Volume, VolumeSettings};

use crate::environment::{ThreadEnvironment, wait_for};
use crate::objects::Objects;

/// A volume of two classes whose files go when it does.
pub(crate) struct TestVolume {
    pub(crate) volume: Volume,
    _folder: tempfile::TempDir,
}

impl TestVolume {
    pub(crate) fn new() -> TestVolume {
        let folder = tempfile::tempdir().unwrap();
        let options = DeviceOptions { create: true, ..DeviceOptions::default() };
        let device = |name: &str| Device::open(folder.path().join(name), &options).unwrap();
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
            chunk_bytes: 256 << 10,
            classes: vec![class("fast", 256 << 20), class("slow", 1 << 30)],
            ..VolumeSettings::default()
        };
        let volume = wait_for(Volume::create(parts, &settings)).unwrap();
        TestVolume { volume, _folder: folder }
    }

    pub(crate) fn objects(&self) -> Arc<Objects> {
        Objects::new(self.volume.clone(), "test", 1, BufferPool::new(0))
    }

    pub(crate) fn environment(&self) -> Arc<ThreadEnvironment> {
        ThreadEnvironment::new()
    }
}
