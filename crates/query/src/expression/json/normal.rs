//! `JSON_NORMALIZE` of MariaDB: members by their names, numbers with an exponent, no spaces.

use super::super::datum::Datum;
use super::super::node::Typed;
use super::super::{Kind, Refusal};
use super::document::{Json, Parsed, parse};
use super::document_kind;

pub(super) fn function(name: &str, operands: &[Typed], mysql: bool) -> Result<Option<Typed>, Refusal> {
    match (name, operands.len()) {
        ("json_normalize", 1) if !mysql => {
            let kind = operands[0].kind.clone();
            document_kind(&operands[0], mysql)?;
            Ok(Some(Typed::call(Kind::Json, operands.to_vec(), move |values| {
                let Some(text) = values[0].text(&kind)? else { return Ok(Datum::Null) };
                match parse(&text, mysql)? {
                    Parsed::Document(document) => {
                        let mut out = String::new();
                        normalized(&document, &mut out);
                        Ok(Datum::Text(out))
                    }
                    Parsed::Invalid => Ok(Datum::Null),
                }
            })))
        }
        _ => Ok(None),
    }
}

fn normalized(document: &Json, out: &mut String) {
    let quoted = |text: &str, out: &mut String| {
        out.push('"');
        out.push_str(text);
        out.push('"');
    };
    match document {
        Json::Null => out.push_str("null"),
        Json::Truth(truth) => out.push_str(if *truth { "true" } else { "false" }),
        Json::Number(number) => out.push_str(&number_spelled(number)),
        Json::Text(text) => quoted(&text.spelling, out),
        Json::Array(elements) => {
            out.push('[');
            for (at, element) in elements.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                normalized(element, out);
            }
            out.push(']');
        }
        Json::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by(|one, other| one.0.spelling.cmp(&other.0.spelling));
            out.push('{');
            for (at, (name, value)) in members.into_iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                quoted(&name.spelling, out);
                out.push(':');
                normalized(value, out);
            }
            out.push('}');
        }
    }
}

/// A number as `d.ddE±n`, whose digits are those that are written.
fn number_spelled(number: &str) -> String {
    let (sign, unsigned) = match number.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", number),
    };
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_start_matches('0');
    let zeros = digits.len() - significant.len();
    let significant = significant.trim_end_matches('0');
    if significant.is_empty() {
        return "0.0E0".to_string();
    }
    let exponent = exponent.trim_start_matches('+').parse::<i64>().unwrap_or(0);
    let exponent = exponent + whole.len() as i64 - 1 - zeros as i64;
    let (first, rest) = significant.split_at(1);
    let rest = if rest.is_empty() { "0" } else { rest };
    format!("{sign}{first}.{rest}E{exponent}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_an_exponent() {
        for (number, spelled) in [
            ("1", "1.0E0"),
            ("2.50", "2.5E0"),
            ("-0", "0.0E0"),
            ("1e2", "1.0E2"),
            ("-1.5e-7", "-1.5E-7"),
            ("0.000123", "1.23E-4"),
            ("-12.340", "-1.234E1"),
            ("1E+5", "1.0E5"),
        ] {
            assert_eq!(number_spelled(number), spelled);
        }
    }
}
