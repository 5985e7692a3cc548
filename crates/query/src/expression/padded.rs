//! Columns with ZEROFILL and YEAR(2): numbers whose text has zeros before it.
//!
//! An operand of such a column is its text for functions of texts, and its number for the others. IF, COALESCE and
//! their like are texts if another branch is. MySQL's text of what they give of numbers alone may have the zeros or
//! not, so that such a text is refused.

use super::node::Typed;
use super::{Collating, Datum, Kind, Refusal, Rules, floating};

/// Functions of texts, with the operands that they take as texts (bits), of which the others are numbers.
const TEXTS: [(&str, u32); 48] = [
    ("concat", ALL),
    ("concat of group", ALL),
    ("concat_ws", ALL),
    ("length", FIRST),
    ("octet_length", FIRST),
    ("bit_length", FIRST),
    ("char_length", FIRST),
    ("character_length", FIRST),
    ("left", FIRST),
    ("right", FIRST),
    ("substr", FIRST),
    ("substring", FIRST),
    ("mid", FIRST),
    ("substring_index", 0b11),
    ("lpad", 0b101),
    ("rpad", 0b101),
    ("reverse", FIRST),
    ("replace", ALL),
    ("upper", FIRST),
    ("ucase", FIRST),
    ("lower", FIRST),
    ("lcase", FIRST),
    ("trim both", ALL),
    ("trim leading", ALL),
    ("trim trailing", ALL),
    ("ltrim", FIRST),
    ("rtrim", FIRST),
    ("locate", 0b11),
    ("position", 0b11),
    ("instr", 0b11),
    ("ascii", FIRST),
    ("ord", FIRST),
    ("md5", FIRST),
    ("sha", FIRST),
    ("sha1", FIRST),
    ("sha2", FIRST),
    ("crc32", FIRST),
    ("quote", FIRST),
    ("to_base64", FIRST),
    ("repeat", FIRST),
    ("insert", 0b1001),
    ("find_in_set", 0b11),
    ("strcmp", 0b11),
    ("like", ALL),
    ("regexp", ALL),
    ("rlike", ALL),
    ("cast:char", FIRST),
    ("cast:binary", FIRST),
];

const ALL: u32 = u32::MAX;
const FIRST: u32 = 1;

/// Functions of numbers.
const NUMBERS: [&str; 46] = [
    "+",
    "-",
    "*",
    "/",
    "div",
    "%",
    "mod",
    "|",
    "&",
    "^",
    "<<",
    ">>",
    "~",
    "and",
    "or",
    "xor",
    "not",
    "negative",
    "is null",
    "is true",
    "is false",
    "is unknown",
    "isnull",
    "abs",
    "floor",
    "ceil",
    "ceiling",
    "round",
    "truncate",
    "sign",
    "sqrt",
    "pow",
    "power",
    "interval",
    "hex",
    "bin",
    "oct",
    "conv",
    "format",
    "char",
    "space",
    "condition",
    "number of",
    "average of",
    "cast:signed",
    "cast:unsigned",
];

/// Functions of numbers that YEAR(2) takes part in by its century, or not, by where it stands.
const COMPARISONS: [&str; 10] = ["=", "case =", "<>", "<", "<=", ">", ">=", "<=>", "between", "in"];

/// Functions that give one of their operands.
const CHOICES: [&str; 9] = ["if", "ifnull", "nvl", "nvl2", "coalesce", "case", "nullif", "greatest", "least"];

/// The operands (bits) that a function takes as texts; `None` if it is none of texts.
pub(super) fn texts_of(name: &str) -> Option<u32> {
    TEXTS.iter().find(|(of, _)| *of == name).map(|(_, texts)| *texts)
}

/// Whether the digits that an operand shows are seen in what a function gives.
pub(crate) fn shows_digits(name: &str) -> bool {
    let short = name.match_indices(':').nth(1).map_or(name, |(end, _)| &name[..end]);
    texts_of(short).is_some() || CHOICES.contains(&name)
}

/// The operands of a function as it takes them.
///
/// # Errors
/// If it is not known how it takes them.
pub(super) fn resolved(name: &str, operands: Vec<Typed>, rules: &Rules) -> Result<Vec<Typed>, Refusal> {
    if !operands.iter().any(|of| matches!(of.kind, Kind::Padded { .. })) {
        return Ok(operands);
    }
    let refused = || Err(Refusal::new(format!("{name} of a column with ZEROFILL or of YEAR(2)")));
    let short = name.match_indices(':').nth(1).map_or(name, |(end, _)| &name[..end]);
    if name == "strcmp" && rules.mysql && operands.iter().any(|of| of.kind.is_string()) {
        return refused();
    }
    if let Some(texts) = texts_of(short) {
        let taken = operands.into_iter().enumerate().map(|(at, of)| match texts.checked_shr(at as u32) {
            Some(bits) if bits & 1 == 1 || texts == ALL => text(of, rules),
            _ => Ok(number(of)),
        });
        return taken.collect();
    }
    let is_year = |of: &Typed| matches!(&of.kind, Kind::Padded { of, .. } if **of == Kind::Year);
    if COMPARISONS.contains(&name) && !operands.iter().any(is_year)
        || NUMBERS.contains(&short)
        || name.starts_with("cast:decimal")
        || name.starts_with("cast:double")
    {
        return Ok(operands.into_iter().map(number).collect());
    }
    if !CHOICES.contains(&name) {
        return refused();
    }
    // A result is at every second place, and at the last.
    let is_result = |at: usize| match name {
        "if" | "nvl2" => at > 0,
        "case" => at % 2 == 1 || at + 1 == operands.len(),
        "nullif" => at == 0,
        _ => true,
    };
    let results = || operands.iter().enumerate().filter(|(at, _)| is_result(*at)).map(|(_, of)| of);
    let has_other =
        results().any(|of| !matches!(of.kind, Kind::Padded { .. } | Kind::Null) && !of.kind.is_number());
    let is_exact =
        |of: &Typed| matches!(&of.kind, Kind::Padded { of, .. } if matches!(**of, Kind::Decimal { .. }));
    if has_other {
        let all_texts =
            results().all(|of| matches!(of.kind, Kind::Text(_) | Kind::Padded { .. } | Kind::Null));
        if !all_texts || !matches!(name, "if" | "ifnull" | "coalesce" | "case") {
            return refused();
        }
        let whether: Vec<bool> = (0..operands.len()).map(is_result).collect();
        return operands
            .into_iter()
            .zip(whether)
            .map(|(of, is_result)| if is_result { text(of, rules) } else { Ok(number(of)) })
            .collect();
    }
    // MySQL's IF of an exact number shows its zeros in some places.
    if rules.mysql && results().any(is_exact) || name == "nullif" && operands.iter().any(is_year) {
        return refused();
    }
    Ok(operands.into_iter().map(number).collect())
}

/// What a function that gives one of `operands` has given: MySQL's text of it is not known.
pub(super) fn given(name: &str, has_padded: bool, result: Typed, rules: &Rules) -> Typed {
    if !has_padded || !rules.mysql || !CHOICES.contains(&name) || !result.kind.is_number() {
        return result;
    }
    let of = Box::new(result.kind.clone());
    Typed::call(Kind::Padded { of, width: None }, vec![result], |values| {
        Ok(values.first().cloned().unwrap_or(Datum::Null))
    })
}

/// Whether one of the operands is such a column.
pub(super) fn is_among(operands: &[Typed]) -> bool {
    operands.iter().any(|of| matches!(of.kind, Kind::Padded { .. }))
}

/// The number.
pub(super) fn number(operand: Typed) -> Typed {
    let Kind::Padded { of, width } = &operand.kind else { return operand };
    if **of == Kind::Year && width.is_some() {
        return Typed::call(Kind::Int { unsigned: true }, vec![operand], |values| {
            Ok(match values.first() {
                Some(Datum::UInt(year)) => Datum::UInt(year % 100),
                _ => Datum::Null,
            })
        });
    }
    let kind = (**of).clone();
    Typed { kind, ..operand }
}

/// The text, with its zeros.
fn text(operand: Typed, rules: &Rules) -> Result<Typed, Refusal> {
    let Kind::Padded { of, width } = &operand.kind else { return Ok(operand) };
    let Some(width) = *width else {
        return Err(Refusal::new("the text of what is made of a column with ZEROFILL"));
    };
    let (of, width, rules) = ((**of).clone(), usize::from(width), *rules);
    Ok(Typed::call(Kind::Text(Collating::number()), vec![operand], move |values| {
        let text = match values.first() {
            Some(Datum::UInt(year)) if of == Kind::Year => Some(format!("{:02}", year % 100)),
            Some(value) => floating::stored_text(value, &of, &rules)?,
            None => None,
        };
        Ok(text.map_or(Datum::Null, |text| Datum::Text(format!("{text:0>width$}"))))
    }))
}

#[cfg(test)]
mod tests {
    use super::super::node::{Node, Width};
    use super::*;

    fn column() -> Typed {
        let of = Box::new(Kind::Int { unsigned: true });
        Typed { node: Node::Input(0, Width::Long), kind: Kind::Padded { of, width: Some(6) } }
    }

    fn taken(name: &str, mysql: bool) -> Result<Option<String>, Refusal> {
        let operands = resolved(name, vec![column(), column(), column()], &Rules::new(mysql))?;
        let value = operands[1].value(&[Datum::UInt(42)])?;
        value.text(&operands[1].kind)
    }

    #[test]
    fn texts_have_zeros_and_numbers_have_none() {
        assert_eq!(taken("concat", false), Ok(Some("000042".to_string())));
        assert_eq!(taken("substr", false), Ok(Some("42".to_string())));
        assert_eq!(taken("+", true), Ok(Some("42".to_string())));
        assert_eq!(taken("coalesce", true), Ok(Some("42".to_string())));
        assert!(taken("soundex", true).is_err());
    }

    #[test]
    fn the_text_of_a_result_of_mysql_is_refused() {
        let result = given("coalesce", true, number(column()), &Rules::new(true));
        assert!(resolved("concat", vec![result.clone()], &Rules::new(true)).is_err());
        assert!(resolved("+", vec![result], &Rules::new(true)).is_ok());
        let result = given("coalesce", true, number(column()), &Rules::new(false));
        assert_eq!(result.kind, Kind::Int { unsigned: true });
    }
}
