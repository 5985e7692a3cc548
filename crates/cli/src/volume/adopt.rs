//! `tanada volume adopt`: files become objects where they lie.

use std::path::PathBuf;

use clap::Args;
use tanada_volume::{Attributes, Volume};

use super::folder::{Source, sources};
use super::{Machine, VolumeFolder};
use crate::failure::{Failure, Outcome};
use crate::output::{count, say, size};

/// Arguments of `tanada volume adopt`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tanada volume adopt vol /var/lib/mysql --name shop        # a data directory, after a clean shutdown
  tanada volume adopt vol backup/shop
  tanada volume adopt vol sales.parquet
  tanada sql --volume vol                                   # adopted InnoDB folders are databases

Nothing is copied and nothing is ever written to the files. If one changes, its mirrors are dropped.")]
pub struct AdoptArguments {
    #[command(flatten)]
    folder: VolumeFolder,
    /// A file; or a data directory or database folder, of which all that the reader needs is adopted
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// Name of the object, or of the folder of objects; without it the last part of the path
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
}

pub(super) async fn run(machine: &Machine, arguments: AdoptArguments) -> Outcome {
    let AdoptArguments { folder, path, name } = arguments;
    let files = sources(&path, name.as_deref())?;
    machine
        .write(&folder.volume, async |directory| {
            let volume = directory.volume();
            for (done, file) in files.iter().enumerate() {
                if let Err(failure) = adopt(volume, file) {
                    // A folder is adopted as a whole or not at all.
                    for file in &files[..done] {
                        volume.delete(&file.name).await?;
                    }
                    return Err(failure);
                }
            }
            Ok(())
        })
        .await?;
    let bytes = files.iter().map(|file| file.bytes).sum();
    say(&format!("{} adopted, {}\n", count(files.len() as u64, "file"), size(bytes)))
}

fn adopt(volume: &Volume, file: &Source) -> Outcome {
    let path = file.path.to_str().ok_or_else(|| {
        Failure::failed(format!("cannot adopt {}: its path is not UTF-8", file.path.display()))
    })?;
    volume.adopt(&file.name, path, &Attributes::default())?;
    Ok(())
}
