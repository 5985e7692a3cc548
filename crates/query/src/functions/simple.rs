//! Functions that compute an array from arrays.

use std::hash::{Hash, Hasher};

use crate::binding::StatementRules;
use crate::expression::noting;

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// A function of any arguments, known by its name.
#[derive(Debug)]
pub(super) struct Simple {
    name: &'static str,
    signature: Signature,
    returns: fn(&[DataType]) -> Result<DataType>,
    compute: fn(&[ArrayRef], &[FieldRef]) -> Result<ArrayRef>,
}

impl Simple {
    /// `returns` gives the type of what `compute` gives for arguments of some types.
    pub(super) fn function(
        name: &'static str,
        returns: fn(&[DataType]) -> Result<DataType>,
        compute: fn(&[ArrayRef], &[FieldRef]) -> Result<ArrayRef>,
    ) -> ScalarUDF {
        let signature = Signature::variadic_any(Volatility::Immutable);
        ScalarUDF::from(Simple { name, signature, returns, compute })
    }
}

impl PartialEq for Simple {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Simple {}

impl Hash for Simple {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for Simple {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        (self.returns)(arguments)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_scalar = arguments.args.iter().all(|argument| matches!(argument, ColumnarValue::Scalar(_)));
        let arrays = ColumnarValue::values_to_arrays(&arguments.args)?;
        let (result, notes) = noting(true, || (self.compute)(&arrays, &arguments.arg_fields));
        if notes.count > 0
            && let Some(statement) = arguments.config_options.extensions.get::<StatementRules>()
        {
            let constant = is_scalar.then(|| format!("{} {:?}", self.name, arguments.args));
            statement.note(notes, constant.as_deref());
        }
        let result = result?;
        Ok(match is_scalar {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?),
            false => ColumnarValue::Array(result),
        })
    }
}
