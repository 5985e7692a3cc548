//! An embeddable key-value engine over storage of several speeds.
//!
//! Above: whoever embeds it, and native tables. Below: `tanada-volume`.
#![forbid(unsafe_code)]
// Until the engine uses all of its structures.
#![allow(dead_code)]

mod cache;
mod entry;
mod error;
mod keyfile;
mod merge;
mod objects;
mod stream;
#[cfg(test)]
mod testing;
mod tombstone;
mod tree;
mod value;
mod wire;

pub use entry::{LONGEST_KEY, LONGEST_VALUE};
pub use error::{Error, ErrorKind, Result};
