//! Formats of files that are written, and their options, named as DataFusion names them.

use std::str::FromStr;

use parquet::basic::{Compression, ZstdLevel};

use crate::{Error, ErrorKind, Result};

/// How a file is written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CopyOptions {
    pub(crate) format: CopyFormat,
    /// Whether a file of the target's name is replaced.
    pub(crate) overwrites: bool,
}

/// A format and its options.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum CopyFormat {
    Parquet { compression: Compression, row_group_rows: usize },
    Csv { delimiter: u8, has_header: bool, null_value: String },
    Json,
}

/// Rows of a row group, unless an option says otherwise.
const ROW_GROUP_ROWS: usize = 256 << 10;
/// Most rows of a row group.
const MAX_ROW_GROUP_ROWS: usize = 64 << 20;
/// What stands for NULL in CSV files, as in files that the servers write.
const NULL_VALUE: &str = "\\N";

impl CopyOptions {
    /// The options of a COPY. Without a format the target's name says which it is.
    ///
    /// # Errors
    /// If the format or an option is not known, or has a value that it cannot have.
    pub(crate) fn new(
        format: Option<&str>,
        target: &str,
        options: &[(String, String)],
    ) -> Result<CopyOptions> {
        let format = match format {
            Some(format) => format.to_ascii_lowercase(),
            None => extension(target)?,
        };
        let format = match format.as_str() {
            "parquet" => CopyFormat::Parquet {
                compression: Compression::ZSTD(ZstdLevel::default()),
                row_group_rows: ROW_GROUP_ROWS,
            },
            "csv" => {
                CopyFormat::Csv { delimiter: b',', has_header: true, null_value: NULL_VALUE.to_string() }
            }
            "json" | "ndjson" | "jsonl" => CopyFormat::Json,
            other => {
                let message = format!("COPY writes PARQUET, CSV and JSON; '{other}' is none of them");
                return Err(Error::new(ErrorKind::Unsupported, message));
            }
        };
        let mut own = CopyOptions { format, overwrites: false };
        for (key, value) in options {
            let key = key.to_ascii_lowercase();
            own.set(key.strip_prefix("format.").unwrap_or(&key), value)?;
        }
        Ok(own)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        let wrong = |use_this: &str| {
            let message = format!("option {key} cannot be '{value}'; use {use_this}");
            Error::new(ErrorKind::InvalidInput, message)
        };
        let truth = || match value.to_ascii_lowercase().as_str() {
            "true" | "1" | "on" => Ok(true),
            "false" | "0" | "off" => Ok(false),
            _ => Err(wrong("true or false")),
        };
        match (key, &mut self.format) {
            ("overwrite", _) => self.overwrites = truth()?,
            ("compression", CopyFormat::Parquet { compression, .. }) => {
                const CODECS: &str =
                    "zstd, zstd(1) to zstd(22), snappy, lz4_raw, gzip, brotli or uncompressed";
                let named = match value.to_ascii_lowercase().as_str() {
                    "zstd" => "zstd(1)".to_string(),
                    "gzip" => "gzip(6)".to_string(),
                    "brotli" => "brotli(1)".to_string(),
                    "none" => "uncompressed".to_string(),
                    other => other.to_string(),
                };
                let parsed = Compression::from_str(&named).ok();
                let is_written = |of: &Compression| !matches!(of, Compression::LZO | Compression::LZ4);
                *compression = parsed.filter(is_written).ok_or_else(|| wrong(CODECS))?;
            }
            ("max_row_group_size", CopyFormat::Parquet { row_group_rows, .. }) => {
                let rows = value.parse().ok().filter(|rows| (1..=MAX_ROW_GROUP_ROWS).contains(rows));
                *row_group_rows = rows.ok_or_else(|| wrong("a number of rows from 1 to 67108864"))?;
            }
            ("delimiter", CopyFormat::Csv { delimiter, .. }) => {
                let is_sign = |sign: &u8| sign.is_ascii() && !matches!(sign, b'"' | b'\r' | b'\n' | b'\\');
                *delimiter = match value {
                    "\\t" => b'\t',
                    value => match value.as_bytes() {
                        [sign] if is_sign(sign) => *sign,
                        _ => return Err(wrong("one sign, for instance ; or \\t")),
                    },
                };
            }
            ("has_header", CopyFormat::Csv { has_header, .. }) => *has_header = truth()?,
            ("null_value", CopyFormat::Csv { null_value, .. }) => *null_value = value.to_string(),
            (_, format) => {
                let known = match format {
                    CopyFormat::Parquet { .. } => "overwrite, compression, max_row_group_size",
                    CopyFormat::Csv { .. } => "overwrite, delimiter, has_header, null_value",
                    CopyFormat::Json => "overwrite",
                };
                let message = format!("there is no option '{key}' of this format; known are {known}");
                return Err(Error::new(ErrorKind::InvalidInput, message));
            }
        }
        Ok(())
    }
}

/// What a target's name ends with.
fn extension(target: &str) -> Result<String> {
    let name = target.rsplit('/').next().unwrap_or(target);
    match name.rsplit_once('.') {
        Some((stem, extension)) if !stem.is_empty() && !extension.is_empty() => {
            Ok(extension.to_ascii_lowercase())
        }
        _ => {
            let message = format!(
                "'{target}' does not say which format it is to have; add STORED AS PARQUET, CSV or JSON"
            );
            Err(Error::new(ErrorKind::InvalidInput, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(target: &str, options: &[(&str, &str)]) -> Result<CopyOptions> {
        let options: Vec<(String, String)> =
            options.iter().map(|(key, value)| ((*key).to_string(), (*value).to_string())).collect();
        CopyOptions::new(None, target, &options)
    }

    #[test]
    fn names_and_options_say_how_a_file_is_written() {
        let csv =
            options("a/b.CSV", &[("format.delimiter", ";"), ("HAS_HEADER", "false"), ("overwrite", "true")]);
        let format = CopyFormat::Csv { delimiter: b';', has_header: false, null_value: "\\N".to_string() };
        assert_eq!(csv.unwrap(), CopyOptions { format, overwrites: true });
        let parquet =
            options("x.parquet", &[("compression", "ZSTD(7)"), ("max_row_group_size", "10")]).unwrap();
        let compression = Compression::ZSTD(ZstdLevel::try_new(7).unwrap());
        assert_eq!(parquet.format, CopyFormat::Parquet { compression, row_group_rows: 10 });
        assert_eq!(options("x.jsonl", &[]).unwrap().format, CopyFormat::Json);
    }

    #[test]
    fn wrong_options_name_the_right_ones() {
        for (target, option, why) in [
            ("x.orc", ("overwrite", "true"), "PARQUET, CSV and JSON"),
            ("x", ("overwrite", "true"), "add STORED AS"),
            ("x.parquet", ("compression", "lzo"), "use zstd"),
            ("x.parquet", ("delimiter", ";"), "known are overwrite, compression"),
            ("x.csv", ("delimiter", "\""), "use one sign"),
            ("x.csv", ("has_header", "perhaps"), "use true or false"),
            ("x.parquet", ("max_row_group_size", "0"), "a number of rows"),
        ] {
            let error = options(target, &[option]).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
