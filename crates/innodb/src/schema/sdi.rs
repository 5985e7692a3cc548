//! MySQL's serialized dictionary information: JSON of the data dictionary's objects -> [`TableDefinition`].
//!
//! Every tablespace of MySQL 8 and later carries the dictionary objects of what lies in it ([`super::sdi_tree`] reads
//! them out). A table without partitions is one object in its own file. Of a partitioned table only the first
//! partition's file has the table; it names all partitions with the roots of their indexes, so the other files need no
//! reading.
//!
//! Hidden columns come in two kinds: those of InnoDB (row id, transaction id, roll pointer, full-text document id,
//! columns dropped instantly) and those of SQL (the expressions of functional indexes, never stored).

use serde::Deserialize;

use super::layout::{FTS_DOC_ID, HIDDEN_CLUSTERED, held_in_full, prefix_bytes};
use super::sdi_column::{SdiColumn, private_number, private_value};
use super::{
    Collation, Column, ColumnNo, Index, IndexKind, IndexPart, Partition, RowFormat, Server, StoredField,
    TableDefinition,
};
use crate::{Error, ErrorKind, PageNo, Result, SpaceId};

/// One dictionary object.
#[derive(Deserialize)]
struct SdiObject {
    dd_object_type: String,
    dd_object: serde_json::Value,
}

#[derive(Deserialize)]
struct SdiTable {
    name: String,
    schema_ref: String,
    #[serde(default)]
    engine: String,
    #[serde(default)]
    row_format: u8,
    #[serde(default)]
    collation_id: u16,
    #[serde(default)]
    se_private_data: String,
    columns: Vec<SdiColumn>,
    indexes: Vec<SdiIndex>,
    #[serde(default)]
    partitions: Vec<SdiPartition>,
}

#[derive(Deserialize)]
struct SdiIndex {
    name: String,
    #[serde(default)]
    hidden: bool,
    #[serde(rename = "type")]
    index_type: u8,
    #[serde(default)]
    se_private_data: String,
    elements: Vec<SdiElement>,
}

#[derive(Deserialize)]
struct SdiElement {
    length: u32,
    #[serde(default)]
    order: u8,
    /// MySQL 8.0.11 to 8.0.15 do not say it.
    hidden: Option<bool>,
    column_opx: usize,
}

/// Length of an element that the server added to the declared ones: the whole column, whatever it is.
const LENGTH_OF_HIDDEN: u32 = u32::MAX;

impl SdiElement {
    /// Whether the server added it.
    fn is_hidden(&self) -> bool {
        self.hidden.unwrap_or(self.length == LENGTH_OF_HIDDEN)
    }
}

#[derive(Deserialize)]
struct SdiPartition {
    name: String,
    #[serde(default)]
    se_private_data: String,
    #[serde(default)]
    indexes: Vec<SdiPartitionIndex>,
    #[serde(default)]
    subpartitions: Vec<SdiPartition>,
}

#[derive(Deserialize)]
struct SdiPartitionIndex {
    #[serde(default)]
    se_private_data: String,
    index_opx: usize,
}

/// The bits of `physical_pos` that say where a column lies in full. One of which the key has a prefix has others set.
const PHYSICAL_POSITION: usize = 0x7fff;

const TYPE_UNIQUE: u8 = 2;
const TYPE_FULLTEXT: u8 = 4;
const ORDER_DESCENDING: u8 = 3;

/// The table in one dictionary object; `None` if the object is something else (a tablespace).
///
/// Paths of partitions are left empty; names are `p` or, with subpartitions, `p/sp`.
///
/// # Errors
/// `Corrupt` if the text is no dictionary object or contradicts itself, `Unsupported` for a type or an engine that is
/// not read.
pub fn table_from_sdi(json: &[u8]) -> Result<Option<TableDefinition>> {
    table_and_spaces(json).map(|found| found.map(|(definition, _)| definition))
}

/// The database and the name of the table in one dictionary object; `None` if it is none.
pub(crate) fn table_named_by_sdi(json: &[u8]) -> Option<(String, String)> {
    #[derive(Deserialize)]
    struct Object {
        dd_object_type: String,
        dd_object: Named,
    }
    #[derive(Deserialize)]
    struct Named {
        name: String,
        schema_ref: String,
    }
    let object: Object = serde_json::from_str(&String::from_utf8_lossy(json)).ok()?;
    let named = (object.dd_object.schema_ref, object.dd_object.name);
    (object.dd_object_type == "Table").then_some(named)
}

/// The object of `database.table` among those of the tables in a tablespace. The only table in a tablespace is taken
/// whatever it is called: its files may have been renamed.
pub(crate) fn object_of<'a>(objects: &'a [Vec<u8>], database: &str, table: &str) -> Option<&'a Vec<u8>> {
    if let [object] = objects {
        return Some(object);
    }
    let alike = |a: &str, b: &str| a.to_lowercase() == b.to_lowercase();
    let named = |object: &&Vec<u8>| {
        table_named_by_sdi(object).is_some_and(|(of, name)| alike(&of, database) && alike(&name, table))
    };
    objects.iter().find(named)
}

/// The text `key` of a dictionary object; empty if there is none.
pub(crate) fn private_text(json: &[u8], key: &str) -> String {
    let object: Option<SdiObject> = serde_json::from_str(&String::from_utf8_lossy(json)).ok();
    let text = object.as_ref().and_then(|object| object.dd_object.get(key)?.as_str());
    text.unwrap_or_default().to_owned()
}

/// Ids of the tablespaces that a table's dictionary object names, one for each partition; `None` where it names none.
pub(crate) type SdiTableSpaces = Vec<Option<SpaceId>>;

/// [`table_from_sdi`], with the tablespaces of its partitions.
pub(crate) fn table_and_spaces(json: &[u8]) -> Result<Option<(TableDefinition, SdiTableSpaces)>> {
    // The text of expressions is in the character sets of their literals, which is not always UTF-8.
    let object: SdiObject = serde_json::from_str(&String::from_utf8_lossy(json))
        .map_err(|error| corrupt(format!("SDI is not as expected: {error}")))?;
    if object.dd_object_type != "Table" {
        return Ok(None);
    }
    let table: SdiTable = serde_json::from_value(object.dd_object)
        .map_err(|error| corrupt(format!("SDI table is not as expected: {error}")))?;
    let place = format!("table {}.{}", table.schema_ref, table.name);
    let spaces = spaces(&table);
    definition(table).map(|table| Some((table, spaces))).map_err(|error| error.within(place))
}

fn spaces(table: &SdiTable) -> SdiTableSpaces {
    let id = |data: &str| private_number(data, "space_id").map(SpaceId);
    let leaves = leaf_partitions(&table.partitions);
    if leaves.is_empty() {
        return vec![table.indexes.iter().find_map(|index| id(&index.se_private_data))];
    }
    let of_leaf =
        |leaf: &Leaf<'_>| leaf.partition.indexes.iter().find_map(|index| id(&index.se_private_data));
    leaves.iter().map(of_leaf).collect()
}

fn corrupt(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Corrupt, message)
}

fn definition(table: SdiTable) -> Result<TableDefinition> {
    if !table.engine.is_empty() && !table.engine.eq_ignore_ascii_case("InnoDB") {
        return Err(Error::new(
            ErrorKind::Unsupported,
            format!("engine {} is not read, only InnoDB", table.engine),
        ));
    }
    let columns = Columns::new(&table.columns)?;
    let clustered = clustered_position(&table)?;
    let leaves = leaf_partitions(&table.partitions);
    let mut indexes = Vec::with_capacity(table.indexes.len());
    for (position, index) in table.indexes.iter().enumerate() {
        indexes.push(columns.index(index, roots(index, position, &leaves))?);
    }
    indexes[..=clustered].rotate_right(1);
    let stored_fields = columns.stored_fields(&indexes[0])?;
    Ok(TableDefinition {
        row_end: None,
        collation: Collation::with_id(table.collation_id),
        database: table.schema_ref,
        name: table.name,
        server: Server::MySql,
        row_format: row_format(table.row_format),
        row_versions: table.columns.iter().any(SdiColumn::has_physical_position),
        instant_columns: instant_columns(&table.se_private_data, &leaves),
        columns: columns.visible,
        indexes,
        stored_fields,
        partitions: partitions(&leaves),
    })
}

/// The clustered index is the one that holds the roll pointer.
fn clustered_position(table: &SdiTable) -> Result<usize> {
    let holds_roll_pointer = |index: &SdiIndex| {
        index
            .elements
            .iter()
            .any(|element| table.columns.get(element.column_opx).is_some_and(|c| c.name == "DB_ROLL_PTR"))
    };
    table.indexes.iter().position(holds_roll_pointer).ok_or_else(|| corrupt("SDI names no clustered index"))
}

fn row_format(code: u8) -> RowFormat {
    match code {
        3 => RowFormat::Compressed,
        4 => RowFormat::Redundant,
        5 => RowFormat::Compact,
        _ => RowFormat::Dynamic,
    }
}

/// A partition that has a file: with subpartitions these, else the partition itself.
struct Leaf<'a> {
    name: String,
    partition: &'a SdiPartition,
}

fn leaf_partitions(partitions: &[SdiPartition]) -> Vec<Leaf<'_>> {
    let mut leaves = Vec::new();
    for partition in partitions {
        if partition.subpartitions.is_empty() {
            leaves.push(Leaf { name: partition.name.clone(), partition });
        }
        for sub in &partition.subpartitions {
            leaves.push(Leaf { name: format!("{}/{}", partition.name, sub.name), partition: sub });
        }
    }
    leaves
}

fn partitions(leaves: &[Leaf<'_>]) -> Vec<Partition> {
    if leaves.is_empty() {
        return vec![Partition { name: String::new(), path: std::path::PathBuf::new() }];
    }
    leaves.iter().map(|leaf| Partition { name: leaf.name.clone(), path: std::path::PathBuf::new() }).collect()
}

fn roots(index: &SdiIndex, position: usize, leaves: &[Leaf<'_>]) -> Vec<Option<PageNo>> {
    let root = |data: &str| private_number(data, "root").map(PageNo);
    if leaves.is_empty() {
        return vec![root(&index.se_private_data)];
    }
    let of_leaf = |leaf: &Leaf<'_>| {
        leaf.partition
            .indexes
            .iter()
            .find(|index| index.index_opx == position)
            .map(|index| root(&index.se_private_data))
    };
    leaves.iter().map(|leaf| of_leaf(leaf).flatten()).collect()
}

/// Columns before the first instant ADD of MySQL 8.0.12 to 8.0.28. Each partition has its own number; one that was made
/// later has none, as its records have all columns. The number of the whole table counts only without partitions.
fn instant_columns(table: &str, leaves: &[Leaf<'_>]) -> Vec<Option<u32>> {
    const KEY: &str = "instant_col";
    let counts: Vec<Option<u32>> = match leaves {
        [] => vec![private_number(table, KEY)],
        leaves => leaves.iter().map(|leaf| private_number(&leaf.partition.se_private_data, KEY)).collect(),
    };
    if counts.iter().any(Option::is_some) { counts } else { Vec::new() }
}

/// The dictionary's columns beside those SQL shows.
struct Columns<'a> {
    all: &'a [SdiColumn],
    visible: Vec<Column>,
    /// Position in `all` -> position in `visible`.
    numbers: Vec<Option<ColumnNo>>,
}

impl<'a> Columns<'a> {
    fn new(all: &'a [SdiColumn]) -> Result<Columns<'a>> {
        let mut visible = Vec::new();
        let mut numbers = Vec::with_capacity(all.len());
        for column in all {
            if column.is_hidden() {
                numbers.push(None);
                continue;
            }
            numbers.push(Some(ColumnNo(visible.len())));
            visible.push(column.column()?);
        }
        Ok(Columns { all, visible, numbers })
    }

    fn index(&self, index: &SdiIndex, roots: Vec<Option<PageNo>>) -> Result<Index> {
        let mut readable = index.index_type < TYPE_FULLTEXT;
        let mut parts = Vec::new();
        let is_hidden_clustered = index.hidden && index.name == "PRIMARY";
        for element in index.elements.iter().filter(|element| !element.is_hidden()) {
            let number = self
                .numbers
                .get(element.column_opx)
                .ok_or_else(|| corrupt(format!("index {} names no column", index.name)))?;
            let Some(column) = *number else {
                readable = false;
                continue;
            };
            let column_type = &self.visible[column.0].column_type;
            let descending = element.order == ORDER_DESCENDING;
            parts.push(IndexPart {
                column,
                prefix_bytes: prefix_bytes(column_type, element.length),
                descending,
            });
        }
        if parts.is_empty() && !is_hidden_clustered {
            readable = false;
        }
        if !readable {
            parts.clear();
        }
        Ok(Index {
            name: if is_hidden_clustered { HIDDEN_CLUSTERED.to_owned() } else { index.name.clone() },
            id: if roots.len() == 1 { private_number(&index.se_private_data, "id").unwrap_or(0) } else { 0 },
            roots,
            unique: index.index_type <= TYPE_UNIQUE,
            kind: if readable { IndexKind::BTree } else { IndexKind::Other },
            parts,
        })
    }

    /// What clustered records hold after key and system columns, in stored order.
    fn stored_fields(&self, clustered: &Index) -> Result<Vec<StoredField>> {
        let mut fields = Vec::new();
        for (position, column) in self.all.iter().enumerate() {
            let number = self.numbers[position];
            let belongs = match number {
                Some(no) => !column.is_virtual && !held_in_full(&clustered.parts, no),
                None => column.name == FTS_DOC_ID || column.is_dropped(),
            };
            if !belongs {
                continue;
            }
            let physical = private_number::<usize>(&column.se_private_data, "physical_pos");
            let physical = physical.map(|physical| physical & PHYSICAL_POSITION);
            fields.push((physical.unwrap_or(position), self.stored_field(number, column)?));
        }
        fields.sort_by_key(|(position, _)| *position);
        Ok(fields.into_iter().map(|(_, field)| field).collect())
    }

    fn stored_field(&self, number: Option<ColumnNo>, column: &SdiColumn) -> Result<StoredField> {
        let data = &column.se_private_data;
        let instant_default = if private_number::<u8>(data, "default_null") == Some(1) {
            Some(None)
        } else {
            private_value(data, "default").map(|digits| hex(digits).map(Some)).transpose()?
        };
        Ok(StoredField {
            column: number,
            column_type: column.column_type()?,
            nullable: column.is_nullable,
            version_added: private_number(data, "version_added").unwrap_or(0),
            version_dropped: private_number(data, "version_dropped").unwrap_or(0),
            instant_default,
        })
    }
}

fn hex(digits: &str) -> Result<Vec<u8>> {
    let wrong = || corrupt("the default of a column added instantly is not hexadecimal");
    if !digits.len().is_multiple_of(2) || !digits.is_ascii() {
        return Err(wrong());
    }
    (0..digits.len())
        .step_by(2)
        .map(|i| u8::from_str_radix(&digits[i..i + 2], 16).map_err(|_| wrong()))
        .collect()
}
