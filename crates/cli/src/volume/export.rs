//! `tanada volume export`: objects are copied out of a volume. Chunks that were never written, and blocks of zeros,
//! become holes.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Component, Path, PathBuf};

use clap::Args;
use futures::stream::{self, StreamExt};
use tanada_volume::{BLOCK_BYTES, Object, Volume};

use super::import::DEPTH;
use super::{Machine, VolumeFolder, selection};
use crate::failure::{Failure, Outcome};
use crate::output::{count, say, size};
use crate::progress::Progress;

/// Arguments of `tanada volume export`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tanada volume export vol shop/orders.ibd orders.ibd
  tanada volume export vol shop restored/shop             # all objects below shop/, in a folder

A file that is there is not overwritten.")]
pub struct ExportArguments {
    #[command(flatten)]
    folder: VolumeFolder,
    /// An object, or a folder of objects
    #[arg(value_name = "OBJECT")]
    name: String,
    /// The file to make; or the folder to make files in, for a folder of objects
    #[arg(value_name = "PATH")]
    path: PathBuf,
}

pub(super) async fn run(machine: &Machine, arguments: ExportArguments) -> Outcome {
    let ExportArguments { folder, name, path } = arguments;
    let directory = machine.read(&folder.volume).await?;
    let volume = directory.volume();
    let objects = selection::objects(volume, &name)?;
    let bytes = objects.iter().map(Object::size_bytes).sum();
    let progress = Progress::new("export", bytes);
    for object in &objects {
        let target = target(&path, &name, &object.name())?;
        copy(machine, volume, object, &target, &progress).await?;
    }
    drop(progress);
    say(&format!("{} exported, {}\n", count(objects.len() as u64, "object"), size(bytes)))
}

/// Where an object goes that was selected by `name`. Names come from whoever filled the volume: none leads out of the
/// folder.
fn target(path: &Path, name: &str, object: &str) -> Outcome<PathBuf> {
    let below = object.strip_prefix(name.trim_end_matches('/')).unwrap_or(object);
    if below.is_empty() {
        return Ok(path.to_owned());
    }
    let below = Path::new(below.strip_prefix('/').unwrap_or(below));
    if below.components().all(|part| matches!(part, Component::Normal(_))) {
        return Ok(path.join(below));
    }
    Err(Failure::failed(format!(
        "object {object:?} has no name of a file: export it alone, to a path of your choice"
    )))
}

async fn copy(
    machine: &Machine,
    volume: &Volume,
    object: &Object,
    target: &Path,
    progress: &Progress,
) -> Outcome {
    let failed = |error: std::io::Error| {
        let why = match error.kind() {
            std::io::ErrorKind::AlreadyExists => "it is there already; name another path".to_owned(),
            _ => error.to_string(),
        };
        Failure::failed(format!("cannot write {}: {why}", target.display()))
    };
    if let Some(folder) = target.parent() {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    let file = OpenOptions::new().write(true).create_new(true).open(target).map_err(failed)?;
    let copied = copy_chunks(machine, volume, object, &file, progress).await;
    let done = match copied {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(failed(error)),
        Err(failure) => Err(failure),
    };
    if done.is_err() {
        // Half a file must not be taken for a whole one. Why it failed is what matters.
        let _ = std::fs::remove_file(target);
    }
    done
}

/// The inner result is that of the file.
async fn copy_chunks(
    machine: &Machine,
    volume: &Volume,
    object: &Object,
    file: &File,
    progress: &Progress,
) -> Outcome<std::io::Result<()>> {
    let (chunk_bytes, size) = (volume.chunk_bytes(), object.size_bytes());
    let chunks =
        (0..size.div_ceil(chunk_bytes)).filter(|chunk| object.has_data(chunk * chunk_bytes, chunk_bytes));
    let reads = chunks.map(|chunk| {
        let offset = chunk * chunk_bytes;
        let bytes = chunk_bytes.min(size - offset);
        let buffer = machine.buffers.allocate(bytes as usize);
        async move { (offset, object.read(offset, buffer).await) }
    });
    let mut reads = stream::iter(reads).buffered(DEPTH);
    while let Some((offset, read)) = reads.next().await {
        let buffer = read?;
        if let Err(error) = write_data(file, offset, &buffer) {
            return Ok(Err(error));
        }
        progress.add(buffer.len() as u64);
    }
    Ok(file.set_len(size).and_then(|()| file.sync_all()))
}

/// Writes what is not zeros, in runs of whole blocks.
fn write_data(file: &File, offset: u64, bytes: &[u8]) -> std::io::Result<()> {
    let block = BLOCK_BYTES as usize;
    let is_data = |block: &[u8]| block.iter().any(|byte| *byte != 0);
    let mut at = 0;
    while at < bytes.len() {
        let run =
            bytes[at..].chunks(block).take_while(|block| is_data(block)).map(<[u8]>::len).sum::<usize>();
        file.write_all_at(&bytes[at..at + run], offset + at as u64)?;
        // What follows the run is a block of zeros, or the end.
        at += run + block;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_are_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path).unwrap();
        let mut bytes = vec![0; 5 * 4096 + 10];
        bytes[4096..3 * 4096].fill(1);
        bytes[5 * 4096 + 3] = 2;
        write_data(&file, 0, &bytes).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
        write_data(&file, 1 << 20, &[0; 8192]).unwrap();
        assert_eq!(file.metadata().unwrap().len(), bytes.len() as u64);
    }

    #[test]
    fn no_name_leads_out_of_the_folder() {
        let out = Path::new("out");
        assert_eq!(target(out, "a/b", "a/b").unwrap(), out);
        assert_eq!(target(out, "a/", "a/b/c").unwrap(), out.join("b/c"));
        for name in ["a/../../x", "a//x"] {
            assert!(target(out, "a", name).is_err(), "{name}");
        }
    }
}
