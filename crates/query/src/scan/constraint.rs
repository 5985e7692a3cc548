//! What predicates say about single columns.
//!
//! A constraint never says more than its predicate: predicates are evaluated on the rows again, so it may let through too many, never too few.

use std::collections::BTreeMap;
use std::ops::Bound;

use datafusion::common::ScalarValue;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};

use crate::relation::InnodbRelation;

/// Most values of a column that are looked up one by one.
const MAX_VALUES: usize = 10_000;

/// Values a column may have.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Constraint {
    /// One of these (NULL among them if the predicate asks for it).
    pub values: Option<Vec<ScalarValue>>,
    /// Not less than.
    pub lower: Option<Bound<ScalarValue>>,
    /// Not more than.
    pub upper: Option<Bound<ScalarValue>>,
    /// Which of the predicates it was taken from.
    pub predicates: Vec<usize>,
}

/// Constraints by column, of predicates that must all hold.
pub(super) fn constraints(relation: &InnodbRelation, predicates: &[Expr]) -> BTreeMap<usize, Constraint> {
    let mut found: BTreeMap<usize, Constraint> = BTreeMap::new();
    for (no, predicate) in predicates.iter().enumerate() {
        for part in split_conjunction(predicate) {
            if let Some((column, constraint)) = constraint(relation, part) {
                let entry = found.entry(column).or_default();
                entry.narrow(constraint);
                if entry.predicates.last() != Some(&no) {
                    entry.predicates.push(no);
                }
            }
        }
    }
    found
}

impl Constraint {
    fn values(values: Vec<ScalarValue>) -> Constraint {
        Constraint { values: Some(values), ..Constraint::default() }
    }

    fn lower(bound: Bound<ScalarValue>) -> Constraint {
        Constraint { lower: Some(bound), ..Constraint::default() }
    }

    fn upper(bound: Bound<ScalarValue>) -> Constraint {
        Constraint { upper: Some(bound), ..Constraint::default() }
    }

    /// Both hold. Where both bound the same side, the first is kept: predicates that repeat a bound are rare, and either is right.
    fn narrow(&mut self, other: Constraint) {
        match (&mut self.values, other.values) {
            // Only of one spelling: '5' in two string types is the same value but not the same scalar.
            (Some(own), Some(others)) => {
                let spelling = own.iter().chain(&others).map(ScalarValue::data_type).next();
                if own.iter().chain(&others).all(|value| Some(value.data_type()) == spelling) {
                    own.retain(|value| others.contains(value));
                }
            }
            (own @ None, others) => *own = others,
            (Some(_), None) => {}
        }
        self.lower = self.lower.take().or(other.lower);
        self.upper = self.upper.take().or(other.upper);
    }
}

fn constraint(relation: &InnodbRelation, predicate: &Expr) -> Option<(usize, Constraint)> {
    match predicate {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
            let (column, left) = constraint(relation, left)?;
            let (same, right) = constraint(relation, right)?;
            let mut values = left.values.filter(|_| column == same)?;
            values.extend(right.values?);
            values.dedup();
            (values.len() <= MAX_VALUES).then(|| (column, Constraint::values(values)))
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            if let (Some(column), Expr::Literal(value, _)) = (column_no(relation, left), right.as_ref()) {
                return Some((column, comparison(*op, literal(relation, column, value)?)?));
            }
            if let (Expr::Literal(value, _), Some(column)) = (left.as_ref(), column_no(relation, right)) {
                return Some((column, comparison(op.swap()?, literal(relation, column, value)?)?));
            }
            None
        }
        Expr::Between(between) if !between.negated => {
            let column = column_no(relation, &between.expr)?;
            let (Expr::Literal(low, _), Expr::Literal(high, _)) =
                (between.low.as_ref(), between.high.as_ref())
            else {
                return None;
            };
            let mut constraint = Constraint::lower(Bound::Included(literal(relation, column, low)?));
            constraint.upper = Some(Bound::Included(literal(relation, column, high)?));
            Some((column, constraint))
        }
        Expr::InList(list) if !list.negated && list.list.len() <= MAX_VALUES => {
            let column = column_no(relation, &list.expr)?;
            let values = list.list.iter().filter_map(|item| match item {
                // NULL in a list equals nothing.
                Expr::Literal(value, _) if value.is_null() => None,
                Expr::Literal(value, _) => Some(literal(relation, column, value)),
                _ => Some(None),
            });
            Some((column, Constraint::values(values.collect::<Option<Vec<_>>>()?)))
        }
        Expr::IsNull(inner) => {
            let column = column_no(relation, inner)?;
            let field = relation.schema().field(column);
            // A zero date is stored as itself but shown as NULL, so an index does not have it among its NULLs.
            let plain = field.is_nullable() && !field.data_type().is_temporal();
            let null = ScalarValue::try_from(field.data_type()).ok().filter(|_| plain)?;
            Some((column, Constraint::values(vec![null])))
        }
        _ => None,
    }
}

fn comparison(operator: Operator, value: ScalarValue) -> Option<Constraint> {
    Some(match operator {
        Operator::Eq => Constraint::values(vec![value]),
        Operator::Lt => Constraint::upper(Bound::Excluded(value)),
        Operator::LtEq => Constraint::upper(Bound::Included(value)),
        Operator::Gt => Constraint::lower(Bound::Excluded(value)),
        Operator::GtEq => Constraint::lower(Bound::Included(value)),
        _ => return None,
    })
}

fn column_no(relation: &InnodbRelation, expression: &Expr) -> Option<usize> {
    match expression {
        Expr::Column(column) => relation.schema().index_of(&column.name).ok(),
        _ => None,
    }
}

/// The literal, if it is of the column's type (or a string for a string): planning brings it there where nothing is lost.
fn literal(relation: &InnodbRelation, column: usize, value: &ScalarValue) -> Option<ScalarValue> {
    let wanted = relation.schema().field(column).data_type();
    let given = value.data_type();
    let alike = given == *wanted
        || (given.is_string() && wanted.is_string())
        || (given.is_binary() && wanted.is_binary());
    (alike && !value.is_null()).then(|| value.clone())
}
