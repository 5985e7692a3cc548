//! Settings that differ from story to story, and who looks after a database beside those who write to it: compactions and copies of the whole.
//!
//! Every third story has stores as they are by default, and no caretaker. In the others leaves, segments and pages are so small that trees grow and split;
//! values are compressed, kept beside their keys or apart, and promoted.

use std::sync::Arc;
use std::time::Duration;

use tanada_base::SplitMix64;
use tanada_kv::{Compression, Database, Environment, ErrorKind, OpenOptions, StoreSettings};
use tanada_volume::Volume;

use super::story::Teller;
use crate::trace::mix;

/// Name of the copy.
const COPY: &str = "copy";

/// Whether stores of the story are as by default.
fn is_plain(seed: u64) -> bool {
    seed.is_multiple_of(3)
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
        ..StoreSettings::default()
    }
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
                _ => {
                    self.count("compaction");
                    self.stores[random.below(self.stores.len() as u64) as usize].compact().await
                }
            };
            match done {
                // A bulk load has its turn, or there is no room for another copy of everything.
                Err(error) if matches!(error.kind(), ErrorKind::Conflict | ErrorKind::NoSpace) => {}
                // A store was dropped while it was copied.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(_) if self.expects_errors => return Ok(()),
                Err(error) => return Err(format!("what the caretaker did failed: {error}")),
                Ok(()) => {}
            }
        }
        Ok(())
    }

    /// Copies the database, checks the copy, destroys it.
    async fn copy(
        &self,
        volume: &Volume,
        environment: &Arc<dyn Environment>,
    ) -> Result<tanada_kv::Result<()>, String> {
        if let Err(error) = self.database.checkpoint(COPY).await {
            return Ok(Err(error));
        }
        self.count("copy");
        let checked = check(volume, environment).await;
        if let Err(error) = &checked
            && !self.expects_errors
        {
            return Err(format!("the copy is not whole: {error}"));
        }
        Ok(checked.and(Database::destroy(volume, COPY, environment.clone()).await))
    }
}

async fn check(volume: &Volume, environment: &Arc<dyn Environment>) -> tanada_kv::Result<()> {
    let options = OpenOptions { read_only: true, ..OpenOptions::default() };
    let copy = Database::open(volume, COPY, &options, environment.clone()).await?;
    let checked = copy.check().await.map(drop);
    checked.and(copy.close().await)
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
