//! The ground floor: what every layer of Tanada needs and none should write twice.
//!
//! Above: every other crate. Below: the standard library alone.
//!
//! - [`Reader`] walks big-endian bytes from outside with every length checked.
//! - [`ByteSize`] is a number of bytes as people write it (`64 MiB`).
//! - [`calendar`] turns days since 1970 into dates and back.
//! - [`Clock`] is time as a part that is handed in; [`MonotonicClock`] is the machine's.
//! - [`SplitMix64`] is seeded randomness, the same on every machine.
//!
//! ```
//! use tanada_base::{ByteSize, Reader};
//!
//! let mut reader = Reader::new(&[0x00, 0x10, 0xff]);
//! assert_eq!(reader.u16()?, 16);
//! assert!(reader.u32().is_err());
//! assert_eq!("16 KiB".parse::<ByteSize>().map(|size| size.bytes()), Ok(16384));
//! # Ok::<(), tanada_base::ReadError>(())
//! ```
#![forbid(unsafe_code)]

mod byte_size;
pub mod calendar;
mod clock;
mod random;
mod reader;

pub use byte_size::{ByteSize, ParseByteSizeError};
pub use clock::{Clock, MonotonicClock};
pub use random::SplitMix64;
pub use reader::{ReadError, Reader};
