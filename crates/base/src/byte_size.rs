//! Numbers of bytes as people write and read them.
//!
//! `KiB`, `MiB`, ... and the bare letters `K`, `M`, ... are powers of 1024; `KB`, `MB`, ... are powers of 1000, as in
//! IEC 80000-13.

use std::fmt;
use std::str::FromStr;

/// A number of bytes.
///
/// ```
/// use tanada_base::ByteSize;
/// assert_eq!("1.5 GiB".parse::<ByteSize>().unwrap().bytes(), 1_610_612_736);
/// assert_eq!("8k".parse::<ByteSize>().unwrap(), ByteSize::kib(8));
/// assert_eq!("2MB".parse::<ByteSize>().unwrap().bytes(), 2_000_000);
/// assert_eq!(ByteSize::mib(64).to_string(), "64 MiB");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ByteSize(u64);

impl ByteSize {
    /// `bytes` bytes.
    pub const fn new(bytes: u64) -> ByteSize {
        ByteSize(bytes)
    }
    /// `kib` times 1024 bytes; saturates.
    pub const fn kib(kib: u64) -> ByteSize {
        ByteSize(kib.saturating_mul(1 << 10))
    }
    /// `mib` times 1024 KiB; saturates.
    pub const fn mib(mib: u64) -> ByteSize {
        ByteSize(mib.saturating_mul(1 << 20))
    }
    /// `gib` times 1024 MiB; saturates.
    pub const fn gib(gib: u64) -> ByteSize {
        ByteSize(gib.saturating_mul(1 << 30))
    }
    /// The number of bytes.
    pub const fn bytes(self) -> u64 {
        self.0
    }
    /// The number of bytes as a length in memory; saturates where memory is smaller.
    pub fn as_usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl From<u64> for ByteSize {
    fn from(bytes: u64) -> ByteSize {
        ByteSize(bytes)
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(&str, u64); 5] =
            [("PiB", 1 << 50), ("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
        match UNITS.iter().find(|(_, unit)| self.0 >= *unit) {
            Some((name, unit)) if self.0.is_multiple_of(*unit) => write!(f, "{} {name}", self.0 / unit),
            Some((name, unit)) => write!(f, "{:.1} {name}", self.0 as f64 / *unit as f64),
            None => write!(f, "{} B", self.0),
        }
    }
}

/// Text that is no byte size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseByteSizeError(String);

impl fmt::Display for ParseByteSizeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not a size; write it like 4096, 64MiB, 1.5 GiB or 2GB", self.0)
    }
}

impl std::error::Error for ParseByteSizeError {}

impl FromStr for ByteSize {
    type Err = ParseByteSizeError;

    fn from_str(text: &str) -> Result<ByteSize, ParseByteSizeError> {
        let wrong = || ParseByteSizeError(text.to_owned());
        let trimmed = text.trim();
        let digits = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
        let (number, unit) = trimmed.split_at(digits);
        let factor = unit_factor(unit.trim()).ok_or_else(wrong)?;
        if let Ok(whole) = number.parse::<u64>() {
            return whole.checked_mul(factor).map(ByteSize).ok_or_else(wrong);
        }
        let bytes = number.parse::<f64>().map_err(|_| wrong())? * factor as f64;
        // Above 2^63 a float no longer tells neighbouring sizes apart from an overflow.
        if bytes < (1u64 << 63) as f64 { Ok(ByteSize(bytes.round() as u64)) } else { Err(wrong()) }
    }
}

fn unit_factor(unit: &str) -> Option<u64> {
    let unit = unit.to_ascii_lowercase();
    if matches!(unit.as_str(), "" | "b") {
        return Some(1);
    }
    let power = "kmgtp".find(unit.chars().next()?)? as u32 + 1;
    match &unit[1..] {
        "" | "i" | "ib" => Some(1024u64.pow(power)),
        "b" => Some(1000u64.pow(power)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_written() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            (" 12 b ", 12),
            ("1k", 1024),
            ("1 KiB", 1024),
            ("1KB", 1000),
            ("3Mi", 3 << 20),
            ("0.5GiB", 512 << 20),
            ("1P", 1 << 50),
        ] {
            assert_eq!(text.parse(), Ok(ByteSize(bytes)), "{text}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "x", "1 x", "1..2k", "-1", "1kbb", "99999999999999999999", "20000P", "1é", "é"] {
            assert!(text.parse::<ByteSize>().is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_are_written_as_read() {
        for text in ["0 B", "1023 B", "4 KiB", "1.5 MiB", "4 GiB", "2 TiB"] {
            assert_eq!(text.parse::<ByteSize>().map(|size| size.to_string()), Ok(text.to_owned()));
        }
    }
}
