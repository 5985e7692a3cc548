//! Names of result columns: an expression without an alias is called by its text, as MySQL does it, and several may have the same name.
//!
//! Two columns of one name cannot be planned, so the later ones get invisible letters behind their names, which [`shown`] takes away again from
//! the result.

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{Expr, Ident, Query, SelectItem, SetExpr, Statement as SqlStatement};

/// Gives the outermost expressions of a query their text as alias. Columns keep their names.
pub(super) fn name_columns(statement: Statement) -> Statement {
    match statement {
        Statement::Statement(mut inner) => {
            if let SqlStatement::Query(query) = inner.as_mut() {
                name_query(query);
            }
            Statement::Statement(inner)
        }
        other => other,
    }
}

/// Zero-width space: what tells names apart that are written alike.
const APART: char = '\u{200b}';

/// The name of a result column as it is shown.
pub(super) fn shown(name: &str) -> &str {
    name.trim_end_matches(APART)
}

/// Where rows of several queries are put together, the first one names the columns, but each must be planned.
fn name_query(query: &mut Query) {
    name_body(query.body.as_mut());
}

fn name_body(body: &mut SetExpr) {
    match body {
        SetExpr::SetOperation { left, right, .. } => {
            name_body(left);
            name_body(right);
        }
        SetExpr::Query(inner) => name_body(inner.body.as_mut()),
        SetExpr::Select(select) => {
            name_items(&mut select.projection);
            tell_apart(&mut select.projection);
        }
        _ => {}
    }
}

fn name_items(items: &mut [SelectItem]) {
    for item in items {
        let SelectItem::UnnamedExpr(expression) = item else { continue };
        if matches!(expression, Expr::Identifier(_) | Expr::CompoundIdentifier(_)) {
            continue;
        }
        let text = match expression {
            // A string is called by what it says.
            Expr::Value(value) => value.clone().value.into_string().unwrap_or_else(|| expression.to_string()),
            _ => expression.to_string(),
        };
        *item = SelectItem::ExprWithAlias { expr: expression.clone(), alias: Ident::with_quote('`', text) };
    }
}

/// Gives items whose names came before names of their own. A column behind a `*` may be one of the star's.
fn tell_apart(items: &mut [SelectItem]) {
    let has_star =
        items.iter().any(|item| matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..)));
    let mut seen: Vec<(Option<String>, String)> = Vec::with_capacity(items.len());
    for item in items {
        let (table, name, is_column) = match &*item {
            SelectItem::UnnamedExpr(Expr::Identifier(name)) => (None, name.value.clone(), true),
            SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) => match parts.as_slice() {
                [tables @ .., name] => (Some(qualifier(tables)), name.value.clone(), true),
                [] => continue,
            },
            SelectItem::ExprWithAlias { alias, .. } => (None, alias.value.clone(), false),
            _ => continue,
        };
        // Columns of two tables may have the same name: they are known by the tables'.
        let same = |(other, named): &(Option<String>, String)| {
            *named == name && !matches!((other, &table), (Some(a), Some(b)) if a != b)
        };
        let times = seen.iter().filter(|before| same(before)).count() + usize::from(has_star && is_column);
        seen.push((table, name.clone()));
        if times == 0 {
            continue;
        }
        let apart: String = std::iter::repeat_n(APART, times).collect();
        let alias = Ident::with_quote('`', format!("{name}{apart}"));
        let expr = match &*item {
            SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => expr.clone(),
            _ => continue,
        };
        *item = SelectItem::ExprWithAlias { expr, alias };
    }
}

fn qualifier(tables: &[Ident]) -> String {
    tables.iter().map(|part| part.value.to_lowercase()).collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use datafusion::sql::parser::DFParser;
    use datafusion::sql::sqlparser::dialect::MySqlDialect;

    use super::*;

    fn named(sql: &str) -> String {
        let mut statements = DFParser::parse_sql_with_dialect(sql, &MySqlDialect {}).unwrap();
        name_columns(statements.pop_front().unwrap()).to_string()
    }

    #[test]
    fn expressions_are_called_by_their_text() {
        assert_eq!(
            named("select a, t.b, sum(c), 'x' from t"),
            "SELECT a, t.b, sum(c) AS `sum(c)`, 'x' AS `x` FROM t"
        );
        assert_eq!(named("select 1 union select 2"), "SELECT 1 AS `1` UNION SELECT 2 AS `2`");
        assert_eq!(named("select a as b, * from t"), "SELECT a AS b, * FROM t");
    }

    #[test]
    fn equal_names_are_told_apart_and_shown_alike() {
        assert_eq!(named("select 1, 1, 1"), "SELECT 1 AS `1`, 1 AS `1\u{200b}`, 1 AS `1\u{200b}\u{200b}`");
        assert_eq!(named("select a, a from t"), "SELECT a, a AS `a\u{200b}` FROM t");
        assert_eq!(named("select t.a, u.a from t, u"), "SELECT t.a, u.a FROM t, u");
        assert_eq!(named("select t.a, a from t"), "SELECT t.a, a AS `a\u{200b}` FROM t");
        assert_eq!(named("select *, a from t"), "SELECT *, a AS `a\u{200b}` FROM t");
        assert_eq!(
            named("select 1 union select 2, 2"),
            "SELECT 1 AS `1` UNION SELECT 2 AS `2`, 2 AS `2\u{200b}`"
        );
        assert_eq!(shown("a\u{200b}\u{200b}"), "a");
    }
}
