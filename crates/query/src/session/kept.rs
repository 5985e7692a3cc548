//! Whether a server may keep rows of a query in a table of its own, by its text.

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    Expr, GroupByExpr, Query, SetExpr, Statement as SqlStatement, TableFactor, visit_expressions,
};

/// Aggregates and windows, for which rows are kept.
const AGGREGATES: [&str; 22] = [
    "any_value",
    "avg",
    "bit_and",
    "bit_or",
    "bit_xor",
    "count",
    "group_concat",
    "json_arrayagg",
    "json_objectagg",
    "max",
    "median",
    "min",
    "std",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "sum",
    "var_pop",
    "var_samp",
    "variance",
    "percentile_cont",
    "percentile_disc",
];

/// Whether it is more than one table's rows, chosen and sorted.
pub(super) fn keeps_rows(statement: &Statement) -> bool {
    match statement {
        Statement::Statement(sql) => match sql.as_ref() {
            SqlStatement::Query(query) => !is_plain(query),
            _ => true,
        },
        _ => true,
    }
}

fn is_plain(query: &Query) -> bool {
    let SetExpr::Select(select) = query.body.as_ref() else { return false };
    let is_one_table = match select.from.as_slice() {
        [] => true,
        [only] => only.joins.is_empty() && matches!(only.relation, TableFactor::Table { .. }),
        _ => false,
    };
    let has_groups = match &select.group_by {
        GroupByExpr::Expressions(keys, modifiers) => !keys.is_empty() || !modifiers.is_empty(),
        GroupByExpr::All(_) => true,
    };
    let keeps = |expression: &Expr| match expression {
        Expr::Subquery(_) | Expr::InSubquery { .. } | Expr::Exists { .. } => true,
        Expr::Function(function) => {
            let name = function.name.to_string().to_ascii_lowercase();
            function.over.is_some() || AGGREGATES.contains(&name.as_str())
        }
        _ => false,
    };
    is_one_table
        && query.with.is_none()
        && !has_groups
        && select.having.is_none()
        && select.distinct.is_none()
        && visit_expressions(query, |expression| match keeps(expression) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        })
        .is_continue()
}

#[cfg(test)]
mod tests {
    use datafusion::sql::parser::DFParser;
    use datafusion::sql::sqlparser::dialect::MySqlDialect;

    use super::*;

    #[test]
    fn rows_of_one_table_are_not_kept() {
        let keeps = |sql: &str| {
            let statements = DFParser::parse_sql_with_dialect(sql, &MySqlDialect {}).unwrap();
            keeps_rows(&statements[0])
        };
        assert!(!keeps("select concat(a), b from t where a > 1 order by b limit 2"));
        assert!(!keeps("select 1e3"));
        for sql in [
            "select distinct a from t",
            "select max(a) from t",
            "select a from t group by a",
            "select a from t join u",
            "select a from t, u",
            "select a from (select a from t) t",
            "select a from t union select 1",
            "with t as (select 1 a) select a from t",
            "select a, rank() over (order by a) from t",
            "select a from t where a in (select 1)",
        ] {
            assert!(keeps(sql), "{sql}");
        }
    }
}
