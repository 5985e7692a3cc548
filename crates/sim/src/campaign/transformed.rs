//! Stories of objects whose pages are compressed and encrypted.

use tanada_base::SplitMix64;
use tanada_volume::{Attributes, Compression, Relocation};

use super::busy as random_work;
use super::teller::Teller;
use crate::oracle::{CHUNK_BYTES as CHUNK, Tag};

fn transform(compression: Compression, encryption: Option<u16>) -> Attributes {
    Attributes { compression, encryption, page_bytes: Some(CHUNK as u32), ..Attributes::default() }
}

/// The random work of the story `busy`, on objects that have transforms and get others.
pub(super) async fn busy(teller: &Teller) {
    teller.transforms.set(true);
    random_work::tell(teller, 4, 30).await;
}

/// Pages that are written as a whole and in part, overwritten, cut, punched, moved and mirrored, each with its sync.
pub(super) async fn pages(teller: &Teller) -> Teller {
    let tag = teller.create("a", &transform(Compression::Lz4, None)).unwrap_or_default();
    teller.write(tag, 0, 3 * CHUNK as usize).await;
    teller.write(tag, 3 * CHUNK + 700, 5000).await;
    teller.sync(tag).await;
    for page in 0..4 {
        teller.write(tag, page % 3 * CHUNK, CHUNK as usize).await;
    }
    teller.write(tag, 1000, 300).await;
    teller.write(tag, 2 * CHUNK - 100, 200).await;
    teller.sync(tag).await;
    teller.resize(tag, CHUNK + 1000).await;
    teller.sync(tag).await;
    teller.write(tag, 2 * CHUNK, 4096).await;
    teller.read(tag, 0, 4 * CHUNK as usize).await;
    teller.sync(tag).await;
    teller.punch(tag, 500, CHUNK).await;
    teller.write(tag, 5 * CHUNK, 2 * CHUNK as usize).await;
    teller.sync(tag).await;
    teller.move_to(tag, 0..u64::MAX, "fast", &Relocation::default()).await;
    teller.write(tag, 0, CHUNK as usize).await;
    teller.move_to(tag, 0..u64::MAX, "slow", &Relocation::default()).await;
    teller.mirror_to(tag, 0..2, "fast", &Relocation::default()).await;
    teller.write(tag, 0, 2 * CHUNK as usize).await;
    teller.sync(tag).await;
    let Some(teller) = teller.reopened().await else { return teller.clone() };
    teller.read(tag, 0, 8 * CHUNK as usize).await;
    teller.resize(tag, 0).await;
    teller.sync(tag).await;
    teller.write(tag, 100, CHUNK as usize).await;
    teller.sync(tag).await;
    teller
}

/// A plain object gets a transform, others after that, and all of its pages are written anew.
pub(super) async fn altering(teller: &Teller) -> Teller {
    let tag = teller.create("a", &Attributes::default()).unwrap_or_default();
    teller.write(tag, 0, 9 * CHUNK as usize + 700).await;
    teller.sync(tag).await;
    teller.write(tag, CHUNK, 5000).await;
    teller.alter(tag, &transform(Compression::Zstd(1), None)).await;
    teller.write(tag, 0, 2 * CHUNK as usize).await;
    teller.write(tag, 10 * CHUNK, 3000).await;
    teller.sync(tag).await;
    teller.alter(tag, &transform(Compression::Zlib(1), Some(1))).await;
    teller.write(tag, 3 * CHUNK + 100, CHUNK as usize).await;
    teller.sync(tag).await;
    teller.optimize(tag).await;
    teller.alter(tag, &transform(Compression::None, Some(2))).await;
    teller.optimize(tag).await;
    let Some(teller) = teller.reopened().await else { return teller.clone() };
    teller.read(tag, 0, 11 * CHUNK as usize).await;
    teller.alter(tag, &transform(Compression::None, None)).await;
    teller.write(tag, 0, CHUNK as usize).await;
    teller.optimize(tag).await;
    teller
}

/// What InnoDB does: changes go to a log and are synced there; pages are written as a whole, some time later, by
/// several writers, and a sync covers them before a checkpoint lets the log go. By chance with a doublewrite area,
/// where the pages are written and synced first.
pub(super) async fn database(teller: &Teller) {
    let mut random = teller.world.random();
    let has_doublewrite = random.below(2) == 0;
    let compression = [Compression::Lz4, Compression::Zstd(1)][random.below(2) as usize];
    let encryption = (random.below(3) == 0).then_some(1);
    let space = teller.create("space.ibd", &transform(compression, encryption)).unwrap_or_default();
    let log = teller.create("log", &Attributes::default()).unwrap_or_default();
    let doublewrite = teller.create("doublewrite", &Attributes::default()).unwrap_or_default();
    teller.write(space, 0, 6 * CHUNK as usize).await;
    teller.sync_all().await;
    let cleaners: Vec<_> = (0..3_u64)
        .map(|cleaner| {
            let (teller, seed) = (teller.clone(), random.next_u64());
            let world = teller.world.clone();
            world.spawn(async move {
                let mut random = SplitMix64::new(seed);
                for _ in 0..6 {
                    // Each has pages of its own, as a page is latched while it is written.
                    let page = cleaner * 2 + random.below(2);
                    flush(&teller, [space, log, doublewrite], page, cleaner, has_doublewrite).await;
                }
            })
        })
        .collect();
    for cleaner in cleaners {
        cleaner.await;
    }
    teller.sync(space).await;
}

async fn flush(teller: &Teller, objects: [Tag; 3], page: u64, cleaner: u64, has_doublewrite: bool) {
    let [space, log, doublewrite] = objects;
    let end = teller.size(log);
    teller.write(log, end % (4 * CHUNK) / 512 * 512, 512).await;
    teller.sync(log).await;
    if has_doublewrite {
        teller.write(doublewrite, cleaner * CHUNK, CHUNK as usize).await;
        teller.sync(doublewrite).await;
    }
    teller.write(space, page * CHUNK, CHUNK as usize).await;
    if page.is_multiple_of(2) {
        teller.sync(space).await;
    }
}
