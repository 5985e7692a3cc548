//! An embeddable key-value engine over storage of several speeds.
//!
//! Above: whoever embeds it, and native tables. Below: `tanada-volume`.
#![forbid(unsafe_code)]
// Until the engine uses all of its structures.
#![allow(dead_code)]

mod entry;
mod error;
mod keyfile;
mod objects;
mod tree;
mod wire;

pub use entry::{LONGEST_KEY, LONGEST_VALUE};
pub use error::{Error, ErrorKind, Result};
