//! Tablespaces of real servers: every page of the samples, by both ways of reading, and what happens to damaged and
//! short files.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "fixtures/mod.rs"]
mod fixtures;

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tanada_innodb::page::page_type;
use tanada_innodb::{Environment, ErrorKind, PageCache, PageNo, Result, Server, Tablespace};
use tanada_io::{ExecutorOptions, Executors, Gate, GateLimits, IoContext, Method};

fn environment(cache_bytes: u64) -> Arc<Environment> {
    environment_that_verifies(cache_bytes, true)
}

fn environment_that_verifies(cache_bytes: u64, verify_checksums: bool) -> Arc<Environment> {
    let options = ExecutorOptions { threads: 2, method: Method::Threads, ..ExecutorOptions::default() };
    Arc::new(Environment::new(
        Executors::start(options).unwrap(),
        PageCache::new(cache_bytes),
        Method::Threads,
        verify_checksums,
    ))
}

fn context() -> IoContext {
    IoContext::new(Gate::new(GateLimits { ios: Some(64), bytes: 64 << 20 }))
}

/// Runs `test` on the space at `path`.
fn with_space<F, T>(
    path: &Path,
    cache_bytes: u64,
    test: impl FnOnce(Arc<Tablespace>, Arc<Environment>) -> F + Send + 'static,
) -> Result<T>
where
    F: Future<Output = T> + 'static,
    T: Send + 'static,
{
    let (environment, path) = (environment(cache_bytes), path.to_owned());
    let inside = environment.clone();
    let run = environment.executors.block_on(move || async move {
        let space = Tablespace::open(&path, &inside).await?;
        Ok(test(space, inside).await)
    });
    run.unwrap()
}

fn tablespaces_in(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.extension() {
            _ if path.is_dir() => found.extend(tablespaces_in(&path)),
            Some(extension) if extension == "ibd" => found.push(path),
            _ => {}
        }
    }
    found
}

/// A copy of a small table without page compression, and the folder that holds it.
fn copy_of_small(server: &str) -> (tempfile::TempDir, PathBuf) {
    let original = fixtures::unpacked("cases").join(server).join("c_dynamic/instant_add.ibd");
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("instant_add.ibd");
    std::fs::copy(original, &copy).unwrap();
    (folder, copy)
}

const SERVERS: [&str; 2] = ["mariadb-10.11", "mysql-9.7"];
const PAGE: usize = 16384;

#[test]
fn every_page_of_every_sample_reads_the_same_both_ways() {
    for server in SERVERS {
        for path in tablespaces_in(&fixtures::unpacked("cases").join(server)) {
            let name = path.display().to_string();
            let result = with_space(&path, 16 << 20, move |space, _| async move {
                let context = context();
                let mut trees = 0;
                for first in (0..space.pages()).step_by(16) {
                    let run = space.run(PageNo(first), 16.min(space.pages() - first), &context).await?;
                    for i in 0..run.pages() {
                        let page = run.page(i)?;
                        if i % 5 == 0 {
                            assert!(page.bytes() == space.page(PageNo(first + i), &context).await?.bytes());
                        }
                        assert_eq!((page.space(), page.number()), (space.id(), PageNo(first + i)));
                        trees += u32::from(matches!(page.page_type(), page_type::INDEX | page_type::INSTANT));
                    }
                }
                let roots = space.index_roots(&context).await?;
                assert!(
                    roots.is_sorted_by_key(|(_, id)| *id) && !roots.is_empty() && trees >= roots.len() as u32
                );
                let first_root = if space.server() == Server::MySql { 4 } else { 3 };
                assert_eq!(roots[0].0, PageNo(first_root));
                assert_eq!(space.sdi_root(), (space.server() == Server::MySql).then_some(PageNo(3)));
                assert_eq!(space.note(), None);
                Ok::<(), tanada_innodb::Error>(())
            });
            result.and_then(|read| read).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }
}

#[test]
fn the_roots_of_all_nine_indexes_are_found() {
    for server in SERVERS {
        let path = fixtures::unpacked("cases").join(server).join("c_dynamic/all_types.ibd");
        let roots = with_space(&path, 1 << 20, |space, _| async move { space.index_roots(&context()).await });
        assert_eq!(roots.unwrap().unwrap().len(), 9);
    }
}

#[test]
fn a_damaged_page_is_named_and_the_others_still_read() {
    for server in SERVERS {
        let (_folder, path) = copy_of_small(server);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[5 * PAGE + 9000] ^= 4;
        std::fs::write(&path, bytes).unwrap();
        let file = path.display().to_string();
        let checked = with_space(&path, 1 << 20, move |space, _| async move {
            let context = context();
            let error = space.page(PageNo(5), &context).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt);
            let place = format!("{file}: space {}, page 5: ", space.id());
            assert!(error.to_string().starts_with(&place), "{error}");
            let run = space.run(PageNo(4), 3, &context).await.unwrap();
            assert!(run.page(0).is_ok() && run.page(2).is_ok());
            assert_eq!(run.page(1).unwrap_err().to_string(), error.to_string());
            // Asked again, it is read again: an error is not cached.
            assert!(space.page(PageNo(5), &context).await.is_err());
            assert!(space.page(PageNo(6), &context).await.is_ok());
        });
        checked.unwrap();
    }
}

#[test]
fn a_page_in_the_wrong_place_is_noticed() {
    for server in SERVERS {
        let (_folder, path) = copy_of_small(server);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes.copy_within(4 * PAGE..5 * PAGE, 5 * PAGE);
        std::fs::write(&path, bytes).unwrap();
        let error = with_space(&path, 1 << 20, |space, _| async move {
            space.page(PageNo(5), &context()).await.map(|_| ())
        });
        let error = error.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.to_string().contains("is page 4 of space"), "{error}");
    }
}

#[test]
fn a_cut_file_only_lacks_what_was_cut() {
    let (_folder, path) = copy_of_small(SERVERS[0]);
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(6 * PAGE as u64 + 100).unwrap();
    let checked = with_space(&path, 1 << 20, |space, _| async move {
        let context = context();
        assert_eq!(space.pages(), 6);
        assert!(space.note().unwrap().contains("6 of 14 pages"));
        assert!(space.page(PageNo(5), &context).await.is_ok());
        for no in [6, 7, u32::MAX] {
            let error = space.page(PageNo(no), &context).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt);
            assert!(error.to_string().contains("past the end of the file"), "{error}");
        }
        let run = space.run(PageNo(4), 4, &context).await.unwrap();
        assert!(run.page(1).is_ok());
        assert_eq!(run.page(2).unwrap_err().kind(), ErrorKind::Corrupt);
        let behind = space.run(PageNo(u32::MAX - 1), 4, &context).await.unwrap();
        assert!((0..5).all(|i| behind.page(i).is_err()));
        assert_eq!(space.run(PageNo(0), 0, &context).await.unwrap_err().kind(), ErrorKind::InvalidInput);
        assert_eq!(
            space.run(PageNo(0), u32::MAX, &context).await.unwrap_err().kind(),
            ErrorKind::InvalidInput
        );
    });
    checked.unwrap();
}

#[test]
fn files_that_are_no_tablespaces_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.ibd");
    for (bytes, kind) in [
        (vec![], ErrorKind::Corrupt),
        (vec![0; 100], ErrorKind::Corrupt),
        (vec![0; PAGE], ErrorKind::Corrupt),
        (vec![b'x'; PAGE], ErrorKind::InvalidInput),
    ] {
        std::fs::write(&path, bytes).unwrap();
        let error = with_space(&path, 0, |_, _| async {}).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains("t.ibd"), "{error}");
    }
    let missing = with_space(&folder.path().join("none.ibd"), 0, |_, _| async {}).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
}

/// Other pages tell what the file is; page 0 itself is not believed.
#[test]
fn damaged_page_0_is_never_handed_out() {
    for server in SERVERS {
        let (_folder, path) = copy_of_small(server);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[200] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        let page_0 = with_space(&path, 0, |space, _| async move { space.page(PageNo(0), &context()).await });
        assert_eq!(page_0.unwrap().unwrap_err().kind(), ErrorKind::Corrupt);
        let only_page_0 = std::fs::read(&path).unwrap()[..PAGE].to_vec();
        std::fs::write(&path, only_page_0).unwrap();
        assert_eq!(with_space(&path, 0, |_, _| async {}).unwrap_err().kind(), ErrorKind::Corrupt);
    }
}

#[test]
fn requests_for_one_page_share_one_read() {
    let (_folder, path) = copy_of_small(SERVERS[1]);
    let checked = with_space(&path, 1 << 20, |space, environment| async move {
        let context = context();
        let tasks: Vec<_> = (0..64)
            .map(|no| {
                let (space, context) = (space.clone(), context.clone());
                let read =
                    move || async move { space.page(PageNo(5), &context).await.map(|page| page.number()) };
                environment.executors.spawn_on(no, read)
            })
            .collect();
        for task in tasks {
            assert_eq!(task.await.unwrap().unwrap(), PageNo(5));
        }
        let counters = environment.cache.counters();
        assert_eq!((counters.misses, counters.hits + counters.shared), (1, 63));
        let snapshot = context.counters().snapshot();
        assert_eq!((snapshot.ios, snapshot.cache_hits), (1, 63));
    });
    checked.unwrap();
}

#[test]
fn the_cache_keeps_within_its_bytes_and_can_be_emptied() {
    let path = fixtures::unpacked("cases").join("mysql-9.7/c_dynamic/all_types.ibd");
    let checked = with_space(&path, 1 << 20, |space, environment| async move {
        let context = context();
        let held = space.page(PageNo(4), &context).await.unwrap();
        for no in 0..200 {
            space.page(PageNo(no), &context).await.unwrap();
            assert!(environment.cache.counters().bytes <= 1 << 20);
        }
        let counters = environment.cache.counters();
        assert!(counters.evictions >= 200 - (1 << 20) / PAGE as u64, "{counters:?}");
        environment.cache.clear();
        assert_eq!(environment.cache.counters().bytes, 0);
        assert_eq!(held.bytes(), space.page(PageNo(4), &context).await.unwrap().bytes());
    });
    checked.unwrap();
}

#[test]
fn pages_used_again_survive_a_scan_through_the_cache() {
    let path = fixtures::unpacked("cases").join("mysql-9.7/c_dynamic/all_types.ibd");
    let checked = with_space(&path, 2 << 20, |space, environment| async move {
        let context = context();
        for _ in 0..4 {
            for no in 0..16 {
                space.page(PageNo(no), &context).await.unwrap();
            }
        }
        for no in 100..1000 {
            space.page(PageNo(no), &context).await.unwrap();
        }
        let before = environment.cache.counters().hits;
        for no in 0..16 {
            space.page(PageNo(no), &context).await.unwrap();
        }
        let kept = environment.cache.counters().hits - before;
        assert!(kept >= 12, "{kept} of 16");
    });
    checked.unwrap();
}

#[test]
fn two_openings_of_a_file_do_not_share_pages() {
    let (_folder, path) = copy_of_small(SERVERS[0]);
    let other = path.clone();
    let checked = with_space(&path, 1 << 20, |space, environment| async move {
        let context = context();
        let again = Tablespace::open(&other, &environment).await.unwrap();
        space.page(PageNo(3), &context).await.unwrap();
        assert!(again.cached_page(PageNo(3), &context).is_none());
        assert!(space.cached_page(PageNo(3), &context).is_some());
    });
    checked.unwrap();
}

/// Lists of INODE pages that lead nowhere, to other pages, or round in a circle, in pages that are not verified.
#[test]
fn hostile_inode_lists_end_with_an_error() {
    const FREE_LIST_FIRST: usize = 134 + 4;
    const NEXT: usize = 38 + 6;
    for server in SERVERS {
        for (at, page, what) in [
            (FREE_LIST_FIRST, 3u32, "is in the list of INODE pages"),
            (FREE_LIST_FIRST, 1_000_000, "past the end of the file"),
            (2 * PAGE + NEXT, 2, "comes back to it"),
        ] {
            let (_folder, path) = copy_of_small(server);
            let mut bytes = std::fs::read(&path).unwrap();
            bytes[at..at + 4].copy_from_slice(&page.to_be_bytes());
            std::fs::write(&path, bytes).unwrap();
            let environment = environment_that_verifies(1 << 20, false);
            let inside = environment.clone();
            let roots = environment.executors.block_on(move || async move {
                Tablespace::open(&path, &inside).await?.index_roots(&context()).await
            });
            let error = roots.unwrap().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt);
            assert!(error.to_string().contains(what), "{error}");
        }
    }
}
