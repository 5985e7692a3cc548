//! What users pin to the fast class is there, its room is nobody else's, and policies go on in what is left.

use futures::executor::block_on;
use tanada_placement::{ChunkCount, Event, ObjectNo, Placer, QueryId, Rule, Tier};
use tanada_volume::{Attributes, Object, Relocation, Volume};

use crate::volumes::{CHUNK, begin, options, read, volume, work};

const POLICIES: [&str; 4] = ["benefit", "plan", "static", "history:window=40,ahead=1"];

/// A further object of four chunks, all of them in the fast class, as homes or as mirrors.
fn beside(volume: &Volume, are_homes: bool) -> Object {
    block_on(async {
        let object = volume.create_object("kept", &Attributes::default()).unwrap();
        object.write_bytes(0, &vec![9; 4 * CHUNK as usize]).await.unwrap();
        let relocation = Relocation::default();
        match are_homes {
            true => object.move_to(0..4, "staging", &relocation).await.unwrap(),
            false => object.mirror_to(0..4, "staging", &relocation).await.unwrap(),
        };
        object
    })
}

fn pin(object: &Object, class: Option<&str>) {
    let pin = class.map(str::to_owned);
    object.set_attributes(&Attributes { pin, ..Attributes::default() }).unwrap();
}

fn count(object: ObjectNo, chunk: u64) -> ChunkCount {
    ChunkCount { object, chunk, reads: 9, bytes: 9, sequential_share: 0.0 }
}

/// One query and what is done beside it and after it; nothing of that is refused.
fn run(placer: &mut Placer, query: u32, items: ObjectNo, chunks: std::ops::Range<u64>) -> Vec<String> {
    begin(placer, query, items, chunks.clone());
    let mut done = work(placer);
    for _ in 0..10 {
        chunks.clone().for_each(|chunk| read(placer, query, items, chunk));
    }
    done.extend(work(placer));
    placer.tell(0, &Event::QueryEnds { query: QueryId(query) });
    done.extend(work(placer));
    done
}

/// Two sets of chunks in turn, more than there is room for; each query is one of another statement, from `first` on.
fn in_turn(placer: &mut Placer, items: ObjectNo, first: u32) -> Vec<String> {
    let chunks = |no: u32| if no.is_multiple_of(2) { 0..4 } else { 10..14 };
    (0..8).flat_map(|no| run(placer, first + no, items, chunks(no))).collect()
}

fn begun(volume: &Volume, policy: &str, items: &Object, kept: Option<&Object>) -> (Placer, ObjectNo) {
    let mut placer = Placer::new(volume, options(policy)).unwrap();
    let items = placer.add(items.clone());
    let kept = kept.map(|kept| placer.add(kept.clone()));
    let counts = [0, 1, 2, 3, 10, 11, 12, 13].map(|chunk| count(items, chunk));
    placer.train_counts(&counts);
    kept.into_iter().for_each(|kept| placer.train_counts(&[count(kept, 0), count(kept, 1)]));
    placer.prepare(0);
    (placer, items)
}

/// The policy took what is pinned for room that it could have: its drops were refused, and the copies that went with
/// them found none.
#[test]
fn policies_use_the_capacity_left_by_pins() {
    for policy in POLICIES {
        let (small, large) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (alone, items) = volume(&small, 4);
        let (mut placer, no) = begun(&alone, policy, &items, None);
        let mut expected = work(&mut placer);
        expected.extend(in_turn(&mut placer, no, 1));

        let (shared, items) = volume(&large, 8);
        let kept = beside(&shared, true);
        pin(&kept, Some("staging"));
        let (mut placer, no) = begun(&shared, policy, &items, Some(&kept));
        assert_eq!(placer.capacity(), 4, "{policy}");
        let mut done = work(&mut placer);
        done.extend(in_turn(&mut placer, no, 1));
        assert_eq!(done, expected, "{policy}");
        assert!(done.len() >= if policy == "static" { 4 } else { 12 }, "{policy}: {done:?}");
        let is_there = |chunk: &tanada_volume::ChunkInfo| chunk.home.is_some_and(|home| home.class == 0);
        assert!(kept.chunks(0..4).iter().all(is_there), "{policy}");
    }
}

/// A pin that is set while queries run takes its room from the policy, with what it has brought, and gives it back when
/// it goes.
#[test]
fn pins_take_and_return_capacity() {
    for policy in ["benefit", "plan"] {
        let folder = tempfile::tempdir().unwrap();
        let (volume, items) = volume(&folder, 8);
        let kept = beside(&volume, false);
        let (mut placer, no) = begun(&volume, policy, &items, Some(&kept));
        assert_eq!(placer.capacity(), 8, "{policy}");
        pin(&kept, Some("staging"));
        let is_kept = |done: &String| (20..24).any(|chunk| *done == format!("drop {chunk}"));
        let done = in_turn(&mut placer, no, 1);
        assert!(done.len() > 12 && !done.iter().any(is_kept), "{policy}: {done:?}");
        assert_eq!(placer.capacity(), 4, "{policy}");
        pin(&kept, None);
        // It is the policy's again, and goes for what is read.
        let done = in_turn(&mut placer, no, 11);
        assert_eq!(placer.capacity(), 8, "{policy}");
        assert!(done.iter().any(is_kept), "{policy}: {done:?}");
        // What the policy itself has brought is its user's now.
        pin(&items, Some("staging"));
        assert_eq!(
            run(&mut placer, 21, no, 0..4),
            [""; 0],
            "{policy}: no pinned chunk is a policy's to bring"
        );
        assert!(placer.capacity() < 8, "{policy}");
    }
}

/// A copy that was under way when its object was pinned became the policy's, in room that it no longer had.
#[test]
fn a_copy_under_way_belongs_to_the_pin() {
    let folder = tempfile::tempdir().unwrap();
    let (volume, items) = volume(&folder, 4);
    let (mut placer, no) = begun(&volume, "benefit", &items, None);
    begin(&mut placer, 1, no, 4..5);
    let wish = placer.begin().unwrap();
    placer.set_rule(no, Rule { pin: Some(Tier::Fast), quota_chunks: None });
    assert_eq!(placer.capacity(), 4);
    let outcome = block_on(wish.run());
    assert!(placer.finish(wish, outcome).is_done);
    assert_eq!(placer.capacity(), 3);
    placer.set_rule(no, Rule::default());
    assert_eq!(placer.capacity(), 4);
    placer.tell(0, &Event::QueryEnds { query: QueryId(1) });
    // Its room is the policy's, which drops it for others.
    let done = run(&mut placer, 2, no, 10..14);
    assert!(done.contains(&"drop 4".to_owned()) && done.len() == 5, "{done:?}");
}
