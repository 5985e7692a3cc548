//! `SUM` and `AVG` of integers as in MySQL: exact decimals. DataFusion's sum wraps around at 64 bits, and its average
//! is a double.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray};
use datafusion::arrow::datatypes::{DataType, FieldRef, Float64Type};
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::functions_aggregate::average::avg_udaf;
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator, ReversedUDAF, Signature, Volatility,
};

use crate::functions::numbers;

/// Wide enough for any integer of 64 bits.
const WIDE: DataType = DataType::Decimal128(20, 0);

/// `sum` and `avg`, to register instead of DataFusion's.
pub fn aggregates() -> Vec<Arc<AggregateUDF>> {
    [sum_udaf(), avg_udaf()].map(|inner| Arc::new(AggregateUDF::from(Exact::new(inner)))).into()
}

/// What an argument is brought to. It is asked for what it has answered, too, so that must stay as it is.
fn exact(argument: &DataType) -> DataType {
    match argument {
        integer if integer.is_integer() => WIDE,
        // Sums of so many digits may have more than 38.
        DataType::Decimal128(precision @ 29.., scale) => DataType::Decimal256(*precision, *scale),
        DataType::Float16 | DataType::Float32 | DataType::Null => DataType::Float64,
        text if text.is_string() => DataType::Float64,
        // What these become before they are coerced, see `numbers`.
        DataType::Boolean | DataType::Date32 => WIDE,
        DataType::Timestamp(unit, _) | DataType::Duration(unit) => {
            DataType::Decimal128(20, numbers::unit_digits(*unit).cast_signed())
        }
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => DataType::Float64,
        other => other.clone(),
    }
}

/// DataFusion's aggregate over arguments of other types.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Exact {
    inner: Arc<AggregateUDF>,
    signature: Signature,
}

impl Exact {
    fn new(inner: Arc<AggregateUDF>) -> Exact {
        Exact { inner, signature: Signature::user_defined(Volatility::Immutable) }
    }
}

impl AggregateUDFImpl for Exact {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        let [argument] = arguments else { return plan_err!("{} takes one argument", self.name()) };
        Ok(vec![exact(argument)])
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        self.inner.return_type(arguments)
    }

    fn accumulator(&self, arguments: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let is_double = *arguments.return_field.data_type() == DataType::Float64;
        match is_double && !arguments.is_distinct && self.name() == "sum" {
            true => Ok(Box::new(DoubleSum::default())),
            false => self.inner.accumulator(arguments),
        }
    }

    fn state_fields(&self, arguments: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        self.inner.state_fields(arguments)
    }

    fn groups_accumulator_supported(&self, arguments: AccumulatorArgs) -> bool {
        self.inner.groups_accumulator_supported(arguments)
    }

    fn create_groups_accumulator(&self, arguments: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        self.inner.create_groups_accumulator(arguments)
    }

    fn create_sliding_accumulator(&self, arguments: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        self.inner.create_sliding_accumulator(arguments)
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

/// A sum of doubles, one after the other as the servers add them: in lanes it has other last digits.
#[derive(Debug, Default)]
struct DoubleSum {
    sum: Option<f64>,
}

impl Accumulator for DoubleSum {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [values] = values else { return plan_err!("a sum takes one argument") };
        for value in values.as_primitive::<Float64Type>().iter().flatten() {
            self.sum = Some(self.sum.unwrap_or(0.0) + value);
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::Float64(self.sum))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![ScalarValue::Float64(self.sum)])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }

    fn size(&self) -> usize {
        size_of::<DoubleSum>()
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::Float64Array;

    use super::*;

    #[test]
    fn doubles_are_added_one_after_the_other() {
        let mut values = vec![1e16];
        values.extend([1.0; 64]);
        let mut sum = DoubleSum::default();
        sum.update_batch(&[Arc::new(Float64Array::from(values))]).unwrap();
        // Each 1 is lost in the rounding to even.
        assert_eq!(sum.evaluate().unwrap(), ScalarValue::Float64(Some(1e16)));
        assert_eq!(DoubleSum::default().evaluate().unwrap(), ScalarValue::Float64(None));
    }

    #[test]
    fn exact_sum_types_are_stable() {
        let types = [
            DataType::Int8,
            DataType::UInt64,
            DataType::Float32,
            DataType::Utf8View,
            DataType::Decimal128(15, 2),
        ];
        for argument in types {
            let once = exact(&argument);
            assert_eq!(exact(&once), once, "{argument}");
        }
    }
}
