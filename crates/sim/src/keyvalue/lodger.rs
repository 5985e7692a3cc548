//! A store that comes and goes: it is made, written to, loaded and dropped, and made again under the same name.
//!
//! It is there from the return of its making on, until its dropping is asked for, and gone when that returns; in
//! between both are right. While it is there it has what its writer wrote since it was made, by the rules of all
//! writers, and nothing of those before it.

use std::time::Duration;

use tanada_base::SplitMix64;
use tanada_kv::{ErrorKind, Store, StoreSettings};

use super::model::{Keys, LODGER, State, Writer};
use super::story::Teller;

/// Its name.
pub(super) const NAME: &str = "lodger";

const LETTER: u8 = b'l';

/// Whether it is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Stay {
    #[default]
    Away,
    Coming,
    Here,
    Leaving,
}

/// The store, and what was written to it since it was made.
#[derive(Debug, Clone)]
pub(super) struct Lodger {
    pub(super) stay: Stay,
    pub(super) writer: Writer,
}

impl Default for Lodger {
    fn default() -> Lodger {
        Lodger { stay: Stay::Away, writer: Writer::new(LETTER) }
    }
}

fn as_state(keys: &Keys) -> State {
    [keys.clone(), Keys::new()]
}

impl Lodger {
    /// How many of its batches are found, `None` if it is not there.
    pub(super) fn found(&self, found: Option<&Keys>, now: Duration) -> Result<Option<usize>, String> {
        match (self.stay, found) {
            (Stay::Away, Some(_)) => Err("a store that was dropped, or never made, is there".to_owned()),
            (Stay::Here, None) => Err("a store that was made is not there".to_owned()),
            (Stay::Coming, Some(keys)) if !keys.is_empty() => {
                Err(format!("a store that is being made has {} keys", keys.len()))
            }
            (_, None) => Ok(None),
            (_, Some(keys)) => self.writer.found(&as_state(keys), now).map(Some),
        }
    }

    /// What was found is what there is from now on.
    pub(super) fn continue_from(&mut self, found: Option<&Keys>) {
        self.stay = if found.is_some() { Stay::Here } else { Stay::Away };
        self.writer.continue_from(found.map(as_state).unwrap_or_default());
    }
}

impl Teller {
    /// The part of the one that comes and goes.
    pub(super) async fn lodge(mut self, steps: u64, mut random: SplitMix64) -> Result<(), String> {
        self.store_count = 1;
        for _ in 0..steps {
            self.world.sleep(Duration::from_micros(random.below(20_000))).await;
            let stay = self.model.borrow().lodger.stay;
            let goes_on = match stay {
                Stay::Away => self.come().await?,
                Stay::Here => {
                    let store = self.database.open_store(NAME);
                    let store = store.map_err(|error| format!("the store {NAME} is not there: {error}"))?;
                    self.stores = [store.clone(), store];
                    match random.below(12) {
                        0 | 1 => self.leave(&mut random).await?,
                        2 => self.load(LODGER, LETTER, &mut random).await?,
                        3 => self.look_back(LODGER, LETTER, &mut random).await?,
                        4 => self.read(LODGER, &mut random).await.map(|()| true)?,
                        _ => self.batch(LODGER, LETTER, &mut random).await?,
                    }
                }
                // One of both failed, as it may.
                Stay::Coming | Stay::Leaving => false,
            };
            if !goes_on {
                break;
            }
        }
        Ok(())
    }

    /// Makes the store.
    async fn come(&self) -> Result<bool, String> {
        self.count("store made");
        self.model.borrow_mut().lodger = Lodger { stay: Stay::Coming, ..Lodger::default() };
        match self.database.create_store(NAME, &StoreSettings::default()).await {
            Ok(_) => {
                self.model.borrow_mut().lodger.stay = Stay::Here;
                Ok(true)
            }
            Err(_) if self.expects_errors => Ok(false),
            Err(error) => Err(format!("the store {NAME} cannot be made: {error}")),
        }
    }

    /// Drops the store, by chance while it is loaded.
    async fn leave(&self, random: &mut SplitMix64) -> Result<bool, String> {
        self.count("store dropped");
        let store = &self.stores[0];
        let load = match random.below(3) {
            0 => self.begun_load(store, random).await?,
            _ => None,
        };
        self.model.borrow_mut().lodger.stay = Stay::Leaving;
        match self.database.drop_store(NAME).await {
            Ok(()) => {}
            Err(_) if self.expects_errors => return Ok(false),
            Err(error) => return Err(format!("the store {NAME} cannot be dropped: {error}")),
        }
        self.model.borrow_mut().lodger.stay = Stay::Away;
        if let Some(load) = load {
            match load.finish().await {
                Err(error) if error.kind() == ErrorKind::NotFound || self.expects_errors => {}
                Err(error) => return Err(format!("loading a store that was dropped fails so: {error}")),
                Ok(bytes) => return Err(format!("{bytes} bytes were loaded into a store that was dropped")),
            }
        }
        match store.get(b"l000").await {
            Err(_) => Ok(true),
            Ok(_) => Err("a store that was dropped can be read".to_owned()),
        }
    }

    /// A load that has a few keys.
    async fn begun_load(
        &self,
        store: &Store,
        random: &mut SplitMix64,
    ) -> Result<Option<tanada_kv::BulkLoad>, String> {
        let load = async {
            let mut load = store.bulk_load().await?;
            for no in 0..1 + random.below(9) {
                load.put(&[LETTER, b'0' + no as u8], &vec![no as u8; 100 * no as usize]).await?;
            }
            Ok::<_, tanada_kv::Error>(load)
        };
        match load.await {
            Ok(load) => Ok(Some(load)),
            Err(error) if error.kind() == ErrorKind::Conflict || self.expects_errors => Ok(None),
            Err(error) => Err(format!("a load failed: {error}")),
        }
    }
}
