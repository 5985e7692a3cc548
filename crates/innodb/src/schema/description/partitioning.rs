//! The clause about partitions, as MySQL prints it.

use serde::Deserialize;

use super::{PartitionDescription, PartitionedBy};
use crate::schema::sdi_column::private_value;
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

pub(super) fn partitions(of: &SdiPartitioning) -> Vec<PartitionDescription> {
    let has_values = matches!(of.partition_type, RANGE | LIST | RANGE_COLUMNS | LIST_COLUMNS);
    let described = |partition: &SdiPartition| PartitionDescription {
        name: partition.name.clone(),
        subpartitions: partition
            .subpartitions
            .iter()
            .map(|sub| (sub.name.clone(), sub.comment.clone()))
            .collect(),
        description: has_values.then(|| partition.description_utf8.clone()),
        comment: partition.comment.clone(),
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
        let listed = of.partitions.iter().map(|partition| named(of.partition_type, partition, lists_subs));
        text.push_str(&format!("\n({})", listed.collect::<Result<Vec<_>>>()?.join(",\n ")));
    }
    text.push_str(" */");
    Ok(text)
}

fn unsupported(what: &str) -> Error {
    Error::new(ErrorKind::Unsupported, format!("{what} cannot be printed as the server prints them"))
}

fn method(kind: u8, expression: &str, columns: &str) -> Result<String> {
    let names = || -> Result<String> {
        let names = columns.split(';').filter(|name| !name.is_empty()).map(unquoted);
        Ok(names.collect::<Result<Vec<_>>>()?.join(","))
    };
    Ok(match kind {
        HASH => format!("HASH ({expression})"),
        LINEAR_HASH => format!("LINEAR HASH ({expression})"),
        KEY => format!("KEY ({})", names()?),
        KEY_OF_5_1 => format!("KEY */ /*!50611 ALGORITHM = 1 */ /*!50100 ({})", names()?),
        LINEAR_KEY_OF_5_1 => format!("LINEAR KEY */ /*!50611 ALGORITHM = 1 */ /*!50100 ({})", names()?),
        LINEAR_KEY => format!("LINEAR KEY ({})", names()?),
        RANGE => format!("RANGE ({expression})"),
        LIST => format!("LIST ({expression})"),
        RANGE_COLUMNS => format!("RANGE  COLUMNS({})", names()?),
        LIST_COLUMNS => format!("LIST  COLUMNS({})", names()?),
        _ => return Err(unsupported("partitions of this kind")),
    })
}

fn named(kind: u8, partition: &SdiPartition, lists_subs: bool) -> Result<String> {
    let mut text = format!("PARTITION {}", unquoted(&partition.name)?);
    match (kind, partition.description_utf8.as_str()) {
        (RANGE, "MAXVALUE") => text.push_str(" VALUES LESS THAN MAXVALUE"),
        (RANGE | RANGE_COLUMNS, bound) => text.push_str(&format!(" VALUES LESS THAN ({bound})")),
        (LIST | LIST_COLUMNS, values) => text.push_str(&format!(" VALUES IN ({values})")),
        _ => {}
    }
    if lists_subs {
        check_printed(partition)?;
        let subs = partition
            .subpartitions
            .iter()
            .map(|sub| Ok(format!("SUBPARTITION {}{}", unquoted(&sub.name)?, printed_options(sub)?)));
        text.push_str(&format!("\n ({})", subs.collect::<Result<Vec<_>>>()?.join(",\n  ")));
    } else {
        text.push_str(&printed_options(partition)?);
    }
    Ok(text)
}

/// Refuses a partition whose options are not printed.
fn check_printed(partition: &SdiPartition) -> Result<()> {
    const KNOWN: [&str; 3] = ["secondary_load", "max_rows", "min_rows"];
    let options = partition.options.split(';').filter_map(|pair| pair.split_once('='));
    if options.clone().any(|(name, value)| !KNOWN.contains(&name) && !matches!(value, "" | "0"))
        || private_value(&partition.options, "secondary_load").is_some_and(|value| value != "0")
        || partition.tablespace_ref.is_some()
    {
        return Err(unsupported("options of partitions"));
    }
    Ok(())
}

/// The options of a partition or a subpartition, each behind a blank.
fn printed_options(partition: &SdiPartition) -> Result<String> {
    check_printed(partition)?;
    let mut text = String::new();
    for (name, key) in [("MAX_ROWS", "max_rows"), ("MIN_ROWS", "min_rows")] {
        if let Some(rows) = private_value(&partition.options, key).filter(|rows| *rows != "0") {
            text.push_str(&format!(" {name} = {rows}"));
        }
    }
    if !partition.comment.is_empty() {
        let escaped = partition.comment.replace('\\', "\\\\").replace('\'', "\\'");
        text.push_str(&format!(" COMMENT = '{escaped}'"));
    }
    let engine = if partition.engine.is_empty() { "InnoDB" } else { &partition.engine };
    text.push_str(&format!(" ENGINE = {engine}"));
    Ok(text)
}

fn in_backticks(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// A name without quotes, as the server prints it here.
fn unquoted(name: &str) -> Result<String> {
    let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '$')
        && name.chars().any(|c| !c.is_ascii_digit());
    let is_reserved = RESERVED.split_ascii_whitespace().any(|word| word.eq_ignore_ascii_case(name));
    match is_plain && !is_reserved {
        true => Ok(name.to_owned()),
        false => Ok(format!("`{}`", name.replace('`', "``"))),
    }
}

/// Reserved words of MySQL 9.7, as `information_schema.KEYWORDS` lists them.
const RESERVED: &str = "\
    accessible add all alter analyze and as asc asensitive before between bigint binary blob both by call \
    cascade case change char character check collate column condition constraint continue convert create cross \
    cube cume_dist current_date current_time current_timestamp current_user cursor database databases day_hour \
    day_microsecond day_minute day_second dec decimal declare default delayed delete dense_rank desc describe \
    deterministic distinct distinctrow div double drop dual each else elseif empty enclosed escaped except \
    exists exit explain external false fetch first_value float float4 float8 for force foreign from fulltext \
    function generated get grant group grouping groups having high_priority hour_microsecond hour_minute \
    hour_second if ignore in index infile inner inout insensitive insert int int1 int2 int3 int4 int8 integer \
    intersect interval into io_after_gtids io_before_gtids is iterate join json_table key keys kill lag \
    last_value lateral lead leading leave left library like limit linear lines load localtime localtimestamp \
    lock long longblob longtext loop low_priority match maxvalue mediumblob mediumint mediumtext middleint \
    minute_microsecond minute_second mod modifies natural not no_write_to_binlog nth_value ntile null numeric \
    of on optimize optimizer_costs option optionally or order out outer outfile over partition percent_rank \
    precision primary procedure purge qualify range rank read reads read_write real recursive references regexp \
    release rename repeat replace require resignal restrict return revoke right rlike row rows row_number \
    schema schemas second_microsecond select sensitive separator set show signal smallint spatial specific sql \
    sqlexception sqlstate sqlwarning sql_big_result sql_calc_found_rows sql_small_result ssl starting stored \
    straight_join system table tablesample terminated then tinyblob tinyint tinytext to trailing trigger true \
    undo union unique unlock unsigned update usage use using utc_date utc_time utc_timestamp values varbinary \
    varchar varcharacter varying virtual when where while window with write xor year_month zerofill";
