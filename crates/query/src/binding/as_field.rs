//! Values under another field: the engine compares metadata where the parts of a recursive query meet.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// A function of one value, which it gives as a value of the field.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AsField {
    field: FieldRef,
    signature: Signature,
}

impl AsField {
    /// `expression` under `field`; it may be NULL.
    pub(super) fn of(expression: Expr, field: &FieldRef) -> Expr {
        let field = Arc::new(field.as_ref().clone().with_nullable(true));
        let function = AsField { field, signature: Signature::any(1, Volatility::Immutable) };
        ScalarUDF::from(function).call(vec![expression])
    }
}

impl Hash for AsField {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.field.data_type().hash(state);
    }
}

impl ScalarUDFImpl for AsField {
    fn name(&self) -> &str {
        "as_field"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.field.data_type().clone())
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs) -> Result<FieldRef> {
        Ok(Arc::clone(&self.field))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let data_type = self.field.data_type();
        match arguments.args.as_slice() {
            [ColumnarValue::Array(array)] => Ok(ColumnarValue::Array(cast(array, data_type)?)),
            [ColumnarValue::Scalar(value)] => {
                let array = cast(&value.to_array()?, data_type)?;
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?))
            }
            _ => plan_err!("a field is of one value"),
        }
    }
}
