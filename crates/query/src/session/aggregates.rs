//! Aggregates that the servers have and DataFusion spells otherwise, respelled before scalar expressions are lowered
//! (see `binding`).
//!
//! - `GROUP_CONCAT([DISTINCT] a, b ORDER BY c SEPARATOR 's')` is an aggregate of one text and the separator; without
//!   one it is a comma. Rows in which an argument is NULL do not take part, in both.
//! - `AVG(x)` is `SUM(x) / COUNT(x)`; `STDDEV` is the population's.
//! - `COUNT(DISTINCT a, b)` counts pairs without a NULL; `FROM DUAL` is no table.
//! - A `LIMIT` of more than fits a BIGINT, which MySQL's manual gives for all rows behind an offset, is none.

use std::ops::ControlFlow;

use crate::functions::GROUP_CONCAT;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CaseWhen, DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArgumentClause, FunctionArgumentList, FunctionArguments, Ident, LimitClause, ObjectName, Offset,
    OffsetRows, Query, Select, TableFactor, Value, VisitMut, VisitorMut, visit_expressions_mut,
};

/// Respells the aggregates of a statement, run with this default database.
pub(super) fn respell(mut statement: Statement, database: Option<&str>) -> Statement {
    let mut inner = &mut statement;
    while let Statement::Explain(explain) = inner {
        inner = explain.statement.as_mut();
    }
    if let Statement::Statement(sql) = inner {
        let _: ControlFlow<()> = visit_expressions_mut(sql.as_mut(), |expression| {
            if let Expr::Function(function) = expression
                && let Some(respelled) = aggregate(function, database)
            {
                *expression = respelled;
            }
            ControlFlow::Continue(())
        });
        let _: ControlFlow<()> = sql.visit(&mut Respelling);
    }
    statement
}

/// Takes away `FROM DUAL`, and limits that are none.
struct Respelling;

impl VisitorMut for Respelling {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let is_none = |limit: &Expr| match limit {
            Expr::Value(value) => match &value.value {
                Value::Number(number, _) => number.parse::<u64>().is_ok_and(|no| no >= i64::MAX as u64),
                _ => false,
            },
            _ => false,
        };
        match &mut query.limit_clause {
            Some(LimitClause::LimitOffset { limit, .. }) => {
                limit.take_if(|limit| is_none(limit));
            }
            Some(LimitClause::OffsetCommaLimit { offset, limit }) if is_none(limit) => {
                let offset = Some(Offset { value: offset.clone(), rows: OffsetRows::None });
                let all = LimitClause::LimitOffset { limit: None, offset, limit_by: Vec::new() };
                query.limit_clause = Some(all);
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        if let [only] = select.from.as_slice()
            && only.joins.is_empty()
            && let TableFactor::Table { name, .. } = &only.relation
            && name.to_string().eq_ignore_ascii_case("dual")
        {
            select.from.clear();
        }
        ControlFlow::Continue(())
    }
}

/// The expression that an aggregate becomes; `None` if it stays one, perhaps under another name.
fn aggregate(function: &mut Function, database: Option<&str>) -> Option<Expr> {
    let name = function.name.to_string().to_ascii_lowercase();
    match name.as_str() {
        "group_concat" => to_string_agg(function),
        "any_value" if function.over.is_none() => function.name = named("first_value"),
        "json_objectagg" => name_of_member(function),
        "count" => count_of_several(function),
        "stddev" | "std" => function.name = named("stddev_pop"),
        "variance" => function.name = named("var_pop"),
        "avg" => {
            let [sum, count] = parts_of_average(function);
            return Some(operation(Expr::Function(sum), BinaryOperator::Divide, Expr::Function(count)));
        }
        "database" | "schema" if plain_arguments(function)?.is_empty() => {
            return Some(database.map_or_else(|| Expr::value(Value::Null), text));
        }
        "version" if plain_arguments(function)?.is_empty() => {
            return Some(text(concat!(env!("CARGO_PKG_VERSION"), "-tanada")));
        }
        _ => {}
    }
    None
}

/// The sum and the count that an average is the quotient of.
pub(super) fn parts_of_average(average: &Function) -> [Function; 2] {
    let [mut sum, mut count] = [average.clone(), average.clone()];
    sum.name = named("sum");
    count.name = named("count");
    count_numbers(&mut count);
    [sum, count]
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

/// Whether an aggregate is distinct or sorted, for which the servers keep rows.
fn keeps_rows(function: &Function) -> bool {
    let FunctionArguments::List(list) = &function.args else { return false };
    let is_order = |clause: &FunctionArgumentClause| matches!(clause, FunctionArgumentClause::OrderBy(_));
    list.duplicate_treatment.is_some() || list.clauses.iter().any(is_order)
}

/// A distinct average counts numbers: `10` and `1e1` are one.
fn count_numbers(count: &mut Function) {
    let FunctionArguments::List(list) = &mut count.args else { return };
    if list.duplicate_treatment != Some(DuplicateTreatment::Distinct) {
        return;
    }
    if let [only] = list.args.as_mut_slice()
        && let Some(expression) = expression_of(only)
    {
        *only = argument(call("number of", vec![expression]));
    }
}

/// One text of the arguments, and the separator.
fn to_string_agg(function: &mut Function) {
    let name = if keeps_rows(function) { "concat of group" } else { "concat" };
    let FunctionArguments::List(list) = &mut function.args else { return };
    let mut separator = Value::SingleQuotedString(",".to_owned());
    list.clauses.retain(|clause| match clause {
        FunctionArgumentClause::Separator(value) => {
            separator = value.value.clone();
            false
        }
        _ => true,
    });
    let text = call(name, list.args.iter().filter_map(expression_of).collect());
    list.args = vec![argument(text), argument(Expr::value(separator))];
    function.name = named(GROUP_CONCAT);
}

/// The name of a member of `JSON_OBJECTAGG` is a text.
fn name_of_member(function: &mut Function) {
    let FunctionArguments::List(list) = &mut function.args else { return };
    if let [name, _] = list.args.as_mut_slice()
        && let Some(expression) = expression_of(name)
    {
        *name = argument(call("concat", vec![expression]));
    }
}

fn case(conditions: Vec<(Expr, Expr)>, otherwise: Option<Expr>) -> Expr {
    let conditions = conditions.into_iter().map(|(condition, result)| CaseWhen { condition, result });
    Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions: conditions.collect(),
        else_result: otherwise.map(Box::new),
    }
}

/// `COUNT(DISTINCT a, b)` as the count of one structure, NULL where one of them is.
fn count_of_several(function: &mut Function) {
    let FunctionArguments::List(list) = &mut function.args else { return };
    if list.args.len() < 2 {
        return;
    }
    let Some(parts) = list.args.iter().map(expression_of).collect::<Option<Vec<Expr>>>() else { return };
    let whole = |part: &Expr| Expr::IsNotNull(Box::new(Expr::Nested(Box::new(part.clone()))));
    let Some(condition) =
        parts.iter().map(whole).reduce(|left, right| operation(left, BinaryOperator::And, right))
    else {
        return;
    };
    list.args = vec![argument(case(vec![(condition, call("struct", parts))], None))];
}

fn operation(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::Nested(Box::new(Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) }))
}

fn text(text: &str) -> Expr {
    Expr::value(Value::SingleQuotedString(text.to_owned()))
}

fn argument(expression: Expr) -> FunctionArg {
    FunctionArg::Unnamed(FunctionArgExpr::Expr(expression))
}

#[cfg(test)]
mod tests {
    use datafusion::sql::parser::DFParser;
    use datafusion::sql::sqlparser::dialect::MySqlDialect;

    use super::*;

    fn respelled(sql: &str) -> String {
        let mut statements = DFParser::parse_sql_with_dialect(sql, &MySqlDialect {}).unwrap();
        respell(statements.pop_front().unwrap(), Some("d")).to_string()
    }

    #[test]
    fn a_separator_becomes_an_argument() {
        assert_eq!(
            respelled("select GROUP_CONCAT(distinct a order by a desc separator '; ') from t"),
            "SELECT group_concat(DISTINCT concat of group(a), '; ' ORDER BY a DESC) FROM t"
        );
        assert_eq!(
            respelled("select group_concat(a, b) from t"),
            "SELECT group_concat(concat(a, b), ',') FROM t"
        );
        assert_eq!(respelled("select concat_ws(a, b) from t"), "SELECT concat_ws(a, b) FROM t");
    }

    #[test]
    fn averages_and_counts_of_several() {
        assert_eq!(respelled("select avg(a), std(b)"), "SELECT (sum(a) / count(a)), stddev_pop(b)");
        assert_eq!(
            respelled("select avg(distinct a)"),
            "SELECT (sum(DISTINCT a) / count(DISTINCT number of(a)))"
        );
        assert_eq!(
            respelled("select count(distinct a, b) from t"),
            "SELECT count(DISTINCT CASE WHEN ((a) IS NOT NULL AND (b) IS NOT NULL) THEN struct(a, b) END) FROM t"
        );
    }
}
