//! Settings of a session, `SET tanada.<name> = <value>`.

use std::any::Any;

use datafusion::common::config::{ConfigEntry, ConfigExtension, ExtensionOptions};
use datafusion::common::{DataFusionError, Result as DataFusionResult};
use tanada_base::ByteSize;
use tanada_innodb::schema::Server;
use tanada_placement::POLICIES;

use crate::expression::Connection;

/// In which order operators finish their I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Execution {
    /// Many I/Os in flight, rows come as they are read. The default.
    #[default]
    OutOfOrder,
    /// The same operators with exactly one I/O outstanding: the baseline.
    InOrder,
}

/// Whether the planner may, must or must not choose an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Choice {
    /// The cost model decides. The default.
    #[default]
    Auto,
    /// Wherever it is possible.
    Always,
    /// Nowhere.
    Never,
}

/// Whether scans read columnar mirrors, where such are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ColumnarUse {
    /// Where the cost model says so; tables of more than a few pages are mirrored. The default.
    #[default]
    Auto,
    /// Wherever rows are not looked up; all tables are mirrored.
    Always,
    /// Nowhere, and none are made.
    Off,
}

/// Settings under the prefix `tanada`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TanadaOptions {
    /// `execution`: `out_of_order` (default) or `in_order`.
    pub execution: Execution,
    /// `io_depth`: most I/Os in flight for a query; 0 (default) adapts to what the device rewards. Ignored in order.
    pub io_depth: usize,
    /// `io_bytes`: most bytes in flight for a query; default 64 MiB.
    pub io_bytes: usize,
    /// `lookup_join`: `auto` (default), `always` or `never` replace a hash join by index look-ups.
    pub lookup_join: Choice,
    /// `sort_merge_join`: `auto` (default), `always` or `never` merge sorted inputs, which spill, instead of hashing
    /// one.
    pub sort_merge_join: Choice,
    /// `index_scan`: `auto` (default), `always` or `never` read a range of an index instead of the whole table.
    pub index_scan: Choice,
    /// `lookup_memory_bytes`: rows in flight inside all look-up joins of a query may take this
    /// much, about; default 64 MiB.
    pub lookup_memory_bytes: usize,
    /// `skip_damaged`: whether pages that are damaged are left out of scans and listed, instead of failing the query;
    /// default false.
    pub skip_damaged: bool,
    /// `placement`: the policy that places chunks of mounted volumes before and while queries read them, `benefit`
    /// (default), or `off`.
    pub placement: String,
    /// `placement_bytes_per_second`: most bytes that it copies a second; 0 (default) is no limit.
    pub placement_bytes_per_second: usize,
    /// `server`: `mysql` (default), `mariadb` (10.11) or `mariadb-11.8`, whose rules expressions follow. The first
    /// mount sets it to the server that wrote the files, unless it was set before.
    pub server: Server,
    /// Whether the server is MariaDB 11.5 or later (`server` is `mariadb-11.8`), whose default collations are others.
    pub is_newer_mariadb: bool,
    /// `group_concat_max_len`: most bytes of a result of GROUP_CONCAT; 0 (default) is the server's default, 1,024 of
    /// MySQL and 1 MiB of MariaDB.
    pub group_concat_max_len: usize,
    /// `spill`: where operators write what their memory does not hold: a folder, or `volume:PATH[:CLASS]`, a class of a
    /// volume that is mounted; empty (default) is the folder for temporary files.
    pub spill: String,
    /// `spill_bytes`: most bytes of that at once; 0 (default) is nine tenths of what is free there.
    pub spill_bytes: usize,
    /// `columnar`: `auto` (default), `always` or `off`: whether scans read columnar mirrors, and such are made.
    pub columnar: ColumnarUse,
    /// `columnar_bytes`: most bytes of mirrors; default 10 GiB.
    pub columnar_bytes: usize,
}

impl TanadaOptions {
    /// Whether exactly one I/O may be outstanding.
    pub(crate) fn is_in_order(&self) -> bool {
        self.execution == Execution::InOrder
    }

    /// How texts compare that name no collation, with the server's defaults.
    pub(crate) fn connection(&self) -> Connection {
        match self.is_newer_mariadb {
            true => Connection::of_mariadb_11(),
            false => Connection::new(self.server),
        }
    }

    /// Most bytes of a result of GROUP_CONCAT.
    pub(crate) fn group_concat_bytes(&self) -> usize {
        match (self.group_concat_max_len, self.server) {
            (0, Server::MySql) => 1 << 10,
            (0, Server::MariaDb) => 1 << 20,
            (bytes, _) => bytes,
        }
    }
}

impl Default for TanadaOptions {
    fn default() -> Self {
        TanadaOptions {
            execution: Execution::OutOfOrder,
            io_depth: 0,
            io_bytes: 64 << 20,
            lookup_join: Choice::Auto,
            sort_merge_join: Choice::Auto,
            index_scan: Choice::Auto,
            lookup_memory_bytes: 64 << 20,
            skip_damaged: false,
            placement: "benefit".to_string(),
            placement_bytes_per_second: 0,
            server: Server::MySql,
            is_newer_mariadb: false,
            group_concat_max_len: 0,
            spill: String::new(),
            spill_bytes: 0,
            columnar: ColumnarUse::Auto,
            columnar_bytes: 10 << 30,
        }
    }
}

/// The servers as the setting spells them, and whether they are MariaDB 11.5 or later.
const SERVERS: [(&str, (Server, bool)); 3] = [
    ("mysql", (Server::MySql, false)),
    ("mariadb", (Server::MariaDb, false)),
    (NEWER, (Server::MariaDb, true)),
];

const NEWER: &str = "mariadb-11.8";

/// The server as the setting spells it.
pub(crate) fn server_name(server: Server, is_newer_mariadb: bool) -> &'static str {
    match server {
        Server::MySql => "mysql",
        Server::MariaDb if is_newer_mariadb => NEWER,
        Server::MariaDb => "mariadb",
    }
}

const COLUMNAR_DESCRIPTION: &str =
    "auto (default), always or off: whether scans read columnar mirrors, where such are kept";

impl ConfigExtension for TanadaOptions {
    const PREFIX: &'static str = "tanada";
}

impl ExtensionOptions for TanadaOptions {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn cloned(&self) -> Box<dyn ExtensionOptions> {
        Box::new(self.clone())
    }

    fn set(&mut self, key: &str, value: &str) -> DataFusionResult<()> {
        match key {
            "execution" => {
                self.execution = one_of(
                    key,
                    value,
                    &[("out_of_order", Execution::OutOfOrder), ("in_order", Execution::InOrder)],
                )?;
            }
            "io_depth" => self.io_depth = bounded(key, value, 0, 65_536)?,
            "io_bytes" => self.io_bytes = bounded(key, value, 1 << 20, 1 << 40)?,
            "lookup_join" => self.lookup_join = choice(key, value)?,
            "sort_merge_join" => self.sort_merge_join = choice(key, value)?,
            "index_scan" => self.index_scan = choice(key, value)?,
            "lookup_memory_bytes" => self.lookup_memory_bytes = bounded(key, value, 1 << 20, 1 << 40)?,
            "skip_damaged" => self.skip_damaged = switch(key, value)?,
            "placement" => self.placement = policy_name(key, value)?,
            "placement_bytes_per_second" => {
                self.placement_bytes_per_second = bytes(key, value, 1 << 40)?;
            }
            "server" => {
                (self.server, self.is_newer_mariadb) = one_of(key, value, &SERVERS)?;
            }
            "group_concat_max_len" => {
                self.group_concat_max_len = bounded(key, value, 0, 1 << 40)?;
            }
            "spill" => self.spill = value.to_string(),
            "spill_bytes" => self.spill_bytes = bytes(key, value, 1 << 50)?,
            "columnar" => {
                self.columnar = one_of(
                    key,
                    value,
                    &[
                        ("auto", ColumnarUse::Auto),
                        ("always", ColumnarUse::Always),
                        ("off", ColumnarUse::Off),
                    ],
                )?;
            }
            "columnar_bytes" => self.columnar_bytes = bytes(key, value, 1 << 50)?,
            _ => return Err(wrong(format!("unknown setting 'tanada.{key}'; known are {}", names()))),
        }
        Ok(())
    }

    fn entries(&self) -> Vec<ConfigEntry> {
        let entry = |key: &str, value: String, description: &'static str| ConfigEntry {
            key: format!("{}.{key}", Self::PREFIX),
            value: Some(value),
            description,
        };
        vec![
            entry(
                "execution",
                self.execution.to_string(),
                "out_of_order (default) or in_order: one I/O at a time",
            ),
            entry(
                "io_depth",
                self.io_depth.to_string(),
                "most I/Os in flight for a query; 0 (default) adapts",
            ),
            entry("io_bytes", self.io_bytes.to_string(), "most bytes in flight for a query; default 64 MiB"),
            entry(
                "lookup_join",
                self.lookup_join.to_string(),
                "auto (default), always or never: joins by index look-up",
            ),
            entry(
                "sort_merge_join",
                self.sort_merge_join.to_string(),
                "auto (default: where a hash table would not fit), always or never: joins of sorted inputs",
            ),
            entry(
                "index_scan",
                self.index_scan.to_string(),
                "auto (default), always or never: ranges of an index",
            ),
            entry(
                "lookup_memory_bytes",
                self.lookup_memory_bytes.to_string(),
                "memory of look-up joins; default 64 MiB",
            ),
            entry(
                "skip_damaged",
                self.skip_damaged.to_string(),
                "false (default) or true: scans leave damaged pages out and list them",
            ),
            entry(
                "placement",
                self.placement.clone(),
                "benefit (default), off, or another policy: places chunks of volumes before queries read them",
            ),
            entry(
                "placement_bytes_per_second",
                self.placement_bytes_per_second.to_string(),
                "most bytes that placement copies a second; 0 (default) is no limit",
            ),
            entry(
                "server",
                server_name(self.server, self.is_newer_mariadb).to_owned(),
                "mysql, mariadb or mariadb-11.8: whose rules expressions follow; set by the first mount",
            ),
            entry(
                "group_concat_max_len",
                self.group_concat_max_len.to_string(),
                "most bytes of a GROUP_CONCAT; 0 (default) is the server's default",
            ),
            entry(
                "spill",
                self.spill.clone(),
                "where operators spill: a folder, or volume:PATH[:CLASS]; empty (default) is that for temporary files",
            ),
            entry(
                "spill_bytes",
                self.spill_bytes.to_string(),
                "most bytes of spills at once; 0 (default) is nine tenths of what is free",
            ),
            entry("columnar", self.columnar.to_string(), COLUMNAR_DESCRIPTION),
            entry("columnar_bytes", self.columnar_bytes.to_string(), "most bytes of mirrors; default 10 GiB"),
        ]
    }
}

fn names() -> String {
    let names: Vec<String> = TanadaOptions::default().entries().into_iter().map(|entry| entry.key).collect();
    names.join(", ")
}

fn wrong(message: String) -> DataFusionError {
    DataFusionError::Configuration(message)
}

/// A policy that can place chunks of a volume, with its options.
fn policy_name(key: &str, value: &str) -> DataFusionResult<String> {
    let value = value.trim().to_ascii_lowercase();
    let name = value.split(':').next().unwrap_or_default().trim();
    let names: Vec<&str> = POLICIES.iter().map(|registered| registered.name).collect();
    if !names.contains(&name) {
        let names = names.join(", ");
        return Err(wrong(format!(
            "tanada.{key} cannot be '{value}', which is no policy for volumes (others are for tanada simulate); use {names}"
        )));
    }
    tanada_placement::policy(&value, 0).map_err(|error| wrong(format!("tanada.{key}: {error}")))?;
    Ok(value)
}

fn one_of<T: Copy>(key: &str, value: &str, allowed: &[(&str, T)]) -> DataFusionResult<T> {
    let found = allowed.iter().find(|(name, _)| name.eq_ignore_ascii_case(value));
    found.map(|(_, choice)| *choice).ok_or_else(|| {
        let names: Vec<String> = allowed.iter().map(|(name, _)| format!("'{name}'")).collect();
        wrong(format!("tanada.{key} cannot be '{value}'; use {}", names.join(" or ")))
    })
}

fn choice(key: &str, value: &str) -> DataFusionResult<Choice> {
    one_of(key, value, &[("auto", Choice::Auto), ("always", Choice::Always), ("never", Choice::Never)])
}

fn switch(key: &str, value: &str) -> DataFusionResult<bool> {
    one_of(
        key,
        value,
        &[("true", true), ("false", false), ("on", true), ("off", false), ("1", true), ("0", false)],
    )
}

fn bounded(key: &str, value: &str, least: usize, most: usize) -> DataFusionResult<usize> {
    let number = value.trim().parse::<usize>().ok().filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| {
        wrong(format!("tanada.{key} cannot be '{value}'; use a number from {least} to {most}"))
    })
}

/// A size, as a number of bytes or with a unit.
fn bytes(key: &str, value: &str, most: usize) -> DataFusionResult<usize> {
    let size = value.trim().parse::<ByteSize>().ok().map(ByteSize::as_usize).filter(|size| *size <= most);
    size.ok_or_else(|| {
        let most = ByteSize::new(most as u64);
        wrong(format!("tanada.{key} cannot be '{value}'; use a size like 20MB, from 0 to {most}"))
    })
}

impl std::fmt::Display for Execution {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Execution::OutOfOrder => "out_of_order",
            Execution::InOrder => "in_order",
        })
    }
}

impl std::fmt::Display for ColumnarUse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            ColumnarUse::Auto => "auto",
            ColumnarUse::Always => "always",
            ColumnarUse::Off => "off",
        })
    }
}

impl std::fmt::Display for Choice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Choice::Auto => "auto",
            Choice::Always => "always",
            Choice::Never => "never",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_what_the_documentation_says() {
        let texts: Vec<(String, Option<String>)> =
            TanadaOptions::default().entries().into_iter().map(|entry| (entry.key, entry.value)).collect();
        let expected = [
            ("tanada.execution", "out_of_order"),
            ("tanada.io_depth", "0"),
            ("tanada.io_bytes", "67108864"),
            ("tanada.lookup_join", "auto"),
            ("tanada.sort_merge_join", "auto"),
            ("tanada.index_scan", "auto"),
            ("tanada.lookup_memory_bytes", "67108864"),
            ("tanada.skip_damaged", "false"),
            ("tanada.placement", "benefit"),
            ("tanada.placement_bytes_per_second", "0"),
            ("tanada.server", "mysql"),
            ("tanada.group_concat_max_len", "0"),
            ("tanada.spill", ""),
            ("tanada.spill_bytes", "0"),
            ("tanada.columnar", "auto"),
            ("tanada.columnar_bytes", "10737418240"),
        ];
        assert_eq!(texts, expected.map(|(key, value)| (key.to_string(), Some(value.to_string()))));
    }

    #[test]
    fn each_setting_is_read_back() {
        let mut options = TanadaOptions::default();
        for (key, value) in [
            ("execution", "in_order"),
            ("io_depth", "64"),
            ("lookup_join", "never"),
            ("index_scan", "always"),
            ("skip_damaged", "true"),
            ("columnar", "off"),
            ("server", "mariadb"),
        ] {
            options.set(key, value).unwrap();
            let entry =
                options.entries().into_iter().find(|entry| entry.key == format!("tanada.{key}")).unwrap();
            assert_eq!(entry.value.as_deref(), Some(value));
        }
    }

    #[test]
    fn bytes_a_second_are_a_number_or_a_size() {
        let mut options = TanadaOptions::default();
        for (value, bytes) in [("8388608", 8 << 20), ("1MiB", 1 << 20), ("2 MB", 2_000_000), ("0", 0)] {
            options.set("placement_bytes_per_second", value).unwrap();
            assert_eq!(options.placement_bytes_per_second, bytes, "{value}");
        }
        for value in ["", "fast", "-1", "2TiB"] {
            let error = options.set("placement_bytes_per_second", value).unwrap_err().to_string();
            assert!(error.contains("use a size like 20MB, from 0 to 1 TiB"), "{error}");
        }
    }

    #[test]
    fn wrong_values_name_the_right_ones() {
        let mut options = TanadaOptions::default();
        let error = options.set("execution", "sideways").unwrap_err().to_string();
        assert!(
            error.contains("tanada.execution cannot be 'sideways'; use 'out_of_order' or 'in_order'"),
            "{error}"
        );
        let error = options.set("io_depth", "-1").unwrap_err().to_string();
        assert!(error.contains("use a number from 0 to 65536"), "{error}");
        let error = options.set("depth", "1").unwrap_err().to_string();
        assert!(error.contains("known are tanada.execution, tanada.io_depth"), "{error}");
        assert_eq!(options, TanadaOptions::default());
    }
}
