//! SUM and AVG of doubles over window frames that move on, as MySQL computes them: anew for each row. Taking leaving
//! rows off a running sum, as the engine and MariaDB do, gives other last digits.

use std::collections::VecDeque;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray};
use datafusion::arrow::datatypes::{DataType, FieldRef, Float64Type};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator, Signature, Volatility,
};

/// `inner`, a SUM or AVG of doubles, with sums of moving frames computed anew.
pub fn aggregate(inner: Arc<AggregateUDF>) -> Arc<AggregateUDF> {
    let signature = Signature::user_defined(Volatility::Immutable);
    Arc::new(AggregateUDF::from(FrameSum { inner, signature }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct FrameSum {
    inner: Arc<AggregateUDF>,
    signature: Signature,
}

impl AggregateUDFImpl for FrameSum {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(arguments)
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        self.inner.return_type(arguments)
    }

    fn accumulator(&self, arguments: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        self.inner.accumulator(arguments)
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

    fn create_sliding_accumulator(&self, _: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Frame { values: VecDeque::new(), is_average: self.name() == "avg" }))
    }
}

/// The values of a frame, in the order of its rows.
#[derive(Debug)]
struct Frame {
    values: VecDeque<Option<f64>>,
    is_average: bool,
}

impl Accumulator for Frame {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [values] = values else { return internal_err!("a sum takes one argument") };
        self.values.extend(values.as_primitive::<Float64Type>().iter());
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let left = values.first().map_or(0, |values| values.len());
        self.values.drain(..left.min(self.values.len()));
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let count = self.values.iter().flatten().count();
        let sum: f64 = self.values.iter().flatten().fold(0.0, |sum, value| sum + value);
        let result = if self.is_average { sum / count as f64 } else { sum };
        Ok(ScalarValue::Float64((count > 0).then_some(result)))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        internal_err!("a frame is not put together of parts")
    }

    fn merge_batch(&mut self, _: &[ArrayRef]) -> Result<()> {
        internal_err!("a frame is not put together of parts")
    }

    fn size(&self) -> usize {
        size_of::<Frame>() + self.values.capacity() * size_of::<Option<f64>>()
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::Float64Array;

    use super::*;

    #[test]
    fn sums_of_moving_frames_keep_no_error_of_rows_that_left() {
        let batch = |value: Option<f64>| -> Vec<ArrayRef> { vec![Arc::new(Float64Array::from(vec![value]))] };
        let mut frame = Frame { values: VecDeque::new(), is_average: false };
        frame.update_batch(&batch(Some(1e16))).unwrap();
        frame.update_batch(&batch(Some(0.1))).unwrap();
        frame.retract_batch(&batch(Some(1e16))).unwrap();
        assert_eq!(frame.evaluate().unwrap(), ScalarValue::Float64(Some(0.1)));
        frame.update_batch(&batch(None)).unwrap();
        frame.retract_batch(&batch(Some(0.1))).unwrap();
        assert_eq!(frame.evaluate().unwrap(), ScalarValue::Float64(None));
    }
}
