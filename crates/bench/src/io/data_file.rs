//! The file that is read: random bytes, every block written, so that no hole and no compression makes reading it cheap.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use tanada_base::SplitMix64;

use crate::{Error, ErrorKind, Result};

/// A file to read; one that was made here is removed on drop.
#[derive(Debug)]
pub(super) struct DataFile {
    path: PathBuf,
    len: u64,
    is_ours: bool,
}

impl DataFile {
    /// Uses `path` if it is a file, else makes one of `len` bytes in the folder `path`.
    pub(super) fn prepare(path: &Path, len: u64) -> Result<DataFile> {
        let metadata = std::fs::metadata(path).map_err(|error| Error::at_path("read", path, &error))?;
        if metadata.is_file() {
            if metadata.blocks() * 512 < metadata.len() {
                let message = format!("{} has holes: reading them measures nothing", path.display());
                return Err(Error::new(ErrorKind::InvalidInput, message));
            }
            return Ok(DataFile { path: path.to_owned(), len: metadata.len(), is_ours: false });
        }
        let name = format!("tanada-bench-io-{}.data", std::process::id());
        let file = DataFile { path: path.join(name), len, is_ours: true };
        let mut options = OpenOptions::new();
        let opened = options.write(true).create_new(true).mode(0o600).open(&file.path);
        opened
            .and_then(|mut made| fill(&mut made, len))
            .map_err(|error| Error::at_path("write", &file.path, &error))?;
        Ok(file)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }
}

fn fill(file: &mut File, len: u64) -> std::io::Result<()> {
    let mut random = SplitMix64::new(len);
    let mut block = vec![0; 4 << 20];
    let mut left = len;
    while left > 0 {
        random.fill(&mut block);
        let part = left.min(block.len() as u64);
        file.write_all(&block[..part as usize])?;
        left -= part;
    }
    file.sync_all()
}

impl Drop for DataFile {
    fn drop(&mut self) {
        if self.is_ours {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
