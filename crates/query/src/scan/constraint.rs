//! What predicates say about single columns.
//!
//! A constraint never says more than its predicate: predicates are evaluated on the rows again, so it may let through
//! too many, never too few.

use std::collections::BTreeMap;
use std::ops::Bound;

use datafusion::common::ScalarValue;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};

use crate::collation::{collation_of, keyed_column, keyed_text};
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
    /// Whether the bounds are in the order of the column's collation.
    pub collated: bool,
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

    /// Both hold. Where both bound the same side, the first is kept: predicates that repeat a bound are rare, and
    /// either is right.
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
        // Bounds in two orders do not make a range.
        if self.lower.is_none() && self.upper.is_none() {
            self.collated = other.collated;
        }
        if self.collated == other.collated {
            self.lower = self.lower.take().or(other.lower);
            self.upper = self.upper.take().or(other.upper);
        }
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
            if let Some(side) = Side::of(relation, left) {
                return Some((side.column, side.bounded(comparison(*op, side.literal(relation, right)?)?)));
            }
            let side = Side::of(relation, right)?;
            Some((side.column, side.bounded(comparison(op.swap()?, side.literal(relation, left)?)?)))
        }
        Expr::Between(between) if !between.negated => {
            let side = Side::of(relation, &between.expr)?;
            let (low, high) = (side.literal(relation, &between.low)?, side.literal(relation, &between.high)?);
            let mut constraint = Constraint::lower(Bound::Included(low));
            constraint.upper = Some(Bound::Included(high));
            Some((side.column, side.bounded(constraint)))
        }
        Expr::InList(list) if !list.negated && list.list.len() <= MAX_VALUES => {
            let side = Side::of(relation, &list.expr)?;
            let values = list.list.iter().filter_map(|item| match item {
                // NULL in a list equals nothing.
                Expr::Literal(value, _) if value.is_null() => None,
                item => Some(side.literal(relation, item)),
            });
            Some((side.column, Constraint::values(values.collect::<Option<Vec<_>>>()?)))
        }
        Expr::IsNull(inner) => {
            let column = column_no(relation, inner)?;
            let field = relation.schema().field(column);
            let null = ScalarValue::try_from(field.data_type()).ok().filter(|_| field.is_nullable())?;
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

/// A column that is compared with literals.
struct Side {
    column: usize,
    /// Whether sort keys are compared, by the column's own collation.
    keyed: bool,
}

impl Side {
    fn of(relation: &InnodbRelation, expression: &Expr) -> Option<Side> {
        if let Some(column) = column_no(relation, expression) {
            return Some(Side { column, keyed: false });
        }
        let (column, collation) = keyed_column(expression)?;
        let column = relation.schema().index_of(&column.name).ok()?;
        let own = collation_of(relation.schema().field(column))?;
        (own == collation).then_some(Side { column, keyed: true })
    }

    /// The value of the column that a literal means.
    fn literal(&self, relation: &InnodbRelation, expression: &Expr) -> Option<ScalarValue> {
        match (self.keyed, expression) {
            (true, expression) => literal(
                relation,
                self.column,
                &ScalarValue::Utf8View(Some(keyed_text(expression)?.to_string())),
            ),
            (false, Expr::Literal(value, _)) => literal(relation, self.column, value),
            _ => None,
        }
    }

    fn bounded(&self, constraint: Constraint) -> Constraint {
        Constraint { collated: self.keyed, ..constraint }
    }
}

/// The literal, if it is of the column's type (or a string for a string): planning brings it there where nothing is
/// lost.
fn literal(relation: &InnodbRelation, column: usize, value: &ScalarValue) -> Option<ScalarValue> {
    let wanted = relation.schema().field(column).data_type();
    let given = value.data_type();
    let alike = given == *wanted
        || (given.is_string() && wanted.is_string())
        || (given.is_binary() && wanted.is_binary());
    (alike && !value.is_null()).then(|| value.clone())
}
