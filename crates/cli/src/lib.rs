//! What the programs of this package share: how they fail, what they print, how Ctrl-C ends their work.
//!
//! Above: the programs `tanada` and `tanada-bench`. Exit codes: 0 done, 1 failed, 2 bad usage, 3 rows are missing.
//! Errors go to stderr in one line that says what to do.
#![forbid(unsafe_code)]

pub mod failure;
pub mod interruption;
pub mod output;
pub mod range;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::ErrorKind;

use failure::Failure;

/// `$XDG_CACHE_HOME/tanada`, or in the user's home, or else in the folder for temporary files.
pub fn default_folder() -> PathBuf {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
    cache.unwrap_or_else(std::env::temp_dir).join("tanada")
}

/// Help and version go to stdout with 0, mistakes to stderr in one line with 2.
pub fn usage(error: &clap::Error) -> ExitCode {
    let is_help = matches!(error.kind(), ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand);
    if !error.use_stderr() || is_help {
        // Nobody is left to tell when the terminal itself is gone.
        let _ = error.print();
        return ExitCode::from(if is_help { 2 } else { 0 });
    }
    let mut said = mistake(&error.to_string());
    let is_kv = std::env::args_os().nth(1).is_some_and(|command| command == "kv");
    if is_kv && error.kind() == ErrorKind::InvalidUtf8 {
        said += "; tanada kv DIR --hex takes keys and values of any bytes as hexadecimal digits";
    }
    Failure::usage(said).report()
}

/// What is wrong, of a text that goes on with usage and where to find help.
pub fn mistake(text: &str) -> String {
    let said = text.split("\n\nUsage:").next().unwrap_or(text);
    let said = said.split("\n\nFor more information").next().unwrap_or(said);
    let said = said.trim().trim_start_matches("error: ").replace("\n\n", "; ");
    format!("{said}; see --help")
}
