//! The ring's table of registered files: an I/O on a file in it needs no reference counting in the kernel.
//!
//! A file enters the table at its first I/O on this ring and leaves it when it is closed (its last user tells the
//! executor). A full table, or a kernel without sparse tables, is no error: such files are used by descriptor.
//!
//! Invariant: a place is in `free` or is the value of one entry of `places`.

use std::collections::HashMap;
use std::sync::Arc;

use io_uring::IoUring;

use crate::device::OpenFile;
use crate::executor::RemoteHandle;

const PLACES: u32 = 1024;

pub(super) struct FileTable {
    places: HashMap<u64, u32>,
    free: Vec<u32>,
    /// The file of the last I/O; most follow on the same one.
    last: Option<(u64, u32)>,
}

impl FileTable {
    pub(super) fn new(uring: &IoUring) -> FileTable {
        let registered = uring.submitter().register_files_sparse(PLACES).is_ok();
        let free = if registered { (0..PLACES).rev().collect() } else { Vec::new() };
        FileTable { places: HashMap::new(), free, last: None }
    }

    /// Where `file` is in the table; enters it if there is room.
    pub(super) fn place_of(
        &mut self,
        uring: &IoUring,
        file: &Arc<OpenFile>,
        executor: &RemoteHandle,
    ) -> Option<u32> {
        if let Some((id, place)) = self.last
            && id == file.id
        {
            return Some(place);
        }
        let place = match self.places.get(&file.id) {
            Some(place) => *place,
            None => self.insert(uring, file, executor)?,
        };
        self.last = Some((file.id, place));
        Some(place)
    }

    fn insert(&mut self, uring: &IoUring, file: &Arc<OpenFile>, executor: &RemoteHandle) -> Option<u32> {
        let place = *self.free.last()?;
        uring.submitter().register_files_update(place, &[file.raw_fd()]).ok()?;
        self.free.pop();
        self.places.insert(file.id, place);
        file.registered_with(executor.clone());
        Some(place)
    }

    /// Lets go of a file, so that closing it frees it.
    pub(super) fn remove(&mut self, uring: &IoUring, id: u64) {
        self.last = None;
        let Some(place) = self.places.remove(&id) else { return };
        if uring.submitter().register_files_update(place, &[-1]).is_ok() {
            self.free.push(place);
        }
    }
}
