//! `BIT_AND`, `BIT_OR` and `BIT_XOR` over integers of 64 bits without sign; of no rows all ones or zeros.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, UInt64Type};
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};

/// Names of the three.
pub(super) const NAMES: [&str; 3] = ["bit_and", "bit_or", "bit_xor"];

/// The aggregate of a name.
pub fn aggregate(name: &'static str) -> Arc<AggregateUDF> {
    let operation = match name {
        "bit_and" => Operation::And,
        "bit_or" => Operation::Or,
        _ => Operation::Xor,
    };
    let signature = Signature::user_defined(Volatility::Immutable);
    Arc::new(AggregateUDF::from(Bits { name, operation, signature }))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Operation {
    And,
    Or,
    Xor,
}

impl Operation {
    fn of_none(self) -> u64 {
        if self == Operation::And { u64::MAX } else { 0 }
    }

    fn of(self, left: u64, right: u64) -> u64 {
        match self {
            Operation::And => left & right,
            Operation::Or => left | right,
            Operation::Xor => left ^ right,
        }
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Bits {
    name: &'static str,
    operation: Operation,
    signature: Signature,
}

impl AggregateUDFImpl for Bits {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    /// Arguments of other types become words by [`numbers`](crate::functions::numbers) before they are coerced.
    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        match arguments {
            [_] => Ok(vec![DataType::UInt64]),
            _ => plan_err!("{} takes one argument", self.name.to_uppercase()),
        }
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::UInt64)
    }

    fn is_nullable(&self) -> bool {
        false
    }

    fn default_value(&self, _: &DataType) -> Result<ScalarValue> {
        Ok(ScalarValue::UInt64(Some(self.operation.of_none())))
    }

    fn accumulator(&self, _: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Word { operation: self.operation, value: self.operation.of_none() }))
    }

    fn create_sliding_accumulator(&self, _: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Counts { operation: self.operation, values: 0, ones: [0; 64] }))
    }

    fn state_fields(&self, arguments: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        Ok(vec![Arc::new(Field::new(format!("{}[bits]", arguments.name), DataType::UInt64, true))])
    }
}

/// The bits so far.
#[derive(Debug)]
struct Word {
    operation: Operation,
    value: u64,
}

impl Accumulator for Word {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [values, ..] = values else { return plan_err!("an aggregate of bits has one argument") };
        for value in values.as_primitive::<UInt64Type>().iter().flatten() {
            self.value = self.operation.of(self.value, value);
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::UInt64(Some(self.value)))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}

/// How many values of a sliding frame have each bit, so that values can leave it.
#[derive(Debug)]
struct Counts {
    operation: Operation,
    values: u64,
    ones: [u64; 64],
}

impl Counts {
    fn add(&mut self, values: &[ArrayRef], by: i64) -> Result<()> {
        let [values, ..] = values else { return plan_err!("an aggregate of bits has one argument") };
        for value in values.as_primitive::<UInt64Type>().iter().flatten() {
            self.values = self.values.wrapping_add_signed(by);
            for (bit, ones) in self.ones.iter_mut().enumerate() {
                if value >> bit & 1 == 1 {
                    *ones = ones.wrapping_add_signed(by);
                }
            }
        }
        Ok(())
    }
}

impl Accumulator for Counts {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.add(values, 1)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.add(values, -1)
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, _: &[ArrayRef]) -> Result<()> {
        plan_err!("a sliding frame is not merged")
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let is_set = |ones: u64| match self.operation {
            Operation::And => ones == self.values,
            Operation::Or => ones > 0,
            Operation::Xor => ones % 2 == 1,
        };
        let word =
            self.ones.iter().enumerate().fold(0, |word, (bit, ones)| word | u64::from(is_set(*ones)) << bit);
        Ok(ScalarValue::UInt64(Some(word)))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        plan_err!("a sliding frame has no state to merge")
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}
