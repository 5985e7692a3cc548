//! How a column is declared beyond what its values need: what DESCRIBE and information_schema say of it.

use super::{Collation, ColumnType};

/// See the [module](self).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Declaration {
    /// The type as its server spells it, e.g. `int(11)`; empty if nothing but the type is known.
    pub type_text: String,
    /// What a row gets that does not name the column.
    pub default: DefaultValue,
    /// What an UPDATE of other columns sets, e.g. `CURRENT_TIMESTAMP`.
    pub on_update: Option<String>,
    /// AUTO_INCREMENT.
    pub auto_increment: bool,
    /// Expression text if it is a STORED generated column.
    pub stored_expression: Option<String>,
    /// Collation of ENUM and SET; that of other texts is in their type.
    pub collation: Option<Collation>,
    /// Whether MariaDB takes its texts for documents, because its check is a call of JSON_VALID; that of the type JSON
    /// is one.
    pub is_document: bool,
}

/// What a row gets that does not name a column.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum DefaultValue {
    /// Not known: the definition does not say it, or not in a form that is read.
    #[default]
    Unknown,
    /// The column has to be named.
    None,
    /// NULL.
    Null,
    /// A value, as text.
    Value(String),
    /// A value of BINARY or VARBINARY (MariaDB).
    Bytes(Vec<u8>),
    /// The value of an expression, by its text.
    Expression(String),
}

impl Declaration {
    /// The collation of a column's text.
    pub fn text_collation<'a>(&'a self, column_type: &'a ColumnType) -> Option<&'a Collation> {
        match column_type {
            ColumnType::Char { collation, .. }
            | ColumnType::VarChar { collation, .. }
            | ColumnType::Text { collation, .. } => Some(collation),
            _ => self.collation.as_ref(),
        }
    }
}
