//! What a table looks like: columns, indexes, partitions.
//!
//! A [`TableDefinition`] is everything that reading rows needs, whoever wrote the table. It comes from one of three
//! sources, which agree on every sample table: the dictionary information inside of MySQL's tablespaces
//! ([`read_sdi_tables`], [`table_from_sdi`]), MariaDB's `.frm` ([`table_from_frm`]), or `CREATE TABLE` text
//! ([`table_from_ddl`]). `layout` works out what the servers do not say: which index is clustered and what its records
//! hold in which order.

mod collation;
mod collation_table;
mod ddl;
mod declaration;
pub mod description;
mod display;
mod expression_text;
mod frm;
mod frm_bytes;
mod frm_column;
mod frm_default;
mod frm_extra;
mod frm_key;
pub(crate) mod instant_mariadb;
mod layout;
mod sdi;
mod sdi_column;
mod sdi_tree;
mod stored_size;
mod text;

pub use ddl::table_from_ddl;
pub(crate) use ddl::{names_temporal_forms, tables_named};
pub use declaration::{Declaration, DefaultValue};
pub use description::TableDescription;
pub(crate) use description::{description_from_frm, description_from_sdi};
pub use display::Display;
pub use frm::{is_innodb_frm, partition_names, table_from_frm};
pub(crate) use sdi::private_text;
pub use sdi::table_from_sdi;
pub(crate) use sdi::{SdiTableSpaces, object_of, table_and_spaces, table_named_by_sdi};
pub(crate) use sdi_column::private_number;
pub(crate) use sdi_tree::read_sdi_spaces;
pub use sdi_tree::read_sdi_tables;
pub use tanada_collation::Server;

/// Position of a column in [`TableDefinition::columns`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ColumnNo(pub usize);

/// Position of an index in [`TableDefinition::indexes`]; 0 is the clustered one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IndexNo(pub usize);

/// A character set and how its strings compare.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Collation {
    /// Server's collation number (45 = utf8mb4_general_ci), 0 if unknown.
    pub id: u16,
    /// Name of the collation, e.g. `utf8mb4_0900_ai_ci`.
    pub name: String,
    /// Name of the character set, e.g. `utf8mb4`, `latin1`, `binary`.
    pub charset: String,
    /// Most bytes a character takes (1 to 4).
    pub max_bytes: u8,
    /// Fewest bytes a character takes (1, 2 or 4): variable-width sets store CHAR(n) with trailing spaces cut.
    pub min_bytes: u8,
}

/// SQL type of a column.
#[expect(missing_docs, reason = "each variant's text explains its fields")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ColumnType {
    /// TINYINT .. BIGINT: 1, 2, 3, 4 or 8 bytes.
    Integer { bytes: u8, unsigned: bool },
    /// DECIMAL(precision, scale).
    Decimal { precision: u8, scale: u8, unsigned: bool },
    /// FLOAT.
    Float,
    /// DOUBLE.
    Double,
    /// BIT(bits), 1 to 64.
    Bit { bits: u8 },
    /// YEAR.
    Year,
    /// DATE (3 bytes).
    Date,
    /// TIME(fsp); `legacy` is the 3-byte form of before MySQL 5.6 / mysql56_temporal_format=OFF.
    Time { fsp: u8, legacy: bool },
    /// DATETIME(fsp).
    DateTime { fsp: u8, legacy: bool },
    /// TIMESTAMP(fsp), stored in UTC.
    Timestamp { fsp: u8, legacy: bool },
    /// CHAR(length in characters).
    Char { length: u32, collation: Collation },
    /// VARCHAR(length in characters).
    VarChar { length: u32, collation: Collation },
    /// BINARY(length in bytes).
    Binary { length: u32 },
    /// VARBINARY(length in bytes).
    VarBinary { length: u32 },
    /// TINYTEXT .. LONGTEXT; `length_bytes` is 1 to 4.
    Text { length_bytes: u8, collation: Collation },
    /// TINYBLOB .. LONGBLOB.
    Blob { length_bytes: u8 },
    /// JSON of MySQL (binary form). MariaDB's JSON is LONGTEXT.
    Json,
    /// ENUM with its elements (already UTF-8).
    Enum { elements: Vec<String> },
    /// SET with its elements (already UTF-8).
    Set { elements: Vec<String> },
    /// GEOMETRY and its kin: SRID and WKB bytes.
    Geometry,
    /// VECTOR: packed 4-byte floats. `dimensions` is how many there are (MariaDB) or at most (MySQL); MySQL stores it
    /// like a BLOB, MariaDB like a VARBINARY.
    Vector { dimensions: u32, is_blob: bool },
    /// UUID of MariaDB (16 bytes).
    Uuid,
    /// INET6 of MariaDB (16 bytes).
    Inet6,
    /// INET4 of MariaDB (4 bytes).
    Inet4,
}

/// A column as SQL shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Name.
    pub name: String,
    /// Type.
    pub column_type: ColumnType,
    /// How its numbers are printed.
    pub display: Display,
    /// Whether NULL is allowed.
    pub nullable: bool,
    /// Hidden from `SELECT *` (MySQL INVISIBLE, MariaDB INVISIBLE); still selectable by name.
    pub invisible: bool,
    /// Expression text if it is a VIRTUAL generated column (not stored in the clustered index).
    pub virtual_expression: Option<String>,
    /// Whether MariaDB compresses each value (the COMPRESSED attribute).
    pub compressed: bool,
    /// Comment.
    pub comment: String,
    /// What DESCRIBE says beyond this.
    pub declaration: Declaration,
}

/// One physical field of the clustered record after the key and the system columns, in stored order. Dropped columns
/// are included, a key column of which the key has only a prefix (in full), and hidden ones that SQL never shows
/// (`FTS_DOC_ID`).
#[derive(Debug, Clone, PartialEq)]
pub struct StoredField {
    /// The visible column, or `None` for a dropped or hidden one.
    pub column: Option<ColumnNo>,
    /// Type as it is stored (needed for dropped ones too, to step over them): a compressed column's is one of bytes.
    pub column_type: ColumnType,
    /// Whether the field is nullable on disk.
    pub nullable: bool,
    /// MySQL row versions: the version that added it (0 = from the start).
    pub version_added: u32,
    /// MySQL row versions: the version that dropped it (0 = still there).
    pub version_dropped: u32,
    /// What rows show that were written before the field was added: `None` if unknown here, `Some(None)` is NULL,
    /// `Some(Some(bytes))` the stored form.
    pub instant_default: Option<Option<Vec<u8>>>,
}

/// A key part of an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexPart {
    /// The column.
    pub column: ColumnNo,
    /// Prefix length in bytes, if only a prefix is indexed.
    pub prefix_bytes: Option<u32>,
    /// DESC.
    pub descending: bool,
}

/// Kind of an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexKind {
    /// A B+tree that can be read.
    BTree,
    /// FULLTEXT, SPATIAL, or one over functional (hidden) columns that is not read.
    Other,
}

/// An index.
#[derive(Debug, Clone, PartialEq)]
pub struct Index {
    /// Name; `PRIMARY` for the primary key, `GEN_CLUST_INDEX` for the hidden one.
    pub name: String,
    /// InnoDB's index id; 0 if unknown.
    pub id: u64,
    /// Root page in each partition's space (one entry if not partitioned); `None` until found from the segment inodes.
    pub roots: Vec<Option<crate::PageNo>>,
    /// UNIQUE.
    pub unique: bool,
    /// Kind.
    pub kind: IndexKind,
    /// Parts the user declared. A hidden clustered index has none: its key is the 6-byte row id.
    pub parts: Vec<IndexPart>,
}

/// A partition: its name and file. A table without partitions has one with an empty name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    /// Name; `p/sp` for a subpartition.
    pub name: String,
    /// The `.ibd` file.
    pub path: std::path::PathBuf,
}

/// Record layout family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowFormat {
    /// REDUNDANT.
    Redundant,
    /// COMPACT: off-page columns keep a 768-byte prefix.
    Compact,
    /// DYNAMIC.
    Dynamic,
    /// COMPRESSED.
    Compressed,
}

/// Everything needed to read a table.
#[derive(Debug, Clone, PartialEq)]
pub struct TableDefinition {
    /// Database.
    pub database: String,
    /// Table.
    pub name: String,
    /// Who wrote it.
    pub server: Server,
    /// Default collation of its texts, where the definition says it.
    pub collation: Option<Collation>,
    /// Row format (a hint on MariaDB: each index page's header decides REDUNDANT or not).
    pub row_format: RowFormat,
    /// Columns in SQL order (invisible ones included, dropped ones not).
    pub columns: Vec<Column>,
    /// Indexes; the clustered one first.
    pub indexes: Vec<Index>,
    /// Non-key fields of the clustered record in stored order (key columns and system columns left out; virtual columns
    /// are not stored).
    pub stored_fields: Vec<StoredField>,
    /// Whether MySQL row versions (instant ADD/DROP of 8.0.29+) may occur.
    pub row_versions: bool,
    /// MariaDB's system versioning: the column that says when a row ceased to be. Only current rows, which it has for
    /// ever, are shown.
    pub row_end: Option<ColumnNo>,
    /// MySQL 8.0.12-8.0.28 instant ADD: for each partition the number of columns before its first instant ADD. Empty if
    /// no partition has had one.
    pub instant_columns: Vec<Option<u32>>,
    /// Partitions.
    pub partitions: Vec<Partition>,
}

impl TableDefinition {
    /// The column called `name` (exact, then without regard to ASCII case).
    pub fn column(&self, name: &str) -> Option<ColumnNo> {
        let exact = self.columns.iter().position(|column| column.name == name);
        exact
            .or_else(|| self.columns.iter().position(|column| column.name.eq_ignore_ascii_case(name)))
            .map(ColumnNo)
    }
}
