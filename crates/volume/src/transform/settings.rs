//! What a user may ask for: the compression of new pages, and the size of a page.

use std::fmt;
use std::str::FromStr;

use super::form::Algorithm;
use crate::{Error, Result};

/// Smallest page that can be transformed, in bytes: one block.
pub const SMALLEST_PAGE_BYTES: u32 = 4 << 10;

/// Largest page that can be transformed, in bytes.
pub const LARGEST_PAGE_BYTES: u32 = 64 << 10;

/// Bytes of a page unless said otherwise: those of InnoDB.
pub const DEFAULT_PAGE_BYTES: u32 = 16 << 10;

const ZSTD_LEVELS: std::ops::RangeInclusive<u8> = 1..=22;
const DEFAULT_ZSTD_LEVEL: u8 = 3;
const ZLIB_LEVELS: std::ops::RangeInclusive<u8> = 1..=9;
const DEFAULT_ZLIB_LEVEL: u8 = 6;

/// How new pages of an object are compressed.
///
/// As text: `none`, `lz4`, `zstd`, `zstd:LEVEL` (1 to 22, default 3), `zlib`, `zlib:LEVEL` (1 to 9, default 6).
///
/// ```
/// use tanada_volume::Compression;
///
/// assert!(Compression::Zstd(3).check().is_ok());
/// assert!(Compression::Zstd(99).check().is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Compression {
    /// Not at all.
    #[default]
    None,
    /// LZ4 blocks.
    Lz4,
    /// Zstandard at this level.
    Zstd(u8),
    /// DEFLATE in zlib's wrapping, at this level.
    Zlib(u8),
}

impl Compression {
    /// The algorithm of pages that it makes shorter.
    pub(crate) fn algorithm(self) -> Algorithm {
        match self {
            Compression::None => Algorithm::None,
            Compression::Lz4 => Algorithm::Lz4,
            Compression::Zstd(_) => Algorithm::Zstd,
            Compression::Zlib(_) => Algorithm::Zlib,
        }
    }

    /// Its level, 0 for those without levels.
    pub(crate) fn level(self) -> u8 {
        match self {
            Compression::None | Compression::Lz4 => 0,
            Compression::Zstd(level) | Compression::Zlib(level) => level,
        }
    }

    /// The compression with this algorithm and level, if there is such a one.
    pub(crate) fn new(algorithm: Algorithm, level: u8) -> Option<Compression> {
        match algorithm {
            Algorithm::None if level == 0 => Some(Compression::None),
            Algorithm::Lz4 if level == 0 => Some(Compression::Lz4),
            Algorithm::Zstd if ZSTD_LEVELS.contains(&level) => Some(Compression::Zstd(level)),
            Algorithm::Zlib if ZLIB_LEVELS.contains(&level) => Some(Compression::Zlib(level)),
            _ => None,
        }
    }

    /// Fails for a level that its algorithm does not have.
    ///
    /// # Errors
    /// `InvalidInput`.
    pub fn check(self) -> Result<()> {
        match Compression::new(self.algorithm(), self.level()) {
            Some(_) => Ok(()),
            None => Err(bad_level(self.algorithm(), &self.level().to_string())),
        }
    }
}

fn bad_level(algorithm: Algorithm, level: &str) -> Error {
    let levels = match algorithm {
        Algorithm::Zstd => "1 to 22",
        Algorithm::Zlib => "1 to 9",
        Algorithm::None | Algorithm::Lz4 => "no levels",
    };
    Error::invalid(format!("compression {algorithm} at level {level:?}: it has {levels}"))
}

impl FromStr for Compression {
    type Err = Error;

    fn from_str(text: &str) -> Result<Compression> {
        let (name, level) = match text.split_once(':') {
            Some((name, level)) => (name, Some(level)),
            None => (text, None),
        };
        let (algorithm, default) = match name.to_ascii_lowercase().as_str() {
            "none" => (Algorithm::None, 0),
            "lz4" => (Algorithm::Lz4, 0),
            "zstd" => (Algorithm::Zstd, DEFAULT_ZSTD_LEVEL),
            "zlib" => (Algorithm::Zlib, DEFAULT_ZLIB_LEVEL),
            _ => {
                let known = "none, lz4, zstd, zstd:LEVEL, zlib and zlib:LEVEL are known";
                return Err(Error::invalid(format!("unknown compression {text:?}: {known}")));
            }
        };
        let Some(level) = level else {
            return Compression::new(algorithm, default).ok_or_else(|| bad_level(algorithm, ""));
        };
        let parsed = level.parse::<u8>().ok().filter(|level| *level > 0);
        parsed
            .and_then(|parsed| Compression::new(algorithm, parsed))
            .ok_or_else(|| bad_level(algorithm, level))
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Compression::None | Compression::Lz4 => write!(f, "{}", self.algorithm()),
            Compression::Zstd(level) | Compression::Zlib(level) => write!(f, "{}:{level}", self.algorithm()),
        }
    }
}

/// Fails for a size that no page has, or that does not fit into chunks of `chunk_bytes`.
///
/// # Errors
/// `InvalidInput`.
pub fn check_page_bytes(page_bytes: u32, chunk_bytes: u64) -> Result<()> {
    if !page_bytes.is_power_of_two() || !(SMALLEST_PAGE_BYTES..=LARGEST_PAGE_BYTES).contains(&page_bytes) {
        return Err(Error::invalid(format!(
            "pages of {page_bytes} bytes: a power of two from 4 KiB (a block of the volume) to 64 KiB is needed"
        )));
    }
    if u64::from(page_bytes) > chunk_bytes {
        return Err(Error::invalid(format!(
            "pages of {page_bytes} bytes are larger than the volume's chunks of {chunk_bytes} bytes"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compressions_are_parsed_and_printed() {
        for (text, expected, printed) in [
            ("none", Compression::None, "none"),
            ("lz4", Compression::Lz4, "lz4"),
            ("LZ4", Compression::Lz4, "lz4"),
            ("zstd", Compression::Zstd(3), "zstd:3"),
            ("zstd:22", Compression::Zstd(22), "zstd:22"),
            ("zlib", Compression::Zlib(6), "zlib:6"),
            ("zlib:1", Compression::Zlib(1), "zlib:1"),
        ] {
            let parsed: Compression = text.parse().unwrap();
            assert_eq!(parsed, expected);
            assert_eq!(parsed.to_string(), printed);
            assert_eq!(printed.parse::<Compression>().unwrap(), expected);
        }
    }

    #[test]
    fn unknown_compressions_and_levels_are_refused_with_the_known_ones() {
        for (text, hint) in [
            ("gzip", "zstd:LEVEL"),
            ("", "lz4"),
            ("lz4:1", "no levels"),
            ("none:0", "no levels"),
            ("zstd:0", "1 to 22"),
            ("zstd:23", "1 to 22"),
            ("zstd:", "1 to 22"),
            ("zlib:10", "1 to 9"),
            ("zlib:x", "1 to 9"),
        ] {
            let error = text.parse::<Compression>().unwrap_err();
            assert_eq!(error.kind(), crate::ErrorKind::InvalidInput);
            assert!(error.to_string().contains(hint), "{text}: {error}");
        }
        assert!(Compression::Zstd(0).check().is_err() && Compression::Zlib(10).check().is_err());
    }

    #[test]
    fn page_sizes_are_powers_of_two_from_a_block_to_64_kib_within_a_chunk() {
        for bytes in [4096, 8192, 16384, 32768, 65536] {
            check_page_bytes(bytes, 1 << 20).unwrap();
        }
        for bytes in [0, 1, 512, 2048, 4097, 12288, 131_072] {
            assert!(check_page_bytes(bytes, 1 << 20).is_err(), "{bytes}");
        }
        assert!(check_page_bytes(16384, 8192).unwrap_err().to_string().contains("chunks"));
    }
}
