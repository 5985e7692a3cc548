//! Objects whose pages are compressed and encrypted: what is read is what was written, space follows what is stored,
//! and nothing is guessed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use futures::executor::block_on;
use tanada_base::SplitMix64;
use tanada_io::{Completion, Device, Operation, Request, Ticket};
use tanada_volume::{
    Attributes, BLOCK_BYTES, Compression, ErrorKind, KeyRing, Object, OpenOptions, PageStatistics, Parts,
    Relocation, Volume,
};

use crate::between::{Between, interpose};
use crate::cleaners::cleaners_on_threads;
use crate::{CHUNK, Place, bytes};

const PAGE: usize = 16 << 10;

pub(crate) fn compressed(compression: &str) -> Attributes {
    Attributes { compression: compression.parse().unwrap(), ..Attributes::default() }
}

fn keys(ids: &[u16]) -> KeyRing {
    let line = |id: &u16| {
        let bytes: Vec<String> =
            (0..64).map(|i| format!("{:02x}", (i * 3 + usize::from(*id)) % 256)).collect();
        format!("{id};{}\n", bytes.concat())
    };
    KeyRing::parse(&ids.iter().map(line).collect::<String>(), "the keys").unwrap()
}

/// Bytes that become about a third as long.
pub(crate) fn text(len: usize, seed: u64) -> Vec<u8> {
    let mut random = SplitMix64::new(seed);
    let words: Vec<[u8; 8]> = (0..64).map(|_| random.next_u64().to_be_bytes()).collect();
    let all = std::iter::repeat_with(|| words[random.below(64) as usize]);
    all.flatten().take(len).collect()
}

fn pages(object: &Object) -> PageStatistics {
    object.page_statistics().unwrap()
}

fn count(pages: &PageStatistics, algorithm: &str) -> u64 {
    pages.by_algorithm.get(algorithm).copied().unwrap_or_default()
}

async fn check(place: &Place) {
    let report = Volume::check(&place.parts()).await.unwrap();
    assert!(report.is_sound(), "{:?}", report.findings);
}

#[test]
fn compressed_objects_read_back_and_take_fewer_blocks() {
    for compression in ["lz4", "zstd", "zlib:1"] {
        let place = Place::new(&[("only", 1)]);
        block_on(async {
            let volume = place.create(64).await;
            let object = volume.create_object("a", &compressed(compression)).unwrap();
            let data = text(20 * PAGE + 777, 1);
            object.write_bytes(0, &data).await.unwrap();
            object.write_bytes(30 * PAGE as u64 + 5, &data[..100]).await.unwrap();
            object.sync().await.unwrap();
            let stored = pages(&object).stored_bytes;
            assert!(stored < data.len() as u64 * 6 / 10, "{compression}: {stored} of {}", data.len());
            assert!(object.allocated_bytes() - stored < 2 * CHUNK, "{}", object.allocated_bytes());
            volume.close().await.unwrap();
            let volume = place.open().await;
            let object = volume.open_object("a").unwrap();
            assert_eq!(object.size_bytes(), 30 * PAGE as u64 + 105);
            assert!(object.read_bytes(0, data.len()).await.unwrap() == data);
            assert!(object.read_bytes(777, 50_000).await.unwrap() == data[777..50_777]);
            assert_eq!(object.read_bytes(30 * PAGE as u64, 200).await.unwrap().len(), 105);
            assert!(object.read_bytes(25 * PAGE as u64, PAGE).await.unwrap() == vec![0; PAGE]);
            assert_eq!(pages(&object).stored_bytes, stored);
            assert_eq!(object.attributes().compression, compression.parse().unwrap());
            assert_eq!(object.attributes().page_bytes, Some(PAGE as u32));
            volume.close().await.unwrap();
            check(&place).await;
        });
    }
}

/// Writes, reads, cuts, punches or syncs an object and what it should hold.
async fn change(object: &Object, model: &mut Vec<u8>, random: &mut SplitMix64, offset: u64, len: u64) {
    match random.below(18) {
        0..10 => {
            let (noisy, seed) = (random.below(4) == 0, random.next_u64());
            let data = if noisy { bytes(len as usize, seed) } else { text(len as usize, seed) };
            object.write_bytes(offset, &data).await.unwrap();
            let end = (offset + len) as usize;
            model.resize(model.len().max(end), 0);
            model[offset as usize..end].copy_from_slice(&data);
        }
        10..14 => {
            let found = object.read_bytes(offset, len as usize).await.unwrap();
            let expected = model.iter().skip(offset as usize).take(len as usize);
            assert!(found.iter().eq(expected), "{len} bytes at {offset}");
        }
        14 => {
            object.resize(offset).await.unwrap();
            model.resize(offset as usize, 0);
        }
        15 | 16 => {
            object.punch(offset, len).await.unwrap();
            let end = ((offset + len) as usize).min(model.len());
            model[(offset as usize).min(end)..end].fill(0);
        }
        _ => object.sync().await.unwrap(),
    }
}

/// Moves, mirrors, alters or optimizes an object.
async fn manage(object: &Object, page_bytes: u32, random: &mut SplitMix64) {
    match random.below(4) {
        0 => {
            let class = ["fast", "slow"][random.below(2) as usize];
            object.move_to(0..3, class, &Relocation::default()).await.unwrap();
        }
        1 => drop(object.mirror_to(0..4, "fast", &Relocation::default()).await.unwrap()),
        2 => {
            let compression = ["none", "lz4", "zstd:1", "zlib:1"][random.below(4) as usize];
            let encryption = [None, Some(1), Some(2)][random.below(3) as usize];
            let page_bytes = object.attributes().page_bytes.or(Some(page_bytes));
            let said = Attributes { encryption, page_bytes, ..compressed(compression) };
            object.alter(&said).await.unwrap();
        }
        _ if object.page_statistics().is_none() => {}
        _ => {
            object.optimize(&|_| {}).await.unwrap();
        }
    }
}

/// Random operations against a plain vector, with openings in between, clean ones and others.
#[test]
fn random_operations_on_pages_give_what_a_plain_file_gives() {
    for seed in 0..6 {
        let place = Place::new(&[("fast", 1), ("slow", 2)]);
        let keys = keys(&[1, 2]);
        // With cleaners every second time.
        let cleaners = || (seed % 2 == 1).then(|| cleaners_on_threads(6 * CHUNK));
        let parts = || Parts { keys: keys.clone(), cleaners: cleaners(), ..place.parts() };
        block_on(async {
            let mut random = SplitMix64::new(seed);
            let mut volume = Volume::create(parts(), &place.settings(48)).await.unwrap();
            let page_bytes = [4096, 8192, 16384, 65536][random.below(4) as usize];
            let key = [None, Some(1)][random.below(2) as usize];
            let first = Attributes { page_bytes: Some(page_bytes), encryption: key, ..compressed("lz4") };
            let is_plain = random.below(3) == 0;
            let said = if is_plain { Attributes::default() } else { first.clone() };
            let mut object = volume.create_object("a", &said).unwrap();
            let mut model: Vec<u8> = Vec::new();
            for step in 0..250_u64 {
                let most = 12 * CHUNK;
                let offset = match random.below(3) {
                    0 => random.below(most),
                    1 => random.below(most / 4096) * 4096,
                    _ => (model.len() as u64).min(most),
                };
                let len = if random.below(2) == 0 {
                    1 + random.below(3 * CHUNK)
                } else {
                    4096 * (1 + random.below(30))
                };
                match random.below(24) {
                    0..18 => change(&object, &mut model, &mut random, offset, len).await,
                    18..22 => manage(&object, page_bytes, &mut random).await,
                    22 => volume.checkpoint().await.unwrap(),
                    _ => {
                        if random.below(2) == 0 {
                            volume.close().await.unwrap();
                        } else {
                            volume.sync().await.unwrap();
                        }
                        drop((object, volume));
                        volume = Volume::open(parts(), &OpenOptions::default()).await.unwrap();
                        object = volume.open_object("a").unwrap();
                    }
                }
                assert_eq!(object.size_bytes(), model.len() as u64, "seed {seed}, step {step}");
            }
            assert!(object.read_bytes(0, model.len()).await.unwrap() == model, "seed {seed}");
            volume.close().await.unwrap();
            let report = Volume::check(&parts()).await.unwrap();
            assert!(report.is_sound(), "{:?}", report.findings);
        });
    }
}

/// What both servers' page compression does not do: a page that is rewritten shorter gives back what it does not need.
#[test]
fn rewriting_pages_shorter_gives_chunks_back() {
    let place = Place::new(&[("only", 1)]);
    block_on(async {
        let volume = place.create(64).await;
        let object = volume.create_object("a", &compressed("lz4")).unwrap();
        object.write_bytes(0, &bytes(16 * PAGE, 1)).await.unwrap();
        object.sync().await.unwrap();
        assert_eq!(object.allocated_bytes(), 16 * PAGE as u64);
        assert_eq!(count(&pages(&object), "none"), 16);
        for round in 0..3 {
            object.write_bytes(0, &text(16 * PAGE, round)).await.unwrap();
            object.sync().await.unwrap();
        }
        object.sync().await.unwrap();
        let found = pages(&object);
        assert_eq!((count(&found, "lz4"), count(&found, "none"), found.retired_bytes), (16, 0, 0));
        assert!(object.allocated_bytes() <= found.stored_bytes + 2 * CHUNK, "{}", object.allocated_bytes());
        object.write_bytes(0, &vec![0; 16 * PAGE]).await.unwrap();
        object.sync().await.unwrap();
        assert_eq!((object.allocated_bytes(), pages(&object).holes), (0, 16), "pages of zeros take nothing");
        assert_eq!(volume.classes()[0].free(), 64);
    });
}

#[test]
fn altering_changes_metadata_only_and_algorithms_mix() {
    let place = Place::new(&[("only", 1)]);
    block_on(async {
        let volume = place.create(64).await;
        let object = volume.create_object("a", &Attributes::default()).unwrap();
        let mut data = text(12 * PAGE, 5);
        object.write_bytes(0, &data).await.unwrap();
        object.alter(&compressed("lz4")).await.unwrap();
        let before = object.statistics().written.bytes;
        assert_eq!((count(&pages(&object), "none"), before), (12, 12 * PAGE as u64));
        for (page, compression) in [(0, "lz4"), (1, "zstd:5"), (2, "zlib"), (3, "none")] {
            object.alter(&compressed(compression)).await.unwrap();
            let new = text(PAGE, 100 + page as u64);
            object.write_bytes((page * PAGE) as u64, &new).await.unwrap();
            data[page * PAGE..(page + 1) * PAGE].copy_from_slice(&new);
        }
        volume.close().await.unwrap();
        let volume = place.open().await;
        let object = volume.open_object("a").unwrap();
        let found = pages(&object);
        let mix = ["none", "lz4", "zstd", "zlib"].map(|algorithm| count(&found, algorithm));
        assert_eq!(mix, [9, 1, 1, 1]);
        assert!(object.read_bytes(0, data.len()).await.unwrap() == data);
        object.alter(&compressed("zstd:3")).await.unwrap();
        let progress = AtomicU64::new(0);
        let optimized = object.optimize(&|now| progress.store(now.done, Ordering::SeqCst)).await.unwrap();
        assert_eq!((optimized.rewritten, progress.load(Ordering::SeqCst)), (12, 12));
        assert!(optimized.allocated_after < optimized.allocated_before, "{optimized:?}");
        assert_eq!(count(&pages(&object), "zstd"), 12);
        assert!(object.read_bytes(0, data.len()).await.unwrap() == data);
        volume.close().await.unwrap();
        check(&place).await;
    });
}

#[test]
fn keys_are_rotated_and_needed_until_all_pages_are_rewritten() {
    let place = Place::new(&[("only", 1)]);
    let parts = |ids: &[u16]| Parts { keys: keys(ids), ..place.parts() };
    block_on(async {
        let volume = Volume::create(parts(&[1]), &place.settings(64)).await.unwrap();
        let said = |key, compression| Attributes { encryption: Some(key), ..compressed(compression) };
        let object = volume.create_object("secret", &said(1, "lz4")).unwrap();
        let data = [text(4 * PAGE, 1), bytes(4 * PAGE, 2)].concat();
        object.write_bytes(0, &data).await.unwrap();
        assert_eq!(object.alter(&said(2, "lz4")).await.unwrap_err().kind(), ErrorKind::MissingKey);
        volume.close().await.unwrap();
        let on_disk = std::fs::read(place.path("only-0")).unwrap();
        assert!(
            !on_disk
                .windows(16)
                .any(|found| found == &data[100..116] || found == &data[5 * PAGE..5 * PAGE + 16])
        );
        let volume = Volume::open(parts(&[]), &OpenOptions::default()).await.unwrap();
        let object = volume.open_object("secret").unwrap();
        let error = object.read_bytes(0, 10).await.unwrap_err();
        assert!(error.kind() == ErrorKind::MissingKey && error.to_string().contains("key 1"), "{error}");
        let error = object.write_bytes(0, b"x").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::MissingKey);
        volume.close().await.unwrap();
        let volume = Volume::open(parts(&[1, 2]), &OpenOptions::default()).await.unwrap();
        let object = volume.open_object("secret").unwrap();
        object.alter(&said(2, "lz4")).await.unwrap();
        assert!(object.read_bytes(0, data.len()).await.unwrap() == data);
        assert_eq!(pages(&object).by_key, [(1, 8)].into());
        object.write_bytes(0, &data[..PAGE]).await.unwrap();
        assert_eq!(pages(&object).by_key, [(1, 7), (2, 1)].into());
        object.optimize(&|_| {}).await.unwrap();
        assert_eq!(pages(&object).by_key, [(2, 8)].into());
        volume.close().await.unwrap();
        let volume = Volume::open(parts(&[2]), &OpenOptions::default()).await.unwrap();
        let object = volume.open_object("secret").unwrap();
        assert!(object.read_bytes(0, data.len()).await.unwrap() == data);
        volume.close().await.unwrap();
        let other = KeyRing::parse(&format!("2;{}{}", "ab".repeat(32), "cd".repeat(32)), "x").unwrap();
        let wrong = Parts { keys: other, ..place.parts() };
        let error = Volume::open(wrong, &OpenOptions::default()).await.unwrap_err();
        assert!(error.kind() == ErrorKind::MissingKey && error.to_string().contains("key 2"), "{error}");
    });
}

#[test]
fn damaged_pages_are_errors_with_object_and_offset() {
    let place = Place::new(&[("only", 1)]);
    block_on(async {
        let volume = place.create(64).await;
        let object = volume.create_object("shop/orders.ibd", &compressed("zstd")).unwrap();
        let data = text(8 * PAGE, 3);
        object.write_bytes(0, &data).await.unwrap();
        volume.close().await.unwrap();
        let path = place.path("only-0");
        let mut device = std::fs::read(&path).unwrap();
        let images: Vec<usize> =
            (0..device.len() - 4).step_by(4096).filter(|at| device[*at..].starts_with(b"TNPG")).collect();
        assert_eq!(images.len(), 8);
        device[images[2] + 500] ^= 1;
        std::fs::write(&path, device).unwrap();
        let volume = place.open().await;
        let object = volume.open_object("shop/orders.ibd").unwrap();
        let error = object.read_bytes(0, data.len()).await.unwrap_err();
        let message = error.to_string();
        assert_eq!(error.kind(), ErrorKind::Corrupted);
        assert!(message.contains("shop/orders.ibd") && message.contains("at offset 32768"), "{message}");
        assert!(object.read_bytes(0, 2 * PAGE).await.unwrap() == data[..2 * PAGE]);
        assert!(object.optimize(&|_| {}).await.is_err());
        assert!(object.read_bytes(3 * PAGE as u64, 5 * PAGE).await.unwrap() == data[3 * PAGE..]);
        // Whoever writes the whole page needs nothing of it.
        object.write_bytes(2 * PAGE as u64, &data[2 * PAGE..3 * PAGE]).await.unwrap();
        assert!(object.read_bytes(0, data.len()).await.unwrap() == data);
    });
}

#[test]
fn a_damaged_mirror_of_pages_costs_nothing_but_speed() {
    let place = Place::new(&[("fast", 1), ("slow", 1)]);
    block_on(async {
        let volume = place.create(64).await;
        let object = volume.create_object("a", &compressed("lz4")).unwrap();
        let data = text(8 * PAGE, 3);
        object.write_bytes(0, &data).await.unwrap();
        object.sync().await.unwrap();
        object.mirror_to(0..9, "fast", &Relocation::default()).await.unwrap();
        volume.close().await.unwrap();
        let path = place.path("fast-0");
        let mut device = std::fs::read(&path).unwrap();
        let len = device.len();
        device[len / 8..].iter_mut().for_each(|byte| *byte ^= 1);
        device[4096 + 16384..].iter_mut().for_each(|byte| *byte ^= 1);
        std::fs::write(&path, device).unwrap();
        let volume = place.open().await;
        let object = volume.open_object("a").unwrap();
        assert!(object.read_bytes(0, data.len()).await.unwrap() == data);
    });
}

#[test]
fn a_full_class_refuses_and_keeps_what_was_there() {
    let place = Place::new(&[("only", 1)]);
    block_on(async {
        let volume = place.create(6).await;
        let object = volume.create_object("a", &Attributes::default()).unwrap();
        let data = bytes(5 * CHUNK as usize, 1);
        object.write_bytes(0, &data).await.unwrap();
        object.alter(&compressed("lz4")).await.unwrap();
        // One chunk is free: an overwrite has its blocks from there, and syncs to have them again.
        for page in 0..20 {
            object.write_bytes(page * PAGE as u64, &data[page as usize * PAGE..][..PAGE]).await.unwrap();
        }
        let error = object.write_bytes(0, &bytes(3 * CHUNK as usize, 2)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NoSpace);
        assert!(object.read_bytes(0, data.len()).await.unwrap() == data, "nothing of it happened");
        // What the refused write had begun is given back with the next sync.
        object.sync().await.unwrap();
        let filler = volume.create_object("b", &Attributes::default()).unwrap();
        filler.write_bytes(0, b"x").await.unwrap();
        volume.sync().await.unwrap();
        assert_eq!(volume.classes()[0].free(), 0);
        let error = object.optimize(&|_| {}).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NoSpace);
        assert!(object.read_bytes(0, data.len()).await.unwrap() == data);
        drop(filler);
        volume.delete("b").await.unwrap();
        volume.sync().await.unwrap();
        object.optimize(&|_| {}).await.unwrap();
        volume.close().await.unwrap();
        let volume = place.open().await;
        assert!(volume.open_object("a").unwrap().read_bytes(0, data.len()).await.unwrap() == data);
        volume.close().await.unwrap();
        check(&place).await;
    });
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let place = Place::new(&[("only", 1)]);
    block_on(async {
        let volume = place.create(8).await;
        let page = |page_bytes| Attributes { page_bytes: Some(page_bytes), ..compressed("lz4") };
        for (said, why) in [
            (page(2048), "a block of the volume"),
            (page(12288), "power of two"),
            (page(131_072), "64 KiB"),
            (Attributes { compression: Compression::Zstd(23), ..Attributes::default() }, "1 to 22"),
            (Attributes { encryption: Some(0), ..Attributes::default() }, "1 to 65535"),
            (Attributes { encryption: Some(9), ..Attributes::default() }, "key 9"),
        ] {
            let error = volume.create_object("a", &said).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
        assert!(volume.objects().is_empty());
        let object = volume.create_object("a", &page(8192)).unwrap();
        let error = object.alter(&page(16384)).await.unwrap_err().to_string();
        assert!(error.contains("8192") && error.contains("cannot change"), "{error}");
        let plain = volume.create_object("b", &Attributes::default()).unwrap();
        assert!(plain.set_attributes(&compressed("lz4")).is_err());
        let error = plain.optimize(&|_| {}).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        plain.alter(&Attributes { quota_bytes: Some(CHUNK), ..Attributes::default() }).await.unwrap();
        assert!(plain.page_statistics().is_none());
    });
}

#[test]
fn the_device_of_a_compressed_object_reads_and_writes() {
    let place = Place::new(&[("only", 1)]);
    block_on(async {
        let volume = place.create(64).await;
        let object = volume.create_object("a", &compressed("lz4")).unwrap();
        let device = object.device();
        let data = text(6 * PAGE, 3);
        let pool = tanada_io::BufferPool::new(0);
        let mut buffer = pool.allocate(data.len());
        buffer.copy_from_slice(&data);
        device.write(0, buffer).await.unwrap();
        device.sync().await.unwrap();
        assert_eq!(device.size_bytes().unwrap(), data.len() as u64);
        let found = device.read(4096, pool.allocate(8 * PAGE)).await.unwrap();
        assert!(found[..] == data[4096..]);
        object.punch(0, PAGE as u64).await.unwrap();
        let found = device.read(0, pool.allocate(2 * PAGE)).await.unwrap();
        assert!(found[..PAGE] == vec![0; PAGE] && found[PAGE..] == data[PAGE..2 * PAGE]);
    });
}

#[test]
fn a_stop_without_a_sync_leaves_the_pages_of_the_last_one() {
    let place = Place::new(&[("only", 1)]);
    block_on(async {
        let volume = place.create(64).await;
        let object = volume.create_object("a", &compressed("lz4")).unwrap();
        let data = text(8 * PAGE, 3);
        object.write_bytes(0, &data).await.unwrap();
        object.sync().await.unwrap();
        object.write_bytes(0, &text(8 * PAGE, 4)).await.unwrap();
        object.write_bytes(8 * PAGE as u64, &text(PAGE, 5)).await.unwrap();
        drop((object, volume));
        let volume = place.open().await;
        let object = volume.open_object("a").unwrap();
        assert!(object.read_bytes(0, 9 * PAGE).await.unwrap() == data);
        object.write_bytes(0, &text(PAGE, 6)).await.unwrap();
        volume.close().await.unwrap();
        check(&place).await;
    });
}

/// Writes to the device that are held up.
#[derive(Debug, Default)]
struct Counting {
    writes: AtomicU64,
    refuses: AtomicBool,
}

impl Between for Counting {
    fn start(&self, device: &Device, request: Request, completion: Completion) -> Ticket {
        if request.operation == Operation::Write {
            self.writes.fetch_add(request.len / BLOCK_BYTES, Ordering::SeqCst);
            if self.refuses.load(Ordering::SeqCst) {
                completion.complete(Err(std::io::Error::from_raw_os_error(28)), request.buffer);
                return Ticket::default();
            }
        }
        device.start(request, completion)
    }
}

#[test]
fn a_device_that_is_full_while_pages_are_rewritten_keeps_them() {
    let place = Place::new(&[("only", 1)]);
    let counting: Arc<Counting> = Arc::default();
    block_on(async {
        let mut parts = place.parts();
        for class in &mut parts.classes {
            class.devices =
                class.devices.iter().flatten().map(|device| Some(interpose(device, &counting))).collect();
        }
        let volume = Volume::create(parts, &place.settings(32)).await.unwrap();
        let object = volume.create_object("a", &compressed("lz4")).unwrap();
        let data = text(16 * PAGE, 3);
        let before = counting.writes.load(Ordering::SeqCst);
        object.write_bytes(0, &data).await.unwrap();
        let written = counting.writes.load(Ordering::SeqCst) - before;
        assert_eq!(
            written * BLOCK_BYTES,
            pages(&object).stored_bytes,
            "the images are written and nothing else"
        );
        object.sync().await.unwrap();
        counting.refuses.store(true, Ordering::SeqCst);
        assert_eq!(object.optimize(&|_| {}).await.unwrap_err().kind(), ErrorKind::NoSpace);
        assert_eq!(object.write_bytes(0, &text(PAGE, 9)).await.unwrap_err().kind(), ErrorKind::NoSpace);
        assert!(object.read_bytes(0, data.len()).await.unwrap() == data);
        counting.refuses.store(false, Ordering::SeqCst);
        object.optimize(&|_| {}).await.unwrap();
        assert!(object.read_bytes(0, data.len()).await.unwrap() == data);
        volume.close().await.unwrap();
        check(&place).await;
    });
}

#[test]
fn threads_that_write_pages_at_once_lose_none() {
    let place = Place::new(&[("only", 1)]);
    let volume = block_on(place.create(128));
    let object = volume.create_object("a", &compressed("lz4")).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let object = object.clone();
            scope.spawn(move || {
                for round in 0..12 {
                    for page in (thread..32).step_by(4) {
                        let data = text(PAGE, page * 1000 + round);
                        block_on(object.write_bytes(page * PAGE as u64, &data)).unwrap();
                        let found = block_on(object.read_bytes(page * PAGE as u64, PAGE)).unwrap();
                        assert!(found == data, "page {page}, round {round}");
                    }
                    if round % 7 == thread {
                        block_on(object.sync()).unwrap();
                    }
                }
            });
        }
    });
    block_on(async {
        volume.close().await.unwrap();
        let volume = place.open().await;
        let object = volume.open_object("a").unwrap();
        for page in 0..32 {
            assert!(
                object.read_bytes(page * PAGE as u64, PAGE).await.unwrap() == text(PAGE, page * 1000 + 11)
            );
        }
        assert!(object.allocated_bytes() < 8 * CHUNK + pages(&object).stored_bytes);
        volume.close().await.unwrap();
        check(&place).await;
    });
}
