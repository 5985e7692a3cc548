//! Functions that MySQL has and DataFusion spells otherwise, respelled before planning.
//!
//! - `GROUP_CONCAT([DISTINCT] a, b ORDER BY c SEPARATOR 's')` is `string_agg` of one text; without a separator it is a
//!   comma. Rows in which an argument is NULL do not take part, in both.
//! - `AVG(x)` is `SUM(x) / COUNT(x)`; `STDDEV` is the population's; a condition is summed as 1 and 0; `-x` and `1e3`
//!   are 64 bits and a double.
//! - `CONCAT(a, b)` is `a || b`: NULL if one of them is, where DataFusion's leaves NULLs out.
//! - `YEAR(x)`, `MONTH(x)` ... are `EXTRACT`; `DATE_ADD(x, INTERVAL n unit)` and its kin are `x + INTERVAL`.
//! - `x REGEXP p` and `RLIKE` are `regexp_like`, upper and lower case alike.
//! - `CAST(x AS SIGNED)` and `UNSIGNED` round to a BIGINT; `COUNT(DISTINCT a, b)` counts pairs without a NULL;
//!   `FROM DUAL` is no table.
//! - A `LIMIT` of more than fits a BIGINT, which MySQL's manual gives for all rows behind an offset, is none.

mod dates;

use std::ops::ControlFlow;

use crate::functions::{GROUP_CONCAT, NEGATIVE, SIGNED, SUBSTRING, TEXT, UNSIGNED};
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CaseWhen, CastKind, CharacterLength, DataType, ExactNumberInfo, Expr, Function,
    FunctionArg, FunctionArgExpr, FunctionArgumentClause, FunctionArgumentList, FunctionArguments, Ident,
    LimitClause, ObjectName, Offset, OffsetRows, Query, Select, TableFactor, UnaryOperator, Value, VisitMut,
    VisitorMut, visit_expressions_mut,
};

/// Respells the functions of a statement, run with this default database; only aggregates if its scalar expressions are
/// lowered afterwards (see `binding`).
pub(super) fn respell(mut statement: Statement, database: Option<&str>, lowers: bool) -> Statement {
    let mut inner = &mut statement;
    while let Statement::Explain(explain) = inner {
        inner = explain.statement.as_mut();
    }
    if let Statement::Statement(sql) = inner {
        let _: ControlFlow<()> = visit_expressions_mut(sql.as_mut(), |expression| {
            let respelled = match expression {
                Expr::Function(function) if lowers => aggregate(function, database),
                _ if lowers => None,
                _ => respelled(expression, database),
            };
            if let Some(respelled) = respelled {
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

fn respelled(expression: &mut Expr, database: Option<&str>) -> Option<Expr> {
    match expression {
        Expr::Function(function) => of_function(function, database),
        Expr::RLike { negated, expr, pattern, .. } => {
            let arguments = vec![as_text(expr.as_ref().clone()), pattern.as_ref().clone(), text("i")];
            let matches = call("regexp_like", arguments);
            Some(match negated {
                true => Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(matches) },
                false => matches,
            })
        }
        Expr::Cast { expr, data_type, .. } => cast(expr, data_type),
        // A number with an exponent is a double, and only so exact.
        Expr::Value(value) => match &value.value {
            Value::Number(number, _) if number.contains(['e', 'E']) => {
                Some(as_type(text(number), DataType::DoublePrecision))
            }
            _ => None,
        },
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => {
            let is_literal = matches!(expr.as_ref(), Expr::Interval(_))
                || matches!(expr.as_ref(), Expr::Value(value) if matches!(value.value, Value::Number(..)));
            (!is_literal).then(|| call(NEGATIVE, vec![expr.as_ref().clone()]))
        }
        Expr::Substring { expr, substring_from: Some(from), substring_for, .. } => {
            let mut arguments = vec![as_text(expr.as_ref().clone()), from.as_ref().clone()];
            arguments.extend(substring_for.as_ref().map(|count| count.as_ref().clone()));
            Some(call(SUBSTRING, arguments))
        }
        Expr::Extract { field, expr, .. } => {
            let unit = field.to_string().to_ascii_lowercase();
            let is_clock = matches!(unit.as_str(), "hour" | "minute" | "second" | "microsecond");
            is_clock.then(|| call(&unit, vec![expr.as_ref().clone()]))
        }
        _ => None,
    }
}

/// Aggregates, as they are before scalar expressions are lowered.
fn aggregate(function: &mut Function, database: Option<&str>) -> Option<Expr> {
    let name = function.name.to_string().to_ascii_lowercase();
    match name.as_str() {
        "group_concat" => to_string_agg(function, |texts| call("concat", texts)),
        "any_value" if function.over.is_none() => function.name = named("first_value"),
        "json_objectagg" => name_of_member(function),
        "count" => count_of_several(function),
        "stddev" | "std" => function.name = named("stddev_pop"),
        "variance" => function.name = named("var_pop"),
        "avg" => {
            let [mut sum, mut count] = [function.clone(), function.clone()];
            sum.name = named("sum");
            count.name = named("count");
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

fn of_function(function: &mut Function, database: Option<&str>) -> Option<Expr> {
    let name = function.name.to_string().to_ascii_lowercase();
    match name.as_str() {
        "group_concat" => {
            to_string_agg(function, text_of);
            return None;
        }
        "any_value" if function.over.is_none() => {
            function.name = named("first_value");
            return None;
        }
        "json_objectagg" => {
            name_of_member(function);
            return None;
        }
        "count" => {
            count_of_several(function);
            return None;
        }
        "sum" => {
            count_what_holds(function);
            return None;
        }
        "avg" => return average(function),
        "stddev" | "std" => {
            function.name = named("stddev_pop");
            return None;
        }
        "variance" => {
            function.name = named("var_pop");
            return None;
        }
        _ => {}
    }
    let arguments = plain_arguments(function)?;
    match (name.as_str(), arguments.as_slice()) {
        ("concat", [_, ..]) => Some(Expr::Nested(Box::new(text_of(arguments)))),
        ("database" | "schema", []) => Some(database.map_or_else(|| Expr::value(Value::Null), text)),
        ("version", []) => Some(text(concat!(env!("CARGO_PKG_VERSION"), "-tanada"))),
        ("substr" | "substring" | "mid", [of, position @ ..]) if !position.is_empty() => {
            Some(call(SUBSTRING, [&[as_text(of.clone())], position].concat()))
        }
        ("left", [of, count]) => Some(call(SUBSTRING, vec![as_text(of.clone()), number(1), count.clone()])),
        ("greatest" | "least", [_, _, ..]) => Some(null_if_one_is(&name, arguments)),
        ("locate", [part, whole]) => Some(call("strpos", vec![whole.clone(), part.clone()])),
        ("mod", [of, by]) => Some(operation(of.clone(), BinaryOperator::Modulo, by.clone())),
        ("isnull", [of]) => Some(Expr::Nested(Box::new(Expr::IsNull(Box::new(of.clone()))))),
        ("space", [count]) => Some(call("repeat", vec![text(" "), count.clone()])),
        ("truncate", [_, _]) => Some(call("trunc", arguments)),
        (name, arguments) => dates::respelled(name, arguments),
    }
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

fn to_string_agg(function: &mut Function, text_of: impl Fn(Vec<Expr>) -> Expr) {
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
    function.name = named(GROUP_CONCAT);
}

/// The name of a member of `JSON_OBJECTAGG` is a text.
fn name_of_member(function: &mut Function) {
    let FunctionArguments::List(list) = &mut function.args else { return };
    if let [name, _] = list.args.as_mut_slice()
        && let Some(expression) = expression_of(name)
    {
        *name = argument(as_text(expression));
    }
}

fn cast(expr: &Expr, data_type: &DataType) -> Option<Expr> {
    let expr = expr.clone();
    match data_type {
        DataType::Signed | DataType::SignedInteger => Some(call(SIGNED, vec![expr])),
        DataType::Unsigned | DataType::UnsignedInteger => Some(call(UNSIGNED, vec![expr])),
        DataType::Decimal(ExactNumberInfo::None) => {
            Some(as_type(expr, DataType::Decimal(ExactNumberInfo::PrecisionAndScale(10, 0))))
        }
        DataType::Char(None) => Some(as_text(expr)),
        DataType::Char(Some(CharacterLength::IntegerLength { length, .. })) => {
            let length = Expr::value(Value::Number(length.to_string(), false));
            Some(call(SUBSTRING, vec![as_text(expr), number(1), length]))
        }
        _ => None,
    }
}

/// `AVG` as sum over count: the quotient is rounded, where DataFusion's average is cut.
fn average(function: &Function) -> Option<Expr> {
    let [mut sum, mut count] = [function.clone(), function.clone()];
    sum.name = named("sum");
    count_what_holds(&mut sum);
    count.name = named("count");
    Some(operation(Expr::Function(sum), BinaryOperator::Divide, Expr::Function(count)))
}

/// A condition is summed as 1 where it holds and 0 where it does not.
fn count_what_holds(function: &mut Function) {
    let FunctionArguments::List(list) = &mut function.args else { return };
    let [only] = list.args.as_mut_slice() else { return };
    let Some(condition) = expression_of(only).filter(is_condition) else { return };
    let refuted =
        Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(Expr::Nested(Box::new(condition.clone()))) };
    *only = argument(case(vec![(condition, number(1)), (refuted, number(0))], None));
}

fn is_condition(expression: &Expr) -> bool {
    use BinaryOperator::{And, Eq, Gt, GtEq, Lt, LtEq, NotEq, Or, Spaceship};
    match expression {
        Expr::Nested(inner) => is_condition(inner),
        Expr::BinaryOp { op, .. } => matches!(op, And | Or | Eq | NotEq | Lt | LtEq | Gt | GtEq | Spaceship),
        Expr::UnaryOp { op, .. } => matches!(op, UnaryOperator::Not),
        Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::InList { .. }
        | Expr::Between { .. }
        | Expr::Like { .. }
        | Expr::Exists { .. } => true,
        _ => false,
    }
}

fn null_if_one_is(name: &str, arguments: Vec<Expr>) -> Expr {
    let is_null = |argument: &Expr| Expr::IsNull(Box::new(Expr::Nested(Box::new(argument.clone()))));
    let null = Expr::value(Value::Null);
    let conditions = arguments.iter().map(|argument| (is_null(argument), null.clone())).collect();
    case(conditions, Some(call(name, arguments)))
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

fn number(number: u8) -> Expr {
    Expr::value(Value::Number(number.to_string(), false))
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

/// As the server prints it.
fn as_text(expression: Expr) -> Expr {
    call(TEXT, vec![expression])
}

fn as_type(expression: Expr, data_type: DataType) -> Expr {
    Expr::Cast { kind: CastKind::Cast, expr: Box::new(expression), data_type, array: false, format: None }
}

#[cfg(test)]
mod tests {
    use datafusion::sql::parser::DFParser;
    use datafusion::sql::sqlparser::dialect::MySqlDialect;

    use super::*;

    fn respelled(sql: &str) -> String {
        let mut statements = DFParser::parse_sql_with_dialect(sql, &MySqlDialect {}).unwrap();
        respell(statements.pop_front().unwrap(), Some("d"), false).to_string()
    }

    #[test]
    fn a_separator_becomes_an_argument() {
        assert_eq!(
            respelled("select GROUP_CONCAT(distinct a order by a desc separator '; ') from t"),
            "SELECT group_concat(DISTINCT mysql_text(a), '; ' ORDER BY a DESC) FROM t"
        );
        assert_eq!(
            respelled("select group_concat(a, b) from t"),
            "SELECT group_concat(mysql_text(a) || mysql_text(b), ',') FROM t"
        );
        assert_eq!(respelled("select concat_ws(a, b) from t"), "SELECT concat_ws(a, b) FROM t");
    }

    #[test]
    fn dates_texts_and_patterns() {
        assert_eq!(respelled("select year(a), hour(b)"), "SELECT EXTRACT(YEAR FROM a), hour(b)");
        assert_eq!(respelled("select date_sub(a, interval 3 day)"), "SELECT (a - INTERVAL 3 DAY)");
        assert_eq!(respelled("select cast(a as signed)"), "SELECT cast_signed(a)");
        assert_eq!(
            respelled("select count(distinct a, b) from t"),
            "SELECT count(DISTINCT CASE WHEN ((a) IS NOT NULL AND (b) IS NOT NULL) THEN struct(a, b) END) FROM t"
        );
        assert_eq!(
            respelled("select avg(a), sum(b > 1), -c, 1e3, left(d, 2)"),
            "SELECT (sum(a) / count(a)), sum(CASE WHEN b > 1 THEN 1 WHEN NOT (b > 1) THEN 0 END), negative(c), \
             CAST('1e3' AS DOUBLE PRECISION), mysql_substring(mysql_text(d), 1, 2)"
        );
        assert_eq!(respelled("select -1, - interval 1 day"), "SELECT -1, -INTERVAL 1 DAY");
        assert_eq!(respelled("select database()"), "SELECT 'd'");
        assert_eq!(respelled("select 1 from DUAL where 1 = 1"), "SELECT 1 WHERE 1 = 1");
        assert_eq!(respelled("select concat(a, 1)"), "SELECT (mysql_text(a) || mysql_text(1))");
        assert_eq!(
            respelled("select 1 where a not regexp '^x'"),
            "SELECT 1 WHERE NOT regexp_like(mysql_text(a), '^x', 'i')"
        );
    }
}
