//! `tanada volume rm`.

use std::collections::BTreeSet;

use clap::Args;
use tanada_volume::{Object, Volume};

use super::{Machine, VolumeFolder, selection};
use crate::failure::{Failure, Outcome};
use crate::output::{count, say};

/// Arguments of `tanada volume rm`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tanada volume rm vol shop/orders.ibd
  tanada volume rm vol backup                # all objects whose names begin with backup/

The files of adopted objects stay as they are. Of a key-value database all objects are removed, or none: tanada volume rm vol kv/NAME.")]
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
            check_databases(directory.volume(), &objects)?;
            for object in &objects {
                directory.volume().delete(&object.name()).await?;
            }
            Ok(objects.len() as u64)
        })
        .await?;
    say(&format!("{} removed\n", count(removed, "object")))
}

/// Part of a key-value database is not removed: the rest would be damaged.
fn check_databases(volume: &Volume, objects: &[Object]) -> Outcome {
    let database = |object: &Object| {
        let name = object.name();
        name.starts_with("kv/").then(|| name.rsplit_once('/').map(|(folder, _)| folder.to_owned())).flatten()
    };
    let is_removed = |object: &Object| objects.iter().any(|other| other.id() == object.id());
    let left = volume.objects().into_iter().filter(|object| !is_removed(object));
    let left: BTreeSet<String> = left.filter_map(|object| database(&object)).collect();
    match objects.iter().filter_map(database).find(|folder| left.contains(folder)) {
        Some(folder) => Err(Failure::failed(format!(
            "this is a part of a key-value database, which would be damaged: {folder} removes all of it"
        ))),
        None => Ok(()),
    }
}
