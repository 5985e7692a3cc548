//! RocksDB, configured as its tuning guide has it for this load: direct I/O, one memory budget, Bloom filters,
//! write-ahead log on the fastest class, values in tables or in blob files.
//!
//! The budget is the block cache's: write buffers, filters and indexes are charged to it. With two classes there are
//! two `db_paths`, of which the first gets whole levels, the uppermost ones, whose sizes are chosen for it
//! ([`Levels`]). Blob files always lie in the first path, so with them the capacity class is the only path, and the log
//! alone is on staging. On one path sizes of levels follow the data.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use rocksdb::{
    BlockBasedOptions, Cache, DB, DBCompressionType, DBPath, Direction, FlushOptions, IteratorMode, Options,
    ReadOptions, WaitForCompactOptions, WriteBufferManager, WriteOptions,
};
use tanada_ycsb::bench::Job;
use tanada_ycsb::engine::{Change, ClassFolder, EngineStatistics};
use tanada_ycsb::{BlockingEngine, Error, Result};

use crate::levels::Levels;
use crate::persisting::Persisting;
use crate::striped::Striped;

/// Bits of a Bloom filter for each key: one in a hundred keys that are not there is looked for.
const FILTER_BITS: f64 = 10.0;
/// Values from this size on are kept apart in blob files, as Tanada does.
const SEPARATE_FROM_BYTES: u64 = 256;
/// The most of the staging class that the log may take, as a part of it.
const LOG_SHARE: u64 = 4;
/// What is read at once of blob files that are merged: direct I/O has no other read-ahead.
const MERGE_READ_BYTES: u64 = 2 << 20;
/// What an entry of a block takes beside the value.
const ENTRY_BYTES: usize = 40;
/// The most that a scan reads ahead.
const SCAN_READ_BYTES: usize = 256 << 10;

/// Where values are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Values {
    /// Beside their keys.
    InTables,
    /// Apart from their keys.
    InBlobFiles,
}

/// Sizes of levels on two paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sizes {
    /// So that the first path is used as far as it goes.
    OfPath,
    /// As RocksDB has them by default, whatever the first path's size.
    Usual,
}

/// An open RocksDB.
pub struct Rocks {
    persisting: Persisting,
    db: Arc<DB>,
    write: WriteOptions,
    record_bytes: usize,
    /// A compaction that is asked for writes to the first path, whatever its size: not to be done if not all fit there.
    can_merge_all: bool,
    changing: Striped,
}

impl fmt::Debug for Rocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rocks").finish_non_exhaustive()
    }
}

impl Rocks {
    /// Opens or makes the database of a job.
    pub fn open(job: &Job, values: Values, sizes: Sizes) -> Result<Rocks> {
        let (Some(fastest), Some(slowest)) = (job.classes.first(), job.classes.last()) else {
            return Err(Error::invalid("there is no folder"));
        };
        let mut options = Options::default();
        let buffer_bytes = set_memory(&mut options, job.memory_bytes);
        set_background(&mut options);
        if values == Values::InBlobFiles {
            set_blob_files(&mut options);
        }
        // The log is as long as what is in write buffers, and what is written of it while they are.
        let log_bytes = match fastest == slowest {
            true => 1 << 30,
            false => (2 * buffer_bytes).min(fastest.size_bytes / LOG_SHARE),
        };
        // The last class holds whatever the others do not.
        let first = if values == Values::InBlobFiles { job.classes.len() - 1 } else { 0 };
        let target = |class: &ClassFolder| match class == slowest {
            true => u64::MAX,
            false => class.size_bytes - log_bytes,
        };
        let paths = job.classes[first..]
            .iter()
            .map(|class| DBPath::new(class.path.join("tables"), target(class)).map_err(Error::failed));
        options.set_db_paths(&paths.collect::<Result<Vec<_>>>()?);
        let mut can_merge_all = true;
        if job.classes.len() - first > 1 {
            let data_bytes = job.driver.records.logical_bytes(job.driver.records.count);
            // Everything merged into one level would not be where levels of usual sizes leave it.
            can_merge_all = sizes == Sizes::OfPath && data_bytes + data_bytes / 8 <= target(fastest);
            let levels = match sizes {
                Sizes::OfPath => Levels::on_two_paths(target(fastest), data_bytes, buffer_bytes),
                Sizes::Usual => Levels::usual(buffer_bytes),
            };
            set_levels(&mut options, levels);
        }
        options.set_wal_dir(fastest.path.join("log"));
        options.set_max_total_wal_size(log_bytes);
        let db = Arc::new(DB::open(&options, fastest.path.join("database")).map_err(Error::failed)?);
        let mut write = WriteOptions::default();
        write.set_sync(job.durable_within_ms == 0);
        let log = db.clone();
        let persist = move || log.flush_wal(true).map_err(Error::failed);
        let persisting = Persisting::every(job.durable_within_ms, persist)?;
        let record_bytes = job.driver.records.value_bytes() + ENTRY_BYTES;
        Ok(Rocks { persisting, db, write, record_bytes, can_merge_all, changing: Striped::new() })
    }
}

/// Divides the memory; what of it is for write buffers.
fn set_memory(options: &mut Options, memory_bytes: u64) -> u64 {
    let bytes = usize::try_from(memory_bytes).unwrap_or(usize::MAX);
    let cache = Cache::new_lru_cache(bytes);
    // A third for write buffers, as many as four of 64 MiB.
    let buffers = (bytes / 3).min(256 << 20);
    options.set_write_buffer_manager(&WriteBufferManager::new_write_buffer_manager_with_cache(
        buffers,
        false,
        cache.clone(),
    ));
    options.set_write_buffer_size((buffers / 4).max(1 << 20));
    options.set_max_write_buffer_number(4);
    let mut tables = BlockBasedOptions::default();
    tables.set_block_cache(&cache);
    tables.set_block_size(4 << 10);
    tables.set_bloom_filter(FILTER_BITS, false);
    tables.set_optimize_filters_for_memory(true);
    tables.set_cache_index_and_filter_blocks(true);
    tables.set_pin_l0_filter_and_index_blocks_in_cache(true);
    tables.set_format_version(6);
    options.set_block_based_table_factory(&tables);
    options.set_blob_cache(&cache);
    buffers as u64
}

fn set_levels(options: &mut Options, levels: Levels) {
    let buffer_bytes = usize::try_from(levels.write_buffer_bytes).unwrap_or(usize::MAX);
    options.set_level_compaction_dynamic_level_bytes(false);
    options.set_max_bytes_for_level_base(levels.base_bytes);
    options.set_target_file_size_base(levels.file_bytes);
    options.set_write_buffer_size(buffer_bytes);
    options.set_max_write_buffer_number(i32::try_from(levels.write_buffers).unwrap_or(i32::MAX));
}

fn set_background(options: &mut Options) {
    options.create_if_missing(true);
    options.set_use_direct_reads(true);
    options.set_use_direct_io_for_flush_and_compaction(true);
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as i32;
    options.increase_parallelism(cores.max(2));
    options.set_max_background_jobs(cores.max(2) + 2);
    options.set_max_subcompactions(2);
    options.set_level_compaction_dynamic_level_bytes(true);
    // Records do not compress.
    options.set_compression_type(DBCompressionType::None);
    options.set_enable_pipelined_write(true);
    options.set_bytes_per_sync(1 << 20);
    options.set_wal_bytes_per_sync(1 << 20);
}

fn set_blob_files(options: &mut Options) {
    options.set_enable_blob_files(true);
    options.set_min_blob_size(SEPARATE_FROM_BYTES);
    options.set_blob_compression_type(DBCompressionType::None);
    options.set_enable_blob_gc(true);
    options.set_blob_compaction_readahead_size(MERGE_READ_BYTES);
}

impl BlockingEngine for Rocks {
    fn insert(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.db.put_opt(key, value, &self.write).map_err(Error::failed)
    }

    fn update(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.insert(key, value)
    }

    fn read(&self, key: &[u8]) -> Result<Option<Bytes>> {
        let value = self.db.get_pinned(key).map_err(Error::failed)?;
        Ok(value.map(|value| Bytes::copy_from_slice(&value)))
    }

    fn scan(&self, key: &[u8], count: usize) -> Result<usize> {
        let mode = IteratorMode::From(key, Direction::Forward);
        // Direct I/O has no other read-ahead, and RocksDB's own begins with the third block.
        let mut read = ReadOptions::default();
        read.set_readahead_size((count * self.record_bytes).min(SCAN_READ_BYTES));
        let mut found = 0;
        for record in self.db.iterator_opt(mode, read).take(count) {
            record.map_err(Error::failed)?;
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
        self.catch_up()?;
        if self.can_merge_all {
            self.db.compact_range(None::<&[u8]>, None::<&[u8]>);
        }
        self.db.wait_for_compact(&WaitForCompactOptions::default()).map_err(Error::failed)
    }

    fn catch_up(&self) -> Result<f64> {
        let mut flush = FlushOptions::default();
        flush.set_wait(true);
        self.db.flush_opt(&flush).map_err(Error::failed)?;
        self.db.wait_for_compact(&WaitForCompactOptions::default()).map_err(Error::failed)?;
        Ok(0.0)
    }

    fn close(&self) -> Result<()> {
        self.persisting.stop()?;
        self.db.flush_wal(true).map_err(Error::failed)?;
        self.db.cancel_all_background_work(true);
        Ok(())
    }

    fn statistics(&self) -> EngineStatistics {
        let number = |name: &str| self.db.property_int_value(name).ok().flatten().unwrap_or(0);
        let memory = number("rocksdb.block-cache-usage") + number("rocksdb.estimate-table-readers-mem");
        // RocksDB's tickers cost each read and write something; these are kept anyway.
        let levels = self.db.property_value("rocksdb.levelstats").ok().flatten().unwrap_or_default();
        EngineStatistics {
            memory_bytes: memory,
            details: levels.lines().map(str::to_owned).collect::<Vec<_>>().into(),
            ..EngineStatistics::default()
        }
    }
}
