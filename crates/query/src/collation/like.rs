//! `text_like(text, pattern, escape, 'collation')`: LIKE, character by character.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, StringViewArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, lit,
};
use tanada_collation::{Collation, Pattern};

use super::sort_key::collation;

const NAME: &str = "text_like";

static FUNCTION: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(ScalarUDF::from(TextLike(Signature::any(4, Volatility::Immutable)))));

/// The function.
pub(super) fn function() -> ScalarUDF {
    FUNCTION.as_ref().clone()
}

/// Whether `text` is LIKE `pattern` in the collation `name`; `escape` has one character or none.
pub(super) fn call(text: Expr, pattern: Expr, escape: Option<char>, name: &str) -> Expr {
    let escape = escape.map(String::from).unwrap_or_default();
    FUNCTION.call(vec![text, pattern, lit(escape), lit(name)])
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct TextLike(Signature);

impl ScalarUDFImpl for TextLike {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [texts, pattern, ColumnarValue::Scalar(escape), ColumnarValue::Scalar(name)] =
            arguments.args.as_slice()
        else {
            return plan_err!("{NAME} takes a text, a pattern, an escape and the name of a collation");
        };
        let collation = collation(name)?;
        let escape = escape.try_as_str().flatten().and_then(|escape| escape.chars().next());
        let texts = views(&texts.to_array(arguments.number_rows)?)?;
        let matched: BooleanArray = match pattern {
            ColumnarValue::Scalar(pattern) => {
                let Some(pattern) = pattern.try_as_str().flatten() else {
                    return Ok(ColumnarValue::Array(Arc::new(BooleanArray::new_null(texts.len()))));
                };
                let pattern = Pattern::new(collation, pattern, escape);
                let matches = |text: Option<&str>| text.map(|text| pattern.matches(text));
                texts.iter().map(matches).collect()
            }
            ColumnarValue::Array(patterns) => {
                let patterns = views(patterns)?;
                let matches = |pair| matched(pair, escape, collation);
                texts.iter().zip(patterns.iter()).map(matches).collect()
            }
        };
        Ok(ColumnarValue::Array(Arc::new(matched)))
    }
}

fn matched(
    (text, pattern): (Option<&str>, Option<&str>),
    escape: Option<char>,
    collation: &Collation,
) -> Option<bool> {
    Some(Pattern::new(collation, pattern?, escape).matches(text?))
}

fn views(texts: &ArrayRef) -> Result<StringViewArray> {
    Ok(cast(texts, &DataType::Utf8View)?.as_string_view().clone())
}
