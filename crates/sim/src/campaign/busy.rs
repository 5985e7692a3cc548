//! Random operations by several tasks at once.

use std::time::Duration;

use tanada_base::SplitMix64;
use tanada_volume::{Attributes, Budget, Compression, Relocation};

use super::teller::Teller;
use crate::oracle::Tag;

/// Objects are about this large at most.
const LARGEST: u64 = 64 << 10;
const MOST_OBJECTS: usize = 5;
const CLASSES: [&str; 3] = ["fast", "middle", "slow"];
const NAMES: [&str; 7] = ["a", "b", "c", "d", "e", "f", "g"];

/// `tasks` tasks with `steps` operations each.
pub(crate) async fn tell(teller: &Teller, tasks: u64, steps: u64) {
    let running: Vec<_> = (0..tasks)
        .map(|_| {
            let teller = teller.clone();
            let world = teller.world.clone();
            world.spawn(async move { some_work(&teller, steps).await })
        })
        .collect();
    for task in running {
        task.await;
    }
}

/// `steps` operations, one after the other.
pub(crate) async fn some_work(teller: &Teller, steps: u64) {
    let mut random = teller.world.random();
    for _ in 0..steps {
        if teller.book.has_failed() {
            return;
        }
        if random.below(24) == 0 {
            give_up_on_one(teller, &mut random).await;
        } else {
            step(teller.clone(), random.next_u64()).await;
        }
        if random.below(6) == 0 {
            teller.world.sleep(Duration::from_micros(random.below(2000))).await;
        }
    }
}

/// An operation whose caller loses interest at some time.
async fn give_up_on_one(teller: &Teller, random: &mut SplitMix64) {
    let task = teller.world.spawn(step(teller.clone(), random.next_u64()));
    teller.world.sleep(Duration::from_micros(random.below(400))).await;
    if !task.is_finished() {
        task.abort();
        teller.count("give up");
    }
}

async fn step(teller: Teller, seed: u64) {
    let mut random = SplitMix64::new(seed);
    let tags = teller.tags();
    if tags.is_empty() || (tags.len() < MOST_OBJECTS && random.below(12) == 0) {
        let name = NAMES[random.below(NAMES.len() as u64) as usize];
        let said = attributes(&mut random);
        let transform = if teller.transforms.get() { transform(&mut random) } else { Attributes::default() };
        let Attributes { class, pin, quota_bytes, .. } = said;
        teller.create(name, &Attributes { class, pin, quota_bytes, ..transform });
        return;
    }
    let tag = tags[random.below(tags.len() as u64) as usize];
    let size = teller.size(tag);
    let name = NAMES[random.below(NAMES.len() as u64) as usize];
    match random.below(100) {
        0..12 => relocate(&teller, tag, &mut random).await,
        12..15 => change_classes(&teller, &mut random).await,
        15..30 => {
            let offset = random.below(size + 1);
            let len = 1 + random.below(24 << 10);
            teller.read(tag, offset, len as usize).await;
        }
        30..35 => teller.read(tag, 0, size as usize + 100).await,
        35..38 => teller.rename(tag, name),
        38..40 => teller.delete(tag).await,
        40..42 => drop(teller.sync_all().await),
        42..44 => teller.checkpoint().await,
        44..46 => teller.set_attributes(tag, &attributes(&mut random)),
        46..48 => {
            let path = teller.rig.files[random.below(teller.rig.files.len() as u64) as usize].0;
            teller.adopt(name, path);
        }
        // An adopted file can be read only.
        _ if teller.is_adopted(tag) => teller.read(tag, 0, size as usize).await,
        48..52 if teller.transforms.get() => {
            if random.below(2) == 0 {
                teller.alter(tag, &transform(&mut random)).await;
            } else {
                teller.optimize(tag).await;
            }
        }
        48..62 => teller.sync(tag).await,
        62..67 => {
            let offset = place(&mut random, size);
            teller.punch(tag, offset, 1 + random.below(20 << 10)).await;
        }
        67..71 => {
            let size = random.below(LARGEST);
            teller.resize(tag, place(&mut random, size)).await;
        }
        _ => write(&teller, tag, size, &mut random).await,
    }
}

async fn relocate(teller: &Teller, tag: Tag, random: &mut SplitMix64) {
    let first = random.below(6);
    let chunks = match random.below(3) {
        0 => 0..u64::MAX,
        1 => first..first + 1,
        _ => first..first + 3,
    };
    let class = CLASSES[random.below(CLASSES.len() as u64) as usize];
    match random.below(5) {
        0 => teller.drop_mirrors(tag, chunks),
        1 | 2 => teller.move_to(tag, chunks, class, &relocation(random)).await,
        _ => teller.mirror_to(tag, chunks, class, &relocation(random)).await,
    }
}

async fn change_classes(teller: &Teller, random: &mut SplitMix64) {
    let class = CLASSES[random.below(CLASSES.len() as u64) as usize];
    match random.below(6) {
        0 | 1 => teller.add_class("middle", 1).await,
        2 => teller.drain_class(class, &relocation(random)).await,
        3 => teller.fill_class(class).await,
        4 => teller.remove_class(class).await,
        _ => {
            let chunks = 4 + random.below(20);
            teller.resize_class(class, chunks, &relocation(random)).await;
        }
    }
}

fn relocation(random: &mut SplitMix64) -> Relocation {
    let concurrency = 1 + random.below(4) as usize;
    let bytes_per_second = (random.below(4) == 0).then_some(16 << 20);
    Relocation {
        budget: Budget { concurrency, bytes_per_second, ..Budget::default() },
        ..Relocation::default()
    }
}

async fn write(teller: &Teller, tag: Tag, size: u64, random: &mut SplitMix64) {
    // Within the object, at its end, or behind it.
    let offset = match random.below(8) {
        0 => size,
        1 => size + random.below(16 << 10),
        _ => random.below(size.max(1)),
    };
    let (offset, len) = match random.below(4) {
        // Any bytes.
        0 => (offset, 1 + random.below(10 << 10)),
        // Whole chunks.
        1 => (offset / 8192 * 8192, 8192 * (1 + random.below(2))),
        // Whole blocks.
        _ => (offset / 4096 * 4096, 4096 * (1 + random.below(4))),
    };
    teller.write(tag, offset.min(LARGEST), len as usize).await;
}

/// An offset up to `most`, on a boundary half of the time.
fn place(random: &mut SplitMix64, most: u64) -> u64 {
    let offset = random.below(most + 1);
    match random.below(4) {
        0 => offset / 8192 * 8192,
        1 => offset / 4096 * 4096,
        _ => offset,
    }
}

fn attributes(random: &mut SplitMix64) -> Attributes {
    let class = |random: &mut SplitMix64| CLASSES[random.below(CLASSES.len() as u64) as usize].to_owned();
    Attributes {
        class: (random.below(2) == 0).then(|| class(random)),
        pin: (random.below(12) == 0).then(|| class(random)),
        quota_bytes: (random.below(10) == 0).then(|| 8192 * (1 + random.below(4))),
        ..Attributes::default()
    }
}

/// A compression and a key, or none of one of them or of both.
fn transform(random: &mut SplitMix64) -> Attributes {
    let compression = match random.below(5) {
        0 => Compression::None,
        1 => Compression::Zstd(1),
        2 => Compression::Zlib(1),
        _ => Compression::Lz4,
    };
    let encryption = [None, None, Some(1), Some(2)][random.below(4) as usize];
    let page_bytes = Some(if random.below(4) == 0 { 4096 } else { 8192 });
    Attributes { compression, encryption, page_bytes, ..Attributes::default() }
}
