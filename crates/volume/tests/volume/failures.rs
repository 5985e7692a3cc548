//! What fails is said, and nothing is promised any more that may not hold.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use futures::executor::block_on;
use futures::future::join_all;
use tanada_io::{Completion, Device, Operation, Request, Ticket};
use tanada_volume::{Attributes, ErrorKind, Parts, Volume};

use crate::between::{Between, interpose};
use crate::{CHUNK, Place, bytes};

/// Which operations fail, and how many syncs there were.
#[derive(Debug, Default)]
struct Faults {
    writes: AtomicBool,
    syncs: AtomicBool,
    full: AtomicBool,
    synced: AtomicU64,
}

impl Between for Faults {
    fn start(&self, device: &Device, request: Request, completion: Completion) -> Ticket {
        let fails = match request.operation {
            Operation::Write => self.writes.load(Ordering::SeqCst),
            Operation::Sync => {
                self.synced.fetch_add(1, Ordering::SeqCst);
                self.syncs.load(Ordering::SeqCst)
            }
            _ => false,
        };
        if fails {
            completion.complete(Err(io::Error::from_raw_os_error(5)), request.buffer);
            return Ticket::default();
        }
        if request.operation == Operation::Write && self.full.load(Ordering::SeqCst) {
            completion.complete(Err(io::Error::from(io::ErrorKind::StorageFull)), request.buffer);
            return Ticket::default();
        }
        device.start(request, completion)
    }
}

struct Setup {
    place: Place,
    metadata: Arc<Faults>,
    fast: Arc<Faults>,
    slow: Arc<Faults>,
}

impl Setup {
    fn new() -> Setup {
        let place = Place::new(&[("fast", 1), ("slow", 1)]);
        Setup { place, metadata: Arc::default(), fast: Arc::default(), slow: Arc::default() }
    }

    fn parts(&self) -> Parts {
        let mut parts = self.place.parts();
        parts.metadata = interpose(&parts.metadata, &self.metadata);
        for (class, faults) in parts.classes.iter_mut().zip([&self.fast, &self.slow]) {
            class.devices =
                class.devices.iter().flatten().map(|device| Some(interpose(device, faults))).collect();
        }
        parts
    }

    async fn create(&self) -> Volume {
        Volume::create(self.parts(), &self.place.settings(32)).await.unwrap()
    }
}

fn on(class: &str) -> Attributes {
    Attributes { class: Some(class.to_owned()), ..Attributes::default() }
}

#[test]
fn a_failed_sync_poisons_all_who_wrote_to_that_class() {
    let setup = Setup::new();
    block_on(async {
        let volume = setup.create().await;
        let objects = ["one", "two"].map(|name| volume.create_object(name, &on("slow")).unwrap());
        let elsewhere = volume.create_object("elsewhere", &on("fast")).unwrap();
        for object in objects.iter().chain([&elsewhere]) {
            object.write_bytes(0, b"old").await.unwrap();
            object.sync().await.unwrap();
            object.write_bytes(0, b"new").await.unwrap();
        }
        setup.slow.syncs.store(true, Ordering::SeqCst);
        assert_eq!(objects[0].sync().await.unwrap_err().kind(), ErrorKind::Device);
        setup.slow.syncs.store(false, Ordering::SeqCst);
        for object in &objects {
            assert!(object.is_poisoned());
            assert_eq!(
                object.sync().await.unwrap_err().kind(),
                ErrorKind::Poisoned,
                "a later sync makes up for nothing"
            );
            assert_eq!(object.write_bytes(0, b"x").await.unwrap_err().kind(), ErrorKind::Poisoned);
            assert_eq!(object.read_bytes(0, 3).await.unwrap(), b"new");
        }
        elsewhere.sync().await.unwrap();
        assert!(volume.sync().await.is_err());
        let third = volume.create_object("third", &on("slow")).unwrap();
        third.write_bytes(0, b"x").await.unwrap();
        third.sync().await.unwrap();
        assert_eq!(volume.classes()[0].taken, 2, "the other class takes what is new");
    });
    let volume = block_on(setup.place.open());
    assert!(block_on(volume.open_object("elsewhere").unwrap().write_bytes(0, b"x")).is_ok());
    assert!(block_on(volume.open_object("one").unwrap().write_bytes(0, b"x")).is_ok());
}

#[test]
fn a_failed_write_poisons_its_object_alone() {
    let setup = Setup::new();
    block_on(async {
        let volume = setup.create().await;
        let [one, two] = ["one", "two"].map(|name| volume.create_object(name, &on("slow")).unwrap());
        one.write_bytes(0, &bytes(8192, 1)).await.unwrap();
        two.write_bytes(0, b"fine").await.unwrap();
        setup.slow.writes.store(true, Ordering::SeqCst);
        let error = one.write_bytes(0, &bytes(4096, 2)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Device);
        assert!(error.to_string().contains("\"one\"") && error.to_string().contains("class slow"), "{error}");
        setup.slow.writes.store(false, Ordering::SeqCst);
        assert_eq!(one.sync().await.unwrap_err().kind(), ErrorKind::Poisoned);
        two.write_bytes(4, b" too").await.unwrap();
        two.sync().await.unwrap();
        // Through the device it is the same.
        let device = two.device();
        setup.slow.writes.store(true, Ordering::SeqCst);
        let buffer = tanada_io::BufferPool::new(0).allocate(4096);
        assert!(device.write(0, buffer).await.is_err());
        setup.slow.writes.store(false, Ordering::SeqCst);
        assert!(two.is_poisoned() && two.sync().await.is_err());
    });
}

#[test]
fn a_failure_of_the_metadata_device_ends_all_writing() {
    let setup = Setup::new();
    block_on(async {
        let volume = setup.create().await;
        let object = volume.create_object("one", &Attributes::default()).unwrap();
        object.write_bytes(0, b"kept").await.unwrap();
        object.sync().await.unwrap();
        object.write_bytes(CHUNK, b"lost").await.unwrap();
        setup.metadata.syncs.store(true, Ordering::SeqCst);
        assert_eq!(object.sync().await.unwrap_err().kind(), ErrorKind::Device);
        setup.metadata.syncs.store(false, Ordering::SeqCst);
        assert!(volume.sync().await.is_err() && volume.close().await.is_err());
        assert!(volume.create_object("two", &Attributes::default()).is_err());
        assert_eq!(object.read_bytes(0, 4).await.unwrap(), b"kept");
        drop((object, volume));
        let volume = setup.place.open().await;
        assert_eq!(volume.open_object("one").unwrap().read_bytes(0, 4).await.unwrap(), b"kept");
    });
}

#[test]
fn a_device_without_space_is_an_error_that_can_be_got_over() {
    let setup = Setup::new();
    block_on(async {
        let volume = setup.create().await;
        let pin = Attributes { pin: Some("slow".to_owned()), ..Attributes::default() };
        let object = volume.create_object("one", &pin).unwrap();
        object.write_bytes(0, b"before").await.unwrap();
        setup.slow.full.store(true, Ordering::SeqCst);
        assert_eq!(object.write_bytes(CHUNK, b"more").await.unwrap_err().kind(), ErrorKind::NoSpace);
        assert_eq!(object.read_bytes(0, 6).await.unwrap(), b"before");
        setup.slow.full.store(false, Ordering::SeqCst);
        object.write_bytes(CHUNK, b"more").await.unwrap();
        object.sync().await.unwrap();
    });
}

#[test]
fn syncs_at_once_share_the_devices_syncs() {
    let setup = Setup::new();
    block_on(async {
        let volume = setup.create().await;
        let objects: Vec<_> = (0..32)
            .map(|i| volume.create_object(&format!("object {i}"), &Attributes::default()).unwrap())
            .collect();
        for object in &objects {
            object.write_bytes(0, b"x").await.unwrap();
        }
        let before = [&setup.metadata, &setup.slow].map(|faults| faults.synced.load(Ordering::SeqCst));
        for synced in join_all(objects.iter().map(tanada_volume::Object::sync)).await {
            synced.unwrap();
        }
        let after = [&setup.metadata, &setup.slow].map(|faults| faults.synced.load(Ordering::SeqCst));
        assert!(after[0] - before[0] <= 4 && after[1] - before[1] <= 4, "{before:?} {after:?}");
        assert_eq!(setup.fast.synced.load(Ordering::SeqCst), 1, "only labels were written there");
    });
}

/// The file system below a class is full before the class is.
#[test]
fn a_class_whose_device_is_full_passes_new_chunks_on() {
    let setup = Setup::new();
    let data = bytes(2 * CHUNK as usize + 100, 1);
    block_on(async {
        let volume = setup.create().await;
        let object = volume.create_object("a", &on("fast")).unwrap();
        object.write_bytes(0, &data[..CHUNK as usize]).await.unwrap();
        setup.fast.full.store(true, Ordering::SeqCst);
        // A whole chunk, and parts of one with and without alignment.
        object.write_bytes(CHUNK, &data[CHUNK as usize..]).await.unwrap();
        object.write_bytes(5 * CHUNK, &data[..8192]).await.unwrap();
        let taken: Vec<u64> = volume.classes().iter().map(|class| class.taken).collect();
        assert_eq!(taken, [1, 3]);
        // Where no other class may take it, the error says so, and nothing is lost.
        let pin = Attributes { pin: Some("fast".to_owned()), ..Attributes::default() };
        let pinned = volume.create_object("pinned", &pin).unwrap();
        for _ in 0..2 {
            let error = pinned.write_bytes(0, &data).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
            assert!(!pinned.is_poisoned());
        }
        setup.slow.full.store(true, Ordering::SeqCst);
        assert_eq!(object.write_bytes(9 * CHUNK, b"x").await.unwrap_err().kind(), ErrorKind::NoSpace);
        assert_eq!(object.read_bytes(0, data.len()).await.unwrap(), data);
        object.sync().await.unwrap();
        setup.fast.full.store(false, Ordering::SeqCst);
        setup.slow.full.store(false, Ordering::SeqCst);
        // What is freed has its space.
        object.punch(0, CHUNK).await.unwrap();
        object.sync().await.unwrap();
        pinned.write_bytes(0, &data[..100]).await.unwrap();
    });
}
