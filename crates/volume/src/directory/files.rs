//! Adopted files of the host. They are capacity chunks in place, so what emulates the capacity class emulates the disk they lie on: all of them
//! share one array of that model.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use tanada_io::{Device, DeviceOptions, Method, ModelledArray};

use crate::adopted::{Identity, Opener};

/// Opens files of the host.
#[derive(Debug, Clone, Default)]
pub struct HostOpener {
    method: Method,
    array: Option<ModelledArray>,
}

impl HostOpener {
    /// An opener whose files are read by `method`.
    pub fn new(method: Method) -> HostOpener {
        HostOpener { method, array: None }
    }

    /// Has all files lie on `array`.
    #[must_use]
    pub fn on_array(self, array: ModelledArray) -> HostOpener {
        HostOpener { array: Some(array), ..self }
    }
}

impl Opener for HostOpener {
    fn open(&self, path: &str) -> tanada_io::Result<(Device, Identity)> {
        let options = DeviceOptions { method: self.method, ..DeviceOptions::default() };
        let device = Device::open(Path::new(path), &options)?;
        let device = match &self.array {
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
