//! `length(x)`: bytes, as in MySQL (`char_length` counts characters).

use datafusion::arrow::compute::{cast, kernels::length::length};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};

use crate::relation::vector;

/// The function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Length {
    signature: Signature,
}

impl Default for Length {
    fn default() -> Self {
        Length { signature: Signature::user_defined(Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for Length {
    fn name(&self) -> &str {
        "length"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        let [argument] = arguments else { return plan_err!("length takes one argument") };
        Ok(vec![match argument {
            vectors if vector::is_vector(vectors) => vectors.clone(),
            argument if argument.is_binary() => DataType::BinaryView,
            _ => DataType::Utf8View,
        }])
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&arguments.args)?;
        let lengths = match vector::stored(&arrays[0]) {
            Some(stored) => length(&stored)?,
            None => length(arrays[0].as_ref())?,
        };
        let lengths = cast(&lengths, &DataType::Int64)?;
        match &arguments.args[0] {
            ColumnarValue::Scalar(_) => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&lengths, 0)?)),
            ColumnarValue::Array(_) => Ok(ColumnarValue::Array(lengths)),
        }
    }
}
