//! An embeddable key-value engine over storage of several speeds.
//!
//! Above: whoever embeds it, and native tables. Below: `tanada-volume`.
#![forbid(unsafe_code)]

mod entry;
mod error;

pub use entry::{LONGEST_KEY, LONGEST_VALUE};
pub use error::{Error, ErrorKind, Result};
