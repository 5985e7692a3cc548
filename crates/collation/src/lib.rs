//! Character sets and collations of MySQL and MariaDB: stored bytes to text and back, sort keys, comparison.
//!
//! Above: `tanada-innodb`. Below: nothing. The two main types are [`Charset`], which decodes and encodes strings, and
//! [`Collation`], which compares them. The tables come from the servers themselves and lie compressed in `data/`; each
//! is unpacked on first use.
//!
//! A collation is found by server and name, because one name may mean two orders: `utf8mb4_0900_ai_ci` is Unicode 9.0.0
//! on MySQL and Unicode 14.0.0 on MariaDB.
//!
//! ```
//! use tanada_collation::{Collation, Server};
//! let collation = Collation::lookup(Server::MySql, "utf8mb4_0900_ai_ci").ok_or("unknown")?;
//! assert!(collation.compare("Straße", "STRASSE").is_eq());
//! let (mut a, mut b) = (Vec::new(), Vec::new());
//! collation.sort_key("résumé", &mut a);
//! collation.sort_key("Resume", &mut b);
//! assert_eq!(a, b);
//! # Ok::<(), &str>(())
//! ```
#![forbid(unsafe_code)]

mod charset;
mod collation;
mod compared;
mod find;
mod letter_case;
mod names;
mod pattern;
mod sort_key;
mod stored;
mod weights;

pub use charset::{Charset, Encoded};
pub use collation::Collation;
pub use compared::ComparedKey;
pub use letter_case::LetterCase;
pub use pattern::Pattern;

/// The server whose tables are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Server {
    /// MySQL 8.0 or later.
    MySql,
    /// MariaDB 10.6 or later.
    MariaDb,
}

/// The content of a compressed data file; empty if it cannot be unpacked, which a test excludes.
fn unpack(file: &[u8]) -> Vec<u8> {
    zstd::decode_all(file).unwrap_or_default()
}
