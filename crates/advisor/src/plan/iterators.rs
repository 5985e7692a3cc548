//! The `query_plan` of MySQL's JSON format 2: a tree of iterators, each with its inputs.
//!
//! It tells the table and its schema beside the alias, and rows for each time that an iterator is run. It does not tell
//! partitions, nor tables that were read while the statement was planned.

use serde_json::Value;

use super::{MAX_DEPTH, is_true, number, text, too_deep};
use crate::{AccessKind, Error, PlannedAccess, Result};

/// The accesses of a `query_plan`.
///
/// # Errors
/// If the server says that it has no iterators for the statement, or the tree is nested too deeply.
pub fn accesses(plan: &Value) -> Result<Vec<PlannedAccess>> {
    if text(plan, "operation").is_some_and(|operation| operation.starts_with("<not executable")) {
        return Err(Error::protocol("the server does not explain this statement in JSON format 2"));
    }
    let mut found = Vec::new();
    visit(plan, 1.0, 0, 0, &mut found)?;
    Ok(found)
}

/// Adds what `node` reads when it is run `loops` times from `stage` on; the last stage in it.
fn visit(node: &Value, loops: f64, stage: u32, depth: u32, found: &mut Vec<PlannedAccess>) -> Result<u32> {
    if depth > MAX_DEPTH {
        return Err(too_deep());
    }
    let none = Vec::new();
    let inputs = node.get("inputs").and_then(Value::as_array).unwrap_or(&none);
    let is_run_once = |input: &Value| is_true(input, "subquery") && is_true(input, "cacheable");
    let mut stage = stage;
    for input in inputs.iter().filter(|input| is_run_once(input)) {
        stage = visit(input, 1.0, stage, depth + 1, found)? + 1;
    }
    let (is_join, is_nested) =
        (text(node, "access_type") == Some("join"), text(node, "join_algorithm") == Some("nested_loop"));
    let materializes = matches!(text(node, "access_type"), Some("materialize"));
    let mut inner_loops = if materializes { 1.0 } else { loops };
    let mut last = stage;
    for (no, input) in inputs.iter().filter(|input| !is_run_once(input)).enumerate() {
        // A hash join reads what it hashes, its last input, before the first.
        let begins = if is_join && !is_nested && no == 0 { stage + 1 } else { stage };
        last = last.max(visit(input, inner_loops, begins, depth + 1, found)?);
        if is_join && is_nested && no == 0 {
            inner_loops *= number(input, "estimated_rows").unwrap_or(1.0);
        }
    }
    if materializes {
        last += 1;
    }
    found.extend(access(node, loops, last));
    Ok(last)
}

fn access(node: &Value, loops: f64, stage: u32) -> Option<PlannedAccess> {
    // Temporary tables have no schema.
    let (database, table) = (text(node, "schema_name")?, text(node, "table_name")?);
    let (kind, index) = match text(node, "access_type")? {
        "table" => (AccessKind::FullScan, None),
        "index" => {
            let kind = match text(node, "index_access_type")? {
                "index_scan" => AccessKind::IndexScan,
                "index_lookup" | "pushed_join_ref" => AccessKind::LookUp,
                "full_text_search" => return None,
                _ => AccessKind::Range,
            };
            (kind, text(node, "index_name").map(str::to_owned))
        }
        _ => return None,
    };
    Some(PlannedAccess {
        database: database.to_owned(),
        table: table.to_owned(),
        index,
        kind,
        rows: number(node, "estimated_rows"),
        loops,
        is_covering: is_true(node, "covering"),
        partitions: None,
        stage,
    })
}
