//! Random ALTER TABLE statements: those that the server does instantly where it can, and those that rebuild.

use crate::columns::Type;
use crate::random::Random;
use crate::server::Kind;
use crate::tables::{Column, Key, Partitions, Table, range_list, row_format};

/// The fewest columns that an ALTER leaves.
const LEAST_COLUMNS: usize = 2;
/// The most columns that ALTERs make.
const MOST_COLUMNS: usize = 14;
/// ALTERs of a table.
const ALTERS: (u64, u64) = (1, 12);

/// The statements that make the table of `seed`.
pub fn history(seed: u64, kind: Kind) -> Vec<String> {
    let mut random = Random::new(seed);
    let mut table = Table::any(format!("t{seed}"), kind, &mut random);
    let mut statements = vec![table.create(&mut random), table.insert(&mut random)];
    for _ in 0..random.between(ALTERS.0, ALTERS.1) {
        statements.extend(alter(&mut table, &mut random));
        for _ in 0..random.below(3) {
            match random.below(10) {
                0..=5 => statements.push(table.insert(&mut random)),
                6..=8 => statements.extend(table.update(&mut random)),
                _ => statements.push(table.delete(&mut random)),
            }
        }
    }
    statements
}

/// Statements that change `table`, usually one.
pub fn alter(table: &mut Table, random: &mut Random) -> Vec<String> {
    let name = table.name.clone();
    let changes = match random.below(100) {
        0..=29 => add(table, random, 1),
        30..=36 => {
            let count = random.between(2, 3);
            add(table, random, count)
        }
        37..=54 => drop_column(table, random),
        55..=59 => [add(table, random, 1), drop_column(table, random)].concat(),
        60..=66 => move_column(table, random),
        67..=73 => widen(table, random),
        74..=77 => change_nullability(table, random),
        78..=80 => rename(table, random),
        81..=83 => change_default(table, random),
        84..=88 => change_index(table, random),
        89 | 90 => vec!["force".to_owned()],
        91 => return vec![format!("optimize table {name};")],
        92 | 93 => [add(table, random, 1), vec!["algorithm=copy".to_owned()]].concat(),
        94 => {
            table.row_format = row_format(table.kind, random);
            vec![format!("row_format={}", table.row_format)]
        }
        95 => change_key(table, random),
        96 => return vec![format!("truncate table {name};")],
        _ => return change_partitions(table, random),
    };
    if changes.is_empty() || changes == ["algorithm=copy"] {
        return Vec::new();
    }
    vec![format!("alter table {name} {};", changes.join(", "))]
}

/// Where a column is put, and its place among the columns.
fn place(table: &Table, random: &mut Random) -> (String, usize) {
    match random.below(10) {
        0 | 1 => (" first".to_owned(), 0),
        2..=4 => {
            let after = random.below(table.columns.len() as u64) as usize;
            (format!(" after {}", table.columns[after].name), after + 1)
        }
        _ => (String::new(), table.columns.len()),
    }
}

fn add(table: &mut Table, random: &mut Random, count: u64) -> Vec<String> {
    let mut changes = Vec::new();
    for _ in 0..count {
        if table.columns.len() >= MOST_COLUMNS {
            break;
        }
        let column = table.new_column(random);
        let definition = table.definition(&column, random);
        let (clause, at) = place(table, random);
        table.columns.insert(at, column);
        changes.push(format!("add column {definition}{clause}"));
    }
    changes
}

/// A column that is neither in the key nor indexed.
fn free_column(table: &Table, random: &mut Random) -> Option<usize> {
    let is_free = |at: &usize| {
        let name = &table.columns[*at].name;
        name != "id" && name != "k" && table.indexes.iter().all(|(_, of)| of != name)
    };
    let free: Vec<usize> = (0..table.columns.len()).filter(is_free).collect();
    (!free.is_empty()).then(|| free[random.below(free.len() as u64) as usize])
}

fn drop_column(table: &mut Table, random: &mut Random) -> Vec<String> {
    if table.columns.len() <= LEAST_COLUMNS {
        return Vec::new();
    }
    // What another clause of the same statement puts a column behind has to stay, and so does what it adds.
    let Some(at) = free_column(table, random) else { return Vec::new() };
    let newest = format!("c{}", table.next_column);
    if table.columns[at].name == newest
        || at + 1 < table.columns.len() && table.columns[at + 1].name == newest
    {
        return Vec::new();
    }
    let column = table.columns.remove(at);
    vec![format!("drop column {}", column.name)]
}

fn move_column(table: &mut Table, random: &mut Random) -> Vec<String> {
    let at = random.below(table.columns.len() as u64) as usize;
    let column = table.columns.remove(at);
    if table.columns.is_empty() {
        table.columns.push(column);
        return Vec::new();
    }
    let definition = table.definition(&column, random);
    let (clause, to) = match place(table, random) {
        // Without a clause it stays where it is.
        (clause, _) if clause.is_empty() => (clause, at),
        placed => placed,
    };
    table.columns.insert(to, column);
    vec![format!("modify column {definition}{clause}")]
}

fn widen(table: &mut Table, random: &mut Random) -> Vec<String> {
    let Some(at) = free_column(table, random) else { return Vec::new() };
    let column = &table.columns[at];
    let Some(wider) = column.of.widened(random).filter(|_| column.computed.is_none()) else {
        return Vec::new();
    };
    table.columns[at].of = wider;
    let column = table.columns[at].clone();
    vec![format!("modify column {}", table.definition(&column, random))]
}

fn change_nullability(table: &mut Table, random: &mut Random) -> Vec<String> {
    let Some(at) = free_column(table, random) else { return Vec::new() };
    let column = &mut table.columns[at];
    if column.of == Type::Geometry || column.computed.is_some() {
        return Vec::new();
    }
    column.nullable = !column.nullable;
    let column = column.clone();
    vec![format!("modify column {}", table.definition(&column, random))]
}

fn rename(table: &mut Table, random: &mut Random) -> Vec<String> {
    let Some(at) = free_column(table, random) else { return Vec::new() };
    table.next_column += 1;
    let new = format!("c{}", table.next_column);
    let old = std::mem::replace(&mut table.columns[at].name, new.clone());
    if random.chance(50) {
        return vec![format!("rename column {old} to {new}")];
    }
    let column = table.columns[at].clone();
    vec![format!("change column {old} {}", table.definition(&column, random))]
}

fn change_default(table: &mut Table, random: &mut Random) -> Vec<String> {
    let Some(at) = free_column(table, random) else { return Vec::new() };
    let Column { name, of, computed, .. } = table.columns[at].clone();
    let value = of.default(random).filter(|_| computed.is_none() && !of.is_large());
    let Some(value) = value else { return Vec::new() };
    match random.chance(50) {
        true => vec![format!("alter column {name} set default {value}")],
        false => vec![format!("alter column {name} drop default")],
    }
}

fn change_index(table: &mut Table, random: &mut Random) -> Vec<String> {
    if !table.indexes.is_empty() && random.chance(50) {
        let (name, _) = table.indexes.remove(random.below(table.indexes.len() as u64) as usize);
        return vec![format!("drop key {name}")];
    }
    table.new_index(random).map(|definition| format!("add {definition}")).into_iter().collect()
}

fn change_key(table: &mut Table, random: &mut Random) -> Vec<String> {
    if table.partitions != Partitions::None {
        return Vec::new();
    }
    let (key, change) = match table.key {
        Key::None => (Key::Id, "add primary key (id)"),
        Key::Id | Key::IdDescending => random.pick(&[
            (Key::None, "drop primary key"),
            (Key::UniqueId, "drop primary key, add unique key (id)"),
        ]),
        _ => return Vec::new(),
    };
    table.key = key;
    vec![change.to_owned()]
}

/// Partitions that come and go, so that their instant ALTERs differ.
fn change_partitions(table: &mut Table, random: &mut Random) -> Vec<String> {
    let name = table.name.clone();
    table.next_partition += 1;
    let fresh = format!("p{}", table.next_partition);
    match &mut table.partitions {
        Partitions::None => Vec::new(),
        Partitions::Hash(count) if *count > 1 && random.chance(40) => {
            *count -= 1;
            vec![format!("alter table {name} coalesce partition 1;")]
        }
        Partitions::Hash(count) => {
            *count += 1;
            vec![format!("alter table {name} add partition partitions 1;")]
        }
        Partitions::Range(ranges) => {
            let at = random.below(ranges.len() as u64) as usize;
            let (old, bound) = ranges[at].clone();
            match random.below(5) {
                0 => vec![format!("alter table {name} truncate partition {old};")],
                1 => vec![format!("alter table {name} rebuild partition {old};")],
                2 if ranges.len() > 1 => {
                    ranges.remove(at);
                    // The last range stays open.
                    if bound == u64::MAX {
                        let (last, _) = ranges.pop().unwrap();
                        ranges.push((old.clone(), u64::MAX));
                        return vec![format!("alter table {name} drop partition {last};")];
                    }
                    vec![format!("alter table {name} drop partition {old};")]
                }
                3 => exchange(&name, &old),
                _ => {
                    let lower = if at == 0 { 0 } else { ranges[at - 1].1 };
                    let middle = lower / 2 + bound.min(1_000_003 * 2) / 2;
                    if middle <= lower || middle >= bound {
                        return Vec::new();
                    }
                    ranges[at] = (format!("{fresh}b"), bound);
                    ranges.insert(at, (format!("{fresh}a"), middle));
                    let list = range_list(&ranges[at..at + 2]);
                    vec![format!("alter table {name} reorganize partition {old} into ({list});")]
                }
            }
        }
    }
}

/// Changes a partition for a table of the same columns that no instant ALTER changed.
fn exchange(name: &str, partition: &str) -> Vec<String> {
    vec![
        format!("drop table if exists {name}_other;"),
        format!("create table {name}_other like {name};"),
        format!("alter table {name}_other remove partitioning;"),
        format!("insert into {name}_other select * from {name} partition ({partition});"),
        format!("alter table {name} exchange partition {partition} with table {name}_other;"),
    ]
}
