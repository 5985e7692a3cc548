//! `tanada volume stat`: where an object lies, and what was done to it.

use std::collections::BTreeMap;

use clap::Args;
use serde::Serialize;
use tanada_volume::{BLOCK_BYTES, Object, Volume};

use super::{Machine, VolumeFolder, selection};
use crate::failure::Outcome;
use crate::output::{OutputArguments, count, size};

/// Arguments of `tanada volume stat`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tanada volume stat vol backup/shop/orders.ibd
  tanada volume stat vol backup --json")]
pub struct StatArguments {
    #[command(flatten)]
    folder: VolumeFolder,
    /// An object, or a folder of objects
    #[arg(value_name = "OBJECT", required = true)]
    names: Vec<String>,
    #[command(flatten)]
    output: OutputArguments,
}

/// An object, summed up over its chunks.
#[derive(Debug, Serialize)]
struct Statistics {
    name: String,
    size_bytes: u64,
    allocated_bytes: u64,
    adopted: Option<String>,
    class: Option<String>,
    pin: Option<String>,
    quota_bytes: Option<u64>,
    /// Bytes of a block: an image of a page takes whole ones.
    fs_block_size: u64,
    /// As it is for new pages.
    compression: String,
    /// The identifier of the key of new pages.
    encryption: Option<u16>,
    page_bytes: Option<u64>,
    /// Bytes of the blocks that pages take, in the chunks that are allocated.
    stored_bytes: Option<u64>,
    /// Pages by the algorithm by which each is compressed; `hole` for those that take nothing.
    pages: BTreeMap<String, u64>,
    /// Encrypted pages by key.
    pages_by_key: BTreeMap<u16, u64>,
    /// Chunks whose home is in a class.
    chunks: BTreeMap<String, u64>,
    /// Chunks that have a mirror in a class.
    mirrors: BTreeMap<String, u64>,
    reads: u64,
    writes: u64,
    bytes_read: u64,
    bytes_written: u64,
    sequential_share: f64,
    heat: f64,
}

pub(super) async fn run(machine: &Machine, arguments: StatArguments) -> Outcome {
    let directory = machine.read(&arguments.folder.volume).await?;
    let volume = directory.volume();
    let all: Vec<Statistics> = selection::all_or(volume, &arguments.names)?
        .iter()
        .map(|object| statistics(volume, object))
        .collect();
    arguments.output.print(&all, |all| all.iter().map(text).collect::<Vec<_>>().join("\n"))
}

fn statistics(volume: &Volume, object: &Object) -> Statistics {
    let names: BTreeMap<u8, String> =
        volume.classes().into_iter().map(|class| (class.number, class.name)).collect();
    let attributes = object.attributes();
    let mut all = Statistics {
        name: object.name(),
        size_bytes: object.size_bytes(),
        allocated_bytes: object.allocated_bytes(),
        adopted: object.adopted_path().map(str::to_owned),
        class: attributes.class,
        pin: attributes.pin,
        quota_bytes: attributes.quota_bytes,
        fs_block_size: BLOCK_BYTES,
        compression: attributes.compression.to_string(),
        encryption: attributes.encryption,
        page_bytes: None,
        stored_bytes: None,
        pages: BTreeMap::new(),
        pages_by_key: BTreeMap::new(),
        chunks: BTreeMap::new(),
        mirrors: BTreeMap::new(),
        reads: 0,
        writes: 0,
        bytes_read: 0,
        bytes_written: 0,
        sequential_share: 0.0,
        heat: 0.0,
    };
    if let Some(pages) = object.page_statistics() {
        all.page_bytes = Some(pages.page_bytes);
        all.stored_bytes = Some(pages.stored_bytes);
        all.pages = pages.by_algorithm;
        all.pages.insert("hole".to_owned(), pages.holes);
        all.pages_by_key = pages.by_key;
    }
    let mut sequential = 0;
    for chunk in object.chunks(0..u64::MAX) {
        for (place, counts) in [(chunk.home, &mut all.chunks), (chunk.mirror, &mut all.mirrors)] {
            if let Some(name) = place.and_then(|place| names.get(&place.class)) {
                *counts.entry(name.clone()).or_default() += 1;
            }
        }
        all.reads += u64::from(chunk.statistics.reads);
        all.writes += u64::from(chunk.statistics.writes);
        all.bytes_read += chunk.statistics.bytes_read;
        all.bytes_written += chunk.statistics.bytes_written;
        all.heat += f64::from(chunk.statistics.heat);
        sequential += u64::from(chunk.statistics.sequential);
    }
    all.sequential_share = sequential as f64 / (all.reads + all.writes).max(1) as f64;
    all
}

fn text(all: &Statistics) -> String {
    let by_class = |counts: &BTreeMap<String, u64>| {
        let parts: Vec<String> =
            counts.iter().map(|(name, chunks)| format!("{} in {name}", count(*chunks, "chunk"))).collect();
        if parts.is_empty() { "none".to_owned() } else { parts.join(", ") }
    };
    let lies = match &all.adopted {
        Some(path) => format!("in place, {path}"),
        None => by_class(&all.chunks),
    };
    let mut lines = vec![
        all.name.clone(),
        format!("  size       {}, {} allocated", size(all.size_bytes), size(all.allocated_bytes)),
        format!("  lies       {lies}"),
        format!("  mirrors    {}", by_class(&all.mirrors)),
        format!("  reads      {}, {}", all.reads, size(all.bytes_read)),
        format!("  writes     {}, {}", all.writes, size(all.bytes_written)),
        format!("  sequential {:.0} %", all.sequential_share * 100.0),
        format!("  heat       {:.1}", all.heat),
    ];
    let attributes = [
        all.class.as_ref().map(|class| format!("  class      {class}")),
        all.pin.as_ref().map(|pin| format!("  pinned to  {pin}")),
        all.quota_bytes.map(|quota| format!("  quota      {}", size(quota))),
    ];
    lines.extend(attributes.into_iter().flatten());
    if let (Some(page_bytes), Some(stored_bytes)) = (all.page_bytes, all.stored_bytes) {
        let mix: Vec<String> = all.pages.iter().map(|(form, pages)| format!("{form} {pages}")).collect();
        let key = all.encryption.map_or_else(String::new, |key| format!(", encrypted with key {key}"));
        lines.push(format!("  compression {} in pages of {}{key}", all.compression, size(page_bytes)));
        lines.push(format!("  stored     {} in blocks of {}", size(stored_bytes), size(all.fs_block_size)));
        lines.push(format!("  pages      {}", mix.join(", ")));
    }
    lines.join("\n") + "\n"
}
