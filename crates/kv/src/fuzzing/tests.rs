//! What fuzzers do, with seeds: bytes that the engine wrote are changed, checksums made right again, and all of it
//! read.

use tanada_base::SplitMix64;

use super::*;
use crate::testing::TestVolume;
use crate::{Batch, Compression, Database, Isolation, WriteOptions};

/// What a database writes, by kind of object; at most this many bytes of each.
fn samples() -> [Vec<Vec<u8>>; 3] {
    const MAX_SAMPLE_BYTES: usize = 96 << 10;
    let volume = TestVolume::new();
    let settings = DatabaseSettings {
        memory_bytes: 2 << 20,
        memory_table_bytes: 64 << 10,
        log_segment_bytes: 1 << 20,
        ..DatabaseSettings::default()
    };
    let database =
        wait_for(Database::create(&volume.volume, "shop", &settings, volume.environment())).unwrap();
    for (name, compression) in [("a", Compression::None), ("b", Compression::Lz4)] {
        let of_store = StoreSettings { compression, ..StoreSettings::default() };
        let store = wait_for(database.create_store(name, &of_store)).unwrap();
        for no in 0..400u32 {
            let key = format!("key/{:04}", no * 7 % 1000);
            let value = vec![no as u8; if no % 3 == 0 { 20 } else { 300 }];
            wait_for(store.put(key.as_bytes(), &value)).unwrap();
        }
        let mut batch = Batch::new();
        batch.delete_prefix(&store, b"key/01");
        batch.delete_range(&store, b"key/09", None);
        batch.put(&store, &[b'l'; 3000], b"long");
        wait_for(database.write(batch, &WriteOptions::sync())).unwrap();
        drop(database.begin(Isolation::Snapshot));
        wait_for(store.compact()).unwrap();
        wait_for(store.put(b"key/0500", b"later")).unwrap();
        wait_for(store.delete(b"key/0501")).unwrap();
    }
    wait_for(database.sync()).unwrap();
    let read = |prefix: &str| {
        let objects = volume.volume.objects().into_iter();
        let found = objects.filter(|object| object.name().starts_with(&format!("kv/shop/{prefix}-")));
        let bytes = found.map(|object| wait_for(object.read_bytes(0, object.size_bytes() as usize)).unwrap());
        bytes.collect::<Vec<_>>()
    };
    let mut segments = read("segment");
    segments.iter_mut().for_each(|bytes| bytes.truncate(MAX_SAMPLE_BYTES));
    let samples = [segments, read("keys"), read("manifest")];
    wait_for(database.close()).unwrap();
    samples
}

/// Changes a few bytes, most of them where something is.
fn change(bytes: &mut Vec<u8>, random: &mut SplitMix64) {
    for _ in 0..1 + random.below(4) {
        if bytes.is_empty() {
            return;
        }
        let len = bytes.len() as u64;
        // Headers of blocks are where lengths and places stand; a footer is the last of them.
        let at = match random.below(4) {
            0 => random.below(len.div_ceil(4096)) * 4096 + random.below(80),
            1 => (len - len.min(4096)) + random.below(70),
            _ => random.below(len),
        };
        let at = (at as usize).min(bytes.len() - 1);
        match random.below(8) {
            0 => bytes[at] = 0xff,
            1 => bytes[at] = 0,
            2 => bytes[at] = bytes[at].wrapping_add(1),
            3 => bytes[at] ^= 1 << random.below(8),
            4 => {
                let until = (at + 8).min(bytes.len());
                bytes[at..until].fill([0, 0xff, 0x80, 0x7f][random.below(4) as usize]);
            }
            5 if random.below(8) == 0 => bytes.truncate(at),
            6 => {
                let from = random.below(bytes.len() as u64) as usize;
                let count = (1 + random.below(64) as usize).min(bytes.len() - at.max(from));
                bytes.copy_within(from..from + count, at);
            }
            _ => bytes[at] = random.next_u64() as u8,
        }
    }
}

#[test]
fn objects_with_changed_bytes_and_right_checksums_are_read_or_refused() {
    let samples = samples();
    let volume = TestVolume::new();
    let files = Files::new(&volume.volume);
    let mut random = SplitMix64::new(1);
    for kind in 0..3u8 {
        let samples: Vec<&Vec<u8>> =
            samples[usize::from(kind)].iter().filter(|bytes| !bytes.is_empty()).collect();
        let (mut read, mut refused) = (0, 0);
        let found: usize = samples.iter().map(|sample| files.read(kind, sample).unwrap()).sum();
        assert!(found >= [300, 1000, 2][usize::from(kind)], "kind {kind}: {found}");
        for _ in 0..1500 {
            let mut bytes = samples[random.below(samples.len() as u64) as usize].clone();
            change(&mut bytes, &mut random);
            match files.read(kind, &bytes) {
                Ok(found) => read += usize::from(found > 0),
                Err(_) => refused += 1,
            }
        }
        println!("kind {kind}: {read} read, {refused} refused");
        // A log that is damaged behind what is known to be durable ends there, which is no error.
        assert!(read > 100 && (refused > 100 || kind == 0), "kind {kind}: {read} read, {refused} refused");
    }
}

#[test]
fn pointers_to_anywhere_give_a_value_or_an_error() {
    let volume = TestVolume::new();
    let files = Files::new(&volume.volume);
    let mut random = SplitMix64::new(2);
    for _ in 0..200 {
        let bytes: Vec<u8> = (0..random.below(9000)).map(|_| random.next_u64() as u8).collect();
        let _ = files.read(3, &bytes);
    }
}

#[test]
fn parts_of_any_bytes_are_read_or_refused() {
    let samples = samples();
    let mut random = SplitMix64::new(3);
    let policies: [&[u8]; 3] = [
        br#""staging_only""#,
        br#"{"root": {"keys": "fastest", "values": "fastest"}, "leaf": {"keys": "slow", "values": "slowest"}}"#,
        br#"{"policy": "capacity_only", "compression": "lz4", "page_bytes": 8192, "time_to_live_s": 5}"#,
    ];
    for round in 0..30_000u32 {
        let kind = (round % u32::from(PARTS)) as u8;
        let sample = match kind {
            0 | 1 | 6 => &samples[0],
            2 | 3 => &samples[1],
            _ => &samples[2],
        };
        let sample = &sample[random.below(sample.len() as u64) as usize];
        let blocks = (sample.len() as u64 / 4096).max(1);
        let mut at = random.below(blocks) as usize * 4096;
        // Frames and records begin behind the header of what they are in.
        at += [0, 64, 0, 0, 28, 0, 0, 0][usize::from(kind)];
        let mut bytes = sample.get(at..).unwrap_or_default().to_vec();
        bytes.truncate(4096);
        if kind == 7 {
            bytes = policies[random.below(3) as usize].to_vec();
        }
        if round >= 100 {
            change(&mut bytes, &mut random);
        }
        parse(kind, &bytes);
    }
    parse(7, &[b'['; 100_000]);
}
