//! Aggregates that stand for subqueries: [`ANY_TRUE`] is OR over rows with NULL, [`SINGLE_VALUE`] the value of at most
//! one row.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, UInt64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, UInt64Type};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};

use crate::{Error, ErrorKind};

/// Whether a condition is true for a row; else NULL if it is NULL for one; else false. Of no rows false.
pub(crate) const ANY_TRUE: &str = "tanada_any_true";

/// The value of the only row; NULL of none, an error of several.
pub(crate) const SINGLE_VALUE: &str = "tanada_single_value";

/// Both, to register.
pub(crate) fn aggregates() -> Vec<Arc<AggregateUDF>> {
    [any_true(), single_value()].into()
}

pub(super) fn any_true() -> Arc<AggregateUDF> {
    Arc::new(AggregateUDF::from(OfRows { kind: Kind::AnyTrue, signature: signature() }))
}

pub(super) fn single_value() -> Arc<AggregateUDF> {
    Arc::new(AggregateUDF::from(OfRows { kind: Kind::SingleValue, signature: signature() }))
}

fn signature() -> Signature {
    Signature::any(1, Volatility::Immutable)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    AnyTrue,
    SingleValue,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct OfRows {
    kind: Kind,
    signature: Signature,
}

impl AggregateUDFImpl for OfRows {
    fn name(&self) -> &str {
        match self.kind {
            Kind::AnyTrue => ANY_TRUE,
            Kind::SingleValue => SINGLE_VALUE,
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        match arguments {
            [argument] => Ok(argument.clone()),
            _ => Err(DataFusionError::Plan(format!("{} takes one argument", self.name()))),
        }
    }

    /// The argument's type, with what is known of it.
    fn return_field(&self, arguments: &[FieldRef]) -> Result<FieldRef> {
        let [argument] = arguments else {
            return Err(DataFusionError::Plan(format!("{} takes one argument", self.name())));
        };
        Ok(Arc::new(argument.as_ref().clone().with_name(self.name()).with_nullable(true)))
    }

    fn accumulator(&self, arguments: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let data_type = arguments.return_field.data_type().clone();
        Ok(match self.kind {
            Kind::AnyTrue => Box::new(AnyTrue { data_type, found: Found::default() }),
            Kind::SingleValue => Box::new(SingleValue { value: ScalarValue::try_from(&data_type)?, rows: 0 }),
        })
    }

    fn state_fields(&self, arguments: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let field = |name: &str, data_type| {
            Arc::new(Field::new(format!("{}[{name}]", arguments.name), data_type, true))
        };
        Ok(match self.kind {
            Kind::AnyTrue => vec![field("true", DataType::Boolean), field("null", DataType::Boolean)],
            Kind::SingleValue => vec![
                field("value", arguments.return_field.data_type().clone()),
                field("rows", DataType::UInt64),
            ],
        })
    }

    fn default_value(&self, data_type: &DataType) -> Result<ScalarValue> {
        match self.kind {
            Kind::AnyTrue => ScalarValue::Boolean(Some(false)).cast_to(data_type),
            Kind::SingleValue => ScalarValue::try_from(data_type),
        }
    }
}

#[derive(Debug, Default)]
struct Found {
    is_true: bool,
    is_null: bool,
}

#[derive(Debug)]
struct AnyTrue {
    data_type: DataType,
    found: Found,
}

fn any(flags: &ArrayRef) -> Result<bool> {
    let flags = cast(flags, &DataType::Boolean)?;
    Ok(flags.as_boolean().iter().any(|flag| flag == Some(true)))
}

impl Accumulator for AnyTrue {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let Some(values) = values.first() else { return Ok(()) };
        let flags: BooleanArray = cast(values, &DataType::Boolean)?.as_boolean().clone();
        self.found.is_true |= flags.true_count() > 0;
        self.found.is_null |= flags.null_count() > 0;
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let flag = match self.found {
            Found { is_true: true, .. } => Some(true),
            Found { is_null: true, .. } => None,
            Found { .. } => Some(false),
        };
        ScalarValue::Boolean(flag).cast_to(&self.data_type)
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let flags = [self.found.is_true, self.found.is_null];
        Ok(flags.map(|flag| ScalarValue::Boolean(Some(flag))).into())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        if let [is_true, is_null] = states {
            self.found.is_true |= any(is_true)?;
            self.found.is_null |= any(is_null)?;
        }
        Ok(())
    }
}

/// What a scalar subquery of several rows is.
pub(super) fn several_rows() -> DataFusionError {
    Error::new(ErrorKind::InvalidInput, "Subquery returns more than 1 row").into()
}

#[derive(Debug)]
struct SingleValue {
    value: ScalarValue,
    rows: u64,
}

impl SingleValue {
    fn check(&self) -> Result<()> {
        if self.rows > 1 { Err(several_rows()) } else { Ok(()) }
    }
}

impl Accumulator for SingleValue {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let Some(values) = values.first().filter(|values| !values.is_empty()) else { return Ok(()) };
        self.rows += values.len() as u64;
        self.check()?;
        self.value = ScalarValue::try_from_array(values, 0)?;
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(self.value.clone())
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.value.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.value.clone(), ScalarValue::UInt64(Some(self.rows))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let [values, rows] = states else { return Ok(()) };
        let rows: &UInt64Array = rows.as_primitive::<UInt64Type>();
        for (at, count) in rows.iter().enumerate() {
            if let Some(count) = count.filter(|count| *count > 0) {
                self.rows += count;
                self.check()?;
                self.value = ScalarValue::try_from_array(values, at)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn any_of(flags: &[Option<bool>]) -> Option<bool> {
        let mut any = AnyTrue { data_type: DataType::Boolean, found: Found::default() };
        any.update_batch(&[Arc::new(BooleanArray::from(flags.to_vec()))]).unwrap();
        match any.evaluate().unwrap() {
            ScalarValue::Boolean(flag) => flag,
            other => panic!("{other}"),
        }
    }

    #[test]
    fn any_true_is_or_with_null() {
        assert_eq!(any_of(&[]), Some(false));
        assert_eq!(any_of(&[Some(false), None]), None);
        assert_eq!(any_of(&[Some(false), None, Some(true)]), Some(true));
    }

    #[test]
    fn single_value_refuses_a_second_row() {
        let mut single = SingleValue { value: ScalarValue::Boolean(None), rows: 0 };
        let row: ArrayRef = Arc::new(BooleanArray::from(vec![Some(true)]));
        single.update_batch(&[Arc::clone(&row)]).unwrap();
        assert_eq!(single.evaluate().unwrap(), ScalarValue::Boolean(Some(true)));
        let error = single.update_batch(&[row]).unwrap_err().to_string();
        assert!(error.contains("Subquery returns more than 1 row"), "{error}");
    }
}
