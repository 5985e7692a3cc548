//! `GROUP_CONCAT` over a text and a separator: distinct texts once, in an order, cut at `group_concat_max_len`.
//!
//! A third argument, if there is one, decides which texts are distinct.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};

use super::rows::{Rows, text};

/// Its name.
pub const NAME: &str = "group_concat";

/// The aggregate whose results have at most `limit_bytes`.
pub fn aggregate(limit_bytes: usize) -> Arc<AggregateUDF> {
    let signature = Signature::user_defined(Volatility::Immutable);
    Arc::new(AggregateUDF::from(GroupConcat { limit_bytes, signature }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct GroupConcat {
    limit_bytes: usize,
    signature: Signature,
}

impl AggregateUDFImpl for GroupConcat {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        match arguments {
            [_, _] => Ok(vec![DataType::Utf8, DataType::Utf8]),
            [_, _, key] => Ok(vec![DataType::Utf8, DataType::Utf8, key.clone()]),
            _ => plan_err!("GROUP_CONCAT takes a text and a separator"),
        }
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::SoftRequirement
    }

    fn with_beneficial_ordering(self: Arc<Self>, _: bool) -> Result<Option<Arc<dyn AggregateUDFImpl>>> {
        Ok(Some(self))
    }

    fn accumulator(&self, arguments: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let (limit_bytes, is_distinct) = (self.limit_bytes, arguments.is_distinct);
        Ok(Box::new(Texts { rows: Rows::new(&arguments)?, limit_bytes, is_distinct }))
    }

    fn state_fields(&self, arguments: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        Ok(Rows::state_fields(&arguments))
    }
}

#[derive(Debug)]
struct Texts {
    rows: Rows,
    limit_bytes: usize,
    is_distinct: bool,
}

impl Accumulator for Texts {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.rows.extend(values, |row| row.first().is_some_and(|text| !text.is_null()))
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.rows.merge(states)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let (limit, is_distinct) = (self.limit_bytes, self.is_distinct);
        if self.rows.is_empty() {
            return Ok(ScalarValue::Utf8(None));
        }
        let mut seen = HashSet::new();
        let rows = self.rows.ordered(|row| {
            !is_distinct || row.get(2).or(row.first()).is_none_or(|key| seen.insert(key.clone()))
        })?;
        let mut joined = String::new();
        for (no, row) in rows.into_iter().enumerate() {
            if no > 0 {
                joined.push_str(text(row.get(1))?.unwrap_or_default());
            }
            joined.push_str(text(row.first())?.unwrap_or_default());
            if joined.len() > limit {
                joined.truncate(joined.floor_char_boundary(limit));
                break;
            }
        }
        Ok(ScalarValue::Utf8(Some(joined)))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.rows.state()
    }

    fn size(&self) -> usize {
        self.rows.size()
    }
}
