//! Adopted files of the host. They are capacity chunks in place, so they lie on the disks that emulate the slowest
//! class: behind that class's own data and one behind the other, so that seeks from one to another cost what they
//! should, and each I/O has to wait for all others there.
//!
//! Where the class has several devices, each on an array of its own, a file goes as a whole to the one with the fewest
//! bytes on it, and stays there.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use parking_lot::Mutex;
use tanada_io::{Device, DeviceOptions, Method, ModelledArray};

use crate::adopted::{Identity, Opener};

/// Opens files of the host.
#[derive(Debug, Default)]
pub struct HostOpener {
    method: Method,
    arrays: Vec<ModelledArray>,
    /// On which array a path lies.
    places: Mutex<HashMap<String, usize>>,
}

impl HostOpener {
    /// An opener whose files are read by `method`.
    pub fn new(method: Method) -> HostOpener {
        HostOpener { method, ..HostOpener::default() }
    }

    /// Has all files lie on `arrays`, if there are any.
    #[must_use]
    pub fn on_arrays(self, arrays: Vec<ModelledArray>) -> HostOpener {
        HostOpener { arrays, ..self }
    }

    /// The array of the file at `path`: the same each time.
    fn array(&self, path: &str) -> Option<&ModelledArray> {
        let mut places = self.places.lock();
        let no = places.get(path).copied().or_else(|| {
            let emptiest = (0..self.arrays.len()).min_by_key(|no| self.arrays[*no].extent_bytes())?;
            places.insert(path.to_owned(), emptiest);
            Some(emptiest)
        })?;
        self.arrays.get(no)
    }
}

impl Opener for HostOpener {
    fn open(&self, path: &str) -> tanada_io::Result<(Device, Identity)> {
        let options = DeviceOptions { method: self.method, ..DeviceOptions::default() };
        let device = Device::open(Path::new(path), &options)?;
        let device = match self.array(path) {
            Some(array) => array.place(device)?,
            None => device,
        };
        Ok((device, self.identity(path)?))
    }

    fn identity(&self, path: &str) -> tanada_io::Result<Identity> {
        let metadata = std::fs::metadata(path).map_err(|error| {
            let kind = match error.kind() {
                std::io::ErrorKind::NotFound => tanada_io::ErrorKind::NotFound,
                std::io::ErrorKind::PermissionDenied => tanada_io::ErrorKind::PermissionDenied,
                _ => tanada_io::ErrorKind::Device,
            };
            tanada_io::Error::new(kind, format!("cannot look at {path}: {error}"))
        })?;
        Ok(Identity {
            file: u128::from(metadata.dev()) << 64 | u128::from(metadata.ino()),
            size_bytes: metadata.len(),
            modified_ns: i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec()),
        })
    }
}
