//! A database whose counts are those of a larger one.
//!
//! All sizes are divided: those of leaves, segments, memory tables, the memory and the volume's chunks. So a database
//! of a 256th of the bytes has as many leaves, kvsets, segments, chunks and records as the whole one. What cannot be
//! divided is not: pages, filters' parts, a key file's end.
//!
//! Values are zeros. While the database is made, all of it lies in [`Sparse`] memory, for it takes as many syncs as the
//! whole one would; then it is brought to files, where values are holes.

use std::path::PathBuf;
use std::sync::Arc;

use tanada_base::SplitMix64;
use tanada_io::{BufferPool, Device, DeviceOptions, ExecutorOptions, Executors, SmallPages, Timeline};
use tanada_kv::{Database, DatabaseSettings, LiveEnvironment, OnProgress, OpenOptions, Store, StoreSettings};
use tanada_volume::{ClassSettings, Parts, Volume, VolumeSettings};

use super::OpeningOptions;
use super::sparse::{Shared, Sparse};
use crate::{Error, Result};

const NAME: &str = "opened";
const STORE: &str = "lines";
/// Of which so little is written that it holds back the log.
const IDLE_STORE: &str = "idle";

/// The smallest that the engine and volumes take.
const LEAST_MEMORY_BYTES: u64 = 2 << 20;
const LEAST_CHUNK_BYTES: u64 = 4096;
const LEAST_LOG_SEGMENT_BYTES: u64 = 1 << 20;
const LEAST_SEGMENT_BYTES: u64 = 64 << 10;

/// Room on the fastest class beside keys: log, manifest, what waits to be spilled.
const SPARE_BYTES: u64 = 4 << 30;

/// The volume's metadata and its classes, by the names of their files.
const DEVICES: [&str; 3] = ["metadata", "staging", "capacity"];

const REPLAYED_VALUE_BYTES: usize = 1000;
/// What such a value takes up in the log.
const REPLAYED_BYTES: u64 = 1100;

/// Of a file with holes.
const MOST_METADATA_BYTES: u64 = 64 << 30;

/// Where a database lies, open or not.
#[derive(Debug, Clone)]
pub(super) struct Place {
    folder: PathBuf,
    /// The devices, until they are files.
    in_memory: Option<[Arc<Sparse>; 3]>,
    pub(super) settings: Scaled,
}

/// A place, and what does I/O there.
#[derive(Debug, Clone)]
pub(super) struct Bench {
    pub(super) place: Place,
    executors: Arc<Executors>,
}

/// Settings, divided.
#[derive(Debug, Clone)]
pub(super) struct Scaled {
    /// Bytes of keys and values that are loaded.
    pub(super) data_bytes: u64,
    pub(super) value_bytes: usize,
    chunk_bytes: u64,
    database: DatabaseSettings,
    store: StoreSettings,
}

impl Scaled {
    /// Those of a database that stands for `stands_for` bytes.
    pub(super) fn new(options: &OpeningOptions, stands_for: u64) -> Scaled {
        let divided = |bytes: u64, least: u64| (bytes / options.divisor).max(least);
        let (database, store) = (DatabaseSettings::default(), StoreSettings::default());
        Scaled {
            data_bytes: stands_for / options.divisor,
            value_bytes: options.value_bytes,
            chunk_bytes: divided(options.chunk_bytes, LEAST_CHUNK_BYTES),
            database: DatabaseSettings {
                memory_bytes: divided(database.memory_bytes, LEAST_MEMORY_BYTES),
                memory_table_bytes: divided(database.memory_table_bytes, LEAST_SEGMENT_BYTES),
                log_segment_bytes: divided(database.log_segment_bytes, LEAST_LOG_SEGMENT_BYTES),
                log_group_bytes: divided(database.log_group_bytes, LEAST_SEGMENT_BYTES),
                log_replay_bytes: divided(options.replay_bytes, LEAST_LOG_SEGMENT_BYTES),
                ..database
            },
            store: StoreSettings {
                leaf_bytes: divided(store.leaf_bytes, LEAST_SEGMENT_BYTES),
                value_segment_bytes: divided(store.value_segment_bytes, LEAST_SEGMENT_BYTES),
                ..store
            },
        }
    }

    /// Keys that are loaded.
    pub(super) fn records(&self) -> u64 {
        self.data_bytes / (key(0).len() + self.value_bytes) as u64
    }

    fn classes(&self) -> [(&'static str, u64); 2] {
        [(DEVICES[1], self.data_bytes / 4 + SPARE_BYTES), (DEVICES[2], 2 * self.data_bytes + SPARE_BYTES)]
    }
}

/// The key of a record.
fn key(no: u64) -> [u8; 20] {
    let mut key = *b"user0000000000000000";
    let digits = format!("{no:016}");
    key[4..].copy_from_slice(&digits.as_bytes()[..16]);
    key
}

/// An open database in its volume.
#[derive(Debug, Clone)]
pub(super) struct Opened {
    pub(super) volume: Volume,
    pub(super) database: Database,
    value_bytes: usize,
}

impl Place {
    /// A place in `folder`, all of it in files.
    pub(super) fn new(options: &OpeningOptions, stands_for: u64, folder: PathBuf) -> Place {
        Place { folder, in_memory: None, settings: Scaled::new(options, stands_for) }
    }

    /// The same, but in memory for now.
    pub(super) fn in_memory(self) -> Place {
        // A class's label lies before its chunks.
        let [(_, fast), (_, slow)] = self.settings.classes();
        let sizes = [MOST_METADATA_BYTES, fast + (1 << 20), slow + (1 << 20)];
        Place { in_memory: Some(sizes.map(|size_bytes| Arc::new(Sparse::new(size_bytes)))), ..self }
    }

    /// Brings to files what is in memory.
    pub(super) fn save(&self) -> Result<()> {
        for (sparse, name) in self.in_memory.iter().flatten().zip(DEVICES) {
            let path = self.folder.join(name);
            sparse.save(&path).map_err(|error| Error::at_path("write", &path, &error))?;
        }
        Ok(())
    }

    /// Does something there, on threads of its own: with them goes the memory that they keep.
    pub(super) fn with<F, T>(&self, work: impl FnOnce(Bench) -> F + Send + 'static) -> Result<T>
    where
        F: Future<Output = Result<T>> + 'static,
        T: Send + 'static,
    {
        let options = ExecutorOptions { registered_bytes: 4 << 20, ..ExecutorOptions::default() };
        let executors = Executors::start(options)?;
        let _pages = SmallPages::take();
        let bench = Bench { place: self.clone(), executors: executors.clone() };
        executors.block_on(move || async move { work(bench).await })?
    }
}

impl Bench {
    /// Devices anew: what was open before has left nothing in memory but the values.
    fn parts(&self) -> Result<Parts> {
        let file = |name| {
            let options = DeviceOptions { writable: true, ..DeviceOptions::default() };
            Device::open(self.place.folder.join(name), &options)
        };
        let [metadata, staging, capacity] = match &self.place.in_memory {
            Some(sparse) => sparse.clone().map(|sparse| Device::from_backend(Shared(sparse))),
            None => {
                let [metadata, staging, capacity] = DEVICES.map(file);
                [metadata?, staging?, capacity?]
            }
        };
        let buffers: &Arc<BufferPool> = self.executors.buffers();
        let mut parts = Parts::new(metadata);
        parts.buffers = buffers.clone();
        parts.timer = Some(Arc::new(Timeline::real()));
        Ok(parts.with_class(DEVICES[1], vec![staging]).with_class(DEVICES[2], vec![capacity]))
    }

    fn environment(&self) -> Arc<LiveEnvironment> {
        LiveEnvironment::new(self.executors.clone(), Timeline::real())
    }

    /// Makes the volume and the database, empty.
    pub(super) async fn create(&self) -> Result<Opened> {
        let Scaled { chunk_bytes, database, store, value_bytes, .. } = &self.place.settings;
        let class = |(name, size_bytes): (&str, u64)| ClassSettings {
            name: name.to_owned(),
            size_bytes: size_bytes.next_multiple_of(*chunk_bytes),
            ..ClassSettings::default()
        };
        let settings = VolumeSettings {
            id: *b"tanada benchmark",
            chunk_bytes: *chunk_bytes,
            classes: self.place.settings.classes().map(class).to_vec(),
            ..VolumeSettings::default()
        };
        let volume = Volume::create(self.parts()?, &settings).await.map_err(Error::failed)?;
        let made = Database::create(&volume, NAME, database, self.environment()).await;
        let database = made.map_err(Error::failed)?;
        for name in [STORE, IDLE_STORE] {
            database.create_store(name, store).await.map_err(Error::failed)?;
        }
        Ok(Opened { volume, database, value_bytes: *value_bytes })
    }

    /// Opens the volume.
    pub(super) async fn open_volume(&self) -> Result<Volume> {
        Volume::open(self.parts()?, &tanada_volume::OpenOptions::default()).await.map_err(Error::failed)
    }

    /// Opens the database.
    pub(super) async fn open(&self, volume: Volume, progress: OnProgress) -> Result<Opened> {
        let options = OpenOptions { progress: Some(progress), ..OpenOptions::default() };
        let opened = Database::open(&volume, NAME, &options, self.environment()).await;
        Ok(Opened {
            volume,
            database: opened.map_err(Error::failed)?,
            value_bytes: self.place.settings.value_bytes,
        })
    }
}

impl Opened {
    fn store(&self, name: &str) -> Result<Store> {
        self.database.open_store(name).map_err(Error::failed)
    }

    /// Loads so many records, sorted.
    pub(super) async fn load(&self, records: u64) -> Result<()> {
        let value = vec![0; self.value_bytes];
        let mut load = self.store(STORE)?.bulk_load().await.map_err(Error::failed)?;
        for no in 0..records {
            load.put(&key(no), &value).await.map_err(Error::failed)?;
        }
        load.finish().await.map(drop).map_err(Error::failed)
    }

    /// Writes so many of `records` anew, at random, and does what jobs they make due.
    pub(super) async fn update(&self, records: u64, updates: u64) -> Result<()> {
        let (store, value) = (self.store(STORE)?, vec![0; self.value_bytes]);
        let mut random = SplitMix64::new(7);
        for _ in 0..updates {
            store.put(&key(random.below(records.max(1))), &value).await.map_err(Error::failed)?;
        }
        Ok(())
    }

    /// Writes as much as may have to be replayed, or `bytes` of it: a store that is written to once keeps the log, and
    /// another one fills it.
    pub(super) async fn fill_log(&self, bytes: u64) -> Result<()> {
        self.store(IDLE_STORE)?.put(b"first", b"once").await.map_err(Error::failed)?;
        let (store, value) = (self.store(STORE)?, vec![0; REPLAYED_VALUE_BYTES]);
        for no in 0..bytes / REPLAYED_BYTES {
            // Behind what was loaded.
            store.put(&key(u64::from(u32::MAX) + no), &value).await.map_err(Error::failed)?;
        }
        self.database.sync().await.map_err(Error::failed)
    }

    /// Reads one of `records`.
    pub(super) async fn read(&self, records: u64) -> Result<()> {
        let found = self.store(STORE)?.get(&key(records / 2)).await.map_err(Error::failed)?;
        match found {
            Some(value) if value.len() == self.value_bytes => Ok(()),
            None if records == 0 => Ok(()),
            _ => Err(Error::failed("a record that was loaded is not there")),
        }
    }

    /// Closes both.
    pub(super) async fn close(self) -> Result<()> {
        self.database.close().await.map_err(Error::failed)?;
        self.volume.close().await.map_err(Error::failed)
    }

    /// Leaves both as a stop of the machine's power would, but for what devices had not made durable.
    pub(super) async fn stop(self) {
        self.database.abandon().await;
    }
}
