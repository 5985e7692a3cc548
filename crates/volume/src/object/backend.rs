//! An object as an ordinary device: what is above need not know that there is a volume.
//!
//! A request in one piece goes straight to the device of its class, with one small allocation for the completion. The
//! rest are futures that whoever completes their I/Os polls ([`crate::waiting::drive`]).
//!
//! If nobody waits for a request any more: a read is cancelled on the device of its class. A write is not, for part of
//! it may be on the device already; its chunk is held until the device is done, so that no later write is overtaken. A
//! write that is a future is dropped, which does the same.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use tanada_io::{Backend, Completion, Device, Medium, Method, Operation, Request, Ticket};

use super::read::into_io;
use super::ticket::{CLASS_SHIFT, DEVICE_SHIFT, IS_FILE, IS_READ};
use super::{Object, ObjectState, read, write};
use crate::settings::BLOCK_BYTES;
use crate::volume::Core;
use crate::waiting::Driven;

/// In a ticket's place: what it names.
const IS_WRITE: u64 = 1 << 63;
const IS_DRIVEN: u64 = 1 << 62;

/// Finished futures are forgotten when there are so many.
const MOST_DRIVEN: usize = 64;

#[derive(Debug, Default)]
struct Writes {
    driven: HashMap<u64, Driven>,
    next: u64,
    /// How many there may be before the finished ones are forgotten.
    most: usize,
}

/// What stands behind the [device of an object](Object::device).
///
/// ```
/// use tanada_io::Device;
/// use tanada_volume::Attributes;
///
/// # let folder = tempfile::tempdir().unwrap();
/// # tanada_volume::example::run(folder.path(), async |volume| {
/// let object = volume.create_object("a", &Attributes::default())?;
/// let device = Device::from_backend(object.backend());
/// drop(device);
/// # Ok(()) }).unwrap();
/// ```
#[derive(Debug)]
pub struct ObjectBackend {
    object: Object,
    path: PathBuf,
    writes: Mutex<Writes>,
}

impl ObjectBackend {
    pub(super) fn new(core: Arc<Core>, state: Arc<ObjectState>) -> ObjectBackend {
        let path = PathBuf::from(state.name.read().as_str());
        ObjectBackend { object: Object { core, state }, path, writes: Mutex::default() }
    }
}

impl Backend for ObjectBackend {
    /// The object's name when the device was made.
    fn path(&self) -> &Path {
        &self.path
    }

    fn size_bytes(&self) -> io::Result<u64> {
        self.object.state.check_there().map_err(into_io)?;
        Ok(self.object.size_bytes())
    }

    /// That of the slowest class.
    fn method(&self) -> Method {
        let classes = self.object.core.class_list();
        let devices = classes.ranked().iter().rev().flat_map(|class| class.devices.iter().flatten());
        devices.map(|device| device.device().method()).next().unwrap_or_default()
    }

    fn alignment(&self) -> usize {
        BLOCK_BYTES as usize
    }

    /// That of the adopted file, else of the class that has most of its homes.
    fn medium(&self) -> Medium {
        if let Some(file) = &self.object.state.adopted {
            return file.device.read().as_ref().map(Device::medium).unwrap_or_default();
        }
        let mut chunks = [0u64; 256];
        for (_, chunk) in self.object.state.table.read().iter_from(0) {
            if let Some(home) = chunk.home.get() {
                chunks[usize::from(home.class)] += 1;
            }
        }
        let most = (0..=u8::MAX).max_by_key(|class| chunks[usize::from(*class)]).unwrap_or(0);
        let class = self.object.core.class(most).ok();
        let device = class.and_then(|class| class.devices.iter().flatten().next().cloned());
        device.map(|device| device.device().medium()).unwrap_or_default()
    }

    fn start(&self, request: Request, completion: Completion) -> Ticket {
        if let Err(error) = self.object.state.check_there() {
            completion.complete(Err(into_io(error)), request.buffer);
            return Ticket::default();
        }
        match request.operation {
            Operation::Read => {
                // Should the object get pages from here on, what it has now is not written over before this is started.
                let _grace = self.object.core.grace.enter();
                if let Some(pages) = self.object.state.pages.get().cloned() {
                    let object = self.object.clone();
                    crate::waiting::drive(async move {
                        object.read_pages_for(&pages, request, completion).await;
                    });
                    return Ticket::default();
                }
                let needed = 0..request.len;
                read::start(&self.object.core, &self.object.state, request, needed, completion)
            }
            Operation::Write => self.ticket(write::start(&self.object, request, completion)),
            Operation::Sync => {
                let object = self.object.clone();
                crate::waiting::drive(async move {
                    let synced = object.sync().await;
                    completion.complete(synced.map(|()| 0).map_err(into_io), None);
                });
                Ticket::default()
            }
            Operation::Punch => {
                let object = self.object.clone();
                crate::waiting::drive(async move {
                    let punched = object.punch(request.offset, request.len).await;
                    completion.complete(punched.map(|()| 0).map_err(into_io), None);
                });
                Ticket::default()
            }
        }
    }

    fn cancel(&self, ticket: Ticket) {
        let Ticket { place, no } = ticket;
        if place & IS_WRITE != 0 {
            self.object.state.holds.leave(no);
        } else if place & IS_DRIVEN != 0 {
            let driven = self.writes.lock().driven.remove(&no);
            if let Some(driven) = driven {
                driven.give_up();
            }
        } else if place & IS_READ != 0 {
            let below = Ticket { place: place & ((1 << DEVICE_SHIFT) - 1), no };
            if place & IS_FILE != 0 {
                let file = self.object.state.adopted.as_ref();
                let device = file.and_then(|file| file.device.read().clone());
                device.into_iter().for_each(|device| device.cancel(below));
            } else if let Ok(class) = self.object.core.class((place >> CLASS_SHIFT & 63) as u8)
                && let Ok(device) = class.device((place >> DEVICE_SHIFT & 1023) as usize)
            {
                device.device().cancel(below);
            }
        }
    }

    fn distrust(&self, offset: u64, len: u64) {
        match self.object.state.pages.get() {
            Some(pages) => self.object.distrust_pages(&pages.clone(), offset, len),
            None => self.object.distrust_mirrors(offset, len),
        }
    }

    fn degrade(&self, error: &io::Error) -> bool {
        self.object.degrade(error)
    }
}

impl ObjectBackend {
    fn ticket(&self, started: write::Started) -> Ticket {
        let driven = match started {
            write::Started::Direct(no) => return Ticket { place: IS_WRITE, no },
            write::Started::Driven(driven) if driven.is_over() => return Ticket::default(),
            write::Started::Driven(driven) => driven,
        };
        let mut writes = self.writes.lock();
        if writes.driven.len() >= writes.most {
            writes.driven.retain(|_, driven| !driven.is_over());
            writes.most = MOST_DRIVEN.max(2 * writes.driven.len());
        }
        let no = writes.next;
        writes.next += 1;
        writes.driven.insert(no, driven);
        Ticket { place: IS_DRIVEN, no }
    }
}
