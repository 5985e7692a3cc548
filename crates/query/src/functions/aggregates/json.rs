//! `JSON_ARRAYAGG` and `JSON_OBJECTAGG` over values that are JSON already. MySQL puts a space behind each comma and
//! colon, sorts members by length and bytes and keeps the last of a name; MariaDB keeps all as they come.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};

use super::rows::{Rows, text};
use crate::functions::quoted_json;

/// Name of the aggregate of an array.
pub const ARRAY: &str = "json_arrayagg";
/// Name of the aggregate of an object.
pub const OBJECT: &str = "json_objectagg";

/// The aggregate of an array as MySQL or MariaDB spells it.
pub fn array(mysql: bool) -> Arc<AggregateUDF> {
    aggregate(false, mysql)
}

/// The aggregate of an object as MySQL or MariaDB spells it.
pub fn object(mysql: bool) -> Arc<AggregateUDF> {
    aggregate(true, mysql)
}

fn aggregate(is_object: bool, mysql: bool) -> Arc<AggregateUDF> {
    let signature = Signature::user_defined(Volatility::Immutable);
    Arc::new(AggregateUDF::from(Json { spelling: Spelling { is_object, mysql }, signature }))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Spelling {
    is_object: bool,
    mysql: bool,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Json {
    spelling: Spelling,
    signature: Signature,
}

impl AggregateUDFImpl for Json {
    fn name(&self) -> &str {
        if self.spelling.is_object { OBJECT } else { ARRAY }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        match arguments.len() == 1 + usize::from(self.spelling.is_object) {
            true => Ok(vec![DataType::Utf8; arguments.len()]),
            false => plan_err!("{} has the wrong number of arguments", self.name().to_uppercase()),
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
        let is_distinct = arguments.is_distinct;
        Ok(Box::new(Values { rows: Rows::new(&arguments)?, spelling: self.spelling, is_distinct }))
    }

    fn state_fields(&self, arguments: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        Ok(Rows::state_fields(&arguments))
    }
}

#[derive(Debug)]
struct Values {
    rows: Rows,
    spelling: Spelling,
    is_distinct: bool,
}

impl Accumulator for Values {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.rows.extend(values, |_| true)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.rows.merge(states)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let Spelling { is_object, mysql } = self.spelling;
        if self.rows.is_empty() {
            return Ok(ScalarValue::Utf8(None));
        }
        let (is_distinct, mut seen) = (self.is_distinct, std::collections::HashSet::new());
        let rows = self.rows.ordered(|row| !is_distinct || seen.insert(row.to_vec()))?;
        let value = |row: &[ScalarValue], at: usize| -> Result<String> {
            Ok(text(row.get(at))?.unwrap_or("null").to_owned())
        };
        if !is_object {
            let values: Vec<String> = rows.into_iter().map(|row| value(row, 0)).collect::<Result<_>>()?;
            let joined = values.join(if mysql { ", " } else { "," });
            return Ok(ScalarValue::Utf8(Some(format!("[{joined}]"))));
        }
        let mut members: Vec<(String, String)> = Vec::new();
        for row in rows {
            match text(row.first())? {
                Some(name) => members.push((name.to_owned(), value(row, 1)?)),
                None if mysql => return exec_err!("a member of JSON_OBJECTAGG has NULL as its name"),
                None => {}
            }
        }
        if mysql {
            let sorted: BTreeMap<(usize, String), String> =
                members.into_iter().map(|(name, value)| ((name.len(), name), value)).collect();
            members = sorted.into_iter().map(|((_, name), value)| (name, value)).collect();
        }
        let mut object = String::from("{");
        for (no, (name, value)) in members.iter().enumerate() {
            let comma = if no > 0 { ", " } else { "" };
            let colon = if mysql { ": " } else { ":" };
            let _ = write!(object, "{comma}{}{colon}{value}", quoted_json(name));
        }
        object.push('}');
        Ok(ScalarValue::Utf8(Some(object)))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.rows.state()
    }

    fn size(&self) -> usize {
        self.rows.size()
    }
}
