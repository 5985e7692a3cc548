//! Division as in MySQL: of integers it gives a decimal (7 / 2 is 3.5000; `DIV` gives 3), and by zero NULL.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::functions::expr_fn::nullif;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{Expr, ExprSchemable, Operator, binary_expr, cast, lit};
use datafusion::sql::sqlparser::ast::BinaryOperator;

use super::quotient;

/// Decimal digits of any 64-bit integer.
const INTEGER_DIGITS: u8 = 20;

/// For `/`, `%`, `MOD` and `DIV`.
#[derive(Debug)]
pub struct DivisionPlanner;

impl ExprPlanner for DivisionPlanner {
    fn plan_binary_op(&self, raw: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        let (Ok(left), Ok(right)) = (raw.left.get_type(schema), raw.right.get_type(schema)) else {
            return Ok(PlannerResult::Original(raw));
        };
        let numbers =
            (left.is_numeric() || left == DataType::Null) && (right.is_numeric() || right == DataType::Null);
        let integers = left.is_integer() && right.is_integer();
        let unsigned = left.is_unsigned_integer() || right.is_unsigned_integer();
        let decimal = |expression: Expr| cast(expression, DataType::Decimal128(INTEGER_DIGITS, 0));
        let divisor = not_zero(raw.right.clone());
        Ok(match raw.op {
            _ if !numbers => PlannerResult::Original(raw),
            BinaryOperator::Divide if is_exact(&left) && is_exact(&right) => {
                let [dividend, divisor] = [(raw.left, &left), (raw.right, &right)]
                    .map(|(operand, of)| if of.is_integer() { decimal(operand) } else { operand });
                PlannerResult::Planned(quotient::function().call(vec![dividend, divisor]))
            }
            BinaryOperator::Divide => {
                PlannerResult::Planned(binary_expr(raw.left, Operator::Divide, divisor))
            }
            BinaryOperator::Modulo => {
                PlannerResult::Planned(binary_expr(raw.left, Operator::Modulo, divisor))
            }
            BinaryOperator::MyIntegerDivide if integers && !unsigned => {
                PlannerResult::Planned(binary_expr(raw.left, Operator::Divide, divisor))
            }
            BinaryOperator::MyIntegerDivide => {
                // Without the remainder the quotient is whole; one that is rounded might be the next number.
                let remainder = binary_expr(raw.left.clone(), Operator::Modulo, divisor.clone());
                let whole = binary_expr(raw.left, Operator::Minus, remainder);
                PlannerResult::Planned(cast(binary_expr(whole, Operator::Divide, divisor), DataType::Int64))
            }
            _ => PlannerResult::Original(raw),
        })
    }
}

/// Whether a value is a decimal or becomes one without loss.
fn is_exact(data_type: &DataType) -> bool {
    data_type.is_integer() || matches!(data_type, DataType::Decimal128(_, 0..))
}

/// The divisor, NULL instead of zero.
fn not_zero(divisor: Expr) -> Expr {
    match &divisor {
        Expr::Literal(value, _) if !is_zero(value) => divisor,
        _ => nullif(divisor, lit(0)),
    }
}

fn is_zero(value: &ScalarValue) -> bool {
    ScalarValue::new_zero(&value.data_type()).is_ok_and(|zero| zero == *value)
}
