//! `tanada volume heat`: the chunks that are used most, or why one is where it is.

use std::collections::BTreeMap;

use clap::Args;
use serde::Serialize;
use tanada_report::Table;
use tanada_volume::{ChunkInfo, Object, Place, Volume};

use super::explanation::{Explanation, explained};
use super::{Machine, VolumeFolder, selection};
use crate::failure::{Failure, Outcome};
use crate::output::{OutputArguments, count, size};

/// Arguments of `tanada volume heat`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tanada volume heat vol                                     # the hottest chunks of all
  tanada volume heat vol backup/shop/orders.ibd --top 5
  tanada volume heat vol backup/shop/orders.ibd --explain 17 # why chunk 17 lies where it lies

Heat is the number of I/Os, each halved with every half-life that has passed while the volume was open.")]
pub struct HeatArguments {
    #[command(flatten)]
    folder: VolumeFolder,
    /// Objects or folders of objects; without them all
    #[arg(value_name = "OBJECT")]
    names: Vec<String>,
    /// How many chunks
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    top: u32,
    /// Explain where this chunk of the one object lies
    #[arg(long, value_name = "CHUNK", requires = "names")]
    explain: Option<u64>,
    #[command(flatten)]
    output: OutputArguments,
}

/// A chunk as it is.
#[derive(Debug, Serialize)]
pub(super) struct Heat {
    pub(super) object: String,
    pub(super) chunk: u64,
    /// `null` for the adopted file itself.
    pub(super) class: Option<String>,
    pub(super) mirror: Option<String>,
    pub(super) reads: u32,
    pub(super) writes: u32,
    bytes_read: u64,
    bytes_written: u64,
    pub(super) sequential_share: f32,
    pub(super) heat: f32,
}

pub(super) async fn run(machine: &Machine, arguments: HeatArguments) -> Outcome {
    let directory = machine.read(&arguments.folder.volume).await?;
    let volume = directory.volume();
    let objects = selection::all_or(volume, &arguments.names)?;
    if let Some(no) = arguments.explain {
        let [object] = objects.as_slice() else {
            return Err(Failure::usage("--explain needs one object, not a folder of them"));
        };
        if no >= object.stored_space_bytes().div_ceil(volume.chunk_bytes()) {
            let chunks = count(object.stored_space_bytes().div_ceil(volume.chunk_bytes()), "chunk");
            return Err(Failure::failed(format!("object {:?} has {chunks}, counted from 0", object.name())));
        }
        let nothing = ChunkInfo { no, home: None, mirror: None, statistics: Default::default() };
        let chunk = object.chunks(no..no + 1).into_iter().next().unwrap_or(nothing);
        let explanation = Explanation::new(&directory, object, heat(volume, object, &chunk));
        return arguments.output.print(&explanation, explained);
    }
    let mut hottest: Vec<(&Object, ChunkInfo)> = objects
        .iter()
        .flat_map(|object| object.chunks(0..u64::MAX).into_iter().map(move |chunk| (object, chunk)))
        .collect();
    hottest.sort_by(|(_, a), (_, b)| b.statistics.heat.total_cmp(&a.statistics.heat));
    let hottest: Vec<Heat> = hottest
        .iter()
        .filter(|(_, chunk)| chunk.statistics.reads > 0 || chunk.statistics.writes > 0)
        .take(arguments.top as usize)
        .map(|(object, chunk)| heat(volume, object, chunk))
        .collect();
    arguments.output.print(&hottest, |hottest| text(hottest))
}

fn heat(volume: &Volume, object: &Object, chunk: &ChunkInfo) -> Heat {
    let names: BTreeMap<u8, String> =
        volume.classes().into_iter().map(|class| (class.number, class.name)).collect();
    let name = |place: Option<Place>| place.and_then(|place| names.get(&place.class).cloned());
    let statistics = &chunk.statistics;
    Heat {
        object: object.name(),
        chunk: chunk.no,
        class: name(chunk.home),
        mirror: name(chunk.mirror),
        reads: statistics.reads,
        writes: statistics.writes,
        bytes_read: statistics.bytes_read,
        bytes_written: statistics.bytes_written,
        sequential_share: statistics.sequential_share(),
        heat: statistics.heat,
    }
}

fn lies(chunk: &Heat) -> String {
    let home = chunk.class.as_deref().unwrap_or("in place");
    match &chunk.mirror {
        Some(mirror) => format!("{home}, {mirror}"),
        None => home.to_owned(),
    }
}

fn text(hottest: &[Heat]) -> String {
    if hottest.is_empty() {
        return "nothing was read or written yet\n".to_owned();
    }
    let mut table = Table::new(&["object", "chunk", "lies", "heat", "reads", "read", "writes", "sequential"]);
    for chunk in hottest {
        table.add(vec![
            chunk.object.clone(),
            chunk.chunk.to_string(),
            lies(chunk),
            format!("{:.1}", chunk.heat),
            chunk.reads.to_string(),
            size(chunk.bytes_read),
            chunk.writes.to_string(),
            format!("{:.0} %", chunk.sequential_share * 100.0),
        ]);
    }
    table.to_string()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Alone {
        #[command(flatten)]
        _heat: super::HeatArguments,
    }

    #[test]
    fn no_chunks_are_nothing_to_ask_for() {
        assert!(Alone::try_parse_from(["heat", "vol", "--top", "1"]).is_ok());
        let error = Alone::try_parse_from(["heat", "vol", "--top", "0"]).unwrap_err().to_string();
        assert!(error.contains("0 is not in 1.."), "{error}");
    }
}
