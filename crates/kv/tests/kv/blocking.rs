//! The types whose calls wait.

use tanada_kv::blocking::Database;
use tanada_kv::{
    Batch, Compression, CursorOptions, DatabaseOverrides, Durability, ErrorKind, Isolation, OpenOptions,
    StoreOverrides, StoreSettings, WriteOptions,
};

use crate::volumes::Bench;

#[test]
fn a_thread_that_waits_needs_no_futures() {
    let bench = Bench::new();
    let environment = bench.environment.clone();
    let database = Database::create(&bench.volume, "test", &Bench::settings(), environment.clone()).unwrap();
    let store = database.create_store("lines", &StoreSettings::default()).unwrap();
    store.put(b"1", b"rice").unwrap();
    store.put_with(b"2", b"tea", &WriteOptions::sync()).unwrap();
    let snapshot = database.snapshot();
    let mut batch = Batch::new();
    batch.put(store.inner(), b"3", b"salt");
    batch.delete(store.inner(), b"1");
    database.write(batch, &WriteOptions::default()).unwrap();
    assert_eq!(store.get(b"1").unwrap(), None);
    assert_eq!(store.get_at(&snapshot, b"1").unwrap().as_deref(), Some(&b"rice"[..]));

    let keys: Vec<_> = store.cursor(CursorOptions::default()).map(|entry| entry.unwrap().0).collect();
    assert_eq!(keys, [&b"2"[..], &b"3"[..]]);
    let mut cursor = store.cursor(CursorOptions::default());
    cursor.seek_to_end().unwrap();
    assert_eq!(&*cursor.previous().unwrap().unwrap().1, b"salt");
    cursor.seek(b"2").unwrap();
    assert_eq!(&*cursor.next().unwrap().unwrap().1, b"tea");

    let mut transaction = database.begin(Isolation::Snapshot);
    transaction.put(&store, b"4", b"miso");
    assert_eq!(transaction.cursor(&store, CursorOptions::default()).count(), 3);
    store.put(b"4", b"first").unwrap();
    assert_eq!(transaction.commit(&WriteOptions::default()).unwrap_err().kind(), ErrorKind::Conflict);
    let longer = |old: Option<&bytes::Bytes>| Some([old.unwrap(), &b"!"[..]].concat().into());
    assert_eq!(store.update(b"4", longer, &WriteOptions::default()).unwrap().unwrap(), &b"first!"[..]);
    store.delete_range(b"2", Some(b"4")).unwrap();
    store.compact().unwrap();
    database.sync().unwrap();
    database.close().unwrap();

    let database = Database::open(&bench.volume, "test", &OpenOptions::default(), environment).unwrap();
    let store = database.open_store("lines").unwrap();
    assert_eq!(store.cursor(CursorOptions::default()).count(), 1);
    store.delete(b"4").unwrap();
    assert_eq!(store.get(b"4").unwrap(), None);
    database.drop_store("lines").unwrap();
    database.close().unwrap();
}

#[test]
fn a_thread_that_waits_does_all_that_there_is() {
    let bench = Bench::new();
    let environment = bench.environment.clone();
    let database = Database::create(&bench.volume, "test", &Bench::settings(), environment.clone()).unwrap();
    let store = database.create_store("lines", &StoreSettings::default()).unwrap();
    assert_eq!(
        (database.name(), store.name(), database.stores()),
        ("test", "lines", vec!["lines".to_owned()])
    );
    let mut load = store.bulk_load().unwrap();
    for no in 0..100u8 {
        load.put(&[no], &[no; 500]).unwrap();
    }
    assert_eq!(load.finish().unwrap(), 100 * 501);
    assert_eq!(database.statistics().since_opening.bytes_loaded, 100 * 501);
    store.delete_with(&[0], &WriteOptions::sync()).unwrap();

    let changes = StoreOverrides { compression: Some(Compression::Lz4), ..StoreOverrides::default() };
    store.set_settings(&changes).unwrap();
    assert_eq!(store.settings().compression, Compression::Lz4);
    let changes = DatabaseOverrides { durability: Some(Durability::Sync), ..DatabaseOverrides::default() };
    database.set_settings(&changes).unwrap();
    assert_eq!(database.settings().durability, Durability::Sync);

    let mut transaction = database.begin(Isolation::Snapshot);
    transaction.delete_prefix(&store, &[1]);
    let before = transaction.snapshot().clone();
    transaction.commit(&WriteOptions::default()).unwrap();
    assert_eq!(store.get(&[1]).unwrap(), None);
    assert!(store.get_at(&before, &[1]).unwrap().is_some());
    drop(before);

    database.drain_class("fast").unwrap();
    let fast = &database.statistics().classes[0];
    assert_eq!((fast.key_bytes, fast.segment_bytes), (0, 0));
    assert_eq!(database.check().unwrap().findings, Vec::<String>::new());
    database.checkpoint("copy").unwrap();
    database.close().unwrap();
    assert_eq!(Database::names(&bench.volume), ["copy", "test"]);
    Database::destroy(&bench.volume, "copy", environment).unwrap();
    assert_eq!(Database::names(&bench.volume), ["test"]);
}
