//! fjall with separated values, on the capacity class alone: it has one path.
//!
//! It reads and writes through the kernel's page cache, which its memory budget does not cover: compare its device
//! bytes, and its latencies with care.

use std::fmt;

use bytes::Bytes;
use fjall::{Database, Keyspace, KeyspaceCreateOptions, KvSeparationOptions, PersistMode};
use tanada_ycsb::bench::Job;
use tanada_ycsb::engine::{Change, EngineStatistics};
use tanada_ycsb::{BlockingEngine, Error, Result};

use crate::persisting::Persisting;
use crate::striped::Striped;

/// Values from this size on are kept apart from their keys, as Tanada does.
const SEPARATE_FROM_BYTES: u32 = 256;

/// An open database of fjall.
pub struct Fjall {
    persisting: Persisting,
    database: Database,
    records: Keyspace,
    is_synced: bool,
    changing: Striped,
}

impl fmt::Debug for Fjall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fjall").finish_non_exhaustive()
    }
}

impl Fjall {
    /// Opens or makes the database of a job.
    pub fn open(job: &Job) -> Result<Fjall> {
        let Some(capacity) = job.classes.last() else { return Err(Error::invalid("there is no folder")) };
        let buffers = (job.memory_bytes / 3).min(256 << 20);
        let database = Database::builder(capacity.path.join("database"))
            .cache_size(job.memory_bytes - buffers)
            .open()
            .map_err(Error::failed)?;
        // fjall's default leaves values of less than 1 KiB beside their keys.
        let separation = KvSeparationOptions::default().separation_threshold(SEPARATE_FROM_BYTES);
        let settings = move || {
            KeyspaceCreateOptions::default()
                .max_memtable_size((buffers / 4).max(1 << 20))
                .with_kv_separation(Some(separation.clone()))
        };
        let records = database.keyspace("ycsb", settings).map_err(Error::failed)?;
        let persisted = database.clone();
        let persist = move || persisted.persist(PersistMode::SyncData).map_err(Error::failed);
        let persisting = Persisting::every(job.durable_within_ms, persist)?;
        let is_synced = job.durable_within_ms == 0;
        Ok(Fjall { persisting, database, records, is_synced, changing: Striped::new() })
    }
}

impl BlockingEngine for Fjall {
    fn insert(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.records.insert(key, value).map_err(Error::failed)?;
        if self.is_synced {
            self.database.persist(PersistMode::SyncData).map_err(Error::failed)?;
        }
        Ok(())
    }

    fn update(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.insert(key, value)
    }

    fn read(&self, key: &[u8]) -> Result<Option<Bytes>> {
        let value = self.records.get(key).map_err(Error::failed)?;
        Ok(value.map(|value| Bytes::copy_from_slice(&value)))
    }

    fn scan(&self, key: &[u8], count: usize) -> Result<usize> {
        let mut found = 0;
        for record in self.records.range(key..).take(count) {
            record.into_inner().map_err(Error::failed)?;
            found += 1;
        }
        Ok(found)
    }

    fn read_modify_write(&self, key: &[u8], change: Change<'_>) -> Result<bool> {
        let _alone = self.changing.lock(key);
        let Some(value) = self.read(key)? else { return Ok(false) };
        self.insert(key, &change(&value)).map(|()| true)
    }

    fn settle(&self) -> Result<()> {
        self.records.rotate_memtable_and_wait().map_err(Error::failed)?;
        while self.database.active_compactions() > 0 || self.database.outstanding_flushes() > 0 {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        Ok(())
    }

    fn catch_up(&self) -> Result<f64> {
        // There is no call that merges everything: both are the same.
        self.settle().map(|()| 0.0)
    }

    fn close(&self) -> Result<()> {
        self.persisting.stop()?;
        self.database.persist(PersistMode::SyncAll).map_err(Error::failed)
    }

    fn statistics(&self) -> EngineStatistics {
        let memory = self.database.cache_size() + self.database.write_buffer_size();
        EngineStatistics { memory_bytes: memory, ..EngineStatistics::default() }
    }
}
