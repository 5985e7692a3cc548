//! STD and VARIANCE over any values, and results that MariaDB shows with a fixed number of digits: those of exact
//! numbers have four digits more than their argument, PERCENT_RANK and CUME_DIST ten. The values are doubles of full
//! precision; the digits are the field's. Sliding frames are computed anew for each row, as the servers do.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Float64Type};
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::functions_aggregate::stddev::{stddev_pop_udaf, stddev_udaf};
use datafusion::functions_aggregate::variance::{var_pop_udaf, var_samp_udaf};
use datafusion::logical_expr::function::{
    AccumulatorArgs, ExpressionArgs, PartitionEvaluatorArgs, StateFieldsArgs, WindowUDFFieldArgs,
};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator, PartitionEvaluator, Signature,
    Volatility, WindowUDF, WindowUDFImpl,
};
use datafusion::physical_plan::PhysicalExpr;

use crate::relation::types::MYSQL_TYPE;

/// A field of doubles that are shown with `digits` after the point.
fn fixed(name: &str, digits: u8) -> FieldRef {
    let metadata = HashMap::from([(MYSQL_TYPE.to_owned(), format!("double(53,{digits})"))]);
    Arc::new(Field::new(name, DataType::Float64, true).with_metadata(metadata))
}

/// STD and VARIANCE to register instead of DataFusion's.
pub(super) fn aggregates() -> Vec<Arc<AggregateUDF>> {
    [stddev_udaf(), stddev_pop_udaf(), var_samp_udaf(), var_pop_udaf()]
        .map(|inner| deviation(inner, None))
        .into()
}

/// `inner` with a fixed number of digits.
pub fn aggregate(inner: Arc<AggregateUDF>, digits: u8) -> Arc<AggregateUDF> {
    deviation(inner, Some(digits))
}

fn deviation(inner: Arc<AggregateUDF>, digits: Option<u8>) -> Arc<AggregateUDF> {
    let signature = Signature::user_defined(Volatility::Immutable);
    Arc::new(AggregateUDF::from(Deviation { inner, digits, signature }))
}

/// The same of a window function.
pub fn window(inner: Arc<WindowUDF>, digits: u8) -> Arc<WindowUDF> {
    Arc::new(WindowUDF::from(FixedWindow { inner, digits }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Deviation {
    inner: Arc<AggregateUDF>,
    digits: Option<u8>,
    signature: Signature,
}

impl AggregateUDFImpl for Deviation {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    /// Arguments that are no numbers become some before they are coerced.
    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        match arguments {
            [_] => Ok(vec![DataType::Float64]),
            _ => plan_err!("{} takes one argument", self.name().to_uppercase()),
        }
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn return_field(&self, _: &[FieldRef]) -> Result<FieldRef> {
        Ok(match self.digits {
            Some(digits) => fixed(self.name(), digits),
            None => Arc::new(Field::new(self.name(), DataType::Float64, true)),
        })
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
        let name = self.inner.name();
        let (is_root, is_sample) = (name.starts_with("stddev"), !name.ends_with("_pop"));
        Ok(Box::new(Frame { values: VecDeque::new(), is_root, is_sample }))
    }
}

/// The values of a sliding frame.
#[derive(Debug)]
struct Frame {
    values: VecDeque<f64>,
    is_root: bool,
    is_sample: bool,
}

impl Frame {
    /// Mean and sum of squares by Welford's recurrence.
    fn value(&self) -> Option<f64> {
        let (mut count, mut mean, mut squares) = (0.0, 0.0, 0.0);
        for value in &self.values {
            count += 1.0;
            let delta = value - mean;
            mean += delta / count;
            squares += delta * (value - mean);
        }
        let divisor = if self.is_sample { count - 1.0 } else { count };
        let variance = (divisor > 0.0).then(|| squares / divisor)?;
        Some(if self.is_root { variance.sqrt() } else { variance })
    }
}

impl Accumulator for Frame {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [values, ..] = values else { return plan_err!("a deviation has one argument") };
        self.values.extend(values.as_primitive::<Float64Type>().iter().flatten());
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [values, ..] = values else { return plan_err!("a deviation has one argument") };
        for _ in values.as_primitive::<Float64Type>().iter().flatten() {
            self.values.pop_front();
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, _: &[ArrayRef]) -> Result<()> {
        plan_err!("a sliding frame is not merged")
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::Float64(self.value()))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        plan_err!("a sliding frame has no state to merge")
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.values.capacity() * size_of::<f64>()
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct FixedWindow {
    inner: Arc<WindowUDF>,
    digits: u8,
}

impl WindowUDFImpl for FixedWindow {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn expressions(&self, arguments: ExpressionArgs) -> Vec<Arc<dyn PhysicalExpr>> {
        self.inner.expressions(arguments)
    }

    fn partition_evaluator(&self, arguments: PartitionEvaluatorArgs) -> Result<Box<dyn PartitionEvaluator>> {
        self.inner.partition_evaluator_factory(arguments)
    }

    fn field(&self, arguments: WindowUDFFieldArgs) -> Result<FieldRef> {
        Ok(fixed(arguments.name(), self.digits))
    }
}
