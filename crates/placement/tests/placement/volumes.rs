//! A policy at work on a volume in files.

use futures::executor::block_on;
use tanada_io::{Device, DeviceOptions, Method};
use tanada_placement::{
    Access, Action, Cause, ChunkNo, Costs, Event, Extent, Fingerprint, Footprint, Io, IoKind, ObjectIo,
    ObjectNo, Pattern, Placer, PlacerOptions, QueryId,
};
use tanada_volume::{Attributes, Budget, ClassSettings, Object, Parts, Volume, VolumeSettings};
use tempfile::TempDir;

const CHUNK: u64 = 64 << 10;

/// A volume with room for so many chunks in its fast class, and an object of 20 chunks in the slow one.
fn volume(folder: &TempDir, fast_chunks: u64) -> (Volume, Object) {
    let device = |name: &str| {
        let options = DeviceOptions { method: Method::Buffered, writable: true, create: true };
        Device::open(folder.path().join(name), &options).unwrap()
    };
    let parts = Parts::new(device("metadata"));
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

fn options(policy: &str) -> PlacerOptions {
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

fn begin(placer: &mut Placer, query: u32, object: ObjectNo, chunks: std::ops::Range<u64>) {
    let access = Access {
        object,
        cause: Cause(1),
        extents: vec![Extent { offset: chunks.start * CHUNK, len: (chunks.end - chunks.start) * CHUNK }],
        pattern: Pattern::RandomLookUps { expected: 5000 },
        expected_pages: 5000,
        page_bytes: 16384,
        stage: 0,
    };
    let footprint = Footprint { accesses: vec![access] };
    let (query, fingerprint) = (QueryId(query), Fingerprint(u64::from(query)));
    placer.tell(0, &Event::QueryBegins { query, fingerprint, depth: 1, footprint: &footprint });
}

/// Does all that waits; what was done and not refused, in words.
fn work(placer: &mut Placer) -> Vec<String> {
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

fn mirrored(object: &Object) -> Vec<u64> {
    object.chunks(0..20).iter().filter(|chunk| chunk.mirror.is_some()).map(|chunk| chunk.no).collect()
}

#[test]
fn what_the_next_query_looks_up_is_mirrored_and_makes_room_for_the_one_after() {
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
fn what_a_training_run_read_most_is_moved_up_beforehand() {
    let folder = tempfile::tempdir().unwrap();
    let (volume, object) = volume(&folder, 2);
    let mut placer = Placer::new(&volume, options("static")).unwrap();
    placer.add(object.clone());
    for chunk in [7, 9, 9, 1, 7, 9] {
        let (query, cause) = (QueryId(1), Cause(0));
        let io = Io {
            chunk: ChunkNo(chunk),
            kind: IoKind::Read,
            is_sequential: false,
            bytes: 16384,
            query,
            cause,
        };
        placer.train(&Event::Io(io));
    }
    placer.prepare();
    assert_eq!(work(&mut placer), ["move 9", "move 7"]);
    let fast = volume.classes()[0].number;
    let up =
        object.chunks(0..20).into_iter().filter(|chunk| chunk.home.is_some_and(|home| home.class == fast));
    assert_eq!(up.map(|chunk| chunk.no).collect::<Vec<_>>(), [7, 9]);
}

#[test]
fn a_refused_wish_is_told_and_not_repeated() {
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
