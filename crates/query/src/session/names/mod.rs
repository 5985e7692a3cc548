//! Names of a statement, resolved as the servers do before anything is planned.
//!
//! DataFusion has other rules for names: case, aliases in HAVING and GROUP BY, merged columns of USING, columns that
//! are not grouped. So a query is rewritten into one in which nothing is left to these rules:
//!
//! 1. Each table gets an alias that is unique in the statement and no column's name, each column is qualified by it.
//! 2. `*`, positions and aliases are replaced by what they stand for; USING and NATURAL become conditions.
//! 3. A query with groups becomes one over a derived table, which has the groups, the aggregates and one row's value
//!    of every other column ([`grouping`]).
//! 4. `IN`, `ANY` and `ALL` over a subquery become a scalar subquery, which compares with each row ([`quantified`]).
//! 5. Each result has a name of its own; what is shown above the result is kept apart ([`Named::header`]).

mod constants;
mod documents;
mod expression;
mod from;
mod grouping;
mod item;
mod order;
mod quantified;
mod query;
mod scope;
mod select;
mod table;
mod texts;
mod usage;
mod windows;

use std::collections::{HashMap, HashSet};

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{Ident, ObjectName, Statement as SqlStatement};
use datafusion::sql::sqlparser::tokenizer::Token;
use tanada_innodb::schema::Server;

use crate::{Error, ErrorKind, Result};
pub(super) use table::{NamedTable, TableColumn};
pub(super) use usage::relations;

/// What a statement's names are resolved by.
pub(super) struct Context<'a> {
    /// Tables by the names under which the statement has them ([`table_key`]).
    pub tables: HashMap<String, NamedTable>,
    /// Whose rules hold.
    pub server: Server,
    /// Whether columns must be grouped or depend on what is grouped.
    pub only_full_group_by: bool,
    /// Rows of the statement before this one; `None` if they were not all read.
    pub found_rows: Option<u64>,
    /// The statement's tokens, for the texts of its expressions.
    pub tokens: &'a [Token],
    /// Values of user and system variables, with their signs.
    pub variables: &'a dyn Fn(&str) -> Result<datafusion::sql::sqlparser::ast::Expr>,
}

/// A statement whose names are resolved.
#[derive(Debug)]
pub(super) struct Named {
    pub statement: Statement,
    /// Names of the result's columns, if it is a query's.
    pub header: Option<Vec<String>>,
}

/// Resolves the names of a query, and of one in EXPLAIN.
///
/// # Errors
/// If a name means nothing or too much, as the server says it.
pub(super) fn resolve(mut statement: Statement, context: Context<'_>) -> Result<Named> {
    let mut inner = &mut statement;
    let mut explained = false;
    while let Statement::Explain(explain) = inner {
        explained = true;
        inner = explain.statement.as_mut();
    }
    let mut header = None;
    if let Statement::Statement(sql) = inner
        && let SqlStatement::Query(query) = sql.as_mut()
    {
        let mut names = Names::new(context);
        names.taken.extend(usage::results_in(query));
        let output = names.query(query, &query::Surroundings::top())?;
        header = (!explained).then(|| output.iter().map(|column| column.name.clone()).collect());
    }
    Ok(Named { statement, header })
}

/// The key of a table's name in [`Context::tables`].
pub(super) fn table_key(name: &ObjectName) -> String {
    name.0.iter().map(|part| part.as_ident().map_or_else(String::new, |ident| ident.value.clone())).fold(
        String::new(),
        |mut key, part| {
            if !key.is_empty() {
                key.push('\0');
            }
            key.push_str(&part);
            key
        },
    )
}

/// Resolution of one statement.
struct Names<'a> {
    context: Context<'a>,
    /// Names, in lower case, that no table may get.
    taken: HashSet<String>,
    /// Numbers handed out for names of the rewriting itself.
    numbers: u32,
}

impl<'a> Names<'a> {
    fn new(context: Context<'a>) -> Names<'a> {
        let columns = context.tables.values().flat_map(|table| &table.columns);
        let mut taken: HashSet<String> = columns.map(|column| column.name.to_lowercase()).collect();
        let views = context.tables.values().filter_map(|table| table.view.as_ref());
        taken.extend(views.flat_map(|view| usage::results_in(view)));
        Names { context, taken, numbers: 0 }
    }

    fn is_mysql(&self) -> bool {
        self.context.server == Server::MySql
    }

    /// A name like `wanted` that nothing else in the statement has.
    fn alias(&mut self, wanted: &str) -> Ident {
        let mut name = wanted.to_string();
        let mut number = 1;
        while !self.taken.insert(name.to_lowercase()) {
            number += 1;
            name = format!("{wanted}_{number}");
        }
        quoted(&name)
    }

    /// A number for names of the rewriting.
    fn number(&mut self) -> u32 {
        self.numbers += 1;
        self.numbers
    }
}

/// Where a name stands, as messages say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Clause {
    Select,
    Where,
    On,
    Group,
    Having,
    Order,
    From,
}

impl Clause {
    fn text(self, server: Server) -> &'static str {
        match (self, server) {
            (Clause::Select, Server::MySql) => "field list",
            (Clause::Select, Server::MariaDb) => "SELECT",
            (Clause::Where, Server::MySql) => "where clause",
            (Clause::Where, Server::MariaDb) => "WHERE",
            (Clause::On, Server::MySql) => "on clause",
            (Clause::On, Server::MariaDb) => "ON",
            (Clause::Group, Server::MySql) => "group statement",
            (Clause::Group, Server::MariaDb) => "GROUP BY",
            (Clause::Having, Server::MySql) => "having clause",
            (Clause::Having, Server::MariaDb) => "HAVING",
            (Clause::Order, Server::MySql) => "order clause",
            (Clause::Order, Server::MariaDb) => "ORDER BY",
            (Clause::From, Server::MySql) => "from clause",
            (Clause::From, Server::MariaDb) => "FROM",
        }
    }
}

fn quoted(name: &str) -> Ident {
    Ident::with_quote('`', name)
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidInput, message)
}

fn unsupported(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Unsupported, message)
}

#[cfg(test)]
mod tests;
