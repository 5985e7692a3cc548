//! Each fault does what it says, and nothing else.

use tanada_io::{Buffer, BufferPool, Device, ErrorKind, Operation};
use tanada_sim::{DiskImage, DiskOptions, Fault, Rule, SimDisk, Simulation, Tearing, When, World};

fn filled(len: usize, value: u8) -> Buffer {
    let mut buffer = BufferPool::new(0).allocate(len);
    buffer.fill(value);
    buffer
}

/// Runs `body` with a disk of 64 KiB of ones, for many seeds.
fn with_disk<T: 'static, F: Future<Output = T> + 'static>(
    body: impl Fn(World, SimDisk, Device) -> F,
) -> Vec<T> {
    let run = |seed| {
        Simulation::run(seed, |world| {
            let image = DiskImage::from_bytes(&[1; 65536]);
            let disk = world.disk_with(DiskOptions::named("disk"), image);
            let device = disk.device();
            body(world, disk, device)
        })
        .outcome
        .unwrap()
    };
    (0..50).map(run).collect()
}

#[test]
fn a_failed_read_is_an_error_and_the_next_one_is_not() {
    with_disk(|world, _, device| async move {
        let rule = world.inject(Rule::nth(Fault::Error, 1).of(Operation::Read));
        assert!(device.read(0, filled(512, 0)).await.is_ok());
        assert_eq!(device.read(0, filled(512, 0)).await.unwrap_err().kind(), ErrorKind::Device);
        assert_eq!(device.read(0, filled(512, 0)).await.unwrap()[0], 1);
        assert_eq!(world.struck(rule), 1);
    });
}

#[test]
fn a_failed_write_leaves_any_of_its_sectors() {
    let left = with_disk(|world, disk, device| async move {
        world.inject(Rule::nth(Fault::Error, 0));
        assert_eq!(device.write(4096, filled(2048, 2)).await.unwrap_err().kind(), ErrorKind::Device);
        let bytes = disk.cache().to_bytes();
        assert!(bytes[..4096].iter().chain(&bytes[6144..]).all(|byte| *byte == 1));
        assert!(bytes.chunks(512).all(|sector| sector.iter().all(|byte| *byte == sector[0])));
        bytes[4096..6144].iter().filter(|byte| **byte == 2).count() / 512
    });
    assert!((0..=4).all(|sectors| left.contains(&sectors)), "{left:?}");
}

#[test]
fn short_transfers_are_carried_on_by_the_device() {
    with_disk(|world, disk, device| async move {
        let rule = world.inject(Rule::new(Fault::Short, When::Nth(0)));
        device.write(0, filled(8192, 2)).await.unwrap();
        assert_eq!(&disk.cache().to_bytes()[..8192], [2; 8192]);
        world.inject(Rule::new(Fault::Short, When::Nth(0)));
        let read = device.read(4096, filled(8192, 0)).await.unwrap();
        assert_eq!((&read[..4096], &read[4096..]), (&[2; 4096][..], &[1; 4096][..]));
        assert_eq!(world.struck(rule), 1);
        assert!(world.ios() >= 4);
    });
}

#[test]
fn a_full_disk_writes_partially_and_reports_it() {
    let run = Simulation::run(1, |world| async move {
        let disk = world.disk(DiskOptions { capacity_bytes: 4096, ..DiskOptions::named("small") });
        let device = disk.device();
        device.write(0, filled(2048, 1)).await.unwrap();
        let error = device.write(2048, filled(4096, 2)).await.unwrap_err();
        assert_eq!((error.kind(), disk.cache().size_bytes()), (ErrorKind::NoSpace, 4096));
        assert!(device.write(0, filled(4096, 3)).await.is_ok(), "a full disk is no broken one");
        world.inject(Rule::nth(Fault::NoSpace, 0));
        assert_eq!(device.write(0, filled(512, 4)).await.unwrap_err().kind(), ErrorKind::NoSpace);
        assert_eq!(disk.cache().to_bytes(), [3; 4096]);
        let block =
            DiskOptions { capacity_bytes: 8192, is_block_device: true, ..DiskOptions::named("block") };
        assert_eq!(world.disk(block).device().size_bytes().unwrap(), 8192);
    });
    run.outcome.unwrap();
}

/// After a failed sync the unsynced data is lost or kept, and no later sync changes that.
#[test]
fn a_failed_sync_leaves_the_unsynced_undefined_for_ever() {
    let outcomes = with_disk(|world, disk, device| async move {
        device.write(0, filled(512, 2)).await.unwrap();
        world.inject(Rule::nth(Fault::Error, 0).of(Operation::Sync));
        assert_eq!(device.sync().await.unwrap_err().kind(), ErrorKind::Device);
        assert!(device.write(0, filled(512, 3)).await.is_err(), "the device takes no more writes");
        // Another handle of the same file may sync: that succeeds and covers nothing of the past.
        let other = disk.device();
        other.write(512, filled(512, 4)).await.unwrap();
        other.sync().await.unwrap();
        let wreck = world.wreck();
        assert_eq!(wreck.pending_changes(), 0);
        let durable = wreck.disks()[0].durable().to_bytes();
        assert_eq!(durable[512], 4);
        (durable[0], disk.cache().to_bytes()[0])
    });
    for outcome in [(1, 1), (1, 2), (2, 2)] {
        assert!(outcomes.contains(&outcome), "(durable, seen) {outcome:?} in {outcomes:?}");
    }
    assert!(!outcomes.contains(&(2, 1)));
}

#[test]
fn a_misdirected_write_hits_other_sectors() {
    with_disk(|world, disk, device| async move {
        world.inject(Rule::nth(Fault::Misdirected, 0));
        device.write(8192, filled(512, 2)).await.unwrap();
        let bytes = disk.cache().to_bytes();
        let hit: Vec<usize> =
            bytes.chunks(512).enumerate().filter(|(_, sector)| sector[0] == 2).map(|(no, _)| no).collect();
        assert_eq!(hit.len(), 1);
        assert_ne!(hit[0], 16);
    });
}

#[test]
fn flipped_bits_are_one_and_stay_only_when_written() {
    let wrong = |bytes: &[u8], right: u8| bytes.iter().map(|byte| (byte ^ right).count_ones()).sum::<u32>();
    with_disk(move |world, disk, device| async move {
        world.inject(Rule::nth(Fault::FlipOnRead, 0));
        assert_eq!(wrong(&device.read(0, filled(4096, 0)).await.unwrap(), 1), 1);
        assert_eq!(wrong(&device.read(0, filled(4096, 0)).await.unwrap(), 1), 0);
        world.inject(Rule::nth(Fault::FlipOnWrite, 0));
        device.write(0, filled(4096, 2)).await.unwrap();
        assert_eq!(wrong(&disk.cache().to_bytes()[..4096], 2), 1);
        disk.tamper(|image| image.flip(4096, 0));
        assert_eq!(disk.cache().to_bytes()[4096], 0);
    });
}

#[test]
fn lost_writes_punches_and_syncs_are_reported_as_done() {
    with_disk(|world, disk, device| async move {
        for fault in [Fault::LostWrite, Fault::LostPunch, Fault::LyingSync] {
            world.inject(Rule::nth(fault, 0));
        }
        device.write(0, filled(512, 2)).await.unwrap();
        device.punch(0, 4096).await.unwrap();
        assert_eq!(disk.cache().to_bytes(), [1; 65536]);
        device.write(0, filled(512, 2)).await.unwrap();
        device.sync().await.unwrap();
        let durable = |world: &World| world.wreck().disks()[0].durable().to_bytes()[0];
        assert_eq!(durable(&world), 1);
        device.sync().await.unwrap();
        assert_eq!(durable(&world), 2);
    });
}

/// The pattern of campaigns: fail the n-th I/O until none fails.
#[test]
fn the_nth_fault_reaches_every_io_and_then_none() {
    let struck = |n| {
        let run = Simulation::run(9, move |world| async move {
            let rule = world.inject(Rule::nth(Fault::Error, n));
            let device = world.disk(DiskOptions::named("disk")).device();
            let mut failed = 0;
            for step in 0..3 {
                failed += u32::from(device.write(step * 512, filled(512, 1)).await.is_err());
                failed += u32::from(device.sync().await.is_err());
            }
            assert_eq!(failed > 0, world.struck(rule) > 0);
            world.struck(rule)
        });
        run.outcome.unwrap()
    };
    assert_eq!((0..8).map(struck).collect::<Vec<_>>(), [1, 1, 1, 1, 1, 1, 0, 0]);
}

#[test]
fn a_punch_frees_and_may_be_lost_by_a_power_cut() {
    let seen = with_disk(|world, disk, device| async move {
        device.punch(0, 8192).await.unwrap();
        let bytes = disk.cache().to_bytes();
        assert_eq!((&bytes[..8192], bytes.len()), (&[0; 8192][..], 65536));
        let survivors = world.wreck().survivors_of(Tearing::Any, &mut world.random());
        survivors[0].1.to_bytes()[..8192].chunks(512).filter(|sector| sector[0] == 0).count()
    });
    assert!(
        seen.contains(&0) && seen.contains(&16) && seen.iter().any(|count| (1..16).contains(count)),
        "{seen:?}"
    );
}
