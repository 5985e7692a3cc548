//! How a table was created: what `SHOW CREATE TABLE` and `information_schema` say beyond what its rows need.
//!
//! A [`TableDescription`] comes from the same source as the table's [`TableDefinition`]: MySQL's dictionary information
//! ([`sdi`]) or MariaDB's `.frm` ([`frm`]). Its columns are those of the definition, in the same order. What a source
//! does not say, or not for certain, is named in [`TableDescription::omitted`]; what is not known to this reader is an
//! error.
//!
//! [`TableDefinition`]: super::TableDefinition

mod frm;
mod partition_clause;
mod partitioning;
mod sdi;

pub(crate) use frm::description_from_frm;
pub(crate) use sdi::description_from_sdi;

use super::ColumnNo;

/// See the [module](self).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableDescription {
    /// What the columns are declared with beyond their definitions.
    pub columns: Vec<ColumnDescription>,
    /// Keys in the server's order.
    pub keys: Vec<KeyDescription>,
    /// Foreign keys, sorted by name.
    pub foreign_keys: Vec<ForeignKey>,
    /// CHECK constraints of the table, in the server's order.
    pub checks: Vec<Check>,
    /// Names of the columns that system versioning keeps, if the table declares them itself.
    pub period: Option<(String, String)>,
    /// Whether the table has system versioning (MariaDB).
    pub system_versioning: bool,
    /// Comment.
    pub comment: String,
    /// Options of the table in the server's order, without engine, character set and comment: `ROW_FORMAT`, `DYNAMIC`.
    pub options: Vec<(String, String)>,
    /// What stands before `ENGINE`: the tablespace of MySQL.
    pub before_engine: String,
    /// The clause about partitions as the server prints it; empty if the table has none.
    pub partitioning: String,
    /// By what rows are spread over partitions; none where the table has none.
    pub partitioned_by: Option<PartitionedBy>,
    /// The partitions in their order.
    pub partitions: Vec<PartitionDescription>,
    /// When the table was created, in UTC, as the number YYYYMMDDhhmmss (MySQL).
    pub created: Option<u64>,
    /// Whether it is a sequence (MariaDB).
    pub is_sequence: bool,
    /// The version of the format of the definition's file (MariaDB).
    pub version: Option<u8>,
    /// The version of the server, as far as the files tell it: 101119 is 10.11.19 (MariaDB).
    pub server_version: Option<u32>,
    /// The next value of AUTO_INCREMENT, if it is known.
    pub auto_increment: Option<u64>,
    /// Options that the table may have, but which the files do not tell.
    pub omitted: Vec<String>,
    /// Why its CREATE TABLE cannot be printed, if it cannot; the rest is right nonetheless.
    pub unprinted: Option<String>,
}

/// The name of the option of a table whose file is outside of the data directory.
pub const DATA_DIRECTORY: &str = "DATA DIRECTORY";

impl TableDescription {
    /// The parts of a key that the server shows: without the column that system versioning adds to unique keys.
    pub fn shown_parts<'a>(&'a self, key: &'a KeyDescription) -> impl Iterator<Item = &'a KeyPart> {
        key.parts.iter().filter(|part| match &part.of {
            KeyPartOf::Column(no) => self.columns.get(no.0).is_none_or(|column| !column.is_hidden),
            KeyPartOf::Expression(_) => true,
        })
    }
}

/// A column's declaration beyond its definition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ColumnDescription {
    /// Whether the server shows its character set even if it is the table's.
    pub explicit_collation: bool,
    /// Spatial reference system.
    pub srid: Option<u32>,
    /// `FIXED` or `DYNAMIC`.
    pub column_format: Option<&'static str>,
    /// `DISK` or `MEMORY`.
    pub storage: Option<&'static str>,
    /// CHECK of the column (MariaDB).
    pub check: Option<String>,
    /// Whether the server added it for system versioning and shows it nowhere.
    pub is_hidden: bool,
    /// Whether a change of it makes no version (MariaDB).
    pub without_versioning: bool,
    /// `ROW START` or `ROW END`.
    pub row_period: Option<&'static str>,
    /// Options of the engine, which are printed behind the comment.
    pub options: Vec<(String, String)>,
}

/// Kind of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyKind {
    /// PRIMARY KEY.
    Primary,
    /// UNIQUE KEY.
    Unique,
    /// KEY.
    Plain,
    /// FULLTEXT KEY.
    FullText,
    /// SPATIAL KEY.
    Spatial,
    /// VECTOR KEY (MariaDB).
    Vector,
}

/// A key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyDescription {
    /// Name.
    pub name: String,
    /// Kind.
    pub kind: KeyKind,
    /// Parts.
    pub parts: Vec<KeyPart>,
    /// The algorithm that was asked for, `BTREE` or `HASH`.
    pub algorithm: Option<&'static str>,
    /// Block size if it is not the table's, in KiB.
    pub block_size: Option<u32>,
    /// Comment.
    pub comment: String,
    /// Parser of a FULLTEXT key.
    pub parser: Option<String>,
    /// Whether the optimizer of the server leaves it alone: INVISIBLE of MySQL, IGNORED of MariaDB.
    pub ignored: bool,
}

/// A part of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyPart {
    /// The column, or the expression in its place.
    pub of: KeyPartOf,
    /// How many characters (bytes of binary columns) are indexed, if only a prefix is.
    pub prefix: Option<u32>,
    /// DESC.
    pub descending: bool,
    /// Whether it may be NULL.
    pub nullable: bool,
}

/// What a part of a key holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyPartOf {
    /// A column.
    Column(ColumnNo),
    /// An expression.
    Expression(String),
}

/// A foreign key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignKey {
    /// Name.
    pub name: String,
    /// Names of its columns.
    pub columns: Vec<String>,
    /// Database of the parent table.
    pub parent_database: String,
    /// Name of the parent table.
    pub parent_table: String,
    /// Names of the parent's columns.
    pub parent_columns: Vec<String>,
    /// Name of the parent's key, where the files tell it.
    pub parent_key: Option<String>,
    /// ON UPDATE.
    pub on_update: ReferenceRule,
    /// ON DELETE.
    pub on_delete: ReferenceRule,
}

/// What a foreign key does with the rows of the child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReferenceRule {
    /// NO ACTION.
    NoAction,
    /// RESTRICT.
    Restrict,
    /// CASCADE.
    Cascade,
    /// SET NULL.
    SetNull,
    /// SET DEFAULT.
    SetDefault,
}

impl ReferenceRule {
    /// The words of SQL.
    pub fn words(self) -> &'static str {
        match self {
            ReferenceRule::NoAction => "NO ACTION",
            ReferenceRule::Restrict => "RESTRICT",
            ReferenceRule::Cascade => "CASCADE",
            ReferenceRule::SetNull => "SET NULL",
            ReferenceRule::SetDefault => "SET DEFAULT",
        }
    }
}

/// A CHECK constraint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// Name.
    pub name: String,
    /// Expression.
    pub expression: String,
    /// Whether the server enforces it.
    pub enforced: bool,
}

/// By what rows are spread over partitions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PartitionedBy {
    /// The method: `RANGE`, `LIST COLUMNS`, `LINEAR HASH`.
    pub method: String,
    /// The expression, or the columns.
    pub expression: Option<String>,
    /// The method of subpartitions.
    pub sub_method: Option<String>,
    /// Their expression, or their columns.
    pub sub_expression: Option<String>,
}

/// A partition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PartitionDescription {
    /// Name.
    pub name: String,
    /// Its subpartitions.
    pub subpartitions: Vec<SubpartitionDescription>,
    /// Its bound or its values, if it has some that the files tell.
    pub description: Option<String>,
    /// Comment.
    pub comment: String,
    /// The tablespace that was chosen for it, if it is not its own (MySQL).
    pub tablespace: Option<String>,
}

/// A subpartition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SubpartitionDescription {
    /// Name.
    pub name: String,
    /// Comment.
    pub comment: String,
    /// The tablespace that was chosen for it, if it is not its own (MySQL).
    pub tablespace: Option<String>,
}

/// Value of one of the bits that both servers keep options in.
pub(super) mod option_bits {
    /// `PACK_KEYS = 1`.
    pub const PACK_KEYS: u32 = 2;
    /// `CHECKSUM = 1`.
    pub const CHECKSUM: u32 = 32;
    /// `DELAY_KEY_WRITE = 1`.
    pub const DELAY_KEY_WRITE: u32 = 64;
    /// `PACK_KEYS = 0`.
    pub const NO_PACK_KEYS: u32 = 128;
    /// `STATS_PERSISTENT = 1`.
    pub const STATS_PERSISTENT: u32 = 4096;
    /// `STATS_PERSISTENT = 0`.
    pub const NO_STATS_PERSISTENT: u32 = 8192;
}

/// The word of a row format's code in both sources; `None` for the server's default.
pub(super) fn row_format_word(code: u32) -> Option<&'static str> {
    match code {
        1 => Some("FIXED"),
        2 => Some("DYNAMIC"),
        3 => Some("COMPRESSED"),
        4 => Some("REDUNDANT"),
        5 => Some("COMPACT"),
        _ => None,
    }
}
