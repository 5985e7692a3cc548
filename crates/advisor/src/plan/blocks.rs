//! The `query_block` of MariaDB and of MySQL's JSON format 1.
//!
//! 1. An object with `table_name` and `access_type` is a table; all other objects and lists are only gone through, so
//!    what a later version wraps around a table is followed as well.
//! 2. The tables of a `nested_loop` are read once for each row that those before give: `rows_produced_per_join`
//!    (MySQL), `loops` (MariaDB 11), else the product of rows and filters. What is joined by a buffer or a hash is read
//!    once.
//! 3. What is materialized, and subqueries that do not depend on rows, come in a stage of their own, before.

use serde_json::Value;

use super::aliases::Aliases;
use super::{MAX_DEPTH, is_true, number, text, too_deep};
use crate::{AccessKind, PlannedAccess, Result};

/// Keys below which a block is computed before what holds it.
const BEFORE: [&str; 7] = [
    "materialized",
    "materialized_from_subquery",
    "attached_subqueries",
    "subqueries",
    "having_subqueries",
    "select_list_subqueries",
    "optimized_away_subqueries",
];

/// Keys whose objects tell of no reads.
const NO_READS: [&str; 5] = ["cost_info", "index_merge", "sorts", "rowid_filter", "r_engine_stats"];

struct Walk<'a> {
    aliases: &'a Aliases,
    database: Option<&'a str>,
    found: Vec<PlannedAccess>,
    stage: u32,
}

/// The accesses of a `query_block`.
///
/// # Errors
/// If it is nested too deeply.
pub fn accesses(block: &Value, aliases: &Aliases, database: Option<&str>) -> Result<Vec<PlannedAccess>> {
    let mut walk = Walk { aliases, database, found: Vec::new(), stage: 0 };
    walk.visit(block, 1.0, 0)?;
    Ok(walk.found)
}

impl Walk<'_> {
    /// Goes through what is read `loops` times; the rows that it gives in all.
    fn visit(&mut self, value: &Value, loops: f64, depth: u32) -> Result<f64> {
        if depth > MAX_DEPTH {
            return Err(too_deep());
        }
        match value {
            Value::Array(items) => {
                let mut rows = loops;
                for item in items {
                    rows = rows.max(self.visit(item, loops, depth + 1)?);
                }
                Ok(rows)
            }
            Value::Object(fields) => {
                self.visit_before(value, loops, depth)?;
                if value.get("table_name").is_some() && value.get("query_specifications").is_none() {
                    return Ok(self.table(value, loops));
                }
                let mut rows = loops;
                for (key, field) in fields {
                    if BEFORE.contains(&key.as_str()) || NO_READS.contains(&key.as_str()) {
                        continue;
                    }
                    rows = match (key.as_str(), field) {
                        ("nested_loop", Value::Array(tables)) => self.nested_loop(tables, loops, depth)?,
                        // Its block is read once for each filling of its buffer.
                        ("block-nl-join", _) => loops.max(self.visit(field, 1.0, depth + 1)?),
                        ("query_specifications", Value::Array(blocks)) => {
                            for block in blocks {
                                self.visit(block, loops, depth + 1)?;
                                self.stage += 1;
                            }
                            rows
                        }
                        _ => rows.max(self.visit(field, loops, depth + 1)?),
                    };
                }
                Ok(rows)
            }
            _ => Ok(loops),
        }
    }

    /// What is computed before.
    fn visit_before(&mut self, value: &Value, loops: f64, depth: u32) -> Result<()> {
        for field in BEFORE.iter().filter_map(|key| value.get(key)) {
            let depends = |block: &Value| is_true(block, "dependent") || is_true(block, "lateral");
            let blocks = match field {
                Value::Array(blocks) => blocks.iter().collect(),
                block => vec![block],
            };
            for block in blocks {
                let before = self.found.len();
                self.visit(block, if depends(block) { loops } else { 1.0 }, depth + 1)?;
                if self.found.len() > before && !depends(block) {
                    self.stage += 1;
                }
            }
        }
        Ok(())
    }

    fn nested_loop(&mut self, tables: &[Value], loops: f64, depth: u32) -> Result<f64> {
        // What is materialized is there before the first row.
        for table in tables.iter().filter_map(|entry| entry.get("table")) {
            let depends = table.get("materialized").is_some_and(|block| is_true(block, "lateral"));
            if !depends {
                self.visit_before(table, loops, depth + 1)?;
            }
        }
        let mut rows = loops;
        for entry in tables {
            rows = match entry.get("table") {
                Some(table) => {
                    if table.get("materialized").is_some_and(|block| is_true(block, "lateral")) {
                        self.visit_before(table, rows, depth + 1)?;
                    }
                    self.table(table, rows)
                }
                None => self.visit(entry, rows, depth + 1)?,
            };
        }
        Ok(rows)
    }

    /// Notes the access to a table that is read `loops` times; the rows that it and those before give.
    fn table(&mut self, table: &Value, loops: f64) -> f64 {
        let rows = number(table, "rows_examined_per_scan").or_else(|| number(table, "rows"));
        let loops = number(table, "loops").unwrap_or(loops);
        let is_buffered = table.get("using_join_buffer").is_some();
        let produced = number(table, "rows_produced_per_join").unwrap_or_else(|| {
            let passes = number(table, "filtered").unwrap_or(100.0) / 100.0;
            loops * rows.unwrap_or(1.0) * passes
        });
        let produced = if table.get("first_match").is_some() { produced.min(loops) } else { produced };
        let (Some(name), Some(kind)) =
            (text(table, "table_name"), text(table, "access_type").and_then(kind_of))
        else {
            return produced;
        };
        // What is inserted into is not read, and what has such a name is a temporary table.
        if is_true(table, "insert")
            || is_true(table, "replace")
            || name.starts_with('<')
            || is_temporary(table)
        {
            return produced;
        }
        let (database, table_name) = match self.aliases.get(name) {
            Some((database, table)) => (database.clone(), table.clone()),
            // The rewritten statement names all tables: this is a common table expression that names itself.
            None if !self.aliases.is_empty() => return produced,
            None => (self.database.unwrap_or_default().to_owned(), name.to_owned()),
        };
        let partitions = table
            .get("partitions")
            .and_then(Value::as_array)
            .map(|names| names.iter().filter_map(Value::as_str).map(str::to_owned).collect());
        let is_covering = ["using_index", "using_index_for_group_by", "using_index_for_skip_scan"]
            .iter()
            .any(|key| table.get(key).is_some_and(|value| value != &Value::Bool(false)));
        let access = |index: Option<String>, share: f64| PlannedAccess {
            database: database.clone(),
            table: table_name.clone(),
            index,
            kind,
            rows: rows.map(|rows| rows * share),
            loops: if is_buffered { 1.0 } else { loops },
            is_covering,
            partitions: partitions.clone(),
            stage: self.stage,
        };
        let keys = keys_of(table);
        let found: Vec<PlannedAccess> = match (kind, keys.as_slice()) {
            (AccessKind::FullScan, _) | (_, []) => vec![access(None, 1.0)],
            (_, keys) => keys.iter().map(|key| access(Some(key.clone()), 1.0 / keys.len() as f64)).collect(),
        };
        self.found.extend(found);
        produced
    }
}

/// Whether it has no rows in a file: a block is materialized into it.
fn is_temporary(table: &Value) -> bool {
    table.get("materialized").is_some()
        || table.get("materialized_from_subquery").is_some()
        || text(table, "key").is_some_and(|key| key.starts_with('<'))
}

fn kind_of(access_type: &str) -> Option<AccessKind> {
    Some(match access_type {
        "ALL" => AccessKind::FullScan,
        "index" => AccessKind::IndexScan,
        "range" | "index_merge" => AccessKind::Range,
        "ref" | "eq_ref" | "ref_or_null" | "const" | "system" | "unique_subquery" | "index_subquery" => {
            AccessKind::LookUp
        }
        // `hash_ALL` and the like: by a hash over the scan that follows the prefix.
        other => return other.strip_prefix("hash_").and_then(kind_of),
    })
}

/// The indexes that are read; several where their results are merged.
fn keys_of(table: &Value) -> Vec<String> {
    let mut keys = Vec::new();
    if let Some(merged) = table.get("index_merge") {
        keys_within(merged, 0, &mut keys);
    } else if let Some(key) = text(table, "key") {
        // MySQL: `union(a,intersect(b,c))`; MariaDB writes `#hash#a:b` where it hashes.
        let inner = ["union(", "sort_union(", "intersect("].iter().any(|begin| key.starts_with(begin));
        match inner {
            true => keys.extend(
                key.split(['(', ')', ','])
                    .filter(|part| !["", "union", "sort_union", "intersect"].contains(part))
                    .map(str::to_owned),
            ),
            false => {
                keys.extend(key.rsplit(':').next().filter(|key| !key.starts_with('#')).map(str::to_owned))
            }
        }
    }
    keys
}

fn keys_within(value: &Value, depth: u32, keys: &mut Vec<String>) {
    if depth > MAX_DEPTH {
        return;
    }
    match value {
        Value::Array(items) => items.iter().for_each(|item| keys_within(item, depth + 1, keys)),
        Value::Object(fields) => {
            keys.extend(text(value, "key").map(str::to_owned));
            fields.values().for_each(|field| keys_within(field, depth + 1, keys));
        }
        _ => {}
    }
}
