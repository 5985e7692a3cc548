//! What survives a power cut: all that a completed sync covered, and any part of the rest.

use std::collections::BTreeSet;

use tanada_base::SplitMix64;
use tanada_io::{Buffer, BufferPool};
use tanada_sim::{DiskOptions, Simulation, Tearing, World};

fn filled(value: u8) -> Buffer {
    let mut buffer = BufferPool::new(0).allocate(4096);
    buffer.fill(value);
    buffer
}

/// First bytes of the pages of disk `no`, for many outcomes of a cut now.
fn outcomes(world: &World, no: usize) -> BTreeSet<Vec<u8>> {
    let wreck = world.wreck();
    let mut random = SplitMix64::new(77);
    (0..500)
        .map(|_| {
            let image = &wreck.survivors(&mut random)[no].1;
            image.to_bytes().chunks(4096).map(|page| page[0]).collect()
        })
        .collect()
}

#[test]
fn synced_writes_survive_and_later_ones_in_any_combination() {
    let run = Simulation::run(4, |world| async move {
        let device = world.disk(DiskOptions::named("disk")).device();
        for page in 0..3 {
            device.write(page * 4096, filled(1)).await.unwrap();
        }
        device.sync().await.unwrap();
        assert_eq!(outcomes(&world, 0), BTreeSet::from([vec![1, 1, 1]]));
        device.write(0, filled(2)).await.unwrap();
        device.write(4096, filled(3)).await.unwrap();
        let expected = [[1, 1, 1], [2, 1, 1], [1, 3, 1], [2, 3, 1]].map(|pages| pages.to_vec());
        assert_eq!(outcomes(&world, 0), BTreeSet::from(expected));
    });
    run.outcome.unwrap();
}

/// The kernel's promise is for writes that had completed when the sync was called.
#[test]
fn a_sync_covers_no_write_that_was_in_flight_when_it_was_started() {
    let covered = |seed| {
        let run = Simulation::run(seed, |world| async move {
            let device = world.disk(DiskOptions::named("disk")).device();
            device.write(0, filled(1)).await.unwrap();
            let (writer, syncer) = (device.clone(), device.clone());
            let write = world.spawn(async move { writer.write(0, filled(2)).await.map(|_| ()) });
            let sync = world.spawn(async move { syncer.sync().await });
            sync.await.unwrap();
            write.await.unwrap();
            outcomes(&world, 0)
        });
        run.outcome.unwrap()
    };
    for seed in 0..50 {
        assert_eq!(covered(seed), BTreeSet::from([vec![1], vec![2]]), "seed {seed}");
    }
}

#[test]
fn a_write_in_flight_may_be_there_already() {
    let run = Simulation::run(1, |world| async move {
        let device = world.disk(DiskOptions::named("disk")).device();
        let task = world.spawn(async move { device.write(0, filled(7)).await.map(|_| ()) });
        world.sleep(std::time::Duration::from_nanos(1)).await;
        assert!(!task.is_finished());
        outcomes(&world, 0)
    });
    assert!(run.outcome.unwrap().is_superset(&BTreeSet::from([vec![], vec![7]])));
}

/// One disk keeps every change and the other loses every change far more often than the changes' own luck would have
/// it.
#[test]
fn disks_lose_independently() {
    let run = Simulation::run(1, |world| async move {
        let devices = ["data", "journal"].map(|name| world.disk(DiskOptions::named(name)).device());
        for page in 0..20 {
            for device in &devices {
                device.write(page * 8192, filled(7)).await.unwrap();
            }
        }
        let wreck = world.wreck();
        let mut random = SplitMix64::new(1);
        let kept = |_| {
            let survivors = wreck.survivors(&mut random);
            let count =
                |no: usize| survivors[no].1.to_bytes().chunks(8192).filter(|page| page[0] == 7).count();
            (count(0), count(1))
        };
        (0..1000).map(kept).collect::<BTreeSet<_>>()
    });
    let seen = run.outcome.unwrap();
    for both in [(0, 0), (20, 20), (0, 20), (20, 0), (1, 19)] {
        assert!(seen.contains(&both), "{both:?}");
    }
}

#[test]
fn a_grown_file_may_lose_its_size_with_or_without_its_data() {
    let run = Simulation::run(1, |world| async move {
        let device = world.disk(DiskOptions::named("disk")).device();
        device.write(0, filled(1)).await.unwrap();
        device.sync().await.unwrap();
        device.write(4096, filled(2)).await.unwrap();
        device.write(8192, filled(3)).await.unwrap();
        let wreck = world.wreck();
        let mut random = SplitMix64::new(7);
        (0..2000)
            .map(|_| {
                let bytes = wreck.disks()[0].survivor(&mut random, Tearing::Any).to_bytes();
                let last = bytes.rchunks(512).next().map(|sector| sector[0]);
                (bytes.len(), last)
            })
            .collect::<BTreeSet<_>>()
    });
    let seen = run.outcome.unwrap();
    // The size went ahead of all data; it stops in the middle of data that another write followed; it is the old one.
    for outcome in [(12288, Some(0)), (8192 + 512, Some(3)), (4096, Some(1))] {
        assert!(seen.contains(&outcome), "{outcome:?} in {seen:?}");
    }
}

#[test]
fn a_restarted_simulation_finds_surviving_data() {
    let run = Simulation::run(1, |world| async move {
        let device = world.disk(DiskOptions::named("disk")).device();
        device.write(0, filled(1)).await.unwrap();
        device.sync().await.unwrap();
        device.write(0, filled(2)).await.unwrap();
        world.cut_power();
        std::future::pending::<()>().await;
    });
    for (tearing, expected) in
        [(Tearing::LoseAll, 1), (Tearing::KeepAll, 2), (Tearing::LoseOne, 1), (Tearing::KeepOne, 2)]
    {
        let survivors = run.wreck.survivors_of(tearing, &mut SplitMix64::new(0));
        let second = Simulation::run(2, |world| async move {
            let (name, image) = survivors.into_iter().next().expect("a disk");
            let device = world.disk_with(DiskOptions::named(name), image).device();
            device.read(0, filled(0)).await.unwrap()[0]
        });
        assert_eq!(second.outcome.unwrap(), expected, "{tearing:?}");
    }
}
