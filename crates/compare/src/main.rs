//! Runs another key-value engine through one phase of YCSB: a job as JSON on standard input, its figures as JSON on
//! standard output.
//!
//! Above: `tanada bench ycsb --against`, which starts it where it lies beside `tanada`. Below: `tanada-ycsb`, which
//! drives all engines alike.
//!
//! - `rocksdb`: RocksDB with values in its tables;
//! - `rocksdb-usual-levels`: the same with levels of the sizes that RocksDB has by default;
//! - `rocksdb-blob`: RocksDB with values in blob files;
//! - `fjall`: fjall with separated values.
#![forbid(unsafe_code)]

mod fjall_engine;
mod levels;
mod persisting;
mod rocksdb_engine;
mod striped;

use std::io::Read;
use std::process::ExitCode;
use std::sync::Arc;

use tanada_ycsb::bench::Job;
use tanada_ycsb::measure::Run;
use tanada_ycsb::{Engine, Error, FromBlocking, Result};

use fjall_engine::Fjall;
use rocksdb_engine::{Rocks, Sizes, Values};

/// Tanada's allocator, for all engines alike: mimalloc, which takes the place of malloc and operator new as well.
#[global_allocator]
static ALLOCATOR: tanada_io::Allocator = tanada_io::Allocator;

fn open(job: &Job) -> Result<Arc<dyn Engine>> {
    Ok(match job.engine.as_str() {
        "rocksdb" => Arc::new(FromBlocking(Rocks::open(job, Values::InTables, Sizes::OfPath)?)),
        "rocksdb-usual-levels" => Arc::new(FromBlocking(Rocks::open(job, Values::InTables, Sizes::Usual)?)),
        "rocksdb-blob" => Arc::new(FromBlocking(Rocks::open(job, Values::InBlobFiles, Sizes::OfPath)?)),
        "fjall" => Arc::new(FromBlocking(Fjall::open(job)?)),
        other => {
            let message = format!(
                "{other:?} is not known; there are rocksdb, rocksdb-usual-levels, rocksdb-blob, fjall"
            );
            return Err(Error::invalid(message));
        }
    })
}

fn perform() -> Result<Run> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map_err(Error::failed)?;
    let job: Job = serde_json::from_str(&text)
        .map_err(|error| Error::invalid(format!("standard input is no job: {error}")))?;
    job.perform_with(open)
}

fn main() -> ExitCode {
    tanada_io::give_memory_back_soon();
    // As Tanada's engine does: huge pages are memory that mimalloc takes and nobody uses.
    let _pages = tanada_io::SmallPages::take();
    let told = perform().and_then(|run| serde_json::to_string(&run).map_err(Error::failed));
    match told {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("tanada-compare: {error}");
            ExitCode::FAILURE
        }
    }
}
