//! What an aggregate gives where there are no rows.

use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{Aggregate, Expr};

use super::rule::unsupported;

/// The values of the aggregates of `aggregate` over no rows; `None` for those that are NULL then.
pub(super) fn of_no_rows(aggregate: &Aggregate) -> Result<Vec<Option<ScalarValue>>> {
    let fields = aggregate.schema.fields().iter().skip(aggregate.group_expr.len());
    aggregate
        .aggr_expr
        .iter()
        .zip(fields)
        .map(|(expression, field)| {
            let Expr::AggregateFunction(function) = expression.clone().unalias() else {
                return Err(unsupported("this aggregate in a subquery is not run"));
            };
            let value = function.func.default_value(field.data_type())?;
            // DataFusion knows no value of its own for these.
            let value = match function.func.name() {
                "bit_or" | "bit_xor" if value.is_null() => ScalarValue::new_zero(field.data_type())?,
                "bit_and" if value.is_null() => {
                    ScalarValue::UInt64(Some(u64::MAX)).cast_to(field.data_type())?
                }
                _ => value,
            };
            Ok((!value.is_null()).then_some(value))
        })
        .collect()
}
