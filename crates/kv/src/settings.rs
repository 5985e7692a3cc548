//! What a database and a store are told, as plain data.

use serde::{Deserialize, Serialize};

use crate::entry::Codec;
use crate::log::BLOCK;
use crate::tree::policy::MediaPolicy;
use crate::{Error, Result};

/// Longest name of a database or a store, in bytes.
pub const LONGEST_NAME: usize = 128;

/// Settings of a database: it keeps those that it is made with, and [`OpenOptions`] name what is to be another.
///
/// ```
/// use tanada_kv::DatabaseSettings;
///
/// let settings = DatabaseSettings { memory_bytes: 64 << 20, ..DatabaseSettings::default() };
/// assert_eq!(settings.waiting_tables, 4);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DatabaseSettings {
    /// Memory for everything: memtables, cache, buffers, the engine itself. Default: 512 MiB.
    pub memory_bytes: u64,
    /// A memtable of this size is flushed; at least 64 KiB, and at most a tenth of the memory that the engine
    /// has for data. Default: 64 MiB.
    pub memory_table_bytes: u64,
    /// Memtables of a store that may wait to be flushed; then writers wait. Default: 4.
    pub waiting_tables: usize,
    /// Bytes of a log segment; a larger batch makes a larger one. Default: 64 MiB.
    pub log_segment_bytes: u64,
    /// The log's buffer is written when it holds this many bytes, whether or not a writer waits; whole blocks of 4 KiB,
    /// and at most a 128th of the memory. Default: 1 MiB.
    pub log_group_bytes: u64,
    /// Log that has to be read again at an opening; more of it has the oldest memtable written out, which is looked
    /// at several times while a table fills. Default: 1 GiB.
    pub log_replay_bytes: u64,
    /// The class of the log. Default: the fastest.
    pub log_class: Option<String>,
    /// Durability of writes that name none. Default: within 100 ms.
    pub durability: Durability,
    /// Most bytes of the database on the fastest class; jobs keep it below. Default: no limit but the class's size.
    pub fast_class_bytes: Option<u64>,
    /// Root kvsets of a store from which on its writes are delayed. Default: 16.
    pub slow_root_kvsets: usize,
    /// Root kvsets of a store at which its writers wait. Default: 32.
    pub most_root_kvsets: usize,
    /// Tree jobs at once, over all stores. Default: 2.
    pub concurrent_jobs: usize,
    /// Growth since its snapshot after which the manifest is rewritten. Default: 4 MiB.
    pub manifest_bytes: u64,
}

impl Default for DatabaseSettings {
    fn default() -> DatabaseSettings {
        DatabaseSettings {
            memory_bytes: 512 << 20,
            memory_table_bytes: 64 << 20,
            waiting_tables: 4,
            log_segment_bytes: 64 << 20,
            log_group_bytes: 1 << 20,
            log_replay_bytes: 1 << 30,
            log_class: None,
            durability: Durability::default(),
            fast_class_bytes: None,
            slow_root_kvsets: 16,
            most_root_kvsets: 32,
            concurrent_jobs: 2,
            manifest_bytes: 4 << 20,
        }
    }
}

/// Most bytes of any setting, so that sums do not overflow.
const MAX_BYTES: u64 = 1 << 50;

/// Most memtables that wait, and jobs at once.
const MAX_TASKS: usize = 1024;
/// Most kvsets of a root.
const MAX_KVSETS: usize = 1 << 16;

/// Memory that an engine takes in any case: threads, rings and their registered buffers, the program itself.
const ENGINE_BYTES: u64 = 24 << 20;

impl DatabaseSettings {
    /// Memory that the engine takes in any case.
    pub(crate) fn own_bytes(&self) -> u64 {
        ENGINE_BYTES.min(self.memory_bytes / 4)
    }

    /// Memory that tables, jobs and the cache share.
    fn shared_bytes(&self) -> u64 {
        self.memory_bytes - self.own_bytes()
    }

    /// Bytes at which a memtable is flushed.
    pub(crate) fn table_bytes(&self) -> u64 {
        self.memory_table_bytes.min(self.shared_bytes() / 10).max(64 << 10)
    }

    /// Bytes that all jobs that run together may hold.
    pub(crate) fn jobs_bytes(&self) -> u64 {
        self.shared_bytes() / 8
    }

    /// Bytes that the log writes at once: whole blocks, and with little memory a power of two, for buffers are that.
    pub(crate) fn group_bytes(&self) -> u64 {
        let share = 1 << (self.shared_bytes() / 128).max(1).ilog2();
        self.log_group_bytes.min(share).max(64 << 10) / BLOCK * BLOCK
    }

    /// Bytes of the log that may wait to be written.
    pub(crate) fn waiting_log_bytes(&self) -> u64 {
        (self.shared_bytes() / 20).clamp(2 * self.group_bytes(), 16 * self.group_bytes())
    }

    pub(crate) fn check(&self) -> Result<()> {
        let wrong = |what: &str| Err(Error::invalid(format!("settings of a database: {what}")));
        if self.memory_bytes < 1 << 20 || self.memory_bytes > MAX_BYTES {
            return wrong("memory_bytes is not between 1 MiB and 1 PiB");
        }
        if self.log_segment_bytes < 1 << 20 || self.log_segment_bytes > 1 << 40 {
            return wrong("log_segment_bytes is not between 1 MiB and 1 TiB");
        }
        if self.log_group_bytes < 64 << 10 || self.log_group_bytes > self.log_segment_bytes {
            return wrong("log_group_bytes is not between 64 KiB and log_segment_bytes");
        }
        for (name, tasks) in
            [("waiting_tables", self.waiting_tables), ("concurrent_jobs", self.concurrent_jobs)]
        {
            if !(1..=MAX_TASKS).contains(&tasks) {
                return wrong(&format!("{name} is not between 1 and 1024"));
            }
        }
        if !(2..=MAX_KVSETS).contains(&self.most_root_kvsets) {
            return wrong("most_root_kvsets is not between 2 and 65536");
        }
        if !(1..=self.most_root_kvsets).contains(&self.slow_root_kvsets) {
            return wrong("slow_root_kvsets is not between 1 and most_root_kvsets");
        }
        if self.manifest_bytes < 64 << 10 || self.manifest_bytes > 1 << 40 {
            return wrong("manifest_bytes is not between 64 KiB and 1 TiB");
        }
        if self.log_replay_bytes > MAX_BYTES {
            return wrong("log_replay_bytes is more than 1 PiB");
        }
        if self.fast_class_bytes.is_some_and(|bytes| bytes < 1 << 20) {
            return wrong("fast_class_bytes is less than 1 MiB");
        }
        self.durability.check()
    }
}

/// Compression of values.
///
/// ```
/// use tanada_kv::Compression;
///
/// assert_eq!(serde_json::to_string(&Compression::Lz4)?, "\"lz4\"");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Compression {
    /// Uncompressed.
    #[default]
    None,
    /// Fast.
    Lz4,
    /// Smaller.
    Zstd,
}

impl From<Compression> for Codec {
    fn from(compression: Compression) -> Codec {
        match compression {
            Compression::None => Codec::None,
            Compression::Lz4 => Codec::Lz4,
            Compression::Zstd => Codec::Zstd,
        }
    }
}

/// Where the filters of key files are kept. A filter rejects keys that a file does not have.
///
/// ```
/// use tanada_kv::FilterMemory;
///
/// assert_eq!(FilterMemory::default(), FilterMemory::Small);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FilterMemory {
    /// Parts of them come through the cache as they are wanted.
    Paged,
    /// In memory from the opening on, as long as all filters together take no more than a quarter of `memory_bytes`;
    /// those that do not fit in are paged.
    Resident,
    /// In memory soon after the opening, as long as all filters together take no more than a 32nd of `memory_bytes`;
    /// those that do not fit in are paged.
    #[default]
    Small,
}

impl FilterMemory {
    /// Returns how an opening holds filters: small ones are read afterwards.
    pub(crate) fn at_opening(self) -> FilterMemory {
        match self {
            FilterMemory::Resident => FilterMemory::Resident,
            FilterMemory::Paged | FilterMemory::Small => FilterMemory::Paged,
        }
    }

    /// The fraction (1/n) of `memory_bytes` that all filters in memory may use.
    pub(crate) fn most_part(self) -> Option<u64> {
        match self {
            FilterMemory::Paged => None,
            FilterMemory::Resident => Some(4),
            FilterMemory::Small => Some(32),
        }
    }
}

/// Settings of a store.
///
/// ```
/// use tanada_kv::StoreSettings;
///
/// let settings = StoreSettings { time_to_live_s: Some(3600), ..StoreSettings::default() };
/// assert_eq!(settings.page_bytes, 4096);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StoreSettings {
    /// Values that are at least this long are kept apart from their keys. Default: 256 bytes.
    pub separate_from_bytes: u32,
    /// Compression of values that are kept apart from their keys. Default: none.
    pub compression: Compression,
    /// Seconds after which entries count as deleted. Default: never.
    pub time_to_live_s: Option<u32>,
    /// Which classes keys and values go to. Default: keys to the fastest, values of leaves to the slowest.
    pub policy: MediaPolicy,
    /// Bytes of a page of keys: a multiple of 4 KiB, at most 64 KiB. Default: 4 KiB.
    pub page_bytes: u32,
    /// Bits of the filters for each key; 0 for none. Default: 10.
    pub filter_bits_per_key: u32,
    /// Whether filters stay in memory. Default: as long as they are small.
    pub filters: FilterMemory,
    /// Bytes of keys and values that a leaf of the tree is to have; half as many again, and it is split. Default: 512
    /// MiB.
    pub leaf_bytes: u64,
    /// A segment of values has this many bytes at most, unless one value alone has more; a chunk of the volume if that
    /// is more. Default: 64 MiB.
    pub value_segment_bytes: u64,
    /// Bytes of segments of values over the bytes in them that are in use: what is more has garbage collected. Default:
    /// 1.3.
    pub space_amplification: f64,
    /// Values that are read often from slow classes are copied to the fastest one, this many bytes a second at most.
    /// Default: 0, which is never.
    pub promoted_bytes_per_second: u64,
    /// Values that move from the log to a slower class are read where the log wrote them, as long as the fastest class
    /// has space for both. Only where the policy wants keys at the root on the fastest class. Default: true.
    pub mirrors: bool,
}

impl Default for StoreSettings {
    fn default() -> StoreSettings {
        StoreSettings {
            separate_from_bytes: 256,
            compression: Compression::None,
            time_to_live_s: None,
            policy: MediaPolicy::default(),
            page_bytes: 4096,
            filter_bits_per_key: 10,
            filters: FilterMemory::Small,
            leaf_bytes: 512 << 20,
            value_segment_bytes: 64 << 20,
            space_amplification: 1.3,
            promoted_bytes_per_second: 0,
            mirrors: true,
        }
    }
}

impl StoreSettings {
    pub(crate) fn check(&self) -> Result<()> {
        if self.separate_from_bytes == 0 || self.separate_from_bytes > 64 << 10 {
            return Err(Error::invalid(
                "settings of a store: separate_from_bytes is not between 1 and 65536",
            ));
        }
        if self.page_bytes == 0 || !self.page_bytes.is_multiple_of(4096) || self.page_bytes > 64 << 10 {
            return Err(Error::invalid("settings of a store: page_bytes is no multiple of 4096 up to 65536"));
        }
        if !(1.05..=1000.0).contains(&self.space_amplification) {
            return Err(Error::invalid(
                "settings of a store: space_amplification is not between 1.05 and 1000",
            ));
        }
        for (name, bytes) in
            [("leaf_bytes", self.leaf_bytes), ("value_segment_bytes", self.value_segment_bytes)]
        {
            if !(64 << 10..=MAX_BYTES).contains(&bytes) {
                return Err(Error::invalid(format!(
                    "settings of a store: {name} is not between 64 KiB and 1 PiB"
                )));
            }
        }
        if self.filter_bits_per_key > 64 {
            return Err(Error::invalid("settings of a store: filter_bits_per_key is more than 64"));
        }
        if self.time_to_live_s == Some(0) {
            return Err(Error::invalid("settings of a store: time_to_live_s is 0: leave it out for never"));
        }
        Ok(())
    }
}

/// The durability of a write.
///
/// ```
/// use tanada_kv::Durability;
///
/// assert_eq!(serde_json::from_str::<Durability>(r#"{"within": 10}"#)?, Durability::Within(10));
/// assert_eq!(serde_json::from_str::<Durability>("\"sync\"")?, Durability::Sync);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// Before it is acknowledged.
    Sync,
    /// At most this many milliseconds after it was acknowledged, from 1 to 1000. A crash loses only a suffix of the
    /// writes.
    Within(u16),
}

impl Default for Durability {
    fn default() -> Durability {
        Durability::Within(100)
    }
}

impl Durability {
    pub(crate) fn check(self) -> Result<()> {
        match self {
            Durability::Within(ms) if !(1..=1000).contains(&ms) => {
                Err(Error::invalid(format!("durability within {ms} ms: from 1 to 1000 are possible")))
            }
            _ => Ok(()),
        }
    }
}

/// Options of a write; `None` is as the database or the store is set.
///
/// ```
/// use tanada_kv::{Durability, WriteOptions};
///
/// assert_eq!(WriteOptions::sync().durability, Some(Durability::Sync));
/// assert_eq!(WriteOptions::within(5).durability, Some(Durability::Within(5)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WriteOptions {
    /// Durability. Default: as the database is set.
    pub durability: Option<Durability>,
    /// Compression of long values. Default: as the store says.
    pub compression: Option<Compression>,
    /// Seconds after which the entries count as deleted. Default: as the store is set.
    pub time_to_live_s: Option<u32>,
}

impl WriteOptions {
    /// Durable before it is acknowledged.
    pub fn sync() -> WriteOptions {
        WriteOptions { durability: Some(Durability::Sync), ..WriteOptions::default() }
    }

    /// A write that is durable within this many milliseconds.
    pub fn within(ms: u16) -> WriteOptions {
        WriteOptions { durability: Some(Durability::Within(ms)), ..WriteOptions::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::policy::PolicyTemplate;

    #[test]
    fn defaults_are_as_documented() {
        let settings = DatabaseSettings::default();
        assert_eq!(settings.memory_bytes, 512 << 20);
        assert_eq!(settings.memory_table_bytes, 64 << 20);
        assert_eq!(settings.waiting_tables, 4);
        assert_eq!(settings.log_segment_bytes, 64 << 20);
        assert_eq!(settings.log_group_bytes, 1 << 20);
        assert_eq!(settings.log_replay_bytes, 1 << 30);
        assert_eq!(settings.log_class, None);
        assert_eq!(settings.durability, Durability::Within(100));
        assert_eq!(settings.fast_class_bytes, None);
        assert_eq!(settings.slow_root_kvsets, 16);
        assert_eq!(settings.most_root_kvsets, 32);
        assert_eq!(settings.concurrent_jobs, 2);
        assert_eq!(settings.manifest_bytes, 4 << 20);
        let store = StoreSettings::default();
        assert_eq!(store.separate_from_bytes, 256);
        assert_eq!(store.compression, Compression::None);
        assert_eq!(store.time_to_live_s, None);
        assert_eq!(store.policy, MediaPolicy::from(PolicyTemplate::StagingMaxCapacity));
        assert_eq!((store.page_bytes, store.filter_bits_per_key), (4096, 10));
        assert_eq!(store.filters, FilterMemory::Small);
        assert_eq!((store.leaf_bytes, store.value_segment_bytes), (512 << 20, 64 << 20));
        assert_eq!((store.space_amplification, store.promoted_bytes_per_second), (1.3, 0));
        assert!(store.mirrors);
        let write = WriteOptions::default();
        assert_eq!((write.durability, write.compression, write.time_to_live_s), (None, None, None));
        assert!(!crate::OpenOptions::default().read_only);
    }

    #[test]
    fn settings_survive_being_written_and_may_be_partial() {
        let settings = DatabaseSettings { durability: Durability::Sync, ..DatabaseSettings::default() };
        let text = serde_json::to_string(&settings).unwrap();
        assert_eq!(serde_json::from_str::<DatabaseSettings>(&text).unwrap(), settings);
        let partial: DatabaseSettings =
            serde_json::from_str(r#"{"memory_bytes": 4194304, "durability": {"within": 7}}"#).unwrap();
        assert_eq!((partial.memory_bytes, partial.durability), (4 << 20, Durability::Within(7)));
        assert!(serde_json::from_str::<StoreSettings>(r#"{"no_such": 1}"#).is_err());
    }

    #[test]
    fn memory_shares_fit_into_the_budget() {
        for mib in [2, 5, 16, 63, 64, 192, 384, 512, 4096, MAX_BYTES >> 20] {
            let settings = DatabaseSettings { memory_bytes: mib << 20, ..DatabaseSettings::default() };
            let tables = (settings.waiting_tables as u64 + 1) * settings.table_bytes();
            // A job has a quarter of a MiB at least.
            let jobs = settings.jobs_bytes().max(256 << 10);
            let rest = settings.own_bytes() + jobs + settings.waiting_log_bytes();
            assert!(tables + rest <= settings.memory_bytes, "{mib} MiB: {tables} and {rest} bytes");
            assert!(settings.waiting_log_bytes() >= 2 * settings.group_bytes());
        }
        let settings = DatabaseSettings::default();
        assert_eq!((settings.group_bytes(), settings.waiting_log_bytes()), (1 << 20, 16 << 20));
    }

    #[test]
    fn groups_of_the_log_are_whole_blocks() {
        for log_group_bytes in [64 << 10, 100_000, 1_000_000, 1 << 20, 5_000_001] {
            for memory_bytes in [1 << 20, 45 << 20, 512 << 20, MAX_BYTES] {
                let settings =
                    DatabaseSettings { log_group_bytes, memory_bytes, ..DatabaseSettings::default() };
                let bytes = settings.group_bytes();
                assert!(bytes.is_multiple_of(BLOCK) && bytes <= log_group_bytes, "{bytes}: {settings:?}");
            }
        }
        let settings = DatabaseSettings { memory_bytes: 45 << 20, ..DatabaseSettings::default() };
        assert_eq!(settings.group_bytes(), 256 << 10);
    }

    #[test]
    fn impossible_settings_are_refused() {
        assert!(DatabaseSettings::default().check().is_ok());
        let wrong = [
            DatabaseSettings { memory_bytes: 0, ..DatabaseSettings::default() },
            DatabaseSettings { log_group_bytes: 1 << 30, ..DatabaseSettings::default() },
            DatabaseSettings { waiting_tables: 0, ..DatabaseSettings::default() },
            DatabaseSettings { most_root_kvsets: 1, ..DatabaseSettings::default() },
            DatabaseSettings { slow_root_kvsets: 0, ..DatabaseSettings::default() },
            DatabaseSettings { durability: Durability::Within(0), ..DatabaseSettings::default() },
            DatabaseSettings { concurrent_jobs: usize::MAX, ..DatabaseSettings::default() },
            DatabaseSettings { manifest_bytes: u64::MAX, ..DatabaseSettings::default() },
            DatabaseSettings { memory_bytes: u64::MAX, ..DatabaseSettings::default() },
        ];
        for settings in wrong {
            assert_eq!(settings.check().unwrap_err().kind(), crate::ErrorKind::InvalidInput);
        }
        let told = |settings: DatabaseSettings| settings.check().unwrap_err().to_string();
        assert!(
            told(DatabaseSettings { slow_root_kvsets: 40, ..DatabaseSettings::default() })
                .contains("slow_root_kvsets is not between 1 and most_root_kvsets")
        );
        assert!(
            told(DatabaseSettings { concurrent_jobs: 0, ..DatabaseSettings::default() })
                .contains("concurrent_jobs is")
        );
        assert!(StoreSettings::default().check().is_ok());
        let wrong = [
            StoreSettings { leaf_bytes: u64::MAX, ..StoreSettings::default() },
            StoreSettings { filter_bits_per_key: u32::MAX, ..StoreSettings::default() },
            StoreSettings { space_amplification: f64::NAN, ..StoreSettings::default() },
            StoreSettings { time_to_live_s: Some(0), ..StoreSettings::default() },
        ];
        for settings in wrong {
            assert_eq!(settings.check().unwrap_err().kind(), crate::ErrorKind::InvalidInput);
        }
    }
}
