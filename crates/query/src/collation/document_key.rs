//! `document_key(document, 'of')`: a byte string that compares as a document of MySQL does.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{ArrayRef, AsArray, BinaryViewBuilder};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, lit,
};

use super::comparing::refused;
use crate::expression::{KeyOf, add_key};

/// Name of the function.
const NAME: &str = "document_key";

const NAMES: [(KeyOf, &str); 3] = [(KeyOf::Value, "value"), (KeyOf::Order, "order"), (KeyOf::Peers, "peers")];

static FUNCTION: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(ScalarUDF::from(DocumentKey(Signature::any(2, Volatility::Immutable)))));

/// The function.
pub(super) fn function() -> ScalarUDF {
    FUNCTION.as_ref().clone()
}

/// The key of `document`.
pub(super) fn key_of(document: Expr, of: KeyOf) -> Expr {
    let name = NAMES.iter().find(|(own, _)| *own == of).map_or("value", |(_, name)| name);
    FUNCTION.call(vec![document, lit(name)])
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct DocumentKey(Signature);

impl ScalarUDFImpl for DocumentKey {
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
        let [document, ColumnarValue::Scalar(name)] = arguments.args.as_slice() else {
            return plan_err!("{NAME} takes a document and what its key is of");
        };
        let name = name.try_as_str().flatten();
        let Some((of, _)) = NAMES.iter().find(|(_, own)| Some(*own) == name) else {
            return plan_err!("{NAME} knows no key of {name:?}");
        };
        match document {
            ColumnarValue::Array(documents) => Ok(ColumnarValue::Array(keys(documents, *of)?)),
            ColumnarValue::Scalar(document) => {
                let keys = keys(&document.to_array()?, *of)?;
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&keys, 0)?))
            }
        }
    }
}

fn keys(documents: &ArrayRef, of: KeyOf) -> Result<ArrayRef> {
    let documents = cast(documents, &DataType::Utf8View)?;
    let mut keys = BinaryViewBuilder::new();
    let mut key = Vec::new();
    for document in documents.as_string_view() {
        match document {
            None => keys.append_null(),
            Some(document) => {
                key.clear();
                add_key(document, of, &mut key).map_err(refused)?;
                keys.append_value(&key);
            }
        }
    }
    Ok(Arc::new(keys.finish()))
}
