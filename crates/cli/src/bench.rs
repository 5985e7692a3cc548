//! `tanada bench`: starts the program that has the benchmarks.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

use clap::Args;

use crate::failure::{Failure, Outcome};

const PROGRAM: &str = "tanada-bench";

/// Arguments of `tanada bench`: those of the other program.
#[derive(Debug, Args)]
pub struct BenchArguments {
    /// The benchmark and its arguments; --help tells them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    arguments: Vec<OsString>,
}

/// Becomes `tanada-bench`, where it lies beside this program; returns only if it cannot.
pub fn run(arguments: &BenchArguments) -> Outcome {
    let own = std::env::current_exe()
        .map_err(|error| Failure::failed(format!("cannot find this program: {error}")))?;
    let program = own.with_file_name(PROGRAM);
    if !program.is_file() {
        let folder = own.parent().unwrap_or(&own).display();
        return Err(Failure::failed(format!(
            "the benchmarks are a program of their own, and {PROGRAM} is not in {folder}: \
             take it from the release, or build it with cargo build --release -p tanada"
        )));
    }
    let error = Command::new(&program).args(&arguments.arguments).exec();
    Err(Failure::failed(format!("cannot start {}: {error}", program.display())))
}
