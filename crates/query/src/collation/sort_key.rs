//! `sort_key(text, 'collation')`: a byte string that compares as the text does.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BinaryArray};
use datafusion::arrow::buffer::{Buffer, OffsetBuffer};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::metadata::FieldMetadata;
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, lit,
};
use tanada_collation::Collation;

use crate::expression::Collating;

/// Name of the function.
pub(crate) const NAME: &str = "sort_key";

/// Metadata key of a literal that is the key of a text: that text.
const TEXT: &str = "tanada.text";

static FUNCTION: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(ScalarUDF::from(SortKey(Signature::any(2, Volatility::Immutable)))));

/// The function.
pub(super) fn function() -> ScalarUDF {
    FUNCTION.as_ref().clone()
}

/// The key of `text`; that of a literal is a literal.
pub(super) fn key_of(text: Expr, collation: &'static Collation, name: &str) -> Expr {
    match &text {
        Expr::Literal(value, _) if value.is_null() => lit(ScalarValue::Binary(None)),
        Expr::Literal(value, _) => match value.try_as_str().flatten() {
            Some(text) if collation.holds(text) => {
                let mut key = Vec::new();
                collation.sort_key(text, &mut key);
                let metadata = BTreeMap::from([(TEXT.to_string(), text.to_string())]);
                Expr::Literal(ScalarValue::Binary(Some(key)), Some(FieldMetadata::new(metadata)))
            }
            _ => FUNCTION.call(vec![text, lit(name)]),
        },
        _ => FUNCTION.call(vec![text, lit(name)]),
    }
}

/// The column and the collation of `sort_key(column, 'collation')`.
pub(crate) fn keyed_column(expression: &Expr) -> Option<(&datafusion::common::Column, &str)> {
    let Expr::ScalarFunction(function) = expression else { return None };
    match function.args.as_slice() {
        [Expr::Column(column), Expr::Literal(name, _)] if function.name() == NAME => {
            Some((column, name.try_as_str().flatten()?))
        }
        _ => None,
    }
}

/// The text that a literal is the key of.
pub(crate) fn keyed_text(expression: &Expr) -> Option<&str> {
    match expression {
        Expr::Literal(ScalarValue::Binary(Some(_)), Some(metadata)) => {
            metadata.inner().get(TEXT).map(String::as_str)
        }
        _ => None,
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct SortKey(Signature);

impl ScalarUDFImpl for SortKey {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Binary)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [text, ColumnarValue::Scalar(name)] = arguments.args.as_slice() else {
            return plan_err!("{NAME} takes a text and the name of a collation");
        };
        let collation = collation(name)?;
        match text {
            ColumnarValue::Array(texts) => Ok(ColumnarValue::Array(keys(texts, collation)?)),
            ColumnarValue::Scalar(text) => {
                let keys = keys(&text.to_array()?, collation)?;
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&keys, 0)?))
            }
        }
    }
}

/// The collation that a scalar names.
pub(super) fn collation(name: &ScalarValue) -> Result<&'static Collation> {
    let name = name.try_as_str().flatten().unwrap_or_default();
    match Collating::named(name, 0).known() {
        Ok(Some(collation)) => Ok(collation),
        _ => plan_err!("the collation {name} is not known"),
    }
}

fn keys(texts: &ArrayRef, collation: &Collation) -> Result<ArrayRef> {
    let texts = match texts.data_type() {
        DataType::Utf8View => Arc::clone(texts),
        _ => cast(texts, &DataType::Utf8View)?,
    };
    let texts = texts.as_string_view();
    let mut bytes: Vec<u8> = Vec::with_capacity(texts.len() * 16);
    let mut ends: Vec<i32> = Vec::with_capacity(texts.len() + 1);
    ends.push(0);
    for row in 0..texts.len() {
        if texts.is_valid(row) {
            collation.sort_key(texts.value(row), &mut bytes);
        }
        match i32::try_from(bytes.len()) {
            Ok(end) => ends.push(end),
            Err(_) => return exec_err!("texts of more than 2 GiB are compared at once"),
        }
    }
    let nulls = texts.nulls().cloned();
    let array = BinaryArray::try_new(OffsetBuffer::new(ends.into()), Buffer::from_vec(bytes), nulls)?;
    Ok(Arc::new(array))
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::StringArray;

    use super::*;

    #[test]
    fn keys_of_equal_texts_are_equal() {
        let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("a "), None, Some("A"), Some("b")]));
        let collation = collation(&ScalarValue::from("utf8mb4_general_ci")).unwrap();
        let keys = keys(&texts, collation).unwrap();
        let keys = keys.as_binary::<i32>();
        assert_eq!(keys.value(0), keys.value(2));
        assert!(keys.is_null(1));
        assert!(keys.value(0) < keys.value(3));
    }

    #[test]
    fn keys_of_literals_keep_their_text() {
        let collation = collation(&ScalarValue::from("utf8mb4_general_ci")).unwrap();
        let key = key_of(lit("Zürich"), collation, "utf8mb4_general_ci");
        assert_eq!(keyed_text(&key), Some("Zürich"));
    }
}
