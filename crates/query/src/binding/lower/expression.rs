//! Expressions, as values or as conditions.

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CaseWhen, CeilFloorKind, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArgumentList, FunctionArguments, Ident, Interval, ObjectName, TrimWhereField, UnaryOperator,
    Value,
};

use super::literal;
use super::{functions, unsupported};
use crate::Result;
use crate::binding::call::{NAME, is_condition};

/// A call of the server's function or operator `name`.
pub(super) fn call(name: &str, operands: Vec<Expr>) -> Expr {
    let name = Expr::value(Value::SingleQuotedString(name.to_string()));
    let arguments = std::iter::once(name).chain(operands);
    let arguments = arguments.map(|operand| FunctionArg::Unnamed(FunctionArgExpr::Expr(operand)));
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new(NAME)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: arguments.collect(),
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

fn not(negated: bool, expression: Expr) -> Expr {
    match negated {
        true => Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(Expr::Nested(Box::new(expression))) },
        false => expression,
    }
}

fn boxed(expression: Expr, lowered: impl Fn(Expr) -> Result<Expr>) -> Result<Box<Expr>> {
    Ok(Box::new(lowered(expression)?))
}

pub(super) fn values(expressions: Vec<Expr>) -> Result<Vec<Expr>> {
    expressions.into_iter().map(value).collect()
}

/// `expression` as a truth value.
pub(crate) fn condition(expression: Expr) -> Result<Expr> {
    Ok(match expression {
        Expr::Nested(inner) => Expr::Nested(boxed(*inner, condition)?),
        Expr::BinaryOp { left, op: BinaryOperator::And | BinaryOperator::PGOverlap, right } => {
            Expr::BinaryOp {
                left: boxed(*left, condition)?,
                op: BinaryOperator::And,
                right: boxed(*right, condition)?,
            }
        }
        Expr::BinaryOp { left, op: BinaryOperator::Or | BinaryOperator::StringConcat, right } => {
            let left = boxed(*left, condition)?;
            Expr::BinaryOp { left, op: BinaryOperator::Or, right: boxed(*right, condition)? }
        }
        Expr::UnaryOp { op: UnaryOperator::Not | UnaryOperator::BangNot, expr } => {
            Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(Expr::Nested(boxed(*expr, condition)?)) }
        }
        Expr::IsTrue(of) => Expr::IsTrue(boxed(*of, condition)?),
        Expr::IsNotTrue(of) => Expr::IsNotTrue(boxed(*of, condition)?),
        Expr::IsFalse(of) => Expr::IsFalse(boxed(*of, condition)?),
        Expr::IsNotFalse(of) => Expr::IsNotFalse(boxed(*of, condition)?),
        Expr::IsUnknown(of) | Expr::IsNotUnknown(of) | Expr::IsNull(of) | Expr::IsNotNull(of)
            if orders_rows(&of) =>
        {
            return Err(unsupported("whether the order of rows is unknown"));
        }
        Expr::IsUnknown(of) => Expr::IsUnknown(boxed(*of, condition)?),
        Expr::IsNotUnknown(of) => Expr::IsNotUnknown(boxed(*of, condition)?),
        Expr::IsNull(of) => Expr::IsNull(boxed(*of, value)?),
        Expr::IsNotNull(of) => Expr::IsNotNull(boxed(*of, value)?),
        Expr::Exists { .. } => expression,
        Expr::Value(of) if matches!(of.value, Value::Boolean(_)) => Expr::Value(of),
        Expr::InSubquery { expr, subquery, negated } => {
            Expr::InSubquery { expr: boxed(*expr, value)?, subquery, negated }
        }
        Expr::AnyOp { left, compare_op, right, is_some } => {
            Expr::AnyOp { left: boxed(*left, value)?, compare_op, right, is_some }
        }
        Expr::AllOp { left, compare_op, right } => {
            Expr::AllOp { left: boxed(*left, value)?, compare_op, right }
        }
        other => {
            let lowered = value(other)?;
            if is_truth(&lowered) { lowered } else { call("condition", vec![lowered]) }
        }
    })
}

/// Whether it compares rows by their order.
fn orders_rows(expression: &Expr) -> bool {
    match expression {
        Expr::Nested(inner) => orders_rows(inner),
        Expr::BinaryOp { left, op, .. } => {
            let is_order = matches!(
                op,
                BinaryOperator::Lt | BinaryOperator::LtEq | BinaryOperator::Gt | BinaryOperator::GtEq
            );
            is_order && matches!(left.as_ref(), Expr::Tuple(_))
        }
        _ => false,
    }
}

/// Whether a lowered expression is a truth value already.
fn is_truth(lowered: &Expr) -> bool {
    match lowered {
        Expr::Nested(inner) => is_truth(inner),
        Expr::UnaryOp { op: UnaryOperator::Not, .. } => true,
        Expr::BinaryOp { op: BinaryOperator::And | BinaryOperator::Or, .. } => true,
        Expr::Function(function) => match &function.args {
            FunctionArguments::List(list) if function.name.to_string() == NAME => matches!(
                list.args.first(),
                Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(name))))
                    if matches!(&name.value, Value::SingleQuotedString(name) if is_condition(name))
            ),
            _ => false,
        },
        _ => false,
    }
}

fn comparison(operator: &BinaryOperator) -> Option<&'static str> {
    Some(match operator {
        BinaryOperator::Eq => "=",
        BinaryOperator::NotEq => "<>",
        BinaryOperator::Lt => "<",
        BinaryOperator::LtEq => "<=",
        BinaryOperator::Gt => ">",
        BinaryOperator::GtEq => ">=",
        BinaryOperator::Spaceship => "<=>",
        _ => return None,
    })
}

/// The name of an operator of values.
fn operator_name(operator: &BinaryOperator) -> Option<&'static str> {
    Some(match operator {
        BinaryOperator::Plus => "+",
        BinaryOperator::Minus => "-",
        BinaryOperator::Multiply => "*",
        BinaryOperator::Divide => "/",
        BinaryOperator::Modulo => "%",
        BinaryOperator::MyIntegerDivide => "div",
        BinaryOperator::BitwiseOr => "|",
        BinaryOperator::BitwiseAnd => "&",
        BinaryOperator::BitwiseXor => "^",
        BinaryOperator::PGBitwiseShiftLeft => "<<",
        BinaryOperator::PGBitwiseShiftRight => ">>",
        BinaryOperator::Arrow => "->",
        BinaryOperator::LongArrow => "->>",
        other => return comparison(other),
    })
}

/// `expression` as a value.
pub(crate) fn value(expression: Expr) -> Result<Expr> {
    Ok(match expression {
        Expr::Identifier(_)
        | Expr::CompoundIdentifier(_)
        | Expr::Wildcard(_)
        | Expr::QualifiedWildcard(..)
        | Expr::Subquery(_)
        | Expr::Exists { .. } => expression,
        Expr::Nested(inner) => Expr::Nested(boxed(*inner, value)?),
        Expr::Value(of) => literal::value(of)?,
        Expr::TypedString(of) => literal::temporal(of)?,
        Expr::Prefixed { prefix, value } => literal::introduced(&prefix.value, *value)?,
        Expr::BinaryOp { left, op, right } => binary(*left, &op, *right)?,
        Expr::UnaryOp { op, expr } => unary(op, *expr)?,
        Expr::IsTrue(_)
        | Expr::IsNotTrue(_)
        | Expr::IsFalse(_)
        | Expr::IsNotFalse(_)
        | Expr::IsUnknown(_)
        | Expr::IsNotUnknown(_)
        | Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::InSubquery { .. }
        | Expr::AnyOp { .. }
        | Expr::AllOp { .. } => condition(expression)?,
        Expr::Between { expr, negated, low, high } => {
            not(negated, call("between", values(vec![*expr, *low, *high])?))
        }
        Expr::InList { expr, list, negated } => not(negated, in_list(*expr, list)?),
        Expr::Like { negated, any: false, expr, pattern, escape_char } => {
            let mut operands = values(vec![*expr, *pattern])?;
            operands.extend(escape_char.map(Expr::Value));
            not(negated, call("like", operands))
        }
        Expr::MemberOf(of) => call("member of", values(vec![*of.value, *of.array])?),
        Expr::RLike { negated, expr, pattern, .. } => {
            not(negated, call("regexp", values(vec![*expr, *pattern])?))
        }
        Expr::Case { .. } if functions::is_row(&expression) => row_of_values(expression)?,
        Expr::Case { operand, conditions, else_result, .. } => {
            case(operand.as_deref(), conditions, else_result.as_deref())?
        }
        Expr::Collate { expr, collation } => collated(*expr, &collation.to_string())?,
        Expr::Cast { expr, data_type, .. } => functions::cast(*expr, &data_type, None)?,
        Expr::Convert { expr, data_type: Some(data_type), charset, .. } => {
            functions::cast(*expr, &data_type, charset.as_ref())?
        }
        Expr::Convert { expr, charset: Some(charset), .. } => {
            call(&format!("cast:char::{}", charset.to_string().to_lowercase()), vec![value(*expr)?])
        }
        Expr::Extract { field, expr, .. } => {
            let unit = Value::SingleQuotedString(field.to_string().to_ascii_lowercase());
            call("extract", vec![Expr::value(unit), value(*expr)?])
        }
        Expr::Ceil { expr, field } => call("ceil", rounded(*expr, field)?),
        Expr::Floor { expr, field } => call("floor", rounded(*expr, field)?),
        Expr::Position { expr, r#in } => call("locate", values(vec![*expr, *r#in])?),
        Expr::Substring { expr, substring_from, substring_for, .. } => {
            let operands = [Some(expr), substring_from, substring_for].into_iter().flatten();
            call("substring", values(operands.map(|operand| *operand).collect())?)
        }
        Expr::Trim { trim_where, trim_what, expr, trim_characters: None } => {
            let name = match trim_where {
                None | Some(TrimWhereField::Both) => "trim both",
                Some(TrimWhereField::Leading) => "trim leading",
                Some(TrimWhereField::Trailing) => "trim trailing",
            };
            let operands = std::iter::once(*expr).chain(trim_what.map(|what| *what));
            call(name, values(operands.collect())?)
        }
        Expr::Function(function) => functions::function(function)?,
        Expr::Tuple(parts) => Expr::Tuple(values(parts)?),
        Expr::Rollup(sets) => Expr::Rollup(sets.into_iter().map(values).collect::<Result<_>>()?),
        Expr::Cube(sets) => Expr::Cube(sets.into_iter().map(values).collect::<Result<_>>()?),
        Expr::GroupingSets(sets) => Expr::GroupingSets(sets.into_iter().map(values).collect::<Result<_>>()?),
        other => return Err(unsupported(format!("the expression `{other}`"))),
    })
}

/// `of COLLATE collation`.
fn collated(of: Expr, collation: &str) -> Result<Expr> {
    let name = collation.replace(['`', '\'', '"'], "").to_lowercase();
    Ok(call(&format!("collate:{name}"), vec![value(of)?]))
}

fn is_row(expression: &Expr) -> bool {
    matches!(expression, Expr::Tuple(_))
}

/// A row of values as COUNT(DISTINCT a, b) takes it, with its parts lowered.
fn row_of_values(mut expression: Expr) -> Result<Expr> {
    if let Expr::Case { conditions, .. } = &mut expression {
        for when in conditions {
            when.condition = condition(when.condition.clone())?;
            when.result = value(when.result.clone())?;
        }
    }
    Ok(expression)
}

/// `of IN (list)`.
fn in_list(of: Expr, list: Vec<Expr>) -> Result<Expr> {
    if is_row(&of) && list.iter().all(is_row) {
        return row_in_list(of, list);
    }
    Ok(call("in", values(std::iter::once(of).chain(list).collect())?))
}

/// `(a, b) IN ((c, d), ...)` as comparisons of rows, of which one holds.
fn row_in_list(row: Expr, list: Vec<Expr>) -> Result<Expr> {
    let equal = |other| binary(row.clone(), &BinaryOperator::Eq, other);
    let either =
        |left, right| Expr::BinaryOp { left: Box::new(left), op: BinaryOperator::Or, right: Box::new(right) };
    let rows = list.into_iter().map(equal).collect::<Result<Vec<_>>>()?;
    let any = rows.into_iter().reduce(either).ok_or_else(|| unsupported("an empty list"))?;
    Ok(Expr::Nested(Box::new(any)))
}

/// CASE as a call of conditions and results in turn, and the result otherwise.
fn case(operand: Option<&Expr>, conditions: Vec<CaseWhen>, otherwise: Option<&Expr>) -> Result<Expr> {
    let mut operands = Vec::new();
    for when in conditions {
        let holds = match operand {
            Some(of) => call("case =", values(vec![of.clone(), when.condition])?),
            None => condition(when.condition)?,
        };
        operands.extend([holds, value(when.result)?]);
    }
    operands.extend(otherwise.map(|otherwise| value(otherwise.clone())).transpose()?);
    Ok(call("case", operands))
}

fn rounded(expression: Expr, field: CeilFloorKind) -> Result<Vec<Expr>> {
    match field {
        CeilFloorKind::DateTimeField(datafusion::sql::sqlparser::ast::DateTimeField::NoDateTime) => {
            values(vec![expression])
        }
        _ => Err(unsupported("CEIL or FLOOR with a second argument")),
    }
}

fn binary(left: Expr, operator: &BinaryOperator, right: Expr) -> Result<Expr> {
    if let BinaryOperator::And
    | BinaryOperator::Or
    | BinaryOperator::StringConcat
    | BinaryOperator::PGOverlap = operator
    {
        let (left, right) = (Box::new(left), Box::new(right));
        return condition(Expr::BinaryOp { left, op: operator.clone(), right });
    }
    if *operator == BinaryOperator::Xor {
        return Ok(call("xor", vec![condition(left)?, condition(right)?]));
    }
    let name = operator_name(operator).ok_or_else(|| unsupported(format!("the operator {operator}")))?;
    if let (Expr::Tuple(lefts), Expr::Tuple(rights)) = (&left, &right) {
        return rows(lefts, operator, rights);
    }
    match (name, left, right) {
        ("+" | "-", date, Expr::Interval(interval)) => shifted(name, date, interval),
        ("+", Expr::Interval(interval), date) => shifted("+", date, interval),
        (_, left, right) => Ok(call(name, values(vec![left, right])?)),
    }
}

/// A comparison of rows, part by part.
fn rows(lefts: &[Expr], operator: &BinaryOperator, rights: &[Expr]) -> Result<Expr> {
    let both = lefts.iter().zip(rights);
    if lefts.len() != rights.len() {
        return Err(unsupported("a comparison of rows of several lengths"));
    }
    match operator {
        BinaryOperator::Eq | BinaryOperator::NotEq | BinaryOperator::Spaceship => {}
        BinaryOperator::Lt | BinaryOperator::LtEq => return ordered(lefts, rights, "<", operator),
        BinaryOperator::Gt | BinaryOperator::GtEq => return ordered(lefts, rights, ">", operator),
        other => return Err(unsupported(format!("the operator {other} of rows"))),
    }
    let name = if *operator == BinaryOperator::Spaceship { "<=>" } else { "=" };
    let parts = both.map(|(left, right)| Ok(call(name, values(vec![left.clone(), right.clone()])?)));
    let parts = parts.collect::<Result<Vec<_>>>()?;
    let all = parts.into_iter().reduce(|left, right| Expr::BinaryOp {
        left: Box::new(left),
        op: BinaryOperator::And,
        right: Box::new(right),
    });
    let all = all.ok_or_else(|| unsupported("a comparison of empty rows"))?;
    Ok(not(*operator == BinaryOperator::NotEq, Expr::Nested(Box::new(all))))
}

/// Rows by their order: the first parts that are not equal decide, which `strict` compares; the last ones `operator`
/// does.
fn ordered(lefts: &[Expr], rights: &[Expr], strict: &str, operator: &BinaryOperator) -> Result<Expr> {
    let ([left, lefts @ ..], [right, rights @ ..]) = (lefts, rights) else {
        return Err(unsupported("a comparison of empty rows"));
    };
    let both = values(vec![left.clone(), right.clone()])?;
    if lefts.is_empty() {
        let name =
            comparison(operator).ok_or_else(|| unsupported(format!("the operator {operator} of rows")))?;
        return Ok(call(name, both));
    }
    let rest = Expr::BinaryOp {
        left: Box::new(call("=", both.clone())),
        op: BinaryOperator::And,
        right: Box::new(ordered(lefts, rights, strict, operator)?),
    };
    Ok(Expr::Nested(Box::new(Expr::BinaryOp {
        left: Box::new(call(strict, both)),
        op: BinaryOperator::Or,
        right: Box::new(Expr::Nested(Box::new(rest))),
    })))
}

/// A date moved by an interval; `name` is `+` or `-`.
pub(super) fn shifted(name: &str, date: Expr, interval: Interval) -> Result<Expr> {
    let unit = interval.leading_field.as_ref().ok_or_else(|| unsupported("an INTERVAL without a unit"))?;
    if interval.last_field.is_some() {
        return Err(unsupported("an INTERVAL of several units"));
    }
    let name = if name == "+" { "date_add" } else { "date_sub" };
    let count = *interval.value;
    Ok(call(&format!("{name}:{}", unit.to_string().to_ascii_lowercase()), values(vec![date, count])?))
}

fn unary(operator: UnaryOperator, operand: Expr) -> Result<Expr> {
    match operator {
        UnaryOperator::Not | UnaryOperator::BangNot => {
            condition(Expr::UnaryOp { op: operator, expr: Box::new(operand) })
        }
        UnaryOperator::Plus => value(operand),
        UnaryOperator::Minus => match &operand {
            Expr::Value(of) if literal::is_plain_number(&of.value) => {
                Ok(Expr::UnaryOp { op: UnaryOperator::Minus, expr: Box::new(operand) })
            }
            _ => Ok(call("negative", vec![value(operand)?])),
        },
        UnaryOperator::BitwiseNot => Ok(call("~", vec![value(operand)?])),
        other => Err(unsupported(format!("the operator {other}"))),
    }
}
