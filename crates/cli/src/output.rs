//! What commands print: text for people, or JSON.

use std::io::Write;
use std::path::Path;

use clap::Args;
use serde::Serialize;
use tanada_base::ByteSize;

use crate::failure::{Failure, Outcome};

/// For what a program may read.
#[derive(Debug, Clone, Copy, Args)]
pub struct OutputArguments {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl OutputArguments {
    /// Prints `value` as JSON if that was asked for, else what `text` makes of it.
    pub fn print<T: Serialize>(self, value: &T, text: impl FnOnce(&T) -> String) -> Outcome {
        if self.json {
            let json = serde_json::to_string_pretty(value).map_err(Failure::failed)?;
            say(&format!("{json}\n"))
        } else {
            say(&text(value))
        }
    }
}

/// Writes `text` to stdout.
pub fn say(text: &str) -> Outcome {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// A number of bytes for people.
pub fn size(bytes: u64) -> String {
    ByteSize::new(bytes).to_string()
}

/// `1 chunk`, `2 chunks`, `3 classes`.
pub fn count(number: u64, noun: &str) -> String {
    let ending = match (number, noun.ends_with('s')) {
        (1, _) => "",
        (_, true) => "es",
        (_, false) => "s",
    };
    format!("{number} {noun}{ending}")
}

/// Whether a file can be written there; what it holds stays, and one that is not there yet is not left behind.
///
/// # Errors
/// If it cannot be.
pub fn writable(path: &Path) -> Outcome {
    let is_new = !path.exists();
    let opened = std::fs::OpenOptions::new().append(true).create(true).open(path);
    opened.map_err(|error| Failure::failed(format!("cannot write {}: {error}", path.display())))?;
    if is_new {
        // If that fails it is empty and soon replaced.
        let _ = std::fs::remove_file(path);
    }
    Ok(())
}
