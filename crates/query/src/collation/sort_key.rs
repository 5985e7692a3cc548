//! `sort_key(text, 'collation')`: a byte string that compares as the text does.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BinaryViewArray, make_view};
use datafusion::arrow::buffer::Buffer;
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

/// Bytes of a value that a view holds itself.
const INLINE_BYTES: usize = 12;
/// Bytes of keys after which another block begins.
const BLOCK_BYTES: usize = 1 << 29;
/// Most bytes of a key: views count with 31 bits.
const MAX_KEY_BYTES: usize = 1 << 30;

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
        Expr::Literal(value, _) if value.is_null() => lit(ScalarValue::BinaryView(None)),
        Expr::Literal(value, _) => match value.try_as_str().flatten() {
            Some(text) if collation.holds(text) => {
                let mut key = Vec::new();
                collation.sort_key(text, &mut key);
                let metadata = BTreeMap::from([(TEXT.to_string(), text.to_string())]);
                Expr::Literal(ScalarValue::BinaryView(Some(key)), Some(FieldMetadata::new(metadata)))
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
        Expr::Literal(ScalarValue::BinaryView(Some(_)), Some(metadata)) => {
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
        Ok(DataType::BinaryView)
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
    // The lowest 32 bits of a view are the length.
    let lengths = texts.views().iter().map(|view| *view as u32 as usize).sum::<usize>();
    let mut bytes: Vec<u8> = Vec::with_capacity((lengths + texts.len()).min(BLOCK_BYTES));
    let mut blocks: Vec<Buffer> = Vec::new();
    let mut views: Vec<u128> = Vec::with_capacity(texts.len());
    for row in 0..texts.len() {
        let start = bytes.len();
        if texts.is_valid(row) {
            collation.sort_key(texts.value(row), &mut bytes);
        }
        let key = &bytes[start..];
        if key.len() > MAX_KEY_BYTES {
            return exec_err!("a text of more than 1 GiB is compared");
        }
        views.push(make_view(key, blocks.len() as u32, start as u32));
        if key.len() <= INLINE_BYTES {
            bytes.truncate(start);
        } else if bytes.len() >= BLOCK_BYTES {
            blocks.push(Buffer::from_vec(std::mem::take(&mut bytes)));
        }
    }
    if !bytes.is_empty() {
        blocks.push(Buffer::from_vec(bytes));
    }
    Ok(Arc::new(BinaryViewArray::try_new(views.into(), blocks, texts.nulls().cloned())?))
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
        let keys = keys.as_binary_view();
        assert_eq!(keys.value(0), keys.value(2));
        assert!(keys.is_null(1));
        assert!(keys.value(0) < keys.value(3));
    }

    #[test]
    fn long_keys_and_short_ones_are_those_of_their_texts() {
        let texts = ["a", "a text of more bytes than a view holds", "", "Zürich und Łódź", "twelve bytes"];
        let array: ArrayRef = Arc::new(StringArray::from(texts.to_vec()));
        let collation = collation(&ScalarValue::from("utf8mb4_general_ci")).unwrap();
        let keys = keys(&array, collation).unwrap();
        for (text, key) in texts.iter().zip(keys.as_binary_view()) {
            let mut expected = Vec::new();
            collation.sort_key(text, &mut expected);
            assert_eq!(key, Some(expected.as_slice()), "{text}");
        }
    }

    #[test]
    fn keys_of_literals_keep_their_text() {
        let collation = collation(&ScalarValue::from("utf8mb4_general_ci")).unwrap();
        let key = key_of(lit("Zürich"), collation, "utf8mb4_general_ci");
        assert_eq!(keyed_text(&key), Some("Zürich"));
    }
}
