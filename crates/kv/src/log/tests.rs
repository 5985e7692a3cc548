//! What is appended comes back after a replay; what is damaged is found, or cut off.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use proptest::prelude::*;
use tanada_io::BufferPool;
use tanada_volume::{Attributes, Object};

use super::frame::{FRAME_HEADER, NewOperation, OperationKind, Payload, PayloadBuilder};
use super::replay::{FramePlace, ReplayFrom, Replayed, replay};
use super::writer::{Log, LogOptions};
use super::{BLOCK, Lsn};
use crate::ErrorKind;
use crate::cache::Cache;
use crate::classes::Classes;
use crate::crash::CrashPoints;
use crate::entry::{Codec, SegmentNo};
use crate::environment::{BackgroundTask, Environment, ThreadEnvironment, wait_for};
use crate::notify::Notify;
use crate::objects::{ObjectKind, Objects};
use crate::testing::TestVolume;
use crate::value::Segments;

const DATABASE: u64 = 99;

fn payload(tag: u64, len: usize) -> Payload {
    let mut builder = PayloadBuilder::default();
    let value = vec![tag as u8; len];
    builder.push(&NewOperation {
        store: 1,
        kind: OperationKind::Put,
        key: &tag.to_be_bytes(),
        value: &value,
        value_len: len as u32,
        codec: Codec::None,
        expires_s: None,
    });
    builder.finish()
}

fn options(epoch: u64, start: Lsn) -> LogOptions {
    LogOptions {
        segment_bytes: 1 << 20,
        group_bytes: 64 << 10,
        waiting_bytes: 1 << 20,
        database: DATABASE,
        epoch,
        start,
        durable: start,
    }
}

fn start(volume: &TestVolume, objects: &Arc<Objects>, epoch: u64, from: Lsn) -> Arc<Log> {
    start_in(volume.environment(), volume, objects, options(epoch, from))
}

fn start_in(
    environment: Arc<dyn Environment>,
    volume: &TestVolume,
    objects: &Arc<Objects>,
    options: LogOptions,
) -> Arc<Log> {
    let (segments, crash) = (Segments::new(objects, &Cache::new(1 << 20), None), CrashPoints::default());
    let classes = Classes::new(&volume.volume, None);
    Log::start(options, classes, Vec::new(), objects.clone(), segments, environment, crash)
}

/// An environment that has no thread for any task.
#[derive(Debug)]
struct NoThreads(Arc<ThreadEnvironment>);

impl Environment for NoThreads {
    fn spawn(&self, task: BackgroundTask) {
        drop(task);
    }

    fn sleep(&self, duration: Duration) -> BackgroundTask {
        self.0.sleep(duration)
    }

    fn now(&self) -> Duration {
        self.0.now()
    }

    fn wall_time_s(&self) -> u64 {
        self.0.wall_time_s()
    }

    fn buffers(&self) -> Arc<BufferPool> {
        self.0.buffers()
    }
}

/// Appends a frame that is to be durable within a second, waiting for space as often as it takes; the LSN behind it.
fn append(log: &Log, tag: u64, len: usize) -> Lsn {
    append_within(log, tag, len, Some(1000))
}

fn append_within(log: &Log, tag: u64, len: usize, within_ms: Option<u16>) -> Lsn {
    let payload = payload(tag, len);
    loop {
        if let Some(appended) = log.append(&payload, tag, within_ms).unwrap() {
            return appended.end;
        }
        wait_for(log.room(payload.frame_len())).unwrap();
    }
}

fn segments(objects: &Objects) -> Vec<SegmentNo> {
    let mut all: Vec<_> = objects.list().into_iter().map(|(_, no)| no).collect();
    all.sort_unstable();
    all
}

fn from_start() -> ReplayFrom {
    ReplayFrom { database: DATABASE, lsn: 0, segment: None, durable: 0, takes_torn: false }
}

/// A frame's sequence number, which is its tag, its place, and where it ends.
type Found = (u64, FramePlace, Lsn);

/// The frames, and the end.
fn read(objects: &Arc<Objects>, from: ReplayFrom) -> crate::Result<(Vec<Found>, Replayed)> {
    let mut frames = Vec::new();
    let mut on_frame = |frame: super::frame::Frame, place: FramePlace| {
        frames.push((frame.sequence, place, frame.lsn + frame.payload.frame_len() as u64));
        Ok(())
    };
    let found = {
        let values = Segments::new(objects, &Cache::new(1 << 20), None);
        wait_for(replay(objects, &values, &segments(objects), from, &mut on_frame, &mut |_| ()))?
    };
    Ok((frames, found))
}

fn segment(objects: &Arc<Objects>, no: SegmentNo) -> Object {
    objects.open(ObjectKind::Segment, no).unwrap().1
}

#[test]
fn frames_come_back_over_many_segments() {
    let volume = TestVolume::new();
    let objects = volume.objects();
    let log = start(&volume, &objects, 1, 0);
    let mut last = 0;
    for tag in 0..400 {
        last = append(&log, tag, if tag == 7 { 3 << 20 } else { 100 + (tag as usize * 37) % 20_000 });
    }
    wait_for(log.sync_to(last)).unwrap();
    assert!(log.durable() >= last);
    wait_for(log.close()).unwrap();
    let (frames, found) = read(&objects, from_start()).unwrap();
    assert!(frames.iter().map(|(tag, _, _)| *tag).eq(0..400));
    assert!(found.segments.len() > 4, "{}", found.segments.len());
    assert_eq!(found.end, last.next_multiple_of(BLOCK));
    // A place leads to the payload.
    let (tag, place, _) = frames[200];
    let object = segment(&objects, place.segment);
    let bytes = object.read_bytes(place.payload, 5000);
    let expected = payload(tag, 100 + 200 * 37);
    assert_eq!(wait_for(bytes).unwrap(), expected.bytes[..5000.min(expected.bytes.len())]);
}

#[test]
fn a_segment_that_was_prepared_too_small_is_no_obstacle() {
    let volume = TestVolume::new();
    let objects = volume.objects();
    let log = start(&volume, &objects, 1, 0);
    wait_for(log.room(100)).unwrap();
    // Nothing was appended: what was prepared is ready, and for this one another has to be made.
    wait_for(log.room(3 << 20)).unwrap();
    append(&log, 1, 3 << 20);
    wait_for(log.close()).unwrap();
    assert_eq!(read(&objects, from_start()).unwrap().0.len(), 1);
}

#[test]
fn a_sync_after_the_log_has_ended_is_refused() {
    let volume = TestVolume::new();
    let objects = volume.objects();
    let log = start(&volume, &objects, 1, 0);
    let end = append_within(&log, 1, 100, None);
    log.stop();
    wait_for(log.ended());
    assert_eq!(wait_for(log.sync_to(end)).unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(wait_for(log.close()).unwrap_err().kind(), ErrorKind::Closed);
}

#[test]
fn writes_with_a_deadline_are_durable_when_the_log_stops() {
    let volume = TestVolume::new();
    let objects = volume.objects();
    let log = start(&volume, &objects, 1, 0);
    let end = append(&log, 1, 100);
    log.stop();
    wait_for(log.ended());
    wait_for(log.sync_to(end)).unwrap();
    assert_eq!(wait_for(log.room(100)).unwrap_err().kind(), ErrorKind::Closed);
    wait_for(log.close()).unwrap();
}

#[test]
fn waiters_are_released_when_log_tasks_end() {
    let volume = TestVolume::new();
    let objects = volume.objects();
    let environment = Arc::new(NoThreads(volume.environment()));
    let log = start_in(environment, &volume, &objects, options(1, 0));
    assert_eq!(wait_for(log.room(100)).unwrap_err().kind(), ErrorKind::Poisoned);
    assert_eq!(wait_for(log.sync_to(1)).unwrap_err().kind(), ErrorKind::Poisoned);
    wait_for(log.close()).unwrap();
}

#[test]
fn log_failures_reach_all_waiters() {
    let volume = TestVolume::new();
    let log = start(&volume, &volume.objects(), 1, 0);
    let notify = Notify::default();
    log.tell_failure(&notify);
    let noticed = notify.notified();
    log.fail(&crate::Error::new(ErrorKind::Device, "a disk has gone"));
    assert!(noticed.now_or_never().is_some());
}

#[test]
fn room_that_was_not_there_once_may_be_there_now() {
    let volume = TestVolume::new();
    let objects = volume.objects();
    let filler = volume.volume.create_object("filler", &Attributes::default()).unwrap();
    let chunk = volume.volume.chunk_bytes();
    wait_for(filler.resize(chunk << 16)).unwrap();
    let full = (0..1 << 16).find(|no| wait_for(filler.write_bytes(no * chunk, &[1; 4096])).is_err());
    assert!(full.is_some());
    let log = start(&volume, &objects, 1, 0);
    // It looks for space ahead, and finds none.
    std::thread::sleep(Duration::from_millis(200));
    wait_for(volume.volume.delete("filler")).unwrap();
    append(&log, 1, 100);
    wait_for(log.close()).unwrap();
}

/// But for the one that is ready, and the one that is filled.
#[test]
fn segments_have_the_bytes_that_are_wanted_since() {
    let volume = TestVolume::new();
    let objects = volume.objects();
    let log = start_in(
        volume.environment(),
        &volume,
        &objects,
        LogOptions { segment_bytes: 4 << 20, ..options(1, 0) },
    );
    append(&log, 0, 50_000);
    log.set_segment_bytes(1 << 20);
    (1..300).for_each(|tag| {
        append(&log, tag, 50_000);
    });
    wait_for(log.close()).unwrap();
    let sizes: Vec<u64> = segments(&objects).iter().map(|no| segment(&objects, *no).size_bytes()).collect();
    assert!(sizes.len() > 4, "{sizes:?}");
    assert!(sizes[2..].iter().all(|size| *size <= 2 << 20), "{sizes:?}");
    assert_eq!(read(&objects, from_start()).unwrap().0.len(), 300);
}

#[test]
fn unsynced_writes_become_durable_by_their_deadline() {
    let volume = TestVolume::new();
    let objects = volume.objects();
    let log = start(&volume, &objects, 1, 0);
    wait_for(log.room(100)).unwrap();
    let end = log.append(&payload(1, 10), 1, Some(20)).unwrap().unwrap().end;
    while log.durable() < end {
        std::thread::yield_now();
    }
    log.stop();
    assert_eq!(read(&objects, from_start()).unwrap().0.len(), 1);
}

#[test]
fn the_log_continues_where_it_was_cut() {
    let volume = TestVolume::new();
    let objects = volume.objects();
    let mut next = 0;
    let mut tags = Vec::new();
    for epoch in 1..5 {
        let log = start(&volume, &objects, epoch, next);
        for tag in 0..3 {
            let end = append(&log, epoch * 10 + tag, 5000);
            tags.push(epoch * 10 + tag);
            wait_for(log.sync_to(end)).unwrap();
        }
        // A group that is written and torn: nobody was told of it.
        let lost = append(&log, epoch * 10 + 9, 9000);
        wait_for(log.close()).unwrap();
        let last = *log.segments().last().unwrap();
        let (frames, found) = read(&objects, from_start()).unwrap();
        let (_, place, end) = *frames.last().unwrap();
        assert_eq!((place.segment, end), (last, lost));
        let block = segment(&objects, last);
        wait_for(block.write_bytes(place.payload + 8000, &[0; 100])).unwrap();
        let (frames, cut) = read(&objects, from_start()).unwrap();
        assert!(frames.iter().map(|(tag, _, _)| *tag).eq(tags.iter().copied()));
        assert!(cut.end <= found.end);
        next = cut.end;
    }
}

#[test]
fn damage_below_the_durable_end_of_the_log_is_an_error() {
    let volume = TestVolume::new();
    let objects = volume.objects();
    let log = start(&volume, &objects, 1, 0);
    for tag in 0..5 {
        let end = append(&log, tag, 5000);
        wait_for(log.sync_to(end)).unwrap();
    }
    wait_for(log.close()).unwrap();
    let (frames, found) = read(&objects, from_start()).unwrap();
    let damage = |frame: usize, byte: u8| {
        let place = frames[frame].1;
        let object = segment(&objects, place.segment);
        wait_for(object.write_bytes(place.payload + 3000, &[byte])).unwrap();
    };
    damage(2, 0xee);
    let error = read(&objects, from_start()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupted);
    damage(2, 2);
    assert_eq!(read(&objects, from_start()).unwrap().0.len(), 5);
    // Nothing in the log says of the last one that it was durable, but the manifest may know.
    damage(4, 0xee);
    assert_eq!(read(&objects, from_start()).unwrap().0.len(), 4);
    let known = ReplayFrom { durable: found.end, ..from_start() };
    assert_eq!(read(&objects, known).unwrap_err().kind(), ErrorKind::Corrupted);
}

#[test]
fn damage_in_the_last_group_is_found_if_the_log_had_a_moment() {
    let volume = TestVolume::new();
    let objects = volume.objects();
    let log = start(&volume, &objects, 1, 0);
    for tag in 0..3 {
        let end = append(&log, tag, 5000);
        wait_for(log.sync_to(end)).unwrap();
    }
    let written = log.cut();
    let began = std::time::Instant::now();
    while read(&objects, from_start()).unwrap().1.end == written {
        assert!(began.elapsed() < Duration::from_secs(60), "nothing says that the log was durable");
        std::thread::sleep(Duration::from_millis(10));
    }
    // As a stop leaves it.
    let (frames, _) = read(&objects, from_start()).unwrap();
    assert_eq!(frames.len(), 3);
    let place = frames[2].1;
    wait_for(segment(&objects, place.segment).write_bytes(place.payload + 3000, &[0xee])).unwrap();
    let error = read(&objects, from_start()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupted);
    // What comes then goes on behind it.
    wait_for(segment(&objects, place.segment).write_bytes(place.payload + 3000, &[2])).unwrap();
    append(&log, 3, 5000);
    wait_for(log.close()).unwrap();
    let (frames, _) = read(&objects, from_start()).unwrap();
    assert!(frames.iter().map(|(tag, _, _)| *tag).eq(0..4));
}

#[test]
fn a_replay_begins_in_the_middle() {
    let volume = TestVolume::new();
    let objects = volume.objects();
    let log = start(&volume, &objects, 1, 0);
    let mut cuts = Vec::new();
    for tag in 0..300 {
        if tag % 50 == 0 {
            cuts.push((tag, log.cut()));
        }
        append(&log, tag, 9000);
    }
    wait_for(log.close()).unwrap();
    for (tag, lsn) in cuts {
        let from = ReplayFrom { lsn, segment: log.segment_at(lsn), ..from_start() };
        let (frames, _) = read(&objects, from).unwrap();
        assert!(frames.iter().map(|(tag, _, _)| *tag).eq(tag..300), "from {lsn}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Whatever one byte is changed to: all frames come back, or a beginning of them that has all that a later group
    /// calls durable, or an error.
    #[test]
    fn a_changed_byte_loses_nothing_silently(
        lens in proptest::collection::vec((1usize..30_000, any::<bool>()), 1..30),
        at in any::<proptest::sample::Index>(),
        bits in 1u8..,
    ) {
        let volume = TestVolume::new();
        let objects = volume.objects();
        let log = start(&volume, &objects, 1, 0);
        let mut durable = Vec::new();
        for (tag, (len, sync)) in lens.iter().enumerate() {
            let end = append(&log, tag as u64, *len);
            if *sync {
                wait_for(log.sync_to(end)).unwrap();
                durable.push(tag);
            }
        }
        wait_for(log.close()).unwrap();
        let whole = read(&objects, from_start()).unwrap().0;
        prop_assert_eq!(whole.len(), lens.len());
        let (_, place, _) = whole[at.index(whole.len())];
        let object = segment(&objects, place.segment);
        let offset = place.payload - FRAME_HEADER as u64 + (at.index(1000) as u64);
        let byte = wait_for(object.read_bytes(offset, 1)).unwrap()[0];
        wait_for(object.write_bytes(offset, &[byte ^ bits])).unwrap();
        match read(&objects, from_start()) {
            Err(error) => prop_assert_eq!(error.kind(), ErrorKind::Corrupted),
            Ok((frames, _)) => {
                prop_assert!(frames.iter().map(|frame| frame.0).eq(0..frames.len() as u64));
                // The last group but one said so, if there was one.
                let known = durable.iter().rev().nth(1).map_or(0, |tag| tag + 1);
                prop_assert!(frames.len() >= known.min(whole.len()), "{} of {known}", frames.len());
            }
        }
    }
}
