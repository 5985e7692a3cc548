//! Tanada's own key-value engine.
//!
//! A volume is made in a folder, with a class for each of the folders given; a database with one store lies in it.
//! Clients that are tasks run on the executors that also do the engine's I/O.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tanada_io::{ExecutorOptions, Executors, ModelSpec, SmallPages, Timeline};
use tanada_kv::{
    CursorOptions, Database, DatabaseSettings, LiveEnvironment, OpenOptions, Store, StoreSettings,
    WriteOptions,
};
use tanada_volume::directory::{ClassConfig, Directory, ModelFn, Settings};
use tanada_volume::{Volume, VolumeSettings};

use super::{Change, ClassBytes, Engine, EngineStatistics};
use crate::{Error, Result};

/// The database's name, and the store's.
const NAME: &str = "ycsb";
/// Most memory for I/O buffers that are registered, and the part of the database's memory that it may be.
const REGISTERED_BYTES: u64 = 4 << 20;
const REGISTERED_PART: u64 = 64;

/// Without anything written or done for so long, no job runs; looked at so often, and waited for so long at most.
const IDLE: Duration = Duration::from_secs(1);
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);
const CATCHING_UP_AT_MOST: Duration = Duration::from_secs(120);

/// A media class: what a folder is used as.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClassFolder {
    /// `staging` or `capacity`.
    pub name: String,
    /// Where its files are.
    pub path: PathBuf,
    /// Bytes that an engine may use of it.
    pub size_bytes: u64,
    /// A device to emulate on it, for engines on `tanada-io`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// How the engine is set up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TanadaOptions {
    /// Fastest first.
    pub classes: Vec<ClassFolder>,
    /// Threads for I/O, background work and clients that are tasks; 0 for one per core.
    pub threads: usize,
    /// Of the database.
    pub database: DatabaseSettings,
    /// Of the store.
    pub store: StoreSettings,
}

/// An open database.
#[derive(Debug)]
pub struct Tanada {
    store: Store,
    database: Database,
    volume: Directory,
    executors: Arc<Executors>,
    timeline: Timeline,
    _pages: SmallPages,
}

impl Tanada {
    /// Opens the database whose volume is in `folder`, or makes both. By the virtual time of this process if it has
    /// one. Blocks.
    ///
    /// # Errors
    /// If either fails.
    pub fn open(folder: &Path, options: &TanadaOptions) -> Result<Tanada> {
        let executor = ExecutorOptions {
            threads: options.threads,
            registered_bytes: REGISTERED_BYTES.min(options.database.memory_bytes / REGISTERED_PART) as usize,
            ..ExecutorOptions::default()
        };
        let executors = Executors::start(executor)?;
        // What is registered is in memory by now; the database's memory is to be what it uses.
        let pages = SmallPages::take();
        let timeline = Timeline::current_virtual().unwrap_or_else(Timeline::real);
        let environment = LiveEnvironment::new(executors.clone(), timeline.clone());
        let settings = Settings {
            buffers: Some(executors.buffers().clone()),
            clock: Some(timeline.clock()),
            model: Some(modelled(&timeline)),
            ..Settings::default()
        };
        let is_new = !folder.join("volume.json").exists();
        let (folder, options) = (folder.to_owned(), options.clone());
        // On an executor, where I/O is done without a hand-over; and so for whatever waits for many I/Os.
        let opened = executors.block_on(move || open(folder, options, settings, environment, is_new))?;
        let (volume, database, store) = opened?;
        Ok(Tanada { store, database, volume, executors, timeline, _pages: pages })
    }
}

async fn open(
    folder: PathBuf,
    options: TanadaOptions,
    settings: Settings,
    environment: Arc<LiveEnvironment>,
    is_new: bool,
) -> Result<(Directory, Database, Store)> {
    if is_new {
        let volume = VolumeSettings { id: *b"tanada benchmark", ..VolumeSettings::default() };
        let volume = Directory::create(&folder, &volume, &classes(&options)?, settings).await;
        let volume = volume.map_err(Error::failed)?;
        let database = Database::create(volume.volume(), NAME, &options.database, environment).await;
        let database = database.map_err(Error::failed)?;
        let store = database.create_store(NAME, &options.store).await.map_err(Error::failed)?;
        return Ok((volume, database, store));
    }
    let volume = Directory::open(&folder, &tanada_volume::OpenOptions::default(), settings).await;
    let volume = volume.map_err(Error::failed)?;
    let settings = OpenOptions { settings: options.database.into(), ..OpenOptions::default() };
    let database = Database::open(volume.volume(), NAME, &settings, environment).await;
    let database = database.map_err(Error::failed)?;
    let store = database.open_store(NAME).map_err(Error::failed)?;
    Ok((volume, database, store))
}

/// Syncs the log, then looks until what jobs count has not changed for some time, and nothing was read or written.
async fn catch_up(database: Database, volume: Volume, timeline: Timeline) -> Result<f64> {
    database.sync().await.map_err(Error::failed)?;
    let did = || {
        let now = database.statistics();
        let waiting: usize = now.stores.iter().map(|store| store.waiting_tables).sum();
        let done = now.since_opening;
        let moved = (done.bytes_promoted, done.bytes_relocated, done.objects_deleted);
        let classes = volume.classes().into_iter().map(|class| class.statistics);
        let bytes: u64 = classes.map(|class| class.read.bytes + class.written.bytes).sum();
        ((waiting, done.flushes, done.jobs, moved), bytes)
    };
    let clock = timeline.clock();
    let began = clock.now();
    let (mut last, mut changed) = (did(), began);
    while clock.now().saturating_sub(began) < CATCHING_UP_AT_MOST {
        let idle = clock.now().saturating_sub(changed);
        if idle >= IDLE && last.0.0 == 0 {
            break;
        }
        timeline.sleep(BETWEEN_LOOKS).await;
        let now = did();
        if now != last {
            (last, changed) = (now, clock.now());
        }
    }
    Ok(clock.now().saturating_sub(changed).as_secs_f64())
}

fn classes(options: &TanadaOptions) -> Result<Vec<ClassConfig>> {
    let class = |class: &ClassFolder| {
        let path = std::path::absolute(&class.path);
        let path = path.map_err(|error| Error::at_path("find", &class.path, &error))?;
        let mut config = ClassConfig::new(&class.name, vec![path], Some(class.size_bytes));
        config.model.clone_from(&class.model);
        Ok(config)
    };
    options.classes.iter().map(class).collect()
}

/// Devices of a model on `timeline`; each with a seed of its own that is the same in every run.
fn modelled(timeline: &Timeline) -> ModelFn {
    let timeline = timeline.clone();
    let seed = std::sync::atomic::AtomicU64::new(1);
    Arc::new(move |model: &str| {
        let model: ModelSpec = model.parse()?;
        let seed = seed.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Ok(timeline.array(&model, seed))
    })
}

#[async_trait]
impl Engine for Tanada {
    async fn insert(&self, key: Bytes, value: Bytes) -> Result<()> {
        self.store.put(&key, &value).await.map_err(Error::failed)
    }

    async fn update(&self, key: Bytes, value: Bytes) -> Result<()> {
        self.store.put(&key, &value).await.map_err(Error::failed)
    }

    async fn read(&self, key: &[u8]) -> Result<Option<Bytes>> {
        self.store.get(key).await.map_err(Error::failed)
    }

    async fn scan(&self, key: &[u8], count: usize) -> Result<usize> {
        let options = CursorOptions { expected_keys: count, ..CursorOptions::default() };
        let mut cursor = self.store.cursor(options);
        cursor.seek(key).await.map_err(Error::failed)?;
        for found in 0..count {
            if cursor.next().await.map_err(Error::failed)?.is_none() {
                return Ok(found);
            }
        }
        Ok(count)
    }

    async fn read_modify_write(&self, key: Bytes, change: Change<'_>) -> Result<bool> {
        let changed = |value: Option<&Bytes>| value.map(|value| change(value));
        let written = self.store.update(&key, changed, &WriteOptions::default()).await;
        Ok(written.map_err(Error::failed)?.is_some())
    }

    async fn settle(&self) -> Result<()> {
        let store = self.store.clone();
        self.executors.spawn(move || async move { store.compact().await }).await?.map_err(Error::failed)
    }

    async fn catch_up(&self) -> Result<f64> {
        let (database, volume) = (self.database.clone(), self.volume.volume().clone());
        let timeline = self.timeline.clone();
        self.executors.spawn(move || catch_up(database, volume, timeline)).await?
    }

    async fn close(&self) -> Result<()> {
        let (database, volume) = (self.database.clone(), self.volume.volume().clone());
        let close = async move {
            database.close().await.map_err(Error::failed)?;
            volume.close().await.map_err(Error::failed)
        };
        self.executors.spawn(move || close).await?
    }

    fn statistics(&self) -> EngineStatistics {
        let (infos, chunk_bytes) = (self.volume.volume().classes(), self.volume.volume().chunk_bytes());
        // A class's file keeps what was freed, for the next who needs it.
        let stored = infos.iter().map(|class| (class.name.clone(), class.taken * chunk_bytes)).collect();
        let classes = infos.iter().map(|class| ClassBytes {
            name: class.name.clone(),
            bytes_read: class.statistics.read.bytes,
            bytes_written: class.statistics.written.bytes,
        });
        let statistics = self.database.statistics();
        EngineStatistics {
            classes: classes.collect(),
            stored_bytes: stored,
            // Pages, filters and values.
            cache_misses: Some(statistics.since_opening.cache_loads),
            memory_bytes: statistics.cache_bytes + statistics.memory_table_bytes,
            details: serde_json::to_value(statistics).unwrap_or_default(),
        }
    }

    fn executors(&self) -> Option<Arc<Executors>> {
        Some(self.executors.clone())
    }
}
