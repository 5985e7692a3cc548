//! The modules in which threads meet without a common lock, built once more with loom's types, and run in every order
//! of two or three threads, with all values that the memory model lets a thread see. What else they share is behind
//! locks (docs/decisions/0007).

mod sync {
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

    /// parking_lot's interface.
    #[derive(Debug, Default)]
    pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn lock(&self) -> loom::sync::MutexGuard<'_, T> {
            self.0.lock().unwrap()
        }
    }

    /// parking_lot's interface.
    #[derive(Debug, Default)]
    pub(crate) struct RwLock<T>(loom::sync::RwLock<T>);

    impl<T> RwLock<T> {
        pub(crate) fn read(&self) -> loom::sync::RwLockReadGuard<'_, T> {
            self.0.read().unwrap()
        }

        pub(crate) fn write(&self) -> loom::sync::RwLockWriteGuard<'_, T> {
            self.0.write().unwrap()
        }
    }

    pub(crate) fn model(test: impl Fn() + Send + Sync + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.max_branches = 1_000_000;
        builder.check(test);
    }
}

#[allow(dead_code, reason = "the engine uses the other build")]
#[path = "memory/bits.rs"]
mod bits;
#[allow(dead_code, reason = "the engine uses the other build")]
#[path = "notify.rs"]
mod notify;
#[allow(dead_code, reason = "the engine uses the other build")]
#[path = "value/permits.rs"]
mod permits;
#[allow(dead_code, reason = "the engine uses the other build")]
#[path = "database/snapshot.rs"]
mod snapshot;
#[allow(dead_code, reason = "the engine uses the other build")]
#[path = "memory/tombstones.rs"]
mod tombstones;

use std::sync::Arc;

use bytes::Bytes;
use loom::thread;

use self::bits::KeyBits;
use self::notify::Notify;
use self::permits::Room;
use self::snapshot::Snapshots;
use self::sync::{AtomicBool, AtomicU64, Ordering, RwLock, model};
use self::tombstones::GrowingTombstones;
use crate::entry::{RangeTombstone, SequenceNo};
use crate::keyfile::KeyHash;
use crate::merge::Load;

/// A merge drops what nobody reads; whoever registers later reads at a number that is not smaller than the newest it
/// has kept.
#[test]
fn merges_keep_versions_of_every_concurrent_snapshot() {
    model(|| {
        let snapshots = Arc::new(Snapshots::default());
        let (for_writer, for_merge) = (snapshots.clone(), snapshots.clone());
        let writer = thread::spawn(move || (1..=2).for_each(|sequence| for_writer.publish(sequence)));
        let merge = thread::spawn(move || for_merge.to_keep());
        let snapshot = snapshots.take();
        let kept = merge.join().unwrap();
        let newest = *kept.numbers.last().unwrap();
        assert!(kept.numbers.contains(&snapshot.sequence()) || snapshot.sequence() >= newest, "{kept:?}");
        writer.join().unwrap();
    });
}

/// Whoever reads twice at a snapshot sees all of a load both times, or nothing, and a merge meanwhile knows who does
/// not.
#[test]
fn a_snapshot_sees_all_of_a_load_or_nothing() {
    model(|| {
        let load = Load { begin: 1, end: 2 };
        let (snapshots, has_load) = (Arc::new(Snapshots::default()), Arc::new(RwLock::<bool>::default()));
        snapshots.publish(load.begin);
        let (for_loader, tree) = (snapshots.clone(), has_load.clone());
        let loader = thread::spawn(move || {
            for_loader.note_load(load);
            let mut tree = tree.write();
            *tree = true;
            for_loader.publish(load.end);
        });
        let (for_merge, merged) = (snapshots.clone(), has_load.clone());
        let merge = thread::spawn(move || {
            let is_merged = *merged.read();
            (is_merged, for_merge.to_keep())
        });
        let snapshot = snapshots.take();
        let sees = || {
            let is_there = *has_load.read();
            is_there && snapshots.unseen_at(snapshot.sequence()).is_empty()
        };
        assert_eq!([sees(), sees()], [snapshot.sequence() == load.end; 2]);
        let (is_merged, readers) = merge.join().unwrap();
        let is_hidden_from = |number: &SequenceNo| *number < load.end;
        if is_merged && readers.numbers.iter().any(is_hidden_from) {
            assert_eq!(readers.loads, [load]);
        }
        loader.join().unwrap();
    });
}

/// What was inserted before a number was published is there for who reads the number.
#[test]
fn published_numbers_make_earlier_inserts_visible() {
    model(|| {
        let (snapshots, inserted) = (Arc::new(Snapshots::default()), Arc::new(AtomicU64::new(0)));
        let (for_writer, insert) = (snapshots.clone(), inserted.clone());
        let writer = thread::spawn(move || {
            for sequence in 1..=2 {
                insert.store(sequence, Ordering::Relaxed);
                for_writer.publish(sequence);
            }
        });
        let visible = snapshots.take().sequence();
        assert!(inserted.load(Ordering::Relaxed) >= visible);
        writer.join().unwrap();
    });
}

#[test]
fn published_numbers_make_their_range_deletes_visible() {
    model(|| {
        let (snapshots, tombstones) =
            (Arc::new(Snapshots::default()), Arc::new(GrowingTombstones::default()));
        let (for_writer, adds) = (snapshots.clone(), tombstones.clone());
        let writer = thread::spawn(move || {
            let tombstone = RangeTombstone { start: Bytes::from_static(b"a"), end: None, sequence: 1 };
            adds.add(tombstone);
            for_writer.publish(1);
        });
        let visible = snapshots.visible();
        let expected: Option<SequenceNo> = (visible == 1).then_some(1);
        assert_eq!(tombstones.newest_over(b"b", visible), expected);
        assert!(tombstones.sets().len() >= visible as usize);
        writer.join().unwrap();
    });
}

/// Writers take turns, and each key's bits may be those that another key has set already, all or one of them.
#[test]
fn published_numbers_make_their_key_bits_visible() {
    model(|| {
        let (snapshots, keys) = (Arc::new(Snapshots::default()), Arc::new(KeyBits::new(0)));
        let commit = Arc::new(self::sync::Mutex::<SequenceNo>::default());
        let hash = |sequence: SequenceNo| KeyHash::of(&(sequence % 2).to_be_bytes());
        let (for_writer, adds, turns) = (snapshots.clone(), keys.clone(), commit.clone());
        let write = move || {
            let mut last = turns.lock();
            *last += 1;
            adds.add(hash(*last));
            for_writer.publish(*last);
        };
        let other = thread::spawn(write.clone());
        let writer = thread::spawn(move || (0..2).for_each(|_| write()));
        let visible = snapshots.visible();
        assert!((1..=visible).all(|sequence| keys.may_have(hash(sequence))), "{visible}");
        writer.join().unwrap();
        other.join().unwrap();
    });
}

/// Who waits for space gets it when it is given back, and nobody takes more than there is.
#[test]
fn log_space_is_granted_once_and_every_waiter_is_woken() {
    model(|| {
        let (room, taken) = (Arc::new(Room::of(1)), Arc::new(AtomicU64::new(0)));
        let (others, others_taken) = (room.clone(), taken.clone());
        let passes = |room: &Room, taken: &AtomicU64| {
            loom::future::block_on(async {
                loop {
                    let more = room.more();
                    if room.take(1) {
                        break;
                    }
                    more.await;
                }
            });
            assert_eq!(taken.fetch_add(1, Ordering::AcqRel), 0);
            taken.fetch_sub(1, Ordering::AcqRel);
            room.give(1);
        };
        let other = thread::spawn(move || passes(&others, &others_taken));
        passes(&room, &taken);
        other.join().unwrap();
        assert!(room.take(1) && !room.take(1));
    });
}

/// Who looks after taking a notification, and awaits it then, misses none: it would wait for ever here.
#[test]
fn no_notification_is_missed() {
    model(|| {
        let (notify, is_done) = (Notify::default(), Arc::new(AtomicBool::new(false)));
        let (notifies, does) = (notify.clone(), is_done.clone());
        let other = thread::spawn(move || {
            does.store(true, Ordering::Release);
            notifies.notify();
        });
        loom::future::block_on(async {
            loop {
                let notified = notify.notified();
                if is_done.load(Ordering::Acquire) {
                    return;
                }
                notified.await;
            }
        });
        other.join().unwrap();
    });
}
