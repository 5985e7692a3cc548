//! Settings on the command line: JSON, or a file with it; and what writes are told.

use std::path::Path;

use clap::{Args, ValueEnum};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tanada_base::ByteSize;
use tanada_kv::{
    Compression, DatabaseOverrides, DatabaseSettings, MediaPolicy, StoreOverrides, StoreSettings,
    WriteOptions,
};

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

/// Settings that are named one by one.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Named {
    Database(DatabaseOverrides),
    Store(StoreOverrides),
}

/// What texts such as `durability=sync` or `time_to_live_s=null` say: values are JSON, sizes, or words.
pub(super) fn named(texts: &[String]) -> Outcome<Named> {
    let has = |settings: serde_json::Result<Value>, name: &str| {
        settings.is_ok_and(|settings| settings.get(name).is_some())
    };
    let (mut of_database, mut of_store) = (Map::new(), Map::new());
    for text in texts {
        let Some((name, value)) = text.split_once('=') else {
            return Err(Failure::usage(format!("--set {text}: NAME=VALUE is wanted")));
        };
        let value = value_of(name, value);
        let settings = if has(serde_json::to_value(DatabaseSettings::default()), name) {
            &mut of_database
        } else if has(serde_json::to_value(StoreSettings::default()), name) {
            &mut of_store
        } else {
            return Err(Failure::usage(format!(
                "--set {text}: neither databases nor stores have such a setting"
            )));
        };
        if settings.insert(name.to_owned(), value).is_some() {
            return Err(Failure::usage(format!("--set {text}: it was said before")));
        }
    }
    match (of_database.is_empty(), of_store.is_empty()) {
        (_, true) => of_names(of_database).map(Named::Database),
        (true, _) => of_names(of_store).map(Named::Store),
        _ => Err(Failure::usage("--set: settings of the database and of a store are two commands")),
    }
}

/// JSON, a number of bytes as `64MiB`, or a word.
fn value_of(name: &str, text: &str) -> Value {
    if let Ok(value) = serde_json::from_str(text) {
        return value;
    }
    match text.parse::<ByteSize>() {
        Ok(size) if name.ends_with("_bytes") => size.bytes().into(),
        _ => Value::String(text.to_owned()),
    }
}

fn of_names<T: DeserializeOwned>(settings: Map<String, Value>) -> Outcome<T> {
    // Alone, each says which one is wrong.
    for (name, value) in &settings {
        let alone = Map::from_iter([(name.clone(), value.clone())]);
        let parsed = serde_json::from_value::<T>(alone.into());
        let form = match name.as_str() {
            "durability" => r#"; it is sync, or {"within": N} with N milliseconds"#,
            _ => "",
        };
        parsed.map_err(|error| Failure::usage(format!("--set {name}={value}: {error}{form}")))?;
    }
    serde_json::from_value(settings.into()).map_err(|error| Failure::usage(format!("--set: {error}")))
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
    use tanada_kv::{Durability, PolicyTemplate};

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
    fn settings_are_named_one_by_one() {
        let named = |texts: &[&str]| named(&texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>());
        let of_database = DatabaseOverrides {
            durability: Some(Durability::Sync),
            fast_class_bytes: Some(None),
            ..DatabaseOverrides::default()
        };
        let texts = ["durability=sync", "fast_class_bytes=null"];
        assert_eq!(named(&texts).unwrap(), Named::Database(of_database));
        let of_store = StoreOverrides {
            compression: Some(Compression::Zstd),
            time_to_live_s: Some(Some(60)),
            policy: Some(PolicyTemplate::StagingOnly.into()),
            ..StoreOverrides::default()
        };
        let texts = ["compression=zstd", "time_to_live_s=60", "policy=staging_only"];
        assert_eq!(named(&texts).unwrap(), Named::Store(of_store));
        let of_database = DatabaseOverrides { memory_bytes: Some(64 << 20), ..DatabaseOverrides::default() };
        assert_eq!(named(&["memory_bytes=64MiB"]).unwrap(), Named::Database(of_database));
        for (wrong, word) in [
            (&["mirrors"][..], "NAME=VALUE"),
            (&["ttl=1"], "ttl"),
            (&["mirrors=true", "mirrors=false"], "before"),
            (&["mirrors=true", "memory_bytes=1"], "two commands"),
            (&["page_bytes=many"], "many"),
            (&["durability=within"], r#"{"within": N}"#),
        ] {
            let error = named(wrong).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
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
