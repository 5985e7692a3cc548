//! Many threads at once: none waits for ever, and none reads what another wrote elsewhere.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use futures::executor::block_on;
use tanada_base::SplitMix64;
use tanada_io::BufferPool;
use tanada_volume::{Attributes, IoStatistics, Object, Relocation, Volume};

use crate::{CHUNK, Place, bytes};

const THREADS: u64 = 3;

/// What was done, by all threads.
#[derive(Default)]
struct Done {
    writes: AtomicU64,
    bytes_written: AtomicU64,
    bytes_read: AtomicU64,
}

/// Writes and reads every third block, in one way or the other.
async fn use_blocks(object: &Object, thread: u64, done: &Done) {
    let (device, pool) = (object.device(), BufferPool::new(0));
    let mut random = SplitMix64::new(thread);
    let mut content = vec![0u64; 120];
    for round in 0..400u64 {
        let no = random.below(content.len() as u64);
        let offset = (no * THREADS + thread) * 4096;
        let seed = (round + 1) << 8 | thread;
        let kind = random.below(4);
        if kind < 3 {
            done.writes.fetch_add(1 + u64::from(kind == 2), Ordering::Relaxed);
            done.bytes_written.fetch_add(4096, Ordering::Relaxed);
        }
        match kind {
            0 => object.write_bytes(offset, &bytes(4096, seed)).await.unwrap(),
            1 => {
                let mut buffer = pool.allocate(4096);
                buffer.copy_from_slice(&bytes(4096, seed));
                device.write(offset, buffer).await.unwrap();
            }
            2 => {
                // Not aligned: all but the last byte of the block, then the last.
                let data = bytes(4096, seed);
                object.write_bytes(offset, &data[..4095]).await.unwrap();
                object.write_bytes(offset + 4095, &data[4095..]).await.unwrap();
            }
            _ => {
                let expected = match content[no as usize] {
                    0 => vec![0; 4096],
                    seed => bytes(4096, seed),
                };
                let read = object.read_bytes(offset, 4096).await.unwrap();
                done.bytes_read.fetch_add(read.len() as u64, Ordering::Relaxed);
                assert!(
                    read == expected || (read.is_empty() && content[no as usize] == 0),
                    "block {no} of {thread}"
                );
                continue;
            }
        }
        content[no as usize] = seed;
        if round % 50 == 0 {
            object.sync().await.unwrap();
        }
    }
}

async fn relocate(volume: &Volume, object: &Object, is_over: &AtomicBool) {
    let relocation = Relocation::default();
    while !is_over.load(Ordering::SeqCst) {
        object.move_to(0..100, "fast", &relocation).await.unwrap();
        object.move_to(0..100, "slow", &relocation).await.unwrap();
        object.mirror_to(0..100, "fast", &relocation).await.unwrap();
        volume.checkpoint().await.unwrap();
        object.drop_mirrors(0..100, &relocation).unwrap();
        volume.drain_class("fast", &relocation).await.unwrap();
        volume.fill_class("fast").await.unwrap();
    }
}

#[test]
fn writers_readers_and_relocations_on_one_object() {
    let place = Place::new(&[("fast", 1), ("slow", 2)]);
    let volume = block_on(place.create(64));
    let object = volume.create_object("shared", &Attributes::default()).unwrap();
    let is_over = AtomicBool::new(false);
    let done = Done::default();
    std::thread::scope(|scope| {
        let mover = scope.spawn(|| block_on(relocate(&volume, &object, &is_over)));
        let users: Vec<_> = (0..THREADS)
            .map(|thread| {
                scope.spawn({
                    let (object, done) = (&object, &done);
                    move || block_on(use_blocks(object, thread, done))
                })
            })
            .collect();
        let ended: Vec<_> = users.into_iter().map(|user| user.join()).collect();
        is_over.store(true, Ordering::SeqCst);
        mover.join().unwrap();
        ended.into_iter().for_each(|user| user.unwrap());
    });
    // Counts are exact, on every level, whatever ran at once.
    let counted = object.statistics();
    assert_eq!(counted.written.ios, done.writes.into_inner());
    assert_eq!(counted.written.bytes, done.bytes_written.into_inner());
    assert_eq!(counted.read.bytes, done.bytes_read.into_inner());
    let of_classes = |figure: fn(&IoStatistics) -> u64| -> u64 {
        volume.classes().iter().map(|class| figure(&class.statistics)).sum()
    };
    assert_eq!(of_classes(|class| class.written.ios), counted.written.ios);
    assert_eq!(of_classes(|class| class.written.bytes), counted.written.bytes);
    assert!(of_classes(|class| class.read.bytes) <= counted.read.bytes, "holes lie in no class");
    let chunks = object.chunks(0..u64::MAX);
    assert_eq!(chunks.iter().map(|chunk| chunk.statistics.bytes_written).sum::<u64>(), counted.written.bytes);
    block_on(volume.close()).unwrap();
    assert!(object.size_bytes() <= 6 * CHUNK * 4);
    drop((object, volume));
    assert!(block_on(Volume::check(&place.parts())).unwrap().is_sound());
}
