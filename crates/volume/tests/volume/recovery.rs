//! What a stop leaves behind is put in order at the next opening, and damage is never guessed away.

use std::fs;
use std::os::unix::fs::FileExt;

use futures::executor::block_on;
use tanada_volume::{Attributes, ErrorKind, OpenOptions, Relocation, Volume};

use crate::{CHUNK, Place, bytes};

/// A volume with two synced objects, not closed; what is in them.
fn stopped(place: &Place) -> Vec<u8> {
    let data = bytes(5 * CHUNK as usize + 100, 4);
    block_on(async {
        let volume = place.create(64).await;
        let first = volume.create_object("first", &Attributes::default()).unwrap();
        first.write_bytes(0, &data).await.unwrap();
        first.sync().await.unwrap();
        let second = volume.create_object("second", &Attributes::default()).unwrap();
        volume.sync().await.unwrap();
        second.write_bytes(10, &data).await.unwrap();
        second.sync().await.unwrap();
    });
    data
}

fn try_open(place: &Place, options: &OpenOptions) -> Result<Volume, tanada_volume::Error> {
    block_on(Volume::open(place.parts(), options))
}

/// Which superblock counts, 0 or 1.
fn newest_superblock(place: &Place) -> u64 {
    let metadata = fs::read(place.path("metadata")).unwrap();
    (0..2).max_by_key(|no| metadata[no * 4096 + 16..][..8].to_vec()).unwrap() as u64
}

/// Where in the metadata file the blocks of the log in force begin.
fn log_blocks(place: &Place) -> Vec<u64> {
    let metadata = fs::read(place.path("metadata")).unwrap();
    let generation = metadata[newest_superblock(place) as usize * 4096 + 56..][..8].to_vec();
    let blocks = metadata.chunks(4096).enumerate().skip(2);
    blocks
        .filter(|(_, block)| block.starts_with(b"TLOG") && block[8..16] == generation)
        .map(|(no, _)| no as u64 * 4096)
        .collect()
}

fn flip(place: &Place, file: &str, offset: u64) {
    let file = fs::OpenOptions::new().read(true).write(true).open(place.path(file)).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, offset).unwrap();
    file.write_all_at(&[byte[0] ^ 0x20], offset).unwrap();
}

/// Adds a record of this kind, with nothing in it, to the last block of the log; its checksum is right again.
fn add_record(place: &Place, kind: u8) {
    let at = *log_blocks(place).last().unwrap();
    let file = fs::OpenOptions::new().read(true).write(true).open(place.path("metadata")).unwrap();
    let mut block = vec![0; 4096];
    file.read_exact_at(&mut block, at).unwrap();
    let word = |block: &[u8], at: usize| u32::from_be_bytes(block[at..at + 4].try_into().unwrap());
    let (bytes, records) = (word(&block, 32), word(&block, 36));
    let end = 40 + bytes as usize;
    block[end] = kind;
    block[32..36].copy_from_slice(&(bytes + 1).to_be_bytes());
    block[36..40].copy_from_slice(&(records + 1).to_be_bytes());
    let crc = crc32c::crc32c(&block[8..=end]);
    block[4..8].copy_from_slice(&crc.to_be_bytes());
    file.write_all_at(&block, at).unwrap();
}

/// An older program must not take what a newer one wrote for damage, let alone repair it.
#[test]
fn a_record_that_only_a_newer_program_knows_is_refused_as_such() {
    for kind in [30, 200, 255] {
        let place = Place::new(&[("slow", 1)]);
        stopped(&place);
        add_record(&place, kind);
        let before = fs::read(place.path("metadata")).unwrap();
        let repair = block_on(Volume::repair(&place.parts())).map(drop);
        let check = block_on(Volume::check(&place.parts())).map(drop);
        for refused in [try_open(&place, &OpenOptions::default()).map(drop), check, repair] {
            let error = refused.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::FutureFormat, "{error}");
            assert!(error.to_string().contains("written by a newer program"), "{error}");
        }
        assert_eq!(fs::read(place.path("metadata")).unwrap(), before, "nothing was repaired");
    }
    let place = Place::new(&[("slow", 1)]);
    stopped(&place);
    add_record(&place, 0);
    let error = try_open(&place, &OpenOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupted, "{error}");
}

#[test]
fn a_torn_tail_is_cut() {
    let place = Place::new(&[("slow", 2)]);
    let data = stopped(&place);
    let last = *log_blocks(&place).last().unwrap();
    flip(&place, "metadata", last + 50);
    let volume = try_open(&place, &OpenOptions::default()).unwrap();
    assert!(!volume.was_clean());
    let names: Vec<String> = volume.objects().iter().map(tanada_volume::Object::name).collect();
    assert_eq!(names, ["first", "second"], "the object's record was in an earlier block than its chunks");
    let read = block_on(volume.open_object("first").unwrap().read_bytes(0, data.len())).unwrap();
    assert_eq!(read, data);
    let second = volume.open_object("second").unwrap();
    assert!(second.size_bytes() == 0 && second.allocated_bytes() == 0);
}

#[test]
fn a_block_that_was_durable_once_is_not_taken_for_a_torn_tail() {
    let place = Place::new(&[("slow", 1)]);
    stopped(&place);
    let blocks = log_blocks(&place);
    // The checkpoint and its end, and the journal.
    assert!(blocks.len() >= 4, "{blocks:?}");
    flip(&place, "metadata", blocks[2] + 50);
    let error = try_open(&place, &OpenOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupted);
    assert!(error.to_string().contains(&format!("offset {}", blocks[2])), "{error}");
}

#[test]
fn after_a_clean_stop_any_damage_is_an_error() {
    let place = Place::new(&[("slow", 1)]);
    stopped(&place);
    block_on(async { place.open().await.close().await.unwrap() });
    let volume = try_open(&place, &OpenOptions { read_only: true, ..OpenOptions::default() }).unwrap();
    assert!(volume.was_clean());
    assert_eq!(volume.create_object("x", &Attributes::default()).unwrap_err().kind(), ErrorKind::ReadOnly);
    drop(volume);
    flip(&place, "metadata", *log_blocks(&place).last().unwrap() + 41);
    let error = try_open(&place, &OpenOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupted);
}

#[test]
fn an_older_superblock_serves_when_the_newer_is_torn() {
    let place = Place::new(&[("slow", 1)]);
    let data = stopped(&place);
    block_on(async {
        let volume = place.open().await;
        volume.close().await.unwrap();
    });
    flip(&place, "metadata", newest_superblock(&place) * 4096 + 60);
    let volume = try_open(&place, &OpenOptions::default()).unwrap();
    assert!(!volume.was_clean(), "only the torn one said so");
    let read = block_on(volume.open_object("second").unwrap().read_bytes(10, data.len())).unwrap();
    assert_eq!(read, data);
}

#[test]
fn mismatched_devices_are_refused() {
    let place = Place::new(&[("fast", 1), ("slow", 2)]);
    stopped(&place);
    let wrong = OpenOptions { expected_id: Some([9; 16]), ..OpenOptions::default() };
    assert_eq!(try_open(&place, &wrong).unwrap_err().kind(), ErrorKind::WrongVolume);
    let mut parts = place.parts();
    parts.classes[1].devices.swap(0, 1);
    let error = block_on(Volume::open(parts, &OpenOptions::default())).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WrongVolume, "{error}");
    let again = block_on(Volume::create(place.parts(), &place.settings(64))).unwrap_err();
    assert_eq!(again.kind(), ErrorKind::AlreadyExists);
    let empty = Place::new(&[("slow", 1)]);
    assert_eq!(try_open(&empty, &OpenOptions::default()).unwrap_err().kind(), ErrorKind::NotFound);

    // Version 9, with a right checksum.
    let file = fs::OpenOptions::new().read(true).write(true).open(place.path("metadata")).unwrap();
    let mut block = vec![0; 4096];
    let at = newest_superblock(&place) * 4096;
    file.read_exact_at(&mut block, at).unwrap();
    block[15] = 9;
    let crc = crc32c::crc32c(&block[12..]);
    block[8..12].copy_from_slice(&crc.to_be_bytes());
    file.write_all_at(&block, at).unwrap();
    let error = try_open(&place, &OpenOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::FutureFormat);
    assert!(error.to_string().contains("version 9"), "{error}");
}

#[test]
fn a_missing_device_makes_the_volume_read_only_and_names_what_is_affected() {
    let place = Place::new(&[("fast", 1), ("slow", 1)]);
    let data = stopped(&place);
    block_on(async {
        let volume = place.open().await;
        let safe = Attributes { class: Some("fast".to_owned()), ..Attributes::default() };
        let object = volume.create_object("safe", &safe).unwrap();
        object.write_bytes(0, &data).await.unwrap();
        volume.close().await.unwrap();
        let mut parts = place.parts();
        parts.classes[1].devices[0] = None;
        let volume = Volume::open(parts, &OpenOptions::default()).await.unwrap();
        let reason = volume.read_only_reason().unwrap();
        assert_eq!(reason.kind(), ErrorKind::MissingDevice);
        assert!(
            reason.to_string().contains("first, second") && !reason.to_string().contains("safe"),
            "{reason}"
        );
        let safe = volume.open_object("safe").unwrap();
        assert_eq!(safe.read_bytes(0, data.len()).await.unwrap(), data);
        assert_eq!(safe.write_bytes(0, b"x").await.unwrap_err().kind(), ErrorKind::MissingDevice);
        let lost = volume.open_object("first").unwrap().read_bytes(0, 10).await.unwrap_err();
        assert_eq!(lost.kind(), ErrorKind::MissingDevice);
    });
    // And nothing was changed by that.
    let volume = block_on(place.open());
    assert_eq!(block_on(volume.open_object("first").unwrap().read_bytes(0, data.len())).unwrap(), data);
}

#[test]
fn a_journal_that_is_full_becomes_a_checkpoint() {
    let place = Place::new(&[("slow", 1)]);
    block_on(async {
        let volume = place.create(64).await;
        for round in 0..300 {
            let name = format!("object {}", round % 40);
            if round >= 40 {
                volume.delete(&name).await.unwrap();
            }
            let object = volume.create_object(&name, &Attributes::default()).unwrap();
            object.write_bytes(0, format!("{round}").as_bytes()).await.unwrap();
            object.sync().await.unwrap();
        }
        assert!(
            fs::metadata(place.path("metadata")).unwrap().len() < 400 << 10,
            "the log's places are used in turn"
        );
        drop(volume);
        let volume = place.open().await;
        for round in 260..300 {
            let object = volume.open_object(&format!("object {}", round % 40)).unwrap();
            assert_eq!(object.read_bytes(0, 100).await.unwrap(), format!("{round}").as_bytes());
        }
        assert_eq!(volume.classes()[0].taken, 40);
    });
}

#[test]
fn bytes_behind_the_end_never_come_back() {
    let place = Place::new(&[("slow", 1)]);
    block_on(async {
        let volume = place.create(8).await;
        let object = volume.create_object("a", &Attributes::default()).unwrap();
        object.write_bytes(0, &bytes(CHUNK as usize, 1)).await.unwrap();
        object.sync().await.unwrap();
        object.resize(100).await.unwrap();
        object.sync().await.unwrap();
        drop((object, volume));
        let volume = place.open().await;
        let object = volume.open_object("a").unwrap();
        object.resize(CHUNK).await.unwrap();
        assert_eq!(object.read_bytes(100, CHUNK as usize).await.unwrap(), vec![0; CHUNK as usize - 100]);
        object.resize(50).await.unwrap();
        object.write_bytes(1000, b"x").await.unwrap();
        assert_eq!(object.read_bytes(50, 950).await.unwrap(), vec![0; 950]);
    });
}

/// Flips a bit of a superblock, or tears it.
fn spoil_superblock(place: &Place, no: u64, is_torn: bool) {
    let file = std::fs::File::options().read(true).write(true).open(place.path("metadata")).unwrap();
    let mut block = [0; 512];
    file.read_exact_at(&mut block, no * 4096).unwrap();
    if is_torn {
        block[..100].fill(0x55);
    } else {
        block[20] ^= 1;
    }
    file.write_all_at(&block, no * 4096).unwrap();
}

#[test]
fn a_single_valid_superblock_suffices_after_an_unclean_stop() {
    for case in 0..24 {
        let (no, is_torn, checkpoints, is_clean) = (case % 2, case / 2 % 2 == 1, case / 4 % 3, case >= 12);
        let place = Place::new(&[("fast", 1), ("slow", 1)]);
        let data = bytes(5 * CHUNK as usize, 7);
        block_on(async {
            let volume = place.create(16).await;
            let object = volume.create_object("a", &Attributes::default()).unwrap();
            object.write_bytes(0, &data[..CHUNK as usize]).await.unwrap();
            object.sync().await.unwrap();
            for _ in 0..checkpoints {
                volume.checkpoint().await.unwrap();
            }
            object.write_bytes(CHUNK, &data[CHUNK as usize..]).await.unwrap();
            // What was free in an older log is in use in the newer one.
            object.move_to(0..1, "fast", &Relocation::default()).await.unwrap();
            object.sync().await.unwrap();
            if is_clean {
                volume.close().await.unwrap();
            }
        });
        spoil_superblock(&place, no, is_torn);
        for _ in 0..2 {
            block_on(async {
                let volume = place.open().await;
                let object = volume.open_object("a").unwrap();
                assert_eq!(object.read_bytes(0, data.len()).await.unwrap(), data, "case {case}");
                assert_eq!(volume.classes()[0].taken, 1, "case {case}");
            });
            let report = block_on(Volume::check(&place.parts())).unwrap();
            assert!(report.is_sound(), "case {case}: {:?}", report.findings);
        }
        spoil_superblock(&place, 0, is_torn);
        spoil_superblock(&place, 1, !is_torn);
        let error = block_on(Volume::open(place.parts(), &OpenOptions::default())).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupted, "case {case}: {error}");
    }
}
