//! Transactions over a few keys that several share, and what their history has to keep to.
//!
//! Each value begins with its number in the history, and the rest follows from that; so what is found says which write
//! it is, and none that is torn passes. After a power cut what is found is one more reader's snapshot:
//! [`History::stopped`].

use std::collections::BTreeMap;
use std::time::Duration;

use tanada_base::SplitMix64;
use tanada_kv::{CursorOptions, Durability, ErrorKind, Isolation, Transaction, WriteOptions};

use super::model::STORES;
use super::story::{SLACK, Teller};
use crate::history::{History, Key, Level, TransactionNo, Value};

/// Keys that are shared, over all stores.
const KEYS: u32 = 8;

/// What they begin with.
const LETTER: u8 = b't';

/// What the transactions did, and which of them have to be there when.
#[derive(Debug, Clone)]
pub(super) struct Contended {
    level: Level,
    pub(super) history: History,
    durable_at: Vec<(TransactionNo, Duration)>,
}

impl Default for Contended {
    fn default() -> Contended {
        Contended::new(Level::Snapshot)
    }
}

impl Contended {
    pub(super) fn new(level: Level) -> Contended {
        Contended { level, history: History::default(), durable_at: Vec::new() }
    }

    /// What was acknowledged is durable.
    pub(super) fn closed(&mut self) {
        self.durable_at.iter_mut().for_each(|(_, at)| *at = Duration::ZERO);
    }

    /// Whether what was read keeps to the level.
    pub(super) fn check(&self) -> Result<(), String> {
        self.history.check(self.level).map_err(|anomaly| format!("{:?}: {anomaly}", self.level))
    }

    /// Judges what is found after a power cut at `now`, and goes on from there.
    pub(super) fn judge(&mut self, found: &BTreeMap<Key, Value>, now: Duration) -> Result<(), String> {
        for (no, _) in self.durable_at.iter().filter(|(_, at)| *at <= now) {
            self.history.durable(*no);
        }
        self.history.stopped(found, 0..KEYS);
        self.check()?;
        (self.history, self.durable_at) = (History::beginning_with(found), Vec::new());
        Ok(())
    }
}

fn store_of(key: Key) -> usize {
    key as usize % STORES
}

fn name(key: Key) -> Vec<u8> {
    format!("{}{key:02}", char::from(LETTER)).into_bytes()
}

/// Which shared key it is, if it is one.
pub(super) fn key_no(store: usize, key: &[u8]) -> Option<Key> {
    (0..KEYS).find(|no| store_of(*no) == store && name(*no) == key)
}

/// The bytes of a value.
fn bytes(value: Value) -> Vec<u8> {
    let mut random = SplitMix64::new(value);
    let len = if random.below(2) == 0 { random.below(100) } else { 256 + random.below(1500) };
    let rest = (0..len).map(|_| random.next_u64() as u8);
    value.to_be_bytes().into_iter().chain(rest).collect()
}

/// The value that bytes are.
pub(super) fn value_no(found: &[u8]) -> Result<Value, String> {
    let value = found.first_chunk().map(|first| Value::from_be_bytes(*first));
    let whole = value.filter(|value| bytes(*value) == found);
    whole.ok_or_else(|| format!("{} bytes that nobody wrote under a shared key", found.len()))
}

/// Why a transaction goes no further.
enum Stop {
    Wrong(String),
    Failed(tanada_kv::Error),
}

impl From<tanada_kv::Error> for Stop {
    fn from(error: tanada_kv::Error) -> Stop {
        Stop::Failed(error)
    }
}

impl Teller {
    /// One who shares keys.
    pub(super) async fn contend(self, transactions: u64, mut random: SplitMix64) -> Result<(), String> {
        for _ in 0..transactions {
            self.world.sleep(Duration::from_micros(random.below(4000))).await;
            if !self.contended(&mut random).await? {
                break;
            }
        }
        Ok(())
    }

    /// A transaction; `false` if it failed, as it may.
    async fn contended(&self, random: &mut SplitMix64) -> Result<bool, String> {
        let (no, isolation) = {
            let contended = &mut self.model.borrow_mut().contended;
            let isolation = match contended.level {
                Level::Snapshot => Isolation::Snapshot,
                Level::Serializable => Isolation::Serializable,
            };
            (contended.history.begin(), isolation)
        };
        let mut transaction = self.database.begin(isolation);
        self.model.borrow_mut().contended.history.begun(no);
        for _ in 0..1 + random.below(5) {
            if random.below(2) == 0 {
                // Others have their turn in between.
                self.world.sleep(Duration::from_micros(random.below(2000))).await;
            }
            match self.contended_step(&mut transaction, no, random).await {
                Ok(()) => {}
                Err(Stop::Wrong(what)) => return Err(what),
                Err(Stop::Failed(_)) if self.expects_errors => {
                    self.model.borrow_mut().contended.history.aborted(no);
                    return Ok(false);
                }
                Err(Stop::Failed(error)) => return Err(format!("a transaction's read failed: {error}")),
            }
        }
        if random.below(10) == 0 {
            self.count("rolled back");
            transaction.rollback();
            self.model.borrow_mut().contended.history.aborted(no);
            return Ok(true);
        }
        let durability = if random.below(4) == 0 {
            Durability::Sync
        } else {
            Durability::Within(1 + random.below(60) as u16)
        };
        let options = WriteOptions { durability: Some(durability), ..WriteOptions::default() };
        self.model.borrow_mut().contended.history.committing(no);
        let committed = transaction.commit(&options).await;
        let at = self.world.now();
        let contended = &mut self.model.borrow_mut().contended;
        match committed {
            Ok(()) => {
                self.count("committed beside others");
                contended.history.committed(no);
                match durability {
                    Durability::Sync => contended.durable_at.push((no, at)),
                    // As for batches: a device that fails may take it with it.
                    Durability::Within(_) if self.expects_errors => {}
                    Durability::Within(ms) => {
                        contended.durable_at.push((no, at + Duration::from_millis(ms.into()) + SLACK));
                    }
                }
                Ok(true)
            }
            Err(error) if error.kind() == ErrorKind::Conflict => {
                self.count("conflict");
                contended.history.aborted(no);
                Ok(true)
            }
            // It may be there or not.
            Err(_) if self.expects_errors => Ok(false),
            Err(error) => Err(format!("a transaction failed: {error}")),
        }
    }

    async fn contended_step(
        &self,
        transaction: &mut Transaction,
        no: TransactionNo,
        random: &mut SplitMix64,
    ) -> Result<(), Stop> {
        let key = random.below(u64::from(KEYS)) as Key;
        let (store, name) = (&self.stores[store_of(key)], name(key));
        match random.below(8) {
            0 => {
                let mut cursor = transaction.cursor(store, CursorOptions::prefix(&[LETTER]));
                let mut found = BTreeMap::new();
                while let Some((key, value)) = cursor.next().await? {
                    found.insert(key.to_vec(), value_no(&value).map_err(Stop::Wrong)?);
                }
                let history = &mut self.model.borrow_mut().contended.history;
                for key in (0..KEYS).filter(|other| store_of(*other) == store_of(key)) {
                    history.read(no, key, found.get(&self::name(key)).copied());
                }
            }
            1..=3 => {
                let found = transaction.get(store, &name).await?;
                let value = found.map(|found| value_no(&found)).transpose().map_err(Stop::Wrong)?;
                self.model.borrow_mut().contended.history.read(no, key, value);
            }
            step => {
                let value = self.model.borrow_mut().contended.history.write(no, key);
                if step == 4 {
                    // What is written over was deleted just before, and ranges conflict as keys do.
                    transaction.delete_range(store, &name, Some(&[&name[..], &[0]].concat()));
                }
                transaction.put(store, &name, &bytes(value));
            }
        }
        Ok(())
    }
}
