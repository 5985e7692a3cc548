//! Tells stories: asks a volume for operations and keeps the oracle informed of what was asked and what was answered.
//!
//! Each operation begins in the oracle before the volume is asked, and ends there when the volume has answered, or as
//! failed when nobody waits for the answer any more. What overlaps a change in flight is not asked for; everything else
//! may run at once.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use tanada_io::{Buffer, BufferPool};
use tanada_volume::{
    Attributes, BLOCK_BYTES, CrashPoints, Error, ErrorKind, Object, OpenOptions, PlantedBug, Volume,
};

use super::begun::{Begun, Reading, SyncAll};
use super::book::Book;
use super::layout::Rig;
use super::ledger::{Asked, Ledger};
use crate::executor::World;
use crate::oracle::{Change, Tag, pattern};

/// Asks a volume for operations. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Teller {
    pub(crate) world: World,
    pub(crate) book: Book,
    pub(crate) volume: Volume,
    pub(crate) buffers: Arc<BufferPool>,
    pub(crate) rig: Rig,
    pub(crate) crash_points: CrashPoints,
    pub(crate) planted_bug: PlantedBug,
    pub(super) ledger: Ledger,
    /// Objects whose transform is being changed: nothing else is said of them meanwhile.
    pub(super) altering: Rc<RefCell<BTreeSet<Tag>>>,
    /// Whether new objects may have transforms, and others get them.
    pub(crate) transforms: Rc<Cell<bool>>,
    pub(super) handles: Rc<RefCell<BTreeMap<Tag, Object>>>,
    /// Whether devices may fail, so that any error is an answer.
    pub(crate) expects_errors: Rc<Cell<bool>>,
}

impl Teller {
    pub(crate) fn new(
        world: &World,
        book: &Book,
        volume: Volume,
        buffers: &Arc<BufferPool>,
        rig: &Rig,
    ) -> Teller {
        Teller {
            world: world.clone(),
            book: book.clone(),
            volume,
            buffers: buffers.clone(),
            rig: rig.clone(),
            crash_points: CrashPoints::default(),
            planted_bug: PlantedBug::None,
            ledger: Ledger::default(),
            altering: Rc::default(),
            transforms: Rc::default(),
            handles: Rc::default(),
            expects_errors: Rc::default(),
        }
    }

    /// Tells what happens, with the time.
    pub(super) fn say(&self, what: impl FnOnce() -> String) {
        self.book.tell(|| format!("{:>12.6} {}", self.world.now().as_secs_f64(), what()));
    }

    pub(crate) fn count(&self, operation: &'static str) {
        self.book.open().report.count(operation);
    }

    /// Judges an error: full classes and quotas refuse, devices fail only if they were made to.
    pub(crate) fn refused(&self, what: &str, error: &Error) {
        self.say(|| format!("refused: {what}: {error}"));
        let is_full = matches!(error.kind(), ErrorKind::NoSpace | ErrorKind::QuotaExceeded);
        if is_full {
            self.book.open().report.refusals += 1;
        } else {
            self.failed(what, error);
        }
    }

    /// Judges an error that no state of the volume explains.
    fn failed(&self, what: &str, error: &Error) {
        if self.expects_errors.get() {
            self.book.open().report.refusals += 1;
        } else {
            self.book.fail(format!("cannot {what}: {error}"));
        }
    }

    /// Judges the answer to a request that also the choice of a class may make impossible.
    pub(super) fn answered<T>(&self, what: &'static str, answer: &tanada_volume::Result<T>) {
        match answer {
            Ok(_) => {
                self.say(|| format!("{what} is done"));
                self.count(what);
            }
            Err(error) => {
                self.say(|| format!("refused: {what}: {error}"));
                let is_choice = matches!(
                    error.kind(),
                    ErrorKind::NoSpace
                        | ErrorKind::NotFound
                        | ErrorKind::AlreadyExists
                        | ErrorKind::InvalidInput
                );
                if is_choice {
                    self.book.open().report.refusals += 1;
                } else {
                    self.failed(what, error);
                }
            }
        }
    }

    /// As [`refused`](Self::refused), of an object that may have been deleted meanwhile.
    pub(super) fn refused_on(&self, tag: Tag, what: &str, error: &Error) {
        let is_gone = error.kind() == ErrorKind::NotFound && !self.is_there(tag);
        if !is_gone {
            self.refused(&format!("{what} object {tag}"), error);
        }
    }

    /// Whether the object has a name, and nobody is about to change that.
    fn is_there(&self, tag: Tag) -> bool {
        self.book.open().oracle.objects().iter().any(|(known, _)| *known == tag)
    }

    pub(crate) fn tags(&self) -> Vec<Tag> {
        self.book.open().oracle.objects().into_iter().map(|(tag, _)| tag).collect()
    }

    pub(crate) fn is_adopted(&self, tag: Tag) -> bool {
        self.book.open().oracle.is_adopted(tag)
    }

    /// The size that the object should have.
    pub(crate) fn size(&self, tag: Tag) -> u64 {
        self.book.open().oracle.model(tag).map_or(0, |model| model.size())
    }

    /// A handle of the object; the same one each time.
    pub(crate) fn handle(&self, tag: Tag) -> Option<Object> {
        if let Some(object) = self.handles.borrow().get(&tag) {
            return Some(object.clone());
        }
        let name = self.book.open().oracle.name(tag)?;
        match self.volume.open_object(&name) {
            Ok(object) => {
                self.ledger.know(&object, None);
                self.handles.borrow_mut().insert(tag, object.clone());
                Some(object)
            }
            Err(error) => {
                self.refused_on(tag, "open", &error);
                None
            }
        }
    }

    pub(crate) fn create(&self, name: &str, attributes: &Attributes) -> Option<Tag> {
        if self.book.open().oracle.is_taken(name) {
            return None;
        }
        let (tag, naming) = self.book.open().oracle.begin_create(name, attributes);
        let created = self.volume.create_object(name, attributes);
        match &created {
            Ok(object) => {
                self.ledger.know(object, Some(attributes));
                self.handles.borrow_mut().insert(tag, object.clone());
                self.book.open().oracle.named(naming);
            }
            Err(_) => self.book.open().oracle.not_named(naming),
        }
        self.say(|| format!("create {name:?}, object {tag}: {attributes:?}"));
        self.answered("create", &created);
        created.is_ok().then_some(tag)
    }

    /// Adopts a file of the rig.
    pub(crate) fn adopt(&self, name: &str, path: &str) -> Option<Tag> {
        let image = self.rig.file(path)?.cache();
        if self.book.open().oracle.is_taken(name) {
            return None;
        }
        let (tag, naming) = self.book.open().oracle.begin_adopt(name, image);
        let adopted = self.volume.adopt(name, path, &Attributes::default());
        match &adopted {
            Ok(object) => {
                self.ledger.know(object, None);
                self.handles.borrow_mut().insert(tag, object.clone());
                self.book.open().oracle.named(naming);
            }
            Err(_) => self.book.open().oracle.not_named(naming),
        }
        self.say(|| format!("adopt {path} as {name:?}, object {tag}"));
        self.answered("adopt", &adopted);
        adopted.is_ok().then_some(tag)
    }

    pub(crate) fn set_attributes(&self, tag: Tag, attributes: &Attributes) {
        let Some(object) = self.handle(tag) else { return };
        if self.altering.borrow().contains(&tag) {
            return;
        }
        let Attributes { compression, page_bytes, encryption, .. } = object.attributes();
        let attributes = &Attributes { compression, page_bytes, encryption, ..attributes.clone() };
        let answer = object.set_attributes(attributes);
        if answer.is_ok() {
            self.book.open().oracle.set_attributes(tag, attributes);
            self.ledger.set_attributes(&object);
        }
        self.say(|| format!("say of object {tag}: {attributes:?}"));
        self.answered("set attributes", &answer);
        self.check_object(tag, &object);
    }

    /// Judges what the volume says of the object, where it lies and how much it takes up.
    pub(super) fn check_object(&self, tag: Tag, object: &Object) {
        let said = object.attributes();
        let judged = self.book.open().oracle.check_attributes(tag, &said);
        let judged = judged.and_then(|()| self.ledger.check_place(&self.volume, object));
        if let Err(why) = judged {
            self.book.fail(why);
        }
    }

    /// Judges what the volume says of an object.
    pub(crate) fn look_at(&self, tag: Tag) {
        if let Some(object) = self.handle(tag) {
            self.check_object(tag, &object);
        }
    }

    /// All of the object has to lie in this class, where there is room.
    pub(crate) fn lies_in(&self, tag: Tag, class: &str) {
        let Some(object) = self.handle(tag) else { return };
        let number = self.volume.classes().into_iter().find(|known| known.name == class);
        let number = number.map(|class| class.number);
        let chunks = object.chunks(0..u64::MAX);
        let elsewhere = chunks.iter().find(|chunk| chunk.home.map(|home| home.class) != number);
        if let Some(chunk) = elsewhere.filter(|chunk| chunk.home.is_some()) {
            self.failed_if_sound(format!("object {tag} shall lie in {class}: {chunk:?}"));
        }
    }

    fn failed_if_sound(&self, what: String) {
        if !self.expects_errors.get() {
            self.book.fail(what);
        }
    }

    /// Judges all that the volume has counted since it was opened.
    pub(crate) fn check_counts(&self) {
        let is_sound = self.world.struck_in_all() == 0;
        if let Err(why) = self.ledger.check(&self.volume, is_sound) {
            self.book.fail(why);
        }
    }

    pub(crate) fn rename(&self, tag: Tag, new_name: &str) {
        let name = {
            let oracle = &self.book.open().oracle;
            if oracle.is_taken(new_name) { None } else { oracle.name(tag) }
        };
        let Some(name) = name else { return };
        let naming = self.book.open().oracle.begin_naming(tag, Some(new_name.to_owned()));
        match self.volume.rename(&name, new_name) {
            Ok(()) => {
                self.book.open().oracle.named(naming);
                self.say(|| format!("rename object {tag} to {new_name:?}"));
                self.count("rename");
            }
            Err(error) => {
                self.book.open().oracle.not_named(naming);
                self.refused("rename an object", &error);
            }
        }
    }

    pub(crate) async fn delete(&self, tag: Tag) {
        let Some(name) = self.book.open().oracle.name(tag) else { return };
        let naming = self.book.open().oracle.begin_naming(tag, None);
        match self.volume.delete(&name).await {
            Ok(()) => {
                self.handles.borrow_mut().remove(&tag);
                self.book.open().oracle.named(naming);
                self.say(|| format!("delete of object {tag} is done"));
                self.count("delete");
            }
            Err(error) => {
                if !self.expects_errors.get() {
                    self.book.open().oracle.not_named(naming);
                }
                self.refused("delete an object", &error);
            }
        }
    }

    /// Begins a change unless another in flight overlaps it.
    fn begin(&self, tag: Tag, change: Change) -> Option<Begun> {
        let mut pages = self.book.open();
        let model = pages.oracle.model(tag)?;
        let (from, to) = change.range();
        // A change of the size concerns what lies between as well.
        let from = if matches!(change, Change::SetSize(_)) { from.min(model.size()) } else { from };
        if model.is_busy(from, to) {
            return None;
        }
        // Behind the end there is nothing to punch.
        let change = match change {
            Change::Punch { offset, len } => {
                Change::Punch { offset, len: len.min(model.size().saturating_sub(offset)) }
            }
            change => change,
        };
        let no = model.begin(change);
        Some(Begun { book: self.book.clone(), tag, no, object: None })
    }

    /// Writes `len` bytes that tell where they belong.
    pub(crate) async fn write(&self, tag: Tag, offset: u64, len: usize) {
        let Some(object) = self.handle(tag) else { return };
        let mut buffer = self.buffers.allocate(len);
        let write = self.book.open().oracle.next_write(tag);
        pattern(tag, write, offset, &mut buffer);
        let Some(mut begun) = self.begin(tag, Change::Write { offset, bytes: buffer.to_vec() }) else {
            return;
        };
        begun.object = Some(object.clone());
        let asked = Asked { is_write: true, offset, len: len as u64 };
        self.ledger.begin(&object, asked);
        self.say(|| {
            format!("write {write} of object {tag}: {len} bytes at {offset}, size {}", object.size_bytes())
        });
        let Some(buffer) = self.write_somehow(tag, &object, offset, buffer, write).await else { return };
        if buffer.len() == len {
            begun.done();
            self.ledger.done(&object, asked, len as u64);
            self.check_object(tag, &object);
            self.say(|| format!("write {write} of object {tag} is done"));
            self.count("write");
        } else {
            self.book.fail(format!("a write of {len} bytes gave {} back", buffer.len()));
        }
    }

    pub(crate) async fn read(&self, tag: Tag, offset: u64, len: usize) {
        let Some(object) = self.handle(tag) else { return };
        let Some(note) = self.book.open().oracle.model(tag).map(|model| model.begin_read(offset, len as u64))
        else {
            return;
        };
        let mut reading = Reading { book: self.book.clone(), tag, note: Some(note) };
        let mut buffer = self.buffers.allocate(len);
        buffer.fill(0xee);
        let asked = Asked { is_write: false, offset, len: len as u64 };
        self.ledger.begin(&object, asked);
        let Some(buffer) = self.read_somehow(tag, &object, offset, buffer).await else { return };
        self.ledger.done(&object, asked, buffer.len() as u64);
        // A device that fails takes what was not synced with it before anybody is told.
        let is_in_doubt = self.expects_errors.get() && self.world.struck_in_all() > 0;
        reading.end(Some(&buffer), is_in_doubt);
        let mut pages = self.book.open();
        pages.report.reads += 1;
        pages.report.count("read");
    }

    /// By the object, or by its device, as layers do that know nothing of volumes; `None` if it was refused.
    async fn write_somehow(
        &self,
        tag: Tag,
        object: &Object,
        offset: u64,
        buffer: Buffer,
        write: u16,
    ) -> Option<Buffer> {
        if is_aligned(offset, &buffer) && write.is_multiple_of(3) {
            self.count("write by device");
            let written = object.device().write(offset, buffer).await;
            return written.map_err(|error| self.refused_by_device(tag, "write", &error)).ok();
        }
        let written = object.write(offset, buffer).await;
        written.map_err(|error| self.refused_on(tag, "write", &error)).ok()
    }

    async fn read_somehow(&self, tag: Tag, object: &Object, offset: u64, buffer: Buffer) -> Option<Buffer> {
        if is_aligned(offset, &buffer) {
            self.count("read by device");
            let read = object.device().read(offset, buffer).await;
            return read.map_err(|error| self.refused_by_device(tag, "read", &error)).ok();
        }
        let read = object.read(offset, buffer).await;
        read.map_err(|error| self.refused_on(tag, "read", &error)).ok()
    }

    /// As [`refused_on`](Self::refused_on), of an object's device.
    fn refused_by_device(&self, tag: Tag, what: &str, error: &tanada_io::Error) {
        self.say(|| format!("refused: {what} object {tag}: {error}"));
        let is_full = error.kind() == tanada_io::ErrorKind::NoSpace;
        let is_gone = error.kind() == tanada_io::ErrorKind::NotFound && !self.is_there(tag);
        if is_full || is_gone || self.expects_errors.get() {
            self.book.open().report.refusals += 1;
        } else {
            self.book.fail(format!("cannot {what} object {tag} by its device: {error}"));
        }
    }

    pub(crate) async fn punch(&self, tag: Tag, offset: u64, len: u64) {
        let Some(object) = self.handle(tag) else { return };
        let Some(mut begun) = self.begin(tag, Change::Punch { offset, len }) else { return };
        begun.object = Some(object.clone());
        self.say(|| format!("punch {len} bytes at {offset} of object {tag}"));
        match object.punch(offset, len).await {
            Ok(()) => {
                self.say(|| format!("punch at {offset} of object {tag} is done"));
                begun.done();
                self.count("punch");
            }
            Err(error) => self.refused_on(tag, "punch", &error),
        }
    }

    pub(crate) async fn resize(&self, tag: Tag, size: u64) {
        let Some(object) = self.handle(tag) else { return };
        let grows = size > self.size(tag);
        let Some(mut begun) = self.begin(tag, Change::SetSize(size)) else { return };
        begun.object = Some(object.clone());
        self.say(|| format!("resize object {tag} to {size}"));
        match object.resize(size).await {
            Ok(()) => {
                self.say(|| format!("resize object {tag} to {size} is done"));
                begun.done();
                self.count(if grows { "grow" } else { "truncate" });
            }
            Err(error) => self.refused_on(tag, "resize", &error),
        }
    }

    pub(crate) async fn sync(&self, tag: Tag) {
        let Some(object) = self.handle(tag) else { return };
        let (note, names) = {
            let oracle = &mut self.book.open().oracle;
            // A sync of anything makes all names durable.
            let names = oracle.begin_name_sync(None);
            let Some(model) = oracle.model(tag) else { return };
            (model.begin_sync(), names)
        };
        self.say(|| format!("sync object {tag}"));
        match object.sync().await {
            Ok(()) => {
                self.say(|| format!("sync object {tag} is done"));
                let mut pages = self.book.open();
                if let Some(model) = pages.oracle.model(tag) {
                    model.synced(&note);
                }
                pages.oracle.names_synced(&names);
                pages.report.count("sync");
            }
            Err(error) => self.refused_on(tag, "sync", &error),
        }
    }

    /// Syncs everything; whether that was done.
    pub(crate) async fn sync_all(&self) -> bool {
        let notes = self.begin_sync_all();
        self.say(|| "sync all".to_owned());
        match self.volume.sync().await {
            Ok(()) => {
                self.say(|| "sync all is done".to_owned());
                notes.done(&self.book);
                self.count("sync all");
                true
            }
            Err(error) => {
                // An object that is deleted meanwhile may refuse.
                self.refused("sync the volume", &error);
                false
            }
        }
    }

    fn begin_sync_all(&self) -> SyncAll {
        let oracle = &mut self.book.open().oracle;
        let names = oracle.begin_name_sync(None);
        let tags: Vec<Tag> = oracle.objects().into_iter().map(|(tag, _)| tag).collect();
        let objects = tags.into_iter().filter_map(|tag| Some((tag, oracle.model(tag)?.begin_sync())));
        SyncAll { objects: objects.collect(), names }
    }

    pub(crate) async fn checkpoint(&self) {
        // All records that were queued are in it.
        let names = self.book.open().oracle.begin_name_sync(None);
        self.say(|| "checkpoint".to_owned());
        match self.volume.checkpoint().await {
            Ok(()) => {
                self.say(|| "checkpoint is done".to_owned());
                self.book.open().oracle.names_synced(&names);
                self.count("checkpoint");
            }
            Err(error) => self.refused("write a checkpoint", &error),
        }
    }

    /// Closes the volume; everything is durable then. Whether that was done.
    pub(crate) async fn close(&self) -> bool {
        let notes = self.begin_sync_all();
        match self.volume.close().await {
            Ok(()) => {
                notes.done(&self.book);
                self.count("close");
                true
            }
            Err(error) => {
                self.refused("close the volume", &error);
                false
            }
        }
    }
}

impl Teller {
    /// Closes the volume and opens it again; a teller that goes on with it. The story ends if the volume cannot be
    /// closed.
    pub(crate) async fn reopened(&self) -> Option<Teller> {
        self.reopened_without(None).await
    }

    /// The same, without the devices of a class.
    pub(crate) async fn reopened_without(&self, class: Option<&str>) -> Option<Teller> {
        self.check_counts();
        if !self.close().await {
            return None;
        }
        let (crash_points, bug) = (self.crash_points.clone(), self.planted_bug);
        let mut parts = self.rig.parts(&self.world, &self.buffers, crash_points, bug);
        for missing in parts.classes.iter_mut().filter(|found| class == Some(&*found.name)) {
            missing.devices.fill(None);
        }
        self.say(|| format!("open again, without {class:?}"));
        match Volume::open(parts, &OpenOptions::default()).await {
            Ok(volume) => {
                let (handles, ledger) = (Rc::default(), Ledger::default());
                Some(Teller { volume, handles, ledger, ..self.clone() })
            }
            Err(error) => {
                self.failed("open the volume again", &error);
                None
            }
        }
    }

    /// Changes an adopted file behind the volume's back.
    pub(crate) fn tamper(&self, tag: Tag, path: &str, offset: u64, bytes: &[u8]) {
        let Some(disk) = self.rig.file(path) else { return };
        disk.tamper(|image| image.write(offset, bytes));
        self.say(|| format!("change {path}, object {tag}"));
        self.book.open().oracle.set_file(tag, disk.cache());
    }
}

fn is_aligned(offset: u64, buffer: &Buffer) -> bool {
    offset.is_multiple_of(BLOCK_BYTES) && (buffer.len() as u64).is_multiple_of(BLOCK_BYTES)
}
