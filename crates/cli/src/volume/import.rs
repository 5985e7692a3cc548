//! `tanada volume import`: files are copied into a volume.
//!
//! 1. For each file: make the object, as long as the file.
//! 2. Copy the chunks that hold data, several at once; chunks that are holes stay unwritten, and so do blocks of zeros.
//! 3. Make it durable. If anything fails, the objects made so far are deleted again.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use futures::stream::{self, StreamExt, TryStreamExt};
use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use tanada_base::ByteSize;
use tanada_io::{BufferPool, Device, DeviceOptions};
use tanada_volume::{Attributes, Object, Volume};

use super::folder::{Source, sources};
use super::transform::TransformArguments;
use super::{Machine, VolumeFolder};
use crate::failure::{Failure, Outcome};
use crate::output::{count, say, size};
use crate::progress::Progress;

/// Chunks on their way at once.
pub(super) const DEPTH: usize = 8;

/// Arguments of `tanada volume import`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tanada volume import vol backup/shop --name shop          # a database's folder
  tanada volume import vol orders.ibd --name shop/orders.ibd --class staging
  tanada volume import vol backup/shop --name shop --compression zstd:3
  tanada sql --volume vol                                   # imported InnoDB folders are databases")]
pub struct ImportArguments {
    #[command(flatten)]
    folder: VolumeFolder,
    /// A file; or a data directory or database folder, of which all that the reader needs is copied
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// Name of the object, or of the folder of objects; without it the last part of the path
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The class where it goes as long as there is room; without it the slowest
    #[arg(long, value_name = "CLASS")]
    class: Option<String>,
    /// Most bytes that each object may take up
    #[arg(long, value_name = "SIZE")]
    quota: Option<ByteSize>,
    #[command(flatten)]
    transform: TransformArguments,
}

pub(super) async fn run(machine: &Machine, arguments: ImportArguments) -> Outcome {
    let ImportArguments { folder, path, name, class, quota, transform } = arguments;
    let files = sources(&path, name.as_deref())?;
    let bytes = files.iter().map(|file| file.bytes).sum();
    let attributes = Attributes { class, quota_bytes: quota.map(ByteSize::bytes), ..transform.attributes()? };
    let progress = Progress::new("import", bytes);
    machine
        .write(&folder.volume, async |directory| {
            let import = Import { machine, volume: directory.volume(), progress: &progress };
            for (done, file) in files.iter().enumerate() {
                if let Err(failure) = import.file(file, &attributes).await {
                    for file in &files[..done] {
                        import.volume.delete(&file.name).await?;
                    }
                    return Err(failure);
                }
            }
            Ok(())
        })
        .await?;
    drop(progress);
    say(&format!("{} imported, {}\n", count(files.len() as u64, "file"), size(bytes)))
}

struct Import<'a> {
    machine: &'a Machine,
    volume: &'a Volume,
    progress: &'a Progress,
}

impl Import<'_> {
    /// Copies one file; leaves no object behind if that fails.
    async fn file(&self, file: &Source, attributes: &Attributes) -> Outcome {
        let object = self.volume.create_object(&file.name, attributes)?;
        let copied = self.copy(file, &object).await;
        if copied.is_err() {
            self.volume.delete(&file.name).await?;
        }
        copied
    }

    async fn copy(&self, file: &Source, object: &Object) -> Outcome {
        let failed = |error: &dyn std::fmt::Display| {
            Failure::failed(format!("cannot import {}: {error}", file.path.display()))
        };
        let options = DeviceOptions { method: self.machine.settings.method, ..DeviceOptions::default() };
        let device = Device::open(&file.path, &options).map_err(|error| failed(&error))?;
        let chunk_bytes = self.volume.chunk_bytes();
        object.resize(file.bytes).await?;
        let chunks = chunks_with_data(&file.path, file.bytes, chunk_bytes).map_err(|error| failed(&error))?;
        let copies = chunks.into_iter().map(|chunk| {
            let (device, object, pool) = (device.clone(), object.clone(), self.machine.buffers.clone());
            let (offset, progress) = (chunk * chunk_bytes, self.progress);
            async move {
                let bytes = chunk_bytes.min(file.bytes - offset);
                copy_chunk(&device, &object, &pool, offset, chunk_bytes, bytes).await?;
                progress.add(bytes);
                Ok(())
            }
        });
        stream::iter(copies)
            .buffer_unordered(DEPTH)
            .try_collect::<()>()
            .await
            .map_err(|failure: Failure| failed(&failure))?;
        Ok(object.sync().await?)
    }
}

async fn copy_chunk(
    device: &Device,
    object: &Object,
    pool: &Arc<BufferPool>,
    offset: u64,
    chunk_bytes: u64,
    bytes: u64,
) -> Outcome {
    let buffer = device.read(offset, pool.allocate(chunk_bytes as usize)).await.map_err(Failure::failed)?;
    if (buffer.len() as u64) < bytes {
        return Err(Failure::failed("the file became shorter while it was read"));
    }
    let mut buffer = buffer;
    buffer.truncate(bytes as usize);
    // Holes within the chunk, and blocks of zeros, stay holes.
    object.write_sparse(offset, buffer).await?;
    Ok(())
}

/// The chunks of a file of which not all is a hole.
fn chunks_with_data(path: &std::path::Path, size: u64, chunk_bytes: u64) -> std::io::Result<Vec<u64>> {
    let file = File::open(path)?;
    let mut chunks = Vec::new();
    let mut at = 0;
    while at < size {
        let data = match seek(&file, SeekFrom::Data(at)) {
            Ok(data) => data,
            Err(Errno::NXIO) => break,
            // A file system without holes.
            Err(_) => return Ok((0..size.div_ceil(chunk_bytes)).collect()),
        };
        let hole = seek(&file, SeekFrom::Hole(data))?.min(size);
        let first = chunks.last().map_or(0, |last| last + 1).max(data / chunk_bytes);
        chunks.extend(first..hole.div_ceil(chunk_bytes));
        at = hole.max(at + 1);
    }
    Ok(chunks)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    #[test]
    fn holes_are_left_out() {
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = folder.path().join("f");
        let file = File::create(&path).unwrap();
        file.set_len(10 << 20).unwrap();
        file.write_all_at(&[1; 4096], 3 << 20).unwrap();
        file.write_all_at(&[1; 4096], (8 << 20) - 4096).unwrap();
        file.sync_all().unwrap();
        let chunks = chunks_with_data(&path, 10 << 20, 1 << 20).unwrap();
        assert!(chunks == [3, 7] || chunks == (0..10).collect::<Vec<_>>(), "{chunks:?}");
        assert_eq!(chunks_with_data(&path, 0, 1 << 20).unwrap(), [] as [u64; 0]);
    }
}
