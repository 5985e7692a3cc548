//! UNION, EXCEPT and INTERSECT of columns of several types: each becomes the servers' common type of them.
//!
//! Types that the engine brings together as the servers do are left to it.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Column, Result};
use datafusion::logical_expr::{Distinct, Expr, Join, LogicalPlan, Projection};

use super::bound::{BoundCall, input};
use super::field::kind_of;
use super::rule::Inputs;
use super::statement::StatementRules;
use super::unsupported;
use crate::expression::{Kind, NONE, Refusal, Typed, branch};

/// The name in messages.
const NAME: &str = "a set operation";

/// The inputs of a UNION.
pub(super) fn united(inputs: Vec<Arc<LogicalPlan>>, of: &StatementRules) -> Result<Vec<Arc<LogicalPlan>>> {
    common(inputs, of, |left, right| left.is_numeric() && right.is_numeric())
}

/// An EXCEPT or INTERSECT, which is a join of rows that are equal.
pub(super) fn joined(mut join: Join, of: &StatementRules) -> Result<LogicalPlan> {
    let is_distinct = matches!(join.left.as_ref(), LogicalPlan::Distinct(Distinct::All(_)));
    let left = match Arc::unwrap_or_clone(join.left) {
        LogicalPlan::Distinct(Distinct::All(input)) => input,
        other => Arc::new(other),
    };
    let mut sides =
        common(vec![left, join.right], of, |left, right| left.is_integer() && right.is_integer())?
            .into_iter();
    let (Some(left), Some(right)) = (sides.next(), sides.next()) else {
        return datafusion::common::internal_err!("a set operation of two sides");
    };
    join.left = match is_distinct {
        true => Arc::new(LogicalPlan::Distinct(Distinct::All(left))),
        false => left,
    };
    join.right = right;
    LogicalPlan::Join(join).recompute_schema()
}

/// The inputs with columns of common types, but for those of which `is_known` says that the engine does it.
fn common(
    inputs: Vec<Arc<LogicalPlan>>,
    of: &StatementRules,
    is_known: impl Fn(&DataType, &DataType) -> bool,
) -> Result<Vec<Arc<LogicalPlan>>> {
    let count = inputs.first().map_or(0, |input| input.schema().fields().len());
    if inputs.iter().any(|input| input.schema().fields().len() != count) {
        return Ok(inputs);
    }
    let mut targets = Vec::with_capacity(count);
    for column in 0..count {
        targets.push(target(&inputs, column, of, &is_known)?);
    }
    if targets.iter().all(Option::is_none) {
        return Ok(inputs);
    }
    inputs.into_iter().map(|input| converted(input, &targets, of)).collect()
}

/// The common type of a column; `None` if the engine's will do.
fn target(
    inputs: &[Arc<LogicalPlan>],
    column: usize,
    of: &StatementRules,
    is_known: &impl Fn(&DataType, &DataType) -> bool,
) -> Result<Option<Kind>> {
    let mut common: Option<(DataType, Kind)> = None;
    let (mut differs, mut has_bit) = (false, false);
    for input in inputs {
        let field = input.schema().field(column);
        let own = field.data_type().clone();
        if own == DataType::Null {
            continue;
        }
        let Ok(kind) = kind_of(field) else { return Ok(None) };
        let kind = typed(kind, of).kind;
        has_bit |= matches!(kind, Kind::Bit { .. });
        common = Some(match common {
            None => (own, kind),
            Some((with, kind_of_others)) => {
                let is_choice = |kind: &Kind| matches!(kind, Kind::Choice(_));
                let is_known = is_known(&own, &with) || own.is_string() && with.is_string();
                differs |= own != with && !is_known;
                let is_time = |kind: &Kind| matches!(kind, Kind::DateTime { .. } | Kind::Time { .. });
                // Of several fractions of seconds the longest is shown.
                differs |= kind != kind_of_others
                    && (is_choice(&kind)
                        || is_choice(&kind_of_others)
                        || is_time(&kind) && is_time(&kind_of_others));
                if has_bit && kind != kind_of_others {
                    return Err(unsupported(NAME, &Refusal::new("a BIT with another type")));
                }
                let merged = kind_of_others.common(&kind, of.rules.mysql);
                match merged {
                    Ok(merged) => (own, merged),
                    Err(refusal) if differs => return Err(unsupported(NAME, &refusal)),
                    Err(_) => return Ok(None),
                }
            }
        });
    }
    match common {
        Some((_, Kind::Text(own))) if differs && own.strength == NONE => {
            Err(unsupported(NAME, &Refusal::new("Illegal mix of collations for operation 'UNION'")))
        }
        Some((_, kind)) if differs => Ok(Some(kind)),
        _ => Ok(None),
    }
}

/// The one input of a conversion.
fn typed(kind: Kind, of: &StatementRules) -> Typed {
    input(0, kind, &of.rules)
}

fn converted(
    plan: Arc<LogicalPlan>,
    targets: &[Option<Kind>],
    of: &StatementRules,
) -> Result<Arc<LogicalPlan>> {
    let columns = plan.schema().iter().zip(targets).map(|((qualifier, field), target)| {
        let column = Expr::Column(Column::from((qualifier, field)));
        let Some(target) = target else { return Ok(column) };
        let kind = match field.data_type() {
            DataType::Null => Kind::Null,
            _ => kind_of(field).map_err(|refusal| unsupported(NAME, &refusal))?,
        };
        let typed = match kind {
            Kind::Null => Typed { kind: target.clone(), ..typed(Kind::Null, of) },
            kind => branch(typed(kind, of), target, false),
        };
        let inputs = Inputs { expressions: vec![column], parts: Vec::new() };
        let bound = BoundCall::expression(NAME, typed, inputs, &of.query);
        Ok(bound.alias_qualified(qualifier.cloned(), field.name()))
    });
    let columns = columns.collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(LogicalPlan::Projection(Projection::try_new(columns, plan)?)))
}
