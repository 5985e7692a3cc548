//! Settings that differ from story to story, and who looks after a database beside those who write to it: compactions,
//! copies of the whole, classes that are emptied and take data again.
//!
//! Every third story has stores as they are by default, and no caretaker. In the others leaves, segments and pages are
//! so small that trees grow and split; values are compressed, kept beside their keys or apart, and promoted. In every
//! fifth story the fast class has a limit.

use std::sync::Arc;
use std::time::Duration;

use tanada_base::SplitMix64;
use tanada_kv::{
    Compression, CursorOptions, Database, Environment, ErrorKind, FilterMemory, OpenOptions, StoreSettings,
};
use tanada_volume::{Relocation, Volume};

use super::CHUNK_BYTES;
use super::model::State;
use super::story::{NAMES, Teller};
use crate::trace::mix;

/// Name of the copy.
const COPY: &str = "copy";

/// Bytes that a story may have on the fast class where that is limited.
const FAST_LIMIT: u64 = 2 << 20;

/// Whether stores of the story are as by default.
fn is_plain(seed: u64) -> bool {
    seed.is_multiple_of(3)
}

/// Whether the caretaker of the story empties classes.
fn drains(seed: u64) -> bool {
    seed % 4 == 1
}

/// The limit of the fast class in the story: less than the log, key files and small stores take up without one.
pub(super) fn fast_limit(seed: u64) -> Option<u64> {
    (seed % 5 == 3).then_some(FAST_LIMIT)
}

/// Settings of the story's store number `no`.
pub(super) fn store_settings(seed: u64, no: u64) -> StoreSettings {
    if is_plain(seed) {
        return StoreSettings::default();
    }
    let mut random = SplitMix64::new(mix(seed, 0x5e77 + no));
    fn one_of<T: Copy>(random: &mut SplitMix64, all: &[T]) -> T {
        all[random.below(all.len() as u64) as usize]
    }
    let compressions = [Compression::None, Compression::Lz4, Compression::Zstd];
    StoreSettings {
        leaf_bytes: one_of(&mut random, &[64 << 10, 64 << 10, 256 << 10, 512 << 20]),
        value_segment_bytes: one_of(&mut random, &[64 << 10, 128 << 10, 64 << 20]),
        compression: one_of(&mut random, &compressions),
        separate_from_bytes: one_of(&mut random, &[32, 256, 4096]),
        page_bytes: one_of(&mut random, &[4 << 10, 16 << 10]),
        filter_bits_per_key: one_of(&mut random, &[0, 10]),
        promoted_bytes_per_second: one_of(&mut random, &[0, 1 << 20]),
        mirrors: random.below(4) != 0,
        filters: one_of(&mut random, &[FilterMemory::Small, FilterMemory::Resident, FilterMemory::Paged]),
        ..StoreSettings::default()
    }
}

/// Whether what lies on the fast class keeps to its limit. A segment of the log that is made while that is nearly
/// reached may go beyond it, and so may what was being written then.
pub(super) fn check_limit(database: &Database) -> Result<(), String> {
    let settings = database.settings();
    let Some(limit) = settings.fast_class_bytes else { return Ok(()) };
    let statistics = database.statistics();
    let fast = statistics.classes.first();
    let bytes = fast.map_or(0, |class| class.segment_bytes + class.key_bytes + class.manifest_bytes);
    if bytes > limit + settings.log_segment_bytes + 4 * CHUNK_BYTES {
        return Err(format!("{bytes} bytes lie on the fast class, whose limit is {limit}"));
    }
    Ok(())
}

impl Teller {
    /// The caretaker's part.
    pub(super) async fn take_care(
        self,
        (seed, steps): (u64, u64),
        volume: Volume,
        environment: Arc<dyn Environment>,
    ) -> Result<(), String> {
        if is_plain(seed) {
            return Ok(());
        }
        let mut random = SplitMix64::new(mix(seed, 0xca4e));
        for _ in 0..steps {
            self.world.sleep(Duration::from_micros(random.below(400_000))).await;
            let done = match random.below(4) {
                0 => self.copy(&volume, &environment).await?,
                1 if drains(seed) => self.empty_a_class(&volume, &mut random).await?,
                _ => {
                    self.count("compaction");
                    self.stores[random.below(self.stores.len() as u64) as usize].compact().await
                }
            };
            match done {
                // A bulk load has its turn, or there is no room for another copy of everything.
                Err(error) if matches!(error.kind(), ErrorKind::Conflict | ErrorKind::NoSpace) => {}
                Err(_) if self.expects_errors => return Ok(()),
                Err(error) => return Err(format!("what the caretaker did failed: {error}")),
                Ok(()) => {}
            }
            if !self.model.borrow().tuned.settles {
                check_limit(&self.database)?;
            }
        }
        Ok(())
    }

    /// Empties a class while everybody goes on, and has it take data again after a while.
    async fn empty_a_class(
        &self,
        volume: &Volume,
        random: &mut SplitMix64,
    ) -> Result<tanada_kv::Result<()>, String> {
        let class = if random.below(4) == 0 { "slow" } else { "fast" };
        self.count("class emptied");
        let emptied = match random.below(2) {
            0 => self.database.drain_class(class).await.map(drop),
            // Somebody else does it, whom the engine has not been told of.
            _ => {
                let drained = volume.drain_class(class, &Relocation::default()).await;
                match drained {
                    Err(error) if error.kind() == tanada_volume::ErrorKind::NoSpace => Ok(()),
                    Err(_) if self.expects_errors => Ok(()),
                    Err(error) => return Err(format!("class {class} cannot be emptied: {error}")),
                    Ok(_) => Ok(()),
                }
            }
        };
        self.world.sleep(Duration::from_micros(random.below(100_000))).await;
        match volume.fill_class(class).await {
            Err(error) if !self.expects_errors => {
                return Err(format!("class {class} cannot be filled again: {error}"));
            }
            _ => {}
        }
        // What the slow class could not take had to go somewhere.
        self.keeps_limit().await?;
        Ok(emptied)
    }

    /// Copies the database, checks the copy, destroys it.
    async fn copy(
        &self,
        volume: &Volume,
        environment: &Arc<dyn Environment>,
    ) -> Result<tanada_kv::Result<()>, String> {
        let bounds = self.model.borrow().seen_now();
        if let Err(error) = self.database.checkpoint(COPY).await {
            return Ok(Err(error));
        }
        self.count("copy");
        let checked = check(volume, environment).await;
        if let Ok(found) = &checked {
            let judged = self.model.borrow().judge_copy(found, &bounds);
            judged
                .map_err(|wrong| format!("the copy has not what was there when it was asked for: {wrong}"))?;
        }
        if let Err(error) = &checked
            && !self.expects_errors
        {
            return Err(format!("the copy is not whole: {error}"));
        }
        Ok(checked.map(drop).and(Database::destroy(volume, COPY, environment.clone()).await))
    }
}

/// What is found in the copy.
async fn check(volume: &Volume, environment: &Arc<dyn Environment>) -> tanada_kv::Result<State> {
    let options = OpenOptions { read_only: true, ..OpenOptions::default() };
    let copy = Database::open(volume, COPY, &options, environment.clone()).await?;
    let checked = copy.check().await;
    let found = all_of(&copy).await;
    copy.close().await?;
    checked.and(found)
}

async fn all_of(copy: &Database) -> tanada_kv::Result<State> {
    let mut found = State::default();
    for (keys, name) in found.iter_mut().zip(NAMES) {
        let mut cursor = copy.open_store(name)?.cursor(CursorOptions::default());
        while let Some((key, value)) = cursor.next().await? {
            keys.insert(key.to_vec(), value.to_vec());
        }
    }
    Ok(found)
}

/// Whatever a power cut has left of a copy can be destroyed.
pub(super) async fn sweep(volume: &Volume, environment: &Arc<dyn Environment>) -> Result<(), String> {
    match Database::destroy(volume, COPY, environment.clone()).await {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(format!("what is left of a copy cannot be destroyed: {error}"))
        }
        _ => Ok(()),
    }
}
