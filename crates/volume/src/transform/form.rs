//! In which form a page is stored: by which algorithm it was compressed, under which key it was encrypted.

use std::fmt;
use std::num::NonZeroU16;

/// An algorithm by which a page was compressed. The numbers are part of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, PartialOrd, Ord)]
pub enum Algorithm {
    /// Stored as it is.
    #[default]
    None = 0,
    /// An LZ4 block.
    Lz4 = 1,
    /// A Zstandard frame.
    Zstd = 2,
    /// A zlib stream.
    Zlib = 3,
}

impl Algorithm {
    /// The algorithm of this number.
    pub(crate) fn from_number(number: u8) -> Option<Algorithm> {
        [Algorithm::None, Algorithm::Lz4, Algorithm::Zstd, Algorithm::Zlib]
            .into_iter()
            .find(|known| *known as u8 == number)
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Algorithm::None => "none",
            Algorithm::Lz4 => "lz4",
            Algorithm::Zstd => "zstd",
            Algorithm::Zlib => "zlib",
        })
    }
}

/// The form of one stored page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Form {
    /// How it was compressed.
    pub algorithm: Algorithm,
    /// The identifier of the key, if it is encrypted.
    pub key: Option<NonZeroU16>,
}

impl Form {
    /// Whether the stored image is the page itself.
    #[cfg(test)]
    pub(crate) fn is_plain(self) -> bool {
        self == Form::default()
    }
}
