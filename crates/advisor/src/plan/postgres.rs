//! Plans of PostgreSQL, by `EXPLAIN (VERBOSE, FORMAT JSON)`.
//!
//! 1. `Plan Rows` are those of one run of a node. The inner side of a nested loop runs once for each row of the outer
//!    one, a `SubPlan` once for each row of the node that has it, an `InitPlan` once, before.
//! 2. A bitmap index scan names its index alone; its table is that of the bitmap heap scan above.
//! 3. A hash is built before the other side of its join is read.

use serde_json::Value;

use super::{MAX_DEPTH, number, parse, text, too_deep};
use crate::{AccessKind, Error, PlannedAccess, Result};

/// The accesses in an answer.
///
/// # Errors
/// If it is no plan in JSON, or nested too deeply.
pub fn accesses(answer: &str) -> Result<Vec<PlannedAccess>> {
    let answer = parse(answer)?;
    let plan = answer.get(0).and_then(|first| first.get("Plan"));
    let plan = plan.ok_or_else(|| Error::protocol("the server's EXPLAIN has no Plan"))?;
    let mut found = Vec::new();
    visit(plan, Place { loops: 1.0, stage: 0, depth: 0, heap: None }, &mut found)?;
    Ok(found)
}

#[derive(Clone, Copy)]
struct Place<'a> {
    loops: f64,
    stage: u32,
    depth: u32,
    /// The bitmap heap scan above.
    heap: Option<&'a Value>,
}

/// Adds what `node` reads; the last stage in it.
fn visit<'a>(node: &'a Value, place: Place<'a>, found: &mut Vec<PlannedAccess>) -> Result<u32> {
    if place.depth > MAX_DEPTH {
        return Err(too_deep());
    }
    let none = Vec::new();
    let children = node.get("Plans").and_then(Value::as_array).unwrap_or(&none);
    let kind = text(node, "Node Type").unwrap_or_default();
    let relationship = |child: &Value| text(child, "Parent Relationship").unwrap_or_default().to_owned();
    let heap = if kind.ends_with("Bitmap Heap Scan") {
        Some(node)
    } else if kind.starts_with("Bitmap") {
        place.heap
    } else {
        None
    };
    let below = Place { depth: place.depth + 1, heap, ..place };
    let mut stage = place.stage;
    for child in children.iter().filter(|child| relationship(child) == "InitPlan") {
        stage = visit(child, Place { loops: 1.0, stage, ..below }, found)? + 1;
    }
    // Hashes come first.
    let builds = |child: &&Value| relationship(child) == "Inner" && text(child, "Node Type") == Some("Hash");
    let mut outer_stage = stage;
    for child in children.iter().filter(builds) {
        outer_stage = outer_stage.max(visit(child, Place { stage, ..below }, found)? + 1);
    }
    let mut last = outer_stage;
    let is_nested = kind == "Nested Loop";
    let outer_rows = children.iter().find(|child| relationship(child) == "Outer");
    let outer_rows = outer_rows.and_then(|child| number(child, "Plan Rows")).unwrap_or(1.0);
    for child in children.iter().filter(|child| !builds(child)) {
        let loops = match relationship(child).as_str() {
            "InitPlan" => continue,
            "Inner" if is_nested => place.loops * outer_rows.max(1.0),
            "SubPlan" => place.loops * number(node, "Plan Rows").unwrap_or(1.0).max(1.0),
            _ => place.loops,
        };
        last = last.max(visit(child, Place { loops, stage: outer_stage, ..below }, found)?);
    }
    found.extend(access(node, kind, place, outer_stage));
    Ok(last)
}

fn access(node: &Value, kind: &str, place: Place<'_>, stage: u32) -> Option<PlannedAccess> {
    let named = if kind == "Bitmap Index Scan" { place.heap? } else { node };
    let table = text(named, "Relation Name")?;
    let is_repeated = place.loops > 1.0;
    let has_condition = node.get("Index Cond").is_some();
    let by_index = match (is_repeated, has_condition) {
        (true, true) => AccessKind::LookUp,
        (false, true) => AccessKind::Range,
        (_, false) => AccessKind::IndexScan,
    };
    let (kind, index, is_covering) = match kind {
        "Seq Scan" | "Sample Scan" => (AccessKind::FullScan, None, true),
        "Index Scan" => (by_index, text(node, "Index Name"), false),
        // The rows are the heap scan's.
        "Bitmap Index Scan" => (by_index, text(node, "Index Name"), true),
        "Index Only Scan" => (by_index, text(node, "Index Name"), true),
        "Bitmap Heap Scan" | "Tid Scan" | "Tid Range Scan" => (AccessKind::LookUp, None, true),
        _ => return None,
    };
    Some(PlannedAccess {
        database: text(named, "Schema").unwrap_or_default().to_owned(),
        table: table.to_owned(),
        index: index.map(str::to_owned),
        kind,
        rows: number(node, "Plan Rows"),
        loops: place.loops,
        is_covering,
        // A partition is a table of its own.
        partitions: None,
        stage,
    })
}
