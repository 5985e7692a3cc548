//! Objects keep what is written to them.

use futures::executor::block_on;
use tanada_volume::{Attributes, ErrorKind};

use crate::{CHUNK, Place, bytes};

#[test]
fn written_bytes_are_read_before_and_after_reopening() {
    let place = Place::new(&[("fast", 1), ("slow", 3)]);
    let data = bytes(300_000, 1);
    let volume = block_on(place.create(64));
    block_on(async {
        let object = volume.create_object("a", &Attributes::default()).unwrap();
        object.write_bytes(1000, &data).await.unwrap();
        assert_eq!(object.size_bytes(), 301_000);
        assert_eq!(object.read_bytes(1000, 300_000).await.unwrap(), data);
        assert_eq!(object.read_bytes(0, 1000).await.unwrap(), vec![0; 1000]);
        assert_eq!(object.read_bytes(300_500, 5000).await.unwrap().len(), 500);
        object.sync().await.unwrap();
        volume.close().await.unwrap();
    });
    drop(volume);
    let volume = block_on(place.open());
    assert!(volume.was_clean());
    block_on(async {
        let object = volume.open_object("a").unwrap();
        assert_eq!(object.read_bytes(1000, 400_000).await.unwrap(), data);
    });
    // Not closed: the next opening replays the journal.
    drop(volume);
    let volume = block_on(place.open());
    assert!(!volume.was_clean());
    let object = volume.open_object("a").unwrap();
    assert_eq!(block_on(object.read_bytes(1000, 400_000)).unwrap(), data);
}

/// Whoever waited for it to be free waited for somebody else.
#[test]
fn unreferenced_chunks_can_be_allocated_again() {
    let place = Place::new(&[("only", 1)]);
    block_on(async {
        let volume = place.create(16).await;
        let write = async |name: &str| {
            let object = volume.create_object(name, &Attributes::default()).unwrap();
            object.write_bytes(0, &bytes(16 * CHUNK as usize, 1)).await
        };
        write("a").await.unwrap();
        volume.sync().await.unwrap();
        assert_eq!(volume.classes()[0].free(), 0);
        volume.delete("a").await.unwrap();
        let class = &volume.classes()[0];
        assert_eq!((class.taken, class.retired, class.free()), (16, 16, 16));
        write("b").await.unwrap();
        let class = &volume.classes()[0];
        assert_eq!((class.taken, class.retired, class.free()), (16, 0, 0));
    });
}

#[test]
fn sparse_objects_take_no_space_and_read_as_zeros() {
    let place = Place::new(&[("slow", 1)]);
    let volume = block_on(place.create(16));
    block_on(async {
        let object = volume.create_object("sparse", &Attributes::default()).unwrap();
        object.resize(64 << 40).await.unwrap();
        assert_eq!(object.allocated_bytes(), 0);
        assert_eq!(object.read_bytes(5 << 40, 100_000).await.unwrap(), vec![0; 100_000]);
        object.write_bytes(7 << 40, b"here").await.unwrap();
        assert_eq!(object.allocated_bytes(), CHUNK);
        assert_eq!(object.read_bytes((7 << 40) - 4, 12).await.unwrap(), b"\0\0\0\0here\0\0\0\0");
    });
}

#[test]
fn a_full_volume_says_so_and_goes_on_when_space_is_free_again() {
    let place = Place::new(&[("fast", 1), ("slow", 1)]);
    let volume = block_on(place.create(4));
    block_on(async {
        let object = volume.create_object("a", &Attributes::default()).unwrap();
        let data = bytes(8 * CHUNK as usize, 2);
        object.write_bytes(0, &data).await.unwrap();
        let error = object.write_bytes(8 * CHUNK, b"x").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NoSpace);
        assert_eq!(object.read_bytes(0, data.len()).await.unwrap(), data);
        object.sync().await.unwrap();
        object.resize(7 * CHUNK).await.unwrap();
        object.write_bytes(8 * CHUNK, b"x").await.unwrap();
        assert_eq!(object.read_bytes(7 * CHUNK, 1 + CHUNK as usize).await.unwrap()[CHUNK as usize], b'x');
        volume.delete("a").await.unwrap();
        assert_eq!(object.read_bytes(0, 1).await.unwrap_err().kind(), ErrorKind::NotFound);
        let other = volume.create_object("a", &Attributes::default()).unwrap();
        other.write_bytes(0, &data).await.unwrap();
        assert_eq!(other.read_bytes(0, data.len()).await.unwrap(), data);
    });
}

#[test]
fn names_lead_nowhere_else() {
    let place = Place::new(&[("only", 1)]);
    block_on(async {
        let volume = place.create(4).await;
        volume.create_object("shop/#linked/orders 1..2.ibd", &Attributes::default()).unwrap();
        for name in ["../../x", "/etc/passwd", "a//b", "a/", "a/../b", "./a", ".", "..", "a\0b", ""] {
            let error = volume.create_object(name, &Attributes::default()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{name:?}");
            assert!(volume.rename("shop/#linked/orders 1..2.ibd", name).is_err(), "{name:?}");
            let adopted = volume.adopt(name, "/dev/null", &Attributes::default());
            assert!(adopted.is_err(), "{name:?}");
        }
        assert_eq!(volume.objects().len(), 1);
    });
}

#[test]
fn blocks_of_zeros_stay_holes() {
    let place = Place::new(&[("only", 1)]);
    let mut data = vec![0; 3 * CHUNK as usize + 5000];
    data[4096..3 * 4096].fill(1);
    data[9 * 4096 + 17] = 2;
    data[3 * CHUNK as usize + 4999] = 3;
    block_on(async {
        let volume = place.create(8).await;
        let object = volume.create_object("a", &Attributes::default()).unwrap();
        object.resize(data.len() as u64).await.unwrap();
        for (no, part) in data.chunks(CHUNK as usize).enumerate() {
            let mut buffer = tanada_io::BufferPool::new(0).allocate(part.len());
            buffer.copy_from_slice(part);
            object.write_sparse(no as u64 * CHUNK, buffer).await.unwrap();
        }
        assert_eq!(object.read_bytes(0, data.len() + 10).await.unwrap(), data);
        let homes: Vec<u64> =
            object.chunks(0..9).iter().filter(|chunk| chunk.home.is_some()).map(|chunk| chunk.no).collect();
        assert_eq!(homes, [0, 3]);
        assert_eq!(object.statistics().written.bytes, 3 * 4096 + 904);
    });
}

#[test]
fn no_offset_or_length_is_too_odd_to_be_read() {
    let place = Place::new(&[("slow", 1)]);
    block_on(async {
        let volume = place.create(8).await;
        let object = volume.create_object("a", &Attributes::default()).unwrap();
        let data = bytes(5000, 1);
        object.write_bytes(0, &data).await.unwrap();
        let most = i64::MAX as usize;
        assert_eq!(object.read_bytes(0, most).await.unwrap(), data);
        assert_eq!(object.read_bytes(4999, most).await.unwrap(), data[4999..]);
        for offset in [5000, 8192, 1 << 62, u64::MAX - 4096, u64::MAX - 10, u64::MAX] {
            for len in [1, 5, 4096, 10_000] {
                assert!(object.read_bytes(offset, len).await.unwrap().is_empty(), "{offset}, {len}");
                let mut buffer = tanada_io::BufferPool::new(0).allocate(len);
                buffer.fill(1);
                assert!(object.read(offset, buffer).await.unwrap().is_empty(), "{offset}, {len}");
                let kind = object.write_bytes(offset | 1 << 62, &data[..5]).await.unwrap_err().kind();
                assert_eq!(kind, tanada_volume::ErrorKind::InvalidInput);
            }
            object.punch(offset, u64::MAX).await.unwrap();
        }
        assert_eq!(object.read_bytes(0, most).await.unwrap(), data);
        object.move_to(u64::MAX - 1..u64::MAX, "slow", &Default::default()).await.unwrap();
        assert!(object.chunks(u64::MAX..u64::MAX).is_empty());
    });
}
