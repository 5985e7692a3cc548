//! Cleaners: a write ends when its pages are in memory, a sync waits for what it covers, and an error of a cleaner is
//! never lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use futures::executor::block_on;
use parking_lot::Mutex;
use tanada_base::SplitMix64;
use tanada_io::{Completion, Device, Operation, Request, Ticket};
use tanada_volume::{
    Attributes, CleanerWork, Cleaners, ErrorKind, Object, PageStatistics, Parts, SpawnCleaner, Volume,
};

use crate::between::{Between, interpose};
use crate::pages::{compressed, text};
use crate::{CHUNK, Place};

const PAGE: u64 = 16 << 10;

/// Runs each cleaner on a thread of its own.
#[derive(Debug)]
struct OnThreads;

impl SpawnCleaner for OnThreads {
    fn spawn(&self, work: CleanerWork) {
        std::thread::spawn(move || block_on(work));
    }
}

pub(crate) fn cleaners_on_threads(memory_bytes: u64) -> Cleaners {
    Cleaners { count: 2, memory_bytes, spawn: Arc::new(OnThreads) }
}

/// Keeps cleaners until the test lets them run.
#[derive(Debug, Default)]
struct Waiting {
    work: Mutex<Vec<Held>>,
}

struct Held(CleanerWork);

impl std::fmt::Debug for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Held")
    }
}

impl SpawnCleaner for Waiting {
    fn spawn(&self, work: CleanerWork) {
        self.work.lock().push(Held(work));
    }
}

impl Waiting {
    async fn run(&self) {
        while let Some(Held(work)) = { self.work.lock().pop() } {
            work.await;
        }
    }

    fn parts(self: &Arc<Self>, place: &Place, memory_bytes: u64) -> Parts {
        let cleaners = Cleaners { count: 1, memory_bytes, spawn: self.clone() };
        Parts { cleaners: Some(cleaners), ..place.parts() }
    }
}

async fn make(place: &Place, waiting: &Arc<Waiting>, memory_bytes: u64) -> (Volume, Object) {
    let volume = Volume::create(waiting.parts(place, memory_bytes), &place.settings(64)).await.unwrap();
    let object = volume.create_object("a", &compressed("lz4")).unwrap();
    (volume, object)
}

fn pages(object: &Object) -> PageStatistics {
    object.page_statistics().unwrap()
}

#[test]
fn a_write_ends_before_its_pages_are_stored_and_reads_see_them() {
    let (place, waiting) = (Place::new(&[("only", 1)]), Arc::new(Waiting::default()));
    block_on(async {
        let (volume, object) = make(&place, &waiting, 16 * PAGE).await;
        let mut data = text(8 * PAGE as usize, 1);
        object.write_bytes(0, &data).await.unwrap();
        data[100..200].fill(7);
        object.write_bytes(100, &[7; 100]).await.unwrap();
        let before = pages(&object);
        assert_eq!((before.dirty, before.stored_bytes, before.holes), (8, 0, 0));
        assert_eq!(volume.dirty_bytes(), 8 * PAGE);
        assert!(object.read_bytes(0, data.len()).await.unwrap() == data);
        assert_eq!((object.next_data(0), object.next_hole(0)), (Some(0), 8 * PAGE));

        waiting.run().await;
        let after = pages(&object);
        assert!(after.dirty == 0 && after.stored_bytes > 0 && volume.dirty_bytes() == 0, "{after:?}");
        assert!(object.read_bytes(0, data.len()).await.unwrap() == data);
        volume.close().await.unwrap();
        let volume = place.open().await;
        assert!(volume.open_object("a").unwrap().read_bytes(0, data.len()).await.unwrap() == data);
    });
}

/// Without a cleaner that runs it stores them itself.
#[test]
fn a_sync_covers_pages_that_wait_for_a_cleaner() {
    let (place, waiting) = (Place::new(&[("only", 1)]), Arc::new(Waiting::default()));
    block_on(async {
        let (volume, object) = make(&place, &waiting, 16 * PAGE).await;
        let data = text(5 * PAGE as usize + 333, 1);
        object.write_bytes(0, &data).await.unwrap();
        object.sync().await.unwrap();
        assert_eq!((pages(&object).dirty, object.size_bytes()), (0, data.len() as u64));
        // What comes after the sync is lost with the process, and nothing else.
        object.write_bytes(20 * PAGE, &data).await.unwrap();
        drop((object, volume));
        waiting.work.lock().clear();
        let volume = place.open().await;
        let object = volume.open_object("a").unwrap();
        assert!(object.read_bytes(0, 40 * PAGE as usize).await.unwrap() == data);
    });
}

#[test]
fn memory_for_dirty_pages_is_bounded_over_all_objects() {
    let (place, waiting) = (Place::new(&[("only", 1)]), Arc::new(Waiting::default()));
    block_on(async {
        let (volume, first) = make(&place, &waiting, 6 * PAGE).await;
        let second = volume.create_object("b", &compressed("zstd:1")).unwrap();
        let data = text(30 * PAGE as usize, 1);
        for page in 0..30 {
            let at = page * PAGE as usize;
            first.write_bytes(at as u64, &data[at..at + PAGE as usize]).await.unwrap();
            second.write_bytes(at as u64, &data[at..at + PAGE as usize]).await.unwrap();
            assert!(volume.dirty_bytes() <= 6 * PAGE);
        }
        assert_eq!(pages(&first).dirty + pages(&second).dirty, 6);
        for object in [&first, &second] {
            assert!(object.read_bytes(0, data.len()).await.unwrap() == data);
        }
        // A page that was in memory is stored by a later write of it.
        first.write_bytes(0, &data).await.unwrap();
        assert_eq!(pages(&first).dirty, 0);
        waiting.run().await;
        volume.close().await.unwrap();
    });
}

#[test]
fn cuts_holes_and_deletions_take_dirty_pages_with_them() {
    let (place, waiting) = (Place::new(&[("only", 1)]), Arc::new(Waiting::default()));
    block_on(async {
        let (volume, object) = make(&place, &waiting, 32 * PAGE).await;
        let data = text(10 * PAGE as usize, 1);
        object.write_bytes(0, &data).await.unwrap();
        object.punch(PAGE, 2 * PAGE).await.unwrap();
        object.resize(6 * PAGE + 50).await.unwrap();
        assert_eq!(pages(&object).dirty, 5);
        object.resize(8 * PAGE).await.unwrap();
        let mut expected = data[..6 * PAGE as usize + 50].to_vec();
        expected.resize(8 * PAGE as usize, 0);
        expected[PAGE as usize..3 * PAGE as usize].fill(0);
        assert!(object.read_bytes(0, expected.len()).await.unwrap() == expected);
        waiting.run().await;
        assert!(object.read_bytes(0, expected.len()).await.unwrap() == expected);
        object.write_bytes(0, &data).await.unwrap();
        volume.delete("a").await.unwrap();
        assert_eq!(volume.dirty_bytes(), 0);
        waiting.run().await;
        volume.close().await.unwrap();
    });
}

/// There it might find no space, when nobody is there to be told.
#[test]
fn objects_with_a_quota_and_full_classes_are_written_through() {
    let (place, waiting) = (Place::new(&[("only", 1)]), Arc::new(Waiting::default()));
    block_on(async {
        let parts = waiting.parts(&place, 4 * PAGE);
        let volume = Volume::create(parts, &place.settings(8)).await.unwrap();
        let limited = Attributes { quota_bytes: Some(4 * CHUNK), ..compressed("lz4") };
        let object = volume.create_object("limited", &limited).unwrap();
        object.write_bytes(0, &text(4 * PAGE as usize, 1)).await.unwrap();
        assert_eq!(pages(&object).dirty, 0);
        let object = volume.create_object("free", &compressed("lz4")).unwrap();
        let noise = crate::bytes(40 * PAGE as usize, 1);
        let error = object.write_bytes(0, &noise).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NoSpace);
        object.sync().await.unwrap();
        volume.close().await.unwrap();
    });
}

/// Fails writes once it is told to.
#[derive(Debug, Default)]
struct Broken {
    is_on: AtomicBool,
    failed: AtomicU64,
}

impl Between for Broken {
    fn start(&self, device: &Device, request: Request, completion: Completion) -> Ticket {
        if self.is_on.load(Ordering::SeqCst) && request.operation == Operation::Write {
            self.failed.fetch_add(1, Ordering::SeqCst);
            completion.complete(Err(std::io::Error::other("it is broken")), request.buffer);
            return Ticket::default();
        }
        device.start(request, completion)
    }
}

#[test]
fn a_device_that_fails_under_a_cleaner_poisons_the_object() {
    let (place, waiting) = (Place::new(&[("only", 1)]), Arc::new(Waiting::default()));
    let broken = Arc::new(Broken::default());
    let mut parts = waiting.parts(&place, 32 * PAGE);
    for device in parts.classes[0].devices.iter_mut().flatten() {
        *device = interpose(device, &broken);
    }
    block_on(async {
        let volume = Volume::create(parts, &place.settings(64)).await.unwrap();
        let object = volume.create_object("a", &compressed("lz4")).unwrap();
        let data = text(3 * PAGE as usize, 1);
        object.write_bytes(0, &data).await.unwrap();
        object.sync().await.unwrap();
        broken.is_on.store(true, Ordering::SeqCst);
        object.write_bytes(0, &text(PAGE as usize, 2)).await.unwrap();
        waiting.run().await;
        assert!(broken.failed.load(Ordering::SeqCst) > 0);
        broken.is_on.store(false, Ordering::SeqCst);
        for error in [
            object.sync().await.unwrap_err(),
            object.write_bytes(PAGE, &data).await.unwrap_err(),
            volume.close().await.unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::Poisoned, "{error}");
        }
        // What was written last is there to be read, until the volume is opened anew.
        assert!(object.read_bytes(0, PAGE as usize).await.unwrap() == text(PAGE as usize, 2));
        drop((object, volume));
        let volume = place.open().await;
        assert!(volume.open_object("a").unwrap().read_bytes(0, data.len()).await.unwrap() == data);
    });
}

/// Writers, readers and syncs on several threads, each on pages of its own, with cleaners beside them.
#[test]
fn threads_read_what_they_wrote_beside_cleaners() {
    let place = Place::new(&[("only", 2)]);
    let parts = Parts { cleaners: Some(cleaners_on_threads(8 * PAGE)), ..place.parts() };
    let volume = block_on(Volume::create(parts, &place.settings(96))).unwrap();
    let object = volume.create_object("a", &compressed("lz4")).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let object = object.clone();
            scope.spawn(move || {
                let mut random = SplitMix64::new(thread);
                let mut model = vec![0_u8; 6 * PAGE as usize];
                let base = thread * 6 * PAGE;
                for step in 0..150 {
                    let offset = random.below(5 * PAGE);
                    let len = 1 + random.below(PAGE) as usize;
                    if step % 3 == 2 {
                        let found = block_on(object.read_bytes(base + offset, len)).unwrap();
                        let expected = &model[offset as usize..offset as usize + len];
                        // The object may end before.
                        assert!(found == expected[..found.len()], "thread {thread}, step {step}");
                        assert!(expected[found.len()..].iter().all(|byte| *byte == 0));
                    } else if step % 20 == 19 {
                        block_on(object.sync()).unwrap();
                    } else {
                        let data = text(len, random.next_u64());
                        block_on(object.write_bytes(base + offset, &data)).unwrap();
                        model[offset as usize..offset as usize + len].copy_from_slice(&data);
                    }
                }
            });
        }
    });
    block_on(volume.close()).unwrap();
    assert_eq!(volume.dirty_bytes(), 0);
    drop((object, volume));
    let report = block_on(Volume::check(&place.parts())).unwrap();
    assert!(report.is_sound(), "{:?}", report.findings);
}
