//! MySQL's `GROUP_CONCAT([DISTINCT] a, b ORDER BY c SEPARATOR 's')` as DataFusion's `string_agg`.
//!
//! Several arguments are one text; without a separator it is a comma. Rows in which an argument is NULL do not take part, in both.

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CastKind, DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause,
    FunctionArguments, Ident, ObjectName, Value, visit_expressions_mut,
};

/// Replaces every `GROUP_CONCAT` of a statement.
pub(super) fn respell(mut statement: Statement) -> Statement {
    let mut inner = &mut statement;
    while let Statement::Explain(explain) = inner {
        inner = explain.statement.as_mut();
    }
    if let Statement::Statement(sql) = inner {
        let _: ControlFlow<()> = visit_expressions_mut(sql.as_mut(), |expression| {
            if let Expr::Function(function) = expression
                && function.name.to_string().eq_ignore_ascii_case("group_concat")
            {
                to_string_agg(function);
            }
            ControlFlow::Continue(())
        });
    }
    statement
}

fn to_string_agg(function: &mut Function) {
    let FunctionArguments::List(list) = &mut function.args else { return };
    let mut separator = Value::SingleQuotedString(",".to_owned());
    list.clauses.retain(|clause| match clause {
        FunctionArgumentClause::Separator(value) => {
            separator = value.value.clone();
            false
        }
        _ => true,
    });
    let text = text_of(std::mem::take(&mut list.args));
    list.args = vec![argument(text), argument(Expr::value(separator))];
    function.name = ObjectName::from(vec![Ident::new("string_agg")]);
}

fn argument(expression: Expr) -> FunctionArg {
    FunctionArg::Unnamed(FunctionArgExpr::Expr(expression))
}

/// The arguments as one text, NULL if one of them is.
fn text_of(arguments: Vec<FunctionArg>) -> Expr {
    let mut texts: Vec<Expr> = arguments
        .into_iter()
        .filter_map(|argument| match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expression)) => Some(as_text(expression)),
            _ => None,
        })
        .collect();
    if texts.len() == 1 {
        return texts.remove(0);
    }
    // MySQL's CONCAT is NULL if an argument is; ours is given one of which each part is text.
    texts
        .into_iter()
        .reduce(|left, right| Expr::BinaryOp {
            left: Box::new(left),
            op: BinaryOperator::StringConcat,
            right: Box::new(right),
        })
        .unwrap_or_else(|| Expr::value(Value::Null))
}

fn as_text(expression: Expr) -> Expr {
    Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(expression),
        data_type: DataType::Varchar(None),
        array: false,
        format: None,
    }
}

#[cfg(test)]
mod tests {
    use datafusion::sql::parser::DFParser;
    use datafusion::sql::sqlparser::dialect::MySqlDialect;

    use super::*;

    fn respelled(sql: &str) -> String {
        let mut statements = DFParser::parse_sql_with_dialect(sql, &MySqlDialect {}).unwrap();
        respell(statements.pop_front().unwrap()).to_string()
    }

    #[test]
    fn a_separator_becomes_an_argument() {
        assert_eq!(
            respelled("select GROUP_CONCAT(distinct a order by a desc separator '; ') from t"),
            "SELECT string_agg(DISTINCT CAST(a AS VARCHAR), '; ' ORDER BY a DESC) FROM t"
        );
        assert_eq!(
            respelled("select group_concat(a, b) from t"),
            "SELECT string_agg(CAST(a AS VARCHAR) || CAST(b AS VARCHAR), ',') FROM t"
        );
        assert_eq!(respelled("select concat(a) from t"), "SELECT concat(a) FROM t");
    }
}
