//! What the cache keeps, and what it gives up.

use futures::executor::block_on;

use super::*;
use crate::entry::SequenceNo;

async fn put(cache: &Cache, rank: Rank, owner: Owner, position: u64, len: usize) {
    let load = Box::pin(async { Ok(Cached::Page(Arc::new(Page::blank(len)))) });
    cache.get_or_load(rank, CacheKey { owner, position }, load).await.unwrap();
}

#[test]
fn the_cache_keeps_its_budget_and_its_upper_rank() {
    block_on(async {
        let cache = Cache::new(1 << 20);
        let owner = Owner::next(&cache);
        for position in 0..2000 {
            put(&cache, Rank::Lower, owner, position, 4096).await;
        }
        let before = cache.counters();
        assert!(before.lower_bytes > 900 << 10, "{before:?}");
        for position in 0..80 {
            put(&cache, Rank::Upper, owner, position, 4096).await;
        }
        for position in 0..2000 {
            put(&cache, Rank::Lower, owner, position, 4096).await;
        }
        let after = cache.counters();
        assert!(after.upper_bytes + after.lower_bytes <= (1 << 20) + (8 << 10), "{after:?}");
        assert!(after.upper_bytes >= 60 * 4096, "{after:?}");
    });
}

#[test]
fn lent_cache_memory_is_returned() {
    block_on(async {
        let cache = Cache::new(1 << 20);
        let owner = Owner::next(&cache);
        let fill = async |rank| {
            for position in 0..1000 {
                put(&cache, rank, owner, position, 4096).await;
            }
            cache.counters()
        };
        fill(Rank::Upper).await;
        cache.lend(768 << 10).await;
        let lent = fill(Rank::Lower).await;
        assert!(lent.upper_bytes + lent.lower_bytes <= (256 << 10) + (8 << 10), "{lent:?}");
        assert!(lent.lower_bytes > 64 << 10, "{lent:?}");
        cache.lend(0).await;
        let back = fill(Rank::Lower).await;
        assert!(back.upper_bytes + back.lower_bytes > 900 << 10, "{back:?}");
    });
}

#[test]
fn threads_that_load_hold_some_of_it_back() {
    let cache = Cache::new(64 << 20);
    let owner = Owner::next(&cache);
    let load = |position: u64| {
        let key = position.to_be_bytes();
        let id = id(owner, 1, &key);
        block_on(cache.load_value(&id, 3, Box::pin(async { Ok(Bytes::from_static(b"yes")) }))).unwrap();
        cache.budget_bytes()
    };
    assert_eq!(cache.budget_bytes(), 64 << 20);
    load(0);
    let gate = std::sync::Barrier::new(16);
    std::thread::scope(|scope| {
        let one = |no| (load(no), gate.wait()).0;
        let threads: Vec<_> = (0..16).map(|no| scope.spawn(move || one(no))).collect();
        let least = threads.into_iter().map(|thread| thread.join().unwrap()).min();
        assert!(least.is_some_and(|least| least < 61 << 20), "{least:?}");
    });
    assert!(load(200) > 63 << 20, "they have ended");
    block_on(cache.lend(1 << 40));
    assert_eq!(cache.budget_bytes(), 8 << 20, "an eighth is left");
}

#[test]
fn a_failed_load_is_tried_again() {
    block_on(async {
        let cache = Cache::new(1 << 20);
        let id = id(Owner::next(&cache), 3, b"key");
        let failing = Box::pin(async { Err(crate::Error::corrupted("no")) });
        assert!(cache.load_value(&id, 3, failing).await.is_err());
        let good = Box::pin(async { Ok(Bytes::from_static(b"yes")) });
        assert_eq!(cache.load_value(&id, 3, good).await.unwrap(), "yes");
        assert_eq!(cache.value(&id).unwrap(), "yes");
    });
}

fn id(store: Owner, sequence: SequenceNo, key: &[u8]) -> VersionId<'_> {
    VersionId::new(store, key, sequence)
}

#[test]
fn values_of_different_keys_and_versions_are_distinguished() {
    block_on(async {
        let cache = Cache::new(1 << 20);
        let (one, other) = (Owner::next(&cache), Owner::next(&cache));
        let mine = id(one, 3, b"key");
        let read = async |id: &VersionId<'_>, value: &'static str| match cache.value(id) {
            Some(value) => value,
            None => cache.load_value(id, 5, Box::pin(async { Ok(value.into()) })).await.unwrap(),
        };
        assert_eq!(read(&mine, "first").await, "first");
        assert_eq!(read(&mine, "not asked for").await, "first");
        let newer = id(one, 4, b"key");
        assert!(cache.has_older(&newer) && !cache.has_older(&mine));
        assert_eq!(read(&newer, "newer").await, "newer");
        assert_eq!(read(&mine, "older").await, "older");
        assert_eq!(read(&newer, "not asked for").await, "newer");
        cache.keep_value(&mine, b"older");
        assert_eq!(cache.value(&newer).unwrap(), "newer");
        assert_eq!(read(&id(other, 3, b"key"), "other store").await, "other store");
        // Its hash is another key's; it may be of the same batch.
        for sequence in [3, 4] {
            let twin = VersionId { key: b"twin", sequence, ..newer };
            assert_eq!(read(&twin, "twin").await, "twin");
            assert!(cache.value(&twin).is_none() || cache.value(&newer).is_none());
        }
        assert_eq!(read(&newer, "newer").await, "newer");
        // Nothing is cut off: an empty key, and one that a value ends with.
        assert_eq!(read(&id(one, 5, b""), "").await, "");
        assert_eq!(read(&id(one, 6, b"key"), "key").await, "key");
    });
}

#[test]
fn pages_of_deleted_files_are_evicted() {
    block_on(async {
        let cache = Cache::new(1 << 20);
        let (gone, stays) = (Owner::next(&cache), Owner::next(&cache));
        for owner in [gone, stays] {
            for position in 0..20 {
                let rank = if position == 7 { Rank::Upper } else { Rank::Lower };
                let key = CacheKey { owner, position };
                let page = Cached::Page(Arc::new(Page::blank(4096)));
                cache.get_or_load(rank, key, Box::pin(async { Ok(page) })).await.unwrap();
            }
        }
        let all = cache.counters();
        cache.file_is_gone(gone, 20);
        assert_eq!(cache.counters(), all, "that takes time");
        cache.forget_gone().await;
        let left = cache.counters();
        assert_eq!((left.lower_bytes * 2, left.upper_bytes * 2), (all.lower_bytes, all.upper_bytes));
        assert!(cache.get(Rank::Lower, &CacheKey { owner: stays, position: 3 }).is_some());
        assert!(cache.get(Rank::Lower, &CacheKey { owner: gone, position: 3 }).is_none());
    });
}

#[test]
fn large_values_are_not_held() {
    block_on(async {
        let cache = Cache::new(1 << 20);
        let id = id(Owner::next(&cache), 3, b"key");
        let large = vec![7; 8 << 10];
        let load = Box::pin(async { Ok(large.clone().into()) });
        let read = cache.load_value(&id, large.len(), load).await;
        assert_eq!(read.unwrap(), large);
        cache.keep_value(&id, &large);
        assert_eq!(cache.value(&id), None);
        // A key takes space as well.
        let key = vec![7; 8 << 10];
        let long = VersionId { key: &key, ..id };
        cache.keep_value(&long, b"value");
        assert_eq!(cache.value(&long), None);
    });
}

#[test]
fn a_loader_of_another_version_loads_its_own_value() {
    let cache = Cache::new(1 << 20);
    let owner = Owner::next(&cache);
    let (one, other) = (id(owner, 3, b"key"), id(owner, 4, b"key"));
    let twin = VersionId { key: b"twin", ..one };
    let load = |id, value: &'static str| {
        let load = Box::pin(async move {
            yield_now().await;
            Ok(value.into())
        });
        cache.load_value(id, 5, load)
    };
    let all = async { futures::join!(load(&one, "three"), load(&other, "four"), load(&twin, "twin")) };
    let (three, four, of_twin) = block_on(all);
    assert_eq!(
        (three.unwrap(), four.unwrap(), of_twin.unwrap()),
        ("three".into(), "four".into(), "twin".into())
    );
}

#[test]
fn leaves_and_values_share_without_exceeding_the_budget() {
    block_on(async {
        let budget = 512 << 20;
        let cache = Cache::new(budget);
        let owner = Owner::next(&cache);
        let (value, mut most) = (vec![7; 15_000], 0);
        let mut look = || {
            let held = cache.counters();
            most = most.max(held.upper_bytes + held.lower_bytes);
            assert!(most <= budget + budget / 32, "{most}");
            cache.values.bytes()
        };
        for no in 0..40_000u64 {
            cache.keep_value(&id(owner, 1, &no.to_be_bytes()), &value);
            assert!(no % 100 > 0 || look() <= budget);
        }
        assert!(look() > budget / 10 * 9, "pages need nothing");
        // Of pages that nobody writes to the system has none.
        for no in 0..5000 {
            put(&cache, Rank::Lower, owner, no, 200 << 10).await;
            look();
        }
        let left = look();
        assert!((budget / 5..budget / 3).contains(&left), "{left}");
        for no in 0..40_000u64 {
            cache.keep_value(&id(owner, 2, &no.to_be_bytes()), &value);
            assert!(no % 100 > 0 || look() <= budget / 3);
        }
    });
}
