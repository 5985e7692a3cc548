//! What names mean in a FROM clause: its relations, and the row that its joins make of them.

use datafusion::sql::sqlparser::ast::{Expr, Ident};

use super::{Clause, Names, invalid};
use crate::Result;

/// A column that a name may mean.
#[derive(Debug, Clone)]
pub(super) struct ScopeColumn {
    /// As the statement may name it, in any case.
    pub name: String,
    /// What it is replaced by.
    pub expression: Expr,
    /// Whether a `*` leaves it out.
    pub invisible: bool,
    /// Whether results show it as it is called, not as the statement writes it: columns of derived tables, views and
    /// common tables.
    pub is_derived: bool,
}

/// A table of a FROM clause.
#[derive(Debug, Clone)]
pub(super) struct Relation {
    /// The database, if it can stand before the name.
    pub database: Option<String>,
    /// The name or alias in the statement, which counts in its case.
    pub name: String,
    /// What it is called after the rewriting.
    pub alias: Ident,
    pub columns: Vec<ScopeColumn>,
    /// Positions of the columns of its keys.
    pub keys: Vec<Vec<usize>>,
    /// Positions of the columns of its indexes.
    pub indexes: Vec<Vec<usize>>,
}

/// A FROM clause.
#[derive(Debug, Clone, Default)]
pub(super) struct Scope {
    pub relations: Vec<Relation>,
    /// Columns of the joined row, those of USING once: what `*` shows, and what names without a table mean.
    pub row: Vec<ScopeColumn>,
    /// Pairs of columns that a join or a WHERE makes equal in every row.
    pub equalities: Vec<(Expr, Expr)>,
}

/// Scopes from the innermost out.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Scopes<'a> {
    pub inner: Option<&'a Scope>,
    pub outer: Option<&'a Scopes<'a>>,
}

impl Scope {
    /// The scope of a single relation.
    pub(super) fn of(relation: Relation) -> Scope {
        Scope { row: relation.columns.clone(), relations: vec![relation], equalities: Vec::new() }
    }

    /// The columns of the row that are called `name`.
    pub(super) fn unqualified(&self, name: &str) -> Vec<&ScopeColumn> {
        self.row.iter().filter(|column| same(&column.name, name)).collect()
    }

    /// The relation that `qualifier` names: `[table]` or `[database, table]`.
    pub(super) fn relation(&self, qualifier: &[Ident]) -> Option<&Relation> {
        self.relations.iter().find(|relation| match qualifier {
            [table] => relation.name == table.value,
            [database, table] => {
                relation.name == table.value && relation.database.as_ref() == Some(&database.value)
            }
            _ => false,
        })
    }

    /// The column of a derived table that a name alone means.
    pub(super) fn derived_column(&self, parts: &[Ident]) -> Option<&ScopeColumn> {
        let [qualifier @ .., name] = parts else { return None };
        let mut found = match qualifier {
            [] => self.unqualified(&name.value),
            _ => {
                let columns = &self.relation(qualifier)?.columns;
                columns.iter().filter(|column| same(&column.name, &name.value)).collect()
            }
        };
        found.pop().filter(|column| column.is_derived && found.is_empty())
    }

    /// Whether `expression` is a column of one of the relations.
    pub(super) fn has(&self, expression: &Expr) -> bool {
        match expression {
            Expr::CompoundIdentifier(parts) => match parts.as_slice() {
                [table, _] => self.relations.iter().any(|relation| relation.alias.value == table.value),
                _ => false,
            },
            _ => false,
        }
    }
}

/// Whether names of columns are the same.
pub(super) fn same(one: &str, other: &str) -> bool {
    one == other || one.eq_ignore_ascii_case(other) || one.to_lowercase() == other.to_lowercase()
}

impl Names<'_> {
    /// What a column's name means.
    ///
    /// # Errors
    /// If it means nothing, or several columns.
    pub(super) fn column(&self, parts: &[Ident], scopes: Scopes<'_>, clause: Clause) -> Result<Expr> {
        match self.find_column(parts, scopes, clause)? {
            Some(found) => Ok(found),
            None => Err(self.unknown(parts, clause)),
        }
    }

    /// What a column's name means, if it means anything.
    pub(super) fn find_column(
        &self,
        parts: &[Ident],
        scopes: Scopes<'_>,
        clause: Clause,
    ) -> Result<Option<Expr>> {
        let [qualifier @ .., name] = parts else { return Ok(None) };
        let mut next = Some(&scopes);
        while let Some(scopes) = next {
            if let Some(scope) = scopes.inner {
                let found = match qualifier {
                    [] => scope.unqualified(&name.value),
                    _ => scope.relation(qualifier).map_or_else(Vec::new, |relation| {
                        relation.columns.iter().filter(|column| same(&column.name, &name.value)).collect()
                    }),
                };
                match found.as_slice() {
                    [] => {}
                    [only] => return Ok(Some(only.expression.clone())),
                    _ => {
                        let clause = clause.text(self.context.server);
                        let name = text(parts);
                        return Err(invalid(format!("Column '{name}' in {clause} is ambiguous")));
                    }
                }
            }
            next = scopes.outer;
        }
        Ok(None)
    }

    pub(super) fn unknown(&self, parts: &[Ident], clause: Clause) -> crate::Error {
        let clause = clause.text(self.context.server);
        invalid(format!("Unknown column '{}' in '{clause}'", text(parts)))
    }
}

fn text(parts: &[Ident]) -> String {
    parts.iter().map(|part| part.value.as_str()).collect::<Vec<_>>().join(".")
}
