//! Bytes that were written: by the class they went to, and by what they were written for.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tanada_volume::{Object, Volume};

/// The cause of written bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Log,
    FlushKeys,
    JobKeys,
    JobValues,
    Manifest,
}

/// Bytes that were written, by cause.
///
/// ```
/// use tanada_kv::WrittenBytes;
///
/// let written = WrittenBytes { log: 100, flush_keys: 20, ..WrittenBytes::default() };
/// assert_eq!(written.all(), 120);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct WrittenBytes {
    /// To the log, padding included.
    pub log: u64,
    /// Keys of memtables.
    pub flush_keys: u64,
    /// Keys by jobs and bulk loads.
    pub job_keys: u64,
    /// Values by jobs and bulk loads, and those of memtables that are packed.
    pub job_values: u64,
    /// To the manifest.
    pub manifest: u64,
}

impl WrittenBytes {
    /// All together.
    pub fn all(&self) -> u64 {
        let parts = [self.log, self.flush_keys, self.job_keys, self.job_values, self.manifest];
        parts.into_iter().fold(0, u64::saturating_add)
    }

    /// Both together.
    pub(crate) fn with(&self, other: &WrittenBytes) -> WrittenBytes {
        WrittenBytes {
            log: self.log.saturating_add(other.log),
            flush_keys: self.flush_keys.saturating_add(other.flush_keys),
            job_keys: self.job_keys.saturating_add(other.job_keys),
            job_values: self.job_values.saturating_add(other.job_values),
            manifest: self.manifest.saturating_add(other.manifest),
        }
    }

    fn of(&mut self, purpose: Purpose) -> &mut u64 {
        match purpose {
            Purpose::Log => &mut self.log,
            Purpose::FlushKeys => &mut self.flush_keys,
            Purpose::JobKeys => &mut self.job_keys,
            Purpose::JobValues => &mut self.job_values,
            Purpose::Manifest => &mut self.manifest,
        }
    }
}

/// Counts them.
#[derive(Debug, Default)]
pub(crate) struct Written {
    /// By the class's number; with its name.
    classes: Mutex<BTreeMap<u8, (String, WrittenBytes)>>,
}

impl Written {
    /// Notes that this many bytes were written to an object, from there on.
    pub(crate) fn note(&self, volume: &Volume, purpose: Purpose, object: &Object, from: u64, bytes: u64) {
        let (chunk_bytes, end) = (volume.chunk_bytes(), from.saturating_add(bytes));
        for chunk in object.chunks(from / chunk_bytes..end.div_ceil(chunk_bytes)) {
            let Some(home) = chunk.home else { continue };
            let begins = chunk.no.saturating_mul(chunk_bytes);
            let within = end.min(begins.saturating_add(chunk_bytes)).saturating_sub(from.max(begins));
            let mut classes = self.classes.lock();
            let (_, written) = classes.entry(home.class).or_insert_with(|| {
                let class = volume.classes().into_iter().find(|class| class.number == home.class);
                (class.map(|class| class.name).unwrap_or_default(), WrittenBytes::default())
            });
            let written = written.of(purpose);
            *written = written.saturating_add(within);
        }
    }

    /// Returns the written bytes by class name.
    pub(crate) fn by_class(&self) -> BTreeMap<String, WrittenBytes> {
        let mut named: BTreeMap<String, WrittenBytes> = BTreeMap::new();
        for (name, written) in self.classes.lock().values() {
            let sum = named.entry(name.clone()).or_default();
            *sum = sum.with(written);
        }
        named
    }
}
