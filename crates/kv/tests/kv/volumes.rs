//! A volume in a folder, and databases in it.

use std::sync::Arc;

use tanada_io::{Device, DeviceOptions};
use tanada_kv::blocking::wait;
use tanada_kv::{Database, DatabaseSettings, Environment, OpenOptions, Result, ThreadEnvironment};
use tanada_volume::{ClassSettings, Object, Parts, Volume, VolumeSettings};

pub struct Bench {
    pub volume: Volume,
    pub environment: Arc<dyn Environment>,
    _folder: tempfile::TempDir,
}

impl Bench {
    pub fn new() -> Bench {
        Bench::with_classes(64 << 20, 512 << 20)
    }

    pub fn with_classes(fast_bytes: u64, slow_bytes: u64) -> Bench {
        Bench::with_layout(256 << 10, &[("fast", fast_bytes), ("slow", slow_bytes)])
    }

    /// Classes with their sizes in bytes, fastest first.
    pub fn with_layout(chunk_bytes: u64, classes: &[(&str, u64)]) -> Bench {
        let folder = tempfile::tempdir().unwrap();
        let options = DeviceOptions { create: true, ..DeviceOptions::default() };
        let device = |name: &str| Device::open(folder.path().join(name), &options).unwrap();
        let parts = classes.iter().fold(Parts::new(device("metadata")), |parts, (name, _)| {
            parts.with_class(name, vec![device(name)])
        });
        let class = |(name, size_bytes): &(&str, u64)| ClassSettings {
            name: (*name).to_owned(),
            size_bytes: *size_bytes,
            ..ClassSettings::default()
        };
        let settings = VolumeSettings {
            id: *b"16 random bytes!",
            chunk_bytes,
            classes: classes.iter().map(class).collect(),
            ..VolumeSettings::default()
        };
        let volume = wait(Volume::create(parts, &settings)).unwrap();
        Bench { volume, environment: ThreadEnvironment::new(), _folder: folder }
    }

    /// Bytes that were read from a class.
    pub fn read_from(&self, class: &str) -> u64 {
        let classes = self.volume.classes();
        classes.iter().find(|info| info.name == class).unwrap().statistics.read.bytes
    }

    /// Small enough that little data makes everything happen.
    pub fn settings() -> DatabaseSettings {
        DatabaseSettings {
            memory_bytes: 4 << 20,
            memory_table_bytes: 128 << 10,
            log_segment_bytes: 1 << 20,
            log_group_bytes: 64 << 10,
            ..DatabaseSettings::default()
        }
    }

    pub fn create(&self) -> Database {
        wait(Database::create(&self.volume, "test", &Bench::settings(), self.environment.clone())).unwrap()
    }

    pub fn try_open(&self) -> Result<Database> {
        wait(Database::open(&self.volume, "test", &OpenOptions::default(), self.environment.clone()))
    }

    pub fn open(&self) -> Database {
        self.try_open().unwrap()
    }

    /// The objects of the database whose names begin so, oldest first.
    pub fn objects(&self, kind: &str) -> Vec<Object> {
        let prefix = format!("kv/test/{kind}-");
        let mut objects: Vec<(u64, Object)> = self
            .volume
            .objects()
            .into_iter()
            .filter_map(|object| Some((object.name().strip_prefix(&prefix)?.parse().ok()?, object)))
            .collect();
        objects.sort_by_key(|(no, _)| *no);
        objects.into_iter().map(|(_, object)| object).collect()
    }

    /// Overwrites the objects of these kinds that lie on the fastest class, but for the log's, and what is being
    /// deleted; how many they are.
    pub fn damage_fastest(&self, kinds: &[&str]) -> usize {
        let lies_there = |object: &Object| {
            let first = object.chunks(0..1).first().and_then(|chunk| chunk.home);
            first.is_some_and(|home| home.class == 0)
        };
        let is_log = |object: &Object| {
            object.name().contains("segment")
                && wait(object.read_bytes(0, 8)).map_or(true, |magic| *magic != *b"TANADAVS")
        };
        let damage = |object: &Object| {
            let bytes = vec![0xA5; object.size_bytes() as usize];
            lies_there(object) && !is_log(object) && wait(object.write_bytes(0, &bytes)).is_ok()
        };
        kinds.iter().flat_map(|kind| self.objects(kind)).filter(damage).count()
    }
}

/// Waits until copies that are damaged have been taken away; a check finds them.
pub fn wait_for_whole_copies(database: &Database) {
    let mut rounds = 0;
    while !wait(database.check()).unwrap().damaged_copies.is_empty() {
        rounds += 1;
        assert!(rounds < 3000, "{:?}", wait(database.check()).unwrap());
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

/// 1,000 bytes that tell whose they are.
pub fn value(no: u64, version: u64) -> Vec<u8> {
    let mut value = vec![(no ^ version) as u8; 1000];
    value[..8].copy_from_slice(&no.to_be_bytes());
    value[8..16].copy_from_slice(&version.to_be_bytes());
    value
}
