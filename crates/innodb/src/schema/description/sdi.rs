//! MySQL's dictionary information -> [`TableDescription`].

use serde::Deserialize;

use super::partitioning::{self, SdiPartitioning};
use super::{
    Check, ColumnDescription, ForeignKey, KeyDescription, KeyKind, KeyPart, KeyPartOf, ReferenceRule,
    TableDescription, row_format_word,
};
use crate::schema::expression_text::expression_text;
use crate::schema::layout::prefix_bytes;
use crate::schema::sdi_column::{SdiColumn, private_number, private_value};
use crate::schema::text::decode_base64;
use crate::schema::{ColumnNo, ColumnType};
use crate::{Error, ErrorKind, Result};

#[derive(Deserialize)]
struct SdiObject {
    dd_object: SdiTable,
}

#[derive(Deserialize)]
struct SdiTable {
    #[serde(default)]
    options: String,
    #[serde(default)]
    comment: String,
    columns: Vec<serde_json::Value>,
    indexes: Vec<SdiIndex>,
    #[serde(default)]
    foreign_keys: Vec<SdiForeignKey>,
    #[serde(default)]
    check_constraints: Vec<SdiCheck>,
    #[serde(default)]
    engine_attribute: String,
    #[serde(default)]
    secondary_engine_attribute: String,
    created: Option<u64>,
    #[serde(flatten)]
    partitioning: SdiPartitioning,
}

/// What the description needs of a column; the rest is in [`SdiColumn`].
#[derive(Deserialize)]
struct SdiDeclared {
    #[serde(default)]
    is_explicit_collation: bool,
    #[serde(default)]
    srs_id: u32,
    #[serde(default)]
    srs_id_null: bool,
    #[serde(default)]
    options: String,
    #[serde(default)]
    generation_expression: String,
    #[serde(default)]
    generation_expression_utf8: String,
    #[serde(default)]
    engine_attribute: String,
    #[serde(default)]
    secondary_engine_attribute: String,
}

#[derive(Deserialize)]
struct SdiIndex {
    name: String,
    #[serde(default)]
    hidden: bool,
    #[serde(default)]
    comment: String,
    #[serde(default)]
    options: String,
    #[serde(rename = "type")]
    index_type: u8,
    #[serde(default)]
    algorithm: u8,
    #[serde(default)]
    is_algorithm_explicit: bool,
    is_visible: Option<bool>,
    elements: Vec<SdiElement>,
    tablespace_ref: Option<String>,
}

#[derive(Deserialize)]
struct SdiElement {
    length: u32,
    #[serde(default)]
    order: u8,
    hidden: Option<bool>,
    column_opx: usize,
}

#[derive(Deserialize)]
struct SdiForeignKey {
    name: String,
    update_rule: u8,
    delete_rule: u8,
    #[serde(default)]
    unique_constraint_name: String,
    referenced_table_schema_name: String,
    referenced_table_name: String,
    elements: Vec<SdiForeignKeyElement>,
}

#[derive(Deserialize)]
struct SdiForeignKeyElement {
    column_opx: usize,
    referenced_column_name: String,
}

#[derive(Deserialize)]
struct SdiCheck {
    name: String,
    state: u8,
    #[serde(default)]
    check_clause: String,
    #[serde(default)]
    check_clause_utf8: String,
}

const LENGTH_OF_HIDDEN: u32 = u32::MAX;
const ORDER_DESCENDING: u8 = 3;
const STATE_ENFORCED: u8 = 2;
const ALGORITHM_HASH: u8 = 4;

/// How the table in one dictionary object was created. `space_options` are those of its tablespace.
///
/// # Errors
/// `Corrupt` if the object is none of a table, `Unsupported` for an attribute that is not known.
pub(crate) fn description_from_sdi(json: &[u8], space_options: &str) -> Result<TableDescription> {
    let object: SdiObject = serde_json::from_str(&String::from_utf8_lossy(json))
        .map_err(|error| corrupt(format!("SDI is not as expected: {error}")))?;
    describe(object.dd_object, space_options)
}

fn corrupt(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Corrupt, message)
}

fn describe(table: SdiTable, space_options: &str) -> Result<TableDescription> {
    let has_attribute = !table.engine_attribute.is_empty() || !table.secondary_engine_attribute.is_empty();
    let mut unprinted = has_attribute.then(|| "its ENGINE_ATTRIBUTE is not read".to_owned());
    let mut columns = Columns::read(&table.columns)?;
    columns.block_size = private_number(&table.options, "key_block_size").unwrap_or(0);
    let keys = table.indexes.iter().filter(|index| !index.hidden);
    let keys = keys.map(|index| columns.key(index)).collect::<Result<Vec<_>>>()?;
    let mut foreign_keys: Vec<ForeignKey> =
        table.foreign_keys.iter().map(|key| columns.foreign_key(key)).collect::<Result<_>>()?;
    foreign_keys.sort_by_key(|key| key.name.to_lowercase());
    let mut checks: Vec<Check> = table.check_constraints.iter().map(check).collect();
    checks.sort_by_key(|check| check.name.to_lowercase());
    let mut printed = |text: Result<String>| {
        text.unwrap_or_else(|error| {
            unprinted.get_or_insert(error.to_string());
            String::new()
        })
    };
    let clause = printed(partitioning::clause(&table.partitioning));
    printed(check_options(&table.options).map(|()| String::new()));
    if let Some(why) = columns.unprinted.take() {
        unprinted.get_or_insert(why);
    }
    Ok(TableDescription {
        columns: columns.described,
        keys,
        foreign_keys,
        checks,
        comment: table.comment,
        before_engine: before_engine(&table.options, &table.indexes, space_options),
        options: options(&table.options),
        partitioned_by: partitioning::partitioned_by(&table.partitioning),
        partitions: partitioning::partitions(&table.partitioning),
        partitioning: clause,
        created: table.created,
        unprinted,
        ..TableDescription::default()
    })
}

/// The tablespace and how it grows.
fn before_engine(options: &str, indexes: &[SdiIndex], space_options: &str) -> String {
    let mut text = String::new();
    let of_options = private_value(options, "tablespace");
    let space = of_options.or_else(|| indexes.iter().find_map(|index| index.tablespace_ref.as_deref()));
    if private_value(options, "explicit_tablespace") == Some("1")
        && let Some(space) = space
    {
        text.push_str(&format!(" /*!50100 TABLESPACE `{}` */", space.replace('`', "``")));
    }
    if let Some(size) = private_number::<u64>(space_options, "autoextend_size").filter(|size| *size > 0) {
        text.push_str(&format!(" /*!80023 AUTOEXTEND_SIZE={size} */"));
    }
    text
}

/// Options that say nothing, or are shown otherwise.
const SILENT_OPTIONS: [&str; 9] = [
    "gipk",
    "encrypt_type",
    "keys_disabled",
    "pack_record",
    "explicit_tablespace",
    "tablespace",
    "storage",
    "secondary_load",
    "plugin_version",
];

/// Refuses options that are not printed.
fn check_options(text: &str) -> Result<()> {
    const KNOWN: [&str; 12] = [
        "avg_row_length",
        "checksum",
        "compress",
        "delay_key_write",
        "key_block_size",
        "max_rows",
        "min_rows",
        "pack_keys",
        "row_type",
        "stats_auto_recalc",
        "stats_persistent",
        "stats_sample_pages",
    ];
    for name in text.split(';').filter_map(|pair| pair.split_once('=')).map(|(name, _)| name) {
        if !KNOWN.contains(&name) && !SILENT_OPTIONS.contains(&name) {
            let message = format!("its option {name} is not known");
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
    }
    if private_value(text, "encrypt_type").is_some_and(|of| !matches!(of, "N" | "n" | "")) {
        return Err(Error::new(ErrorKind::Unsupported, "its ENCRYPTION is not read"));
    }
    Ok(())
}

fn options(text: &str) -> Vec<(String, String)> {
    let number = |name: &str| private_number::<u64>(text, name);
    let mut options = Vec::new();
    let mut add = |name: &str, value: Option<String>| {
        options.extend(value.map(|value| (name.to_owned(), value)));
    };
    let positive = |name: &str| number(name).filter(|value| *value > 0).map(|value| value.to_string());
    let flag = |name: &str| number(name).map(|value| u8::from(value > 0).to_string());
    add("MIN_ROWS", positive("min_rows"));
    add("MAX_ROWS", positive("max_rows"));
    add("AVG_ROW_LENGTH", positive("avg_row_length"));
    add("PACK_KEYS", flag("pack_keys"));
    add("STATS_PERSISTENT", flag("stats_persistent"));
    add("STATS_AUTO_RECALC", recalculation(number("stats_auto_recalc").unwrap_or(0)));
    add("STATS_SAMPLE_PAGES", positive("stats_sample_pages"));
    add("CHECKSUM", positive("checksum").map(|_| "1".to_owned()));
    add("DELAY_KEY_WRITE", positive("delay_key_write").map(|_| "1".to_owned()));
    let row_format = number("row_type").and_then(|code| u32::try_from(code).ok());
    add("ROW_FORMAT", row_format.and_then(row_format_word).map(str::to_owned));
    add("KEY_BLOCK_SIZE", positive("key_block_size"));
    let compression = private_value(text, "compress").filter(|name| !name.is_empty());
    add("COMPRESSION", compression.map(|name| format!("'{name}'")));
    options
}

/// The value of STATS_AUTO_RECALC behind its code.
pub(super) fn recalculation(code: u64) -> Option<String> {
    match code {
        1 => Some("1".to_owned()),
        2 => Some("0".to_owned()),
        _ => None,
    }
}

fn check(check: &SdiCheck) -> Check {
    let clause = decode_base64(&check.check_clause).unwrap_or_default();
    Check {
        name: check.name.clone(),
        expression: expression_text(&String::from_utf8_lossy(&clause), &check.check_clause_utf8),
        enforced: check.state == STATE_ENFORCED,
    }
}

struct Columns {
    all: Vec<SdiColumn>,
    /// Expressions of generated columns.
    expressions: Vec<String>,
    numbers: Vec<Option<ColumnNo>>,
    types: Vec<ColumnType>,
    described: Vec<ColumnDescription>,
    /// Block size of the table.
    block_size: u32,
    /// Why a column cannot be printed.
    unprinted: Option<String>,
}

impl Columns {
    fn read(values: &[serde_json::Value]) -> Result<Columns> {
        let mut columns = Columns {
            all: Vec::new(),
            expressions: Vec::new(),
            numbers: Vec::new(),
            types: Vec::new(),
            described: Vec::new(),
            block_size: 0,
            unprinted: None,
        };
        let wrong = |error: serde_json::Error| corrupt(format!("SDI column is not as expected: {error}"));
        for value in values {
            let column: SdiColumn = serde_json::from_value(value.clone()).map_err(wrong)?;
            let declared: SdiDeclared = serde_json::from_value(value.clone()).map_err(wrong)?;
            columns
                .expressions
                .push(expression_text(&declared.generation_expression, &declared.generation_expression_utf8));
            if column.is_hidden() {
                columns.numbers.push(None);
            } else {
                columns.numbers.push(Some(ColumnNo(columns.types.len())));
                columns.types.push(column.column_type()?);
                if let Some(why) = not_printed(&column, &declared) {
                    columns.unprinted.get_or_insert(why);
                }
                columns.described.push(described(&declared));
            }
            columns.all.push(column);
        }
        Ok(columns)
    }

    fn key(&self, index: &SdiIndex) -> Result<KeyDescription> {
        let kind = match index.index_type {
            1 => KeyKind::Primary,
            2 => KeyKind::Unique,
            3 => KeyKind::Plain,
            4 => KeyKind::FullText,
            5 => KeyKind::Spatial,
            other => {
                let message = format!("key {} is of kind {other}, which is not known", index.name);
                return Err(Error::new(ErrorKind::Unsupported, message));
            }
        };
        let shown = |element: &&SdiElement| !element.hidden.unwrap_or(element.length == LENGTH_OF_HIDDEN);
        let parts = index.elements.iter().filter(shown).map(|element| self.part(index, element, kind));
        Ok(KeyDescription {
            name: index.name.clone(),
            kind,
            parts: parts.collect::<Result<_>>()?,
            algorithm: (index.is_algorithm_explicit && !matches!(kind, KeyKind::FullText | KeyKind::Spatial))
                .then_some(if index.algorithm == ALGORITHM_HASH { "HASH" } else { "BTREE" }),
            block_size: private_number(&index.options, "block_size")
                .filter(|size| *size > 0 && *size != self.block_size),
            comment: index.comment.clone(),
            parser: private_value(&index.options, "parser_name").map(str::to_owned),
            ignored: index.is_visible == Some(false),
        })
    }

    fn part(&self, index: &SdiIndex, element: &SdiElement, kind: KeyKind) -> Result<KeyPart> {
        let wrong = || corrupt(format!("index {} names no column", index.name));
        let number = self.numbers.get(element.column_opx).ok_or_else(wrong)?;
        let nullable = self.all.get(element.column_opx).is_some_and(|column| column.is_nullable);
        let Some(no) = *number else {
            let expression = self.expressions.get(element.column_opx).ok_or_else(wrong)?;
            return Ok(KeyPart {
                of: KeyPartOf::Expression(expression.clone()),
                prefix: None,
                descending: element.order == ORDER_DESCENDING,
                nullable,
            });
        };
        let column_type = self.types.get(no.0).ok_or_else(wrong)?;
        let has_prefix = !matches!(kind, KeyKind::FullText | KeyKind::Spatial);
        let bytes = prefix_bytes(column_type, element.length).filter(|_| has_prefix);
        Ok(KeyPart {
            of: KeyPartOf::Column(no),
            prefix: bytes.map(|bytes| bytes / character_bytes(column_type)),
            descending: element.order == ORDER_DESCENDING,
            nullable,
        })
    }

    fn foreign_key(&self, key: &SdiForeignKey) -> Result<ForeignKey> {
        let name = |element: &SdiForeignKeyElement| {
            let column = self.all.get(element.column_opx).map(|column| column.name.clone());
            column.ok_or_else(|| corrupt(format!("foreign key {} names no column", key.name)))
        };
        Ok(ForeignKey {
            name: key.name.clone(),
            columns: key.elements.iter().map(name).collect::<Result<_>>()?,
            parent_database: key.referenced_table_schema_name.clone(),
            parent_table: key.referenced_table_name.clone(),
            parent_columns: key
                .elements
                .iter()
                .map(|element| element.referenced_column_name.clone())
                .collect(),
            parent_key: Some(key.unique_constraint_name.clone()).filter(|name| !name.is_empty()),
            on_update: rule(key.update_rule)?,
            on_delete: rule(key.delete_rule)?,
        })
    }
}

/// Most bytes of a character of a text; 1 for anything else.
pub(super) fn character_bytes(column_type: &ColumnType) -> u32 {
    match column_type {
        ColumnType::Char { collation, .. }
        | ColumnType::VarChar { collation, .. }
        | ColumnType::Text { collation, .. } => u32::from(collation.max_bytes).max(1),
        _ => 1,
    }
}

fn rule(code: u8) -> Result<ReferenceRule> {
    match code {
        1 => Ok(ReferenceRule::NoAction),
        2 => Ok(ReferenceRule::Restrict),
        3 => Ok(ReferenceRule::Cascade),
        4 => Ok(ReferenceRule::SetNull),
        5 => Ok(ReferenceRule::SetDefault),
        other => Err(corrupt(format!("a foreign key has rule {other}"))),
    }
}

/// Why a column cannot be printed as the server prints it.
fn not_printed(column: &SdiColumn, declared: &SdiDeclared) -> Option<String> {
    if !declared.engine_attribute.is_empty() || !declared.secondary_engine_attribute.is_empty() {
        return Some(format!("the ENGINE_ATTRIBUTE of column {} is not read", column.name));
    }
    (private_value(&declared.options, "not_secondary") == Some("1"))
        .then(|| format!("NOT SECONDARY of column {} is not read", column.name))
}

fn described(declared: &SdiDeclared) -> ColumnDescription {
    ColumnDescription {
        explicit_collation: declared.is_explicit_collation,
        srid: (!declared.srs_id_null).then_some(declared.srs_id),
        column_format: match private_number::<u8>(&declared.options, "column_format") {
            Some(1) => Some("FIXED"),
            Some(2) => Some("DYNAMIC"),
            _ => None,
        },
        storage: match private_number::<u8>(&declared.options, "storage") {
            Some(1) => Some("DISK"),
            Some(2) => Some("MEMORY"),
            _ => None,
        },
        ..ColumnDescription::default()
    }
}
