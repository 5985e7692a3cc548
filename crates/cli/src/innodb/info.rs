//! `tanada innodb info`.

use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use serde::Serialize;
use tanada_innodb::{Catalog, Environment, IndexFacts, MountOptions, PageCache, RowFormat, TableFacts};
use tanada_io::{Executors, Gate, GateLimits, IoContext, Method};
use tanada_report::Table as TextTable;

use crate::failure::{Failure, Outcome, one_line};
use crate::output::{OutputArguments, count, size};

/// The descriptors and inner nodes of one table fit many times.
const CACHE_BYTES: u64 = 64 << 20;

/// Arguments of `tanada innodb info`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tanada innodb info /var/lib/mysql                  # all tables of a server that was shut down
  tanada innodb info backup/ --table shop.orders
  tanada innodb info shop/orders.ibd --json

Rows are estimated from a sample. An index is out of order by the share of its leaves that do not lie right before the next one by key:
a scan in key order then jumps.")]
pub struct InfoArguments {
    /// A data directory, a database folder in one, or an .ibd file
    #[arg(value_name = "DIR")]
    path: PathBuf,
    /// Only this table, or all of a database; may be repeated
    #[arg(long = "table", value_name = "DATABASE[.TABLE]")]
    tables: Vec<String>,
    /// A file with SHOW CREATE TABLE output, for tables without SDI or .frm; may be repeated
    #[arg(long, value_name = "FILE")]
    ddl: Vec<PathBuf>,
    /// Where files outside of the data directory are now; may be repeated
    #[arg(long, value_name = "OLD=NEW", value_parser = crate::options::path_pair)]
    path_map: Vec<(PathBuf, PathBuf)>,
    /// Read files although the server did not shut down cleanly
    #[arg(long)]
    allow_stale: bool,
    #[command(flatten)]
    output: OutputArguments,
}

#[derive(Debug, Serialize)]
struct Described {
    database: String,
    table: String,
    /// Why nothing else is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(flatten)]
    facts: Option<Facts>,
}

#[derive(Debug, Serialize)]
struct Facts {
    row_format: &'static str,
    page_bytes: u32,
    files: usize,
    rows: u64,
    rows_exact: bool,
    row_bytes: f64,
    file_bytes: u64,
    free_bytes: u64,
    other_bytes: u64,
    compressed_share: f64,
    indexes: Vec<Index>,
}

#[derive(Debug, Serialize)]
struct Index {
    name: String,
    clustered: bool,
    height: u32,
    leaf_pages: u64,
    inner_pages: u64,
    off_page_pages: u64,
    reserved_pages: u64,
    used_bytes: u64,
    allocated_bytes: u64,
    /// Share of the leaves whose neighbour by key is not their neighbour in the file; none where leaves were not
    /// followed.
    out_of_order: Option<f64>,
}

/// Files are read through a small cache of their own.
pub fn environment(executors: Arc<Executors>) -> Arc<Environment> {
    Arc::new(Environment::new(executors, PageCache::new(CACHE_BYTES), Method::Uring, true))
}

/// Describes what was asked for; a table that cannot be read is said, and the others described.
pub async fn run(environment: Arc<Environment>, arguments: InfoArguments) -> Outcome {
    let options = MountOptions {
        allow_stale: arguments.allow_stale,
        ddl: arguments.ddl.clone(),
        path_map: arguments.path_map.clone(),
    };
    let catalog = Catalog::open(&arguments.path, &options, &environment).await.map_err(Failure::failed)?;
    for warning in catalog.warnings() {
        eprintln!("tanada: warning: {}", one_line(&warning));
    }
    let wanted = wanted(&catalog, &arguments.tables)?;
    let context = IoContext::new(Gate::new(GateLimits::default()));
    let mut described = Vec::with_capacity(wanted.len());
    for (database, table) in wanted {
        let facts = match catalog.table(&database, &table).await {
            Ok(opened) => opened.facts(&context).await.map(|(facts, _)| Facts::from(facts)),
            Err(error) => Err(error),
        };
        let (facts, error) = match facts {
            Ok(facts) => (Some(facts), None),
            Err(error) => (None, Some(one_line(&error.to_string()))),
        };
        described.push(Described { database, table, error, facts });
    }
    arguments.output.print(&described, |described| text(described))?;
    match described.iter().filter(|table| table.error.is_some()).count() {
        0 => Ok(()),
        unreadable => Err(Failure::failed(format!(
            "{} of {} cannot be read; see above",
            unreadable,
            count(described.len() as u64, "table")
        ))),
    }
}

/// Databases and tables, in order; of `names` or all.
fn wanted(catalog: &Catalog, names: &[String]) -> Outcome<Vec<(String, String)>> {
    let mut all = Vec::new();
    for database in catalog.databases() {
        all.extend(catalog.tables(&database).into_iter().map(|table| (database.clone(), table)));
    }
    if names.is_empty() {
        return Ok(all);
    }
    let is_meant = |name: &str, (database, table): &(String, String)| {
        name == database
            || name.strip_prefix(database.as_str()).and_then(|rest| rest.strip_prefix('.')) == Some(table)
    };
    for name in names {
        if !all.iter().any(|entry| is_meant(name, entry)) {
            return Err(Failure::failed(format!(
                "no table '{name}'; write DATABASE or DATABASE.TABLE of {}",
                catalog.databases().join(", ")
            )));
        }
    }
    Ok(all.into_iter().filter(|entry| names.iter().any(|name| is_meant(name, entry))).collect())
}

impl From<TableFacts> for Facts {
    fn from(facts: TableFacts) -> Facts {
        let page_bytes = facts.page_size.0;
        let bytes = |pages: u64| pages * u64::from(page_bytes);
        Facts {
            row_format: match facts.row_format {
                RowFormat::Redundant => "REDUNDANT",
                RowFormat::Compact => "COMPACT",
                RowFormat::Dynamic => "DYNAMIC",
                RowFormat::Compressed => "COMPRESSED",
            },
            page_bytes,
            files: facts.partitions,
            rows: facts.rows,
            rows_exact: facts.rows_exact,
            row_bytes: facts.row_bytes,
            file_bytes: bytes(facts.pages),
            free_bytes: bytes(facts.free_pages),
            other_bytes: bytes(facts.other_pages),
            compressed_share: facts.compressed_share,
            indexes: facts.indexes.iter().map(|index| Index::new(index, page_bytes)).collect(),
        }
    }
}

impl Index {
    fn new(index: &IndexFacts, page_bytes: u32) -> Index {
        let out_of_order = index.steps.map(|steps| match steps.all {
            0 => 0.0,
            all => 1.0 - steps.to_neighbour as f64 / all as f64,
        });
        Index {
            name: index.name.clone(),
            clustered: index.clustered,
            height: index.height,
            leaf_pages: index.leaf_pages,
            inner_pages: index.inner_pages,
            off_page_pages: index.off_page_pages,
            reserved_pages: index.reserved_pages,
            used_bytes: index.used_pages() * u64::from(page_bytes),
            allocated_bytes: index.allocated_pages() * u64::from(page_bytes),
            out_of_order,
        }
    }
}

fn text(described: &[Described]) -> String {
    let mut text = String::new();
    for table in described {
        let Some(facts) = &table.facts else {
            let error = table.error.as_deref().unwrap_or_default();
            let _ = writeln!(text, "{}.{}: {error}\n", table.database, table.table);
            continue;
        };
        let rows = format!("{}{} rows", if facts.rows_exact { "" } else { "about " }, facts.rows);
        let _ = writeln!(
            text,
            "{}.{}: {}, pages of {}, {rows} of {:.0} bytes, {} in {}, {} free",
            table.database,
            table.table,
            facts.row_format,
            size(facts.page_bytes.into()),
            facts.row_bytes,
            size(facts.file_bytes),
            count(facts.files as u64, "file"),
            size(facts.free_bytes),
        );
        if facts.compressed_share > 0.0 {
            let _ = writeln!(
                text,
                "page compression: {:.0} % of the leaves sampled",
                facts.compressed_share * 100.0
            );
        }
        let mut indexes = TextTable::new(&[
            "index",
            "height",
            "leaves",
            "inner",
            "off-page",
            "used",
            "allocated",
            "out of order",
        ]);
        for index in &facts.indexes {
            indexes.add(vec![
                index.name.clone(),
                index.height.to_string(),
                index.leaf_pages.to_string(),
                index.inner_pages.to_string(),
                index.off_page_pages.to_string(),
                size(index.used_bytes),
                size(index.allocated_bytes),
                index.out_of_order.map_or_else(String::new, |share| format!("{:.0} %", share * 100.0)),
            ]);
        }
        let _ = writeln!(text, "{indexes}");
    }
    text
}
