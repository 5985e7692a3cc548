//! `+`, `-` and `*` of integers as in MySQL: computed in 64 bits, whatever the columns' width, and an error where that
//! is not enough. DataFusion computes in the width of the wider operand and wraps around.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray};
use datafusion::arrow::compute::{cast as cast_array, try_binary};
use datafusion::arrow::datatypes::{ArrowPrimitiveType, DataType, Decimal128Type, Int64Type, UInt64Type};
use datafusion::arrow::error::ArrowError;
use datafusion::common::{DFSchema, Result, ScalarValue, exec_datafusion_err, plan_err};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::sql::sqlparser::ast::BinaryOperator;

/// Wide enough for any integer of 64 bits, and what the operands are brought to if one of them is unsigned.
const WIDE: DataType = DataType::Decimal128(20, 0);

/// For `+`, `-` and `*` between integers.
#[derive(Debug)]
pub struct IntegerPlanner;

impl ExprPlanner for IntegerPlanner {
    fn plan_binary_op(&self, raw: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        let operation = match raw.op {
            BinaryOperator::Plus => Operation::Add,
            BinaryOperator::Minus => Operation::Subtract,
            BinaryOperator::Multiply => Operation::Multiply,
            _ => return Ok(PlannerResult::Original(raw)),
        };
        let (Ok(left), Ok(right)) = (raw.left.get_type(schema), raw.right.get_type(schema)) else {
            return Ok(PlannerResult::Original(raw));
        };
        if !left.is_integer() || !right.is_integer() {
            return Ok(PlannerResult::Original(raw));
        }
        // The numbers that window functions give are unsigned only to DataFusion.
        let is_unsigned = |of: &DataType, operand: &Expr| {
            of.is_unsigned_integer() && !matches!(operand, Expr::WindowFunction(_))
        };
        let unsigned = is_unsigned(&left, &raw.left) || is_unsigned(&right, &raw.right);
        let function = ScalarUDF::from(IntegerArithmetic::new(operation, unsigned));
        Ok(PlannerResult::Planned(function.call(vec![raw.left, raw.right])))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Operation {
    Add,
    Subtract,
    Multiply,
}

impl Operation {
    fn of(self, left: i128, right: i128) -> Option<i128> {
        match self {
            Operation::Add => left.checked_add(right),
            Operation::Subtract => left.checked_sub(right),
            Operation::Multiply => left.checked_mul(right),
        }
    }

    fn of_signed(self, left: i64, right: i64) -> Option<i64> {
        match self {
            Operation::Add => left.checked_add(right),
            Operation::Subtract => left.checked_sub(right),
            Operation::Multiply => left.checked_mul(right),
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Operation::Add => "+",
            Operation::Subtract => "-",
            Operation::Multiply => "*",
        })
    }
}

/// One operation; unsigned if one of its operands is.
#[derive(Debug, PartialEq, Eq, Hash)]
struct IntegerArithmetic {
    operation: Operation,
    unsigned: bool,
    signature: Signature,
}

impl IntegerArithmetic {
    fn new(operation: Operation, unsigned: bool) -> IntegerArithmetic {
        IntegerArithmetic { operation, unsigned, signature: Signature::user_defined(Volatility::Immutable) }
    }

    fn compute(&self, left: &ArrayRef, right: &ArrayRef) -> Result<ArrayRef> {
        let operation = self.operation;
        if self.unsigned {
            let (left, right) =
                (left.as_primitive::<Decimal128Type>(), right.as_primitive::<Decimal128Type>());
            let compute = |l: i128, r: i128| {
                let result = operation.of(l, r).and_then(|result| u64::try_from(result).ok());
                result.ok_or_else(|| out_of_range("BIGINT UNSIGNED", l, operation, r))
            };
            return computed::<Decimal128Type, UInt64Type>(left, right, compute);
        }
        let compute =
            |l: i64, r: i64| operation.of_signed(l, r).ok_or_else(|| out_of_range("BIGINT", l, operation, r));
        computed::<Int64Type, Int64Type>(left.as_primitive(), right.as_primitive(), compute)
    }
}

fn computed<I: ArrowPrimitiveType, O: ArrowPrimitiveType>(
    left: &PrimitiveArray<I>,
    right: &PrimitiveArray<I>,
    compute: impl Fn(I::Native, I::Native) -> Result<O::Native, ArrowError>,
) -> Result<ArrayRef> {
    Ok(Arc::new(try_binary::<_, _, _, O>(left, right, compute)?))
}

fn out_of_range(
    name: &str,
    left: impl fmt::Display,
    operation: Operation,
    right: impl fmt::Display,
) -> ArrowError {
    let message = format!(
        "{left} {operation} {right} is out of the range of {name}; cast one of them to DECIMAL(38, 0)"
    );
    ArrowError::ExternalError(Box::new(exec_datafusion_err!("{message}")))
}

impl ScalarUDFImpl for IntegerArithmetic {
    fn name(&self) -> &str {
        match (self.operation, self.unsigned) {
            (Operation::Add, false) => "integer_add",
            (Operation::Subtract, false) => "integer_subtract",
            (Operation::Multiply, false) => "integer_multiply",
            (Operation::Add, true) => "unsigned_add",
            (Operation::Subtract, true) => "unsigned_subtract",
            (Operation::Multiply, true) => "unsigned_multiply",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(if self.unsigned { DataType::UInt64 } else { DataType::Int64 })
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        let [_, _] = arguments else { return plan_err!("{} takes two arguments", self.name()) };
        Ok(vec![if self.unsigned { WIDE } else { DataType::Int64 }; 2])
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let wanted = if self.unsigned { WIDE } else { DataType::Int64 };
        let scalar = arguments.args.iter().all(|argument| matches!(argument, ColumnarValue::Scalar(_)));
        let arrays = ColumnarValue::values_to_arrays(&arguments.args)?;
        let operand = |no: usize| match arrays.get(no) {
            Some(array) if *array.data_type() == wanted => Ok(Arc::clone(array)),
            Some(array) => Ok(cast_array(array, &wanted)?),
            None => plan_err!("{} takes two arguments", self.name()),
        };
        let result = self.compute(&operand(0)?, &operand(1)?)?;
        Ok(match scalar {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?),
            false => ColumnarValue::Array(result),
        })
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Decimal128Array, Int64Array, UInt64Array};

    use super::*;

    fn signed(operation: Operation, left: i64, right: i64) -> Result<i64> {
        let array = |value: i64| Arc::new(Int64Array::from(vec![value])) as ArrayRef;
        let result = IntegerArithmetic::new(operation, false).compute(&array(left), &array(right))?;
        Ok(result.as_primitive::<Int64Type>().value(0))
    }

    fn unsigned(operation: Operation, left: i128, right: i128) -> Result<u64> {
        let array = |value: i128| {
            let array = Decimal128Array::from(vec![value]).with_precision_and_scale(20, 0).unwrap();
            Arc::new(array) as ArrayRef
        };
        let result = IntegerArithmetic::new(operation, true).compute(&array(left), &array(right))?;
        Ok(result.as_any().downcast_ref::<UInt64Array>().unwrap().value(0))
    }

    #[test]
    fn integer_overflow_is_an_error() {
        assert_eq!(signed(Operation::Multiply, 3_000_000_000, -3).unwrap(), -9_000_000_000);
        let error = signed(Operation::Add, i64::MAX, 1).unwrap_err().to_string();
        assert!(error.contains("9223372036854775807 + 1 is out of the range of BIGINT"), "{error}");
        assert!(signed(Operation::Subtract, i64::MIN, 1).is_err());
        assert!(signed(Operation::Multiply, i64::MAX, 2).is_err());
        assert_eq!(unsigned(Operation::Add, u64::MAX.into(), -1).unwrap(), u64::MAX - 1);
        assert!(unsigned(Operation::Subtract, 1, 2).is_err());
        assert!(unsigned(Operation::Multiply, u64::MAX.into(), 2).is_err());
    }
}
