//! Functions that MySQL has and DataFusion spells otherwise, respelled before planning.
//!
//! - `GROUP_CONCAT([DISTINCT] a, b ORDER BY c SEPARATOR 's')` is `string_agg` of one text; without a separator it is a comma. Rows in which an
//!   argument is NULL do not take part, in both.
//! - `CONCAT(a, b)` is `a || b`: NULL if one of them is, where DataFusion's leaves NULLs out.
//! - `YEAR(x)`, `MONTH(x)` ... are `EXTRACT`; `DATE_ADD(x, INTERVAL n unit)` and its kin are `x + INTERVAL`.
//! - `x REGEXP p` and `RLIKE` are `regexp_like`, upper and lower case alike.

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CastKind, DataType, DateTimeField, Expr, ExtractSyntax, Function, FunctionArg,
    FunctionArgExpr, FunctionArgumentClause, FunctionArgumentList, FunctionArguments, Ident, ObjectName,
    UnaryOperator, Value, visit_expressions_mut,
};

/// Respells the functions of a statement.
pub(super) fn respell(mut statement: Statement) -> Statement {
    let mut inner = &mut statement;
    while let Statement::Explain(explain) = inner {
        inner = explain.statement.as_mut();
    }
    if let Statement::Statement(sql) = inner {
        let _: ControlFlow<()> = visit_expressions_mut(sql.as_mut(), |expression| {
            if let Some(respelled) = respelled(expression) {
                *expression = respelled;
            }
            ControlFlow::Continue(())
        });
    }
    statement
}

fn respelled(expression: &mut Expr) -> Option<Expr> {
    match expression {
        Expr::Function(function) => of_function(function),
        Expr::RLike { negated, expr, pattern, .. } => {
            let case_blind = Expr::value(Value::SingleQuotedString("i".to_owned()));
            let arguments = vec![as_text(expr.as_ref().clone()), pattern.as_ref().clone(), case_blind];
            let matches = call("regexp_like", arguments);
            Some(match negated {
                true => Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(matches) },
                false => matches,
            })
        }
        _ => None,
    }
}

fn of_function(function: &mut Function) -> Option<Expr> {
    let name = function.name.to_string().to_ascii_lowercase();
    if name == "group_concat" {
        to_string_agg(function);
        return None;
    }
    let arguments = plain_arguments(function)?;
    match (name.as_str(), arguments.as_slice()) {
        ("concat", [_, ..]) => Some(Expr::Nested(Box::new(text_of(arguments)))),
        ("date_add" | "adddate", [date, Expr::Interval(_)]) => {
            Some(moved(date, BinaryOperator::Plus, &arguments[1]))
        }
        ("date_sub" | "subdate", [date, Expr::Interval(_)]) => {
            Some(moved(date, BinaryOperator::Minus, &arguments[1]))
        }
        (unit, [of]) => Some(Expr::Extract {
            field: field(unit)?,
            syntax: ExtractSyntax::From,
            expr: Box::new(of.clone()),
        }),
        _ => None,
    }
}

fn field(name: &str) -> Option<DateTimeField> {
    Some(match name {
        "year" => DateTimeField::Year,
        "quarter" => DateTimeField::Quarter,
        "month" => DateTimeField::Month,
        "day" | "dayofmonth" => DateTimeField::Day,
        "hour" => DateTimeField::Hour,
        "minute" => DateTimeField::Minute,
        _ => return None,
    })
}

fn moved(date: &Expr, op: BinaryOperator, interval: &Expr) -> Expr {
    let sum = Expr::BinaryOp { left: Box::new(date.clone()), op, right: Box::new(interval.clone()) };
    Expr::Nested(Box::new(sum))
}

/// The arguments of a call without any clause.
fn plain_arguments(function: &Function) -> Option<Vec<Expr>> {
    let FunctionArguments::List(list) = &function.args else { return None };
    if !list.clauses.is_empty() || list.duplicate_treatment.is_some() || function.over.is_some() {
        return None;
    }
    list.args.iter().map(expression_of).collect()
}

fn expression_of(argument: &FunctionArg) -> Option<Expr> {
    match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expression)) => Some(expression.clone()),
        _ => None,
    }
}

fn call(name: &str, arguments: Vec<Expr>) -> Expr {
    Expr::Function(Function {
        name: named(name),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: arguments.into_iter().map(argument).collect(),
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

fn named(name: &str) -> ObjectName {
    ObjectName::from(vec![Ident::new(name)])
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
    let text = text_of(list.args.iter().filter_map(expression_of).collect());
    list.args = vec![argument(text), argument(Expr::value(separator))];
    function.name = named("string_agg");
}

fn argument(expression: Expr) -> FunctionArg {
    FunctionArg::Unnamed(FunctionArgExpr::Expr(expression))
}

/// The expressions as one text, NULL if one of them is.
fn text_of(expressions: Vec<Expr>) -> Expr {
    let texts = expressions.into_iter().map(as_text);
    texts
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
        assert_eq!(respelled("select concat_ws(a, b) from t"), "SELECT concat_ws(a, b) FROM t");
    }

    #[test]
    fn dates_texts_and_patterns() {
        assert_eq!(respelled("select year(a), hour(b)"), "SELECT EXTRACT(YEAR FROM a), EXTRACT(HOUR FROM b)");
        assert_eq!(respelled("select date_sub(a, interval 3 day)"), "SELECT (a - INTERVAL 3 DAY)");
        assert_eq!(respelled("select concat(a, 1)"), "SELECT (CAST(a AS VARCHAR) || CAST(1 AS VARCHAR))");
        assert_eq!(
            respelled("select 1 where a not regexp '^x'"),
            "SELECT 1 WHERE NOT regexp_like(CAST(a AS VARCHAR), '^x', 'i')"
        );
    }
}
