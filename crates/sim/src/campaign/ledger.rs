//! What was asked of each object since the volume was opened, against what the volume counted and gave.
//!
//! 1. A read or a write is entered when it is asked for: so much may be counted. When it is done it is entered again:
//!    so much must be. Between the two lie only requests that failed or that nobody waited for; without them counts
//!    have to be exact, whatever ran at once.
//! 2. What objects were counted for writing is what classes were, to the byte; nothing else counts.
//! 3. An object takes up no more chunks than its quota says, or than it had when that was said.
//! 4. An object that was pinned at its making, and of which nothing else was said since, has nothing anywhere else.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use tanada_volume::{Attributes, BLOCK_BYTES, DirectionStatistics, Object, Volume};

use crate::oracle::CHUNK_BYTES;

/// I/Os and bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Amount {
    ios: u64,
    bytes: u64,
}

impl Amount {
    fn add(&mut self, other: Amount) {
        self.ios += other.ios;
        self.bytes += other.bytes;
    }

    fn of(counted: &DirectionStatistics) -> Amount {
        Amount { ios: counted.ios, bytes: counted.bytes }
    }
}

/// What must have been counted, and what may have been.
#[derive(Debug, Clone, Copy, Default)]
struct Bounds {
    least: Amount,
    most: Amount,
}

impl Bounds {
    fn check(&self, counted: &DirectionStatistics, counts_ios: bool) -> Result<(), String> {
        let Amount { ios, bytes } = Amount::of(counted);
        let fits = (self.least.bytes..=self.most.bytes).contains(&bytes)
            && (!counts_ios || (self.least.ios..=self.most.ios).contains(&ios))
            && counted.latency.count() == ios;
        if fits {
            return Ok(());
        }
        let latencies = counted.latency.count();
        Err(format!("{ios} I/Os, {bytes} bytes and {latencies} latencies were counted, but it was {self:?}"))
    }
}

#[derive(Debug)]
struct Account {
    object: Object,
    read: Bounds,
    written: Bounds,
    /// Bytes of chunks that it may take up.
    most_bytes: Option<u64>,
    /// The class that it was pinned to at its making, as long as nothing else was said.
    pin: Option<String>,
}

/// A request of so many bytes at an offset.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked {
    pub(crate) is_write: bool,
    pub(crate) offset: u64,
    pub(crate) len: u64,
}

impl Asked {
    /// What it may count as. Whole blocks are read; a piece lies in one chunk, and in one segment if it is read.
    fn most(&self) -> Amount {
        if self.len == 0 {
            return Amount::default();
        }
        let end = self.offset + self.len;
        let pieces = |unit: u64| end.div_ceil(unit) - self.offset / unit;
        match self.is_write {
            true => Amount { ios: pieces(CHUNK_BYTES), bytes: self.len },
            false => Amount { ios: pieces(BLOCK_BYTES), bytes: pieces(BLOCK_BYTES) * BLOCK_BYTES },
        }
    }

    /// What it counts as at least when `len` bytes came of it.
    fn least(&self, len: u64) -> Amount {
        match self.is_write {
            true => self.most(),
            false => Amount { ios: u64::from(len > 0), bytes: len },
        }
    }
}

/// See the module's head. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ledger {
    accounts: Rc<RefCell<BTreeMap<u64, Account>>>,
    /// A class went, or may have gone, and its counts with it.
    has_lost_counts: Rc<Cell<bool>>,
}

impl Ledger {
    /// Opens an account for the object, unless it has one. `attributes` are given for one that was made just now.
    pub(crate) fn know(&self, object: &Object, attributes: Option<&Attributes>) {
        self.accounts.borrow_mut().entry(object.id()).or_insert_with(|| Account {
            object: object.clone(),
            read: Bounds::default(),
            written: Bounds::default(),
            most_bytes: most_bytes(object),
            pin: attributes.and_then(|attributes| attributes.pin.clone()),
        });
    }

    pub(crate) fn begin(&self, object: &Object, asked: Asked) {
        self.enter(object, asked.is_write, |bounds| bounds.most.add(asked.most()));
    }

    /// `len` bytes came of it.
    pub(crate) fn done(&self, object: &Object, asked: Asked, len: u64) {
        self.enter(object, asked.is_write, |bounds| bounds.least.add(asked.least(len)));
    }

    fn enter(&self, object: &Object, is_write: bool, change: impl FnOnce(&mut Bounds)) {
        if let Some(account) = self.accounts.borrow_mut().get_mut(&object.id()) {
            change(if is_write { &mut account.written } else { &mut account.read });
        }
    }

    /// Something was said about the object.
    pub(crate) fn set_attributes(&self, object: &Object) {
        if let Some(account) = self.accounts.borrow_mut().get_mut(&object.id()) {
            account.pin = None;
            account.most_bytes = most_bytes(object);
        }
    }

    /// A class may go. Who is pinned to it is not any more then.
    pub(crate) fn begin_removal(&self, class: &str) {
        self.has_lost_counts.set(true);
        for account in self.accounts.borrow_mut().values_mut() {
            account.pin.take_if(|pin| pin == class);
        }
    }

    /// Judges where an object lies and how much it takes up.
    pub(crate) fn check_place(&self, volume: &Volume, object: &Object) -> Result<(), String> {
        let accounts = self.accounts.borrow();
        let Some(account) = accounts.get(&object.id()) else { return Ok(()) };
        let (name, allocated) = (object.name(), object.allocated_bytes());
        if account.most_bytes.is_some_and(|most| allocated > most) {
            return Err(format!("{name:?} takes up {allocated} bytes, and may {:?}", account.most_bytes));
        }
        let Some(pin) = &account.pin else { return Ok(()) };
        let classes = volume.classes();
        let Some(pinned) = classes.iter().find(|class| class.name == *pin) else { return Ok(()) };
        for chunk in object.chunks(0..u64::MAX) {
            let mut places = [chunk.home, chunk.mirror].into_iter().flatten();
            if let Some(place) = places.find(|place| place.class != pinned.number) {
                return Err(format!("{name:?} is pinned to {pin}, but chunk {} lies at {place}", chunk.no));
            }
        }
        Ok(())
    }

    /// Judges all that was counted. `is_sound`: no device was made to fail, so that each I/O is one.
    pub(crate) fn check(&self, volume: &Volume, is_sound: bool) -> Result<(), String> {
        let mut objects = (Amount::default(), Amount::default());
        for account in self.accounts.borrow().values() {
            let counted = account.object.statistics();
            objects.0.add(Amount::of(&counted.read));
            objects.1.add(Amount::of(&counted.written));
            if account.object.page_statistics().is_some() {
                // What is read and written are images of pages.
                continue;
            }
            let name = account.object.name();
            let wrong = |what: &str, why: String| format!("{what} of {name:?}: {why}");
            account.read.check(&counted.read, is_sound).map_err(|why| wrong("reads", why))?;
            account.written.check(&counted.written, is_sound).map_err(|why| wrong("writes", why))?;
        }
        let mut classes = (Amount::default(), Amount::default());
        for class in volume.classes() {
            classes.0.add(Amount::of(&class.statistics.read));
            classes.1.add(Amount::of(&class.statistics.written));
        }
        // What lies nowhere, or in an adopted file, is read from no class.
        let is_part = |part: Amount, whole: Amount| part.ios <= whole.ios && part.bytes <= whole.bytes;
        let fits = is_part(classes.0, objects.0)
            && is_part(classes.1, objects.1)
            && (self.has_lost_counts.get() || classes.1 == objects.1);
        match fits {
            true => Ok(()),
            false => {
                Err(format!("reads and writes of all classes are {classes:?}, of all objects {objects:?}"))
            }
        }
    }
}

/// What the quota allows, or what there is already.
fn most_bytes(object: &Object) -> Option<u64> {
    object.attributes().quota_bytes.map(|quota| quota.max(object.allocated_bytes()))
}
