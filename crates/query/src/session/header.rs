//! Names of result columns: an expression without an alias is called by its text, as MySQL does it.

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

fn name_query(query: &mut Query) {
    // Where rows of several queries are put together, the first one names the columns.
    let mut body = query.body.as_mut();
    loop {
        body = match body {
            SetExpr::SetOperation { left, .. } => left.as_mut(),
            SetExpr::Query(inner) => inner.body.as_mut(),
            SetExpr::Select(select) => {
                name_items(&mut select.projection);
                return;
            }
            _ => return,
        };
    }
}

fn name_items(items: &mut [SelectItem]) {
    // Two columns of one name cannot be planned; DataFusion's message on that is the better one without aliases.
    let texts: Vec<String> = items.iter().map(ToString::to_string).collect();
    for (no, item) in items.iter_mut().enumerate() {
        let SelectItem::UnnamedExpr(expression) = item else { continue };
        let is_name = matches!(expression, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
        if is_name || texts.iter().filter(|text| **text == texts[no]).count() > 1 {
            continue;
        }
        let text = match expression {
            // A string is called by what it says.
            Expr::Value(value) => value.clone().value.into_string().unwrap_or_else(|| texts[no].clone()),
            _ => texts[no].clone(),
        };
        *item = SelectItem::ExprWithAlias { expr: expression.clone(), alias: Ident::with_quote('`', text) };
    }
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
        assert_eq!(named("select 1 union select 2"), "SELECT 1 AS `1` UNION SELECT 2");
        assert_eq!(named("select a as b, * from t"), "SELECT a AS b, * FROM t");
        assert_eq!(named("select 1, 1"), "SELECT 1, 1");
    }
}
