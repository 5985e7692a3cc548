//! Queries: WITH, set operations, parentheses, ORDER BY and LIMIT behind them.

use datafusion::sql::sqlparser::ast::{
    Cte, Expr, LimitClause, LockType, OrderBy, OrderByKind, Query, SetExpr, TableAlias, Values, With,
};

use super::from::table_alias;
use super::scope::Scopes;
use super::{Names, invalid, quoted, unsupported};
use crate::Result;

/// A column of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Output {
    /// As it is shown, and named by queries around.
    pub name: String,
    /// As the rewritten query has it.
    pub emitted: String,
}

/// A query of WITH.
#[derive(Debug, Clone)]
pub(super) struct CommonTable {
    pub name: String,
    pub emitted: String,
    pub output: Vec<Output>,
}

/// What a query finds around itself.
#[derive(Debug, Clone, Default)]
pub(super) struct Surroundings<'a> {
    /// Columns of the queries around.
    pub scopes: Scopes<'a>,
    /// Queries of WITH, the nearest last.
    pub ctes: Vec<CommonTable>,
    /// Names that its columns get.
    pub names: Option<Vec<String>>,
    /// Whether its columns' names are shown.
    pub is_top: bool,
}

impl<'a> Surroundings<'a> {
    /// Those of a statement.
    pub(super) fn top() -> Surroundings<'a> {
        Surroundings { is_top: true, ..Surroundings::default() }
    }

    /// Those of a derived table.
    pub(super) fn beside(&self, names: Option<Vec<String>>) -> Surroundings<'a> {
        Surroundings { names, is_top: false, ..self.clone() }
    }

    /// Those of a subquery in an expression over `scopes`.
    pub(super) fn within<'b>(&self, scopes: Scopes<'b>) -> Surroundings<'b> {
        Surroundings { scopes, ctes: self.ctes.clone(), names: None, is_top: false }
    }

    pub(super) fn cte(&self, name: &str) -> Option<&CommonTable> {
        self.ctes.iter().rev().find(|cte| cte.name.eq_ignore_ascii_case(name))
    }
}

impl Names<'_> {
    /// Resolves a query and tells its columns.
    pub(super) fn query(&mut self, query: &mut Query, around: &Surroundings<'_>) -> Result<Vec<Output>> {
        let mut around = around.clone();
        if let Some(with) = &mut query.with {
            self.with(with, &mut around)?;
        }
        // Nothing is written here, so locks are granted.
        let locks = std::mem::take(&mut query.locks);
        if !self.is_mysql() && locks.iter().any(|lock| matches!(lock.lock_type, LockType::Share)) {
            return Err(invalid("You have an error in your SQL syntax: FOR SHARE is MySQL's"));
        }
        refuse_foreign(query)?;
        let mut order_by = query.order_by.take();
        let mut limit = query.limit_clause.take();
        let output = match query.body.as_mut() {
            SetExpr::Select(select) => self.select(select, &mut order_by, &around)?,
            body => {
                let output = self.body(body, &around)?;
                self.order_of_rows(&mut order_by, &output)?;
                output
            }
        };
        if let Some(limit) = &mut limit {
            self.check_limit(limit)?;
        }
        query.order_by = order_by;
        query.limit_clause = limit;
        Ok(output)
    }

    fn with(&mut self, with: &mut With, around: &mut Surroundings<'_>) -> Result<()> {
        let recursive = with.recursive;
        for cte in &mut with.cte_tables {
            let names: Vec<String> =
                cte.alias.columns.iter().map(|column| column.name.value.clone()).collect();
            let names = (!names.is_empty()).then_some(names);
            let name = cte.alias.name.value.clone();
            let emitted = self.alias(&name).value;
            let output = match recursive && mentions(cte, &name) {
                true => self.recursive(cte, &name, &emitted, names, around)?,
                false => {
                    let inner = around.beside(names);
                    self.query(&mut cte.query, &inner)?
                }
            };
            cte.alias = TableAlias { explicit: false, ..table_alias(quoted(&emitted)) };
            around.ctes.push(CommonTable { name, emitted, output });
        }
        Ok(())
    }

    /// A query of WITH RECURSIVE that reads itself: its first part names and types the columns.
    fn recursive(
        &mut self,
        cte: &mut Cte,
        name: &str,
        emitted: &str,
        names: Option<Vec<String>>,
        around: &Surroundings<'_>,
    ) -> Result<Vec<Output>> {
        let query = cte.query.as_mut();
        if query.order_by.is_some() || (query.limit_clause.is_some() && !self.is_mysql()) {
            return Err(unsupported("ORDER BY and LIMIT of a recursive common table are not run"));
        }
        if query.limit_clause.is_some() {
            return Err(unsupported("LIMIT inside of a recursive common table is not run; limit the query"));
        }
        let SetExpr::SetOperation { left, right, .. } = query.body.as_mut() else {
            return Err(invalid(format!(
                "Recursive Common Table Expression '{name}' should contain a UNION query"
            )));
        };
        let inner = around.beside(names);
        let output = self.body(left, &inner)?;
        let mut around = inner.clone();
        around.ctes.push(CommonTable {
            name: name.to_string(),
            emitted: emitted.to_string(),
            output: output.clone(),
        });
        around.names = Some(output.iter().map(|column| column.emitted.clone()).collect());
        let second = self.body(right, &around)?;
        self.same_width(&output, &second)?;
        Ok(output)
    }

    /// Resolves what stands in a set operation, or alone.
    fn body(&mut self, body: &mut SetExpr, around: &Surroundings<'_>) -> Result<Vec<Output>> {
        match body {
            SetExpr::Select(select) => self.select(select, &mut None, around),
            SetExpr::Query(query) => self.query(query, around),
            SetExpr::SetOperation { left, right, .. } => {
                let first = self.body(left, around)?;
                let names = Some(first.iter().map(|column| column.name.clone()).collect());
                let second = self.body(right, &Surroundings { names, is_top: false, ..around.clone() })?;
                self.same_width(&first, &second)?;
                Ok(first)
            }
            SetExpr::Values(values) => self.values(values, around),
            SetExpr::Table(table) => {
                let mut tokens = vec![table.table_name.clone()];
                let mut name = Vec::new();
                name.extend(table.schema_name.take());
                name.extend(tokens.pop().flatten());
                *body = select_all(&name)?;
                self.body(body, around)
            }
            _ => Err(unsupported("only SELECT, VALUES and TABLE can be part of a query")),
        }
    }

    fn same_width(&self, first: &[Output], second: &[Output]) -> Result<()> {
        if first.len() != second.len() {
            return Err(invalid("The used SELECT statements have a different number of columns"));
        }
        Ok(())
    }

    /// VALUES: its columns are called `column_0` by MySQL, by the texts of the first row by MariaDB.
    fn values(&mut self, values: &mut Values, around: &Surroundings<'_>) -> Result<Vec<Output>> {
        if values.explicit_row != self.is_mysql() {
            return Err(invalid(match self.is_mysql() {
                true => "You have an error in your SQL syntax: VALUES takes rows as ROW(...)",
                false => "You have an error in your SQL syntax: VALUES takes rows as (...)",
            }));
        }
        let width = values.rows.first().map_or(0, |row| row.content.len());
        for row in &mut values.rows {
            if row.content.len() != width {
                return Err(invalid("The used SELECT statements have a different number of columns"));
            }
            for value in &mut row.content {
                self.expression(value, around, super::Clause::Select)?;
            }
        }
        values.explicit_row = false;
        let first = values.rows.first();
        let shown = |no: usize| match (&around.names, self.is_mysql()) {
            (Some(names), _) => names.get(no).cloned().unwrap_or_default(),
            (None, true) => format!("column_{no}"),
            (None, false) => {
                first.and_then(|row| row.content.get(no)).map_or_else(String::new, super::texts::of)
            }
        };
        let output =
            (0..width).map(|no| Output { name: shown(no), emitted: format!("column{}", no + 1) }).collect();
        Ok(output)
    }

    fn check_limit(&self, limit: &mut LimitClause) -> Result<()> {
        let check = |expression: &Expr| match expression {
            Expr::Value(_) => Ok(()),
            _ => Err(invalid("LIMIT and OFFSET take whole numbers")),
        };
        match limit {
            LimitClause::LimitOffset { limit, offset, .. } => {
                limit.as_ref().map_or(Ok(()), check)?;
                offset.as_ref().map_or(Ok(()), |offset| check(&offset.value))
            }
            LimitClause::OffsetCommaLimit { offset, limit } => {
                check(offset)?;
                check(limit)
            }
        }
    }

    /// ORDER BY behind a set operation or parentheses: by position, or by the name of a result column.
    fn order_of_rows(&mut self, order_by: &mut Option<OrderBy>, output: &[Output]) -> Result<()> {
        let Some(OrderBy { kind: OrderByKind::Expressions(expressions), .. }) = order_by else {
            return Ok(());
        };
        for ordered in expressions.iter_mut() {
            self.order_by_output(&mut ordered.expr, output)?;
        }
        Ok(())
    }
}

fn select_all(name: &[String]) -> Result<SetExpr> {
    use datafusion::sql::sqlparser::dialect::MySqlDialect;
    use datafusion::sql::sqlparser::parser::Parser;
    let quoted: Vec<String> = name.iter().map(|part| format!("`{}`", part.replace('`', "``"))).collect();
    let sql = format!("SELECT * FROM {}", quoted.join("."));
    let query = Parser::new(&MySqlDialect {})
        .try_with_sql(&sql)
        .and_then(|mut parser| parser.parse_query())
        .map_err(|_| invalid("TABLE takes the name of a table"))?;
    Ok(*query.body)
}

/// Whether a query of WITH reads the table `name`.
fn mentions(cte: &Cte, name: &str) -> bool {
    super::usage::names_in(&cte.query)
        .iter()
        .any(|relation| matches!(relation.as_slice(), [only] if only.eq_ignore_ascii_case(name)))
}

/// What the parser takes and no server has.
fn refuse_foreign(query: &Query) -> Result<()> {
    if query.fetch.is_some() || query.for_clause.is_some() || !query.pipe_operators.is_empty() {
        return Err(unsupported("this form of a query is not run"));
    }
    Ok(())
}
