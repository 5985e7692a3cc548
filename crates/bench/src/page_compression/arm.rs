//! The arms of the comparison, and how one runs.
//!
//! 1. The data directory is copied to the arm's place, and the tables' folder gets its compression.
//! 2. A server loads the graph and is stopped, so that all pages are written; what they take is measured.
//! 3. A server takes requests, updates every row three times and is stopped; it is measured again.
//! 4. A server whose buffer pool is empty scans the tables, and drops them.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde::Serialize;

use super::PageCompressionOptions;
use super::graph::Graph;
use super::phases::{self, Latencies};
use super::place::{Place, Usage, run as run_program};
use super::server::{DATABASE, Server, settings};
use crate::{Error, Result};

/// The data directory in its place.
const DATA: &str = "data";

/// What lies between the server and the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Storage {
    /// A plain file system.
    FileSystem,
    /// A mounted volume.
    Mount,
}

/// One side of the comparison.
#[derive(Debug, Clone)]
pub(super) struct Arm {
    pub(super) name: String,
    pub(super) storage: Storage,
    /// What is added to `CREATE TABLE`.
    pub(super) create_options: &'static str,
    /// An extended attribute of the tables' folder.
    pub(super) attribute: Option<(&'static str, &'static str)>,
    /// Threads of the volume that transform pages behind the back of who writes them.
    pub(super) cleaners: usize,
}

/// The names of all arms. `mount_pages` has the pages of a volume and no codec: what a codec costs is the difference.
/// Arms that end with `cleaners` and a number have so many.
pub const ARMS: [&str; 10] = [
    "plain",
    "row_format_compressed",
    "page_compressed",
    "mount_none",
    "mount_pages",
    "mount_lz4",
    "mount_zstd",
    "mount_lz4_cleaners_1",
    "mount_lz4_cleaners_2",
    "mount_lz4_cleaners_4",
];

/// What the names of arms with cleaners have before the number.
const CLEANERS: &str = "_cleaners_";

impl Arm {
    /// The arm of that name.
    pub(super) fn named(name: &str) -> Option<Arm> {
        let compression = |codec| Some(("user.tanada.compression", codec));
        let (kind, cleaners) = match name.split_once(CLEANERS) {
            Some((kind, count)) => (kind, count.parse().ok().filter(|count| (1..=64).contains(count))?),
            None => (name, 0),
        };
        let (storage, create_options, attribute) = match kind {
            "plain" => (Storage::FileSystem, "", None),
            "row_format_compressed" => (Storage::FileSystem, "row_format=compressed key_block_size=8", None),
            "page_compressed" => (Storage::FileSystem, "page_compressed=1", None),
            "mount_none" => (Storage::Mount, "", None),
            "mount_pages" => (Storage::Mount, "", Some(("user.tanada.page_size", "16384"))),
            "mount_lz4" => (Storage::Mount, "", compression("lz4")),
            "mount_zstd" => (Storage::Mount, "", compression("zstd")),
            _ => return None,
        };
        if cleaners > 0 && storage == Storage::FileSystem {
            return None;
        }
        Some(Arm { name: name.to_owned(), storage, create_options, attribute, cleaners })
    }

    /// Whether the volume compresses its pages.
    fn compresses(&self) -> bool {
        self.attribute.is_some_and(|(name, _)| name == "user.tanada.compression")
    }
}

/// One run of one arm.
#[derive(Debug, Clone, Serialize)]
pub struct Run {
    /// The arm.
    pub arm: String,
    /// `disk`, or the model of an emulated device.
    pub device: String,
    /// Which round.
    pub round: usize,
    /// Time to load the tables.
    pub load_seconds: f64,
    /// Requests that were answered in a second.
    pub requests_per_second: f64,
    /// Transactions that were tried again after a deadlock.
    pub retries: u64,
    /// Latencies by operation.
    pub operations: BTreeMap<&'static str, Latencies>,
    /// Time to update every row three times.
    pub rewrite_seconds: f64,
    /// Time to read the tables sequentially after that.
    pub scan_seconds: f64,
    /// Time to drop them, durably.
    pub drop_seconds: f64,
    /// Bytes of the tables' files after the load, as programs see them.
    pub logical_bytes_load: u64,
    /// Bytes that they take: blocks of a file system, chunks of a volume.
    pub allocated_bytes_load: u64,
    /// Of these, bytes of blocks that pages have.
    pub stored_bytes_load: u64,
    /// The same after the rewrite.
    pub logical_bytes_rewrite: u64,
    /// The same after the rewrite.
    pub allocated_bytes_rewrite: u64,
    /// The same after the rewrite.
    pub stored_bytes_rewrite: u64,
    /// Bytes that the load wrote to the device.
    pub written_bytes_load: u64,
    /// Bytes that requests and rewrite wrote to the device.
    pub written_bytes_requests: u64,
    /// Extents of the data directory after the rewrite; of a volume those of its class.
    pub extents: u64,
    /// Holes that a volume punched in all: issued, avoided because nothing was allocated there, refused by the device.
    pub punches: [u64; 3],
}

/// What all runs have in common.
pub(super) struct Setting<'a> {
    pub(super) options: &'a PageCompressionOptions,
    pub(super) graph: &'a Graph,
    /// An empty data directory.
    pub(super) template: &'a Path,
}

impl Setting<'_> {
    /// Runs one arm on one device.
    pub(super) async fn run(&self, arm: &Arm, device: &str, round: usize) -> Result<Run> {
        let model = (device != super::DISK).then_some(device);
        let options = self.options;
        let place = Place::new(&options.directory, arm, model, options.capacity_bytes(), options.threads)?;
        let run = self.run_in(&place, arm, device, round).await;
        match run {
            Ok(run) => place.end().map(|()| run),
            Err(error) => Err(Error::new(error.kind(), format!("{} on {device}: {error}", arm.name))),
        }
    }

    async fn run_in(&self, place: &Place, arm: &Arm, device: &str, round: usize) -> Result<Run> {
        let (options, graph) = (self.options, self.graph);
        let data = place.root().join(DATA);
        let tables = data.join(DATABASE);
        let mut copy = Command::new("cp");
        run_program(copy.arg("-R").arg(self.template).arg(&data), "cp", "coreutils")?;
        std::fs::create_dir(&tables).map_err(|error| Error::at_path("make", &tables, &error))?;
        if let Some((name, value)) = arm.attribute {
            let set = rustix::fs::setxattr(&tables, name, value.as_bytes(), rustix::fs::XattrFlags::empty());
            set.map_err(|error| Error::at_path("set an attribute of", &tables, &error.into()))?;
        }
        let below = format!("{DATA}/{DATABASE}");
        let written_before = place.written_bytes()?;
        let server = Server::start(&data, place.beside(), &settings(options)).await?;
        phases::create(&server, arm.create_options).await?;
        let load_seconds = phases::load(&server, graph).await?;
        server.stop().await?;
        let (loaded, written_by_load) = (place.usage(&below)?, place.written_bytes()?);
        check(arm, &loaded)?;

        let server = Server::start(&data, place.beside(), &settings(options)).await?;
        let seed = round as u64 + 1;
        let requested = phases::request(&server, graph, options.requesters, options.seconds, seed).await?;
        let rewrite_seconds = phases::rewrite(&server, graph).await?;
        server.stop().await?;
        let (rewritten, written_after) = (place.usage(&below)?, place.written_bytes()?);
        let extents = place.extents()?;

        let server = Server::start(&data, place.beside(), &settings(options)).await?;
        let scan_seconds = phases::scan(&server).await?;
        let drop_seconds = phases::drop_tables(&server, &tables).await?;
        server.stop().await?;
        Ok(Run {
            arm: arm.name.clone(),
            device: device.to_owned(),
            round,
            load_seconds,
            requests_per_second: requested.requests_per_second,
            retries: requested.retries,
            operations: requested.operations,
            rewrite_seconds,
            scan_seconds,
            drop_seconds,
            logical_bytes_load: loaded.logical_bytes,
            allocated_bytes_load: loaded.allocated_bytes,
            stored_bytes_load: loaded.stored_bytes,
            logical_bytes_rewrite: rewritten.logical_bytes,
            allocated_bytes_rewrite: rewritten.allocated_bytes,
            stored_bytes_rewrite: rewritten.stored_bytes,
            written_bytes_load: written_by_load.saturating_sub(written_before),
            written_bytes_requests: written_after.saturating_sub(written_by_load),
            extents,
            punches: place.punches(),
        })
    }
}

/// Fails if an arm is not what its name says.
fn check(arm: &Arm, usage: &Usage) -> Result<()> {
    if arm.compresses() != (usage.compressed_pages > 0) {
        let why = format!("the volume has {} compressed pages", usage.compressed_pages);
        return Err(Error::failed(why));
    }
    if usage.allocated_bytes == 0 {
        return Err(Error::failed("the tables take no space: they are not where they were made"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_arm_has_its_settings() {
        for name in ARMS {
            let arm = Arm::named(name).unwrap();
            assert_eq!(arm.name, name);
            assert_eq!(arm.storage == Storage::Mount, name.starts_with("mount_"));
            assert_eq!(arm.compresses(), name.starts_with("mount_lz4") || name == "mount_zstd");
            assert_eq!(arm.cleaners > 0, name.contains("cleaners"));
        }
        for unknown in ["mount_rot13", "plain_cleaners_1", "mount_lz4_cleaners_0", "mount_lz4_cleaners_x"] {
            assert!(Arm::named(unknown).is_none(), "{unknown}");
        }
    }
}
