//! The programs that SQLite makes of statements, as `EXPLAIN` lists them.
//!
//! `EXPLAIN QUERY PLAN` is meant for people and names aliases; the program says which B+tree each cursor opens, by its
//! root page, and what is done with the cursor.
//!
//! 1. `OpenRead`, `OpenWrite` and `ReopenIdx` open a cursor on a root page.
//! 2. `Rewind`, `Last`, `Sort` begin a scan of the whole tree; a seek begins a range. A seek within the loop of another
//!    cursor is a look-up. A loop reaches from where its `Next` or `Prev` jumps to, to there.
//! 3. `DeferredSeek` and `SeekRowid` look rows up in a table.
//!
//! SQLite estimates no rows here: an access has `rows: None`, and `loops` is 0 for what runs within another's loop.

use std::collections::BTreeMap;

use crate::AccessKind;

/// A step of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Its address.
    pub address: i64,
    /// What it does.
    pub opcode: String,
    /// Operands.
    pub p1: i64,
    /// The second.
    pub p2: i64,
    /// The third.
    pub p3: i64,
}

/// What a program reads of one B+tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeAccess {
    /// The root page,
    pub root: i64,
    /// and the number of the database that it is in: 0 is the main one.
    pub database: i64,
    /// How it is read.
    pub kind: AccessKind,
    /// Loops of other cursors around it.
    pub depth: u32,
}

/// What a program reads.
pub fn accesses(program: &[Step]) -> Vec<TreeAccess> {
    let mut roots: BTreeMap<i64, (i64, i64)> = BTreeMap::new();
    let mut found: Vec<(i64, TreeAccess)> = Vec::new();
    let loops: Vec<(i64, i64, i64)> = program
        .iter()
        .filter(|step| ["Next", "Prev", "VNext"].contains(&step.opcode.as_str()))
        .map(|step| (step.p1, step.p2.min(step.address), step.address))
        .collect();
    let depth_of = |step: &Step| {
        let around = loops
            .iter()
            .filter(|(cursor, from, to)| *cursor != step.p1 && (*from..=*to).contains(&step.address));
        around.count() as u32
    };
    for step in program {
        match step.opcode.as_str() {
            "OpenRead" | "OpenWrite" | "ReopenIdx" => {
                roots.insert(step.p1, (step.p2, step.p3));
            }
            opcode => {
                // The table that a row number is for is in the third operand.
                let cursor = if opcode == "DeferredSeek" { step.p3 } else { step.p1 };
                let (Some((root, database)), Some(kind)) = (roots.get(&cursor), kind_of(opcode)) else {
                    continue;
                };
                let depth = depth_of(step);
                let kind = match kind {
                    AccessKind::Range if depth > 0 => AccessKind::LookUp,
                    kind => kind,
                };
                let access = TreeAccess { root: *root, database: *database, kind, depth };
                if !found.contains(&(cursor, access)) {
                    found.push((cursor, access));
                }
            }
        }
    }
    found.into_iter().map(|(_, access)| access).collect()
}

fn kind_of(opcode: &str) -> Option<AccessKind> {
    Some(match opcode {
        "Rewind" | "Last" | "Count" => AccessKind::FullScan,
        "SeekGE" | "SeekGT" | "SeekLE" | "SeekLT" => AccessKind::Range,
        "SeekRowid" | "NotExists" | "DeferredSeek" | "Found" | "NotFound" | "NoConflict" => {
            AccessKind::LookUp
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As SQLite 3.40 lists it: address, opcode, operands.
    fn program(text: &str) -> Vec<Step> {
        let step = |line: &str| {
            let fields: Vec<&str> = line.trim().split('|').collect();
            let number = |no: usize| fields[no].parse().unwrap();
            Step {
                address: number(0),
                opcode: fields[1].to_owned(),
                p1: number(2),
                p2: number(3),
                p3: number(4),
            }
        };
        text.lines().filter(|line| !line.trim().is_empty()).map(step).collect()
    }

    fn of(text: &str) -> Vec<(i64, AccessKind, u32)> {
        accesses(&program(text)).into_iter().map(|access| (access.root, access.kind, access.depth)).collect()
    }

    #[test]
    fn scans_and_ranges_are_told_apart() {
        let scan = "2|OpenRead|0|4|0\n3|Rewind|0|10|0\n4|Column|0|2|5\n9|Next|0|4|0";
        assert_eq!(of(scan), [(4, AccessKind::FullScan, 0)]);
        let range = "2|OpenRead|0|4|0\n3|SeekGE|0|9|2\n6|Gt|3|9|4\n8|Next|0|5|0";
        assert_eq!(of(range), [(4, AccessKind::Range, 0)]);
    }

    #[test]
    fn seeks_within_loops_are_look_ups() {
        let join = "2|OpenRead|3|3|0\n3|OpenRead|4|5|0\n4|OpenRead|5|6|0\n6|SeekGE|3|18|2\n7|IdxGT|3|18|2
            9|SeekGE|4|17|3\n12|SeekGE|5|16|4\n15|Next|5|13|0\n16|Next|4|10|1\n17|Next|3|7|1";
        let look_up = AccessKind::LookUp;
        assert_eq!(of(join), [(3, AccessKind::Range, 0), (5, look_up, 1), (6, look_up, 2)]);
        let subquery =
            "1|OpenRead|0|2|0\n4|OpenEphemeral|2|1|0\n5|OpenRead|3|5|0\n6|Rewind|3|11|3\n10|Next|3|7|0
            13|Rewind|2|20|0\n16|SeekRowid|0|19|1\n19|Next|2|14|0";
        assert_eq!(of(subquery), [(5, AccessKind::FullScan, 0), (2, look_up, 1)]);
    }
}
