//! A story told to a database: several writers, readers of what they wrote, who by chance lose patience, snapshots,
//! loads; the engine's own jobs run beside them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use futures::future::{Either, select};
use tanada_base::SplitMix64;
use tanada_kv::{
    Batch, BulkLoad, CursorOptions, Database, Durability, ErrorKind, Isolation, PolicyTemplate, Snapshot,
    Store, WriteOptions,
};

use super::model::{Change, Found, Keys, Model, Progress, STORES, State, difference};
use super::tuning::Settings;
use super::{brief, lodger};
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
    /// The first so many of them are written to.
    pub(super) store_count: usize,
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
            match random.below(40) {
                0 | 1 => self.world.sleep(Duration::from_millis(random.below(200))).await,
                2..=7 => self.read(no, &mut random).await?,
                8 | 9 => self.walk(no, None, &mut random).await?,
                // What failed may be there or not, so nothing can be said of what follows.
                10 | 11 => {
                    if !self.look_back(no, letter, &mut random).await? {
                        return Ok(());
                    }
                }
                12 | 13 => self.change_policy(&mut random).await?,
                14 => {
                    if !self.load(no, letter, &mut random).await? {
                        return Ok(());
                    }
                }
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
    pub(super) async fn batch(&self, no: usize, letter: u8, random: &mut SplitMix64) -> Result<bool, String> {
        let count = 1 + random.below(4);
        let changes = (0..count).map(|_| change(self.store(random), letter, random)).collect();
        let durability = match random.below(4) {
            0 => Durability::Sync,
            1 => Durability::Within(1 + random.below(20) as u16),
            _ => Durability::Within(100),
        };
        let asked_at = self.world.now();
        let (index, changes) = self.model.borrow_mut().writer_mut(no).begin(changes, asked_at);
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
        let progress = &mut model.writer_mut(no).written[index].progress;
        match written {
            Ok(()) => {
                let durable_at = match durability {
                    Durability::Sync => at,
                    // A device that fails may take with it what was promised to be durable soon; writers are told so by
                    // their next write.
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
        let writer = model.writer(no);
        writer.after(writer.written.len())
    }

    /// One of the stores that are written to.
    fn store(&self, random: &mut SplitMix64) -> usize {
        random.below(self.store_count as u64) as usize
    }

    /// Loads some of the writer's keys into the first store, in order, as one batch; `false` if that failed, as it may.
    /// By chance it is given up.
    pub(super) async fn load(&self, no: usize, letter: u8, random: &mut SplitMix64) -> Result<bool, String> {
        let (earlier, before, asked_at) = (self.database.snapshot(), self.state(no), self.world.now());
        let mut load = match self.stores[0].bulk_load().await {
            Ok(load) => load,
            Err(error) if error.kind() == ErrorKind::Conflict => {
                self.count("load without a moment to begin");
                return Ok(true);
            }
            Err(_) if self.expects_errors => return Ok(true),
            Err(error) => return Err(format!("a load cannot begin: {error}")),
        };
        let since = self.database.snapshot();
        let mut pairs: Keys = (0..random.below(30)).map(|_| (key(letter, random), value(random))).collect();
        let changes = pairs.iter().map(|(key, value)| Change::Put(0, key.clone(), value.clone())).collect();
        {
            let model = self.model.borrow();
            pairs.insert(model.writer(no).counter(), model.writer(no).next_count());
        }
        match self.fill(&mut load, &pairs, random).await {
            Ok(()) => {}
            Err(_) if self.expects_errors => return Ok(true),
            Err(error) => return Err(format!("a load failed: {error}")),
        }
        // Nothing of it is there yet.
        self.read(no, random).await?;
        if random.below(5) == 0 {
            self.count("load given up");
            drop(load);
            self.walk(no, None, random).await?;
            return Ok(true);
        }
        self.count("load");
        let (index, _) = self.model.borrow_mut().writer_mut(no).begin(changes, asked_at);
        let loaded = load.finish().await;
        let at = self.world.now();
        {
            let mut model = self.model.borrow_mut();
            let progress = &mut model.writer_mut(no).written[index].progress;
            match loaded {
                Ok(_) => *progress = Progress::Acknowledged { at, durable_at: at },
                Err(error) => {
                    *progress = Progress::Failed;
                    let failed = Err(format!("a load cannot end: {error}"));
                    return if self.expects_errors { Ok(false) } else { failed };
                }
            }
        }
        let (after, loaded) = (self.database.snapshot(), self.state(no));
        for (snapshot, state) in [(&earlier, &before), (&since, &before), (&after, &loaded)] {
            self.walk(no, Some((snapshot, state)), random).await?;
        }
        // By chance once more when jobs have been at it.
        let batches = random.below(6).saturating_sub(2);
        for _ in 0..batches {
            if !self.batch(no, letter, random).await? {
                return Ok(false);
            }
        }
        if batches > 0 {
            self.walk(no, Some((&since, &before)), random).await?;
        }
        Ok(true)
    }

    /// Puts into a load, while others go on.
    async fn fill(
        &self,
        load: &mut BulkLoad,
        pairs: &Keys,
        random: &mut SplitMix64,
    ) -> tanada_kv::Result<()> {
        for (key, value) in pairs {
            if random.below(8) == 0 {
                self.world.sleep(Duration::from_micros(random.below(5000))).await;
            }
            load.put(key, value).await?;
        }
        Ok(())
    }

    /// Gets a key; by chance beside another look-up of it that is dropped on its way.
    async fn get(
        &self,
        store: &Store,
        key: &[u8],
        random: &mut SplitMix64,
    ) -> tanada_kv::Result<Option<Vec<u8>>> {
        let owned = |found: tanada_kv::Result<Option<_>>| Ok(found?.map(Vec::from));
        if random.below(3) > 0 {
            return owned(store.get(key).await);
        }
        let (mut dropped, mut kept) = (Box::pin(store.get(key)), Box::pin(store.get(key)));
        let patience = Box::pin(self.world.sleep(Duration::from_micros(random.below(150))));
        match select(select(&mut dropped, &mut kept), patience).await {
            Either::Left((Either::Left((found, _)) | Either::Right((found, _)), _)) => owned(found),
            Either::Right(_) => {
                self.count("get dropped");
                drop(dropped);
                owned(kept.await)
            }
        }
    }

    /// Gets one of the writer's keys.
    pub(super) async fn read(&self, no: usize, random: &mut SplitMix64) -> Result<(), String> {
        self.count("get");
        let store = self.store(random);
        let key = key(self.model.borrow().writer(no).letter, random);
        let expected = self.state(no)[store].get(&key).cloned();
        match self.get(&self.stores[store], &key, random).await {
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
        let store = self.store(random);
        let letter = self.model.borrow().writer(no).letter;
        let expected = snapshot.map_or_else(|| self.state(no), |(_, state)| state.clone());
        let step_is_known = random.below(2) == 0;
        let options = CursorOptions {
            snapshot: snapshot.map(|(snapshot, _)| snapshot.clone()),
            expected_keys: if step_is_known { 20 } else { 0 },
            ..CursorOptions::prefix(&[letter])
        };
        let is_forward = random.below(2) == 0;
        let mut impatience = |step: u64| {
            let micros = (random.below(10) == 0).then(|| random.below(300 + step))?;
            Some(self.world.sleep(Duration::from_micros(micros)))
        };
        let found = match walked(&self.stores[store], options, is_forward, &mut impatience).await {
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
    pub(super) async fn look_back(
        &self,
        no: usize,
        letter: u8,
        random: &mut SplitMix64,
    ) -> Result<bool, String> {
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

/// Walks without losing patience.
pub(super) fn patient() -> impl FnMut(u64) -> Option<std::future::Ready<()>> {
    |_| None
}

/// All that a cursor finds; an error in words if it goes the wrong way. A step for which `impatience` gives a time is
/// dropped when that is over, and asked for again.
pub(super) async fn walked<P: Future<Output = ()>>(
    store: &Store,
    options: CursorOptions,
    is_forward: bool,
    impatience: &mut impl FnMut(u64) -> Option<P>,
) -> tanada_kv::Result<Result<Keys, String>> {
    let mut cursor = store.cursor(options);
    let mut found = BTreeMap::new();
    let mut last: Option<Vec<u8>> = None;
    if !is_forward {
        cursor.seek_to_end().await?;
    }
    for no in 0.. {
        let step = async { if is_forward { cursor.next().await } else { cursor.previous().await } };
        let next = match impatience(no) {
            Some(time) => match select(Box::pin(step), Box::pin(time)).await {
                Either::Left((next, _)) => next?,
                Either::Right(_) => continue,
            },
            None => step.await?,
        };
        let Some((key, value)) = next else { break };
        let is_in_order =
            last.as_ref().is_none_or(|last| if is_forward { **last < *key } else { **last > *key });
        if !is_in_order {
            return Ok(Err(format!("a cursor goes from {last:02x?} to {key:02x?}, forward: {is_forward}")));
        }
        last = Some(key.to_vec());
        found.insert(key.to_vec(), value.to_vec());
    }
    Ok(Ok(found))
}

/// All keys and values of all stores. `wall_time_s` looks at the clock on the wall.
pub(super) async fn everything(
    database: &Database,
    stores: &[Store; STORES],
    wall_time_s: impl Fn() -> u64,
) -> Result<Found, String> {
    let mut found = Found { settings: Some(Settings::of(database, stores)), ..Found::default() };
    for (keys, store) in found.stores.iter_mut().zip(stores) {
        *keys = all_of(store).await?;
    }
    match database.open_store(lodger::NAME) {
        Ok(store) => found.lodger = Some(all_of(&store).await?),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(format!("store {:?} cannot be opened: {error}", lodger::NAME)),
    }
    if let Ok(store) = database.open_store(brief::NAME) {
        let began = wall_time_s();
        let walked = walked(&store, CursorOptions::default(), true, &mut patient()).await;
        let keys = walked.map_err(|error| format!("store {:?} cannot be read: {error}", brief::NAME))??;
        found.brief = Some((keys, began..=wall_time_s()));
    }
    Ok(found)
}

async fn all_of(store: &Store) -> Result<Keys, String> {
    let walked = walked(store, CursorOptions::default(), true, &mut patient()).await;
    let found = walked.map_err(|error| format!("store {:?} cannot be read: {error}", store.name()))??;
    for (key, value) in &found {
        let got =
            store.get(key).await.map_err(|error| format!("a key of store {:?}: {error}", store.name()))?;
        if got.as_deref() != Some(&**value) {
            return Err(format!("key {key:02x?}: a cursor and a get do not give the same"));
        }
    }
    Ok(found)
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

pub(super) fn value(random: &mut SplitMix64) -> Vec<u8> {
    let len = match random.below(10) {
        0 => 0,
        1..=4 => random.below(200),
        5..=8 => 256 + random.below(2000),
        _ => 5000 + random.below(20_000),
    };
    let seed = random.next_u64();
    let byte = |at: u64| (seed.rotate_left((at % 64) as u32) ^ at.wrapping_mul(seed | 1)) as u8;
    (0..len).map(byte).collect()
}

fn change(store: usize, letter: u8, random: &mut SplitMix64) -> Change {
    match random.below(12) {
        0 => Change::Delete(store, key(letter, random)),
        1 => {
            let (from, to) = (random.below(KEYS), random.below(KEYS));
            let name = |no: u64| format!("{}{no:03}", char::from(letter)).into_bytes();
            Change::DeleteRange(store, name(from.min(to)), name(from.max(to)))
        }
        _ => Change::Put(store, key(letter, random), value(random)),
    }
}
