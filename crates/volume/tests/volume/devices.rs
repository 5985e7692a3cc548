//! An object is an ordinary device to whoever reads and writes through it, on executors and off.

use futures::executor::block_on;
use futures::future::try_join_all;
use tanada_base::SplitMix64;
use tanada_io::{BufferPool, Device, DeviceOptions, ExecutorOptions, Executors, Method};
use tanada_volume::{Attributes, Parts, Relocation, Volume};

use crate::{CHUNK, Place, bytes};

/// Parts with direct I/O by io_uring, where there is any.
fn direct(place: &Place) -> Parts {
    let open = |name: &str| {
        let options = DeviceOptions { method: Method::Uring, writable: true, create: true };
        Device::open(place.path(name), &options).unwrap()
    };
    let mut parts = Parts::new(open("metadata"));
    for (name, devices) in &place.classes {
        parts = parts.with_class(name, (0..*devices).map(|i| open(&format!("{name}-{i}"))).collect());
    }
    parts
}

#[test]
fn reads_and_writes_over_segments_chunks_and_devices_meet_again() {
    for classes in [vec![("slow", 1)], vec![("slow", 3)]] {
        let place = Place::new(&classes);
        let data = bytes(20 * CHUNK as usize, 1);
        let volume = block_on(Volume::create(direct(&place), &place.settings(64))).unwrap();
        let object = volume.create_object("a", &Attributes::default()).unwrap();
        let device = object.device();
        let executors =
            Executors::start(ExecutorOptions { threads: 2, registered_bytes: 8 << 20, ..Default::default() })
                .unwrap();
        let pool = executors.buffers().clone();
        let written = (device.clone(), data.clone(), pool.clone());
        executors
            .block_on(move || async move {
                let (device, data, pool) = written;
                // Pieces that begin and end anywhere on blocks, in any order, all at once.
                let mut writes = Vec::new();
                let mut at = 0;
                let mut random = SplitMix64::new(3);
                while at < data.len() {
                    let len = ((1 + random.below(40)) as usize * 4096).min(data.len() - at);
                    let mut buffer = pool.allocate(len);
                    buffer.copy_from_slice(&data[at..at + len]);
                    let device = device.clone();
                    let offset = at as u64;
                    writes.push(async move { device.write(offset, buffer).await });
                    at += len;
                }
                try_join_all(writes).await.map(drop)
            })
            .unwrap()
            .unwrap();
        assert_eq!(device.size_bytes().unwrap(), data.len() as u64);
        let mut random = SplitMix64::new(4);
        for _ in 0..200 {
            let offset = random.below(data.len() as u64 / 4096) * 4096;
            let len = (1 + random.below(100)) as usize * 4096;
            let (device, pool, expected) = (
                device.clone(),
                pool.clone(),
                data[offset as usize..].iter().copied().take(len).collect::<Vec<_>>(),
            );
            let read = move || async move {
                device.read(offset, pool.allocate(len)).await.map(|read| read.to_vec())
            };
            assert_eq!(executors.block_on(read).unwrap().unwrap(), expected, "{len} bytes at {offset}");
        }
        let off_executors =
            block_on(device.read(4096, BufferPool::new(0).allocate(10 * CHUNK as usize))).unwrap();
        assert_eq!(*off_executors, data[4096..4096 + 10 * CHUNK as usize]);
        block_on(async {
            device.punch(CHUNK, 2 * CHUNK).await.unwrap();
            device.sync().await.unwrap();
            volume.close().await.unwrap();
        });
        assert_eq!(volume.classes()[0].taken, 18);
    }
}

#[test]
fn a_mirror_that_fails_costs_only_speed() {
    let place = Place::new(&[("fast", 1), ("slow", 2)]);
    let data = bytes(4 * CHUNK as usize, 1);
    block_on(async {
        let volume = place.create(16).await;
        let object = volume.create_object("a", &Attributes::default()).unwrap();
        object.write_bytes(0, &data).await.unwrap();
        object.mirror_to(0..4, "fast", &Relocation::default()).await.unwrap();
        // The fast device loses its bytes: reads end before they should.
        std::fs::File::options().write(true).open(place.path("fast-0")).unwrap().set_len(4096).unwrap();
        assert_eq!(object.read_bytes(0, data.len()).await.unwrap(), data);
        assert!(volume.classes()[0].is_failed);
        assert_eq!(object.read_bytes(10, 20).await.unwrap(), data[10..30]);
    });
}
