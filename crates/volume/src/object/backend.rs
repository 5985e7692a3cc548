//! An object as an ordinary device: what is above need not know that there is a volume.
//!
//! A request in one piece goes straight to the device of its class, with one small allocation for the completion. The rest are futures that
//! whoever completes their I/Os polls ([`crate::waiting::drive`]).

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tanada_io::{Backend, Completion, Method, Operation, Request, Ticket};

use super::read::into_io;
use super::{Object, ObjectState, read, write};
use crate::settings::BLOCK_BYTES;
use crate::volume::Core;

/// What stands behind the [device of an object](Object::device).
#[derive(Debug)]
pub struct ObjectBackend {
    object: Object,
    path: PathBuf,
}

impl ObjectBackend {
    pub(super) fn new(core: Arc<Core>, state: Arc<ObjectState>) -> ObjectBackend {
        let path = PathBuf::from(state.name.read().as_str());
        ObjectBackend { object: Object { core, state }, path }
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

    fn start(&self, request: Request, completion: Completion) -> Ticket {
        if let Err(error) = self.object.state.check_there() {
            completion.complete(Err(into_io(error)), request.buffer);
            return Ticket::default();
        }
        match request.operation {
            Operation::Read => read::start(&self.object.core, &self.object.state, request, completion),
            Operation::Write => write::start(&self.object, request, completion),
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

    fn degrade(&self, error: &io::Error) -> bool {
        self.object.degrade(error)
    }
}
