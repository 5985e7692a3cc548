//! The volumes that this process has open: databases of one volume share its opening.
//!
//! A volume is found by the canonical path of its folder.
//! - The first database opens it, and the last one that is closed closes it. Who comes meanwhile waits, and finds it
//!   open or closed.
//! - A volume that is open for writing serves those too who only read. One that is open for reading is `Locked` for who
//!   wants to write.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tanada_kv::blocking::wait;
use tanada_volume::directory::{Directory, Settings};
use tanada_volume::{OpenOptions, Volume};

use crate::code::{Code, Failure};

/// Places by path; one that nobody uses any more is forgotten.
static PLACES: Mutex<BTreeMap<PathBuf, Weak<Place>>> = Mutex::new(BTreeMap::new());

/// Where a volume is opened and closed, by one at a time.
#[derive(Default)]
struct Place {
    open: Mutex<Option<Open>>,
}

/// An open volume. It has one user at least.
struct Open {
    directory: Directory,
    read_only: bool,
    users: usize,
}

/// The use of an open volume. To be closed; one that is dropped leaves the volume to the next opening as a stop would.
pub(crate) struct VolumeUse {
    place: Arc<Place>,
    volume: Volume,
    is_closed: bool,
}

/// What a panic left is whole: a place is changed in one step.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn place(path: &Path) -> Arc<Place> {
    // A folder that is not there is told by who opens it.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let mut places = locked(&PLACES);
    places.retain(|_, place| place.strong_count() > 0);
    if let Some(place) = places.get(&path).and_then(Weak::upgrade) {
        return place;
    }
    let place = Arc::<Place>::default();
    places.insert(path, Arc::downgrade(&place));
    place
}

impl VolumeUse {
    /// Opens the volume in the folder `path`, unless this process has it open.
    pub(crate) fn open(path: &Path, read_only: bool) -> Result<VolumeUse, Failure> {
        let place = place(path);
        let volume = {
            let mut open = locked(&place.open);
            let opened = match &mut *open {
                Some(opened) if opened.read_only && !read_only => {
                    let message = format!("{}: this process has it open for reading", path.display());
                    return Err(Failure::of(Code::Locked, message));
                }
                Some(opened) => opened,
                none => {
                    let options = OpenOptions { read_only, ..OpenOptions::default() };
                    let directory = wait(Directory::open(path, &options, Settings::default()))?;
                    none.insert(Open { directory, read_only, users: 0 })
                }
            };
            opened.users += 1;
            opened.directory.volume().clone()
        };
        Ok(VolumeUse { place, volume, is_closed: false })
    }

    /// The volume.
    pub(crate) fn volume(&self) -> &Volume {
        &self.volume
    }

    /// Ends the use; the last one closes the volume.
    pub(crate) fn close(mut self) -> Result<(), Failure> {
        self.is_closed = true;
        let mut open = locked(&self.place.open);
        match leave(&mut open) {
            // The place stays locked: who opens the volume next finds it closed.
            Some(last) if !last.read_only => Ok(wait(last.directory.close())?),
            _ => Ok(()),
        }
    }
}

impl Drop for VolumeUse {
    fn drop(&mut self) {
        if !self.is_closed {
            drop(leave(&mut locked(&self.place.open)));
        }
    }
}

/// One user goes; what is to be closed if it was the last.
fn leave(open: &mut Option<Open>) -> Option<Open> {
    let opened = open.as_mut()?;
    opened.users = opened.users.saturating_sub(1);
    if opened.users > 0 { None } else { open.take() }
}
