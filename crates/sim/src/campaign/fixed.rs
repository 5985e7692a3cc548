//! Fixed stories: short ones, each about one thing, whose every point is a power cut.

use std::time::Duration;

use tanada_volume::{Attributes, Relocation};

use super::teller::Teller;
use crate::oracle::{CHUNK_BYTES as CHUNK, FIRST_FILE, Tag, pattern};

fn plain(teller: &Teller, name: &str) -> Tag {
    teller.create(name, &Attributes::default()).unwrap_or_default()
}

/// An object of `chunks` chunks, synced.
async fn written(teller: &Teller, name: &str, chunks: u64) -> Tag {
    let tag = plain(teller, name);
    teller.write(tag, 0, (chunks * CHUNK) as usize).await;
    teller.sync(tag).await;
    tag
}

/// First writes, in whole chunks and in parts, then overwriting, each with its sync.
pub(super) async fn writing(teller: &Teller) {
    let tag = plain(teller, "a");
    teller.write(tag, 0, 3 * CHUNK as usize).await;
    teller.write(tag, 3 * CHUNK + 700, 5000).await;
    teller.sync(tag).await;
    teller.write(tag, CHUNK, CHUNK as usize).await;
    teller.write(tag, 1000, 300).await;
    teller.write(tag, 2 * CHUNK - 100, 200).await;
    teller.sync(tag).await;
    teller.write(tag, 5 * CHUNK, 4096).await;
}

/// Truncating within a chunk, and growing over what was cut off.
pub(super) async fn truncating(teller: &Teller) {
    let tag = written(teller, "a", 3).await;
    teller.resize(tag, CHUNK + 1000).await;
    teller.sync(tag).await;
    teller.resize(tag, 2 * CHUNK).await;
    teller.read(tag, 0, 2 * CHUNK as usize).await;
    teller.sync(tag).await;
    teller.resize(tag, 100).await;
    teller.write(tag, 4096, 8192).await;
    teller.sync(tag).await;
    teller.resize(tag, 0).await;
    teller.resize(tag, CHUNK).await;
    teller.sync(tag).await;
    teller.read(tag, 0, CHUNK as usize).await;
}

/// Punching parts of chunks and whole ones, and writing there again.
pub(super) async fn punching(teller: &Teller) {
    let tag = written(teller, "a", 4).await;
    teller.punch(tag, 1000, 2000).await;
    teller.punch(tag, CHUNK, CHUNK).await;
    teller.read(tag, 0, 4 * CHUNK as usize).await;
    teller.sync(tag).await;
    teller.punch(tag, CHUNK + 4096, 2 * CHUNK).await;
    teller.write(tag, CHUNK + 512, 600).await;
    teller.sync(tag).await;
    teller.punch(tag, 0, u64::from(u32::MAX)).await;
    teller.sync(tag).await;
}

/// Names that change hands, and space that does.
pub(super) async fn naming(teller: &Teller) {
    let first = written(teller, "a", 6).await;
    let second = written(teller, "b", 2).await;
    teller.rename(second, "c");
    teller.delete(first).await;
    teller.rename(second, "a");
    let third = plain(teller, "b");
    teller.write(third, 0, 6 * CHUNK as usize).await;
    teller.sync(third).await;
    teller.delete(second).await;
    let fourth = plain(teller, "a");
    teller.write(fourth, 0, 14 * CHUNK as usize).await;
    teller.sync_all().await;
}

/// Moving chunks while they are written and read.
pub(super) async fn moving(teller: &Teller) {
    let tag = written(teller, "a", 4).await;
    let mover = {
        let teller = teller.clone();
        let world = teller.world.clone();
        world.spawn(async move {
            teller.move_to(tag, 0..u64::MAX, "fast", &Relocation::default()).await;
        })
    };
    teller.write(tag, 0, 4096).await;
    teller.read(tag, 0, 4 * CHUNK as usize).await;
    teller.write(tag, 3 * CHUNK + 100, 200).await;
    teller.sync(tag).await;
    mover.await;
    teller.write(tag, CHUNK, 4096).await;
    teller.move_to(tag, 1..3, "slow", &Relocation::default()).await;
    // A chunk that no sync has covered yet.
    teller.write(tag, 4 * CHUNK, 5000).await;
    teller.move_to(tag, 4..5, "fast", &Relocation::default()).await;
    teller.sync(tag).await;
}

/// Mirrors: made, written through, dropped, made again.
pub(super) async fn mirroring(teller: &Teller) {
    let tag = written(teller, "a", 3).await;
    teller.mirror_to(tag, 0..u64::MAX, "fast", &Relocation::default()).await;
    teller.read(tag, 0, 3 * CHUNK as usize).await;
    teller.write(tag, 0, 4096).await;
    teller.sync(tag).await;
    teller.drop_mirrors(tag, 1..2);
    teller.write(tag, CHUNK, 8192).await;
    teller.mirror_to(tag, 0..2, "fast", &Relocation::default()).await;
    teller.punch(tag, 2 * CHUNK, CHUNK).await;
    teller.read(tag, 0, 3 * CHUNK as usize).await;
    // A chunk that no sync has covered yet.
    teller.write(tag, 3 * CHUNK, 3000).await;
    teller.mirror_to(tag, 3..4, "fast", &Relocation::default()).await;
    teller.write(tag, 3 * CHUNK + 3000, 10).await;
    teller.sync(tag).await;
}

/// Classes that come, are emptied, go, and change their size.
pub(super) async fn changing_classes(teller: &Teller) {
    let tag = written(teller, "a", 5).await;
    teller.add_class("middle", 1).await;
    teller.move_to(tag, 0..2, "middle", &Relocation::default()).await;
    teller.drain_class("slow", &Relocation::default()).await;
    teller.write(tag, 0, CHUNK as usize).await;
    teller.remove_class("slow").await;
    teller.sync(tag).await;
    teller.add_class("slow", 2).await;
    teller.resize_class("middle", 4, &Relocation::default()).await;
    teller.write(tag, 5 * CHUNK, 2 * CHUNK as usize).await;
    teller.sync(tag).await;
}

/// More changes of the metadata than the journal holds, so that checkpoints come by themselves.
pub(super) async fn filling_the_journal(teller: &Teller) {
    let first = written(teller, "a", 2).await;
    let second = written(teller, "b", 1).await;
    for round in 0..18 {
        teller.punch(first, CHUNK, CHUNK).await;
        teller.write(first, CHUNK, 4096).await;
        teller.rename(second, ["c", "b"][round % 2]);
        teller.sync(first).await;
    }
}

/// An adopted file with mirrors, that changes behind the volume's back.
pub(super) async fn adopting(teller: &Teller) -> Teller {
    let path = "first.ibd";
    let tag = teller.adopt("a", path).unwrap_or_default();
    teller.mirror_to(tag, 0..u64::MAX, "fast", &Relocation::default()).await;
    teller.read(tag, 0, 20 << 10).await;
    teller.sync_all().await;
    let mut bytes = vec![0; 1000];
    pattern(FIRST_FILE, 1, 9000, &mut bytes);
    teller.tamper(tag, path, 9000, &bytes);
    teller.check_adopted();
    teller.read(tag, 0, 20 << 10).await;
    teller.mirror_to(tag, 1..2, "fast", &Relocation::default()).await;
    teller.read(tag, 8000, 5000).await;
    teller.sync_all().await;
    pattern(FIRST_FILE, 2, 100, &mut bytes);
    teller.tamper(tag, path, 100, &bytes);
    let Some(teller) = teller.reopened().await else { return teller.clone() };
    teller.read(tag, 0, 20 << 10).await;
    teller.delete(tag).await;
    teller.sync_all().await;
    teller
}

/// Clean stops, with work between them.
pub(super) async fn stopping(teller: &Teller) -> Teller {
    let tag = written(teller, "a", 2).await;
    teller.resize(tag, CHUNK + 100).await;
    let Some(teller) = teller.reopened().await else { return teller.clone() };
    teller.read(tag, 0, 2 * CHUNK as usize).await;
    teller.resize(tag, 2 * CHUNK).await;
    teller.write(tag, 0, 100).await;
    teller.sync(tag).await;
    let Some(teller) = teller.reopened().await else { return teller.clone() };
    teller.read(tag, 0, 2 * CHUNK as usize).await;
    teller.write(tag, 3 * CHUNK, 4096).await;
    teller
}

/// Classes that are full: what is refused leaves all else as it was, and what is freed is used again.
pub(super) async fn filling_classes(teller: &Teller) {
    let first = written(teller, "a", 16).await;
    let second = plain(teller, "b");
    teller.write(second, 0, 14 * CHUNK as usize).await;
    teller.sync(second).await;
    let third = plain(teller, "c");
    teller.write(third, 0, 2 * CHUNK as usize).await;
    teller.read(first, 0, 16 * CHUNK as usize).await;
    teller.punch(first, 2 * CHUNK, 3 * CHUNK).await;
    teller.write(third, 0, 2 * CHUNK as usize).await;
    teller.sync(third).await;
    teller.resize(second, CHUNK).await;
    teller.write(third, 2 * CHUNK, 4 * CHUNK as usize).await;
    teller.sync_all().await;
}

/// Writes that are given up, by the object and by its device, and what is asked for right behind them.
pub(super) async fn giving_up(teller: &Teller) {
    let tag = written(teller, "a", 3).await;
    for round in 0..40 {
        let (writer, offset) = (teller.clone(), round % 3 * 4096);
        let len = if round % 5 == 4 { 2 * CHUNK as usize } else { CHUNK as usize / 2 };
        let task = teller.world.spawn(async move { writer.write(tag, offset, len).await });
        teller.world.sleep(Duration::from_micros(10 + 7 * round)).await;
        if !task.is_finished() {
            task.abort();
            teller.count("give up");
        }
        match round % 8 {
            3 => teller.resize(tag, 3 * CHUNK - round).await,
            5 => teller.move_to(tag, 0..2, "fast", &Relocation::default()).await,
            6 => teller.move_to(tag, 0..2, "slow", &Relocation::default()).await,
            7 => teller.sync(tag).await,
            _ => teller.write(tag, offset, 4096).await,
        }
        teller.read(tag, 0, 3 * CHUNK as usize).await;
        // By then even a slow disk is done with what was given up.
        teller.world.sleep(Duration::from_millis(3)).await;
        teller.read(tag, 0, 3 * CHUNK as usize).await;
    }
    teller.sync(tag).await;
}

/// Several who write and sync at once, and share the journal's syncs.
pub(super) async fn syncing_together(teller: &Teller) {
    let tags: Vec<Tag> = ["a", "b", "c"].into_iter().map(|name| plain(teller, name)).collect();
    let tasks: Vec<_> = tags
        .into_iter()
        .map(|tag| {
            let teller = teller.clone();
            let world = teller.world.clone();
            world.spawn(async move {
                for round in 0..3 {
                    teller.write(tag, round * 5000, 6000).await;
                    teller.sync(tag).await;
                    teller.world.sleep(Duration::from_micros(u64::from(tag) * 37)).await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await;
    }
    teller.sync_all().await;
}

/// What is said about objects: where they shall lie, and how large they may become.
pub(super) async fn attributes(teller: &Teller) -> Teller {
    let said = |class: Option<&str>, pin: Option<&str>, quota_bytes| Attributes {
        class: class.map(str::to_owned),
        pin: pin.map(str::to_owned),
        quota_bytes,
        ..Attributes::default()
    };
    let preferring = teller.create("a", &said(Some("fast"), None, None)).unwrap_or_default();
    teller.write(preferring, 0, 2 * CHUNK as usize).await;
    teller.lies_in(preferring, "fast");
    let pinned = teller.create("b", &said(None, Some("fast"), None)).unwrap_or_default();
    // More than there is room for.
    teller.write(pinned, 0, 6 * CHUNK as usize).await;
    teller.sync(pinned).await;
    let limited = teller.create("c", &said(None, None, Some(2 * CHUNK))).unwrap_or_default();
    teller.write(limited, 0, 2 * CHUNK as usize).await;
    teller.write(limited, 2 * CHUNK, 100).await;
    teller.lies_in(limited, "slow");
    teller.set_attributes(limited, &said(Some("fast"), None, Some(CHUNK)));
    teller.write(limited, 5 * CHUNK, 100).await;
    teller.sync(limited).await;
    teller.set_attributes(limited, &said(None, Some("slow"), Some(3 * CHUNK)));
    let Some(teller) = teller.reopened().await else { return teller.clone() };
    [preferring, pinned, limited].into_iter().for_each(|tag| teller.look_at(tag));
    teller.write(limited, 2 * CHUNK, 2 * CHUNK as usize).await;
    teller.lies_in(limited, "slow");
    teller.set_attributes(preferring, &said(None, None, None));
    teller.write(preferring, 2 * CHUNK, CHUNK as usize).await;
    teller.sync_all().await;
    teller
}
