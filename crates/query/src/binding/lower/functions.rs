//! Calls of functions: aggregates and windows stay the engine's, all others become the server's.

use datafusion::sql::sqlparser::ast::{
    CharacterLength, DataType, DateTimeField, ExactNumberInfo, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArguments, ObjectName, Value, WindowFrameBound, WindowSpec, WindowType,
};

use super::expression::{call, condition, shifted, value, values};
use super::unsupported;
use crate::Result;
use crate::functions::{RANDOM_BYTES, UUID_SHORT};

/// Functions that the engine computes over rows.
const AGGREGATES: [&str; 31] = [
    "any_value",
    "avg",
    "bit_and",
    "bit_or",
    "bit_xor",
    "count",
    "first_value",
    "group_concat",
    "grouping",
    "json_arrayagg",
    "json_objectagg",
    "last_value",
    "max",
    "min",
    "std",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "string_agg",
    "sum",
    "var_pop",
    "var_samp",
    "variance",
    "row_number",
    "rank",
    "dense_rank",
    "percent_rank",
    "cume_dist",
    "ntile",
    "lag",
    "lead",
];

/// Aggregates of numbers.
const OF_NUMBERS: [&str; 9] =
    ["sum", "avg", "std", "stddev", "stddev_pop", "stddev_samp", "var_pop", "var_samp", "variance"];

/// Windows that count, of which the servers have different types.
const RANKINGS: [&str; 4] = ["row_number", "rank", "dense_rank", "ntile"];

/// A call.
pub(super) fn function(mut function: Function) -> Result<Expr> {
    let name = function.name.to_string().replace('`', "").to_ascii_lowercase();
    if function.over.is_some() || AGGREGATES.contains(&name.as_str()) || is_internal(&name) {
        lower_arguments(&mut function, OF_NUMBERS.contains(&name.as_str()))?;
        if name == "median" {
            as_doubles(&mut function);
        }
        if let Some(WindowType::WindowSpec(window)) = &mut function.over {
            lower_window(window)?;
            if RANKINGS.contains(&name.as_str()) {
                return Ok(call("ranking", vec![Expr::Function(function)]));
            }
            if name == "median" {
                return Ok(call("median of", vec![Expr::Function(function)]));
            }
        }
        return Ok(Expr::Function(function));
    }
    let arguments = arguments(&function, &name)?;
    scalar(&name, arguments)
}

/// Functions of the engine that earlier steps put in: their meaning is not the server's to say.
fn is_internal(name: &str) -> bool {
    matches!(name, "struct" | "nth_value" | "array_agg" | super::super::call::NAME)
        || name.starts_with("tanada_")
        || name.starts_with("mysql_")
}

/// Whether it is a row of values that are not NULL, as COUNT(DISTINCT a, b) takes it.
pub(super) fn is_row(expression: &Expr) -> bool {
    match expression {
        Expr::Case { conditions, .. } => conditions.iter().all(|when| match &when.result {
            Expr::Function(of) => of.name.to_string() == "struct",
            _ => false,
        }),
        _ => false,
    }
}

fn lower_arguments(function: &mut Function, of_numbers: bool) -> Result<()> {
    if function.name.to_string() == super::super::call::NAME {
        return Ok(());
    }
    if let FunctionArguments::List(list) = &mut function.args {
        for argument in &mut list.args {
            if let FunctionArg::Unnamed(FunctionArgExpr::Expr(expression)) = argument {
                let lowered = of_aggregate(value(expression.clone())?);
                *expression = if of_numbers { call("number of", vec![lowered]) } else { lowered };
            }
        }
        for clause in &mut list.clauses {
            use datafusion::sql::sqlparser::ast::FunctionArgumentClause::OrderBy;
            if let OrderBy(keys) = clause {
                // A number that is no position orders nothing.
                keys.retain(|key| match &key.expr {
                    Expr::Value(of) => match &of.value {
                        Value::Number(number, _) => number.bytes().all(|digit| digit.is_ascii_digit()),
                        _ => true,
                    },
                    _ => true,
                });
                keys.iter_mut().try_for_each(super::sort_key)?;
            }
        }
    }
    if let Some(filter) = &mut function.filter {
        **filter = condition(filter.as_ref().clone())?;
    }
    Ok(())
}

/// A median is one of doubles.
fn as_doubles(function: &mut Function) {
    if let FunctionArguments::List(list) = &mut function.args {
        for argument in &mut list.args {
            if let FunctionArg::Unnamed(FunctionArgExpr::Expr(expression)) = argument {
                *expression = call("double of", vec![expression.clone()]);
            }
        }
    }
}

/// The digits that a CASE shows are nothing to an aggregate.
fn of_aggregate(mut lowered: Expr) -> Expr {
    if let Expr::Function(function) = &mut lowered
        && let FunctionArguments::List(list) = &mut function.args
        && let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(name)))) = list.args.first_mut()
        && let Value::SingleQuotedString(name) = &mut name.value
        && name == "case"
    {
        name.push_str(" of aggregate");
    }
    lowered
}

fn lower_window(window: &mut WindowSpec) -> Result<()> {
    for key in &mut window.partition_by {
        *key = value(key.clone())?;
    }
    if let Some(frame) = &mut window.window_frame {
        let bounds = std::iter::once(&mut frame.start_bound).chain(frame.end_bound.as_mut());
        for bound in bounds {
            if let WindowFrameBound::Preceding(Some(by)) | WindowFrameBound::Following(Some(by)) = bound {
                lower_span(by)?;
            }
        }
    }
    window.order_by.iter_mut().try_for_each(super::sort_key)
}

/// A span of time as a bound of a frame, `INTERVAL 3 DAY`, as the engine spells it.
fn lower_span(bound: &mut Expr) -> Result<()> {
    let Expr::Interval(span) = bound else { return Ok(()) };
    let not_here = || unsupported(format!("{span} as a bound of a window's frame"));
    let count = match span.value.as_ref() {
        Expr::Value(count) => match &count.value {
            Value::Number(digits, _) | Value::SingleQuotedString(digits) => digits.trim().parse::<u32>(),
            _ => return Err(not_here()),
        },
        _ => return Err(not_here()),
    };
    let count = count.map_err(|_| not_here())?;
    let (count, unit) = match &span.leading_field {
        Some(DateTimeField::Quarter) => (count.checked_mul(3).ok_or_else(not_here)?, DateTimeField::Month),
        Some(
            unit @ (DateTimeField::Year
            | DateTimeField::Month
            | DateTimeField::Week(None)
            | DateTimeField::Day
            | DateTimeField::Hour
            | DateTimeField::Minute
            | DateTimeField::Second),
        ) if span.last_field.is_none() => (count, unit.clone()),
        _ => return Err(not_here()),
    };
    *span.value = Expr::Value(Value::SingleQuotedString(count.to_string()).into());
    span.leading_field = Some(unit);
    Ok(())
}

/// The arguments of a call without any clause.
fn arguments(function: &Function, name: &str) -> Result<Vec<Expr>> {
    let list = match &function.args {
        FunctionArguments::List(list) => list,
        FunctionArguments::None => return Ok(Vec::new()),
        FunctionArguments::Subquery(_) => return Err(unsupported(format!("{name} of a subquery"))),
    };
    if !list.clauses.is_empty() || list.duplicate_treatment.is_some() || function.filter.is_some() {
        return Err(unsupported(format!("{name} with a clause in its parentheses")));
    }
    list.args
        .iter()
        .map(|argument| match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expression)) => Ok(expression.clone()),
            other => Err(unsupported(format!("the argument {other} of {name}"))),
        })
        .collect()
}

fn scalar(name: &str, mut arguments: Vec<Expr>) -> Result<Expr> {
    match (name, arguments.as_slice()) {
        ("rand", []) => Ok(of_engine("random", Vec::new())),
        ("uuid", []) => Ok(of_engine("uuid", Vec::new())),
        ("uuid_short", []) => Ok(of_engine(UUID_SHORT, Vec::new())),
        ("random_bytes", [length]) => {
            Ok(of_engine(RANDOM_BYTES, vec![call("cast:signed::", vec![value(length.clone())?])]))
        }
        ("decode_oracle", [_, _, _, ..]) => decoded(arguments),
        ("date_add" | "adddate" | "date_sub" | "subdate", [date, Expr::Interval(interval)]) => {
            let sign = if matches!(name, "date_add" | "adddate") { "+" } else { "-" };
            shifted(sign, date.clone(), interval.clone())
        }
        ("if", [_, _, _]) => {
            let rest = arguments.split_off(1);
            let holds = arguments.pop().map(condition).transpose()?;
            Ok(call(
                "case",
                holds.into_iter().map(Ok).chain(rest.into_iter().map(value)).collect::<Result<_>>()?,
            ))
        }
        ("nvl2", [of, _, _]) => {
            let is_there = condition(Expr::IsNotNull(Box::new(of.clone())))?;
            let rest = values(arguments.split_off(1))?;
            Ok(call("case", std::iter::once(is_there).chain(rest).collect()))
        }
        ("timestampadd" | "timestampdiff", [Expr::Identifier(unit), _, _]) => {
            let unit = unit.value.to_ascii_lowercase();
            let unit = unit.strip_prefix("sql_tsi_").unwrap_or(&unit);
            let unit = Expr::value(Value::SingleQuotedString(unit.to_string()));
            let rest = values(arguments.split_off(1))?;
            Ok(call(name, std::iter::once(unit).chain(rest).collect()))
        }
        ("get_format", [Expr::Identifier(kind), _]) => {
            let kind = Expr::value(Value::SingleQuotedString(kind.value.to_ascii_lowercase()));
            let rest = values(arguments.split_off(1))?;
            Ok(call(name, std::iter::once(kind).chain(rest).collect()))
        }
        ("trim", [_]) => Ok(call("trim both", values(arguments)?)),
        _ => Ok(call(name, values(arguments)?)),
    }
}

/// `DECODE_ORACLE(a, b, r, ..., [otherwise])`: the result behind what is equal to the first, of which NULL is, too.
fn decoded(arguments: Vec<Expr>) -> Result<Expr> {
    let mut arguments = values(arguments)?.into_iter();
    let of = arguments.next().ok_or_else(|| unsupported("DECODE_ORACLE of nothing"))?;
    let mut operands = Vec::new();
    while let Some(item) = arguments.next() {
        match arguments.next() {
            Some(result) => operands.extend([call("<=>", vec![of.clone(), item]), result]),
            None => operands.push(item),
        }
    }
    Ok(call("case", operands))
}

/// A function that gives another value each time.
fn of_engine(name: &str, arguments: Vec<Expr>) -> Expr {
    use datafusion::sql::sqlparser::ast::{FunctionArgumentList, Ident};
    let args = arguments.into_iter().map(|of| FunctionArg::Unnamed(FunctionArgExpr::Expr(of))).collect();
    let list = FunctionArgumentList { duplicate_treatment: None, args, clauses: Vec::new() };
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new(name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(list),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

/// CAST and CONVERT: `cast:type:numbers:charset`.
pub(super) fn cast(operand: Expr, data_type: &DataType, charset: Option<&ObjectName>) -> Result<Expr> {
    let length = |length: &Option<CharacterLength>| match length {
        Some(CharacterLength::IntegerLength { length, .. }) => length.to_string(),
        _ => String::new(),
    };
    let fsp = |fsp: &Option<u64>| fsp.map_or(String::new(), |fsp| fsp.to_string());
    let (name, numbers) = match data_type {
        DataType::Signed
        | DataType::SignedInteger
        | DataType::Int(None)
        | DataType::Integer(None)
        | DataType::BigInt(None) => ("signed", String::new()),
        DataType::Unsigned | DataType::UnsignedInteger => ("unsigned", String::new()),
        DataType::Decimal(of) | DataType::Dec(of) | DataType::Numeric(of) => ("decimal", digits(of)),
        DataType::Char(of) | DataType::Character(of) | DataType::Varchar(of) | DataType::Nvarchar(of) => {
            ("char", length(of))
        }
        DataType::Binary(of) => ("binary", of.map_or(String::new(), |length| length.to_string())),
        DataType::Date => ("date", String::new()),
        DataType::Datetime(of) | DataType::Timestamp(of, _) => ("datetime", fsp(of)),
        DataType::Time(of, _) => ("time", fsp(of)),
        DataType::Double(_) | DataType::DoublePrecision => ("double", String::new()),
        DataType::Float(_) | DataType::Real => ("float", String::new()),
        DataType::JSON => ("json", String::new()),
        other if other.to_string().eq_ignore_ascii_case("year") => ("year", String::new()),
        other => return Err(unsupported(format!("CAST to {other}"))),
    };
    let charset = charset.map_or(String::new(), |charset| charset.to_string().to_lowercase());
    Ok(call(&format!("cast:{name}:{numbers}:{charset}"), vec![value(operand)?]))
}

fn digits(of: &ExactNumberInfo) -> String {
    match of {
        ExactNumberInfo::None => String::new(),
        ExactNumberInfo::Precision(precision) => precision.to_string(),
        ExactNumberInfo::PrecisionAndScale(precision, scale) => format!("{precision},{scale}"),
    }
}
