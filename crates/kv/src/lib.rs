//! An embeddable key-value engine over storage of several speeds.
//!
//! Above: whoever embeds it, and native tables. Below: `tanada-volume`.
//!
//! - A [`Database`] is a set of objects of a volume; it has named [`Store`]s of sorted keys and values.
//! - What is written goes to a log, which is the first home of long values, and to memory; keys are flushed sorted,
//!   and values move to slower classes or stay, as each store's settings say.
//! - A [`Batch`] is atomic over all stores; a [`Transaction`] reads from a snapshot, sees what it wrote, and fails with
//!   [`ErrorKind::Conflict`] if another one was first; a [`Cursor`] walks in both directions.
//! - Everything is asynchronous and runs wherever its futures are polled; [`blocking`] is for threads that wait.
//!
//! ```
//! use tanada_kv::{Batch, CursorOptions, Database, DatabaseSettings, Isolation, OpenOptions, StoreSettings};
//! use tanada_kv::{ThreadEnvironment, WriteOptions};
//! use tanada_volume::VolumeSettings;
//! use tanada_volume::directory::{ClassConfig, Directory, Settings};
//!
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("volume");
//! # futures::executor::block_on(async {
//! let flash = ClassConfig::new("flash", vec!["flash".into()], Some(256 << 20));
//! let directory =
//!     Directory::create(&path, &VolumeSettings::default(), &[flash], Settings::default()).await?;
//! let volume = directory.volume();
//! let environment = ThreadEnvironment::new();
//! let database = Database::create(volume, "shop", &DatabaseSettings::default(), environment.clone()).await?;
//! let lines = database.create_store("lines", &StoreSettings::default()).await?;
//! lines.put(b"2026-01-01/1", b"rice").await?; // durable within 100 ms
//! let mut batch = Batch::new();
//! batch.put(&lines, b"2026-01-01/2", b"tea");
//! batch.put(&lines, b"2026-01-02/1", b"salt");
//! database.write(batch, &WriteOptions::sync()).await?; // durable now
//! assert_eq!(lines.get(b"2026-01-01/1").await?.as_deref(), Some(&b"rice"[..]));
//!
//! let mut cursor = lines.cursor(CursorOptions::prefix(b"2026-01-01/"));
//! while let Some((key, value)) = cursor.next().await? {
//!     println!("{key:?} {value:?}");
//! }
//!
//! let mut transaction = database.begin(Isolation::Snapshot);
//! let tea = transaction.get(&lines, b"2026-01-01/2").await?.unwrap();
//! transaction.put(&lines, b"2026-01-02/2", &tea);
//! transaction.commit(&WriteOptions::sync()).await?;
//! database.close().await?;
//!
//! let database = Database::open(volume, "shop", &OpenOptions::default(), environment).await?;
//! let lines = database.open_store("lines")?;
//! assert_eq!(lines.get(b"2026-01-02/2").await?.as_deref(), Some(&b"tea"[..]));
//! database.close().await?;
//! directory.close().await?;
//! # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
//! ```
#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    allow(clippy::duplicate_mod, reason = "some modules are checked with a model checker's types, too")
)]

pub mod blocking;
mod cache;
mod classes;
mod counters;
mod crash;
mod database;
mod entry;
mod environment;
mod error;
#[doc(hidden)]
pub mod example;
#[cfg(test)]
mod formats;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
#[cfg(test)]
mod interleaving;
mod keyfile;
mod latency;
mod log;
mod manifest;
mod memory;
mod merge;
mod notify;
mod objects;
mod opening;
mod overrides;
mod pace;
mod settings;
mod slices;
mod stream;
mod sync;
#[cfg(test)]
mod testing;
mod threads;
mod tombstone;
mod transaction;
mod tree;
mod tuning;
mod value;
mod wire;
mod written;

#[doc(hidden)]
pub use crash::PlantedBug;
pub use crash::{CRASH_POINTS, CrashPoints, CrashProbe};
pub use database::{
    Activity, Batch, BulkLoad, CheckReport, ClassStatistics, Database, JobStatistics, Snapshot,
    StallStatistics, Statistics, Store, StoreStatistics,
};
pub use entry::{LONGEST_KEY, LONGEST_VALUE};
pub use environment::{BackgroundTask, Environment, LiveEnvironment, MakeLocalTask, ThreadEnvironment};
pub use error::{Error, ErrorKind, Result};
pub use latency::{LatencyBucket, LatencySummary};
pub use opening::{OnProgress, OpenOptions, RecoveryProgress};
pub use overrides::{DatabaseOverrides, StoreOverrides};
pub use settings::{
    Compression, DatabaseSettings, Durability, FilterMemory, LONGEST_NAME, StoreSettings, WriteOptions,
};
pub use transaction::{Cursor, CursorOptions, Isolation, Transaction};
pub use tree::policy::{ClassChoice, LevelClasses, MediaPolicy, PolicyTemplate};
pub use written::WrittenBytes;
