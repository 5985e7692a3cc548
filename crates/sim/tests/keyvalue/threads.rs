//! Transactions of many threads on real files, and what their history keeps to; the database is opened anew in between,
//! and tables are written out and merged all the while.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use tanada_base::SplitMix64;
use tanada_io::{Device, DeviceOptions};
use tanada_kv::blocking::wait;
use tanada_kv::{
    CrashPoints, CursorOptions, Database, DatabaseSettings, Durability, ErrorKind, Isolation, OpenOptions,
    PlantedBug, Result, Snapshot, Store, StoreSettings, ThreadEnvironment, Transaction, WriteOptions,
};
use tanada_sim::history::{Anomaly, AnomalyKind, History, Key, Level, TransactionNo, Value};
use tanada_volume::{ClassSettings, Parts, Volume, VolumeSettings};

const THREADS: u64 = 6;
const KEYS: Key = 9;
const STORES: usize = 3;

type Shared = Arc<Mutex<History>>;

fn volume(folder: &std::path::Path) -> Volume {
    let options = DeviceOptions { create: true, ..DeviceOptions::default() };
    let device = |name: &str| Device::open(folder.join(name), &options).unwrap();
    let parts = Parts::new(device("metadata"))
        .with_class("fast", vec![device("fast")])
        .with_class("slow", vec![device("slow")]);
    let class = |name: &str| ClassSettings {
        name: name.to_owned(),
        size_bytes: 64 << 20,
        ..ClassSettings::default()
    };
    let settings = VolumeSettings {
        id: *b"16 random bytes!",
        chunk_bytes: 64 << 10,
        classes: vec![class("fast"), class("slow")],
        ..VolumeSettings::default()
    };
    wait(Volume::create(parts, &settings)).unwrap()
}

fn settings() -> DatabaseSettings {
    DatabaseSettings {
        memory_bytes: 2 << 20,
        memory_table_bytes: 64 << 10,
        log_segment_bytes: 1 << 20,
        log_group_bytes: 64 << 10,
        ..DatabaseSettings::default()
    }
}

fn name(key: Key) -> [u8; 4] {
    key.to_be_bytes()
}

/// Most values are long enough to be kept apart from their keys.
fn bytes(value: Value) -> Vec<u8> {
    value.to_be_bytes().repeat(1 + value as usize * 37 % 300)
}

fn value(found: &[u8]) -> Value {
    let value = Value::from_be_bytes(*found.first_chunk().unwrap());
    assert_eq!(found, bytes(value));
    value
}

fn store(stores: &[Store], key: Key) -> &Store {
    &stores[key as usize % STORES]
}

/// Reads all keys of a store with a cursor.
fn scan(
    transaction: &mut Transaction,
    stores: &[Store],
    key: Key,
    history: &Shared,
    no: TransactionNo,
) -> Result<()> {
    let mut cursor = transaction.cursor(store(stores, key), CursorOptions::default());
    let mut found = BTreeMap::new();
    while let Some((key, bytes)) = wait(cursor.next())? {
        found.insert(Key::from_be_bytes(key[..].try_into().unwrap()), value(&bytes));
    }
    let mut history = history.lock().unwrap();
    for key in (0..KEYS).filter(|other| other % STORES as Key == key % STORES as Key) {
        history.read(no, key, found.get(&key).copied());
    }
    Ok(())
}

fn transact(
    database: &Database,
    stores: &[Store],
    isolation: Isolation,
    history: &Shared,
    random: &mut SplitMix64,
) -> Result<()> {
    let no = history.lock().unwrap().begin();
    let mut transaction = database.begin(isolation);
    history.lock().unwrap().begun(no);
    for _ in 0..1 + random.below(5) {
        let key = random.below(u64::from(KEYS)) as Key;
        match random.below(8) {
            0 => scan(&mut transaction, stores, key, history, no)?,
            1..=4 => {
                let found = wait(transaction.get(store(stores, key), &name(key)))?;
                history.lock().unwrap().read(no, key, found.as_deref().map(value));
            }
            _ => {
                let value = history.lock().unwrap().write(no, key);
                transaction.put(store(stores, key), &name(key), &bytes(value));
            }
        }
        if random.below(3) == 0 {
            std::thread::yield_now();
        }
    }
    if random.below(10) == 0 {
        transaction.rollback();
        history.lock().unwrap().aborted(no);
        return Ok(());
    }
    let durability = if random.below(20) == 0 { Durability::Sync } else { Durability::Within(100) };
    history.lock().unwrap().committing(no);
    let options = WriteOptions { durability: Some(durability), ..WriteOptions::default() };
    let committed = wait(transaction.commit(&options));
    let mut history = history.lock().unwrap();
    match committed {
        Ok(()) => history.committed(no),
        Err(error) if error.kind() == ErrorKind::Conflict => history.aborted(no),
        Err(error) => return Err(error),
    }
    Ok(())
}

/// One who reads a snapshot without a transaction.
fn look_back(stores: &[Store], snapshot: &Snapshot, history: &Shared, no: TransactionNo) -> Result<()> {
    for key in 0..KEYS {
        let found = wait(store(stores, key).get_at(snapshot, &name(key)))?;
        history.lock().unwrap().read(no, key, found.as_deref().map(value));
    }
    history.lock().unwrap().aborted(no);
    Ok(())
}

/// Threads run transactions, in three openings of a database; the verdict on each, and its transactions and how many of
/// them were refused.
fn run(isolation: Isolation, level: Level, bug: PlantedBug, seed: u64) -> std::result::Result<(), Anomaly> {
    let folder = tempfile::tempdir().unwrap();
    let volume = volume(folder.path());
    let environment = ThreadEnvironment::new();
    let crash_points = CrashPoints::default().with_bug(bug);
    let settings = settings();
    let created =
        Database::create_with(&volume, "shop", &settings, crash_points.clone(), environment.clone());
    let mut database = wait(created).unwrap();
    for no in 0..STORES {
        wait(database.create_store(&no.to_string(), &StoreSettings::default())).unwrap();
    }
    let mut values: BTreeMap<Key, Value> = BTreeMap::new();
    for round in 0..3 {
        let stores: Vec<Store> =
            (0..STORES).map(|no| database.open_store(&no.to_string()).unwrap()).collect();
        let history: Shared = Arc::new(Mutex::new(History::beginning_with(&values)));
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (database, stores, history) = (&database, &stores, &history);
                let mut random = SplitMix64::new(seed * 1000 + round * 100 + thread);
                scope.spawn(move || {
                    for step in 0..40 {
                        transact(database, stores, isolation, history, &mut random).unwrap();
                        if step % 10 == thread {
                            let no = history.lock().unwrap().begin();
                            let snapshot = database.snapshot();
                            history.lock().unwrap().begun(no);
                            look_back(stores, &snapshot, history, no).unwrap();
                        }
                    }
                });
            }
            // Beside them the trees are merged, which no snapshot may notice.
            stores.iter().for_each(|store| wait(store.compact()).unwrap());
        });
        drop(stores);
        wait(database.close()).unwrap();
        drop(database);
        let options = OpenOptions { crash_points: crash_points.clone(), ..OpenOptions::default() };
        database = wait(Database::open(&volume, "shop", &options, environment.clone())).unwrap();
        values = BTreeMap::new();
        for key in 0..KEYS {
            let store = database.open_store(&(key as usize % STORES).to_string()).unwrap();
            if let Some(found) = wait(store.get(&name(key))).unwrap() {
                values.insert(key, value(&found));
            }
        }
        // What was closed is all there, as one more reader sees.
        let mut history = history.lock().unwrap().clone();
        (0..history.len()).for_each(|no| history.durable(no));
        history.stopped(&values, 0..KEYS);
        println!("{isolation:?}, {bug:?}: {} transactions", history.len());
        history.check(level)?;
    }
    wait(database.close()).unwrap();
    Ok(())
}

#[test]
fn transactions_of_many_threads_read_snapshots_and_lose_no_update() {
    for seed in 0..3 {
        run(Isolation::Snapshot, Level::Snapshot, PlantedBug::None, seed)
            .unwrap_or_else(|why| panic!("{why}"));
    }
}

#[test]
fn serializable_transactions_of_many_threads_are_as_if_one_came_after_another() {
    for seed in 0..3 {
        run(Isolation::Serializable, Level::Serializable, PlantedBug::None, seed)
            .unwrap_or_else(|why| panic!("{why}"));
    }
}

/// What makes the two above worth something: that threads meet.
#[test]
fn threads_meet_so_that_a_check_that_is_left_out_is_noticed() {
    let noticed = |isolation, level, bug| (0..20).find_map(|seed| run(isolation, level, bug, seed).err());
    let lost = noticed(Isolation::Snapshot, Level::Snapshot, PlantedBug::LeaveOutConflicts);
    assert_eq!(lost.map(|anomaly| anomaly.kind), Some(AnomalyKind::LostUpdate));
    let skewed = noticed(Isolation::Serializable, Level::Serializable, PlantedBug::ForgetReads);
    assert_eq!(skewed.map(|anomaly| anomaly.kind), Some(AnomalyKind::WriteSkew));
    // Snapshots do not promise that.
    let skewed = noticed(Isolation::Snapshot, Level::Serializable, PlantedBug::None);
    assert_eq!(skewed.map(|anomaly| anomaly.kind), Some(AnomalyKind::WriteSkew));
}
