//! The clause about partitions, as MySQL prints it.

use serde::Deserialize;

use super::{PartitionDescription, PartitionedBy, SubpartitionDescription};
use crate::schema::sdi_column::{private_text_of, private_value};
use crate::{Error, ErrorKind, Result};

/// What a table's dictionary object says of partitions.
#[derive(Deserialize)]
pub(super) struct SdiPartitioning {
    #[serde(default)]
    partition_type: u8,
    #[serde(default)]
    partition_expression_utf8: String,
    #[serde(default)]
    partition_expression: String,
    #[serde(default)]
    default_partitioning: u8,
    #[serde(default)]
    subpartition_type: u8,
    #[serde(default)]
    subpartition_expression_utf8: String,
    #[serde(default)]
    subpartition_expression: String,
    #[serde(default)]
    default_subpartitioning: u8,
    #[serde(default)]
    partitions: Vec<SdiPartition>,
}

#[derive(Deserialize)]
struct SdiPartition {
    name: String,
    #[serde(default)]
    description_utf8: String,
    #[serde(default)]
    comment: String,
    #[serde(default)]
    options: String,
    #[serde(default)]
    engine: String,
    tablespace_ref: Option<String>,
    #[serde(default)]
    subpartitions: Vec<SdiPartition>,
}

const HASH: u8 = 1;
/// KEY ALGORITHM = 1.
const KEY_OF_5_1: u8 = 2;
const KEY: u8 = 3;
const LINEAR_HASH: u8 = 4;
const LINEAR_KEY_OF_5_1: u8 = 5;
const LINEAR_KEY: u8 = 6;
const RANGE: u8 = 7;
const LIST: u8 = 8;
const RANGE_COLUMNS: u8 = 9;
const LIST_COLUMNS: u8 = 10;
/// The partitions were named one by one.
const NAMED: u8 = 1;
/// Nothing was given: there is one.
const NEITHER: u8 = 2;
/// Only their number was given.
const NUMBERED: u8 = 3;

/// The tablespace of a table, or a part of it, that has a file for itself.
const FILE_PER_TABLE: &str = "innodb_file_per_table";

/// By what the rows are spread.
pub(super) fn partitioned_by(of: &SdiPartitioning) -> Option<PartitionedBy> {
    let expression = |kind: u8, text: &str, columns: &str| -> Option<String> {
        match kind {
            HASH | LINEAR_HASH | RANGE | LIST => Some(text.to_owned()),
            _ => {
                let names = columns.split(';').filter(|name| !name.is_empty()).map(in_backticks);
                let names = names.collect::<Vec<_>>().join(",");
                (!names.is_empty()).then_some(names)
            }
        }
    };
    (of.partition_type != 0).then(|| PartitionedBy {
        method: word(of.partition_type).to_owned(),
        expression: expression(of.partition_type, &of.partition_expression_utf8, &of.partition_expression),
        sub_method: (of.subpartition_type != 0).then(|| word(of.subpartition_type).to_owned()),
        sub_expression: match of.subpartition_type {
            0 => None,
            kind => expression(kind, &of.subpartition_expression_utf8, &of.subpartition_expression),
        },
    })
}

/// The word that `information_schema` has for a method.
fn word(kind: u8) -> &'static str {
    match kind {
        HASH => "HASH",
        KEY_OF_5_1 | KEY => "KEY",
        LINEAR_HASH => "LINEAR HASH",
        LINEAR_KEY_OF_5_1 | LINEAR_KEY => "LINEAR KEY",
        RANGE => "RANGE",
        LIST => "LIST",
        RANGE_COLUMNS => "RANGE COLUMNS",
        LIST_COLUMNS => "LIST COLUMNS",
        _ => "AUTO",
    }
}

fn subpartition(sub: &SdiPartition) -> SubpartitionDescription {
    SubpartitionDescription {
        name: sub.name.clone(),
        comment: sub.comment.clone(),
        tablespace: sub.tablespace_ref.clone(),
    }
}

pub(super) fn partitions(of: &SdiPartitioning) -> Vec<PartitionDescription> {
    let has_values = matches!(of.partition_type, RANGE | LIST | RANGE_COLUMNS | LIST_COLUMNS);
    let described = |partition: &SdiPartition| PartitionDescription {
        name: partition.name.clone(),
        subpartitions: partition.subpartitions.iter().map(subpartition).collect(),
        description: has_values.then(|| partition.description_utf8.clone()),
        comment: partition.comment.clone(),
        tablespace: partition.tablespace_ref.clone(),
    };
    of.partitions.iter().map(described).collect()
}

/// The clause, with the line break before it; empty if the table has no partitions.
///
/// # Errors
/// `Unsupported` for what is not printed exactly.
pub(super) fn clause(of: &SdiPartitioning) -> Result<String> {
    if of.partition_type == 0 {
        return Ok(String::new());
    }
    let version = if matches!(of.partition_type, RANGE_COLUMNS | LIST_COLUMNS) { 50500 } else { 50100 };
    let by = method(of.partition_type, &of.partition_expression_utf8, &of.partition_expression)?;
    let mut text = format!("\n/*!{version} PARTITION BY {by}");
    match of.default_partitioning {
        NAMED | NEITHER => {}
        NUMBERED => text.push_str(&format!("\nPARTITIONS {}", of.partitions.len())),
        _ => return Err(unsupported("partitions without a number")),
    }
    if of.subpartition_type != 0 {
        let by = method(of.subpartition_type, &of.subpartition_expression_utf8, &of.subpartition_expression)?;
        text.push_str(&format!("\nSUBPARTITION BY {by}"));
        if of.default_subpartitioning == NUMBERED {
            let count = of.partitions.first().map_or(0, |partition| partition.subpartitions.len());
            text.push_str(&format!("\nSUBPARTITIONS {count}"));
        }
    }
    if of.default_partitioning == NAMED {
        let lists_subs = of.subpartition_type != 0 && of.default_subpartitioning != NUMBERED;
        let names_spaces = leaves(of).any(|leaf| leaf.tablespace().is_some());
        let clause = ListClause { kind: of.partition_type, lists_subs, names_spaces };
        let listed = of.partitions.iter().map(|partition| clause.partition(partition));
        text.push_str(&format!("\n({})", listed.collect::<Result<Vec<_>>>()?.join(",\n ")));
    }
    text.push_str(" */");
    Ok(text)
}

fn unsupported(what: &str) -> Error {
    Error::new(ErrorKind::Unsupported, format!("{what} cannot be printed as the server prints them"))
}

fn method(kind: u8, expression: &str, columns: &str) -> Result<String> {
    let names = || {
        let names = columns.split(';').filter(|name| !name.is_empty()).map(unquoted);
        names.collect::<Vec<_>>().join(",")
    };
    Ok(match kind {
        HASH => format!("HASH ({expression})"),
        LINEAR_HASH => format!("LINEAR HASH ({expression})"),
        KEY => format!("KEY ({})", names()),
        KEY_OF_5_1 => format!("KEY */ /*!50611 ALGORITHM = 1 */ /*!50100 ({})", names()),
        LINEAR_KEY_OF_5_1 => format!("LINEAR KEY */ /*!50611 ALGORITHM = 1 */ /*!50100 ({})", names()),
        LINEAR_KEY => format!("LINEAR KEY ({})", names()),
        RANGE => format!("RANGE ({expression})"),
        LIST => format!("LIST ({expression})"),
        RANGE_COLUMNS => format!("RANGE  COLUMNS({})", names()),
        LIST_COLUMNS => format!("LIST  COLUMNS({})", names()),
        _ => return Err(unsupported("partitions of this kind")),
    })
}

/// The parts that have a file: the subpartitions, else the partitions.
fn leaves(of: &SdiPartitioning) -> impl Iterator<Item = &SdiPartition> {
    of.partitions.iter().flat_map(|partition| match partition.subpartitions.as_slice() {
        [] => std::slice::from_ref(partition),
        subs => subs,
    })
}

impl SdiPartition {
    /// The tablespace that was chosen for it.
    fn tablespace(&self) -> Option<&str> {
        self.tablespace_ref.as_deref().or_else(|| private_value(&self.options, "tablespace"))
    }
}

/// The list of partitions.
struct ListClause {
    /// The type of the partitions.
    kind: u8,
    /// Whether subpartitions are listed too.
    lists_subs: bool,
    /// Whether the tablespace of each part that has a file is printed: if one was chosen for any of them.
    names_spaces: bool,
}

impl ListClause {
    fn partition(&self, partition: &SdiPartition) -> Result<String> {
        let mut text = format!("PARTITION {}", unquoted(&partition.name));
        match (self.kind, partition.description_utf8.as_str()) {
            (RANGE, "MAXVALUE") => text.push_str(" VALUES LESS THAN MAXVALUE"),
            (RANGE | RANGE_COLUMNS, bound) => text.push_str(&format!(" VALUES LESS THAN ({bound})")),
            (LIST | LIST_COLUMNS, values) => text.push_str(&format!(" VALUES IN ({values})")),
            _ => {}
        }
        if self.lists_subs {
            check_printed(partition)?;
            let subs = partition
                .subpartitions
                .iter()
                .map(|sub| Ok(format!("SUBPARTITION {}{}", unquoted(&sub.name), self.options(sub)?)));
            text.push_str(&format!("\n ({})", subs.collect::<Result<Vec<_>>>()?.join(",\n  ")));
        } else {
            text.push_str(&self.options(partition)?);
        }
        Ok(text)
    }

    /// The options of a partition or a subpartition, each behind a blank.
    fn options(&self, partition: &SdiPartition) -> Result<String> {
        check_printed(partition)?;
        let is_leaf = partition.subpartitions.is_empty();
        let mut text = String::new();
        let space = partition.tablespace().or((is_leaf && self.names_spaces).then_some(FILE_PER_TABLE));
        if let Some(space) = space {
            text.push_str(&format!(" TABLESPACE = {}", in_backticks(space)));
        }
        for (name, key) in [("MAX_ROWS", "max_rows"), ("MIN_ROWS", "min_rows")] {
            if let Some(rows) = private_value(&partition.options, key).filter(|rows| *rows != "0") {
                text.push_str(&format!(" {name} = {rows}"));
            }
        }
        if let Some(mut folder) = private_text_of(&partition.options, "data_file_name") {
            if is_leaf && !folder.ends_with('/') {
                folder.push('/');
            }
            text.push_str(&format!(" DATA DIRECTORY = '{}'", escaped(&folder)));
        }
        if !partition.comment.is_empty() {
            text.push_str(&format!(" COMMENT = '{}'", escaped(&partition.comment)));
        }
        let engine = if partition.engine.is_empty() { "InnoDB" } else { &partition.engine };
        text.push_str(&format!(" ENGINE = {engine}"));
        Ok(text)
    }
}

/// Refuses a partition whose options are not printed.
fn check_printed(partition: &SdiPartition) -> Result<()> {
    const KNOWN: [&str; 6] =
        ["secondary_load", "max_rows", "min_rows", "tablespace", "explicit_tablespace", "data_file_name"];
    let options = partition.options.split(';').filter_map(|pair| pair.split_once('='));
    if options.clone().any(|(name, value)| !KNOWN.contains(&name) && !matches!(value, "" | "0"))
        || private_value(&partition.options, "secondary_load").is_some_and(|value| value != "0")
    {
        return Err(unsupported("options of partitions"));
    }
    Ok(())
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\'', "\\'")
}

fn in_backticks(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// A name without quotes, as the server prints it here.
fn unquoted(name: &str) -> String {
    let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '$')
        && name.chars().any(|c| !c.is_ascii_digit())
        && !name.starts_with('$');
    let is_keyword = KEYWORDS.split_ascii_whitespace().any(|word| word.eq_ignore_ascii_case(name));
    match is_plain && !is_keyword {
        true => name.to_owned(),
        false => in_backticks(name),
    }
}

/// The keywords of MySQL 9.7, as `information_schema.KEYWORDS` lists them: all are put in backticks here, reserved or
/// not.
const KEYWORDS: &str = include_str!("mysql_keywords.txt");
