//! Rows that an aggregate keeps until its group is complete, in an order.
//!
//! The servers order them by a tree of keys of which NULL is kept as zero or an empty text, and in which the later of
//! equal ones comes first.

use std::cmp::Ordering;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::utils::compare_rows;
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};

/// Rows of arguments and sort keys.
#[derive(Debug)]
pub(super) struct Rows {
    types: Vec<DataType>,
    arguments: usize,
    order: Vec<SortOptions>,
    rows: Vec<Vec<ScalarValue>>,
    bytes: usize,
}

impl Rows {
    pub(super) fn new(arguments: &AccumulatorArgs<'_>) -> Result<Rows> {
        let mut types: Vec<DataType> =
            arguments.expr_fields.iter().map(|field| field.data_type().clone()).collect();
        for key in arguments.order_bys {
            types.push(key.expr.data_type(arguments.schema)?);
        }
        let order = arguments.order_bys.iter().map(|key| key.options).collect();
        Ok(Rows { types, arguments: arguments.expr_fields.len(), order, rows: Vec::new(), bytes: 0 })
    }

    /// Fields of [`Rows::state`].
    pub(super) fn state_fields(arguments: &StateFieldsArgs<'_>) -> Vec<FieldRef> {
        let fields = arguments.input_fields.iter().chain(arguments.ordering_fields);
        let list = |(no, field): (usize, &FieldRef)| {
            let item = Field::new_list_field(field.data_type().clone(), true);
            Arc::new(Field::new(
                format!("{}[rows {no}]", arguments.name),
                DataType::List(Arc::new(item)),
                true,
            ))
        };
        fields.enumerate().map(list).collect()
    }

    /// Adds rows for which `keeps` holds.
    pub(super) fn extend(
        &mut self,
        columns: &[ArrayRef],
        keeps: impl Fn(&[ScalarValue]) -> bool,
    ) -> Result<()> {
        let count = columns.first().map_or(0, |column| column.len());
        for row in 0..count {
            let values: Vec<ScalarValue> = columns
                .iter()
                .map(|column| ScalarValue::try_from_array(column, row))
                .collect::<Result<_>>()?;
            if keeps(&values) {
                self.push(values);
            }
        }
        Ok(())
    }

    fn push(&mut self, mut values: Vec<ScalarValue>) {
        for key in values.iter_mut().skip(self.arguments).filter(|key| key.is_null()) {
            if let Some(zero) = zero_of(&key.data_type()) {
                *key = zero;
            }
        }
        self.bytes += values.iter().map(ScalarValue::size).sum::<usize>() + size_of::<Vec<ScalarValue>>();
        self.rows.push(values);
    }

    /// Adds the rows of other states.
    pub(super) fn merge(&mut self, states: &[ArrayRef]) -> Result<()> {
        let Some(first) = states.first() else { return Ok(()) };
        for state in 0..first.len() {
            let lists = states.iter().map(|column| column.as_list::<i32>().value(state));
            let lists: Vec<ArrayRef> = lists.collect();
            self.extend(&lists, |_| true)?;
        }
        Ok(())
    }

    /// One list for each column.
    pub(super) fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let column = |(no, data_type): (usize, &DataType)| {
            let values: Vec<ScalarValue> = self.rows.iter().filter_map(|row| row.get(no).cloned()).collect();
            ScalarValue::List(ScalarValue::new_list_nullable(&values, data_type))
        };
        Ok(self.types.iter().enumerate().map(column).collect())
    }

    /// The arguments of the rows in their order, after `keeps` has seen them as they came.
    pub(super) fn ordered(
        &mut self,
        mut keeps: impl FnMut(&[ScalarValue]) -> bool,
    ) -> Result<Vec<&[ScalarValue]>> {
        let arguments = self.arguments;
        self.rows.retain(|row| keeps(row.get(..arguments).unwrap_or_default()));
        let mut failure = None;
        let order = &self.order;
        if !order.is_empty() {
            self.rows.reverse();
        }
        self.rows.sort_by(|left, right| {
            let keys = (left.get(arguments..), right.get(arguments..));
            let (Some(left), Some(right)) = keys else { return Ordering::Equal };
            compare_rows(left, right, order).unwrap_or_else(|error| {
                failure.get_or_insert(error);
                Ordering::Equal
            })
        });
        match failure {
            Some(error) => Err(error),
            None => Ok(self.rows.iter().filter_map(|row| row.get(..arguments)).collect()),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub(super) fn size(&self) -> usize {
        size_of_val(self) + self.bytes
    }
}

/// What a key that is NULL is compared as; `None` if that is no value, but before all of them.
fn zero_of(data_type: &DataType) -> Option<ScalarValue> {
    match data_type {
        DataType::Utf8 => Some(ScalarValue::Utf8(Some(String::new()))),
        DataType::Utf8View => Some(ScalarValue::Utf8View(Some(String::new()))),
        DataType::LargeUtf8 => Some(ScalarValue::LargeUtf8(Some(String::new()))),
        DataType::Duration(_) => ScalarValue::new_zero(data_type).ok(),
        number if number.is_numeric() => ScalarValue::new_zero(number).ok(),
        _ => None,
    }
}

/// The text of an argument; `None` is NULL.
pub(super) fn text(value: Option<&ScalarValue>) -> Result<Option<&str>> {
    match value {
        None => Ok(None),
        Some(value) if value.is_null() => Ok(None),
        Some(value) => match value.try_as_str() {
            Some(text) => Ok(text),
            None => plan_err!("an aggregate of texts has an argument of type {}", value.data_type()),
        },
    }
}
