//! Keys, foreign keys and CHECK constraints.

use tanada_innodb::schema::description::{ForeignKey, KeyDescription, KeyKind, KeyPart, KeyPartOf};
use tanada_innodb::schema::{IndexKind, Server};
use tanada_innodb::{Index, TableDefinition};

use super::Described;
use super::rows::Row;
use super::tables::place;
use crate::session::described::escaped;

/// How many bytes of a geometry a SPATIAL key has, as both servers show it.
const SPATIAL_PREFIX: u32 = 32;

/// The keys of a table as its server lists them. Where its definition is given as CREATE TABLE text, those that are
/// read.
pub(super) fn keys(described: &Described<'_>) -> Vec<KeyDescription> {
    if described.description.is_some_and(|of| of.is_sequence) {
        return Vec::new();
    }
    match described.description {
        Some(description) => description.keys.clone(),
        None => {
            let indexes = described.definition.indexes.iter();
            let own = indexes.filter(|index| {
                index.name != "GEN_CLUST_INDEX" && index.kind == IndexKind::BTree && !index.parts.is_empty()
            });
            own.map(|index| of_index(described.definition, index)).collect()
        }
    }
}

fn of_index(definition: &TableDefinition, index: &Index) -> KeyDescription {
    let part = |part: &tanada_innodb::IndexPart| KeyPart {
        of: KeyPartOf::Column(part.column),
        prefix: part.prefix_bytes.map(|bytes| {
            let column = definition.columns.get(part.column.0);
            let collation = column.and_then(|column| column.declaration.text_collation(&column.column_type));
            bytes / collation.map_or(1, |of| u32::from(of.max_bytes).max(1))
        }),
        descending: part.descending,
        nullable: definition.columns.get(part.column.0).is_some_and(|column| column.nullable),
    };
    KeyDescription {
        name: index.name.clone(),
        kind: match (index.name.as_str(), index.unique) {
            ("PRIMARY", _) => KeyKind::Primary,
            (_, true) => KeyKind::Unique,
            (_, false) => KeyKind::Plain,
        },
        parts: index.parts.iter().map(part).collect(),
        algorithm: None,
        block_size: None,
        comment: String::new(),
        parser: None,
        ignored: false,
    }
}

fn is_unique(key: &KeyDescription) -> bool {
    matches!(key.kind, KeyKind::Primary | KeyKind::Unique)
}

fn column_name<'a>(definition: &'a TableDefinition, part: &KeyPart) -> Option<&'a String> {
    match &part.of {
        KeyPartOf::Column(no) => definition.columns.get(no.0).map(|column| &column.name),
        KeyPartOf::Expression(_) => None,
    }
}

/// The rows of a table in STATISTICS.
pub(in crate::session) fn statistics(described: &Described<'_>) -> Vec<Row> {
    let definition = described.definition;
    let mut rows = Vec::new();
    for key in keys(described) {
        let kind = match (key.kind, key.algorithm) {
            (KeyKind::FullText, _) => "FULLTEXT",
            (KeyKind::Spatial, _) => "SPATIAL",
            (KeyKind::Vector, _) => "VECTOR",
            // MariaDB's unique keys of long texts; all other keys of InnoDB are trees, whatever was asked for.
            (KeyKind::Unique, _) if is_hash(definition, &key) => "HASH",
            _ => "BTREE",
        };
        let parts: Vec<&KeyPart> = match described.description {
            Some(description) => description.shown_parts(&key).collect(),
            None => key.parts.iter().collect(),
        };
        for (no, part) in parts.into_iter().enumerate() {
            let expression = match &part.of {
                KeyPartOf::Expression(text) => Some(escaped(text)),
                KeyPartOf::Column(_) => None,
            };
            let direction = if part.descending { "D" } else { "A" };
            let prefix = part.prefix.or((key.kind == KeyKind::Spatial).then_some(SPATIAL_PREFIX));
            rows.push(
                place(definition)
                    .with("NON_UNIQUE", u8::from(!is_unique(&key)))
                    .with("INDEX_SCHEMA", &definition.database)
                    .with("INDEX_NAME", &key.name)
                    .with("SEQ_IN_INDEX", no + 1)
                    .maybe("COLUMN_NAME", column_name(definition, part))
                    .maybe("COLLATION", (key.kind != KeyKind::FullText).then_some(direction))
                    .maybe("SUB_PART", prefix)
                    .with("NULLABLE", if part.nullable { "YES" } else { "" })
                    .with("INDEX_TYPE", kind)
                    .with("COMMENT", "")
                    .with("INDEX_COMMENT", &key.comment)
                    .with("IGNORED", if key.ignored { "YES" } else { "NO" })
                    .with("IS_VISIBLE", if key.ignored { "NO" } else { "YES" })
                    .maybe("EXPRESSION", expression),
            );
        }
    }
    rows
}

/// Whether MariaDB keeps a key as the hash of its values: there is no tree of that name.
fn is_hash(definition: &TableDefinition, key: &KeyDescription) -> bool {
    let mut indexes = definition.indexes.iter();
    let is_tree = |index: &Index| index.name == key.name && index.kind == IndexKind::BTree;
    definition.server == Server::MariaDb && !indexes.any(is_tree)
}

/// Catalog, database and name of a constraint.
fn constraint(definition: &TableDefinition, name: &str) -> Row {
    place(definition)
        .with("CONSTRAINT_CATALOG", "def")
        .with("CONSTRAINT_SCHEMA", &definition.database)
        .with("CONSTRAINT_NAME", name)
}

/// The rows of a table in KEY_COLUMN_USAGE.
pub(super) fn usage(described: &Described<'_>) -> Vec<Row> {
    let definition = described.definition;
    let mut rows = Vec::new();
    for key in keys(described).iter().filter(|key| is_unique(key)) {
        for (no, part) in key.parts.iter().enumerate() {
            if let Some(column) = column_name(definition, part) {
                rows.push(
                    constraint(definition, &key.name)
                        .with("COLUMN_NAME", column)
                        .with("ORDINAL_POSITION", no + 1),
                );
            }
        }
    }
    for key in foreign_keys(described) {
        for (no, (own, parent)) in key.columns.iter().zip(&key.parent_columns).enumerate() {
            rows.push(
                constraint(definition, &key.name)
                    .with("COLUMN_NAME", own)
                    .with("ORDINAL_POSITION", no + 1)
                    .with("POSITION_IN_UNIQUE_CONSTRAINT", no + 1)
                    .with("REFERENCED_TABLE_SCHEMA", &key.parent_database)
                    .with("REFERENCED_TABLE_NAME", &key.parent_table)
                    .with("REFERENCED_COLUMN_NAME", parent),
            );
        }
    }
    rows
}

pub(super) fn foreign_keys<'a>(described: &Described<'a>) -> &'a [ForeignKey] {
    described.description.map_or(&[], |of| &of.foreign_keys)
}

/// The rows of a table in TABLE_CONSTRAINTS.
pub(super) fn constraints(described: &Described<'_>) -> Vec<Row> {
    let definition = described.definition;
    let row = |name: &str, kind: &str, is_enforced: bool| {
        constraint(definition, name)
            .with("CONSTRAINT_TYPE", kind)
            .with("ENFORCED", if is_enforced { "YES" } else { "NO" })
    };
    let mut rows = Vec::new();
    for key in keys(described).iter().filter(|key| is_unique(key)) {
        let kind = if key.kind == KeyKind::Primary { "PRIMARY KEY" } else { "UNIQUE" };
        rows.push(row(&key.name, kind, true));
    }
    rows.extend(foreign_keys(described).iter().map(|key| row(&key.name, "FOREIGN KEY", true)));
    rows.extend(column_checks(described).map(|(name, _)| row(name, "CHECK", true)));
    let checks = described.description.iter().flat_map(|of| &of.checks);
    rows.extend(checks.map(|check| row(&check.name, "CHECK", check.enforced)));
    rows
}

/// CHECKs of columns (MariaDB): the column's name and the expression.
fn column_checks<'a>(described: &Described<'a>) -> impl Iterator<Item = (&'a str, &'a String)> {
    let columns = described.description.map_or(&[][..], |of| &of.columns);
    let named = described.definition.columns.iter().zip(columns);
    named.filter_map(|(column, of)| Some((column.name.as_str(), of.check.as_ref()?)))
}

/// The rows of a table in CHECK_CONSTRAINTS.
pub(super) fn checks(described: &Described<'_>) -> Vec<Row> {
    let definition = described.definition;
    let of_columns = column_checks(described).map(|(name, expression)| {
        constraint(definition, name).with("LEVEL", "Column").with("CHECK_CLAUSE", expression)
    });
    let checks = described.description.iter().flat_map(|of| &of.checks);
    let of_table = checks.map(|check| {
        let clause = match definition.server {
            Server::MySql => escaped(&check.expression),
            Server::MariaDb => check.expression.clone(),
        };
        constraint(definition, &check.name).with("LEVEL", "Table").with("CHECK_CLAUSE", clause)
    });
    of_columns.chain(of_table).collect()
}

/// The row of a foreign key in REFERENTIAL_CONSTRAINTS; `parent` is the table that it refers to, if it is there.
pub(super) fn reference(
    definition: &TableDefinition,
    key: &ForeignKey,
    parent: Option<&TableDefinition>,
) -> Row {
    let own = || parent.and_then(|parent| referenced_index(parent, &key.parent_columns)).cloned();
    constraint(definition, &key.name)
        .with("UNIQUE_CONSTRAINT_CATALOG", "def")
        .with("UNIQUE_CONSTRAINT_SCHEMA", &key.parent_database)
        .maybe("UNIQUE_CONSTRAINT_NAME", key.parent_key.clone().or_else(own))
        .with("MATCH_OPTION", "NONE")
        .with("UPDATE_RULE", key.on_update.words())
        .with("DELETE_RULE", key.on_delete.words())
        .with("REFERENCED_TABLE_NAME", &key.parent_table)
}

/// The index that InnoDB takes for the parent's columns: the first that begins with them, in the order in which the
/// indexes were made. An index ends with the columns of the clustered one.
fn referenced_index<'a>(parent: &'a TableDefinition, columns: &[String]) -> Option<&'a String> {
    let clustered = parent.indexes.first()?;
    let mut indexes: Vec<&Index> = parent.indexes.iter().collect();
    indexes.sort_by_key(|index| index.id);
    let begins = |index: &&&Index| {
        let own = index.parts.iter();
        let appended = clustered.parts.iter().filter(|part| {
            !index.parts.iter().any(|own| own.column == part.column && own.prefix_bytes.is_none())
        });
        let parts: Vec<_> = own.chain(appended).collect();
        index.kind == IndexKind::BTree
            && parts.len() >= columns.len()
            && columns.iter().zip(parts).all(|(name, part)| {
                let column = parent.columns.get(part.column.0);
                part.prefix_bytes.is_none()
                    && column.is_some_and(|column| column.name.eq_ignore_ascii_case(name))
            })
    };
    indexes.iter().find(begins).map(|index| &index.name)
}
