//! `hex(x)`: a number in base 16 (negative ones as 64-bit two's complement), or the bytes of a string, two digits each.
//!
//! Text is UTF-8 here, so for columns in other character sets the digits differ from the server's, which prints the
//! stored bytes.

use std::fmt::Write as _;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringViewArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type, UInt64Type};
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};

use crate::relation::vector;

/// The function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Hex {
    signature: Signature,
}

impl Default for Hex {
    fn default() -> Self {
        Hex { signature: Signature::user_defined(Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for Hex {
    fn name(&self) -> &str {
        "hex"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8View)
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        let [argument] = arguments else { return plan_err!("hex takes one argument") };
        Ok(vec![match argument {
            argument if argument.is_signed_integer() => DataType::Int64,
            argument if argument.is_unsigned_integer() || *argument == DataType::Boolean => DataType::UInt64,
            vectors if vector::is_vector(vectors) => vectors.clone(),
            argument if argument.is_binary() => DataType::BinaryView,
            argument if argument.is_numeric() => DataType::Int64,
            _ => DataType::Utf8View,
        }])
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&arguments.args)?;
        let digits: StringViewArray = match arrays[0].data_type() {
            DataType::Int64 => {
                arrays[0].as_primitive::<Int64Type>().iter().map(|n| n.map(|n| format!("{n:X}"))).collect()
            }
            DataType::UInt64 => {
                arrays[0].as_primitive::<UInt64Type>().iter().map(|n| n.map(|n| format!("{n:X}"))).collect()
            }
            _ => {
                let bytes = match vector::stored(&arrays[0]) {
                    Some(stored) => Arc::new(stored) as ArrayRef,
                    None => cast(&arrays[0], &DataType::BinaryView)?,
                };
                bytes.as_binary_view().iter().map(|bytes| bytes.map(digits)).collect()
            }
        };
        let all_scalar = arguments.args.iter().all(|argument| matches!(argument, ColumnarValue::Scalar(_)));
        let array: ArrayRef = Arc::new(digits);
        if all_scalar && array.len() == 1 {
            return Ok(ColumnarValue::Scalar(datafusion::common::ScalarValue::try_from_array(&array, 0)?));
        }
        Ok(ColumnarValue::Array(array))
    }
}

fn digits(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut digits, byte| {
        // Writing into a string cannot fail.
        let _ = write!(digits, "{byte:02X}");
        digits
    })
}
