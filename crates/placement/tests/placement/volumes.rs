//! A policy at work on a volume in files.

use futures::executor::block_on;
use proptest::prelude::*;
use tanada_io::{Device, DeviceOptions, Method};
use tanada_placement::{
    Access, Action, Cause, ChunkCount, ChunkNo, Costs, ErrorKind, Event, Extent, Fingerprint, Footprint, Io,
    IoKind, MOST_MEMORY_BYTES, ObjectIo, ObjectNo, Pattern, Placer, PlacerOptions, QueryId, Rule, Tier, Wish,
    WishOutcome,
};
use tanada_volume::directory::HostOpener;
use tanada_volume::{Attributes, Budget, ClassSettings, Object, Parts, Volume, VolumeSettings};
use tempfile::TempDir;

pub const CHUNK: u64 = 64 << 10;

/// A volume with room for so many chunks in its fast class, and an object of 20 chunks in the slow one.
pub fn volume(folder: &TempDir, fast_chunks: u64) -> (Volume, Object) {
    let device = |name: &str| {
        let options = DeviceOptions { method: Method::Buffered, writable: true, create: true };
        Device::open(folder.path().join(name), &options).unwrap()
    };
    let mut parts = Parts::new(device("metadata"));
    parts.opener = std::sync::Arc::new(HostOpener::new(Method::Buffered));
    let parts =
        parts.with_class("staging", vec![device("fast")]).with_class("capacity", vec![device("slow")]);
    let class = |name: &str, chunks: u64| ClassSettings {
        name: name.to_owned(),
        segment_bytes: 16 << 10,
        size_bytes: chunks * CHUNK,
    };
    let settings = VolumeSettings {
        id: *b"0123456789abcdef",
        chunk_bytes: CHUNK,
        classes: vec![class("staging", fast_chunks), class("capacity", 40)],
        journal_bytes: 64 << 10,
        ..VolumeSettings::default()
    };
    block_on(async {
        let volume = Volume::create(parts, &settings).await.unwrap();
        let object = volume.create_object("items", &Attributes::default()).unwrap();
        for chunk in 0..20u64 {
            object.write_bytes(chunk * CHUNK, &vec![chunk as u8 + 1; CHUNK as usize]).await.unwrap();
        }
        object.sync().await.unwrap();
        (volume, object)
    })
}

pub fn options(policy: &str) -> PlacerOptions {
    PlacerOptions {
        policy: policy.to_owned(),
        fast: "staging".to_owned(),
        slow: "capacity".to_owned(),
        costs: Costs::default(),
        budget: Budget { yields: false, ..Budget::default() },
        most_chunks: None,
        seed: 1,
    }
}

pub fn begin(placer: &mut Placer, query: u32, object: ObjectNo, chunks: std::ops::Range<u64>) {
    let footprint = footprint(object, chunks);
    let (query, fingerprint) = (QueryId(query), Fingerprint(u64::from(query)));
    placer.tell(0, &Event::QueryBegins { query, fingerprint, depth: 1, footprint: &footprint });
}

pub fn read(placer: &mut Placer, query: u32, object: ObjectNo, chunk: u64) {
    let (query, cause) = (QueryId(query), Cause(1));
    let (offset, kind) = (chunk * CHUNK, IoKind::Read);
    let io = ObjectIo { object, offset, bytes: 16384, kind, is_sequential: false, query, cause };
    placer.io(0, &io);
}

/// Runs a query that reads each of the chunks so many times, without doing what the policy wants.
fn query(placer: &mut Placer, no: u32, object: ObjectNo, chunks: std::ops::Range<u64>, reads: u32) {
    begin(placer, no, object, chunks.clone());
    chunks.for_each(|chunk| (0..reads).for_each(|_| read(placer, no, object, chunk)));
    placer.tell(0, &Event::QueryEnds { query: QueryId(no) });
}

fn footprint(object: ObjectNo, chunks: std::ops::Range<u64>) -> Footprint {
    let access = Access {
        object,
        cause: Cause(1),
        extents: vec![Extent { offset: chunks.start * CHUNK, len: (chunks.end - chunks.start) * CHUNK }],
        pattern: Pattern::RandomLookUps { expected: 5000 },
        expected_pages: 5000,
        earlier_pages: None,
        page_bytes: 16384,
        stage: 0,
    };
    Footprint { accesses: vec![access] }
}

/// Does all that waits; what was done and not refused, in words.
pub fn work(placer: &mut Placer) -> Vec<String> {
    let mut done = Vec::new();
    while let Some(placed) = block_on(placer.relocate()) {
        assert!(placed.refusal.is_none(), "{placed:?}");
        let verb = match placed.decision.action {
            Action::DropMirror => "drop",
            Action::Mirror(_) => "mirror",
            _ => "move",
        };
        done.push(format!("{verb} {}", placed.decision.chunk.0));
    }
    done
}

pub fn mirrored(object: &Object) -> Vec<u64> {
    object.chunks(0..20).iter().filter(|chunk| chunk.mirror.is_some()).map(|chunk| chunk.no).collect()
}

#[test]
fn lookups_of_the_next_query_are_mirrored_and_evicted_for_the_one_after() {
    let folder = tempfile::tempdir().unwrap();
    let (volume, object) = volume(&folder, 3);
    let mut placer = Placer::new(&volume, options("benefit")).unwrap();
    let no = placer.add(object.clone());
    begin(&mut placer, 1, no, 4..7);
    assert_eq!(work(&mut placer), ["mirror 4", "mirror 5", "mirror 6"]);
    assert_eq!(mirrored(&object), [4, 5, 6]);
    let why = object.explain(5).unwrap();
    assert!(why.who == "policy benefit" && why.why.contains("will read it") && why.gain_s > 0.0, "{why:?}");
    placer.tell(0, &Event::QueryEnds { query: QueryId(1) });
    begin(&mut placer, 2, no, 10..12);
    assert_eq!(work(&mut placer).len(), 4, "two are dropped for two");
    let now = mirrored(&object);
    assert!(now.len() == 3 && now.contains(&10) && now.contains(&11), "{now:?}");
    // The bytes are those of the homes, wherever they are read.
    for chunk in 0..20u64 {
        let read = block_on(object.read_bytes(chunk * CHUNK, CHUNK as usize)).unwrap();
        assert!(read.iter().all(|byte| *byte == chunk as u8 + 1), "chunk {chunk}");
    }
}

#[test]
fn ios_that_nothing_announced_bring_their_chunk_up() {
    let folder = tempfile::tempdir().unwrap();
    let (volume, object) = volume(&folder, 3);
    let mut placer = Placer::new(&volume, options("benefit")).unwrap();
    let no = placer.add(object.clone());
    for _ in 0..10 {
        let (query, cause) = (QueryId(9), Cause(0));
        let io = ObjectIo {
            object: no,
            offset: 3 * CHUNK,
            bytes: 16384,
            kind: IoKind::Read,
            is_sequential: false,
            query,
            cause,
        };
        placer.io(0, &io);
    }
    assert_eq!(work(&mut placer), ["mirror 3"]);
    assert_eq!(mirrored(&object), [3]);
}

#[test]
fn the_most_read_chunks_of_training_are_moved_up_beforehand() {
    let folder = tempfile::tempdir().unwrap();
    let (volume, object) = volume(&folder, 2);
    let mut placer = Placer::new(&volume, options("static")).unwrap();
    placer.add(object.clone());
    for chunk in [7, 9, 9, 1, 7, 9] {
        let (query, cause) = (QueryId(1), Cause(0));
        let io = Io {
            offset: 0,
            chunk: ChunkNo(chunk),
            kind: IoKind::Read,
            is_sequential: false,
            bytes: 16384,
            query,
            cause,
        };
        placer.train(&Event::Io(io));
    }
    placer.prepare(0);
    assert_eq!(work(&mut placer), ["move 9", "move 7"]);
    let fast = volume.classes()[0].number;
    let up =
        object.chunks(0..20).into_iter().filter(|chunk| chunk.home.is_some_and(|home| home.class == fast));
    assert_eq!(up.map(|chunk| chunk.no).collect::<Vec<_>>(), [7, 9]);
}

#[test]
fn refused_moves_are_reported_and_not_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let (volume, object) = volume(&folder, 3);
    let mut placer = Placer::new(&volume, options("benefit")).unwrap();
    let no = placer.add(object.clone());
    // Somebody else takes the room.
    block_on(object.mirror_to(15..18, "staging", &tanada_volume::Relocation::default())).unwrap();
    begin(&mut placer, 1, no, 4..7);
    let mut refused = 0;
    while let Some(placed) = block_on(placer.relocate()) {
        refused += u32::from(placed.refusal.is_some());
    }
    assert_eq!((refused, mirrored(&object)), (3, vec![15, 16, 17]));
}

#[test]
fn policies_and_classes_that_do_not_fit_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let (volume, _) = volume(&folder, 3);
    let message = |options| Placer::new(&volume, options).unwrap_err().to_string();
    assert!(message(options("lru")).contains("there are benefit, off, static, plan, history"));
    assert!(
        message(PlacerOptions { fast: "nvme".to_owned(), ..options("off") })
            .contains("it has staging, capacity")
    );
}

#[test]
fn planned_moves_run_concurrently_and_dropped_ones_are_undone() {
    fn can_be_sent<T: Send + 'static>(_: &T) {}
    fn can_move<F: Future<Output = WishOutcome> + Send>(_: &F) {}
    let folder = tempfile::tempdir().unwrap();
    let (volume, object) = volume(&folder, 4);
    let mut placer = Placer::new(&volume, options("benefit")).unwrap();
    let no = placer.add(object.clone());
    begin(&mut placer, 1, no, 4..8);
    let wishes: Vec<Wish> = std::iter::from_fn(|| placer.begin()).collect();
    assert_eq!((wishes.len(), placer.waiting()), (4, 0));
    wishes.iter().for_each(can_be_sent);
    can_move(&wishes[0].run());
    let outcomes = block_on(futures::future::join_all(wishes[..2].iter().map(Wish::run)));
    let mut wishes = wishes.into_iter();
    for (outcome, wish) in outcomes.into_iter().zip(wishes.by_ref().take(2)) {
        assert!(outcome.is_done());
        let placed = placer.finish(wish, outcome);
        assert_eq!((placed.bytes, placed.refusal.is_none()), (CHUNK, true));
    }
    placer.abandon(wishes.next().unwrap());
    // One on another thread.
    let last = wishes.next().unwrap();
    let (wish, outcome) = std::thread::spawn(move || {
        let outcome = block_on(last.run());
        (last, outcome)
    })
    .join()
    .unwrap();
    placer.finish(wish, outcome);
    assert_eq!(mirrored(&object), [4, 5, 7]);
    // The abandoned one has its room back: the next query gets it.
    placer.tell(0, &Event::QueryEnds { query: QueryId(1) });
    begin(&mut placer, 4, no, 4..8);
    assert_eq!(work(&mut placer), ["mirror 6"]);
    // A wish that is just dropped counts as abandoned.
    placer.tell(0, &Event::QueryEnds { query: QueryId(4) });
    begin(&mut placer, 2, no, 12..13);
    while let Some(wish) = placer.begin() {
        drop(wish);
    }
    placer.tell(0, &Event::QueryEnds { query: QueryId(2) });
    begin(&mut placer, 3, no, 14..15);
    assert!(work(&mut placer).contains(&"mirror 14".to_owned()));
}

/// All that time before it began could be written at once.
#[test]
fn a_write_budget_that_is_set_late_has_no_past() {
    let folder = tempfile::tempdir().unwrap();
    let (volume, object) = volume(&folder, 8);
    let mut placer = Placer::new(&volume, options("benefit:write-budget=64KiB")).unwrap();
    let no = placer.add(object.clone());
    let hour_ns = 3_600_000_000_000;
    placer.prepare(hour_ns);
    begin(&mut placer, 1, no, 4..12);
    assert_eq!(work(&mut placer), ["mirror 4", "mirror 5"]);
    placer.tell(hour_ns + 2_000_000_000, &Event::Tick);
    assert_eq!(work(&mut placer), ["mirror 6", "mirror 7"]);
}

#[test]
fn copies_wait_for_space_being_freed() {
    let folder = tempfile::tempdir().unwrap();
    let (volume, object) = volume(&folder, 1);
    let mut placer = Placer::new(&volume, options("plan")).unwrap();
    let no = placer.add(object.clone());
    let count = |chunk| ChunkCount { object: no, chunk, reads: 9, bytes: 9 * 16384, sequential_share: 0.0 };
    placer.train_counts(&[count(3), count(8)]);
    placer.prepare(0);
    begin(&mut placer, 1, no, 3..4);
    assert_eq!(work(&mut placer), ["move 3"]);
    begin(&mut placer, 2, no, 8..9);
    let down = placer.begin().unwrap();
    assert_eq!(down.decision.action, Action::Demote);
    assert!(placer.begin().is_none() && placer.waiting() == 1);
    let outcome = block_on(down.run());
    placer.finish(down, outcome);
    assert_eq!(work(&mut placer), ["move 8"]);
}

#[test]
fn volume_statistics_train_static_and_plan() {
    let folder = tempfile::tempdir().unwrap();
    let (volume, object) = volume(&folder, 2);
    let mut placer = Placer::new(&volume, options("static")).unwrap();
    let no = placer.add(object.clone());
    let counts = [(1, 5), (17, 40), (9, 7), (500, 90)].map(|(chunk, reads)| ChunkCount {
        object: no,
        chunk,
        reads,
        bytes: reads * 16384,
        sequential_share: 0.5,
    });
    placer.train_counts(&counts);
    placer.prepare(0);
    assert_eq!(work(&mut placer), ["move 17", "move 9"]);
}

/// An adopted file of 20 chunks.
fn adopted(folder: &TempDir, volume: &Volume) -> Object {
    let path = folder.path().join("orders.ibd");
    std::fs::write(&path, vec![7; 20 * CHUNK as usize]).unwrap();
    volume.adopt("orders", path.to_str().unwrap(), &Attributes::default()).unwrap()
}

#[test]
fn an_adopted_file_is_mirrored_where_the_policy_wants_a_move() {
    let folder = tempfile::tempdir().unwrap();
    let (volume, _) = volume(&folder, 1);
    let object = adopted(&folder, &volume);
    let mut placer = Placer::new(&volume, options("plan")).unwrap();
    let no = placer.add(object.clone());
    let count = |chunk| ChunkCount { object: no, chunk, reads: 9, bytes: 9 * 16384, sequential_share: 0.0 };
    placer.train_counts(&[count(3), count(8)]);
    placer.prepare(0);
    let foreseen = placer.forecast(Fingerprint(1), 1, &footprint(no, 3..4));
    assert!(matches!(foreseen.moves[0].action, Action::Mirror(_)) && foreseen.gain_s > 1.0, "{foreseen:?}");
    begin(&mut placer, 1, no, 3..4);
    assert_eq!(work(&mut placer), ["mirror 3"]);
    begin(&mut placer, 2, no, 8..9);
    assert_eq!(work(&mut placer), ["drop 3", "mirror 8"]);
    assert_eq!(mirrored(&object), [8]);
}

#[test]
fn resident_chunks_are_known_to_policies_and_their_space_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let (volume, object) = volume(&folder, 2);
    block_on(object.mirror_to(15..17, "staging", &tanada_volume::Relocation::default())).unwrap();
    for policy in ["benefit", "plan", "static"] {
        let mut placer = Placer::new(&volume, options(policy)).unwrap();
        let no = placer.add(object.clone());
        assert_eq!((placer.capacity(), placer.policy_name()), (2, policy));
        assert_eq!(
            placer.objects().map(|(no, object)| (no.0, object.name())).collect::<Vec<_>>(),
            [(0, "items".to_owned())]
        );
        let footprint = footprint(no, 15..17);
        let foreseen = placer.forecast(Fingerprint(1), 1, &footprint);
        assert_eq!((foreseen.chunks, foreseen.fast_chunks, foreseen.moves.len()), (2, 2, 0), "{policy}");
        let count = |chunk| ChunkCount { object: no, chunk, reads: 9, bytes: 9, sequential_share: 0.0 };
        placer.train_counts(&[count(4), count(15)]);
        placer.prepare(0);
        if policy == "static" {
            assert_eq!(work(&mut placer), ["drop 16", "move 4"]);
        } else {
            begin(&mut placer, 1, no, 4..5);
            let done = work(&mut placer);
            assert!(done.len() == 2 && done[0].starts_with("drop"), "{policy}: {done:?}");
        }
        block_on(object.move_to(0..20, "capacity", &tanada_volume::Relocation::default())).unwrap();
        object.drop_mirrors(0..20, &tanada_volume::Relocation::default()).unwrap();
        block_on(object.mirror_to(15..17, "staging", &tanada_volume::Relocation::default())).unwrap();
    }
}

#[test]
fn forecasts_list_moves_without_side_effects() {
    let folder = tempfile::tempdir().unwrap();
    let (volume, object) = volume(&folder, 3);
    let mut placer = Placer::new(&volume, options("benefit")).unwrap();
    let no = placer.add(object.clone());
    query(&mut placer, 2, no, 10..11, 300);
    while placer.begin().is_some() {}
    let footprint = footprint(no, 4..9);
    let foreseen = placer.forecast(Fingerprint(1), 1, &footprint);
    assert_eq!((foreseen.chunks, foreseen.fast_chunks, foreseen.remembered_runs), (5, 0, 0));
    assert_eq!(foreseen.move_bytes, 3 * CHUNK, "there is room for three");
    let chunks: Vec<u64> = foreseen.moves.iter().map(|planned| planned.chunk_of_object).collect();
    assert_eq!(chunks, [4, 5, 6]);
    let first = &foreseen.moves[0];
    assert!(first.why.contains("the running query will read it") && first.object == no && first.gain_s > 0.0);
    let gains: f64 = foreseen.moves.iter().map(|planned| f64::from(planned.gain_s)).sum();
    assert!((foreseen.gain_s - foreseen.cost_s - gains).abs() < 1e-3, "{foreseen:?}");
    assert_eq!(placer.forecast(Fingerprint(1), 1, &footprint), foreseen);
    assert_eq!((placer.waiting(), mirrored(&object)), (0, vec![]));
    // And so it comes.
    begin(&mut placer, 1, no, 4..9);
    assert_eq!(work(&mut placer), ["mirror 4", "mirror 5", "mirror 6"]);
    assert_eq!(placer.forecast(Fingerprint(2), 1, &footprint).remembered_runs, 1);
}

#[test]
fn pins_and_quotas_are_read_again_when_a_query_begins() {
    let folder = tempfile::tempdir().unwrap();
    let (volume, object) = volume(&folder, 3);
    let mut placer = Placer::new(&volume, options("benefit")).unwrap();
    let no = placer.add(object.clone());
    let pinned = Attributes { pin: Some("capacity".to_owned()), ..Attributes::default() };
    object.set_attributes(&pinned).unwrap();
    begin(&mut placer, 1, no, 4..7);
    assert!(work(&mut placer).is_empty());
    placer.tell(0, &Event::QueryEnds { query: QueryId(1) });
    let quota = Attributes { quota_bytes: Some(2 * CHUNK), ..Attributes::default() };
    object.set_attributes(&quota).unwrap();
    begin(&mut placer, 2, no, 4..7);
    assert_eq!(work(&mut placer), ["mirror 4", "mirror 5"]);
    placer.tell(0, &Event::QueryEnds { query: QueryId(2) });
    object.set_attributes(&Attributes::default()).unwrap();
    placer.set_rule(no, Rule { pin: Some(Tier::Slow), quota_chunks: None });
    begin(&mut placer, 3, no, 4..7);
    assert!(work(&mut placer).is_empty());
    placer.tell(0, &Event::QueryEnds { query: QueryId(3) });
    placer.set_rule(no, Rule::default());
    begin(&mut placer, 4, no, 4..7);
    assert_eq!(work(&mut placer), ["mirror 6"]);
}

#[test]
fn learned_memory_is_kept_for_the_next_session_and_fades() {
    let folder = tempfile::tempdir().unwrap();
    let (volume, object) = volume(&folder, 3);
    let other = block_on(async {
        let other = volume.create_object("another", &Attributes::default()).unwrap();
        other.write_bytes(0, &vec![1; 2 * CHUNK as usize]).await.unwrap();
        other
    });
    let mut first = Placer::new(&volume, options("benefit")).unwrap();
    let no = first.add(object.clone());
    for _ in 0..3 {
        query(&mut first, 1, no, 4..6, 200);
        query(&mut first, 2, no, 12..14, 200);
    }
    let learned = first.memory();
    // The next session has another object before, so all numbers are others; and its plan says nothing.
    let mut second = Placer::new(&volume, options("benefit")).unwrap();
    second.remember(&learned).unwrap();
    second.add(other.clone());
    let no = second.add(object.clone());
    let empty = Footprint::default();
    let foreseen = second.forecast(Fingerprint(1), 1, &empty);
    let wanted: Vec<u64> = foreseen.moves.iter().map(|planned| planned.chunk_of_object).collect();
    assert_eq!((wanted, foreseen.remembered_runs, foreseen.chunks), (vec![4, 5], 3, 0));
    assert!(foreseen.moves.iter().all(|planned| planned.object == no));
    // Statement 1 begins: what followed it is fetched ahead.
    second.tell(
        0,
        &Event::QueryBegins { query: QueryId(9), fingerprint: Fingerprint(1), depth: 1, footprint: &empty },
    );
    assert_eq!(work(&mut second).len(), 3);
    assert!(mirrored(&object).contains(&12));
    // A session without the object does not forget it, but some fade.
    let mut learned = learned;
    let mut loads = 0;
    let runs = loop {
        let mut session = Placer::new(&volume, options("benefit")).unwrap();
        let no = session.add(other.clone());
        session.remember(&learned).unwrap();
        begin(&mut session, 7, no, 0..1);
        learned = session.memory();
        loads += 1;
        let mut last = Placer::new(&volume, options("benefit")).unwrap();
        last.add(object.clone());
        last.remember(&learned).unwrap();
        let runs = last.forecast(Fingerprint(1), 1, &empty).remembered_runs;
        assert!(runs <= 3);
        if runs == 0 || loads == 6 {
            break runs;
        }
    };
    assert!((1..3).contains(&runs), "{runs} after {loads} loads");
}

/// It faded with each opening of the volume, whatever was asked there.
#[test]
fn learned_memory_does_not_fade_without_queries() {
    let folder = tempfile::tempdir().unwrap();
    let (volume, object) = volume(&folder, 3);
    let mut first = Placer::new(&volume, options("benefit")).unwrap();
    let no = first.add(object.clone());
    query(&mut first, 1, no, 4..6, 200);
    query(&mut first, 2, no, 12..14, 200);
    let learned = first.memory();
    let mut kept = learned.clone();
    for _ in 0..20 {
        let mut session = Placer::new(&volume, options("benefit")).unwrap();
        session.add(object.clone());
        session.remember(&kept).unwrap();
        session.prepare(0);
        // Nor does a change of the policy make it older.
        let mut other = Placer::new(&volume, options("static")).unwrap();
        other.add(object.clone());
        other.follow(&session).unwrap();
        kept = other.memory();
    }
    assert_eq!(kept, learned);
    let run = |session: &mut Placer, no: u32| {
        let (query, fingerprint, footprint) = (QueryId(no), Fingerprint(u64::from(no)), Footprint::default());
        session.tell(0, &Event::QueryBegins { query, fingerprint, depth: 1, footprint: &footprint });
        session.tell(0, &Event::QueryEnds { query });
    };
    // One in which something runs fades it once, whichever policies are at work.
    let faded = |policies: &[&str]| {
        let mut session = Placer::new(&volume, options("benefit")).unwrap();
        session.add(object.clone());
        session.remember(&learned).unwrap();
        for policy in policies {
            let mut other = Placer::new(&volume, options(policy)).unwrap();
            other.add(object.clone());
            other.follow(&session).unwrap();
            session = other;
        }
        run(&mut session, 9);
        session.memory()
    };
    assert_ne!(faded(&["off"]), learned);
    assert_eq!(faded(&["off"]), faded(&["off", "off"]));
    // Nor does a change between queries fade it once more.
    let changed = |times: u32| {
        let mut session = Placer::new(&volume, options("benefit")).unwrap();
        session.add(object.clone());
        session.remember(&learned).unwrap();
        run(&mut session, 9);
        for no in 0..times {
            let mut other = Placer::new(&volume, options("off")).unwrap();
            other.add(object.clone());
            other.follow(&session).unwrap();
            session = other;
            run(&mut session, 10 + no);
        }
        session.memory()
    };
    assert_eq!(changed(1), changed(3));
    // A run that a policy is trained with counts as one.
    let mut trained = Placer::new(&volume, options("benefit")).unwrap();
    trained.add(object.clone());
    trained.remember(&learned).unwrap();
    let (query, fingerprint, footprint) = (QueryId(9), Fingerprint(9), Footprint::default());
    trained.train(&Event::QueryBegins { query, fingerprint, depth: 1, footprint: &footprint });
    trained.train(&Event::QueryEnds { query });
    assert_ne!(trained.memory(), learned);
}

/// Of the policy that learns from I/Os alone, whoever asked for them.
#[test]
fn ios_without_a_query_are_learned() {
    let folder = tempfile::tempdir().unwrap();
    let (volume, object) = volume(&folder, 3);
    let session = |learned: &[u8], chunks: std::ops::Range<u64>| {
        let mut session = Placer::new(&volume, options("history:window=4")).unwrap();
        let no = session.add(object.clone());
        session.remember(learned).unwrap();
        for chunk in chunks {
            (0..8).for_each(|_| read(&mut session, 1, no, chunk));
        }
        session.memory()
    };
    let learned = session(b"", 1..4);
    assert!(!learned.is_empty());
    assert_ne!(session(&learned, 9..14), learned);
}

#[test]
fn counts_and_windows_are_learned_for_good_too() {
    let folder = tempfile::tempdir().unwrap();
    let (volume, object) = volume(&folder, 2);
    for policy in ["static", "history:window=10,ahead=1"] {
        let mut first = Placer::new(&volume, options(policy)).unwrap();
        let no = first.add(object.clone());
        for chunk in [7, 7, 9, 9, 9, 9, 7, 7, 7, 9] {
            let io = Io {
                offset: 0,
                chunk: ChunkNo(chunk),
                kind: IoKind::Read,
                is_sequential: false,
                bytes: 16384,
                query: QueryId(1),
                cause: Cause(0),
            };
            first.train(&Event::Io(io));
        }
        assert_eq!(no, ObjectNo(0));
        let learned = first.memory();
        let mut second = Placer::new(&volume, options(policy)).unwrap();
        second.add(object.clone());
        second.remember(&learned).unwrap();
        second.prepare(0);
        let done = work(&mut second);
        assert_eq!(done.len(), 2, "{policy}: {done:?}");
        block_on(object.move_to(0..20, "capacity", &tanada_volume::Relocation::default())).unwrap();
        object.drop_mirrors(0..20, &tanada_volume::Relocation::default()).unwrap();
    }
}

#[test]
fn a_memory_of_other_chunks_versions_or_files_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (volume, object) = volume(&folder, 2);
    let mut placer = Placer::new(&volume, options("benefit")).unwrap();
    let no = placer.add(object);
    // No bytes at all are what was learned by nobody.
    let nothing = placer.memory();
    assert!(nothing.is_empty());
    placer.remember(&nothing).unwrap();
    query(&mut placer, 1, no, 4..6, 50);
    let learned = placer.memory();
    let mut refused = |bytes: &[u8]| {
        let error = placer.remember(bytes).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupted);
        error.to_string()
    };
    let mut newer = learned.clone();
    newer[9] = 2;
    assert!(refused(&newer).contains("version is 2"));
    assert!(refused(b"PAR1 and so on, a file of somebody else").contains("does not begin"));
    assert!(refused(&learned[..learned.len() - 1]).contains("checksum"));
    assert_eq!(placer.layout().objects(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Bytes with a right checksum are as hostile as any.
    #[test]
    fn no_bytes_make_it_panic(
        cut in 0usize..4000,
        flips in proptest::collection::vec((0usize..4000, any::<u8>()), 0..6),
        sealed in any::<bool>(),
    ) {
        thread_local! {
            static WORLD: (TempDir, Volume, Object, Vec<u8>) = {
                let folder = tempfile::tempdir().unwrap();
                let (volume, object) = volume(&folder, 2);
                let mut placer = Placer::new(&volume, options("benefit")).unwrap();
                let no = placer.add(object.clone());
                query(&mut placer, 1, no, 4..16, 300);
                query(&mut placer, 2, no, 1..6, 30);
                let learned = placer.memory();
                assert!(learned.len() < MOST_MEMORY_BYTES);
                (folder, volume, object, learned)
            };
        }
        WORLD.with(|(_, volume, object, learned)| {
            let mut bytes = learned[..learned.len() - cut % learned.len()].to_vec();
            for (at, to) in &flips {
                let at = at % bytes.len();
                bytes[at] = *to;
            }
            if sealed && bytes.len() > 16 {
                let checksum = crate::crc32c_of(&bytes[16..]);
                bytes[12..16].copy_from_slice(&checksum.to_be_bytes());
            }
            let mut placer = Placer::new(volume, options("benefit")).unwrap();
            let no = placer.add(object.clone());
            let before = placer.memory();
            if placer.remember(&bytes).is_err() {
                assert_eq!(placer.memory(), before);
            } else {
                let _ = placer.forecast(Fingerprint(1), 1, &footprint(no, 0..20));
                assert!(placer.memory().len() <= MOST_MEMORY_BYTES);
            }
        });
    }
}
