//! `tanada volume rm`.

use clap::Args;

use super::{Machine, VolumeFolder, selection};
use crate::failure::Outcome;
use crate::output::{count, say};

/// Arguments of `tanada volume rm`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tanada volume rm vol shop/orders.ibd
  tanada volume rm vol backup                # all objects whose names begin with backup/

The files of adopted objects stay as they are.")]
pub struct RemoveArguments {
    #[command(flatten)]
    folder: VolumeFolder,
    /// Objects, or folders of objects
    #[arg(value_name = "OBJECT", required = true)]
    names: Vec<String>,
}

pub(super) async fn run(machine: &Machine, arguments: RemoveArguments) -> Outcome {
    let removed = machine
        .write(&arguments.folder.volume, async |directory| {
            let objects = selection::all_or(directory.volume(), &arguments.names)?;
            for object in &objects {
                directory.volume().delete(&object.name()).await?;
            }
            Ok(objects.len() as u64)
        })
        .await?;
    say(&format!("{} removed\n", count(removed, "object")))
}
