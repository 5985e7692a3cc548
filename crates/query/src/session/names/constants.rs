//! Functions whose value is known before the statement runs: what is told of the connection, NAME_CONST, VALUES.

use datafusion::sql::sqlparser::ast::{Expr, Function, FunctionArguments, UnaryOperator, Value};

use super::expression::{is_called, only_argument};
use super::{Context, invalid, unsupported};
use crate::Result;
use tanada_innodb::schema::Server;

/// The user, as a client on the server's machine is called.
const USER: &str = "root@localhost";

fn number(number: &str) -> Expr {
    Expr::value(Value::Number(number.to_string(), false))
}

/// The value of such a function; `None` if it is another one.
pub(super) fn value(function: &Function, context: &Context<'_>) -> Result<Option<Expr>> {
    let has_none = match &function.args {
        FunctionArguments::List(list) => list.args.is_empty(),
        FunctionArguments::None => true,
        FunctionArguments::Subquery(_) => false,
    };
    let is_mysql = context.server == Server::MySql;
    Ok(match function.name.to_string().to_ascii_lowercase().as_str() {
        "user" | "current_user" | "session_user" | "system_user" if has_none => {
            Some(Expr::value(Value::SingleQuotedString(USER.to_string())))
        }
        "last_insert_id" if !has_none => only_argument(function).cloned(),
        "connection_id" if has_none => Some(number("1")),
        "last_insert_id" if has_none => Some(number("0")),
        "row_count" if has_none => {
            Some(Expr::UnaryOp { op: UnaryOperator::Minus, expr: Box::new(number("1")) })
        }
        "found_rows" if has_none => match context.found_rows {
            Some(rows) => Some(number(&rows.to_string())),
            None => return Err(unsupported("FOUND_ROWS of a result that was not read to its end")),
        },
        "name_const" => Some(named(function, is_mysql)?.1),
        // Nobody can take a lock here.
        "is_free_lock" if only_argument(function).is_some_and(is_lock_name) => Some(number("1")),
        // Only an INSERT has values.
        "values" if is_mysql && only_argument(function).is_some() => Some(Expr::value(Value::Null)),
        _ => None,
    })
}

/// Most letters of a lock's name.
const MAX_LOCK_LETTERS: usize = 64;

/// Whether it is a name that a lock may have, as a literal.
fn is_lock_name(expression: &Expr) -> bool {
    match expression {
        Expr::Value(of) => match &of.value {
            Value::SingleQuotedString(name) | Value::DoubleQuotedString(name) => {
                (1..=MAX_LOCK_LETTERS).contains(&name.chars().count())
            }
            _ => false,
        },
        _ => false,
    }
}

/// The name that `NAME_CONST(name, value)` gives its column.
pub(super) fn given_name(expression: &Expr) -> Option<String> {
    match expression {
        Expr::Function(function) if is_called(function, "name_const") => Some(named(function, false).ok()?.0),
        _ => None,
    }
}

/// The name and the value of NAME_CONST, which are literals.
fn named(function: &Function, is_mysql: bool) -> Result<(String, Expr)> {
    let wrong = || invalid("Incorrect arguments to NAME_CONST");
    let FunctionArguments::List(list) = &function.args else { return Err(wrong()) };
    let [name, value] = list.args.as_slice() else {
        return Err(invalid("Incorrect parameter count in the call to native function 'name_const'"));
    };
    let (Some(name), Some(value)) = (expression_of(name), expression_of(value)) else { return Err(wrong()) };
    let name = match name {
        Expr::Value(name) => match &name.value {
            Value::SingleQuotedString(name) | Value::DoubleQuotedString(name) => name.clone(),
            Value::Number(number, _) => number.clone(),
            _ => return Err(wrong()),
        },
        _ => return Err(wrong()),
    };
    match value {
        Expr::Value(of) => match &of.value {
            // Its text compares as a column's.
            Value::SingleQuotedString(_) | Value::DoubleQuotedString(_) if !is_mysql => {
                Err(unsupported("NAME_CONST of a text"))
            }
            Value::Placeholder(_) => Err(wrong()),
            _ => Ok((name, value.clone())),
        },
        Expr::UnaryOp { op: UnaryOperator::Minus | UnaryOperator::Plus, expr } if matches!(expr.as_ref(), Expr::Value(of) if matches!(of.value, Value::Number(..))) => {
            Ok((name, value.clone()))
        }
        Expr::TypedString(_) if !is_mysql => Ok((name, value.clone())),
        _ => Err(wrong()),
    }
}

fn expression_of(argument: &datafusion::sql::sqlparser::ast::FunctionArg) -> Option<&Expr> {
    use datafusion::sql::sqlparser::ast::{FunctionArg, FunctionArgExpr};
    match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expression)) => Some(expression),
        _ => None,
    }
}
