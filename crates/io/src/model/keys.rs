//! Parameters of a model as people write them: `key=value` with units.
//!
//! Every kind of device has one table of [`Key`]s: name, how the value is written, where it lies. Parsing, printing and
//! the lists in error messages all come from that table.

use std::time::Duration;

use tanada_base::ByteSize;

/// Bounds that keep the arithmetic of a model far from overflow.
const MOST_TIME: Duration = Duration::from_secs(60);
const MOST_COUNT: u64 = 1 << 20;
const MOST_BYTES: u64 = 1 << 50;

/// Where a parameter lies in its specification, which also tells how it is written.
pub(super) enum Place<'a> {
    /// `8ms`, `75us`, `1.2us`, `2s`.
    Time(&'a mut Duration),
    /// `128KiB`.
    Bytes(&'a mut u64),
    /// `150MB/s`; bytes a second.
    Rate(&'a mut u64),
    /// `32`.
    Count(&'a mut u64),
    /// `0.5`, from 0 to 1.
    Share(&'a mut f64),
    /// `on` or `off`.
    Switch(&'a mut bool),
}

/// A parameter of the specification `S`.
pub(super) struct Key<S: 'static> {
    pub(super) name: &'static str,
    pub(super) place: fn(&mut S) -> Place<'_>,
}

impl Place<'_> {
    /// Reads `text`; the error says how such a value is written.
    pub(super) fn set(self, text: &str) -> Result<(), &'static str> {
        match self {
            Place::Time(time) => {
                *time = parse_time(text).ok_or("a time up to 60s, like 8ms, 75us or 1.5us")?
            }
            Place::Bytes(bytes) => *bytes = parse_bytes(text).ok_or("a size, like 128KiB or 1TB")?,
            Place::Rate(rate) => {
                let parsed = parse_bytes(text.strip_suffix("/s").unwrap_or(text));
                *rate = parsed.filter(|rate| *rate > 0).ok_or("a rate above zero, like 150MB/s")?;
            }
            Place::Count(count) => {
                let parsed = text.parse().ok().filter(|count| (1..=MOST_COUNT).contains(count));
                *count = parsed.ok_or("a number from 1 to 1048576")?;
            }
            Place::Share(share) => {
                let parsed = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
                *share = parsed.ok_or("a share from 0 to 1, like 0.16")?;
            }
            Place::Switch(switch) => {
                *switch = match text {
                    "on" => true,
                    "off" => false,
                    _ => return Err("on or off"),
                };
            }
        }
        Ok(())
    }

    /// The value as it is read.
    pub(super) fn text(&self) -> String {
        match self {
            Place::Time(time) => time_text(**time),
            Place::Bytes(bytes) => bytes_text(**bytes),
            Place::Rate(rate) => format!("{}/s", bytes_text(**rate)),
            Place::Count(count) => count.to_string(),
            Place::Share(share) => share.to_string(),
            Place::Switch(switch) => if **switch { "on" } else { "off" }.to_owned(),
        }
    }
}

/// The keys' names, for messages.
pub(super) fn names<S>(keys: &[Key<S>]) -> String {
    keys.iter().map(|key| key.name).collect::<Vec<_>>().join(", ")
}

fn parse_time(text: &str) -> Option<Duration> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit_ns = match unit.trim() {
        "ns" => 1.0,
        "us" | "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "" if number == "0" => 1.0,
        _ => return None,
    };
    let ns = number.parse::<f64>().ok()? * unit_ns;
    (ns <= MOST_TIME.as_nanos() as f64).then(|| Duration::from_nanos(ns.round() as u64))
}

fn time_text(time: Duration) -> String {
    let ns = time.as_nanos();
    let (unit, divisor) = match ns {
        0..1_000 => ("ns", 1),
        1_000..1_000_000 => ("us", 1_000),
        1_000_000..1_000_000_000 => ("ms", 1_000_000),
        _ => ("s", 1_000_000_000),
    };
    format!("{}{unit}", ns as f64 / f64::from(divisor))
}

fn parse_bytes(text: &str) -> Option<u64> {
    if text == "off" {
        return Some(0);
    }
    text.parse::<ByteSize>().ok().map(ByteSize::bytes).filter(|bytes| *bytes <= MOST_BYTES)
}

/// Exact, unlike the display of [`ByteSize`], which rounds.
fn bytes_text(bytes: u64) -> String {
    if bytes == 0 {
        return "off".to_owned();
    }
    const UNITS: [(&str, u64); 8] = [
        ("TiB", 1 << 40),
        ("TB", 1_000_000_000_000),
        ("GiB", 1 << 30),
        ("GB", 1_000_000_000),
        ("MiB", 1 << 20),
        ("MB", 1_000_000),
        ("KiB", 1 << 10),
        ("KB", 1_000),
    ];
    match UNITS.iter().find(|(_, unit)| bytes >= *unit && bytes.is_multiple_of(*unit)) {
        Some((name, unit)) => format!("{}{name}", bytes / unit),
        None => format!("{bytes}B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_are_written_as_read() {
        for text in ["8ms", "75us", "1.5us", "17.35ms", "0ns", "2s"] {
            assert_eq!(parse_time(text).map(time_text).as_deref(), Some(text));
        }
        for text in ["128KiB", "1TB", "150MB", "7B", "1MiB"] {
            assert_eq!(parse_bytes(text).map(bytes_text).as_deref(), Some(text));
        }
        assert_eq!((parse_bytes("off"), parse_bytes("0"), bytes_text(0).as_str()), (Some(0), Some(0), "off"));
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "8", "ms", "-1ms", "1e99s", "61s", "1..2ms"] {
            assert_eq!(parse_time(text), None, "{text}");
        }
        let mut share = 0.5;
        assert!(Place::Share(&mut share).set("1.5").is_err());
        assert!(Place::Share(&mut share).set("NaN").is_err());
        let mut rate = 1;
        assert!(Place::Rate(&mut rate).set("0MB/s").is_err());
        let mut count = 1;
        assert!(Place::Count(&mut count).set("0").is_err());
        assert_eq!((share, rate, count), (0.5, 1, 1));
    }
}
