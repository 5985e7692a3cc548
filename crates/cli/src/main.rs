//! The `tanada` command: SQL over the files of MySQL and MariaDB, tiered volumes, a demonstration, and benchmarks.
//!
//! Above: people and scripts. Below: `tanada-query`, and the other layers that it shows.
#![forbid(unsafe_code)]

mod advise;
mod bench;
mod calibrate;
mod demo;
mod format;
mod innodb;
mod kv;
mod mount;
mod options;
mod progress;
mod simulate;
mod sql;
mod volume;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tanada::failure::{self, Failure};
use tanada::{interruption, output, range, usage};

#[global_allocator]
static ALLOCATOR: tanada_io::Allocator = tanada_io::Allocator;

/// SQL on the data files of MySQL and MariaDB, with thousands of I/Os in flight per query.
#[derive(Debug, Parser)]
#[command(name = "tanada", version, propagate_version = true, subcommand_required = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run SQL over InnoDB files: a statement, a file, stdin, or an interactive shell.
    Sql(Box<sql::SqlArguments>),
    /// See what lies in InnoDB files: tables, indexes, pages.
    Innodb(innodb::InnodbArguments),
    /// Make and look after tiered volumes: classes of devices, objects, and what lies where.
    Volume(volume::VolumeArguments),
    /// Mount a volume as a file system
    Mount(mount::MountArguments),
    /// Unmount a volume, and wait until it is closed
    Umount(mount::UmountArguments),
    /// Place what a statement of another database system reads in a mounted volume, by its plan
    Advise(Box<advise::AdviseArguments>),
    /// Measure what disks and the processor can do, for the choice of plans
    Calibrate(calibrate::CalibrateArguments),
    /// Keys and values: put, get, scan, load, check.
    Kv(kv::KvArguments),
    /// Replay a recorded trace under placement policies, on emulated devices.
    Simulate(Box<simulate::SimulateArguments>),
    /// Show out-of-order execution on the bundled sample; needs nothing but this program.
    Demo(demo::DemoArguments),
    /// Measure against fio and against other servers; by the program tanada-bench, beside this one
    #[command(disable_help_flag = true)]
    Bench(bench::BenchArguments),
}

fn main() -> ExitCode {
    tanada_io::give_memory_back_soon();
    tanada_io::set_warning_sink(|warning| eprintln!("tanada: warning: {}", failure::one_line(warning)));
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return usage(&error),
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return Failure::failed(format!("cannot start the runtime: {error}")).report(),
    };
    if matches!(arguments.command, Command::Sql(_)) {
        calibrate::use_what_was_measured();
    }
    let outcome = match arguments.command {
        Command::Sql(arguments) => sql::run(&runtime, *arguments),
        Command::Innodb(arguments) => innodb::run(arguments),
        Command::Volume(arguments) => volume::run(arguments),
        Command::Mount(arguments) => mount::run(&runtime, &arguments),
        Command::Umount(arguments) => mount::unmount(&arguments),
        Command::Advise(arguments) => advise::run(&runtime, &arguments),
        Command::Calibrate(arguments) => calibrate::run(&runtime, &arguments),
        Command::Kv(arguments) => kv::run(arguments),
        Command::Simulate(arguments) => simulate::run(&arguments),
        Command::Demo(arguments) => runtime.block_on(demo::run(arguments)),
        Command::Bench(arguments) => bench::run(&arguments),
    };
    // A cancelled query may still be computing; nobody waits for it.
    runtime.shutdown_background();
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    #[test]
    fn a_mistake_is_said_without_the_usage() {
        let error = super::Arguments::try_parse_from(["tanada", "sql", "--inodb", "x"]).unwrap_err();
        let said = crate::failure::one_line(&tanada::mistake(&error.to_string()));
        assert_eq!(
            said,
            "unexpected argument '--inodb' found; tip: a similar argument exists: '--innodb'; see --help"
        );
        let error = super::Arguments::try_parse_from(["tanada", "sql", "--format", "x"]).unwrap_err();
        let said = crate::failure::one_line(&tanada::mistake(&error.to_string()));
        assert!(said.starts_with("invalid value 'x' for '--format <FORMAT>' [possible values:"), "{said}");
    }

    #[test]
    fn the_arguments_are_consistent() {
        super::Arguments::command().debug_assert();
    }
}
