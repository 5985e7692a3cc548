//! Many threads at once: none waits for ever, and none reads what another wrote elsewhere.

use std::sync::atomic::{AtomicBool, Ordering};

use futures::executor::block_on;
use tanada_base::SplitMix64;
use tanada_io::BufferPool;
use tanada_volume::{Attributes, Object, Relocation, Volume};

use crate::{CHUNK, Place, bytes};

const THREADS: u64 = 3;

/// Writes and reads every third block, in one way or the other.
async fn use_blocks(object: &Object, thread: u64) {
    let (device, pool) = (object.device(), BufferPool::new(0));
    let mut random = SplitMix64::new(thread);
    let mut content = vec![0u64; 120];
    for round in 0..400u64 {
        let no = random.below(content.len() as u64);
        let offset = (no * THREADS + thread) * 4096;
        let seed = (round + 1) << 8 | thread;
        match random.below(4) {
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
    std::thread::scope(|scope| {
        let mover = scope.spawn(|| block_on(relocate(&volume, &object, &is_over)));
        let users: Vec<_> = (0..THREADS)
            .map(|thread| {
                scope.spawn({
                    let object = &object;
                    move || block_on(use_blocks(object, thread))
                })
            })
            .collect();
        let ended: Vec<_> = users.into_iter().map(|user| user.join()).collect();
        is_over.store(true, Ordering::SeqCst);
        mover.join().unwrap();
        ended.into_iter().for_each(|user| user.unwrap());
    });
    block_on(volume.close()).unwrap();
    assert!(object.size_bytes() <= 6 * CHUNK * 4);
    drop((object, volume));
    assert!(block_on(Volume::check(&place.parts())).unwrap().is_sound());
}
