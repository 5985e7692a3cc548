//! ENUM and SET in ORDER BY: `choice_number(value, "enum('a','b')")`, the number that the column stores.
//!
//! An ENUM's value is the position of its element, from 1 on, 0 for the empty one; a SET's has a bit for each element.

use std::cmp::Ordering;
use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{AsArray, UInt64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DataFusionError, Result, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, lit,
};

use super::comparing::{ChoiceType, refused};
use crate::expression::{Collating, Refusal};

const NAME: &str = "choice_number";

static FUNCTION: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(ScalarUDF::from(ChoiceNumber(Signature::any(2, Volatility::Immutable)))));

/// The function.
pub(super) fn function() -> ScalarUDF {
    FUNCTION.as_ref().clone()
}

/// The number of a value of the type `definition` as bytes that are in its order.
pub(super) fn bytes_of_number(value: Expr, definition: &str) -> Expr {
    let digits = datafusion::logical_expr::cast(number_of(value, definition), DataType::Utf8);
    let padded = datafusion::functions::unicode::expr_fn::lpad(vec![digits, lit(MAX_DIGITS), lit("0")]);
    datafusion::logical_expr::cast(padded, DataType::Binary)
}

/// Digits of a number of 64 bits.
const MAX_DIGITS: i64 = 20;

/// The number of a value of the type `definition`.
pub(super) fn number_of(value: Expr, definition: &str) -> Expr {
    FUNCTION.call(vec![value, lit(definition)])
}

/// MIN and MAX go by the texts. Where their collation is not known, refuses those that collations order in other ways
/// than bytes.
pub(super) fn check_order_of_texts(of: &ChoiceType) -> Result<()> {
    let elements = elements(&of.definition);
    let unknown = Collating::literal(None);
    for (at, left) in elements.iter().enumerate() {
        for right in &elements[at + 1..] {
            if unknown.compare(left, right).ok() != Some(left.cmp(right)) {
                let why = "MIN or MAX of an ENUM or SET whose texts compare by collation";
                return Err(refused(Refusal::new(why)));
            }
        }
    }
    Ok(())
}

/// Most elements of a SET whose texts are listed.
const MAX_SET_ELEMENTS: usize = 10;

/// The texts of a type for which `holds`.
///
/// # Errors
/// If it is not known of one, or there are too many.
pub(super) fn texts(of: &ChoiceType, holds: impl Fn(&str) -> Result<bool>) -> Result<Vec<String>> {
    let elements = elements(&of.definition);
    let mut all = vec![String::new()];
    if of.definition.starts_with("set(") {
        if elements.len() > MAX_SET_ELEMENTS {
            let why = format!("a SET of more than {MAX_SET_ELEMENTS} elements is compared");
            return Err(refused(Refusal::new(why)));
        }
        for subset in 1..1usize << elements.len() {
            let chosen = elements.iter().enumerate().filter(|(at, _)| subset >> at & 1 == 1);
            all.push(tanada_innodb::joined_elements(chosen.map(|(_, element)| element.as_str())));
        }
    } else {
        all.extend(elements);
    }
    let mut found = Vec::new();
    for text in all {
        if holds(&text)? {
            found.push(text);
        }
    }
    Ok(found)
}

/// Whether a text of an ENUM or SET equals another.
pub(super) fn equals(of: &ChoiceType, element: &str, text: &str) -> Result<bool> {
    compared(of).equals(element, text).map_err(|_| undecided(element, text))
}

/// How a text of an ENUM or SET compares with another.
pub(super) fn compare(of: &ChoiceType, element: &str, text: &str) -> Result<Ordering> {
    compared(of).compare(element, text).map_err(|_| undecided(element, text))
}

/// Whether a text of an ENUM or SET is LIKE a pattern.
pub(super) fn like(of: &ChoiceType, element: &str, pattern: &str, escape: Option<char>) -> Result<bool> {
    compared(of).like(element, pattern, escape).map_err(|_| undecided(element, pattern))
}

/// The column's collation, or any if it is not known.
fn compared(of: &ChoiceType) -> Collating {
    of.as_text().cloned().unwrap_or_else(|| Collating::literal(None))
}

fn undecided(element: &str, text: &str) -> DataFusionError {
    let why = format!("'{element}' of an ENUM or SET and '{text}' compare differently by collation");
    refused(Refusal::new(why))
}

/// The elements of `enum('a','it''s')`.
fn elements(definition: &str) -> Vec<String> {
    let quoted = definition.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')')).unwrap_or("");
    let mut elements = Vec::new();
    let mut element: Option<String> = None;
    let mut letters = quoted.chars().peekable();
    while let Some(letter) = letters.next() {
        match (&mut element, letter) {
            (None, '\'') => element = Some(String::new()),
            (None, _) => {}
            (Some(own), '\'') if letters.peek() == Some(&'\'') => {
                letters.next();
                own.push('\'');
            }
            (Some(_), '\'') => elements.extend(element.take()),
            (Some(own), letter) => own.push(letter),
        }
    }
    elements
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ChoiceNumber(Signature);

impl ScalarUDFImpl for ChoiceNumber {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::UInt64)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [values, ColumnarValue::Scalar(definition)] = arguments.args.as_slice() else {
            return plan_err!("{NAME} takes a value and its type");
        };
        let definition = definition.try_as_str().flatten().unwrap_or_default();
        let elements = elements(definition);
        let is_set = definition.starts_with("set(");
        let position = |text: &str| elements.iter().position(|own| own == text);
        let number = |text: &str| match is_set {
            true => text.split(',').filter_map(position).fold(0, |bits, at| bits | 1u64 << (at % 64)),
            false => position(text).map_or(0, |at| at as u64 + 1),
        };
        let texts = cast(&values.to_array(arguments.number_rows)?, &DataType::Utf8View)?;
        let numbers = texts.as_string_view().iter().map(|text| text.map(number));
        Ok(ColumnarValue::Array(Arc::new(numbers.collect::<UInt64Array>())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_read_from_a_type() {
        assert_eq!(elements("enum('b','it''s','')"), ["b", "it's", ""]);
        assert_eq!(elements("set('x')"), ["x"]);
    }

    #[test]
    fn minima_of_enums_are_refused_where_collations_differ() {
        let of = |definition: &str| ChoiceType {
            definition: definition.to_string(),
            collating: Collating::literal(None),
            has_empty_element: false,
        };
        assert!(check_order_of_texts(&of("enum('small','medium','large')")).is_ok());
        assert!(check_order_of_texts(&of("enum('a','B')")).is_err());
    }
}
