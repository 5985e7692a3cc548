//! Settings on the command line: JSON, or a file with it; and what writes are told.

use std::path::Path;

use clap::{Args, ValueEnum};
use serde::de::DeserializeOwned;
use tanada_kv::{Compression, MediaPolicy, WriteOptions};

use crate::failure::{Failure, Outcome};

/// What `text` says, or the file of that name: JSON is an object, and no file is called like one.
pub(super) fn parsed<T: DeserializeOwned>(text: &str, what: &str) -> Outcome<T> {
    let wrong = |error| Failure::usage(format!("{what}: {error}"));
    if text.trim_start().starts_with('{') {
        return serde_json::from_str(text).map_err(wrong);
    }
    let read = std::fs::read_to_string(Path::new(text));
    let read = read.map_err(|error| Failure::failed(format!("cannot read {what} from {text}: {error}")))?;
    serde_json::from_str(&read).map_err(wrong)
}

/// A policy: the name of a template, or JSON.
pub(super) fn policy(text: &str) -> Outcome<MediaPolicy> {
    let is_json = text.trim_start().starts_with(['{', '"']);
    let named = || serde_json::from_value(serde_json::Value::String(text.to_owned()));
    let policy = if is_json { serde_json::from_str(text) } else { named() };
    policy.map_err(|error| Failure::usage(format!("policy: {error}")))
}

/// How long values are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum CompressionName {
    None,
    Lz4,
    Zstd,
}

/// How keys are written.
#[derive(Debug, Clone, Copy, Args)]
pub(super) struct WriteArguments {
    /// The key counts as deleted so many seconds later; without it as the store says
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    ttl: Option<u32>,
    /// How a long value is compressed; without it as the store says
    #[arg(long, value_name = "HOW")]
    compression: Option<CompressionName>,
}

impl WriteArguments {
    pub(super) fn options(self) -> WriteOptions {
        let compression = self.compression.map(|name| match name {
            CompressionName::None => Compression::None,
            CompressionName::Lz4 => Compression::Lz4,
            CompressionName::Zstd => Compression::Zstd,
        });
        WriteOptions { compression, time_to_live_s: self.ttl, ..WriteOptions::default() }
    }
}

#[cfg(test)]
mod tests {
    use tanada_kv::{PolicyTemplate, StoreSettings};

    use super::*;

    #[test]
    fn settings_are_json_or_a_file_with_it() {
        let settings: StoreSettings = parsed(r#" {"time_to_live_s": 60}"#, "settings").unwrap();
        assert_eq!(settings, StoreSettings { time_to_live_s: Some(60), ..StoreSettings::default() });
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("settings.json");
        std::fs::write(&file, r#"{"page_bytes": 8192}"#).unwrap();
        let settings: StoreSettings = parsed(file.to_str().unwrap(), "settings").unwrap();
        assert_eq!(settings.page_bytes, 8192);
        let wrong = parsed::<StoreSettings>(r#"{"ttl": 1}"#, "settings").unwrap_err().to_string();
        assert!(wrong.starts_with("settings: unknown field `ttl`"), "{wrong}");
        let missing = parsed::<StoreSettings>("/no/such.json", "settings").unwrap_err().to_string();
        assert!(missing.contains("/no/such.json"), "{missing}");
    }

    #[test]
    fn policies_are_templates_or_json() {
        assert_eq!(policy("staging_only").unwrap(), PolicyTemplate::StagingOnly.into());
        assert_eq!(policy("\"staging_only\"").unwrap(), PolicyTemplate::StagingOnly.into());
        let own = r#"{"root": {"keys": "fastest", "values": "log"}, "leaf": {"keys": "flash", "values": "slowest"}}"#;
        assert_eq!(serde_json::to_value(policy(own).unwrap()).unwrap()["leaf"]["keys"], "flash");
        assert!(policy("fast").unwrap_err().to_string().contains("staging_max_capacity"));
    }
}
