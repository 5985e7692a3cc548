//! Settings that take the place of others, one by one.
//!
//! A database keeps the settings that it was made with, and so does a store. Who wants others names those alone: were
//! all of them replaced, a limit that somebody set once would be gone with the first change that does not repeat it.

use serde::{Deserialize, Deserializer, Serialize};

use crate::settings::{Compression, DatabaseSettings, Durability, FilterMemory, StoreSettings};
use crate::tree::policy::MediaPolicy;

/// A present field is named; `null` is a value where the setting has one.
fn named<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

/// One list of the settings for the type and both ways: a setting that is added and left out here does not compile.
macro_rules! overrides {
    ($(#[$doc:meta])* $name:ident of $settings:ident { $($setting:ident: $kind:ty,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $name {
            $(
                #[doc = concat!("As [`", stringify!($settings), "::", stringify!($setting), "`].")]
                #[serde(deserialize_with = "named", skip_serializing_if = "Option::is_none")]
                pub $setting: Option<$kind>,
            )*
        }

        impl $name {
            /// `settings` with what is named here in its place.
            pub fn over(&self, settings: &$settings) -> $settings {
                $settings {
                    $($setting: self.$setting.clone().unwrap_or_else(|| settings.$setting.clone()),)*
                }
            }

            /// Returns whether nothing is named.
            pub fn is_empty(&self) -> bool {
                *self == $name::default()
            }
        }

        impl From<$settings> for $name {
            /// All of them.
            fn from(settings: $settings) -> $name {
                $name { $($setting: Some(settings.$setting),)* }
            }
        }
    };
}

overrides! {
    /// Settings of a database that take the place of those it has; what is `None`, or left out in JSON, stays as it is.
    ///
    /// ```
    /// use tanada_kv::{DatabaseOverrides, DatabaseSettings};
    ///
    /// let settings = DatabaseSettings { fast_class_bytes: Some(1 << 30), ..DatabaseSettings::default() };
    /// let less = DatabaseOverrides { memory_bytes: Some(64 << 20), ..DatabaseOverrides::default() };
    /// let settings = less.over(&settings);
    /// assert_eq!((settings.memory_bytes, settings.fast_class_bytes), (64 << 20, Some(1 << 30)));
    /// let unlimited = DatabaseOverrides { fast_class_bytes: Some(None), ..DatabaseOverrides::default() };
    /// assert_eq!(unlimited.over(&settings).fast_class_bytes, None);
    /// ```
    DatabaseOverrides of DatabaseSettings {
        memory_bytes: u64,
        memory_table_bytes: u64,
        waiting_tables: usize,
        log_segment_bytes: u64,
        log_group_bytes: u64,
        log_replay_bytes: u64,
        log_class: Option<String>,
        durability: Durability,
        fast_class_bytes: Option<u64>,
        slow_root_kvsets: usize,
        most_root_kvsets: usize,
        concurrent_jobs: usize,
        manifest_bytes: u64,
    }
}

overrides! {
    /// Settings of a store that take the place of those it has; what is `None`, or left out in JSON, stays as it is.
    StoreOverrides of StoreSettings {
        separate_from_bytes: u32,
        compression: Compression,
        time_to_live_s: Option<u32>,
        policy: MediaPolicy,
        page_bytes: u32,
        filter_bits_per_key: u32,
        filters: FilterMemory,
        leaf_bytes: u64,
        value_segment_bytes: u64,
        space_amplification: f64,
        promoted_bytes_per_second: u64,
        mirrors: bool,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<DatabaseOverrides, serde_json::Error> {
        serde_json::from_str(text)
    }

    #[test]
    fn omitted_overrides_keep_the_settings() {
        let kept = DatabaseSettings {
            fast_class_bytes: Some(1 << 30),
            log_class: Some("flash".to_owned()),
            waiting_tables: 7,
            ..DatabaseSettings::default()
        };
        let overrides = parsed(r#"{"memory_bytes": 4194304, "durability": {"within": 7}}"#).unwrap();
        let expected =
            DatabaseSettings { memory_bytes: 4 << 20, durability: Durability::Within(7), ..kept.clone() };
        assert_eq!(overrides.over(&kept), expected);
        assert!(parsed("{}").unwrap().is_empty() && !overrides.is_empty());
        assert_eq!(DatabaseOverrides::default().over(&kept), kept);
        // All of them replace all.
        assert_eq!(DatabaseOverrides::from(kept.clone()).over(&DatabaseSettings::default()), kept);
    }

    #[test]
    fn null_takes_a_limit_away_and_is_refused_where_there_is_none() {
        let kept = DatabaseSettings { fast_class_bytes: Some(1 << 30), ..DatabaseSettings::default() };
        assert_eq!(parsed(r#"{"fast_class_bytes": null}"#).unwrap().over(&kept).fast_class_bytes, None);
        assert!(parsed(r#"{"memory_bytes": null}"#).is_err());
        assert!(parsed(r#"{"memory": 1}"#).unwrap_err().to_string().contains("memory"));
    }

    #[test]
    fn store_overrides_keep_unnamed_settings() {
        let kept = StoreSettings { time_to_live_s: Some(7), page_bytes: 8192, ..StoreSettings::default() };
        let named = |text: &str| serde_json::from_str::<StoreOverrides>(text);
        let settings = named(r#"{"compression": "zstd", "policy": "staging_only"}"#).unwrap().over(&kept);
        assert_eq!((settings.compression, settings.time_to_live_s), (Compression::Zstd, Some(7)));
        assert_eq!(named(r#"{"time_to_live_s": null}"#).unwrap().over(&kept).time_to_live_s, None);
        assert!(named(r#"{"page_bytes": null}"#).is_err() && named(r#"{"ttl": 1}"#).is_err());
        assert_eq!(StoreOverrides::from(kept.clone()).over(&StoreSettings::default()), kept);
    }

    #[test]
    fn only_named_overrides_are_serialized() {
        let overrides = DatabaseOverrides { fast_class_bytes: Some(None), ..DatabaseOverrides::default() };
        let text = serde_json::to_string(&overrides).unwrap();
        assert_eq!(text, r#"{"fast_class_bytes":null}"#);
        assert_eq!(parsed(&text).unwrap(), overrides);
    }
}
