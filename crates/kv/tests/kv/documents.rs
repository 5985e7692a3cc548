//! Documents quote the defaults that the engine has.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;
use tanada_kv::{DatabaseSettings, StoreSettings};

/// The first two cells of each row of tables that names a setting: the name in backquotes, and the default without
/// them.
fn documented(text: &str) -> BTreeMap<String, String> {
    let rows = text.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| `")?.split(" | ");
        let name = cells.next()?.trim_end_matches('`');
        let is_name = name.chars().all(|sign| sign.is_ascii_lowercase() || sign == '_');
        is_name.then_some((name.to_owned(), cells.next()?.replace('`', "")))
    });
    rows.collect()
}

/// A default as the documents write it.
fn written(name: &str, value: &Value) -> String {
    match (name, value) {
        ("log_class", Value::Null) => "fastest".to_owned(),
        ("time_to_live_s", Value::Null) => "never".to_owned(),
        (_, Value::Null) => "none".to_owned(),
        ("durability", value) => format!("within {} ms", value["within"]),
        (_, Value::String(text)) => text.clone(),
        (name, Value::Number(number)) if name.ends_with("_bytes") => {
            let bytes = number.as_u64().unwrap_or_default();
            match bytes {
                bytes if bytes >= 1 << 30 && bytes.is_multiple_of(1 << 30) => format!("{} GiB", bytes >> 30),
                bytes if bytes >= 1 << 20 && bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
                bytes if bytes >= 1 << 10 && bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
                bytes => bytes.to_string(),
            }
        }
        (_, value) => value.to_string(),
    }
}

#[test]
fn documented_defaults_are_the_defaults() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/kv-tuning.md");
    let documented = documented(&std::fs::read_to_string(page).unwrap());
    let mut expected = BTreeMap::new();
    for settings in [
        serde_json::to_value(DatabaseSettings::default()).unwrap(),
        serde_json::to_value(StoreSettings::default()).unwrap(),
    ] {
        for (name, value) in settings.as_object().unwrap() {
            expected.insert(name.clone(), written(name, value));
        }
    }
    assert_eq!(documented, expected);
}
