//! What is counted is what was done.

use futures::executor::block_on;
use tanada_volume::{Attributes, Object, Relocation};

use crate::{CHUNK, Place, bytes};

#[test]
fn chunks_objects_and_classes_count_their_ios_and_remember_them() {
    let place = Place::new(&[("fast", 1), ("slow", 1)]);
    block_on(async {
        let volume = place.create(16).await;
        let object = volume.create_object("a", &Attributes::default()).unwrap();
        for block in 0..16 {
            object.write_bytes(block * 4096, &bytes(4096, block)).await.unwrap();
        }
        object.write_bytes(3 * CHUNK, &bytes(4096, 1)).await.unwrap();
        for _ in 0..10 {
            object.read_bytes(3 * CHUNK, 4096).await.unwrap();
        }
        let check = |object: &Object| {
            let chunks = object.chunks(0..100);
            let [first, second] = &chunks[..] else { panic!("{chunks:?}") };
            assert_eq!((first.no, first.statistics.writes, first.statistics.bytes_written), (0, 16, 65536));
            assert_eq!(first.statistics.sequential, 15);
            assert_eq!((second.no, second.statistics.reads, second.statistics.bytes_read), (3, 10, 40960));
            assert!(second.statistics.sequential_share() < 0.1);
            assert!(
                second.statistics.heat > 10.5 && second.statistics.heat <= 11.0,
                "{:?}",
                second.statistics
            );
        };
        check(&object);
        let statistics = object.statistics();
        assert_eq!((statistics.written.ios, statistics.written.bytes), (17, 17 * 4096));
        assert_eq!((statistics.read.ios, statistics.read.latency.count()), (10, 10));
        assert_eq!(volume.classes()[1].statistics.read.ios, 10);
        object.mirror_to(3..4, "fast", &Relocation::default()).await.unwrap();
        object.read_bytes(3 * CHUNK, 100).await.unwrap();
        assert_eq!(volume.classes()[0].statistics.read.ios, 1);
        volume.close().await.unwrap();
        let volume = place.open().await;
        let object = volume.open_object("a").unwrap();
        assert_eq!(object.chunks(3..4)[0].statistics.reads, 11);
        assert_eq!(object.statistics().read.ios, 0, "those of objects count from the opening");
    });
}

#[test]
fn chunks_cool_while_the_volume_is_closed() {
    use std::time::Duration;
    let place = Place::new(&[("only", 1)]);
    let at =
        |seconds| tanada_volume::Parts { wall_time: Some(Duration::from_secs(seconds)), ..place.parts() };
    let heat =
        |volume: &tanada_volume::Volume| volume.open_object("a").unwrap().chunks(0..1)[0].statistics.heat;
    block_on(async {
        let volume = tanada_volume::Volume::create(at(1_000_000), &place.settings(4)).await.unwrap();
        let object = volume.create_object("a", &Attributes::default()).unwrap();
        for _ in 0..64 {
            object.write_bytes(0, b"warm").await.unwrap();
        }
        volume.close().await.unwrap();
        drop((object, volume));
        // Two half-lives of an hour, then one more; a clock that was set back takes nothing away, and neither does one
        // that nobody has.
        for (wall, expected) in [(Some(1_007_200), 16.0), (Some(1_010_800), 8.0), (Some(5), 8.0), (None, 8.0)]
        {
            let parts = wall.map_or_else(|| place.parts(), at);
            let volume = tanada_volume::Volume::open(parts, &Default::default()).await.unwrap();
            let heat = heat(&volume);
            assert!((heat - expected).abs() < 0.2, "{heat} at {wall:?}");
            volume.close().await.unwrap();
        }
    });
}

/// Only blocks that are allocated are punched.
#[test]
fn punches_are_counted_and_avoided_where_nothing_is_allocated() {
    let place = Place::new(&[("only", 1)]);
    block_on(async {
        let volume = place.create(16).await;
        let object = volume.create_object("a", &Attributes::default()).unwrap();
        // The rest of its chunk is made zeros, in a file where nothing was written yet.
        object.write_bytes(0, &bytes(4096, 1)).await.unwrap();
        let first = volume.classes()[0].punches;
        assert!((first.issued, first.in_vain) == (0, 0) && first.avoided > 0, "{first:?}");
        object.write_bytes(0, &bytes(4 * 4096, 1)).await.unwrap();
        object.punch(4096, 4096).await.unwrap();
        object.punch(4096, 4096).await.unwrap();
        let second = volume.classes()[0].punches;
        assert_eq!((second.issued, second.avoided - first.avoided, second.in_vain), (1, 1, 0));
        assert_eq!(object.read_bytes(4096, 4096).await.unwrap(), vec![0; 4096]);
    });
}
