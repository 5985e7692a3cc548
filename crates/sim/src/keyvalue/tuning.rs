//! Who changes settings while everybody goes on: of the two stores, and of the database, with the limit of the fast
//! class.
//!
//! One change after the other, so what is found after a power cut is what was set last, or what was being set then.
//! Policies are others' to change meanwhile.

use std::time::Duration;

use tanada_base::SplitMix64;
use tanada_kv::{
    Database, DatabaseOverrides, DatabaseSettings, Durability, Store, StoreOverrides, StoreSettings,
};

use super::caretaker::{check_limit, store_settings};
use super::model::STORES;
use super::story::Teller;
use crate::trace::mix;

/// How long it takes at most until the database keeps to a limit that was lowered, or to one that it could not keep to
/// while the other class took nothing.
const SETTLES: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Settings of the database and its stores, policies apart.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Settings {
    database: DatabaseSettings,
    stores: [StoreSettings; STORES],
}

impl Settings {
    /// As they are now.
    pub(super) fn of(database: &Database, stores: &[Store; STORES]) -> Settings {
        let of_store =
            |no: usize| StoreSettings { policy: StoreSettings::default().policy, ..stores[no].settings() };
        Settings { database: database.settings(), stores: [of_store(0), of_store(1)] }
    }
}

/// What was set.
#[derive(Debug, Clone, Default)]
pub(super) struct Tuned {
    /// `None` as long as nothing was changed.
    acknowledged: Option<Settings>,
    asked: Option<Settings>,
    /// Something was changed a moment ago, which may be the limit of the fast class.
    pub(super) settles: bool,
}

impl Tuned {
    /// Judges what is found after a power cut, and goes on from there.
    pub(super) fn judge(&mut self, found: Option<&Settings>) -> Result<(), String> {
        let known = [&self.acknowledged, &self.asked];
        if self.acknowledged.is_some() && !known.into_iter().any(|known| known.as_ref() == found) {
            return Err(format!(
                "settings are {found:?}, and were {:?} or becoming {:?}",
                self.acknowledged, self.asked
            ));
        }
        (self.acknowledged, self.asked, self.settles) = (found.cloned(), None, false);
        Ok(())
    }
}

impl Teller {
    /// The part of the one who changes settings.
    pub(super) async fn tune(self, (seed, steps): (u64, u64)) -> Result<(), String> {
        let mut random = SplitMix64::new(mix(seed, 0x7e77));
        for step in 0..steps {
            self.world.sleep(Duration::from_micros(random.below(400_000))).await;
            let before = Settings::of(&self.database, &self.stores);
            self.model.borrow_mut().tuned.acknowledged.get_or_insert_with(|| before.clone());
            let mut after = before;
            let no = random.below(STORES as u64 + 1) as usize;
            let set = if no < STORES {
                let changes = other_settings(mix(seed, step), &mut random);
                after.stores[no] = changes.over(&after.stores[no]);
                self.ask(after.clone());
                self.stores[no].set_settings(&changes).await
            } else {
                let changes = other_database_settings(&mut random);
                after.database = changes.over(&after.database);
                self.ask(after.clone());
                self.database.set_settings(&changes).await
            };
            match set {
                Ok(()) => {}
                Err(_) if self.expects_errors => return Ok(()),
                Err(error) => return Err(format!("settings cannot be changed: {error}")),
            }
            self.count("settings");
            self.acknowledge(after.clone());
            if Settings::of(&self.database, &self.stores) != after {
                return Err("settings that were set are not there".to_owned());
            }
            self.keeps_limit().await?;
            self.model.borrow_mut().tuned.settles = false;
        }
        Ok(())
    }

    fn ask(&self, settings: Settings) {
        let tuned = &mut self.model.borrow_mut().tuned;
        (tuned.asked, tuned.settles) = (Some(settings), true);
    }

    fn acknowledge(&self, settings: Settings) {
        let tuned = &mut self.model.borrow_mut().tuned;
        (tuned.acknowledged, tuned.asked) = (Some(settings), None);
    }

    /// Waits until the database keeps to its limit.
    pub(super) async fn keeps_limit(&self) -> Result<(), String> {
        let mut waited = Duration::ZERO;
        while let Err(what) = check_limit(&self.database) {
            if self.expects_errors {
                return Ok(());
            }
            if waited >= SETTLES {
                return Err(format!("{what}, and {waited:?} have passed"));
            }
            self.world.sleep(LOOK_EVERY).await;
            waited += LOOK_EVERY;
        }
        Ok(())
    }
}

/// Some of a store's settings.
fn other_settings(seed: u64, random: &mut SplitMix64) -> StoreOverrides {
    let all = StoreOverrides::from(store_settings(seed, 0));
    let mut is_named = || random.below(3) == 0;
    StoreOverrides {
        leaf_bytes: all.leaf_bytes.filter(|_| is_named()),
        value_segment_bytes: all.value_segment_bytes.filter(|_| is_named()),
        compression: all.compression.filter(|_| is_named()),
        separate_from_bytes: all.separate_from_bytes.filter(|_| is_named()),
        page_bytes: all.page_bytes.filter(|_| is_named()),
        filter_bits_per_key: all.filter_bits_per_key.filter(|_| is_named()),
        promoted_bytes_per_second: all.promoted_bytes_per_second.filter(|_| is_named()),
        mirrors: all.mirrors.filter(|_| is_named()),
        ..StoreOverrides::default()
    }
}

fn other_database_settings(random: &mut SplitMix64) -> DatabaseOverrides {
    let limits = [None, Some(2 << 20), Some(3 << 20), Some(6 << 20)];
    let kvsets = 3 + random.below(6) as usize;
    DatabaseOverrides {
        fast_class_bytes: Some(limits[random.below(limits.len() as u64) as usize]),
        durability: Some(Durability::Within(1 + random.below(1000) as u16)),
        slow_root_kvsets: Some(kvsets),
        most_root_kvsets: Some(2 * kvsets),
        waiting_tables: Some(2 + random.below(4) as usize),
        ..DatabaseOverrides::default()
    }
}
