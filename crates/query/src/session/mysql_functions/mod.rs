//! Functions that MySQL has and DataFusion spells otherwise, respelled before planning.
//!
//! - `GROUP_CONCAT([DISTINCT] a, b ORDER BY c SEPARATOR 's')` is `string_agg` of one text; without a separator it is a comma. Rows in which an
//!   argument is NULL do not take part, in both.
//! - `CONCAT(a, b)` is `a || b`: NULL if one of them is, where DataFusion's leaves NULLs out.
//! - `YEAR(x)`, `MONTH(x)` ... are `EXTRACT`; `DATE_ADD(x, INTERVAL n unit)` and its kin are `x + INTERVAL`.
//! - `x REGEXP p` and `RLIKE` are `regexp_like`, upper and lower case alike.
//! - `CAST(x AS SIGNED)` and `UNSIGNED` round to a BIGINT; `COUNT(DISTINCT a, b)` counts pairs without a NULL; `FROM DUAL` is no table.

mod dates;

use std::ops::ControlFlow;

use crate::functions::SIGNED;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CaseWhen, CastKind, DataType, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArgumentClause, FunctionArgumentList, FunctionArguments, Ident, ObjectName, Select, TableFactor,
    UnaryOperator, Value, VisitMut, VisitorMut, visit_expressions_mut,
};

/// Respells the functions of a statement, run with this default database.
pub(super) fn respell(mut statement: Statement, database: Option<&str>) -> Statement {
    let mut inner = &mut statement;
    while let Statement::Explain(explain) = inner {
        inner = explain.statement.as_mut();
    }
    if let Statement::Statement(sql) = inner {
        let _: ControlFlow<()> = visit_expressions_mut(sql.as_mut(), |expression| {
            if let Some(respelled) = respelled(expression, database) {
                *expression = respelled;
            }
            ControlFlow::Continue(())
        });
        let _: ControlFlow<()> = sql.visit(&mut WithoutDual);
    }
    statement
}

/// Takes `FROM DUAL` away.
struct WithoutDual;

impl VisitorMut for WithoutDual {
    type Break = ();

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
        Expr::Cast { expr, data_type: DataType::Signed | DataType::SignedInteger, .. } => {
            Some(call(SIGNED, vec![expr.as_ref().clone()]))
        }
        Expr::Cast { data_type, .. } => {
            if matches!(data_type, DataType::Unsigned | DataType::UnsignedInteger) {
                *data_type = DataType::BigIntUnsigned(None);
            }
            None
        }
        _ => None,
    }
}

fn of_function(function: &mut Function, database: Option<&str>) -> Option<Expr> {
    let name = function.name.to_string().to_ascii_lowercase();
    match name.as_str() {
        "group_concat" => {
            to_string_agg(function);
            return None;
        }
        "count" => {
            count_of_several(function);
            return None;
        }
        _ => {}
    }
    let arguments = plain_arguments(function)?;
    match (name.as_str(), arguments.as_slice()) {
        ("concat", [_, ..]) => Some(Expr::Nested(Box::new(text_of(arguments)))),
        ("database" | "schema", []) => Some(database.map_or_else(|| Expr::value(Value::Null), text)),
        ("version", []) => Some(text(concat!(env!("CARGO_PKG_VERSION"), "-tanada"))),
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
    list.args = vec![argument(Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions: vec![CaseWhen { condition, result: call("struct", parts) }],
        else_result: None,
    })];
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

fn as_text(expression: Expr) -> Expr {
    as_type(expression, DataType::Varchar(None))
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
        respell(statements.pop_front().unwrap(), Some("d")).to_string()
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
        assert_eq!(respelled("select cast(a as signed)"), "SELECT cast_signed(a)");
        assert_eq!(
            respelled("select count(distinct a, b) from t"),
            "SELECT count(DISTINCT CASE WHEN ((a) IS NOT NULL AND (b) IS NOT NULL) THEN struct(a, b) END) FROM t"
        );
        assert_eq!(respelled("select database()"), "SELECT 'd'");
        assert_eq!(respelled("select 1 from DUAL where 1 = 1"), "SELECT 1 WHERE 1 = 1");
        assert_eq!(respelled("select concat(a, 1)"), "SELECT (CAST(a AS VARCHAR) || CAST(1 AS VARCHAR))");
        assert_eq!(
            respelled("select 1 where a not regexp '^x'"),
            "SELECT 1 WHERE NOT regexp_like(CAST(a AS VARCHAR), '^x', 'i')"
        );
    }
}
