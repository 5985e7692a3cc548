//! Changes come back, over rotations, and whatever is given up on its way or finds no space.

use super::*;
use crate::environment::wait_for;
use crate::manifest::LogRecord;
use crate::settings::{DatabaseSettings, StoreSettings};
use crate::testing::TestVolume;
use crate::tree::{Change, Edit, KvsetRecord, Place, Position};
use std::cell::Cell;
use std::task::Poll;

fn classes(objects: &Objects) -> Arc<Classes> {
    Classes::new(objects.volume(), None)
}

fn begin(objects: &Arc<Objects>) -> Manifest {
    begin_with(objects, 64 << 10)
}

/// One that is rewritten after this many bytes.
fn begin_with(objects: &Arc<Objects>, manifest_bytes: u64) -> Manifest {
    let settings = DatabaseSettings { manifest_bytes, ..DatabaseSettings::default() };
    let state = DatabaseRecord { identity: 42, settings, ..DatabaseRecord::default() };
    wait_for(Manifest::begin(objects.clone(), classes(objects), state, CrashPoints::default())).unwrap()
}

fn changes(no: u64) -> Vec<Record> {
    let kvset = KvsetRecord { no, ..KvsetRecord::default() };
    let change = Change::AddKvset { place: Place::Root, position: Position::Top, kvset };
    vec![
        Record::Edit { store: 1, edit: Edit { changes: vec![change] } },
        Record::Flushed { store: 1, lsn: no * 4096 },
        Record::Log(LogRecord { begin: no, segment: Some(0), durable: no, sequence: no }),
    ]
}

fn make_store(manifest: &Manifest) {
    let settings = StoreSettings { separate_from_bytes: 7, ..StoreSettings::default() };
    let records = [
        Record::Store { no: 1, name: "lines".to_owned() },
        Record::StoreSettings { no: 1, settings: Box::new(settings) },
    ];
    wait_for(manifest.append(records.to_vec(), |_| ())).unwrap();
}

fn manifest_object(objects: &Arc<Objects>) -> Object {
    let all = objects.list();
    let manifests: Vec<_> = all.iter().filter(|(kind, _)| *kind == ObjectKind::Manifest).collect();
    assert_eq!(manifests.len(), 1);
    objects.open(ObjectKind::Manifest, manifests[0].1).unwrap().1
}

#[test]
fn changes_come_back_over_rotations() {
    let volume = TestVolume::new();
    let objects = volume.objects();
    assert_eq!(wait_for(recover(&objects)).unwrap(), None);
    let manifest = begin(&objects);
    make_store(&manifest);
    for no in 1..60 {
        let state = wait_for(manifest.append(changes(no), Clone::clone)).unwrap();
        let recovered = wait_for(recover(&objects)).unwrap().unwrap();
        assert_eq!((recovered.stores, recovered.log), (state.stores, state.log));
    }
    assert!(manifest.rotations.get() >= 2);
    let state = wait_for(recover(&objects)).unwrap().unwrap();
    assert_eq!(state.identity, 42);
    let store = &state.stores[&1];
    assert_eq!((&*store.name, store.flushed, store.settings.separate_from_bytes), ("lines", 59 * 4096, 7));
    assert_eq!(store.tree.root.len(), 59);
    // Another opening writes it anew.
    wait_for(Manifest::begin(objects.clone(), classes(&objects), state.clone(), CrashPoints::default()))
        .unwrap();
    let again = wait_for(recover(&objects)).unwrap().unwrap();
    assert_eq!(again.stores, state.stores);
    manifest_object(&objects);
}

#[test]
fn manifest_changes_after_close_are_refused() {
    let volume = TestVolume::new();
    let objects = volume.objects();
    let manifest = begin(&objects);
    make_store(&manifest);
    let before = wait_for(recover(&objects)).unwrap().unwrap();
    objects.refuse_new();
    wait_for(manifest.refuse(Error::new(ErrorKind::Closed, "the database is closed")));
    let refused = wait_for(manifest.append(changes(1), |_| ()));
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(objects.create(ObjectKind::Keys, None).unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(wait_for(recover(&objects)).unwrap().unwrap(), before);
}

#[test]
fn manifest_changes_refused_for_space_succeed_later() {
    let volume = TestVolume::new();
    let objects = volume.objects();
    let manifest = begin(&objects);
    make_store(&manifest);
    let others = volume.volume.create_object("others", &tanada_volume::Attributes::default()).unwrap();
    let chunk_bytes = volume.volume.chunk_bytes();
    let filled = (0..).find(|no| wait_for(others.write_bytes(no * chunk_bytes, b"x")).is_err());
    assert!(filled.is_some_and(|chunks| chunks > 100), "{filled:?}");
    // Whatever the manifest's own chunk has space for, and once more.
    let mut made = Vec::new();
    let mut refused = 0;
    for no in 1..100_000 {
        let (lease, _) = match objects.draft(ObjectKind::Keys, None) {
            Ok(draft) => draft,
            Err(error) => panic!("{error}"),
        };
        match wait_for(manifest.append_made(&[lease], || Some(changes(no)), |_| ())) {
            Ok(_) => made.push(no),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
                refused += 1;
            }
        }
        if refused == 3 {
            break;
        }
    }
    assert_eq!(refused, 3, "{made:?}");
    let retired = std::iter::from_fn(|| objects.take_retired()).count();
    assert_eq!(retired, 3, "what was not made is deleted");
    drop(others);
    wait_for(volume.volume.delete("others")).unwrap();
    wait_for(volume.volume.sync()).unwrap();
    let state = wait_for(manifest.append(changes(200_000), Clone::clone)).unwrap();
    made.push(200_000);
    let recovered = wait_for(recover(&objects)).unwrap().unwrap();
    assert_eq!((&recovered.stores, &recovered.log), (&state.stores, &state.log));
    let kvsets: Vec<u64> = recovered.stores[&1].tree.root.iter().rev().map(|kvset| kvset.no).collect();
    assert_eq!(kvsets, made);
}

/// Takes all chunks that are free.
fn fill(volume: &TestVolume) {
    let others = volume.volume.create_object("others", &tanada_volume::Attributes::default()).unwrap();
    let chunk_bytes = volume.volume.chunk_bytes();
    assert!((0..1 << 16).any(|no| wait_for(others.write_bytes(no * chunk_bytes, b"x")).is_err()));
}

/// Whoever had found the last chunks for what it wrote could not say so.
#[test]
fn a_full_volume_keeps_space_for_manifest_changes() {
    let volume = TestVolume::new();
    let objects = volume.objects();
    let manifest = begin_with(&objects, 64 << 20);
    make_store(&manifest);
    let chunk_bytes = volume.volume.chunk_bytes();
    let mut no = 0;
    let mut change = || {
        no += 1;
        wait_for(manifest.append(changes(no), |_| ()))
    };
    while manifest.writer.try_lock().unwrap().offset < chunk_bytes {
        change().unwrap();
    }
    fill(&volume);
    for _ in 0..ROOM_AHEAD / BLOCK as u64 {
        change().unwrap();
    }
    let state = wait_for(recover(&objects)).unwrap().unwrap();
    assert_eq!(state.stores[&1].tree.root.len() as u64, no);
}

#[test]
fn the_manifest_is_rotated_early_where_space_is_short() {
    let volume = TestVolume::new();
    let objects = volume.objects();
    let manifest = begin_with(&objects, 64 << 20);
    make_store(&manifest);
    let mut no = 0;
    let mut change = |bytes: u64| {
        for _ in 0..bytes / BLOCK as u64 {
            no += 1;
            wait_for(manifest.append(changes(no), |_| ())).unwrap();
        }
        manifest.rotations.get()
    };
    let few = (LOW_SPACE_CHUNKS + 1) * volume.volume.chunk_bytes();
    assert_eq!(change(few), 0);
    objects.keep_free(1 << 40, 0, 0);
    assert_eq!(change(BLOCK as u64), 1);
    assert_eq!(change(few / 2), 1);
    assert!(change(few) >= 2);
    // There is no space for another one, and this one has some.
    let is_long = || {
        let writer = manifest.writer.try_lock().unwrap();
        writer.offset + 2 * BLOCK as u64 > manifest.longest(&writer)
    };
    while !is_long() {
        change(BLOCK as u64);
    }
    fill(&volume);
    let before = manifest.rotations.get();
    while manifest.writer.try_lock().unwrap().rotates_from == 0 {
        change(BLOCK as u64);
    }
    assert_eq!(manifest.rotations.get(), before);
    let state = wait_for(recover(&objects)).unwrap().unwrap();
    assert_eq!(state.stores[&1].tree.root.len() as u64, no);
}

/// It may be durable as long as nothing else is written there.
#[test]
fn objects_of_a_dropped_change_are_kept_until_the_next_write() {
    let volume = TestVolume::new();
    let objects = volume.objects();
    let manifest = begin(&objects);
    make_store(&manifest);
    let (lease, _) = objects.draft(ObjectKind::Keys, None).unwrap();
    let no = lease.no();
    let made = [lease];
    let mut append = Box::pin(manifest.append_made(&made, || Some(changes(no)), |_| ()));
    assert!(wait_for(async { futures::poll!(&mut append) }).is_pending());
    drop(append);
    drop(made);
    assert_eq!(objects.take_retired(), None);
    wait_for(manifest.append(changes(no + 1), |_| ())).unwrap();
    assert_eq!(objects.take_retired(), Some((ObjectKind::Keys, no)));
    let made = [objects.draft(ObjectKind::Keys, None).unwrap().0];
    wait_for(manifest.append_made(&made, || Some(changes(no + 2)), |_| ())).unwrap();
    drop(made);
    assert_eq!(objects.take_retired(), None);
}

/// Makes change `no`, as far as so many polls lead behind its being durable; whether it was given up there.
fn give_up_behind(manifest: &Manifest, no: u64, polls: usize) -> bool {
    let is_durable = Cell::new(false);
    let mut append = Box::pin(manifest.append(changes(no), |_| is_durable.set(true)));
    let mut left = polls;
    wait_for(std::future::poll_fn(|context| match append.as_mut().poll(context) {
        Poll::Ready(appended) => Poll::Ready(appended.map(|()| false).unwrap()),
        Poll::Pending if !is_durable.get() => Poll::Pending,
        Poll::Pending if left == 0 => Poll::Ready(true),
        Poll::Pending => {
            left -= 1;
            Poll::Pending
        }
    }))
}

/// The manifest that was begun counted as soon as it was whole, though the one before went on to be written.
#[test]
fn changes_after_an_abandoned_rotation_are_durable() {
    let mut given_up = 0;
    for polls in 0..12 {
        let volume = TestVolume::new();
        let objects = volume.objects();
        // Each change makes it be rewritten.
        let manifest = begin_with(&objects, 0);
        make_store(&manifest);
        given_up += u32::from(give_up_behind(&manifest, 1, polls));
        // What is on its way to a device gets there.
        std::thread::sleep(std::time::Duration::from_millis(5));
        give_up_behind(&manifest, 2, 0);
        std::thread::sleep(std::time::Duration::from_millis(5));
        let state = wait_for(recover(&objects)).unwrap().unwrap();
        assert_eq!(state.stores[&1].tree.root.len(), 2, "after {polls} polls");
        wait_for(manifest.append(changes(3), |_| ())).unwrap();
        manifest_object(&objects);
    }
    assert!(given_up > 0);
}

/// Records of a later version are whole, so what they are is no damage.
#[test]
fn records_of_later_versions_are_named_as_such() {
    let edit = |bytes: &[u8]| [&[6, 1], bytes].concat();
    let settings = br#"{"no_such_setting": 1}"#;
    let later = [
        (vec![14], "record of kind 14"),
        (edit(&[2, 0]), "edit of format 2"),
        (edit(&[1, 1, 8]), "change of kind 8"),
        ([&[2, settings.len() as u8], &settings[..]].concat(), "settings"),
        (vec![1, 3, 42, 1], "format 3"),
    ];
    for (records, named) in later {
        let volume = TestVolume::new();
        let objects = volume.objects();
        let manifest = begin(&objects);
        make_store(&manifest);
        let mut writer = manifest.writer.try_lock().unwrap();
        wait_for(manifest.write(&mut writer, &records)).unwrap();
        let error = wait_for(recover(&objects)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FutureFormat, "{error}");
        assert!(error.to_string().contains(named), "{error}");
    }
    // Zero was never a kind.
    let volume = TestVolume::new();
    let objects = volume.objects();
    let manifest = begin(&objects);
    wait_for(manifest.write(&mut manifest.writer.try_lock().unwrap(), &[0])).unwrap();
    assert_eq!(wait_for(recover(&objects)).unwrap_err().kind(), ErrorKind::Corrupted);
}

#[test]
fn a_torn_end_is_cut_off_and_a_torn_middle_is_damage() {
    let volume = TestVolume::new();
    let objects = volume.objects();
    let manifest = begin(&objects);
    make_store(&manifest);
    let mut states = Vec::new();
    for no in 1..4 {
        states.push(wait_for(manifest.append(changes(no), Clone::clone)).unwrap());
    }
    let object = manifest_object(&objects);
    let size = object.size_bytes();
    wait_for(object.write_bytes(size - 4096 + 28, &[9; 20])).unwrap();
    assert_eq!(wait_for(recover(&objects)).unwrap().unwrap(), states[1]);
    let no = manifest.writer.try_lock().unwrap().lease.no();
    let whole = frame::encode(no, 4, b"");
    wait_for(object.write_bytes(size - 4096, &whole)).unwrap();
    wait_for(object.write_bytes(size - 2 * 4096 + 30, &[0xee])).unwrap();
    assert_eq!(wait_for(recover(&objects)).unwrap_err().kind(), ErrorKind::Corrupted);
}

/// Taken for the end, it was a database without what came behind, whose next write deleted that.
#[test]
fn a_damaged_end_is_not_the_end() {
    let volume = TestVolume::new();
    let objects = volume.objects();
    let manifest = begin(&objects);
    make_store(&manifest);
    let before = manifest_object(&objects).size_bytes();
    let states: Vec<_> =
        (1..4).map(|no| wait_for(manifest.append(changes(no), Clone::clone)).unwrap()).collect();
    let object = manifest_object(&objects);
    let whole = wait_for(read_all(&object)).unwrap();
    let damaged = vec![0x5a; whole.len() - before as usize];
    wait_for(object.write_bytes(before, &damaged)).unwrap();
    let error = wait_for(recover(&objects)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupted);
    assert!(error.to_string().contains(&format!("offset {before}: no frame begins there")), "{error}");
    // One of another number is as little what was being written.
    let no = manifest.writer.try_lock().unwrap().lease.no();
    wait_for(object.write_bytes(before, &whole[before as usize..])).unwrap();
    wait_for(object.write_bytes(whole.len() as u64 - 4096, &frame::encode(no, 9, b""))).unwrap();
    assert_eq!(wait_for(recover(&objects)).unwrap_err().kind(), ErrorKind::Corrupted);
    wait_for(object.write_bytes(whole.len() as u64 - 4096, &[0; 4096])).unwrap();
    assert_eq!(wait_for(recover(&objects)).unwrap().unwrap(), states[1]);
}

/// What is left of it behind the shorter one that takes its place is not what was being written.
#[test]
fn a_long_change_that_was_given_up_leaves_nothing() {
    let volume = TestVolume::new();
    let objects = volume.objects();
    let manifest = begin(&objects);
    make_store(&manifest);
    let object = manifest_object(&objects);
    let before = object.size_bytes();
    let many: Vec<Record> = (10..1000).flat_map(changes).collect();
    let mut append = Box::pin(manifest.append(many, |_| ()));
    let is_begun = || object.size_bytes() > before + 2 * BLOCK as u64;
    wait_for(std::future::poll_fn(|context| match is_begun() {
        true => Poll::Ready(()),
        false => append.as_mut().poll(context).map(|_| panic!("nothing was given up")),
    }));
    drop(append);
    // What is on its way to a device gets there.
    std::thread::sleep(std::time::Duration::from_millis(20));
    let state = wait_for(manifest.append(changes(1), Clone::clone)).unwrap();
    assert_eq!(wait_for(recover(&objects)).unwrap().unwrap(), state);
}

#[test]
fn a_torn_snapshot_leaves_the_one_before() {
    let volume = TestVolume::new();
    let objects = volume.objects();
    let manifest = begin(&objects);
    make_store(&manifest);
    let state = wait_for(manifest.append(changes(1), Clone::clone)).unwrap();
    let next = wait_for(write_snapshot(&objects, &classes(&objects), state.clone(), &CrashPoints::default()))
        .unwrap();
    wait_for(next.object.write_bytes(100, &[7])).unwrap();
    assert_eq!(wait_for(recover(&objects)).unwrap().unwrap(), state);
}

#[test]
fn a_change_that_does_not_fit_is_refused() {
    let volume = TestVolume::new();
    let objects = volume.objects();
    let manifest = begin(&objects);
    assert!(wait_for(manifest.append(changes(1), |_| ())).is_err());
    make_store(&manifest);
    wait_for(manifest.append(changes(1), |_| ())).unwrap();
}
