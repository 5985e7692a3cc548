//! The tables of a FROM and their columns.

use std::collections::HashMap;

use datafusion::sql::sqlparser::ast::{Expr, Ident, ObjectName, TableFactor, TableWithJoins};
use tanada_innodb::TableDefinition;

/// What grouping needs to know of a table.
#[derive(Debug, Clone, Default, PartialEq)]
pub(in crate::session) struct Shape {
    /// Visible columns.
    pub columns: Vec<String>,
    /// Columns of the primary key.
    pub primary: Vec<String>,
    /// Columns of each key without repetition and without NULL.
    pub keys: Vec<Vec<String>>,
}

/// Shapes of the tables that a statement names, by name (lower case).
pub(in crate::session) type Shapes = HashMap<String, Shape>;

impl Shape {
    pub(in crate::session) fn of(definition: &TableDefinition) -> Shape {
        let column = |no: usize| definition.columns.get(no);
        let mut shape = Shape::default();
        let visible = definition.columns.iter().filter(|column| !column.invisible);
        shape.columns = visible.map(|column| column.name.clone()).collect();
        for index in &definition.indexes {
            let parts = index.parts.iter().map(|part| column(part.column.0));
            let is_whole = index.parts.iter().all(|part| part.prefix_bytes.is_none());
            let Some(parts) = parts.collect::<Option<Vec<_>>>() else { continue };
            let has_nulls = parts.iter().any(|column| column.nullable);
            if !index.unique || !is_whole || has_nulls || parts.is_empty() {
                continue;
            }
            let names: Vec<String> = parts.iter().map(|column| column.name.clone()).collect();
            if index.name == "PRIMARY" {
                shape.primary.clone_from(&names);
            }
            shape.keys.push(names);
        }
        shape
    }
}

/// A table of a FROM.
#[derive(Debug)]
pub(super) struct Table<'a> {
    /// What its columns are qualified with.
    pub(super) name: String,
    /// `None` of a derived table.
    pub(super) shape: Option<&'a Shape>,
}

/// All tables of a FROM.
#[derive(Debug)]
pub(super) struct Scope<'a> {
    pub(super) tables: Vec<Table<'a>>,
}

impl<'a> Scope<'a> {
    pub(super) fn of(from: &[TableWithJoins], shapes: &'a Shapes) -> Scope<'a> {
        let mut tables = Vec::new();
        for table in from {
            collect(table, shapes, &mut tables);
        }
        Scope { tables }
    }

    /// Whether a table is known to have a column of this name.
    pub(super) fn has_column(&self, name: &Ident) -> bool {
        self.tables.iter().any(|table| table.shape.is_some_and(|shape| has(shape, name)))
    }

    /// The same, or whether a table that is not known may have it.
    pub(super) fn may_have_column(&self, name: &Ident) -> bool {
        let is_unknown = self.tables.iter().any(|table| table.shape.is_none());
        !name.value.starts_with('@') && (is_unknown || self.has_column(name))
    }

    pub(super) fn has_qualified(&self, parts: &[Ident]) -> bool {
        let [.., table, _] = parts else { return false };
        self.tables.iter().any(|known| known.name.eq_ignore_ascii_case(&table.value))
    }

    /// The table and the column that a name means, if they are known.
    pub(super) fn resolve(&self, expression: &Expr) -> Option<(usize, String)> {
        match expression {
            Expr::Nested(inner) => self.resolve(inner),
            Expr::Identifier(name) => {
                let position =
                    self.tables.iter().position(|table| table.shape.is_some_and(|shape| has(shape, name)))?;
                Some((position, name.value.to_lowercase()))
            }
            Expr::CompoundIdentifier(parts) => {
                let [.., table, column] = parts.as_slice() else { return None };
                let position =
                    self.tables.iter().position(|known| known.name.eq_ignore_ascii_case(&table.value))?;
                Some((position, column.value.to_lowercase()))
            }
            _ => None,
        }
    }

    /// All columns of all tables; `None` if one is not known.
    pub(super) fn all_columns(&self) -> Option<Vec<Expr>> {
        let columns: Option<Vec<Vec<Expr>>> = self.tables.iter().map(columns).collect();
        columns.map(|columns| columns.concat()).filter(|columns| !columns.is_empty())
    }

    pub(super) fn columns_of(&self, name: &ObjectName) -> Option<Vec<Expr>> {
        let name = name.0.last()?.as_ident()?;
        let table = self.tables.iter().find(|table| table.name.eq_ignore_ascii_case(&name.value))?;
        columns(table)
    }

    /// The primary key, where all rows are of one table.
    pub(super) fn reading_order(&self) -> Vec<Expr> {
        match self.tables.as_slice() {
            [Table { name, shape: Some(shape) }] => {
                shape.primary.iter().map(|column| qualified(name, column)).collect()
            }
            _ => Vec::new(),
        }
    }
}

fn has(shape: &Shape, name: &Ident) -> bool {
    shape.columns.iter().any(|column| column.eq_ignore_ascii_case(&name.value))
}

fn columns(table: &Table<'_>) -> Option<Vec<Expr>> {
    Some(table.shape?.columns.iter().map(|column| qualified(&table.name, column)).collect())
}

fn qualified(table: &str, column: &str) -> Expr {
    Expr::CompoundIdentifier(vec![Ident::with_quote('`', table), Ident::with_quote('`', column)])
}

fn collect<'a>(table: &TableWithJoins, shapes: &'a Shapes, tables: &mut Vec<Table<'a>>) {
    factor(&table.relation, shapes, tables);
    for join in &table.joins {
        factor(&join.relation, shapes, tables);
    }
}

fn factor<'a>(of: &TableFactor, shapes: &'a Shapes, tables: &mut Vec<Table<'a>>) {
    match of {
        TableFactor::Table { name, alias, .. } => {
            let Some(own) = name.0.last().and_then(|part| part.as_ident()) else { return };
            let shown = alias.as_ref().map_or(&own.value, |alias| &alias.name.value).clone();
            tables.push(Table { name: shown, shape: shapes.get(&own.value.to_lowercase()) });
        }
        TableFactor::NestedJoin { table_with_joins, .. } => collect(table_with_joins, shapes, tables),
        TableFactor::Derived { alias, .. } => {
            let name = alias.as_ref().map(|alias| alias.name.value.clone()).unwrap_or_default();
            tables.push(Table { name, shape: None });
        }
        _ => tables.push(Table { name: String::new(), shape: None }),
    }
}

/// Whether two expressions mean the same: by their text, or the same column with and without its table.
pub(super) fn is_same(left: &Expr, right: &Expr, scope: &Scope<'_>) -> bool {
    if left == right || left.to_string().eq_ignore_ascii_case(&right.to_string()) {
        return true;
    }
    let name = |expression: &Expr| match expression {
        Expr::Identifier(name) => Some(name.value.to_lowercase()),
        Expr::CompoundIdentifier(parts) => parts.last().map(|name| name.value.to_lowercase()),
        _ => None,
    };
    match (name(left), name(right)) {
        (Some(a), Some(b)) if a == b => {
            let (left, right) = (scope.resolve(left), scope.resolve(right));
            // Where a table is not known, a name without table means that of the other side.
            left == right || left.is_none() || right.is_none()
        }
        _ => false,
    }
}
