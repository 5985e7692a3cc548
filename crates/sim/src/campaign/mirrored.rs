//! Mirrors that are lost: all homes lie in a class that never fails, and only mirrors in one that does.
//!
//! Reads from mirrors fail at random, the mirrors' device is gone when the volume is opened again, or its label has
//! rotted. Each of that the volume can notice, so none of it may be seen: every read is right, every write is taken,
//! and no operation is refused. (A bit that flips within a mirror's data is noticed by nobody, for data have no
//! checksums.)

use tanada_base::SplitMix64;
use tanada_io::Operation;
use tanada_volume::{Attributes, Relocation};

use super::teller::Teller;
use crate::fault::{Fault, Rule, When};
use crate::oracle::{CHUNK_BYTES as CHUNK, Tag};

/// The class of the mirrors.
pub(crate) const MIRRORS: &str = "fast";
/// Chunks of each object: all of them together fit into the class of the homes.
const CHUNKS: u64 = 4;
const ROUNDS: u64 = 4;

pub(crate) async fn tell(teller: &Teller) -> Teller {
    let mut teller = teller.clone();
    let mut random = teller.world.random();
    let homes = Attributes { class: Some("slow".to_owned()), ..Attributes::default() };
    let tags: Vec<Tag> = ["a", "b", "c"].into_iter().filter_map(|name| teller.create(name, &homes)).collect();
    for tag in &tags {
        teller.write(*tag, 0, (CHUNKS * CHUNK) as usize).await;
    }
    teller.sync_all().await;
    for round in 0..ROUNDS {
        // A volume whose mirrors are gone makes none, so the first reads come from some.
        teller.mirror_to(tags[0], 0..CHUNKS, MIRRORS, &Relocation::default()).await;
        if let Some(disk) = teller.rig.disk(MIRRORS) {
            let chance = [0, 400_000, 30_000, 1_000_000][round as usize % 4];
            let rule = Rule::new(Fault::Error, When::PerMillion(chance));
            teller.world.inject(rule.of(Operation::Read).on(disk.no()));
        }
        teller.read(tags[0], 0, (CHUNKS * CHUNK) as usize).await;
        let running: Vec<_> = (0..3)
            .map(|_| {
                let (teller, tags, seed) = (teller.clone(), tags.clone(), random.next_u64());
                let world = teller.world.clone();
                world.spawn(async move { some_work(&teller, &tags, seed).await })
            })
            .collect();
        for task in running {
            task.await;
        }
        let gone = (random.below(3) == 0).then_some(MIRRORS);
        if random.below(2) == 0 {
            teller.world.heal();
        }
        if let Some(disk) = teller.rig.disk(MIRRORS).filter(|_| random.below(3) == 0) {
            let (at, bit) = (random.below(38), random.below(8) as u32);
            disk.tamper(|image| image.flip(at, bit));
        }
        let Some(next) = teller.reopened_without(gone).await else { return teller };
        teller = next;
    }
    for tag in &tags {
        teller.read(*tag, 0, (CHUNKS * CHUNK) as usize).await;
    }
    if teller.world.struck_in_all() > 0 {
        teller.count("lose mirrors");
    }
    teller
}

async fn some_work(teller: &Teller, tags: &[Tag], seed: u64) {
    let mut random = SplitMix64::new(seed);
    for _ in 0..10 {
        let tag = tags[random.below(tags.len() as u64) as usize];
        let offset = random.below(CHUNKS * CHUNK);
        let len = 1 + random.below(CHUNKS * CHUNK - offset);
        match random.below(10) {
            0..5 => teller.read(tag, offset, len as usize).await,
            5 | 6 => {
                let first = offset / CHUNK;
                teller.mirror_to(tag, first..first + 2, MIRRORS, &Relocation::default()).await;
            }
            7 => teller.write(tag, offset / 4096 * 4096, 4096).await,
            8 => teller.write(tag, offset, len.min(5000) as usize).await,
            _ => teller.sync(tag).await,
        }
    }
}
