//! Adopted files of the host.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use tanada_io::{Device, DeviceOptions, Method};

use crate::adopted::{Identity, Opener};

/// Opens files of the host.
#[derive(Debug, Clone, Copy, Default)]
pub struct HostOpener {
    method: Method,
}

impl HostOpener {
    /// An opener whose files are read by `method`.
    pub fn new(method: Method) -> HostOpener {
        HostOpener { method }
    }
}

impl Opener for HostOpener {
    fn open(&self, path: &str) -> tanada_io::Result<(Device, Identity)> {
        let options = DeviceOptions { method: self.method, ..DeviceOptions::default() };
        let device = Device::open(Path::new(path), &options)?;
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
