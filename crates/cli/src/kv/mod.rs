//! `tanada kv`: the key-value engine from the command line.
//!
//! A command opens the volume and the database in it, does its work and closes both. Keys and values are text, or any
//! bytes as hexadecimal digits behind `0x` with `--hex`.

mod bytes;
mod change;
mod look;
mod settings;
mod tend;
mod whole;

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use clap::{Args, Subcommand};
use tanada_io::{ExecutorOptions, Executors, Timeline};
use tanada_kv::{
    Database, DatabaseSettings, Environment, ErrorKind, LiveEnvironment, OnProgress, OpenOptions, Store,
    StoreSettings,
};
use tanada_volume::Volume;
use tanada_volume::directory::Directory;

use crate::failure::{Failure, Outcome, one_line};
use crate::progress::Progress;

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
  tanada kv vol put session:4 open --ttl 3600
  tanada kv vol --store index create --policy staging_only
  tanada kv vol checkpoint yesterday
  tanada kv vol ls")]
pub struct KvArguments {
    /// The volume's folder
    #[arg(value_name = "DIR")]
    volume: PathBuf,
    /// The database, "default" if none is named; the first put or load makes it
    #[arg(long, value_name = "NAME", global = true)]
    database: Option<String>,
    /// The store in it, "default" if none is named; the first put or load makes it
    #[arg(long, value_name = "NAME", global = true)]
    store: Option<String>,
    /// Keys and values are hexadecimal digits
    #[arg(long, global = true)]
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
    /// Delete a key, all keys with a prefix, or a range of keys
    Delete(change::DeleteArguments),
    /// Show keys and values in their order
    Scan(look::ScanArguments),
    /// Write many keys and values from stdin or a file
    Load(change::LoadArguments),
    /// Where the bytes of a database lie, what it consists of, and what all openings that wrote have done
    Stat(tend::StatArguments),
    /// Read everything and verify it
    Check(tend::CheckArguments),
    /// Bring data to where they belong, and give back what is dead, down to the store's `space_amplification`
    Compact,
    /// Make a store with settings and a policy, and the database if there is none
    Create(whole::CreateArguments),
    /// Databases and their stores
    Ls(whole::ListArguments),
    /// Show all settings, or change those of the database or the store
    Settings(whole::SettingsArguments),
    /// Show or change which classes keys and values of the store go to
    Policy(whole::PolicyArguments),
    /// Copy the database to another name in the volume
    Checkpoint(whole::CheckpointArguments),
    /// Delete a store with all that it holds
    Drop(whole::DropArguments),
    /// Delete a database with all that it holds
    Destroy(whole::DestroyArguments),
}

impl KvCommand {
    /// Whether the volume is changed.
    fn writes(&self) -> bool {
        match self {
            KvCommand::Get(_)
            | KvCommand::Scan(_)
            | KvCommand::Stat(_)
            | KvCommand::Check(_)
            | KvCommand::Ls(_) => false,
            KvCommand::Settings(arguments) => arguments.changes(),
            KvCommand::Policy(arguments) => arguments.changes(),
            _ => true,
        }
    }
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
    let writes = command.writes();
    let is_named = database.is_some();
    let options = tanada_volume::OpenOptions { read_only: !writes, ..tanada_volume::OpenOptions::default() };
    let directory = Directory::open(&volume, &options, tanada_query::volume::settings(executors)).await?;
    let place = Place {
        environment: LiveEnvironment::new(Arc::clone(executors), Timeline::real()),
        directory,
        database: database.unwrap_or_else(|| DEFAULT.to_owned()),
        is_store_named: store.is_some(),
        store: store.unwrap_or_else(|| DEFAULT.to_owned()),
        hex,
    };
    // The database's memory is to be what it uses.
    tanada_io::give_memory_back_at_once();
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
        KvCommand::Create(arguments) => whole::create(&place, arguments).await,
        KvCommand::Ls(arguments) => whole::list(&place, is_named, arguments).await,
        KvCommand::Settings(arguments) => whole::settings(&place, arguments).await,
        KvCommand::Policy(arguments) => whole::policy(&place, arguments).await,
        KvCommand::Checkpoint(arguments) => whole::checkpoint(&place, arguments).await,
        KvCommand::Drop(arguments) => whole::drop_store(&place, arguments).await,
        KvCommand::Destroy(arguments) => whole::destroy(&place, arguments).await,
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
    is_store_named: bool,
    hex: bool,
}

impl Place {
    fn environment(&self) -> Arc<dyn Environment> {
        Arc::clone(&self.environment) as _
    }

    fn volume(&self) -> &Volume {
        self.directory.volume()
    }

    /// How databases are opened.
    fn options(&self, read_only: bool) -> OpenOptions {
        OpenOptions { read_only, progress: Some(replaying()), ..OpenOptions::default() }
    }

    /// Opens the database to look at it.
    async fn read(&self) -> Outcome<Database> {
        self.open(true).await
    }

    /// Opens the database to change it.
    async fn write(&self) -> Outcome<Database> {
        self.open(false).await
    }

    async fn open(&self, read_only: bool) -> Outcome<Database> {
        let options = self.options(read_only);
        let opened = Database::open(self.volume(), &self.database, &options, self.environment()).await;
        opened.map_err(|error| match error.kind() {
            ErrorKind::NotFound if !self.is_there() => self.no_database(),
            _ => error.into(),
        })
    }

    fn no_database(&self) -> Failure {
        let name = &self.database;
        Failure::failed(format!(
            "there is no database '{name}': tanada kv put and tanada kv load make it with the first pair"
        ))
    }

    /// The same; made first, with these settings, if there is none.
    async fn write_or_new(&self, settings: &DatabaseSettings) -> Outcome<Database> {
        let options = self.options(false);
        match Database::open(self.volume(), &self.database, &options, self.environment()).await {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Ok(Database::create(self.volume(), &self.database, settings, self.environment()).await?)
            }
            opened => Ok(opened?),
        }
    }

    /// Whether there is such a database.
    fn is_there(&self) -> bool {
        Database::names(self.volume()).contains(&self.database)
    }

    /// What was done, in a database that was there before or was made for it: one that was made for what failed goes,
    /// so that the same command can be given again.
    async fn with_all_or_nothing(&self, was_there: bool, done: Outcome) -> Outcome {
        if done.is_err() && !was_there {
            // Why it failed is what matters.
            let _ = Database::destroy(self.volume(), &self.database, self.environment()).await;
        }
        done
    }

    fn store(&self, database: &Database) -> Outcome<Store> {
        Ok(database.open_store(&self.store)?)
    }

    /// Whether the store is there, if one was named.
    fn named_store(&self, database: &Database) -> Outcome {
        if self.is_store_named {
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

/// Shows how far the replay of a log is, if that lasts.
fn replaying() -> OnProgress {
    let shown = OnceLock::new();
    Arc::new(move |now| {
        let progress = shown.get_or_init(|| Progress::new("replaying the log", now.total_bytes));
        progress.set(now.replayed_bytes);
    })
}

/// Closes the database after some work; if both failed, the work's failure is the cause.
///
/// What commands write is durable when they come here. A volume that is too full for memory tables to be written out
/// leaves it in the log, from where it is read: that is for its owner to know, and no failure of what was asked for.
async fn closing<T>(database: &Database, outcome: Outcome<T>) -> Outcome<T> {
    let closed = database.close().await;
    let done = outcome?;
    match closed {
        Err(error) if error.kind() == ErrorKind::NoSpace => {
            let message = format!(
                "database '{}' is written to its log alone, for the volume is full: enlarge a class with tanada volume class resize, or add one ({error})",
                database.name()
            );
            eprintln!("tanada: warning: {}", one_line(&message));
        }
        closed => closed?,
    }
    Ok(done)
}
