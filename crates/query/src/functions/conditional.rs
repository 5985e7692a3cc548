//! `if(condition, then, else)`, as a CASE.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, internal_err, plan_err};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::type_coercion::binary::type_union_coercion;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility, when,
};

/// The function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct If {
    signature: Signature,
}

impl Default for If {
    fn default() -> Self {
        If { signature: Signature::user_defined(Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for If {
    fn name(&self) -> &str {
        "if"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        Ok(arguments.get(1).cloned().unwrap_or(DataType::Null))
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        let [_, yes, no] = arguments else { return plan_err!("if takes three arguments") };
        let Some(result) = type_union_coercion(yes, no) else {
            return plan_err!("if cannot give either {yes} or {no}");
        };
        Ok(vec![DataType::Boolean, result.clone(), result])
    }

    fn short_circuits(&self) -> bool {
        true
    }

    fn simplify(&self, arguments: Vec<Expr>, _: &SimplifyContext) -> Result<ExprSimplifyResult> {
        match <[Expr; 3]>::try_from(arguments) {
            Ok([condition, yes, no]) => {
                Ok(ExprSimplifyResult::Simplified(when(condition, yes).otherwise(no)?))
            }
            Err(arguments) => Ok(ExprSimplifyResult::Original(arguments)),
        }
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        internal_err!("if is planned as a CASE")
    }
}
