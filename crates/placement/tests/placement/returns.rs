//! What users have put into the fast class, or keep out of it, while policies work there.

use futures::executor::block_on;
use tanada_io::{Device, DeviceOptions, Method};
use tanada_placement::{ChunkCount, Event, ObjectNo, Placer, QueryId, Wish};
use tanada_volume::{Attributes, ClassParts, ClassSettings, Object, Relocation, Volume};

use crate::volumes::{CHUNK, begin, mirrored, options, volume, work};

/// A placer of the object that remembers what was learned, with chunk 8 read most, then 3 and 4, and then 15 and 16.
fn session(volume: &Volume, object: &Object, policy: &str, learned: &[u8]) -> (Placer, ObjectNo) {
    let mut placer = Placer::new(volume, options(policy)).unwrap();
    let no = placer.add(object.clone());
    placer.remember(learned).unwrap();
    let count = |(chunk, reads)| ChunkCount { object: no, chunk, reads, bytes: reads, sequential_share: 0.0 };
    placer.train_counts(&[(3, 9), (4, 8), (8, 20), (15, 2), (16, 1)].map(count));
    placer.prepare(0);
    (placer, no)
}

fn end(placer: &mut Placer, query: u32) {
    placer.tell(0, &Event::QueryEnds { query: QueryId(query) });
}

/// In which class the homes of these chunks lie, and which of them have mirrors.
fn places(object: &Object, chunks: std::ops::Range<u64>) -> Vec<(u64, Option<u8>, bool)> {
    let chunks = object.chunks(chunks).into_iter();
    chunks.map(|it| (it.no, it.home.map(|home| home.class), it.mirror.is_some())).collect()
}

/// What had to make room stayed away when the session ended before it could come back, and a mirror came back as a
/// move.
#[test]
fn displaced_chunks_return_in_the_next_session_as_they_were() {
    for between in [&[][..], &["off"], &["benefit", "static"]] {
        let folder = tempfile::tempdir().unwrap();
        let (volume, object) = volume(&folder, 2);
        block_on(object.mirror_to(15..16, "staging", &Relocation::default())).unwrap();
        block_on(object.move_to(16..17, "staging", &Relocation::default())).unwrap();
        let before = places(&object, 15..17);
        let (mut placer, no) = session(&volume, &object, "plan", &[]);
        begin(&mut placer, 1, no, 3..5);
        assert_eq!(work(&mut placer).len(), 4);
        assert_ne!(places(&object, 15..17), before);
        // The query is over, and so is the session; or another policy goes on.
        end(&mut placer, 1);
        for policy in between {
            let mut other = Placer::new(&volume, options(policy)).unwrap();
            other.add(object.clone());
            other.follow(&placer).unwrap();
            placer = other;
        }
        let (mut placer, no) = session(&volume, &object, "plan", &placer.memory());
        let back = work(&mut placer);
        assert!(back.contains(&"mirror 15".to_owned()) && back.contains(&"move 16".to_owned()), "{back:?}");
        assert_eq!(places(&object, 15..17), before, "after {between:?}");
        // It is as much its user's as before.
        begin(&mut placer, 2, no, 8..9);
        assert_eq!(work(&mut placer).len(), 2);
        end(&mut placer, 2);
        work(&mut placer);
        assert_eq!(places(&object, 15..17), before, "after {between:?}");
        let (mut last, _) = session(&volume, &object, "plan", &placer.memory());
        assert_eq!(last.waiting(), 0, "{:?}", work(&mut last));
    }
}

/// It became the policy's when a second query wanted what a first one had moved away.
#[test]
fn chunks_returned_for_a_query_still_belong_to_their_user() {
    let folder = tempfile::tempdir().unwrap();
    let (volume, object) = volume(&folder, 1);
    block_on(object.mirror_to(15..16, "staging", &Relocation::default())).unwrap();
    let before = places(&object, 15..16);
    let (mut placer, no) = session(&volume, &object, "plan", &[]);
    begin(&mut placer, 1, no, 8..9);
    assert_eq!(work(&mut placer), ["drop 15", "move 8"]);
    begin(&mut placer, 2, no, 15..16);
    assert_eq!(work(&mut placer), ["move 8", "mirror 15"]);
    let (mut placer, no) = session(&volume, &object, "plan", &placer.memory());
    begin(&mut placer, 1, no, 8..9);
    assert_eq!(work(&mut placer), ["drop 15", "move 8"]);
    end(&mut placer, 1);
    assert_eq!(work(&mut placer), ["move 8", "mirror 15"]);
    assert_eq!(places(&object, 15..16), before);
}

/// Those who copied for the policy before were not counted.
#[test]
fn quotas_hold_while_copies_of_the_policy_before_are_under_way() {
    let folder = tempfile::tempdir().unwrap();
    let (volume, object) = volume(&folder, 6);
    let quota = Attributes { quota_bytes: Some(2 * CHUNK), ..Attributes::default() };
    object.set_attributes(&quota).unwrap();
    let (mut first, no) = session(&volume, &object, "plan", &[]);
    begin(&mut first, 1, no, 3..5);
    let former: Vec<Wish> = std::iter::from_fn(|| first.begin()).collect();
    assert_eq!(former.len(), 2);
    let (mut second, no) = session(&volume, &object, "plan", &[]);
    second.follow(&first).unwrap();
    drop(first);
    begin(&mut second, 2, no, 8..9);
    assert!(second.begin().is_none(), "both of the quota are taken");
    for wish in &former {
        let placed = second.finish_former(wish, block_on(wish.run())).unwrap();
        assert_eq!((placed.policy.as_str(), placed.is_done), ("plan", true));
    }
    end(&mut second, 2);
    // They are known, and the policy's: one goes for another, and does not come back.
    begin(&mut second, 3, no, 8..9);
    assert_eq!(work(&mut second), ["move 4", "move 8"]);
    end(&mut second, 3);
    assert!(work(&mut second).is_empty());
    assert_eq!(second.capacity(), 6);
}

/// It was moved to the slowest class when its room was wanted.
#[test]
fn chunks_of_a_middle_class_keep_their_home() {
    let folder = tempfile::tempdir().unwrap();
    let (volume, _) = volume(&folder, 1);
    let object = block_on(async {
        let file = folder.path().join("middle");
        let options = DeviceOptions { method: Method::Buffered, writable: true, create: true };
        let device = Device::open(file, &options).unwrap();
        let class =
            ClassSettings { name: "middle".to_owned(), segment_bytes: 16 << 10, size_bytes: 20 * CHUNK };
        let parts = ClassParts { name: class.name.clone(), devices: vec![Some(device)] };
        volume.add_class(&class, parts, 1).await.unwrap();
        let attributes = Attributes { class: Some("middle".to_owned()), ..Attributes::default() };
        let object = volume.create_object("in between", &attributes).unwrap();
        object.write_bytes(0, &vec![7; 4 * CHUNK as usize]).await.unwrap();
        object
    });
    let homes = || {
        let chunks = object.chunks(0..4);
        chunks.iter().map(|chunk| chunk.home.unwrap().class).collect::<std::collections::BTreeSet<_>>()
    };
    let home = homes();
    assert_eq!(home.len(), 1);
    let mut placer = Placer::new(&volume, options("plan")).unwrap();
    let no = placer.add(object.clone());
    for chunk in [1, 1, 2] {
        let reads = ChunkCount { object: no, chunk, reads: 1, bytes: 16384, sequential_share: 0.0 };
        placer.train_counts(&[reads]);
    }
    begin(&mut placer, 1, no, 1..2);
    assert_eq!(work(&mut placer), ["mirror 1"]);
    placer.tell(0, &Event::QueryEnds { query: QueryId(1) });
    begin(&mut placer, 2, no, 2..3);
    assert_eq!(work(&mut placer), ["drop 1", "mirror 2"]);
    assert_eq!((homes(), mirrored(&object)), (home, vec![2]));
}

/// It took them for somebody else's, and moved them back after each query.
#[test]
fn chunks_placed_by_policies_in_earlier_sessions_do_not_return() {
    let folder = tempfile::tempdir().unwrap();
    let (volume, object) = volume(&folder, 2);
    for first in ["plan", "benefit"] {
        let (mut placer, no) = session(&volume, &object, first, &[]);
        begin(&mut placer, 1, no, 3..5);
        assert_eq!(work(&mut placer).len(), 2);
        let learned = placer.memory();
        let (mut placer, no) = session(&volume, &object, "plan", &learned);
        begin(&mut placer, 1, no, 8..9);
        assert_eq!(work(&mut placer).len(), 2, "one goes for another");
        end(&mut placer, 1);
        assert!(work(&mut placer).is_empty(), "after {first}");
        // As it is when the policy is changed in the midst of a session, and when a session comes between that does not
        // know the object.
        let mut other = Placer::new(&volume, options("off")).unwrap();
        other.remember(&placer.memory()).unwrap();
        let mut changed = Placer::new(&volume, options("plan")).unwrap();
        changed.follow(&other).unwrap();
        let no = changed.add(object.clone());
        begin(&mut changed, 1, no, 3..4);
        work(&mut changed);
        end(&mut changed, 1);
        assert!(work(&mut changed).is_empty(), "after {first}");
        block_on(object.move_to(0..20, "capacity", &tanada_volume::Relocation::default())).unwrap();
        object.drop_mirrors(0..20, &tanada_volume::Relocation::default()).unwrap();
    }
    // What somebody has put there is his, even after a query has had its room.
    block_on(object.mirror_to(15..17, "staging", &tanada_volume::Relocation::default())).unwrap();
    let mut learned = Vec::new();
    for _ in 0..2 {
        let (mut placer, no) = session(&volume, &object, "plan", &learned);
        begin(&mut placer, 1, no, 8..9);
        assert_eq!(work(&mut placer).len(), 2);
        end(&mut placer, 1);
        assert_eq!(work(&mut placer).len(), 2);
        assert_eq!(object.chunks(15..17).iter().filter(|chunk| is_up(&volume, chunk)).count(), 2);
        learned = placer.memory();
    }
}

fn is_up(volume: &Volume, chunk: &tanada_volume::ChunkInfo) -> bool {
    let fast = volume.classes()[0].number;
    [chunk.home, chunk.mirror].into_iter().flatten().any(|place| place.class == fast)
}
