//! Rows that cannot pass are dropped before they are decoded.
//!
//! Comparisons of a column with literals are tested on the stored value; the rest of the row is only decoded if all of
//! them hold. The predicates are evaluated again on what is left, so a test may let a row through in doubt (a zero
//! date, a value of an unexpected kind), but never drops one that passes.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray};
use datafusion::arrow::buffer::BooleanBuffer;
use datafusion::arrow::datatypes::{DataType, Date32Type, Decimal128Type, Int32Type, Int64Type};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, Column, InListExpr, Literal};
use datafusion::physical_expr::utils::split_conjunction;
use tanada_innodb::{Decimal, Row, Rows, Value};

use crate::collation::TextComparison;
use crate::lookup::key::{KeyColumn, searchable_type};
use crate::relation::zero_date::ZERO_DATE;

/// Most literals of a list that is tested one by one.
const MOST_LITERALS: usize = 32;

/// Tests on stored values.
#[derive(Debug, Default)]
pub(super) struct Prefilter {
    tests: Vec<(usize, Test)>,
}

/// What a value must be.
#[derive(Debug, Clone, PartialEq)]
enum Test {
    /// A number, date or time within bounds, both included, in units of its type (see [`number`]).
    Between(i128, i128),
    /// One of these numbers.
    Numbers(Vec<i128>),
    /// One of these strings.
    Texts(Vec<String>),
    /// A string that is before or after another by its bytes.
    TextOrder(Operator, String),
    /// A string that passes comparisons by its collation.
    Compared(TextComparison),
}

impl Prefilter {
    /// Tests that follow from predicates over the decoded columns.
    pub(super) fn new(predicates: &[Arc<dyn PhysicalExpr>]) -> Prefilter {
        let parts = predicates.iter().flat_map(split_conjunction);
        Prefilter { tests: parts.filter_map(test).collect() }
    }

    /// Whether a row may pass whose values are numbers within `bounds` of each slot, where these are known.
    pub(super) fn may_pass(&self, bounds: impl Fn(usize) -> Option<(i128, i128)>) -> bool {
        self.tests.iter().all(|(slot, test)| {
            let Some((low, high)) = bounds(*slot) else { return true };
            match test {
                Test::Between(least, most) => *least <= high && low <= *most,
                Test::Numbers(numbers) => numbers.iter().any(|number| (low..=high).contains(number)),
                Test::Texts(_) | Test::TextOrder(..) | Test::Compared(_) => true,
            }
        })
    }

    /// The slots that are tested.
    pub(super) fn slots(&self) -> Vec<usize> {
        let mut slots: Vec<usize> = self.tests.iter().map(|(slot, _)| *slot).collect();
        slots.sort_unstable();
        slots.dedup();
        slots
    }

    /// Which rows may pass, by the values of their slots; the same as [`retain`](Self::retain) leaves.
    pub(super) fn mask<'a>(
        &self,
        rows: usize,
        slot: impl Fn(usize) -> Option<&'a ArrayRef>,
    ) -> Result<Option<BooleanBuffer>> {
        let mut mask: Option<BooleanBuffer> = None;
        for (no, test) in &self.tests {
            let Some(values) = slot(*no) else { continue };
            let passed = test.mask(values)?;
            if passed.len() != rows {
                return internal_err!("a column has {} values instead of {rows}", passed.len());
            }
            mask = Some(match mask {
                Some(mask) => &mask & &passed,
                None => passed,
            });
        }
        Ok(mask)
    }

    /// Whether the row may pass.
    pub(super) fn passes(&self, row: &Row<'_>) -> tanada_innodb::Result<bool> {
        let mut memory = Vec::new();
        for (slot, test) in &self.tests {
            if !test.passes(&row.value(*slot)?, &mut memory) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Drops the rows that cannot pass.
    pub(super) fn retain(&self, rows: &mut Rows<'_>) -> tanada_innodb::Result<()> {
        let mut memory = Vec::new();
        for (slot, test) in &self.tests {
            if rows.is_empty() {
                return Ok(());
            }
            let done = match test {
                Test::Between(least, most) => {
                    let least = i64::try_from(*least).unwrap_or(if *least < 0 { i64::MIN } else { i64::MAX });
                    let most = i64::try_from(*most).unwrap_or(if *most < 0 { i64::MIN } else { i64::MAX });
                    rows.retain_numbers(*slot, |number| (least..=most).contains(&number))?
                }
                Test::Numbers(numbers) => {
                    rows.retain_numbers(*slot, |number| numbers.contains(&i128::from(number)))?
                }
                Test::Texts(_) | Test::TextOrder(..) | Test::Compared(_) => false,
            };
            if !done {
                rows.retain(*slot, |value| test.passes(value, &mut memory))?;
            }
        }
        Ok(())
    }
}

impl Test {
    /// Which of the values pass.
    fn mask(&self, values: &ArrayRef) -> Result<BooleanBuffer> {
        if let Test::Between(least, most) = self
            && let Some(mask) = between(values, *least, *most)
        {
            return Ok(mask);
        }
        // What cannot be searched is in doubt; the predicate itself decides.
        if !searchable_type(values.data_type()) {
            let mask = BooleanBuffer::new_set(values.len());
            return Ok(match values.nulls() {
                Some(nulls) => &mask & nulls.inner(),
                None => mask,
            });
        }
        let column = KeyColumn::new(values, None)?;
        let mut memory = Vec::new();
        Ok(BooleanBuffer::collect_bool(values.len(), |row| {
            column.value(row).is_some_and(|value| self.passes(&value, &mut memory))
        }))
    }

    fn passes(&self, value: &Value<'_>, memory: &mut Vec<u8>) -> bool {
        match (self, value) {
            // A comparison with NULL is not true.
            (_, Value::Null) => false,
            (Test::Texts(texts), Value::Text(value)) => {
                texts.iter().any(|text| text.as_str() == value.as_ref())
            }
            (Test::TextOrder(operator, text), Value::Text(value)) => {
                let order = value.as_ref().cmp(text.as_str());
                match operator {
                    Operator::Lt => order.is_lt(),
                    Operator::LtEq => order.is_le(),
                    Operator::Gt => order.is_gt(),
                    _ => order.is_ge(),
                }
            }
            (Test::Compared(comparison), Value::Text(value)) => comparison.passes(value, memory),
            (Test::Texts(_) | Test::TextOrder(..) | Test::Compared(_), _) => true,
            (test, value) => number(value).is_none_or(|number| match test {
                Test::Between(least, most) => (*least..=*most).contains(&number),
                Test::Numbers(numbers) => numbers.contains(&number),
                Test::Texts(_) | Test::TextOrder(..) | Test::Compared(_) => true,
            }),
        }
    }
}

/// Which values of common types lie between two numbers; `None` for other types.
fn between(values: &ArrayRef, least: i128, most: i128) -> Option<BooleanBuffer> {
    fn compared<T: ArrowPrimitiveType>(
        values: &ArrayRef,
        passes: impl Fn(T::Native) -> bool,
    ) -> BooleanBuffer {
        let array = values.as_primitive::<T>();
        let numbers = array.values();
        let mask = BooleanBuffer::collect_bool(numbers.len(), |row| passes(numbers[row]));
        match array.nulls() {
            Some(nulls) => &mask & nulls.inner(),
            None => mask,
        }
    }
    let narrow = |number: i128| i64::try_from(number).unwrap_or(if number < 0 { i64::MIN } else { i64::MAX });
    let (low, high) = (narrow(least), narrow(most));
    Some(match values.data_type() {
        DataType::Int32 => compared::<Int32Type>(values, |number| {
            let number = i64::from(number);
            low <= number && number <= high
        }),
        DataType::Int64 => compared::<Int64Type>(values, |number| low <= number && number <= high),
        DataType::Decimal128(..) => {
            compared::<Decimal128Type>(values, |number| least <= number && number <= most)
        }
        DataType::Date32 => compared::<Date32Type>(values, |days| {
            let number = i64::from(days);
            // Dates that no calendar has are in doubt.
            days <= ZERO_DATE || (low <= number && number <= high)
        }),
        _ => return None,
    })
}

/// The numbers of an array; `None` if it has no numbers, `None` within it for NULL and for values in doubt.
pub(crate) fn number_of(values: &ArrayRef) -> Option<Vec<Option<i128>>> {
    let is_number = values.data_type().is_numeric() || values.data_type().is_temporal();
    if values.data_type().is_floating() || !is_number || !searchable_type(values.data_type()) {
        return None;
    }
    let column = KeyColumn::new(values, None).ok()?;
    Some((0..values.len()).map(|row| column.value(row).and_then(|value| number(&value))).collect())
}

/// The value as a number that orders like it: integers, unscaled decimals (all of a column have one scale), days,
/// microseconds.
fn number(value: &Value<'_>) -> Option<i128> {
    match value {
        Value::Int(number) => Some(i128::from(*number)),
        Value::UInt(number) => Some(i128::from(*number)),
        Value::Date(days) => Some(i128::from(*days)),
        Value::DateTime(micros) | Value::Time(micros) => Some(i128::from(*micros)),
        Value::Decimal(Decimal { high, low, .. }) => {
            let low = low.cast_signed();
            (*high == low >> 127).then_some(low)
        }
        _ => None,
    }
}

/// The test of a predicate: its column and what its value must be.
fn test(predicate: &Arc<dyn PhysicalExpr>) -> Option<(usize, Test)> {
    if let Some(comparison) = predicate.downcast_ref::<TextComparison>() {
        let column = comparison.text().downcast_ref::<Column>()?;
        return Some((column.index(), Test::Compared(comparison.clone())));
    }
    if let Some(list) = predicate.downcast_ref::<InListExpr>() {
        let column = list.expr().downcast_ref::<Column>()?;
        if list.negated() || list.list().len() > MOST_LITERALS {
            return None;
        }
        let tests =
            list.list().iter().map(|item| comparison(Operator::Eq, item.downcast_ref::<Literal>()?.value()));
        return Some((
            column.index(),
            tests.collect::<Option<Vec<Test>>>()?.into_iter().map(Some).reduce(either)??,
        ));
    }
    let binary = predicate.downcast_ref::<BinaryExpr>()?;
    if *binary.op() == Operator::Or {
        let (left, right) = (test(binary.left())?, test(binary.right())?);
        return if left.0 == right.0 { Some((left.0, either(Some(left.1), Some(right.1))?)) } else { None };
    }
    let (column, operator, literal) =
        match (binary.left().downcast_ref::<Column>(), binary.right().downcast_ref::<Column>()) {
            (Some(column), None) => (column, *binary.op(), binary.right()),
            (None, Some(column)) => (column, binary.op().swap()?, binary.left()),
            _ => return None,
        };
    Some((column.index(), comparison(operator, literal.downcast_ref::<Literal>()?.value())?))
}

fn comparison(operator: Operator, literal: &ScalarValue) -> Option<Test> {
    if literal.is_null() || !searchable_type(&literal.data_type()) {
        return None;
    }
    let array: ArrayRef = literal.to_array().ok()?;
    let column = KeyColumn::new(&array, None).ok()?;
    let value = column.value(0)?;
    if let Value::Text(text) = &value {
        return match operator {
            Operator::Eq => Some(Test::Texts(vec![text.to_string()])),
            Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq => {
                Some(Test::TextOrder(operator, text.to_string()))
            }
            _ => None,
        };
    }
    let number = number(&value)?;
    Some(match operator {
        Operator::Eq => Test::Numbers(vec![number]),
        Operator::Lt => Test::Between(i128::MIN, number.checked_sub(1)?),
        Operator::LtEq => Test::Between(i128::MIN, number),
        Operator::Gt => Test::Between(number.checked_add(1)?, i128::MAX),
        Operator::GtEq => Test::Between(number, i128::MAX),
        _ => return None,
    })
}

/// One of both.
fn either(left: Option<Test>, right: Option<Test>) -> Option<Test> {
    match (left?, right?) {
        (Test::Numbers(mut left), Test::Numbers(right)) => {
            left.extend(right);
            (left.len() <= MOST_LITERALS).then_some(Test::Numbers(left))
        }
        (Test::Texts(mut left), Test::Texts(right)) => {
            left.extend(right);
            (left.len() <= MOST_LITERALS).then_some(Test::Texts(left))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use datafusion::arrow::array::{Date32Array, Decimal128Array, Int16Array, Int32Array, StringViewArray};
    use datafusion::arrow::datatypes::{Field, Schema};
    use datafusion::common::DFSchema;
    use datafusion::execution::context::ExecutionProps;
    use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
    use datafusion::physical_expr::create_physical_expr;
    use datafusion::prelude::{Expr, col, lit};

    use super::*;

    fn tested(predicate: &Expr) -> Option<(usize, Test)> {
        let fields = [("a", DataType::Int32), ("d", DataType::Decimal128(15, 2)), ("t", DataType::Utf8View)];
        let schema = Schema::new(fields.map(|(name, data_type)| Field::new(name, data_type, true)).to_vec());
        let schema = DFSchema::try_from(schema).unwrap();
        test(
            &create_physical_expr(
                predicate,
                &schema,
                &ExecutionProps::new(),
                &PhysicalPlanningContext::default(),
            )
            .unwrap(),
        )
    }

    fn passes(test: &Test, value: &Value<'_>) -> bool {
        test.passes(value, &mut Vec::new())
    }

    #[test]
    fn comparisons_become_bounds() {
        assert_eq!(tested(&col("a").lt(lit(5))), Some((0, Test::Between(i128::MIN, 4))));
        assert_eq!(tested(&lit(5).lt(col("a"))), Some((0, Test::Between(6, i128::MAX))));
        let price = lit(ScalarValue::Decimal128(Some(150), 15, 2));
        assert_eq!(tested(&col("d").gt_eq(price)), Some((1, Test::Between(150, i128::MAX))));
        let view = |text: &str| lit(ScalarValue::Utf8View(Some(text.to_string())));
        let texts = Test::Texts(vec!["x".to_string(), "y".to_string()]);
        assert_eq!(tested(&col("t").eq(view("x")).or(col("t").eq(view("y")))), Some((2, texts)));
    }

    #[test]
    fn columns_are_masked_as_single_values_are_tested() {
        let numbers: ArrayRef = Arc::new(Int32Array::from(vec![Some(4), None, Some(5), Some(-1)]));
        let narrow: ArrayRef = Arc::new(Int16Array::from(vec![Some(4), None, Some(5), Some(-1)]));
        let days: ArrayRef = Arc::new(Date32Array::from(vec![Some(4), None, Some(5), Some(ZERO_DATE)]));
        let prices = Decimal128Array::from(vec![Some(4), None, Some(5), Some(-1)]);
        let prices: ArrayRef = Arc::new(prices.with_precision_and_scale(15, 2).unwrap());
        let texts: ArrayRef = Arc::new(StringViewArray::from(vec![Some("4"), None, Some("5"), Some("-1")]));
        for test in [
            Test::Between(0, 4),
            Test::Between(i128::MIN, 4),
            Test::Between(5, i128::MAX),
            Test::Numbers(vec![5, 7]),
            Test::Texts(vec!["4".to_string()]),
            Test::TextOrder(Operator::GtEq, "4".to_string()),
        ] {
            for values in [&numbers, &narrow, &days, &prices, &texts] {
                let column = KeyColumn::new(values, None).unwrap();
                let single = (0..values.len())
                    .map(|row| column.value(row).is_some_and(|value| passes(&test, &value)))
                    .collect::<Vec<bool>>();
                let masked: Vec<bool> = test.mask(values).unwrap().iter().collect();
                assert_eq!(masked, single, "{test:?} {values:?}");
            }
        }
        let prefilter = Prefilter { tests: vec![(0, Test::Between(5, 9)), (2, Test::Numbers(vec![3]))] };
        assert_eq!(prefilter.slots(), [0, 2]);
        assert!(prefilter.may_pass(|_| None));
        assert!(prefilter.may_pass(|slot| (slot == 0).then_some((0, 5))));
        assert!(!prefilter.may_pass(|slot| (slot == 0).then_some((0, 4))));
        assert!(!prefilter.may_pass(|slot| (slot == 2).then_some((4, 9))));
    }

    #[test]
    fn unsupported_filters_have_no_prefilter() {
        assert_eq!(tested(&col("a").not_eq(lit(5))), None);
        assert_eq!(tested(&col("a").eq(lit(5)).or(col("d").is_null())), None);
        assert_eq!(tested(&col("a").lt(lit(5)).or(col("a").gt(lit(7)))), None);
        assert_eq!(tested(&col("a").eq(col("a"))), None);
    }

    #[test]
    fn values_in_doubt_pass_and_nulls_do_not() {
        let test = Test::Between(0, 10);
        assert!(passes(&test, &Value::Int(10)));
        assert!(!passes(&test, &Value::Int(11)));
        assert!(!passes(&test, &Value::Null));
        assert!(passes(&test, &Value::ZeroDate("0000-00-00".to_string())));
        assert!(passes(&test, &Value::Double(99.0)));
        let texts = Test::Texts(vec!["a".to_string()]);
        assert!(passes(&texts, &Value::Text(Cow::Borrowed("a"))));
        assert!(!passes(&texts, &Value::Text(Cow::Borrowed("A"))));
        let before = Test::TextOrder(Operator::Lt, "b".to_string());
        assert!(passes(&before, &Value::Text(Cow::Borrowed("az"))));
        assert!(!passes(&before, &Value::Text(Cow::Borrowed("b"))));
        assert!(!passes(&before, &Value::Null));
    }
}
