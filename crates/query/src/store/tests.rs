//! The store over folders: what is written is read back, nothing is left of what failed, changes are noticed.

use std::sync::Arc;

use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutPayload};
use tanada_io::{ExecutorOptions, Executors, Method};

use super::{FileStore, Folders};
use crate::ErrorKind;

fn store(method: Method) -> FileStore {
    let options = ExecutorOptions { threads: 2, method, ..ExecutorOptions::default() };
    FileStore::unwatched(Arc::new(Folders), Executors::start(options).unwrap())
}

fn names(folder: &std::path::Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn ranges_are_the_bytes_that_were_written() {
    let bytes: Vec<u8> = (0..5_000_123u32).map(|no| (no * 7 + no / 251) as u8).collect();
    for method in [Method::Uring, Method::Aio, Method::Threads, Method::Buffered] {
        let folder = tempfile::tempdir().unwrap();
        let store = store(method);
        let location = Path::parse(Folders::name(&folder.path().join("a b%.bin")).unwrap()).unwrap();
        let mut upload = store.put_multipart(&location).await.unwrap();
        let parts = [&bytes[..3_000_000], &bytes[3_000_000..3_000_001], &bytes[3_000_001..]];
        let parts: Vec<_> =
            parts.map(|part| upload.put_part(PutPayload::from(part.to_vec()))).into_iter().rev().collect();
        assert!(names(folder.path()).iter().all(|name| name.ends_with(".tanada-tmp")));
        for part in parts {
            part.await.unwrap();
        }
        upload.complete().await.unwrap();
        assert_eq!(names(folder.path()), ["a b%.bin"]);
        let ranges = [0..10u64, 4_999_000..5_000_123, 20..1_100_000, 20..20, 2_097_150..2_097_154];
        let found = store.get_ranges(&location, &ranges).await.unwrap();
        for (range, found) in ranges.iter().zip(&found) {
            assert!(bytes[range.start as usize..range.end as usize] == found[..], "{range:?} {method:?}");
        }
        assert_eq!(store.get(&location).await.unwrap().bytes().await.unwrap().len(), bytes.len());
        let error = store.get_ranges(&location, &[0..5_000_124, 0..1]).await.unwrap_err().to_string();
        assert!(error.contains("ends before byte 5000124"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn uploads_that_are_dropped_leave_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(Method::Uring);
    let name = Folders::name(&folder.path().join("x")).unwrap();
    let mut upload = store.create(&name, false).await.unwrap();
    upload.append(&vec![1; 3 << 20]).await.unwrap();
    drop(upload);
    assert!(names(folder.path()).is_empty());
    let mut parts = store.put_multipart(&Path::parse(&name).unwrap()).await.unwrap();
    let (first, second) = (parts.put_part("a".into()), parts.put_part("b".into()));
    second.await.unwrap();
    assert!(parts.complete().await.is_err());
    drop(first);
    assert!(names(folder.path()).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_replaced_only_where_that_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(Method::Threads);
    let path = folder.path().join("x");
    let name = Folders::name(&path).unwrap();
    let early = store.create(&name, false).await.unwrap();
    std::fs::write(&path, "old").unwrap();
    let error = early.commit().await.unwrap_err();
    assert!(error.to_string().contains("exists already"), "{error}");
    assert_eq!(store.create(&name, false).await.unwrap_err().kind(), ErrorKind::InvalidInput);
    let location = Path::parse(&name).unwrap();
    let refused = store.put_opts(&location, "new".into(), PutMode::Create.into()).await;
    assert!(matches!(refused, Err(object_store::Error::AlreadyExists { .. })));
    assert_eq!(std::fs::read(&path).unwrap(), b"old");
    store.put(&location, "new".into()).await.unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"new");
    assert_eq!(names(folder.path()), ["x"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_changes_while_it_is_open_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(Method::Uring);
    let path = folder.path().join("x");
    std::fs::write(&path, vec![1; 10_000]).unwrap();
    let name = Folders::name(&path).unwrap();
    assert_eq!(store.read_range(&name, 5..7).await.unwrap(), vec![1, 1]);
    // Another file of that name does not matter to whoever has this one open.
    std::fs::write(folder.path().join("y"), vec![2; 10_000]).unwrap();
    std::fs::rename(folder.path().join("y"), &path).unwrap();
    assert_eq!(store.read_range(&name, 5..7).await.unwrap(), vec![1, 1]);
    let store = store.clone().through(store.io.clone());
    let other = FileStore::unwatched(Arc::new(Folders), Arc::clone(store.executors()));
    assert_eq!(other.read_range(&name, 5..7).await.unwrap(), vec![2, 2]);
    std::fs::write(&path, vec![3; 10_001]).unwrap();
    let error = other.read_range(&name, 5..7).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Data);
    assert!(error.to_string().contains("has changed while it was read"), "{error}");
}
