//! The `tanada` command: SQL over the files of MySQL and MariaDB, tiered volumes, a demonstration, and benchmarks.
//!
//! Above: people and scripts. Below: `tanada-query`, and `tanada-bench` for `demo` and `bench`.
//! Exit codes: 0 done, 1 failed, 2 bad usage. Errors go to stderr in one line that says what to do.
#![forbid(unsafe_code)]

mod bench;
mod demo;
mod failure;
mod format;
mod options;
mod sql;
mod volume;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use failure::Failure;

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
    /// Make and look after tiered volumes: classes of devices, objects, and what lies where.
    Volume(volume::VolumeArguments),
    /// Show out-of-order execution on the bundled sample; needs nothing but this program.
    Demo(demo::DemoArguments),
    /// Measure against fio and against other servers.
    Bench(bench::BenchArguments),
}

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return usage(&error),
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return Failure::failed(format!("cannot start the runtime: {error}")).report(),
    };
    let outcome = match arguments.command {
        Command::Sql(arguments) => sql::run(&runtime, *arguments),
        Command::Volume(arguments) => volume::run(arguments),
        Command::Demo(arguments) => runtime.block_on(demo::run(arguments)),
        Command::Bench(arguments) => runtime.block_on(bench::run(arguments)),
    };
    // A cancelled query may still be computing; nobody waits for it.
    runtime.shutdown_background();
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// Help and version go to stdout with 0, mistakes to stderr with 2.
fn usage(error: &clap::Error) -> ExitCode {
    let code = if error.use_stderr() { 2 } else { 0 };
    // Nobody is left to tell when the terminal itself is gone.
    let _ = error.print();
    ExitCode::from(code)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_arguments_are_consistent() {
        super::Arguments::command().debug_assert();
    }
}
