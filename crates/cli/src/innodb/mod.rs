//! `tanada innodb`: what lies in InnoDB files, without SQL.

mod info;

use clap::{Args, Subcommand};

use crate::failure::{Failure, Outcome};

/// Arguments of `tanada innodb`.
#[derive(Debug, Args)]
pub struct InnodbArguments {
    #[command(subcommand)]
    command: InnodbCommand,
}

#[derive(Debug, Subcommand)]
enum InnodbCommand {
    /// Tables and their indexes: row format, pages and bytes, compression, fragmentation
    Info(info::InfoArguments),
}

/// Runs the subcommand.
pub fn run(arguments: InnodbArguments) -> Outcome {
    let executors =
        tanada_io::Executors::start(tanada_io::ExecutorOptions::default()).map_err(Failure::failed)?;
    let InnodbCommand::Info(arguments) = arguments.command;
    let environment = info::environment(executors.clone());
    executors.block_on(move || info::run(environment, arguments)).map_err(Failure::failed)?
}
