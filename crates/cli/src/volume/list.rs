//! `tanada volume ls`.

use clap::Args;
use serde::Serialize;
use tanada_report::Table;

use super::{Machine, VolumeFolder, selection};
use crate::failure::Outcome;
use crate::output::{OutputArguments, size};

/// Arguments of `tanada volume ls`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tanada volume ls vol
  tanada volume ls vol backup/shop
  tanada volume ls vol --json")]
pub struct ListArguments {
    #[command(flatten)]
    folder: VolumeFolder,
    /// An object or a folder of objects; without it all
    #[arg(value_name = "OBJECT")]
    names: Vec<String>,
    #[command(flatten)]
    output: OutputArguments,
}

#[derive(Debug, Serialize)]
struct Entry {
    name: String,
    size_bytes: u64,
    allocated_bytes: u64,
    mirrored_bytes: u64,
    pin: Option<String>,
    adopted: Option<String>,
}

pub(super) async fn run(machine: &Machine, arguments: ListArguments) -> Outcome {
    let directory = machine.read(&arguments.folder.volume).await?;
    let volume = directory.volume();
    let mut entries: Vec<Entry> = selection::all_or(volume, &arguments.names)?
        .iter()
        .map(|object| Entry {
            name: object.name(),
            size_bytes: object.size_bytes(),
            allocated_bytes: object.allocated_bytes(),
            mirrored_bytes: object.chunks(0..u64::MAX).iter().filter(|chunk| chunk.mirror.is_some()).count()
                as u64
                * volume.chunk_bytes(),
            pin: object.attributes().pin,
            adopted: object.adopted_path().map(str::to_owned),
        })
        .collect();
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    arguments.output.print(&entries, |entries| text(entries))
}

fn text(entries: &[Entry]) -> String {
    if entries.is_empty() {
        return "no objects; tanada volume import or adopt brings some\n".to_owned();
    }
    let mut table = Table::new(&["object", "size", "allocated", "mirrored", "pinned to", "is"]);
    for entry in entries {
        table.add(vec![
            entry.name.clone(),
            size(entry.size_bytes),
            size(entry.allocated_bytes),
            size(entry.mirrored_bytes),
            entry.pin.clone().unwrap_or_default(),
            if entry.adopted.is_some() { "adopted" } else { "own" }.to_owned(),
        ]);
    }
    table.to_string()
}
