//! Texts compared with constants, without keys of their own.
//!
//! Plans compare sort keys ([`sort_key`](super::sort_key)). Where one of them is a constant, the key of the other side
//! is not needed as a whole: the first character that differs decides. So the last step of planning, and scans, replace
//!
//! ```text
//! sort_key(city, 'utf8mb4_general_ci') >= key AND sort_key(city, 'utf8mb4_general_ci') < key
//! ```
//!
//! by one [`TextComparison`], which reads each text once.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use datafusion::arrow::buffer::BooleanBuffer;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::{ColumnarValue, Operator};
use datafusion::physical_expr::expressions::{BinaryExpr, InListExpr, Literal};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::{FilterExec, FilterExecBuilder};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use tanada_collation::ComparedKey;

use super::sort_key;

/// Most keys of a list that texts are compared with one after the other.
const MAX_KEYS: usize = 8;

/// Whether a text passes all of some comparisons with constants in one collation; NULL if the text is.
#[derive(Debug, Clone)]
pub(crate) struct TextComparison {
    text: Arc<dyn PhysicalExpr>,
    /// The name of the collation.
    collation: ScalarValue,
    tests: Arc<[Test]>,
}

/// A comparison with constants.
#[derive(Debug, Clone)]
struct Test {
    wanted: Wanted,
    keys: Vec<ComparedKey>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Wanted {
    /// The result of an operator with the only key.
    Operator(Operator),
    /// To be equal to one of the keys, or to none.
    In { negated: bool },
}

impl Test {
    #[inline]
    fn passes(&self, text: &str, memory: &mut Vec<u8>) -> bool {
        match (self.wanted, self.keys.as_slice()) {
            (Wanted::Operator(operator), [key]) => holds(operator, key.order_of(text, memory)),
            (Wanted::Operator(_), _) => false,
            (Wanted::In { negated }, keys) => {
                keys.iter().any(|key| key.order_of(text, memory).is_eq()) != negated
            }
        }
    }
}

#[inline]
fn holds(operator: Operator, order: Ordering) -> bool {
    match operator {
        Operator::Eq => order.is_eq(),
        Operator::NotEq => order.is_ne(),
        Operator::Lt => order.is_lt(),
        Operator::LtEq => order.is_le(),
        Operator::Gt => order.is_gt(),
        _ => order.is_ge(),
    }
}

impl TextComparison {
    /// The text that is compared.
    pub(crate) fn text(&self) -> &Arc<dyn PhysicalExpr> {
        &self.text
    }

    /// Whether `text` passes. `memory` is kept by the caller from call to call.
    #[inline]
    pub(crate) fn passes(&self, text: &str, memory: &mut Vec<u8>) -> bool {
        self.tests.iter().all(|test| test.passes(text, memory))
    }

    fn of(
        text: &Arc<dyn PhysicalExpr>,
        wanted: Wanted,
        keys: &[&Arc<dyn PhysicalExpr>],
    ) -> Option<TextComparison> {
        let call = text.downcast_ref::<ScalarFunctionExpr>().filter(|call| call.name() == sort_key::NAME)?;
        let [text, name] = call.args() else { return None };
        let name = name.downcast_ref::<Literal>()?.value();
        let collation = sort_key::collation(name).ok()?;
        let keys = keys.iter().map(|key| match key.downcast_ref::<Literal>()?.value() {
            ScalarValue::BinaryView(Some(key)) => Some(ComparedKey::new(collation, key)),
            _ => None,
        });
        let test = Test { wanted, keys: keys.collect::<Option<_>>()? };
        Some(TextComparison { text: Arc::clone(text), collation: name.clone(), tests: [test].into() })
    }

    /// Of a comparison of sort keys one of which is constant.
    fn of_operator(comparison: &BinaryExpr) -> Option<TextComparison> {
        let (left, operator, right) = (comparison.left(), *comparison.op(), comparison.right());
        let is_known = matches!(
            operator,
            Operator::Eq | Operator::NotEq | Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq
        );
        if !is_known {
            return None;
        }
        let swapped = || TextComparison::of(right, Wanted::Operator(operator.swap()?), &[left]);
        TextComparison::of(left, Wanted::Operator(operator), &[right]).or_else(swapped)
    }

    fn of_list(list: &InListExpr) -> Option<TextComparison> {
        if list.list().len() > MAX_KEYS {
            return None;
        }
        let wanted = Wanted::In { negated: list.negated() };
        TextComparison::of(list.expr(), wanted, &list.list().iter().collect::<Vec<_>>())
    }

    /// That both hold, if they compare the same text.
    fn and(&self, other: &TextComparison) -> Option<TextComparison> {
        let is_same = self.text.eq(&other.text) && self.collation == other.collation;
        (is_same && !is_volatile(&self.text)).then(|| TextComparison {
            tests: self.tests.iter().chain(other.tests.iter()).cloned().collect(),
            ..self.clone()
        })
    }

    fn of_texts(&self, texts: &ArrayRef) -> Result<BooleanArray> {
        let texts = match texts.data_type() {
            DataType::Utf8View => Arc::clone(texts),
            _ => cast(texts, &DataType::Utf8View)?,
        };
        let texts = texts.as_string_view();
        let mut memory = Vec::new();
        let passed =
            BooleanBuffer::collect_bool(texts.len(), |row| self.passes(texts.value(row), &mut memory));
        Ok(BooleanArray::new(passed, texts.nulls().cloned()))
    }
}

/// `expression` with comparisons of texts and constants instead of those of sort keys.
pub(crate) fn with_direct_comparisons(
    expression: Arc<dyn PhysicalExpr>,
) -> Result<Transformed<Arc<dyn PhysicalExpr>>> {
    expression.transform_up(|node| {
        let direct = if let Some(binary) = node.downcast_ref::<BinaryExpr>() {
            match binary.op() {
                Operator::And => binary
                    .left()
                    .downcast_ref::<TextComparison>()
                    .zip(binary.right().downcast_ref::<TextComparison>())
                    .and_then(|(left, right)| left.and(right)),
                _ => TextComparison::of_operator(binary),
            }
        } else {
            node.downcast_ref::<InListExpr>().and_then(TextComparison::of_list)
        };
        Ok(match direct {
            Some(direct) => Transformed::yes(Arc::new(direct) as Arc<dyn PhysicalExpr>),
            None => Transformed::no(node),
        })
    })
}

// What a key is compared by follows from it and its collation.
impl PartialEq for Test {
    fn eq(&self, other: &Test) -> bool {
        let keys = |of: &Test| of.keys.iter().map(|key| key.key().to_vec()).collect::<Vec<_>>();
        self.wanted == other.wanted && keys(self) == keys(other)
    }
}

impl Eq for Test {}

impl PartialEq for TextComparison {
    fn eq(&self, other: &TextComparison) -> bool {
        self.text.eq(&other.text) && self.collation == other.collation && self.tests == other.tests
    }
}

impl Eq for TextComparison {}

impl Hash for TextComparison {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
        self.collation.hash(state);
        for test in self.tests.iter() {
            test.wanted.hash(state);
            test.keys.iter().for_each(|key| key.key().hash(state));
        }
    }
}

impl fmt::Display for TextComparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |key: &ComparedKey| ScalarValue::BinaryView(Some(key.key().to_vec())).to_string();
        for (no, test) in self.tests.iter().enumerate() {
            let and = if no > 0 { " AND " } else { "" };
            write!(f, "{and}{}({}, {})", sort_key::NAME, self.text, self.collation)?;
            let keys: Vec<String> = test.keys.iter().map(shown).collect();
            match test.wanted {
                Wanted::Operator(operator) => write!(f, " {operator} {}", keys.join(", "))?,
                Wanted::In { negated } => {
                    write!(f, "{} IN ({})", if negated { " NOT" } else { "" }, keys.join(", "))?;
                }
            }
        }
        Ok(())
    }
}

impl PhysicalExpr for TextComparison {
    fn return_field(&self, _: &Schema) -> Result<FieldRef> {
        // As the comparison of sort keys, which the function may make NULL.
        Ok(Arc::new(Field::new(self.to_string(), DataType::Boolean, true)))
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        match self.text.evaluate(batch)? {
            ColumnarValue::Array(texts) => Ok(ColumnarValue::Array(Arc::new(self.of_texts(&texts)?))),
            ColumnarValue::Scalar(text) => {
                let result = self.of_texts(&text.to_array()?)?;
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?))
            }
        }
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.text]
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        match <[Arc<dyn PhysicalExpr>; 1]>::try_from(children) {
            Ok([text]) => Ok(Arc::new(TextComparison { text, ..self.as_ref().clone() })),
            Err(_) => internal_err!("one text is compared with constants"),
        }
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Replaces comparisons of sort keys with constants in filters and projections.
#[derive(Debug)]
pub(crate) struct DirectComparisonRule;

impl PhysicalOptimizerRule for DirectComparisonRule {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            if let Some(filter) = node.downcast_ref::<FilterExec>() {
                let predicate = with_direct_comparisons(Arc::clone(filter.predicate()))?;
                if predicate.transformed {
                    let filter = FilterExecBuilder::from(filter).with_predicate(predicate.data).build()?;
                    return Ok(Transformed::yes(Arc::new(filter) as Arc<dyn ExecutionPlan>));
                }
            } else if let Some(projection) = node.downcast_ref::<ProjectionExec>() {
                let mut transformed = false;
                let outputs = projection.expr().iter().map(|output| {
                    let direct = with_direct_comparisons(Arc::clone(&output.expr))?;
                    transformed |= direct.transformed;
                    Ok(ProjectionExpr { expr: direct.data, alias: output.alias.clone() })
                });
                let outputs = outputs.collect::<Result<Vec<_>>>()?;
                if transformed {
                    let projection = ProjectionExec::try_new(outputs, Arc::clone(projection.input()))?;
                    return Ok(Transformed::yes(Arc::new(projection) as Arc<dyn ExecutionPlan>));
                }
            }
            Ok(Transformed::no(node))
        })
        .data()
    }

    fn name(&self) -> &str {
        "DirectComparisons"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::StringViewArray;
    use datafusion::physical_expr::expressions::{Column, in_list};

    use super::*;

    const COLLATION: &str = "utf8mb4_general_ci";

    fn key(text: &str) -> Arc<dyn PhysicalExpr> {
        let mut key = Vec::new();
        sort_key::collation(&ScalarValue::from(COLLATION)).unwrap().sort_key(text, &mut key);
        Arc::new(Literal::new(ScalarValue::BinaryView(Some(key))))
    }

    fn key_of_column(schema: &Schema) -> Arc<dyn PhysicalExpr> {
        let name: Arc<dyn PhysicalExpr> = Arc::new(Literal::new(ScalarValue::from(COLLATION)));
        let arguments = vec![Arc::new(Column::new("t", 0)) as Arc<dyn PhysicalExpr>, name];
        let function = Arc::new(sort_key::function());
        let options = Arc::new(ConfigOptions::default());
        Arc::new(ScalarFunctionExpr::try_new(function, arguments, schema, options).unwrap())
    }

    fn compared(
        left: &Arc<dyn PhysicalExpr>,
        operator: Operator,
        right: &Arc<dyn PhysicalExpr>,
    ) -> Arc<dyn PhysicalExpr> {
        Arc::new(BinaryExpr::new(Arc::clone(left), operator, Arc::clone(right)))
    }

    #[test]
    fn direct_comparisons_give_what_those_of_keys_give() {
        let texts = StringViewArray::from(vec![
            Some("a"),
            None,
            Some("B  "),
            Some("b"),
            Some("Ärger"),
            Some(""),
            Some("b\tc"),
            Some("c"),
            Some("東京"),
        ]);
        let schema = Arc::new(Schema::new(vec![Field::new("t", DataType::Utf8View, true)]));
        let batch = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(texts)]).unwrap();
        let (column, b, umlaut) = (key_of_column(&schema), key("b"), key("ä"));
        use Operator::{And, Eq, Gt, GtEq, Lt, LtEq, NotEq};
        let mut expressions = Vec::new();
        for operator in [Eq, NotEq, Lt, LtEq, Gt, GtEq] {
            expressions.push(compared(&column, operator, &b));
            expressions.push(compared(&umlaut, operator, &column));
            expressions.push(compared(
                &compared(&column, operator, &umlaut),
                And,
                &compared(&column, Lt, &b),
            ));
        }
        for negated in [false, true] {
            let keys = vec![Arc::clone(&b), key("東京 "), key("arger")];
            expressions.push(in_list(Arc::clone(&column), keys, &negated, &schema).unwrap());
        }
        for expression in expressions {
            let direct = with_direct_comparisons(Arc::clone(&expression)).unwrap();
            assert!(direct.data.is::<TextComparison>(), "{expression}");
            let results = [&expression, &direct.data]
                .map(|own| own.evaluate(&batch).unwrap().into_array(batch.num_rows()).unwrap());
            assert_eq!(&results[0], &results[1], "{expression}");
            let [field, same] = [&expression, &direct.data].map(|own| own.return_field(&schema).unwrap());
            assert_eq!((field.data_type(), field.is_nullable()), (same.data_type(), same.is_nullable()));
        }
    }

    #[test]
    fn comparisons_without_a_constant_stay() {
        let schema = Schema::new(vec![Field::new("t", DataType::Utf8View, true)]);
        let column = key_of_column(&schema);
        let null: Arc<dyn PhysicalExpr> = Arc::new(Literal::new(ScalarValue::BinaryView(None)));
        for expression in [compared(&column, Operator::Eq, &column), compared(&column, Operator::Eq, &null)] {
            assert!(!with_direct_comparisons(expression).unwrap().transformed);
        }
    }
}
