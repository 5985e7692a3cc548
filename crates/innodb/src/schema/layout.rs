//! How columns and keys settle into records: which index is clustered, and what its records hold after the key.
//!
//! A clustered record is the key, then the transaction id and the roll pointer, then every stored column that the key
//! does not hold in full, in table order (`dict_index_build_internal_clust`). A column of which the key has only a
//! prefix therefore comes twice.

use super::{Column, ColumnNo, ColumnType, Index, IndexKind, IndexPart, StoredField, TableDefinition};

/// Name InnoDB gives to the hidden clustered index over row ids.
pub(super) const HIDDEN_CLUSTERED: &str = "GEN_CLUST_INDEX";
/// The hidden column that full-text indexes hang on.
pub(super) const FTS_DOC_ID: &str = "FTS_DOC_ID";
const FTS_DOC_ID_INDEX: &str = "FTS_DOC_ID_INDEX";

/// Puts the clustered index first: PRIMARY, else the first unique key whose parts are whole columns that are never
/// NULL, else a hidden one.
pub(super) fn clustered_first(indexes: &mut Vec<Index>, columns: &[Column]) {
    let serves = |index: &Index| {
        index.unique
            && index.kind == IndexKind::BTree
            && !index.parts.is_empty()
            && index.parts.iter().all(|part| {
                part.prefix_bytes.is_none()
                    && columns
                        .get(part.column.0)
                        .is_some_and(|c| !c.nullable && c.virtual_expression.is_none())
            })
    };
    let primary = indexes.iter().position(|index| index.name == "PRIMARY" && index.unique);
    match primary.or_else(|| indexes.iter().position(serves)) {
        Some(position) => indexes[..=position].rotate_right(1),
        None => indexes.insert(0, hidden_clustered()),
    }
}

/// The clustered index of a table without a usable key.
pub(super) fn hidden_clustered() -> Index {
    Index {
        name: HIDDEN_CLUSTERED.to_owned(),
        id: 0,
        roots: vec![None],
        unique: true,
        kind: IndexKind::BTree,
        parts: Vec::new(),
    }
}

/// The stored fields of a table that was never altered instantly.
pub(super) fn stored_fields(columns: &[Column], clustered: &Index) -> Vec<StoredField> {
    let stored = columns.iter().enumerate().filter(|(no, column)| {
        column.virtual_expression.is_none() && !held_in_full(&clustered.parts, ColumnNo(*no))
    });
    stored
        .map(|(no, column)| StoredField::plain(Some(ColumnNo(no)), column.stored_type(), column.nullable))
        .collect()
}

/// Adds what InnoDB adds unseen to a table with full-text indexes and no `FTS_DOC_ID` of its own: the column and its
/// index.
pub(super) fn add_document_id(columns: &[Column], indexes: &mut Vec<Index>, fields: &mut Vec<StoredField>) {
    if columns.iter().any(|column| column.name == FTS_DOC_ID) {
        return;
    }
    fields.push(StoredField::document_id());
    let index = Index {
        name: FTS_DOC_ID_INDEX.to_owned(),
        id: 0,
        roots: vec![None],
        unique: true,
        kind: IndexKind::Other,
        parts: Vec::new(),
    };
    indexes.insert(1, index);
}

/// Whether `parts` hold `column` and not just its beginning.
pub(super) fn held_in_full(parts: &[IndexPart], column: ColumnNo) -> bool {
    parts.iter().any(|part| part.column == column && part.prefix_bytes.is_none())
}

/// The prefix in bytes that a key part of `length_bytes` is, `None` if it holds the whole column.
pub(super) fn prefix_bytes(column_type: &ColumnType, length_bytes: u32) -> Option<u32> {
    let whole = match column_type {
        ColumnType::Char { length, collation } | ColumnType::VarChar { length, collation } => {
            length.saturating_mul(u32::from(collation.max_bytes))
        }
        ColumnType::Binary { length } | ColumnType::VarBinary { length } => *length,
        ColumnType::Text { .. } | ColumnType::Blob { .. } | ColumnType::Geometry | ColumnType::Json => {
            u32::MAX
        }
        _ => return None,
    };
    (length_bytes < whole).then_some(length_bytes)
}

impl Column {
    /// The type of what is stored: for a compressed column bytes, one more than its values have at most.
    pub(crate) fn stored_type(&self) -> ColumnType {
        let bytes = |length: u32| ColumnType::VarBinary { length: length.saturating_add(1) };
        match &self.column_type {
            ColumnType::VarChar { length, collation } if self.compressed => {
                bytes(length.saturating_mul(u32::from(collation.max_bytes)))
            }
            ColumnType::VarBinary { length } if self.compressed => bytes(*length),
            ColumnType::Text { length_bytes, .. } if self.compressed => {
                ColumnType::Blob { length_bytes: *length_bytes }
            }
            column_type => column_type.clone(),
        }
    }
}

impl TableDefinition {
    /// Whether it has the column that full-text indexes need, declared or hidden.
    pub(crate) fn has_document_id(&self) -> bool {
        self.columns.iter().any(|column| column.name == FTS_DOC_ID)
            || self.indexes.iter().any(|index| index.name == FTS_DOC_ID_INDEX)
    }
}

impl StoredField {
    /// What InnoDB adds unseen to a table with full-text indexes.
    pub(crate) fn document_id() -> StoredField {
        StoredField::plain(None, ColumnType::Integer { bytes: 8, unsigned: true }, false)
    }

    /// A field that was there from the start.
    pub(crate) fn plain(column: Option<ColumnNo>, column_type: ColumnType, nullable: bool) -> StoredField {
        StoredField {
            column,
            column_type,
            nullable,
            version_added: 0,
            version_dropped: 0,
            instant_default: None,
        }
    }
}
