//! Reading and writing manifests.

use std::sync::Arc;

use futures::lock::Mutex;
use tanada_volume::Object;

use super::frame::{self, BLOCK};
use super::record::Record;
use super::state::DatabaseRecord;
use crate::classes::Classes;
use crate::counters::Counter;
use crate::crash::{CrashPoints, PlantedBug};
use crate::objects::{FIRST_OBJECT, Lease, ObjectKind, Objects};
use crate::wire::Decoder;
use crate::written::Purpose;
use crate::{Error, ErrorKind, Result};

/// Bytes of records in a frame of a snapshot, unless one record is longer.
const SNAPSHOT_FRAME_BYTES: usize = 256 << 10;

/// The next changes have room however full the volume is, for they are what gives some back: this many bytes behind the
/// last frame, or half a chunk.
const ROOM_AHEAD: u64 = 32 << 10;

/// When space is low a manifest is rewritten after this many chunks of edits, or as many bytes as its snapshot has.
const LOW_SPACE_CHUNKS: u64 = 4;

/// The manifest of an open database.
#[derive(Debug)]
pub(crate) struct Manifest {
    objects: Arc<Objects>,
    /// Say where a new manifest goes: where the log does.
    classes: Arc<Classes>,
    crash: CrashPoints,
    writer: Mutex<Writer>,
    pub(crate) rotations: Counter,
}

#[derive(Debug)]
struct Writer {
    lease: Lease,
    object: Object,
    /// Offset and number of the next frame.
    offset: u64,
    index: u64,
    /// End of the frames that were abandoned: their remains follow no valid frame.
    begun_bytes: u64,
    snapshot_bytes: u64,
    /// Length at which a rewrite that found no space is tried again.
    rotates_from: u64,
    state: DatabaseRecord,
    /// Objects named by abandoned records: the records may be durable until others are written in their place.
    undecided: Vec<Lease>,
    /// The next manifest was begun, and given up or failed: if it is whole all the same it counts, though it lacks what
    /// is changed here from then on.
    is_rotating: bool,
    failed: Option<Error>,
}

async fn read_all(object: &Object) -> Result<Vec<u8>> {
    let size = usize::try_from(object.size_bytes()).unwrap_or(usize::MAX);
    let read = object.read_bytes(0, size).await;
    read.map_err(|error| Error::volume(format!("cannot read {:?}", object.name()), &error))
}

/// Reads a manifest, if its snapshot is complete.
async fn read(object: &Object, no: u64) -> Result<Option<DatabaseRecord>> {
    let name = object.name();
    let bytes = read_all(object).await?;
    let mut state = DatabaseRecord::default();
    let (mut at, mut index) = (0, 0);
    while let Some(rest) = bytes.get(at..)
        && let Some((found, records)) = frame::decode(rest, no)
        && found == index
    {
        let mut decoder = Decoder::new(records);
        while decoder.finish().is_err() {
            let record = Record::decode(&mut decoder);
            let record =
                record.map_err(|malformed| malformed.of(&name, (at + frame::FRAME_HEADER) as u64))?;
            state.apply(&record).map_err(|error| Error::new(error.kind(), format!("{name:?}: {error}")))?;
        }
        at += frame::padded_len(records.len());
        index += 1;
    }
    if !state.is_whole {
        return Ok(None);
    }
    if bytes.get(at..).is_some_and(|rest| !frame::is_torn(rest, no, index)) {
        return Err(Error::corrupted(format!(
            "object {name:?} is damaged at offset {at}: no frame begins there, and something is there; restore the database from a copy"
        )));
    }
    let mut behind = at + BLOCK;
    while let Some(rest) = bytes.get(behind..).filter(|rest| !rest.is_empty()) {
        if frame::decode(rest, no).is_some_and(|(found, _)| found > index) {
            return Err(Error::corrupted(format!(
                "object {name:?} is damaged at offset {at}: a frame is not whole, and a later one is; restore the database from a copy"
            )));
        }
        behind += BLOCK;
    }
    Ok(Some(state))
}

/// Returns whether all there is of a database is what a stop left of its first manifest, so that nobody was told that
/// there is one.
///
/// It is safe to make another in its place: a database is made when nothing of that name is left, its first object is
/// manifest 1, with one frame, and nothing else is begun before that is durable. From then on it has more: each change
/// is a frame behind the first one, what is stored lies in other objects, and each opening and each rotation writes a
/// manifest of a larger number before the one before goes. So whatever is damaged of a database in which anybody made
/// as much as a store, it is not taken for this. What is taken for it by damage is one that was just made and has
/// nothing in it.
async fn is_hardly_begun(objects: &Arc<Objects>) -> Result<bool> {
    let [(ObjectKind::Manifest, FIRST_OBJECT)] = objects.list()[..] else { return Ok(false) };
    let (_, object) = objects.open(ObjectKind::Manifest, FIRST_OBJECT)?;
    Ok(frame::is_torn_first(&read_all(&object).await?, FIRST_OBJECT))
}

/// The state of a database: what the latest manifest with a whole snapshot says. `None` if there is no manifest, or no
/// more than the beginning of the first one: making the database was not finished.
///
/// # Errors
/// `Corrupted`, `FutureFormat`, `Device`.
pub(crate) async fn recover(objects: &Arc<Objects>) -> Result<Option<DatabaseRecord>> {
    let manifests = objects.list().into_iter().filter(|(kind, _)| *kind == ObjectKind::Manifest);
    let mut numbers: Vec<u64> = manifests.map(|(_, no)| no).collect();
    numbers.sort_unstable_by(|a, b| b.cmp(a));
    let largest = numbers.first().copied();
    for no in numbers {
        let (_, object) = objects.open(ObjectKind::Manifest, no)?;
        if let Some(state) = read(&object, no).await? {
            return Ok(Some(state));
        }
    }
    if is_hardly_begun(objects).await? {
        return Ok(None);
    }
    if let Some(largest) = largest {
        let name = objects.name(ObjectKind::Manifest, largest);
        return Err(Error::corrupted(format!(
            "{name:?} is not whole, and no other manifest of the database is: restore it from a copy, or destroy it"
        )));
    }
    Ok(None)
}

impl Manifest {
    /// Writes a new manifest, complete and durable, and deletes all others.
    ///
    /// # Errors
    /// `NoSpace`, `Device`.
    pub(crate) async fn begin(
        objects: Arc<Objects>,
        classes: Arc<Classes>,
        state: DatabaseRecord,
        crash: CrashPoints,
    ) -> Result<Manifest> {
        let writer = write_snapshot(&objects, &classes, state, &crash).await?;
        // CRASH: both are whole and say the same; the later one counts.
        crash.reached("manifest.before-old-deletion");
        delete_others(&objects, writer.lease.no()).await?;
        let (writer, rotations) = (Mutex::new(writer), Counter::default());
        Ok(Manifest { objects, classes, crash, writer, rotations })
    }

    /// Makes changes durable, together. `then` is called with the new state, before any other change is made.
    ///
    /// # Errors
    /// `NoSpace`: nothing was changed, and it can be tried again. `Device`: after that nothing is appended any more.
    pub(crate) async fn append<T>(
        &self,
        records: Vec<Record>,
        then: impl FnOnce(&DatabaseRecord) -> T,
    ) -> Result<T> {
        let mut writer = self.writer.lock().await;
        self.append_locked(&mut writer, (records, &[]), then).await
    }

    /// As [`append`](Self::append) of what `make` gives when all earlier changes were made and no other can come
    /// between; `None` if that is nothing. It names the drafts `made`, which are kept when it is durable, or may be and
    /// nobody finds out.
    ///
    /// # Errors
    /// As [`append`](Self::append).
    pub(crate) async fn append_made<T>(
        &self,
        made: &[Lease],
        make: impl FnOnce() -> Option<Vec<Record>>,
        then: impl FnOnce(&DatabaseRecord) -> T,
    ) -> Result<Option<T>> {
        let mut writer = self.writer.lock().await;
        match make() {
            Some(records) => self.append_locked(&mut writer, (records, made), then).await.map(Some),
            None => Ok(None),
        }
    }

    /// Refuses changes from now on, after the one in progress.
    pub(crate) async fn refuse(&self, error: Error) {
        let mut writer = self.writer.lock().await;
        writer.failed.get_or_insert(error);
    }

    async fn append_locked<T>(
        &self,
        writer: &mut Writer,
        (records, made): (Vec<Record>, &[Lease]),
        then: impl FnOnce(&DatabaseRecord) -> T,
    ) -> Result<T> {
        if let Some(error) = &writer.failed {
            return Err(error.clone());
        }
        if writer.is_rotating {
            self.rotate(writer).await?;
        }
        // Records that do not fit are refused before anything is written.
        let mut state = writer.state.clone();
        let mut bytes = Vec::new();
        for record in &records {
            state.apply(record)?;
            record.encode(&mut bytes);
        }
        state.next_object = state.next_object.max(self.objects.next());
        Record::NextObject(state.next_object).encode(&mut bytes);
        let given_up = writer.undecided.len();
        writer.undecided.extend_from_slice(made);
        // Dropped here, the frame may be durable or not. The next one goes to the same place.
        match self.write(writer, &bytes).await {
            Ok(()) => writer.undecided.drain(..).skip(given_up).for_each(|lease| lease.keep()),
            Err(Unwritten::NotMade(error)) => {
                writer.undecided.truncate(given_up);
                return Err(error);
            }
            Err(Unwritten::Undecided(error)) => {
                writer.undecided.drain(..).for_each(|lease| lease.keep());
                let message = format!(
                    "the manifest takes no more changes, because one failed ({error}): open the database anew"
                );
                let failed = Error::new(ErrorKind::Poisoned, message);
                writer.failed = Some(failed.clone());
                // `NoSpace` means that nothing was changed.
                return Err(if error.kind() == ErrorKind::NoSpace { failed } else { error });
            }
        }
        writer.state = state;
        let result = then(&writer.state);
        if writer.offset > self.longest(writer) && writer.offset >= writer.rotates_from {
            self.rotate(writer).await?;
        }
        take_room_ahead(&self.objects, &writer.object, writer.offset).await;
        Ok(result)
    }

    /// Returns the length at which the manifest is rewritten.
    fn longest(&self, writer: &Writer) -> u64 {
        let changes = writer.state.settings.manifest_bytes;
        let (free, kept) = self.objects.room();
        let few = (LOW_SPACE_CHUNKS * self.objects.volume().chunk_bytes()).max(writer.snapshot_bytes);
        writer.snapshot_bytes + if free < kept { changes.min(few) } else { changes }
    }

    async fn write(&self, writer: &mut Writer, records: &[u8]) -> std::result::Result<(), Unwritten> {
        let mut bytes = frame::encode(writer.lease.no(), writer.index, records);
        let end = writer.offset + bytes.len() as u64;
        bytes.resize(bytes.len() + writer.begun_bytes.saturating_sub(end) as usize, 0);
        writer.begun_bytes = writer.begun_bytes.max(end);
        let failed = |error| Error::volume("cannot write the manifest", &error);
        // CRASH: the change was not made; what it would have led to is an orphan.
        self.crash.reached("manifest.before-write");
        let written = writer.object.write_bytes(writer.offset, &bytes).await.map_err(failed);
        if let Err(error) = written {
            // A part of the frame found no space, so it is incomplete, and the next one overwrites it.
            if error.kind() == ErrorKind::NoSpace {
                let there = writer.object.size_bytes().max(writer.offset);
                writer.begun_bytes = writer.begun_bytes.min(there);
                return Err(Unwritten::NotMade(error));
            }
            return Err(Unwritten::Undecided(error));
        }
        self.objects.note_written(Purpose::Manifest, &writer.object, writer.offset, bytes.len() as u64);
        // CRASH: as before, or the frame is whole by chance, and then the change was made.
        self.crash.reached("manifest.before-sync");
        if !self.crash.has(PlantedBug::SkipManifestSync) {
            writer.object.sync().await.map_err(|error| Unwritten::Undecided(failed(error)))?;
        }
        // CRASH: the change was made, and nobody knows.
        self.crash.reached("manifest.after-sync");
        writer.offset = end;
        writer.index += 1;
        Ok(())
    }

    /// Rewrites the manifest and deletes all others. If an earlier attempt was abandoned, nothing may be changed until
    /// this is done.
    async fn rotate(&self, writer: &mut Writer) -> Result<()> {
        let has_begun = std::mem::replace(&mut writer.is_rotating, true);
        let state = writer.state.clone();
        let next = match write_snapshot(&self.objects, &self.classes, state, &self.crash).await {
            Ok(next) => next,
            // The old one is as good; there will be room another time.
            Err(error) if error.kind() == ErrorKind::NoSpace && !has_begun => {
                writer.is_rotating = false;
                writer.rotates_from = writer.offset + self.objects.volume().chunk_bytes();
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        *writer = next;
        // CRASH: both are whole and say the same; the later one counts.
        self.crash.reached("manifest.before-rotated-deletion");
        self.rotations.add(1);
        delete_others(&self.objects, writer.lease.no()).await
    }
}

/// Takes the chunk that comes behind a manifest's end, if that is near. Where there is none, the next change may find
/// one, or none either.
async fn take_room_ahead(objects: &Objects, object: &Object, offset: u64) {
    let chunk_bytes = objects.volume().chunk_bytes();
    let taken = object.size_bytes().next_multiple_of(chunk_bytes);
    if taken < offset + ROOM_AHEAD.min(chunk_bytes / 2)
        && object.write_bytes(taken, &[0; BLOCK]).await.is_ok()
    {
        objects.note_written(Purpose::Manifest, object, taken, BLOCK as u64);
    }
}

/// Why a frame was not written.
#[derive(Debug)]
enum Unwritten {
    /// The record is certainly not durable.
    NotMade(Error),
    /// The record may be durable.
    Undecided(Error),
}

/// Deletes all manifests but one.
async fn delete_others(objects: &Objects, kept: u64) -> Result<()> {
    for (kind, no) in objects.list() {
        if kind == ObjectKind::Manifest && no != kept {
            objects.delete(kind, no).await?;
        }
    }
    Ok(())
}

/// Writes a whole manifest.
async fn write_snapshot(
    objects: &Arc<Objects>,
    classes: &Classes,
    state: DatabaseRecord,
    crash: &CrashPoints,
) -> Result<Writer> {
    let (lease, object) = objects.create(ObjectKind::Manifest, classes.of_log().as_deref())?;
    let no = lease.no();
    let written = fill_snapshot(objects, (lease, object), state, crash).await;
    if written.as_ref().is_err_and(|error| error.kind() == ErrorKind::NoSpace) {
        // The next opening would leave another one; what cannot be deleted is not whole.
        let _ = objects.delete(ObjectKind::Manifest, no).await;
    }
    written
}

async fn fill_snapshot(
    objects: &Arc<Objects>,
    (lease, object): (Lease, Object),
    mut state: DatabaseRecord,
    crash: &CrashPoints,
) -> Result<Writer> {
    let no = lease.no();
    state.next_object = state.next_object.max(objects.next());
    state.is_whole = true;
    let (mut offset, mut index) = (0, 0);
    let mut records = Vec::new();
    let snapshot = state.snapshot();
    let failed = |error| Error::volume("cannot write a manifest", &error);
    let last = snapshot.len() - 1;
    for (i, record) in snapshot.iter().enumerate() {
        record.encode(&mut records);
        if records.len() >= SNAPSHOT_FRAME_BYTES || i == last {
            let bytes = frame::encode(no, index, &records);
            object.write_bytes(offset, &bytes).await.map_err(failed)?;
            offset += bytes.len() as u64;
            index += 1;
            records.clear();
        }
    }
    objects.note_written(Purpose::Manifest, &object, 0, offset);
    take_room_ahead(objects, &object, offset).await;
    // CRASH: the new manifest may be torn; the old one is there. Of a database that is being made there is none: the
    // name is as good as free.
    crash.reached("manifest.before-rotation-sync");
    object.sync().await.map_err(failed)?;
    Ok(Writer {
        lease,
        object,
        offset,
        index,
        begun_bytes: offset,
        snapshot_bytes: offset,
        rotates_from: 0,
        state,
        undecided: Vec::new(),
        is_rotating: false,
        failed: None,
    })
}

#[cfg(test)]
mod tests;
