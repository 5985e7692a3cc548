//! Chunks move and are mirrored while they are used.

use std::sync::Arc;

use futures::executor::block_on;
use futures::future::join;
use parking_lot::Mutex;
use tanada_volume::{
    Action, Attributes, Budget, ClassParts, ClassSettings, ErrorKind, Relocated, Relocation,
};

use crate::{CHUNK, Place, bytes, device};

fn relocation() -> Relocation {
    Relocation { who: "test".to_owned(), why: "because".to_owned(), gain_s: 1.5, ..Relocation::default() }
}

#[test]
fn moved_chunks_are_read_from_their_new_home_and_the_old_one_is_free() {
    let place = Place::new(&[("fast", 2), ("slow", 1)]);
    let data = bytes(10 * CHUNK as usize, 1);
    block_on(async {
        let volume = place.create(16).await;
        let object = volume.create_object("a", &Attributes::default()).unwrap();
        object.write_bytes(0, &data).await.unwrap();
        object.sync().await.unwrap();
        let moved = object.move_to(2..5, "fast", &relocation()).await.unwrap();
        assert_eq!((moved.done, moved.bytes), (3, 3 * CHUNK));
        let taken = |volume: &tanada_volume::Volume| -> Vec<u64> {
            volume.classes().iter().map(|class| class.taken).collect()
        };
        assert_eq!(taken(&volume), [3, 7]);
        assert_eq!(object.read_bytes(0, data.len()).await.unwrap(), data);
        let decision = object.explain(3).unwrap();
        assert_eq!(
            (decision.action, decision.class.as_deref(), &*decision.who),
            (Action::Move, Some("fast"), "test")
        );
        assert_eq!(object.explain(5), None);
        drop((object, volume));
        let volume = place.open().await;
        assert_eq!(taken(&volume), [3, 7]);
        assert_eq!(volume.open_object("a").unwrap().read_bytes(0, data.len()).await.unwrap(), data);
    });
}

#[test]
fn writes_during_a_move_are_not_lost() {
    let place = Place::new(&[("fast", 1), ("slow", 1)]);
    let data = bytes(16 * CHUNK as usize, 1);
    let newer = bytes(16 * CHUNK as usize, 2);
    block_on(async {
        let volume = place.create(32).await;
        let object = volume.create_object("a", &Attributes::default()).unwrap();
        object.write_bytes(0, &data).await.unwrap();
        let writes = async {
            for (i, part) in newer.chunks(10_000).enumerate() {
                object.write_bytes(i as u64 * 10_000, part).await.unwrap();
                assert_eq!(object.read_bytes(i as u64 * 10_000, part.len()).await.unwrap(), part);
            }
        };
        let moves = async {
            for class in ["fast", "slow", "fast"] {
                object.move_to(0..16, class, &relocation()).await.unwrap();
            }
        };
        join(writes, moves).await;
        assert_eq!(object.read_bytes(0, newer.len()).await.unwrap(), newer);
    });
}

#[test]
fn a_mirror_is_read_until_it_is_written_over_and_lost_mirrors_cost_nothing() {
    let place = Place::new(&[("fast", 1), ("slow", 1)]);
    let data = bytes(4 * CHUNK as usize, 1);
    block_on(async {
        let volume = place.create(16).await;
        let object = volume.create_object("a", &Attributes::default()).unwrap();
        object.write_bytes(0, &data).await.unwrap();
        assert_eq!(object.mirror_to(0..4, "fast", &relocation()).await.unwrap().done, 4);
        assert_eq!(object.mirror_to(0..4, "slow", &relocation()).await.unwrap().done, 0, "not faster");
        let before = volume.classes();
        assert_eq!(object.read_bytes(0, data.len()).await.unwrap(), data);
        let after = volume.classes();
        assert!(after[0].statistics.read.bytes >= before[0].statistics.read.bytes + data.len() as u64);
        assert_eq!(after[1].statistics.read.bytes, before[1].statistics.read.bytes);
        object.write_bytes(CHUNK + 7, b"new").await.unwrap();
        assert_eq!(object.read_bytes(CHUNK + 6, 5).await.unwrap()[1..4], *b"new");
        assert_eq!(volume.classes()[0].taken, 3, "dropped durably before the write");
        assert_eq!(object.drop_mirrors(0..1, &relocation()).unwrap(), 1);
        object.sync().await.unwrap();
        assert_eq!(volume.classes()[0].taken, 2);
        drop((object, volume));

        // The fast device is gone: only mirrors were there.
        let mut parts = place.parts();
        parts.classes[0].devices[0] = None;
        let volume = tanada_volume::Volume::open(parts, &Default::default()).await.unwrap();
        assert!(volume.read_only_reason().is_none());
        let object = volume.open_object("a").unwrap();
        assert_eq!(
            object.read_bytes(2 * CHUNK, 2 * CHUNK as usize).await.unwrap(),
            data[2 * CHUNK as usize..]
        );
        object.write_bytes(0, b"x").await.unwrap();
    });
}

/// A volume with an object whose first three chunks are mirrored on the fast class.
async fn mirrored(place: &Place, data: &[u8]) -> (tanada_volume::Volume, tanada_volume::Object) {
    let volume = place.create(16).await;
    let object = volume.create_object("a", &Attributes::default()).unwrap();
    object.write_bytes(0, data).await.unwrap();
    object.mirror_to(0..3, "fast", &relocation()).await.unwrap();
    (volume, object)
}

/// A file that was cut off refused all openings, though nothing but mirrors lay in it.
#[test]
fn a_device_that_was_cut_off_is_missing_if_nothing_has_its_home_there() {
    let place = Place::new(&[("fast", 1), ("slow", 1)]);
    let data = bytes(4 * CHUNK as usize, 1);
    block_on(async {
        let (volume, object) = mirrored(&place, &data).await;
        volume.close().await.unwrap();
        drop((object, volume));
        let cut = |name: &str| {
            let file = std::fs::File::options().write(true).open(place.path(name)).unwrap();
            file.set_len(CHUNK + 4096).unwrap();
        };
        let options = Default::default();
        let open = || tanada_volume::Volume::open(place.parts(), &options);
        cut("fast-0");
        let volume = open().await.unwrap();
        let object = volume.open_object("a").unwrap();
        assert_eq!(object.read_bytes(0, data.len()).await.unwrap(), data);
        volume.remove_class("fast").await.unwrap();
        drop((object, volume));
        cut("slow-0");
        let error = open().await.err().unwrap().to_string();
        assert!(error.contains("bring back what was cut off"), "{error}");
    });
}

/// It had to be drained first, of what nobody can read.
#[test]
fn a_class_without_its_device_is_removed_at_once_if_it_has_no_homes() {
    let mut place = Place::new(&[("fast", 1), ("slow", 1)]);
    let data = bytes(4 * CHUNK as usize, 1);
    block_on(async {
        let (volume, object) = mirrored(&place, &data).await;
        let error = volume.remove_class("fast").await.unwrap_err().to_string();
        assert!(error.contains("drain it first"), "{error}: a device that is there is one in use");
        volume.close().await.unwrap();
        drop((object, volume));

        let without = |class: usize| {
            let mut parts = place.parts();
            parts.classes[class].devices[0] = None;
            async { tanada_volume::Volume::open(parts, &Default::default()).await.unwrap() }
        };
        // Homes are there to stay.
        let volume = without(1).await;
        assert!(volume.remove_class("slow").await.is_err());
        drop(volume);
        let volume = without(0).await;
        let object = volume.open_object("a").unwrap();
        object.set_attributes(&Attributes { pin: Some("fast".to_owned()), ..Attributes::default() }).unwrap();
        let error = volume.remove_class("fast").await.unwrap_err().to_string();
        assert!(error.contains("pinned to it: a"), "{error}");
        assert!(!volume.classes()[0].is_draining, "and it is as before");
        object.set_attributes(&Attributes::default()).unwrap();
        volume.remove_class("fast").await.unwrap();
        assert_eq!(volume.remove_class("slow").await.unwrap_err().kind(), ErrorKind::InvalidInput);
        volume.close().await.unwrap();
    });
    place.classes.remove(0);
    let volume = block_on(place.open());
    assert_eq!(volume.classes().len(), 1);
    assert_eq!(block_on(volume.open_object("a").unwrap().read_bytes(0, data.len())).unwrap(), data);
}

#[test]
fn a_class_can_be_added_drained_removed_and_resized() {
    let place = Place::new(&[("fast", 1), ("slow", 2)]);
    let data = bytes(12 * CHUNK as usize, 3);
    block_on(async {
        let volume = place.create(16).await;
        let object = volume
            .create_object("a", &Attributes { class: Some("fast".to_owned()), ..Attributes::default() })
            .unwrap();
        object.write_bytes(0, &data).await.unwrap();
        let settings =
            ClassSettings { name: "middle".to_owned(), segment_bytes: 4096, size_bytes: 20 * CHUNK };
        let devices = (0..3).map(|i| Some(device(&place.path(&format!("middle-{i}"))))).collect();
        volume.add_class(&settings, ClassParts { name: "middle".to_owned(), devices }, 1).await.unwrap();
        let names: Vec<String> = volume.classes().into_iter().map(|class| class.name).collect();
        assert_eq!(names, ["fast", "middle", "slow"]);
        assert_eq!(volume.remove_class("fast").await.unwrap_err().kind(), ErrorKind::InvalidInput);
        assert_eq!(volume.drain_class("fast", &relocation()).await.unwrap().done, 12);
        assert_eq!(volume.classes()[1].taken, 12, "the next slower class takes them");
        volume.remove_class("fast").await.unwrap();
        volume.resize_class("middle", 4 * CHUNK, &relocation()).await.unwrap();
        assert_eq!((volume.classes()[0].taken, volume.classes()[0].chunks), (4, 4));
        let error = volume.drain_class("slow", &relocation()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NoSpace);
        assert_eq!(object.read_bytes(0, data.len()).await.unwrap(), data);
        volume.fill_class("slow").await.unwrap();
        volume.resize_class("middle", 30 * CHUNK, &relocation()).await.unwrap();
        volume.drain_class("slow", &relocation()).await.unwrap();
        volume.sync().await.unwrap();
        drop((object, volume));
        let mut place = place;
        place.classes = vec![("middle", 3), ("slow", 2)];
        let volume = place.open().await;
        assert_eq!(volume.classes()[0].taken, 12);
        assert!(volume.classes()[1].is_draining);
        let object = volume.open_object("a").unwrap();
        assert_eq!(object.attributes(), Attributes::default());
        assert_eq!(object.read_bytes(0, data.len()).await.unwrap(), data);
    });
}

#[test]
fn a_relocation_that_is_dropped_leaves_everything_readable_and_no_space_behind() {
    let place = Place::new(&[("fast", 1), ("slow", 1)]);
    let data = bytes(16 * CHUNK as usize, 1);
    block_on(async {
        let volume = place.create(32).await;
        let object = volume.create_object("a", &Attributes::default()).unwrap();
        object.write_bytes(0, &data).await.unwrap();
        object.sync().await.unwrap();
        let seen = Arc::new(Mutex::new(Vec::<Relocated>::new()));
        let (stop, stopped) = futures::channel::oneshot::channel::<()>();
        let (stop, seen_by) = (Mutex::new(Some(stop)), seen.clone());
        let mut relocation = relocation();
        relocation.budget = Budget { concurrency: 2, ..Budget::default() };
        relocation.progress = Some(Arc::new(move |report: &Relocated| {
            seen_by.lock().push(*report);
            if report.done == 5
                && let Some(stop) = stop.lock().take()
            {
                stop.send(()).unwrap();
            }
        }));
        let moving = Box::pin(object.move_to(0..16, "fast", &relocation));
        drop(futures::future::select(moving, stopped).await);
        assert!(seen.lock().len() >= 5);
        assert_eq!(object.read_bytes(0, data.len()).await.unwrap(), data);
        object.write_bytes(0, &data).await.unwrap();
        volume.sync().await.unwrap();
        let report = object.move_to(0..16, "slow", &self::relocation()).await.unwrap();
        assert!(report.done >= 5);
        assert_eq!(volume.classes().iter().map(|class| class.taken).collect::<Vec<_>>(), [0, 16]);
    });
}

#[test]
fn pins_are_obeyed() {
    let place = Place::new(&[("fast", 1), ("slow", 1)]);
    block_on(async {
        let volume = place.create(4).await;
        let pinned = Attributes { pin: Some("fast".to_owned()), ..Attributes::default() };
        let object = volume.create_object("a", &pinned).unwrap();
        object.write_bytes(0, &bytes(4 * CHUNK as usize, 1)).await.unwrap();
        let error = object.write_bytes(4 * CHUNK, b"x").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NoSpace);
        assert_eq!(
            object.move_to(0..4, "slow", &relocation()).await.unwrap_err().kind(),
            ErrorKind::InvalidInput
        );
        assert!(volume.drain_class("fast", &relocation()).await.unwrap_err().to_string().contains("pinned"));
        let limited = Attributes { quota_bytes: Some(2 * CHUNK), ..Attributes::default() };
        let other = volume.create_object("b", &limited).unwrap();
        let error = other.write_bytes(0, &bytes(3 * CHUNK as usize, 1)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::QuotaExceeded);
    });
}

/// What was there before the object was pinned elsewhere goes where it is pinned to, not nowhere.
#[test]
fn a_class_can_be_emptied_of_what_is_pinned_elsewhere() {
    let place = Place::new(&[("fast", 1), ("middle", 1), ("slow", 1)]);
    let data = bytes(3 * CHUNK as usize, 1);
    block_on(async {
        let volume = place.create(8).await;
        let attributes = Attributes { class: Some("middle".to_owned()), ..Attributes::default() };
        let object = volume.create_object("a", &attributes).unwrap();
        object.write_bytes(0, &data).await.unwrap();
        object.set_attributes(&Attributes { pin: Some("fast".to_owned()), ..attributes }).unwrap();
        assert_eq!(volume.drain_class("middle", &relocation()).await.unwrap().done, 3);
        let taken: Vec<u64> = volume.classes().iter().map(|class| class.taken).collect();
        assert_eq!(taken, [3, 0, 0]);
        volume.remove_class("middle").await.unwrap();
        assert_eq!(object.read_bytes(0, data.len()).await.unwrap(), data);
    });
}

#[test]
fn an_abandoned_resize_leaves_the_class_as_it_was() {
    let place = Place::new(&[("fast", 1), ("slow", 1)]);
    let data = bytes(8 * CHUNK as usize, 1);
    block_on(async {
        let volume = place.create(16).await;
        let object = volume.create_object("a", &Attributes::default()).unwrap();
        object.write_bytes(0, &data).await.unwrap();
        let relocation = relocation();
        let mut resizing = Box::pin(volume.resize_class("slow", 2 * CHUNK, &relocation));
        // One look is enough for it to begin.
        assert!(futures::poll!(&mut resizing).is_pending());
        drop(resizing);
        let other = volume.create_object("b", &Attributes::default()).unwrap();
        other.write_bytes(0, &data).await.unwrap();
        let homes = other.chunks(0..8).into_iter().filter_map(|chunk| chunk.home);
        assert!(homes.map(|home| home.class).all(|class| class == 1), "all fit into the slow class");
        assert_eq!(object.read_bytes(0, data.len()).await.unwrap(), data);
        // Below what is in use, and with no room elsewhere.
        let error = volume.resize_class("fast", 1, &relocation).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        let full = volume.create_object("c", &Attributes::default()).unwrap();
        full.write_bytes(0, &bytes(16 * CHUNK as usize, 2)).await.unwrap();
        let error = volume.resize_class("slow", CHUNK, &relocation).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NoSpace);
        assert!(error.to_string().contains("made smaller: none but the first 1 "), "{error}");
        assert_eq!(volume.classes()[1].chunks, 16);
        assert_eq!(object.read_bytes(0, data.len()).await.unwrap(), data);
        volume.close().await.unwrap();
    });
}
