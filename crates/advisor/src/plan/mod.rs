//! What servers answer to `EXPLAIN`, as accesses. No module here asks a server: each takes an answer apart.
//!
//! - [`blocks`]: the `query_block` of MariaDB and of MySQL's JSON format 1;
//! - [`iterators`]: the `query_plan` of MySQL's JSON format 2;
//! - [`aliases`]: which tables the names in a `query_block` stand for, from the statement as the server rewrote it;
//! - [`postgres`]: plans of PostgreSQL;
//! - [`program`]: the programs of SQLite.

pub mod aliases;
pub mod blocks;
pub mod iterators;
pub mod postgres;
pub mod program;

use serde_json::Value;

use crate::{Error, PlannedAccess, Result};

/// Levels of an answer that are followed.
const MAX_DEPTH: u32 = 200;

/// The accesses in an answer of MySQL or MariaDB in JSON, whichever format it has. `rewritten` is the statement as the
/// server rewrote it.
///
/// # Errors
/// If it has neither of the known formats.
pub fn mysql(answer: &str, rewritten: &str, database: Option<&str>) -> Result<Vec<PlannedAccess>> {
    let plan = parse(answer)?;
    if let Some(block) = plan.get("query_block") {
        return blocks::accesses(block, &aliases::aliases(rewritten), database);
    }
    match plan.get("query_plan") {
        Some(tree) => iterators::accesses(tree),
        None => Err(Error::protocol("the server's EXPLAIN has neither a query_block nor a query_plan")),
    }
}

fn parse(answer: &str) -> Result<Value> {
    serde_json::from_str(answer)
        .map_err(|error| Error::protocol(format!("the server's EXPLAIN is no JSON: {error}")))
}

/// A number, also one that is spelt as text.
fn number(value: &Value, key: &str) -> Option<f64> {
    let value = value.get(key)?;
    value.as_f64().or_else(|| value.as_str()?.trim().parse().ok()).filter(|number| *number >= 0.0)
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key)?.as_str()
}

fn is_true(value: &Value, key: &str) -> bool {
    value.get(key).is_some_and(|value| value.as_bool().unwrap_or(value.as_u64() == Some(1)))
}

fn too_deep() -> Error {
    Error::protocol("the server's EXPLAIN is nested too deeply")
}
