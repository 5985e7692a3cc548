//! The file system under power cuts: what `fsync` has returned for is there, and a rename that replaces is whole or not
//! at all.

#![allow(clippy::unwrap_used)]

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use tanada_base::SplitMix64;
use tanada_io::BufferPool;
use tanada_mount::{FileSystem, Ino, Maker, ROOT, UNLINKED};
use tanada_sim::{DiskImage, DiskOptions, Simulation, World, Wreck};
use tanada_volume::{ClassSettings, OpenOptions, Parts, Volume, VolumeSettings};

const MAKER: Maker = Maker { mode: 0o600, uid: 1, gid: 1 };
const NAMES: [&str; 2] = ["metadata", "data"];
const RECORD: usize = 700;

/// What has been promised, and what is under way.
#[derive(Debug, Clone, Copy, Default)]
struct Promise {
    /// Versions of the file that is replaced: synced, and written.
    version: Option<u8>,
    next_version: Option<u8>,
    /// Records of the log: synced, and written.
    records: usize,
    written_records: usize,
    /// The folder has its second name: synced, and begun.
    is_moved: bool,
    may_be_moved: bool,
}

fn parts(devices: [tanada_io::Device; 2], world: &World) -> Parts {
    let [metadata, data] = devices;
    let mut parts = Parts::new(metadata).with_class("disk", vec![data]);
    parts.clock = world.clock();
    parts.buffers = BufferPool::new(0);
    parts
}

async fn create(world: &World) -> Volume {
    let devices = NAMES.map(|name| world.disk(DiskOptions::named(name)).device());
    let class =
        ClassSettings { name: "disk".to_owned(), segment_bytes: 16 << 10, size_bytes: 64 * (64 << 10) };
    let settings = VolumeSettings {
        id: *b"0123456789abcdef",
        chunk_bytes: 64 << 10,
        classes: vec![class],
        journal_bytes: 64 << 10,
        ..VolumeSettings::default()
    };
    Volume::create(parts(devices, world), &settings).await.unwrap()
}

async fn open(world: &World, images: Vec<(String, DiskImage)>) -> Arc<FileSystem> {
    let devices = NAMES.map(|wanted| {
        let (_, image) = images.iter().find(|(name, _)| name == wanted).unwrap();
        world.disk_with(DiskOptions::named(wanted), image.clone()).device()
    });
    let volume = Volume::open(parts(devices, world), &OpenOptions::default()).await.unwrap();
    FileSystem::open(volume, BufferPool::new(0)).await.unwrap()
}

fn version(no: u8) -> Vec<u8> {
    vec![no + 1; 5000 + usize::from(no) * 900]
}

fn record(no: usize) -> Vec<u8> {
    vec![no as u8 + 1; RECORD]
}

async fn write(system: &FileSystem, ino: Ino, offset: usize, bytes: &[u8]) {
    system.write(ino, offset as u64, system.buffer(bytes), false).await.unwrap();
}

/// Replaces a file by renames, appends to a log, renames the folder of the log, and writes to a file that is unlinked.
async fn story(system: Arc<FileSystem>, compression: &str, promise: Rc<Cell<Promise>>) {
    let note = |change: &dyn Fn(&mut Promise)| {
        let mut now = promise.get();
        change(&mut now);
        promise.set(now);
    };
    let folder = system.make_folder(ROOT, "old", MAKER).unwrap();
    system.set_extended(folder, "user.tanada.compression", Some(compression.as_bytes())).await.unwrap();
    let log = system.create(folder, "log", MAKER).unwrap();
    let hidden = system.create(folder, "hidden", MAKER).unwrap();
    system.sync_folder().await.unwrap();
    for no in 0..12_u8 {
        let temporary = system.create(folder, "file.new", MAKER).unwrap();
        write(&system, temporary, 0, &version(no)).await;
        system.sync_file(temporary, false).await.unwrap();
        system.close_file(temporary).await.unwrap();
        note(&|promise| promise.next_version = Some(no));
        system.rename((folder, "file.new"), (folder, "file"), true).await.unwrap();
        let records = usize::from(no) * 2..usize::from(no) * 2 + 2;
        for no in records.clone() {
            note(&|promise| promise.written_records = no + 1);
            write(&system, log, no * RECORD, &record(no)).await;
        }
        if no == 5 {
            write(&system, hidden, 0, &version(1)).await;
            system.unlink(folder, "hidden").await.unwrap();
            note(&|promise| promise.may_be_moved = true);
            system.rename((ROOT, "old"), (ROOT, "new"), true).await.unwrap();
        }
        if no % 2 == 0 {
            // What one file syncs covers the names of all, as they were before.
            system.sync_file(log, true).await.unwrap();
            note(&|promise| promise.records = records.end);
        } else {
            system.sync_folder().await.unwrap();
        }
        note(&|promise| promise.version = Some(no));
        note(&|promise| promise.is_moved = promise.may_be_moved);
    }
}

async fn content(system: &FileSystem, ino: Ino) -> Vec<u8> {
    system.read(ino, 0, 1 << 20).await.unwrap().to_vec()
}

/// What is wrong after a cut, if anything.
async fn judge(system: &FileSystem, promise: Promise) -> Option<String> {
    let (old, new) = (system.lookup(ROOT, "old"), system.lookup(ROOT, "new"));
    let folder = match (&old, &new) {
        (Ok(folder), Err(_)) if !promise.is_moved => *folder,
        (Err(_), Ok(folder)) if promise.may_be_moved => *folder,
        (Err(_), Err(_)) if promise.version.is_none() => return None,
        _ => return Some(format!("the folder is at {old:?} and {new:?}")),
    };
    let file: Option<Ino> = system.lookup(folder, "file").ok();
    let found = match file {
        Some(ino) => Some(content(system, ino).await),
        None => None,
    };
    let allowed = [promise.version, promise.next_version];
    if !allowed.iter().any(|no| no.map(version) == found) {
        let found = found.map(|found| (found.first().copied(), found.len()));
        return Some(format!("the file is {found:?}, of versions {allowed:?}"));
    }
    let log = match system.lookup(folder, "log") {
        Ok(ino) => content(system, ino).await,
        Err(_) if promise.version.is_none() => return None,
        Err(error) => return Some(format!("the log is gone: {error}")),
    };
    for no in 0..promise.records {
        if log.get(no * RECORD..(no + 1) * RECORD) != Some(&record(no)[..]) {
            return Some(format!("record {no} of {} is not there", promise.records));
        }
    }
    if log.len() > promise.written_records * RECORD {
        return Some(format!("the log has {} bytes, more than were written", log.len()));
    }
    let leftovers = system.lookup(ROOT, UNLINKED).is_ok();
    leftovers.then(|| "files without names are shown".to_owned())
}

/// Cuts the power at every I/O of the story; the number of cuts.
fn cut_everywhere(seed: u64, compression: &'static str) -> usize {
    let wrecks: Rc<RefCell<Vec<(Promise, Wreck)>>> = Rc::default();
    let noted = wrecks.clone();
    let run = Simulation::run(seed, |world| async move {
        let volume = create(&world).await;
        let system = FileSystem::open(volume, BufferPool::new(0)).await.unwrap();
        let promise: Rc<Cell<Promise>> = Rc::default();
        let (inner, now) = (world.clone(), promise.clone());
        world.observe(move |_| noted.borrow_mut().push((now.get(), inner.wreck())));
        story(system, compression, promise).await;
    });
    run.outcome.unwrap();
    let wrecks = wrecks.take();
    let mut random = SplitMix64::new(seed);
    for (no, (promise, wreck)) in wrecks.iter().enumerate() {
        for _ in 0..3 {
            let images = wreck.survivors(&mut random);
            let promise = *promise;
            let run = Simulation::run(seed, |world| async move {
                let system = open(&world, images).await;
                judge(&system, promise).await
            });
            if let Some(wrong) = run.outcome.unwrap() {
                panic!("seed {seed}, {compression}, a cut at I/O {no}: {wrong}; {promise:?}");
            }
        }
    }
    wrecks.len()
}

#[test]
fn power_cuts_lose_nothing_that_fsync_returned_for() {
    let mut cuts = 0;
    for seed in 1..4 {
        for compression in ["none", "lz4"] {
            cuts += cut_everywhere(seed, compression);
        }
    }
    assert!(cuts > 300, "{cuts} cuts");
}
