//! One corpus for every method, on executors and off them.

use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use futures::future::join_all;
use tanada_base::SplitMix64;
use tanada_io::{BufferPool, Device, DeviceOptions, Method, spawn_local};

use crate::{METHODS, executors, on_and_off_executors, open, random_file};

const SIZE: usize = 4 << 20;

/// Random reads, writes, punches and syncs against the same in memory.
async fn agrees_with_memory(device: Device, pool: Arc<BufferPool>, mut model: Vec<u8>, seed: u64) {
    let mut random = SplitMix64::new(seed);
    let unit = 4096;
    for _ in 0..600 {
        let units = 1 + random.below(64) as usize;
        let first = random.below((SIZE / unit - units) as u64 + 1) as usize;
        let range = first * unit..(first + units) * unit;
        let mut buffer = pool.allocate(range.len());
        match random.below(100) {
            0..50 => {
                let read = device.read(range.start as u64, buffer).await.unwrap();
                assert!(*read == model[range], "{:?} differs", device.method());
            }
            50..85 => {
                random.fill(&mut buffer);
                model[range.clone()].copy_from_slice(&buffer);
                device.write(range.start as u64, buffer).await.unwrap();
            }
            85..97 => {
                model[range.clone()].fill(0);
                device.punch(range.start as u64, range.len() as u64).await.unwrap();
            }
            _ => device.sync().await.unwrap(),
        }
    }
    let whole = device.read(0, pool.allocate(SIZE)).await.unwrap();
    assert!(*whole == *model);
    assert_eq!(device.size_bytes().unwrap(), SIZE as u64);
}

#[test]
fn random_operations_agree_with_a_model_in_memory() {
    let executors = executors(1);
    for method in METHODS {
        for on_executor in [false, true] {
            let (_folder, path, model) = random_file(SIZE, 1);
            let device = open(&path, method, true);
            let pool = executors.buffers().clone();
            let make = move || agrees_with_memory(device, pool, model, 2 + u64::from(on_executor));
            if on_executor {
                executors.block_on(make).unwrap();
            } else {
                futures::executor::block_on(make());
            }
        }
    }
}

#[test]
fn a_read_is_short_only_at_the_end_of_the_file() {
    let executors = executors(1);
    let len = 3 * 4096 + 1808;
    let (_folder, path, bytes) = random_file(len, 3);
    for method in METHODS {
        let (device, pool, bytes) = (open(&path, method, false), executors.buffers().clone(), bytes.clone());
        on_and_off_executors(&executors, move || {
            let (device, pool, bytes) = (device.clone(), pool.clone(), bytes.clone());
            async move {
                for (offset, want) in
                    [(0, 65536), (0, 4096), (8192, 8192), (12288, 4096), (16384, 4096), (1 << 40, 4096)]
                {
                    let read = device.read(offset as u64, pool.allocate(want)).await.unwrap();
                    assert_eq!(*read, bytes[offset.min(len)..(offset + want).min(len)], "{offset} {want}");
                }
                assert_eq!(device.read(0, pool.allocate(0)).await.unwrap().len(), 0);
            }
        });
    }
}

#[test]
fn hundreds_of_ios_at_once_do_not_mix_up() {
    let executors = executors(2);
    for method in METHODS {
        let (_folder, path, bytes) = random_file(SIZE, 4);
        let (device, pool, bytes) = (open(&path, method, true), executors.buffers().clone(), Arc::new(bytes));
        let run = move |no: u64| async move {
            let tasks = (0..256u64).map(|task| {
                let (device, pool, bytes) = (device.clone(), pool.clone(), bytes.clone());
                spawn_local(async move {
                    let mut random = SplitMix64::new(no * 1000 + task);
                    for _ in 0..20 {
                        // The first half is read by all; of the second, each task has a page of its own on each
                        // executor.
                        let at = random.below(128) as usize * 16384;
                        let read = device.read(at as u64, pool.allocate(16384)).await.unwrap();
                        assert!(*read == bytes[at..at + 16384]);
                        let own = SIZE as u64 / 2 + (no * 256 + task) * 4096;
                        let mut page = pool.allocate(4096);
                        page.fill(random.next_u64() as u8);
                        let page = device.write(own, page).await.unwrap();
                        let again = device.read(own, pool.allocate(4096)).await.unwrap();
                        assert!(*again == *page);
                    }
                })
            });
            join_all(tasks).await;
        };
        let handles = [
            executors.spawn_on(0, {
                let run = run.clone();
                move || run(0)
            }),
            executors.spawn_on(1, move || run(1)),
        ];
        for handle in handles {
            futures::executor::block_on(handle).unwrap();
        }
    }
    assert_eq!(executors.buffers().bytes_in_use(), 0);
}

#[test]
fn punched_blocks_are_given_back() {
    let executors = executors(1);
    for method in METHODS {
        let (_folder, path, _) = random_file(SIZE, 5);
        let device = open(&path, method, true);
        executors
            .block_on(move || async move {
                device.sync().await.unwrap();
                device.punch(0, SIZE as u64 / 2).await.unwrap();
                device.punch(4096, 0).await.unwrap();
                device.sync().await.unwrap();
            })
            .unwrap();
        let metadata = std::fs::metadata(&path).unwrap();
        assert_eq!(metadata.len(), SIZE as u64);
        assert!(metadata.blocks() * 512 <= SIZE as u64 / 2 + 65536, "{} blocks", metadata.blocks());
    }
}

#[test]
fn files_are_created_and_grow() {
    let executors = executors(1);
    for method in METHODS {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new");
        let device = Device::open(&path, &DeviceOptions { method, create: true, writable: false }).unwrap();
        let mut page = executors.buffers().allocate(4096);
        page.fill(9);
        executors.block_on(move || async move { device.write(1 << 20, page).await.unwrap() }).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(bytes.len(), (1 << 20) + 4096);
        assert!(
            bytes[..1 << 20].iter().all(|byte| *byte == 0) && bytes[1 << 20..].iter().all(|byte| *byte == 9)
        );
    }
}

#[test]
fn more_files_than_the_table_holds() {
    let executors = executors(1);
    let folder = tempfile::tempdir().unwrap();
    let count = 1100; // the ring's table has 1024 places
    let pool = executors.buffers().clone();
    let devices: Vec<Device> = (0..count)
        .map_while(|no: u32| {
            let path = folder.path().join(no.to_string());
            std::fs::write(&path, no.to_le_bytes().repeat(1024)).unwrap();
            // A low limit on descriptors cuts the test short, no more.
            Device::open(&path, &DeviceOptions::default()).ok()
        })
        .collect();
    for _ in 0..2 {
        let (devices, pool) = (devices.clone(), pool.clone());
        executors
            .block_on(move || async move {
                let reads = devices.iter().map(|device| device.read(0, pool.allocate(4096)));
                for (no, read) in join_all(reads).await.into_iter().enumerate() {
                    assert_eq!(read.unwrap()[..4], (no as u32).to_le_bytes());
                }
            })
            .unwrap();
    }
}

#[test]
fn a_block_device_is_a_device() {
    let (_folder, path, bytes) = random_file(SIZE, 6);
    let attached = std::process::Command::new("losetup").args(["--find", "--show"]).arg(&path).output();
    let Some(attached) = attached.ok().filter(|output| output.status.success()) else {
        return eprintln!("skipped: attaching a loop device is not allowed here");
    };
    let name = String::from_utf8(attached.stdout).unwrap().trim().to_owned();
    let executors = executors(1);
    for method in METHODS {
        let (device, pool, bytes) =
            (open(name.as_ref(), method, true), executors.buffers().clone(), bytes.clone());
        assert_eq!(device.size_bytes().unwrap(), SIZE as u64);
        assert!(method == Method::Buffered || device.alignment() >= 512);
        executors
            .block_on(move || async move {
                assert!(*device.read(0, pool.allocate(SIZE)).await.unwrap() == *bytes);
                let mut page = pool.allocate(4096);
                page.copy_from_slice(&bytes[8192..12288]);
                device.write(8192, page).await.unwrap();
                device.sync().await.unwrap();
                assert_eq!(device.read(SIZE as u64, pool.allocate(4096)).await.unwrap().len(), 0);
            })
            .unwrap();
    }
    std::process::Command::new("losetup").arg("-d").arg(&name).status().unwrap();
}
