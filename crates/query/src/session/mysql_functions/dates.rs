//! Functions of dates and times.
//!
//! An argument that may be text is read as a DATETIME, to the microsecond: DataFusion's own reading of text is in
//! nanoseconds, which end in 2262.

use datafusion::sql::sqlparser::ast::{BinaryOperator, DataType, DateTimeField, Expr, ExtractSyntax, Value};

use super::{as_type, call, number, operation, text};

/// The respelled call of `name`, if it is one of these.
pub(super) fn respelled(name: &str, arguments: &[Expr]) -> Option<Expr> {
    Some(match (name, arguments) {
        ("date_add" | "adddate", [date, Expr::Interval(_)]) => {
            moved(date, BinaryOperator::Plus, &arguments[1])
        }
        ("date_sub" | "subdate", [date, Expr::Interval(_)]) => {
            moved(date, BinaryOperator::Minus, &arguments[1])
        }
        ("curdate", []) => call("current_date", Vec::new()),
        ("date", [of]) => date(of),
        ("datediff", [later, earlier]) => {
            operation(day_number(later), BinaryOperator::Minus, day_number(earlier))
        }
        ("dayofweek", [of]) => operation(extracted(of, DateTimeField::Dow), BinaryOperator::Plus, number(1)),
        ("weekday", [of]) => {
            let sunday_is_six = operation(extracted(of, DateTimeField::Dow), BinaryOperator::Plus, number(6));
            operation(sunday_is_six, BinaryOperator::Modulo, number(7))
        }
        ("dayofyear", [of]) => extracted(of, DateTimeField::Doy),
        ("dayname", [of]) => call("to_char", vec![date_time(of), text("%A")]),
        ("monthname", [of]) => call("to_char", vec![date_time(of), text("%B")]),
        ("date_format", [of, Expr::Value(format)]) => {
            let format = format.value.clone().into_string()?;
            match chrono_format(&format) {
                Some(format) => call("to_char", vec![date_time(of), text(&format)]),
                // No such function: an error, for another meaning of the letters would be a wrong answer.
                None => call(&format!("date_format with the format {format}"), Vec::new()),
            }
        }
        ("unix_timestamp", [of]) => as_type(extracted(of, DateTimeField::Epoch), DataType::BigInt(None)),
        (unit, [of]) => Expr::Extract {
            field: field(unit)?,
            syntax: ExtractSyntax::From,
            expr: Box::new(if is_text(of) { date_time(of) } else { of.clone() }),
        },
        _ => return None,
    })
}

fn field(name: &str) -> Option<DateTimeField> {
    Some(match name {
        "year" => DateTimeField::Year,
        "quarter" => DateTimeField::Quarter,
        "month" => DateTimeField::Month,
        "day" | "dayofmonth" => DateTimeField::Day,
        _ => return None,
    })
}

/// The MySQL format in the letters that `to_char` knows; none if it has one that `to_char` lacks.
fn chrono_format(format: &str) -> Option<String> {
    let mut respelled = String::new();
    let mut rest = format.chars();
    while let Some(letter) = rest.next() {
        if letter != '%' {
            respelled.push(letter);
            continue;
        }
        respelled.push_str(match rest.next()? {
            'Y' => "%Y",
            'y' => "%y",
            'm' => "%m",
            'c' => "%-m",
            'M' => "%B",
            'b' => "%b",
            'd' => "%d",
            'e' => "%-d",
            'j' => "%j",
            'H' => "%H",
            'k' => "%-H",
            'h' | 'I' => "%I",
            'l' => "%-I",
            'i' => "%M",
            's' | 'S' => "%S",
            'f' => "%6f",
            'p' => "%p",
            'r' => "%I:%M:%S %p",
            'T' => "%H:%M:%S",
            'W' => "%A",
            'a' => "%a",
            'w' => "%w",
            'U' => "%U",
            'v' => "%V",
            'x' => "%G",
            '%' => "%%",
            _ => return None,
        });
    }
    Some(respelled)
}

fn moved(date: &Expr, op: BinaryOperator, interval: &Expr) -> Expr {
    let from = if is_text(date) { date_time(date) } else { date.clone() };
    operation(from, op, interval.clone())
}

fn is_text(expression: &Expr) -> bool {
    matches!(expression, Expr::Value(value) if matches!(value.value, Value::SingleQuotedString(_) | Value::DoubleQuotedString(_)))
}

fn date_time(of: &Expr) -> Expr {
    call("arrow_cast", vec![of.clone(), text("Timestamp(Microsecond, None)")])
}

fn date(of: &Expr) -> Expr {
    as_type(if is_text(of) { date_time(of) } else { of.clone() }, DataType::Date)
}

/// Days since the epoch.
fn day_number(of: &Expr) -> Expr {
    as_type(as_type(date(of), DataType::Int(None)), DataType::BigInt(None))
}

fn extracted(of: &Expr, field: DateTimeField) -> Expr {
    Expr::Extract { field, syntax: ExtractSyntax::From, expr: Box::new(date_time(of)) }
}

#[cfg(test)]
mod tests {
    use super::chrono_format;

    #[test]
    fn formats_are_respelled_or_refused() {
        assert_eq!(chrono_format("%Y-%m-%d %H:%i:%s").unwrap(), "%Y-%m-%d %H:%M:%S");
        assert_eq!(chrono_format("%M 100%%").unwrap(), "%B 100%%");
        assert_eq!(chrono_format("%D"), None);
        assert_eq!(chrono_format("%"), None);
    }
}
