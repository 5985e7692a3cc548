//! A story told to a database: several writers, readers of what they wrote, snapshots; the engine's own jobs run beside them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use tanada_base::SplitMix64;
use tanada_kv::{
    Batch, CursorOptions, Database, Durability, Isolation, PolicyTemplate, Snapshot, Store, WriteOptions,
};

use super::model::{Change, Model, Progress, STORES, State, difference};
use crate::executor::World;

/// Names of the stores.
pub(super) const NAMES: [&str; STORES] = ["first", "second"];

/// Time beyond the bound until a write is durable: what the write and the sync of the log take.
pub(super) const SLACK: Duration = Duration::from_millis(50);

/// Keys that one writer uses.
const KEYS: u64 = 60;

/// What all tasks of a story share.
#[derive(Clone)]
pub(super) struct Teller {
    pub(super) world: World,
    pub(super) database: Database,
    pub(super) stores: [Store; STORES],
    pub(super) model: Rc<RefCell<Model>>,
    /// Devices may fail, so that any error is an answer.
    pub(super) expects_errors: bool,
    pub(super) operations: Rc<RefCell<BTreeMap<&'static str, u64>>>,
}

impl Teller {
    pub(super) fn count(&self, operation: &'static str) {
        *self.operations.borrow_mut().entry(operation).or_default() += 1;
    }

    /// One writer's part.
    pub(super) async fn write(self, no: usize, steps: u64, mut random: SplitMix64) -> Result<(), String> {
        let letter = self.model.borrow().writers[no].letter;
        for _ in 0..steps {
            match random.below(20) {
                0 => self.world.sleep(Duration::from_millis(random.below(200))).await,
                1..=3 => self.read(no, &mut random).await?,
                4 => self.walk(no, None, &mut random).await?,
                // What failed may be there or not, so nothing can be said of what follows.
                5 => {
                    if !self.look_back(no, letter, &mut random).await? {
                        return Ok(());
                    }
                }
                6 => self.change_policy(&mut random).await?,
                _ => {
                    if !self.batch(no, letter, &mut random).await? {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    /// Has everything that a store holds brought elsewhere.
    async fn change_policy(&self, random: &mut SplitMix64) -> Result<(), String> {
        self.count("policy");
        let templates =
            [PolicyTemplate::StagingOnly, PolicyTemplate::StagingMaxCapacity, PolicyTemplate::CapacityOnly];
        let policy = templates[random.below(templates.len() as u64) as usize].into();
        match self.stores[random.below(STORES as u64) as usize].set_policy(&policy).await {
            Err(error) if !self.expects_errors => Err(format!("a policy cannot be changed: {error}")),
            _ => Ok(()),
        }
    }

    /// Writes a batch; `false` if that failed, as it may.
    async fn batch(&self, no: usize, letter: u8, random: &mut SplitMix64) -> Result<bool, String> {
        let count = 1 + random.below(4);
        let changes = (0..count).map(|_| change(letter, random)).collect();
        let durability = match random.below(4) {
            0 => Durability::Sync,
            1 => Durability::Within(1 + random.below(20) as u16),
            _ => Durability::Within(100),
        };
        let asked_at = self.world.now();
        let (index, changes) = self.model.borrow_mut().writers[no].begin(changes, asked_at);
        let options = WriteOptions { durability: Some(durability), ..WriteOptions::default() };
        let written = if random.below(4) == 0 {
            self.count("transaction");
            self.transaction(&changes, &options).await
        } else {
            self.count("batch");
            self.database.write(self.as_batch(&changes), &options).await
        };
        let at = self.world.now();
        let mut model = self.model.borrow_mut();
        let progress = &mut model.writers[no].written[index].progress;
        match written {
            Ok(()) => {
                let durable_at = match durability {
                    Durability::Sync => at,
                    // A device that fails may take with it what was promised to be durable soon; writers are told so by their next write.
                    Durability::Within(_) if self.expects_errors => Duration::MAX,
                    Durability::Within(ms) => at + Duration::from_millis(ms.into()) + SLACK,
                };
                *progress = Progress::Acknowledged { at, durable_at };
                Ok(true)
            }
            Err(error) => {
                *progress = Progress::Failed;
                if self.expects_errors { Ok(false) } else { Err(format!("a write failed: {error}")) }
            }
        }
    }

    fn as_batch(&self, changes: &[Change]) -> Batch {
        let mut batch = Batch::new();
        for change in changes {
            match change {
                Change::Put(store, key, value) => batch.put(&self.stores[*store], key, value),
                Change::Delete(store, key) => batch.delete(&self.stores[*store], key),
                Change::DeleteRange(store, start, end) => {
                    batch.delete_range(&self.stores[*store], start, Some(end));
                }
            }
        }
        batch
    }

    async fn transaction(&self, changes: &[Change], options: &WriteOptions) -> tanada_kv::Result<()> {
        let mut transaction = self.database.begin(Isolation::Snapshot);
        for change in changes {
            match change {
                Change::Put(store, key, value) => transaction.put(&self.stores[*store], key, value),
                Change::Delete(store, key) => transaction.delete(&self.stores[*store], key),
                Change::DeleteRange(store, start, end) => {
                    transaction.delete_range(&self.stores[*store], start, Some(end));
                }
            }
        }
        transaction.commit(options).await
    }

    /// What this writer's batches make now. Between its own operations nobody else changes that.
    fn state(&self, no: usize) -> State {
        let model = self.model.borrow();
        model.writers[no].after(model.writers[no].written.len())
    }

    /// Gets one of the writer's keys.
    async fn read(&self, no: usize, random: &mut SplitMix64) -> Result<(), String> {
        self.count("get");
        let store = random.below(STORES as u64) as usize;
        let key = key(self.model.borrow().writers[no].letter, random);
        let expected = self.state(no)[store].get(&key).cloned();
        match self.stores[store].get(&key).await {
            Ok(found) if found.as_deref() == expected.as_deref() => Ok(()),
            Ok(found) => Err(format!(
                "store {store}: key {:?} gives {:?} bytes instead of {:?}",
                String::from_utf8_lossy(&key),
                found.map(|value| value.len()),
                expected.map(|value| value.len())
            )),
            Err(_) if self.expects_errors => Ok(()),
            Err(error) => Err(format!("a read failed: {error}")),
        }
    }

    /// Walks over all keys of the writer, in either direction.
    async fn walk(
        &self,
        no: usize,
        snapshot: Option<(&Snapshot, &State)>,
        random: &mut SplitMix64,
    ) -> Result<(), String> {
        self.count("walk");
        let store = random.below(STORES as u64) as usize;
        let letter = self.model.borrow().writers[no].letter;
        let expected = snapshot.map_or_else(|| self.state(no), |(_, state)| state.clone());
        let options = CursorOptions {
            snapshot: snapshot.map(|(snapshot, _)| snapshot.clone()),
            ..CursorOptions::prefix(&[letter])
        };
        let found = match walked(&self.stores[store], options, random.below(2) == 0).await {
            Ok(found) => found?,
            Err(_) if self.expects_errors => return Ok(()),
            Err(error) => return Err(format!("a cursor failed: {error}")),
        };
        match difference(&found, &expected[store]) {
            Some(what) => Err(format!("store {store}, walked over: {what}")),
            None => Ok(()),
        }
    }

    /// Takes a snapshot, lets time and others go on, and looks at it; `false` if a batch failed, as it may.
    async fn look_back(&self, no: usize, letter: u8, random: &mut SplitMix64) -> Result<bool, String> {
        self.count("snapshot");
        let (snapshot, state) = (self.database.snapshot(), self.state(no));
        for _ in 0..random.below(6) {
            if !self.batch(no, letter, random).await? {
                return Ok(false);
            }
        }
        self.walk(no, Some((&snapshot, &state)), random).await.map(|()| true)
    }
}

/// All that a cursor finds; an error in words if it goes the wrong way.
pub(super) async fn walked(
    store: &Store,
    options: CursorOptions,
    is_forward: bool,
) -> tanada_kv::Result<Result<BTreeMap<Vec<u8>, Vec<u8>>, String>> {
    let mut cursor = store.cursor(options);
    let mut found = BTreeMap::new();
    let mut last: Option<Vec<u8>> = None;
    if !is_forward {
        cursor.seek_to_end().await?;
    }
    loop {
        let next = if is_forward { cursor.next().await? } else { cursor.previous().await? };
        let Some((key, value)) = next else { return Ok(Ok(found)) };
        let is_in_order =
            last.as_ref().is_none_or(|last| if is_forward { **last < *key } else { **last > *key });
        if !is_in_order {
            return Ok(Err(format!("a cursor goes from {last:02x?} to {key:02x?}, forward: {is_forward}")));
        }
        last = Some(key.to_vec());
        found.insert(key.to_vec(), value.to_vec());
    }
}

/// All keys and values of all stores.
pub(super) async fn everything(stores: &[Store; STORES]) -> Result<State, String> {
    let mut state = State::default();
    for (found, store) in state.iter_mut().zip(stores) {
        let walked = walked(store, CursorOptions::default(), true).await;
        *found = walked.map_err(|error| format!("store {:?} cannot be read: {error}", store.name()))??;
        for (key, value) in &*found {
            let got = store
                .get(key)
                .await
                .map_err(|error| format!("a key of store {:?}: {error}", store.name()))?;
            if got.as_deref() != Some(&**value) {
                return Err(format!("key {key:02x?}: a cursor and a get do not give the same"));
            }
        }
    }
    Ok(state)
}

fn key(letter: u8, random: &mut SplitMix64) -> Vec<u8> {
    let no = random.below(KEYS);
    let mut key = format!("{}{no:03}", char::from(letter)).into_bytes();
    if no.is_multiple_of(17) {
        // Long ones, too.
        key.resize(300 + no as usize, b'.');
    }
    key
}

fn change(letter: u8, random: &mut SplitMix64) -> Change {
    let store = random.below(STORES as u64) as usize;
    match random.below(12) {
        0 => Change::Delete(store, key(letter, random)),
        1 => {
            let (from, to) = (random.below(KEYS), random.below(KEYS));
            let name = |no: u64| format!("{}{no:03}", char::from(letter)).into_bytes();
            Change::DeleteRange(store, name(from.min(to)), name(from.max(to)))
        }
        _ => {
            let len = match random.below(10) {
                0 => 0,
                1..=4 => random.below(200),
                5..=8 => 256 + random.below(2000),
                _ => 5000 + random.below(20_000),
            };
            let seed = random.next_u64();
            let byte = |at: u64| (seed.rotate_left((at % 64) as u32) ^ at.wrapping_mul(seed | 1)) as u8;
            Change::Put(store, key(letter, random), (0..len).map(byte).collect())
        }
    }
}
