//! `tanada volume`: making tiered volumes, looking into them, moving data between their classes.
//!
//! A command opens the volume's folder (for writing only if it changes something), works on one executor thread, and
//! closes it. Ctrl-C ends the process: what was moved or synced until then stays, as after a power cut.

mod adopt;
mod check;
mod class;
mod create;
pub(crate) mod decisions;
mod explanation;
mod export;
mod folder;
mod heat;
mod import;
mod info;
mod list;
mod quota;
mod relocate;
mod remove;
mod selection;
mod spec;
mod stat;
mod transform;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, Subcommand};
use tanada_io::{BufferPool, ExecutorOptions, Executors};
use tanada_volume::OpenOptions;
use tanada_volume::directory::{Directory, Settings};

use crate::failure::{Failure, Outcome};

/// Arguments of `tanada volume`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tanada volume create vol --class staging=/mnt/nvme,size=100GiB --class capacity=/mnt/hdd,size=4TiB
  tanada volume adopt vol /var/lib/mysql --name shop
  tanada sql --volume vol -c 'select count(*) from orders'
  tanada volume heat vol

An object's name may have folders: shop/orders.ibd; shop then means all objects below it.

Keys of encrypted objects are lines IDENTIFIER;HEX (128 digits), in the file that TANADA_KEY_FILE names or in
TANADA_KEYS itself.")]
pub struct VolumeArguments {
    #[command(subcommand)]
    command: VolumeCommand,
}

#[derive(Debug, Subcommand)]
enum VolumeCommand {
    /// Make a volume of classes of devices, fastest first
    Create(create::CreateArguments),
    /// Classes, sizes and state of a volume
    Info(info::InfoArguments),
    /// Objects of a volume
    Ls(list::ListArguments),
    /// Where an object's chunks lie and what was done to them
    Stat(stat::StatArguments),
    /// The chunks that are used most, or why one is where it is
    Heat(heat::HeatArguments),
    /// Keep objects in a class
    Pin(relocate::PinArguments),
    /// Bound what objects take up, in the volume and of its fast class
    Quota(quota::QuotaArguments),
    /// Change how new pages of objects are compressed and encrypted; pages that are there stay as they are
    Alter(transform::AlterArguments),
    /// Write all pages of objects anew, as their compression and encryption say now
    Optimize(transform::OptimizeArguments),
    /// Move chunks of objects to a class
    Move(relocate::MoveArguments),
    /// Copy chunks of objects to a faster class; their home stays where it is
    Mirror(relocate::MoveArguments),
    /// Drop mirrors of objects
    Drop(relocate::DropArguments),
    /// Copy a file, or a folder of InnoDB files, into a volume
    Import(import::ImportArguments),
    /// Copy an object, or a folder of objects, out of a volume
    Export(export::ExportArguments),
    /// Delete objects
    Rm(remove::RemoveArguments),
    /// Take a file, or a folder of InnoDB files, as it lies: read only, hot chunks can be mirrored
    Adopt(adopt::AdoptArguments),
    /// Check a volume that is not in use
    Check(check::CheckArguments),
    /// Add, drain, remove or resize classes
    Class(class::ClassArguments),
}

/// Runs the subcommand.
pub fn run(arguments: VolumeArguments) -> Outcome {
    let options = ExecutorOptions { threads: 1, ..ExecutorOptions::default() };
    let executors = Executors::start(options).map_err(Failure::failed)?;
    let machine = Machine {
        settings: tanada_query::volume::settings(&executors),
        buffers: Arc::clone(executors.buffers()),
    };
    let work = move || async move { dispatch(machine, arguments.command).await };
    executors.block_on(work).map_err(Failure::failed)?
}

async fn dispatch(machine: Machine, command: VolumeCommand) -> Outcome {
    match command {
        VolumeCommand::Create(arguments) => create::run(&machine, arguments).await,
        VolumeCommand::Info(arguments) => info::run(&machine, arguments).await,
        VolumeCommand::Ls(arguments) => list::run(&machine, arguments).await,
        VolumeCommand::Stat(arguments) => stat::run(&machine, arguments).await,
        VolumeCommand::Heat(arguments) => heat::run(&machine, arguments).await,
        VolumeCommand::Pin(arguments) => relocate::pin(&machine, arguments).await,
        VolumeCommand::Quota(arguments) => quota::run(&machine, arguments).await,
        VolumeCommand::Alter(arguments) => transform::alter(&machine, arguments).await,
        VolumeCommand::Optimize(arguments) => transform::optimize(&machine, arguments).await,
        VolumeCommand::Move(arguments) => relocate::move_chunks(&machine, arguments).await,
        VolumeCommand::Mirror(arguments) => relocate::mirror(&machine, arguments).await,
        VolumeCommand::Drop(arguments) => relocate::drop_mirrors(&machine, arguments).await,
        VolumeCommand::Import(arguments) => import::run(&machine, arguments).await,
        VolumeCommand::Export(arguments) => export::run(&machine, arguments).await,
        VolumeCommand::Rm(arguments) => remove::run(&machine, arguments).await,
        VolumeCommand::Adopt(arguments) => adopt::run(&machine, arguments).await,
        VolumeCommand::Check(arguments) => check::run(&machine, arguments).await,
        VolumeCommand::Class(arguments) => class::run(&machine, arguments).await,
    }
}

/// What is always named.
#[derive(Debug, Args)]
struct VolumeFolder {
    /// The volume's folder
    #[arg(value_name = "DIR")]
    volume: PathBuf,
}

/// How this machine opens volumes.
#[derive(Debug)]
struct Machine {
    settings: Settings,
    buffers: Arc<BufferPool>,
}

impl Machine {
    fn settings(&self) -> Settings {
        self.settings.clone()
    }

    /// Opens a volume to look at it.
    async fn read(&self, folder: &Path) -> Outcome<Directory> {
        let options = OpenOptions { read_only: true, ..OpenOptions::default() };
        Ok(Directory::open(folder, &options, self.settings()).await?)
    }

    /// Opens a volume, has `work` done on it, and closes it, also when the work failed.
    async fn write<T>(
        &self,
        folder: &Path,
        work: impl AsyncFnOnce(&Arc<Directory>) -> Outcome<T>,
    ) -> Outcome<T> {
        let directory = Arc::new(Directory::open(folder, &OpenOptions::default(), self.settings()).await?);
        let outcome = work(&directory).await;
        let closed = directory.volume().close().await;
        // If both failed, the first failure is the cause.
        let done = outcome?;
        closed?;
        Ok(done)
    }
}
