//! Of blocks that are needed in part no more is read than the device's units make necessary, and what is needed is
//! there whatever happens.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use futures::executor::block_on;
use tanada_base::SplitMix64;
use tanada_io::{BufferPool, Completion, Device, Operation, Request, Ticket};
use tanada_volume::{Attributes, ErrorKind, Parts, Relocation, Volume};

use crate::between::{Between, interpose};
use crate::{CHUNK, Place, bytes};

/// How a device reads, and what was read of it.
#[derive(Debug)]
struct Reads {
    alignment: AtomicUsize,
    /// Most bytes of one transfer.
    most: AtomicUsize,
    fail: AtomicBool,
    bytes: AtomicU64,
}

impl Between for Reads {
    fn alignment(&self, _: &Device) -> usize {
        self.alignment.load(Ordering::SeqCst)
    }

    fn start(&self, device: &Device, mut request: Request, completion: Completion) -> Ticket {
        if request.operation == Operation::Read {
            let alignment = self.alignment(device) as u64;
            assert!(request.offset.is_multiple_of(alignment) && request.len.is_multiple_of(alignment));
            assert!(request.from.is_multiple_of(512), "memory is aligned as well");
            if self.fail.load(Ordering::SeqCst) {
                completion.complete(Err(io::Error::from_raw_os_error(5)), request.buffer);
                return Ticket::default();
            }
            request.len = request.len.min(self.most.load(Ordering::SeqCst) as u64);
            self.bytes.fetch_add(request.len, Ordering::SeqCst);
        }
        device.start(request, completion)
    }
}

struct Setup {
    place: Place,
    reads: [Arc<Reads>; 2],
}

impl Setup {
    fn new() -> Setup {
        let reads = || {
            Arc::new(Reads {
                alignment: AtomicUsize::new(512),
                most: AtomicUsize::new(usize::MAX),
                fail: AtomicBool::default(),
                bytes: AtomicU64::default(),
            })
        };
        Setup { place: Place::new(&[("fast", 1), ("slow", 1)]), reads: [reads(), reads()] }
    }

    fn parts(&self) -> Parts {
        let mut parts = self.place.parts();
        for (class, reads) in parts.classes.iter_mut().zip(&self.reads) {
            class.devices =
                class.devices.iter().flatten().map(|device| Some(interpose(device, reads))).collect();
        }
        parts
    }

    async fn create(&self) -> Volume {
        Volume::create(self.parts(), &self.place.settings(16)).await.unwrap()
    }
}

fn on(class: &str) -> Attributes {
    Attributes { class: Some(class.to_owned()), ..Attributes::default() }
}

#[test]
fn no_more_is_read_than_is_needed_in_the_units_of_the_device() {
    let setup = Setup::new();
    let data = bytes(40_000, 1);
    let pool = BufferPool::new(0);
    block_on(async {
        let volume = setup.create().await;
        let object = volume.create_object("a", &on("slow")).unwrap();
        object.write_bytes(0, &data).await.unwrap();
        // The unit, what is needed of two blocks at 4096, and what that takes.
        for (alignment, needed, read) in [
            (512, 3000..4000, 1536),
            (512, 0..1, 512),
            (512, 8191..8192, 512),
            (512, 0..8192, 8192),
            (1, 3000..4000, 1536),
            (2048, 3000..4000, 2048),
            (4096, 3000..4000, 4096),
            (4096, 4000..4100, 8192),
            (512, 5000..5000, 0),
        ] {
            let reads = &setup.reads[1];
            reads.alignment.store(alignment, Ordering::SeqCst);
            let before = (reads.bytes.load(Ordering::SeqCst), object.statistics().read.bytes);
            let buffer = object.read_needed(4096, pool.allocate(8192), needed.clone()).await.unwrap();
            assert_eq!(buffer.len(), 8192);
            assert_eq!(buffer[needed.clone()], data[4096..][needed.clone()], "{alignment}, {needed:?}");
            let after = (reads.bytes.load(Ordering::SeqCst), object.statistics().read.bytes);
            assert_eq!((after.0 - before.0, after.1 - before.1), (read, read), "{alignment}, {needed:?}");
        }
        setup.reads[1].alignment.store(512, Ordering::SeqCst);
        // What is needed lies behind the object's end, at the end of a block.
        let short = volume.create_object("short", &on("slow")).unwrap();
        short.write_bytes(0, &data[..4096]).await.unwrap();
        let before = setup.reads[1].bytes.load(Ordering::SeqCst);
        assert_eq!(short.read_needed(0, pool.allocate(8192), 5000..6000).await.unwrap().len(), 4096);
        assert_eq!(setup.reads[1].bytes.load(Ordering::SeqCst), before, "nothing is read for that");
        // The same for whoever reads bytes as they come, to the object's end within a block.
        let before = setup.reads[1].bytes.load(Ordering::SeqCst);
        assert_eq!(object.read_bytes(39_000, 9_000).await.unwrap(), data[39_000..]);
        assert_eq!(setup.reads[1].bytes.load(Ordering::SeqCst) - before, 3 * 512);
        let backwards = std::ops::Range { start: 2, end: 1 };
        for (offset, len, needed) in
            [(1, 4096, 0..1), (0, 4095, 0..1), (0, 4096, 0..4097), (0, 4096, backwards)]
        {
            let error = object.read_needed(offset, pool.allocate(len), needed).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        }
    });
}

#[test]
fn read_needed_returns_the_requested_bytes_for_any_alignment() {
    let setup = Setup::new();
    let mut random = SplitMix64::new(7);
    let pool = BufferPool::new(0);
    block_on(async {
        let volume = setup.create().await;
        let object = volume.create_object("a", &on("slow")).unwrap();
        // Four chunks, of which one was never written; segments have 16 KiB.
        let mut data = bytes(4 * CHUNK as usize - 700, 2);
        data[CHUNK as usize..2 * CHUNK as usize].fill(0);
        object.write_bytes(0, &data[..CHUNK as usize]).await.unwrap();
        object.write_bytes(2 * CHUNK, &data[2 * CHUNK as usize..]).await.unwrap();
        object.mirror_to(3..4, "fast", &Relocation::default()).await.unwrap();
        for round in 0..3000 {
            if round == 1500 {
                // From now on what has a mirror is read at home.
                setup.reads[0].fail.store(true, Ordering::SeqCst);
            }
            for reads in &setup.reads {
                reads.alignment.store(512 << random.below(4), Ordering::SeqCst);
                let most = if random.below(2) == 0 { 4096 } else { usize::MAX };
                reads.most.store(most, Ordering::SeqCst);
            }
            let first = random.below(64);
            let blocks = 1 + random.below((64 - first).min(10));
            let (offset, len) = (first * 4096, (blocks * 4096) as usize);
            let start = random.below(len as u64) as usize;
            let needed = start..start + random.below((len - start) as u64 + 1) as usize;
            let buffer = object.read_needed(offset, pool.allocate(len), needed.clone()).await.unwrap();
            let there = &data[offset as usize..][..len.min(data.len() - offset as usize)];
            assert_eq!(buffer.len(), there.len());
            let needed = needed.start.min(there.len())..needed.end.min(there.len());
            assert!(buffer[needed.clone()] == there[needed.clone()], "{round}: {offset}, {needed:?}");
            let (from, len) = (random.below(data.len() as u64) as usize, random.below(30_000) as usize);
            let found = object.read_bytes(from as u64, len).await.unwrap();
            assert!(found == data[from..(from + len).min(data.len())], "{round}: {len} bytes at {from}");
        }
    });
}
