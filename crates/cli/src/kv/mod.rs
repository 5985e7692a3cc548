//! `tanada kv`: the key-value engine from the command line.
//!
//! A command opens the volume and the database in it, does its work and closes both. Keys and values are text, or any bytes as hexadecimal digits
//! behind `0x` with `--hex`.

mod bytes;
mod change;
mod look;
mod tend;

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, Subcommand};
use tanada_io::{ExecutorOptions, Executors, Timeline};
use tanada_kv::{
    Database, DatabaseSettings, Environment, ErrorKind, LiveEnvironment, OpenOptions, Store, StoreSettings,
};
use tanada_volume::directory::Directory;

use crate::failure::{Failure, Outcome};

/// Memory for buffers that rings register.
const REGISTERED_BYTES: usize = 4 << 20;

/// The name of a database and a store that nobody names.
const DEFAULT: &str = "default";

/// Arguments of `tanada kv`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tanada volume create vol --class staging=/mnt/nvme,size=20GiB --class capacity=/mnt/qlc,size=1TiB
  tanada kv vol put user:17 '{\"name\": \"Aiko\"}'
  tanada kv vol get user:17
  tanada kv vol load < pairs.tsv                # a key, a tab and a value on each line
  tanada kv vol scan --prefix user: --limit 10
  tanada kv vol --store sessions stat")]
pub struct KvArguments {
    /// The volume's folder
    #[arg(value_name = "DIR")]
    volume: PathBuf,
    /// The database; the first put or load makes it
    #[arg(long, value_name = "NAME", default_value = DEFAULT)]
    database: String,
    /// The store in it; the first put or load makes it
    #[arg(long, value_name = "NAME", default_value = DEFAULT)]
    store: String,
    /// Keys and values are hexadecimal digits
    #[arg(long)]
    hex: bool,
    #[command(subcommand)]
    command: KvCommand,
}

#[derive(Debug, Subcommand)]
enum KvCommand {
    /// Write the value of a key
    Put(change::PutArguments),
    /// Show the value of a key
    Get(look::GetArguments),
    /// Delete a key, or all keys with a prefix
    Delete(change::DeleteArguments),
    /// Show keys and values in their order
    Scan(look::ScanArguments),
    /// Write many keys and values from stdin or a file
    Load(change::LoadArguments),
    /// Where the bytes of a database lie, and what it consists of
    Stat(tend::StatArguments),
    /// Read everything and verify it
    Check(tend::CheckArguments),
    /// Bring data to where they belong, and give back what is dead
    Compact,
}

/// Runs the subcommand.
pub fn run(arguments: KvArguments) -> Outcome {
    let options =
        ExecutorOptions { threads: 1, registered_bytes: REGISTERED_BYTES, ..ExecutorOptions::default() };
    let executors = Executors::start(options).map_err(Failure::failed)?;
    let inner = Arc::clone(&executors);
    executors.block_on(move || async move { dispatch(&inner, arguments).await }).map_err(Failure::failed)?
}

async fn dispatch(executors: &Arc<Executors>, arguments: KvArguments) -> Outcome {
    let KvArguments { volume, database, store, hex, command } = arguments;
    let writes =
        matches!(command, KvCommand::Put(_) | KvCommand::Delete(_) | KvCommand::Load(_) | KvCommand::Compact);
    let options = tanada_volume::OpenOptions { read_only: !writes, ..tanada_volume::OpenOptions::default() };
    let directory = Directory::open(&volume, &options, tanada_query::volume::settings(executors)).await?;
    let place = Place {
        environment: LiveEnvironment::new(Arc::clone(executors), Timeline::real()),
        directory,
        database,
        store,
        hex,
    };
    // The database's memory is to be what it uses.
    let _pages = tanada_io::SmallPages::take();
    let outcome = match command {
        KvCommand::Put(arguments) => change::put(&place, arguments).await,
        KvCommand::Get(arguments) => look::get(&place, arguments).await,
        KvCommand::Delete(arguments) => change::delete(&place, arguments).await,
        KvCommand::Scan(arguments) => look::scan(&place, arguments).await,
        KvCommand::Load(arguments) => change::load(&place, arguments).await,
        KvCommand::Stat(arguments) => tend::stat(&place, arguments).await,
        KvCommand::Check(arguments) => tend::check(&place, arguments).await,
        KvCommand::Compact => tend::compact(&place).await,
    };
    if !writes {
        return outcome;
    }
    let closed = place.directory.close().await;
    // If both failed, the first failure is the cause.
    outcome?;
    Ok(closed?)
}

/// What a command works on.
struct Place {
    environment: Arc<LiveEnvironment>,
    directory: Directory,
    database: String,
    store: String,
    hex: bool,
}

impl Place {
    fn environment(&self) -> Arc<dyn Environment> {
        Arc::clone(&self.environment) as _
    }

    /// Opens the database to look at it.
    async fn read(&self) -> Outcome<Database> {
        let options = OpenOptions { read_only: true, ..OpenOptions::default() };
        Ok(Database::open(self.directory.volume(), &self.database, &options, self.environment()).await?)
    }

    /// Opens the database to change it; makes it first if there is none and `makes` says so.
    async fn write(&self, makes: bool) -> Outcome<Database> {
        let volume = self.directory.volume();
        let opened =
            Database::open(volume, &self.database, &OpenOptions::default(), self.environment()).await;
        match opened {
            Err(error) if makes && error.kind() == ErrorKind::NotFound => {
                let settings = DatabaseSettings::default();
                Ok(Database::create(volume, &self.database, &settings, self.environment()).await?)
            }
            opened => Ok(opened?),
        }
    }

    fn store(&self, database: &Database) -> Outcome<Store> {
        Ok(database.open_store(&self.store)?)
    }

    /// Whether the store is there, if one was named.
    fn named_store(&self, database: &Database) -> Outcome {
        if self.store != DEFAULT {
            self.store(database)?;
        }
        Ok(())
    }

    /// The store; made first if there is none.
    async fn store_or_new(&self, database: &Database) -> Outcome<Store> {
        match database.open_store(&self.store) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Ok(database.create_store(&self.store, &StoreSettings::default()).await?)
            }
            opened => Ok(opened?),
        }
    }
}

/// Closes the database after some work; if both failed, the work's failure is the cause.
async fn closing<T>(database: &Database, outcome: Outcome<T>) -> Outcome<T> {
    let closed = database.close().await;
    let done = outcome?;
    closed?;
    Ok(done)
}

impl From<tanada_kv::Error> for Failure {
    fn from(error: tanada_kv::Error) -> Failure {
        Failure::failed(error)
    }
}
