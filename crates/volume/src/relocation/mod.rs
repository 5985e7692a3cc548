//! Moving and mirroring chunks, while they are read and written.
//!
//! Each chunk for itself, several at once within a [budget](Budget):
//!
//! 1. hold it exclusively: a write to this chunk waits, all others go on, and so do reads, from the source;
//! 2. reserve a chunk in the destination, copy, in one go or in pieces;
//! 3. make the copy durable (for a mirror, the home as well, so that neither can differ from the other after a stop);
//! 4. switch the mapping, in memory and in the journal, in one change; make that durable;
//! 5. retire the source: it is free when nobody reads from it any more.
//!
//! Dropping the future cancels: chunks that are not switched stay where they are, and what was reserved for them is
//! free again.

mod bucket;
mod budget;
mod decided;
pub(crate) mod decision;
mod pace;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures::stream::{FuturesUnordered, StreamExt};

use tanada_io::Buffer;

pub use budget::{Budget, Timer};
pub use decision::{Action, Decision};

use crate::chunk::Place;
use crate::class::{Class, Keep};
use crate::crash::PlantedBug;
use crate::metadata::Record;
use crate::volume::Reserved;
use crate::waiting::HoldGuard;
use crate::{Error, ErrorKind, Object, Result};
use bucket::{Bucket, Permit};
pub(crate) use budget::SharedPace;

/// Why chunks are relocated, and within which budget.
///
/// ```
/// use tanada_volume::{Attributes, Relocation};
///
/// # let folder = tempfile::tempdir().unwrap();
/// # tanada_volume::example::run(folder.path(), async |volume| {
/// let object = volume.create_object("a", &Attributes::default())?;
/// object.write_bytes(0, b"rice").await?;
/// let relocation = Relocation { why: "it is read often".to_owned(), ..Relocation::default() };
/// object.move_to(0..1, "fast", &relocation).await?;
/// assert_eq!(object.explain(0).unwrap().why, "it is read often");
/// # Ok(()) }).unwrap();
/// ```
#[derive(Clone, Default)]
pub struct Relocation {
    /// Limits.
    pub budget: Budget,
    /// Who decided: a policy's or a user's name.
    pub who: String,
    /// Why.
    pub why: String,
    /// Seconds that it is expected to save.
    pub gain_s: f64,
    /// Called after each chunk.
    pub progress: Option<Progress>,
}

/// Told how far a relocation is, after each chunk.
pub type Progress = Arc<dyn Fn(&Relocated) + Send + Sync>;

impl std::fmt::Debug for Relocation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Relocation { budget, who, why, gain_s, .. } = self;
        f.debug_struct("Relocation")
            .field("budget", budget)
            .field("who", who)
            .field("why", why)
            .field("gain_s", gain_s)
            .finish_non_exhaustive()
    }
}

/// What a relocation has done.
///
/// ```
/// use tanada_volume::{Attributes, Relocation};
///
/// # let folder = tempfile::tempdir().unwrap();
/// # tanada_volume::example::run(folder.path(), async |volume| {
/// let object = volume.create_object("a", &Attributes::default())?;
/// object.write_bytes(0, &vec![7; 3 << 20]).await?;
/// let moved = object.move_to(0..3, "fast", &Relocation::default()).await?;
/// assert_eq!((moved.chunks, moved.done, moved.skipped), (3, 3, 0));
/// # Ok(()) }).unwrap();
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Relocated {
    /// Chunks that were to be looked at.
    pub chunks: u64,
    /// Chunks moved, mirrored, or freed of their mirror.
    pub done: u64,
    /// Chunks that were as wanted already, or have nothing to move.
    pub skipped: u64,
    /// Bytes copied.
    pub bytes: u64,
}

/// Where copies go.
#[derive(Debug, Clone)]
enum Destination {
    /// Home in this class, nowhere else.
    Home(Arc<Class>),
    /// Home anywhere but where it is, the class of this rank first.
    Away { from: Arc<Class>, rank: usize, from_no: u32 },
    /// A mirror in this class.
    Mirror(Arc<Class>),
}

/// The source and the copy, as long as a device may work on them.
struct Copying {
    _hold: Arc<HoldGuard>,
    _reserved: Arc<Reserved>,
}

impl Object {
    /// Moves the homes of `chunks` to `class`.
    ///
    /// # Errors
    /// `NotFound` if there is no such class, `InvalidInput` if the object is adopted or pinned elsewhere, `NoSpace` if
    /// the class is full, `Device`; chunks moved before that stay moved.
    pub async fn move_to(
        &self,
        chunks: Range<u64>,
        class: &str,
        relocation: &Relocation,
    ) -> Result<Relocated> {
        let class = self.check_relocation(class, false)?;
        self.decide(&chunks, Action::Move, Some(&class.name), relocation);
        self.relocate(chunks, &Destination::Home(class), relocation).await
    }

    /// Mirrors `chunks` to `class`, which must be faster than their homes (others are skipped). An older mirror
    /// elsewhere is dropped.
    ///
    /// ```
    /// use tanada_volume::{Attributes, Relocation};
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # tanada_volume::example::run(folder.path(), async |volume| {
    /// let object = volume.create_object("a", &Attributes::default())?;
    /// object.write_bytes(0, b"rice").await?;
    /// object.mirror_to(0..1, "fast", &Relocation::default()).await?;
    /// assert!(object.chunks(0..1)[0].mirror.is_some());
    /// assert_eq!(object.drop_mirrors(0..1, &Relocation::default())?, 1);
    /// # Ok(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`move_to`](Self::move_to).
    pub async fn mirror_to(
        &self,
        chunks: Range<u64>,
        class: &str,
        relocation: &Relocation,
    ) -> Result<Relocated> {
        let class = self.check_relocation(class, true)?;
        self.decide(&chunks, Action::Mirror, Some(&class.name), relocation);
        self.relocate(chunks, &Destination::Mirror(class), relocation).await
    }

    /// Drops the mirrors of `chunks`, without I/O; how many. Durable with the next sync: until then a stop may bring
    /// them back, as good as they were.
    ///
    /// # Errors
    /// `ReadOnly`.
    pub fn drop_mirrors(&self, chunks: Range<u64>, relocation: &Relocation) -> Result<u64> {
        self.core.check_writable()?;
        self.decide(&chunks, Action::DropMirror, None, relocation);
        let mirrored: Vec<u64> = {
            let table = self.state.table.read();
            let found = table.iter_from(chunks.start).take_while(|(no, _)| *no < chunks.end);
            found.filter(|(_, chunk)| chunk.mirror.get().is_some()).map(|(no, _)| no).collect()
        };
        for chunk in &mirrored {
            self.forget_mirror(*chunk);
        }
        Ok(mirrored.len() as u64)
    }

    /// What `len` bytes at `offset` read as is damaged, so that whoever reads can tell: what was read from mirrors is
    /// read from the homes from now on. Also of volumes that are only read: for as long as they are open.
    pub(crate) fn distrust_mirrors(&self, offset: u64, len: u64) {
        if len == 0 {
            return;
        }
        let last = offset.saturating_add(len - 1) >> self.core.chunk_shift;
        for chunk in offset >> self.core.chunk_shift..=last {
            let mirror = self.state.table.read().chunk(chunk).and_then(|chunk| chunk.mirror.get());
            let Some(mirror) = mirror else { continue };
            if let Ok(class) = self.core.class(mirror.class) {
                class.counters.count_error();
            }
            let why = "a reader found it damaged".to_owned();
            let relocation = Relocation { who: "the volume".to_owned(), why, ..Relocation::default() };
            self.decide(&(chunk..chunk + 1), Action::DropMirror, None, &relocation);
            self.forget_mirror(chunk);
            // Once for each object: a class that gives back something else does so everywhere.
            if !self.state.has_distrusted.swap(true, Ordering::Relaxed) {
                let class =
                    self.core.class(mirror.class).map_or_else(|_| String::new(), |class| class.name.clone());
                tanada_io::warn(&format!(
                    "the mirror of chunk {chunk} of object {:?} in class {class} is damaged: it is dropped, as others that are found so will be, and \
                     what it mirrors is read; look after the devices of that class",
                    self.name()
                ));
            }
        }
    }

    fn check_relocation(&self, class: &str, is_mirror: bool) -> Result<Arc<Class>> {
        self.core.check_writable()?;
        self.state.check_there()?;
        let classes = self.core.class_list();
        let class = classes.by_name(class)?.clone();
        if class.is_draining() {
            return Err(Error::invalid(format!("class {} is being drained", class.name)));
        }
        if self.is_adopted() && !is_mirror {
            return Err(Error::invalid(format!(
                "object {:?} is an adopted file: it can be mirrored, not moved",
                self.name()
            )));
        }
        let pin = self.state.attributes.lock().pin;
        if let Some(pin) = pin.filter(|pin| *pin != class.id) {
            let pinned = classes.by_id(pin).map_or("", |class| class.name.as_str());
            return Err(Error::invalid(format!("object {:?} is pinned to class {pinned}", self.name())));
        }
        Ok(class)
    }

    /// Moves what lies in `from`, at or behind `from_no`, to other places; mirrors there are dropped.
    pub(crate) async fn move_away(
        &self,
        from: &Arc<Class>,
        rank: usize,
        from_no: u32,
        relocation: &Relocation,
    ) -> Result<Relocated> {
        let mirrored: Vec<u64> = {
            let table = self.state.table.read();
            let lies_there = |place: Place| place.class == from.id && place.no >= from_no;
            table
                .iter_from(0)
                .filter(|(_, chunk)| chunk.mirror.get().is_some_and(lies_there))
                .map(|(no, _)| no)
                .collect()
        };
        for chunk in &mirrored {
            self.forget_mirror(*chunk);
        }
        let destination = Destination::Away { from: from.clone(), rank, from_no };
        self.relocate(0..u64::MAX, &destination, relocation).await
    }

    async fn relocate(
        &self,
        chunks: Range<u64>,
        destination: &Destination,
        relocation: &Relocation,
    ) -> Result<Relocated> {
        let last = match destination {
            // Whatever lies there, behind the object's end too.
            Destination::Away { .. } => u64::MAX,
            _ => self.state.size().div_ceil(self.core.chunk_bytes),
        };
        let mut waiting = self.candidates(chunks.start..chunks.end.min(last), destination);
        let mut report = Relocated { chunks: waiting.len(), ..Relocated::default() };
        let bucket = Bucket::new(&relocation.budget, &self.core)?;
        let mut running = FuturesUnordered::new();
        let mut first_error = None;
        loop {
            while running.len() < bucket.concurrency(relocation.budget.concurrency) && first_error.is_none() {
                let Some(chunk) = waiting.next() else { break };
                running.push(self.relocate_chunk(chunk, destination, &bucket));
            }
            let Some(outcome) = running.next().await else { break };
            match outcome {
                Ok(0) => report.skipped += 1,
                Ok(bytes) => {
                    report.done += 1;
                    report.bytes += bytes;
                }
                // What is under way comes to its end; nothing more is begun.
                Err(error) => first_error = first_error.or(Some(error)),
            }
            if let Some(progress) = &relocation.progress {
                progress(&report);
            }
        }
        first_error.map_or(Ok(report), Err)
    }

    /// The chunks of a range that may have to be relocated.
    fn candidates(&self, chunks: Range<u64>, destination: &Destination) -> Candidates {
        if self.is_adopted() && matches!(destination, Destination::Mirror(_)) {
            return Candidates::All(chunks);
        }
        let table = self.state.table.read();
        let known = table.iter_from(chunks.start).take_while(|(no, _)| *no < chunks.end);
        let mapped: Vec<u64> =
            known.filter(|(_, chunk)| chunk.home.get().is_some()).map(|(no, _)| no).collect();
        Candidates::These(mapped.into_iter())
    }

    /// Relocates one chunk if that is still to be done; bytes copied.
    async fn relocate_chunk(&self, chunk: u64, destination: &Destination, bucket: &Bucket) -> Result<u64> {
        let mut permit = bucket.take().await;
        let hold = Arc::new(self.state.holds.hold(chunk..=chunk, true).await);
        self.core.check_writable()?;
        if self.state.check_there().is_err() {
            return Ok(0);
        }
        let copied = match destination {
            Destination::Mirror(class) => self.mirror_chunk(chunk, class, &hold, &mut permit).await,
            _ => self.move_chunk(chunk, destination, &hold, &mut permit).await,
        };
        drop(hold);
        if matches!(copied, Ok(bytes) if bytes > 0) {
            permit.copied();
        }
        copied.map_err(|error| {
            Error::new(error.kind(), format!("object {:?}, chunk {chunk}: {error}", self.name()))
        })
    }

    /// Copies what `source` has, or the adopted file if there is none, to `target`; `false` if the file changed
    /// meanwhile.
    async fn copy_chunk(
        &self,
        chunk: u64,
        source: Option<Place>,
        target: Place,
        keep: &Keep,
        permit: &mut Permit<'_>,
    ) -> Result<bool> {
        let from = source.map(|source| self.core.class(source.class)).transpose()?;
        let to = self.core.class(target.class)?;
        let mut done = 0;
        while done < self.core.chunk_bytes {
            // Where one side takes it in pieces and the other as a whole, the pieces are paced: there the others are.
            let read_bytes = permit.piece(from.as_deref());
            let write_bytes = permit.piece(Some(&*to));
            let len = read_bytes.max(write_bytes).min(self.core.chunk_bytes - done);
            let mut pieces = Vec::new();
            let mut offset = done;
            for buffer in in_pieces(self.core.buffers.allocate(len as usize), read_bytes) {
                let bytes = buffer.len() as u64;
                if read_bytes <= write_bytes {
                    permit.spend(bytes).await;
                }
                let read = match (&from, source) {
                    (Some(from), Some(source)) => {
                        Some(from.read(from.address(source.no) + offset, buffer, keep).await?)
                    }
                    _ => self.read_adopted(chunk * self.core.chunk_bytes + offset, buffer).await?,
                };
                let Some(read) = read else { return Ok(false) };
                pieces.push(read);
                offset += bytes;
            }
            for buffer in in_pieces(joined(pieces)?, write_bytes) {
                let bytes = buffer.len() as u64;
                if read_bytes > write_bytes {
                    permit.spend(bytes).await;
                }
                drop(to.write(to.address(target.no) + done, buffer, keep).await?);
                done += bytes;
            }
        }
        Ok(true)
    }

    async fn move_chunk(
        &self,
        chunk: u64,
        destination: &Destination,
        hold: &Arc<HoldGuard>,
        permit: &mut Permit<'_>,
    ) -> Result<u64> {
        let home = self.state.table.read().chunk(chunk).and_then(|chunk| chunk.home.get());
        let Some(source) = home else { return Ok(0) };
        let is_there = match destination {
            Destination::Away { from, from_no, .. } => source.class != from.id || source.no < *from_no,
            Destination::Home(class) | Destination::Mirror(class) => source.class == class.id,
        };
        if is_there {
            return Ok(0);
        }
        if chunk * self.core.chunk_bytes >= self.state.size() {
            // What a write left that never came to its end.
            let (freed, lsn) = self.core.journal.change(|queue| self.unmap(chunk, 1, queue));
            self.core.retire(freed.fresh, 0);
            self.core.retire(freed.journaled, lsn);
            return Ok(0);
        }
        let (rank, only) = match destination {
            Destination::Away { rank, .. } => self.rank_away(*rank),
            Destination::Home(class) | Destination::Mirror(class) => (self.rank(class)?, true),
        };
        let reserved = Arc::new(self.core.reserve(rank, only, 0).await?);
        let target = reserved.place();
        let class = self.core.class(target.class)?;
        if let Destination::Away { from, from_no, .. } = destination
            && target.class == from.id
            && target.no >= *from_no
        {
            // Somebody wants the opposite; two such would move chunks in a circle.
            let message = format!("class {} was given back for use while it was being emptied", from.name);
            return Err(Error::invalid(message));
        }
        // CRASH: the reserved chunk is in no mapping.
        self.core.crash.reached("move.before-copy");
        let keep: Keep = Arc::new(Copying { _hold: hold.clone(), _reserved: reserved.clone() });
        if let Err(error) = self.copy_chunk(chunk, Some(source), target, &keep, permit).await {
            // Whoever wants another chunk finds one elsewhere.
            if error.kind() == ErrorKind::NoSpace {
                class.ran_out_of_space(self.core.now());
            }
            return Err(error);
        }
        // CRASH: the copy may be there in part; the mapping leads to the source.
        self.core.crash.reached("move.before-sync");
        if self.core.bug != PlantedBug::SwitchBeforeSync {
            self.core.sync_class(&class).await?;
        }
        // CRASH: the copy is durable; the mapping leads to the source.
        self.core.crash.reached("move.before-switch");
        let lsn = self.switch_home(chunk, target, &reserved)?;
        self.core.commit(lsn).await?;
        // CRASH: the mapping leads to the copy; the source is in no mapping.
        self.core.crash.reached("move.after-switch");
        self.core.reclaim();
        Ok(self.core.chunk_bytes)
    }

    /// Where a chunk goes that has to leave the class of this rank, and whether it may go nowhere else. What was there
    /// before the object was pinned elsewhere goes where it is pinned to.
    fn rank_away(&self, rank: usize) -> (usize, bool) {
        let pin = self.state.attributes.lock().pin;
        let pinned = pin.and_then(|pin| self.core.class_list().rank(pin));
        (pinned.unwrap_or(rank), pinned.is_some())
    }

    /// Switches the mapping of a chunk that is held exclusively to `target`, whose data are durable.
    fn switch_home(&self, chunk: u64, target: Place, reserved: &Reserved) -> Result<u64> {
        let target_rank = self.core.class_list().rank(target.class);
        let (switched, lsn) = self.core.journal.change(|queue| {
            let classes = self.core.class_list();
            let leaf = self.state.table.read().leaf(chunk)?.clone();
            let cell = leaf.chunk(chunk);
            let source = cell.home.get()?;
            let was_fresh = self.journal_fresh(chunk, target, queue);
            if !was_fresh {
                cell.home.set(Some(target));
                queue.push(&Record::Mapped { id: self.state.id, first: chunk, count: 1, place: target });
            }
            reserved.mapped();
            // A mirror that is not faster than the home any more is of no use.
            let mirror = cell.mirror.get().filter(|mirror| classes.rank(mirror.class) >= target_rank);
            if mirror.is_some() {
                cell.mirror.set(None);
                queue.push(&Record::Unmirrored { id: self.state.id, chunk });
            }
            Some((source, was_fresh, mirror))
        });
        let (source, was_fresh, mirror) =
            switched.ok_or_else(|| Error::new(ErrorKind::NotFound, "the chunk is not there any more"))?;
        self.core.retire([source], if was_fresh { 0 } else { lsn });
        self.core.retire(mirror, lsn);
        Ok(lsn)
    }

    async fn mirror_chunk(
        &self,
        chunk: u64,
        class: &Arc<Class>,
        hold: &Arc<HoldGuard>,
        permit: &mut Permit<'_>,
    ) -> Result<u64> {
        let (home, mirror) = {
            let table = self.state.table.read();
            let found = table.chunk(chunk);
            (found.and_then(|chunk| chunk.home.get()), found.and_then(|chunk| chunk.mirror.get()))
        };
        let classes = self.core.class_list();
        let is_faster = |home: Place| classes.rank(class.id) < classes.rank(home.class);
        let is_wanted = match home {
            Some(home) => is_faster(home),
            None => self.is_adopted(),
        };
        if !is_wanted || mirror.is_some_and(|mirror| mirror.class == class.id) || class.is_failed() {
            return Ok(0);
        }
        let reserved = Arc::new(self.core.reserve(self.rank(class)?, true, 0).await?);
        let keep: Keep = Arc::new(Copying { _hold: hold.clone(), _reserved: reserved.clone() });
        let target = reserved.place();
        if !self.copy_chunk(chunk, home, target, &keep, permit).await? {
            return Ok(0);
        }
        // CRASH: the reserved chunk is in no mapping.
        self.core.crash.reached("mirror.before-sync");
        self.core.sync_class(class).await?;
        if let Some(home) = home {
            // Otherwise a stop could take back what the home has, but not what the mirror has.
            let from = self.core.class(home.class)?;
            self.core.sync_class(&from).await?;
        }
        // CRASH: home and copy are durable and the same; the copy is in no mapping.
        self.core.crash.reached("mirror.before-switch");
        let (old, lsn) = self.core.journal.change(|queue| {
            let leaf = self.state.table.write().leaf_or_new(chunk).clone();
            let cell = &leaf.chunk(chunk).mirror;
            let old = cell.get();
            if let Some(home) = home {
                self.journal_fresh(chunk, home, queue);
            }
            cell.set(Some(target));
            reserved.mapped();
            queue.push(&Record::Mirrored { id: self.state.id, chunk, place: target });
            old
        });
        self.core.retire(old, lsn);
        self.core.commit(lsn).await?;
        // CRASH: the mirror is in the mapping, and the same as its home.
        self.core.crash.reached("mirror.after-switch");
        Ok(self.core.chunk_bytes)
    }

    fn rank(&self, class: &Class) -> Result<usize> {
        self.core
            .class_list()
            .rank(class.id)
            .ok_or_else(|| Error::new(ErrorKind::NotFound, format!("class {} was removed", class.name)))
    }
}

/// Chunks that may have to be relocated, in order. Those of an adopted file are not listed: there may be more of them
/// than memory holds.
enum Candidates {
    All(Range<u64>),
    These(std::vec::IntoIter<u64>),
}

impl Candidates {
    fn len(&self) -> u64 {
        match self {
            Candidates::All(chunks) => chunks.end.saturating_sub(chunks.start),
            Candidates::These(chunks) => chunks.len() as u64,
        }
    }
}

impl Iterator for Candidates {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        match self {
            Candidates::All(chunks) => chunks.next(),
            Candidates::These(chunks) => chunks.next(),
        }
    }
}

/// A buffer in pieces of so many bytes, without copying.
fn in_pieces(mut buffer: Buffer, bytes: u64) -> Vec<Buffer> {
    let mut pieces = Vec::new();
    while buffer.len() as u64 > bytes {
        let rest = buffer.split_off(bytes as usize);
        pieces.push(std::mem::replace(&mut buffer, rest));
    }
    pieces.push(buffer);
    pieces
}

/// The buffer that `pieces` were.
fn joined(pieces: Vec<Buffer>) -> Result<Buffer> {
    let lost = || Error::new(ErrorKind::Cancelled, "a buffer was lost");
    let mut pieces = pieces.into_iter();
    let mut whole = pieces.next().ok_or_else(lost)?;
    for piece in pieces {
        whole.unsplit(piece).map_err(|_| lost())?;
    }
    Ok(whole)
}
