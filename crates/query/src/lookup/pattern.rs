//! Which hash joins can be look-up joins, and through which index.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::common::{JoinSide, NullEquality, Result};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{BinaryExpr, CastExpr, Column, Literal};
use datafusion::physical_expr::utils::split_conjunction;
use datafusion::physical_expr::{PhysicalExpr, PhysicalExprRef, ScalarFunctionExpr};
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::joins::utils::build_join_schema;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use tanada_innodb::schema::IndexKind;
use tanada_innodb::{Index, IndexNo};

use super::assembly::{Equality, Residual, SideColumn};
use super::estimate::{Estimate, column_statistics};
use super::exec::JoinSpec;
use super::inner::{InnerPlan, substitute};
use super::key::{exact_type, searchable_type, widens};
use super::kind::Kind;
use super::source::{InnodbSource, KeyPart};
use crate::collation::{SORT_KEY, collation_of};
use crate::relation::InnodbRelation;
use crate::scan::RelationScanExec;

/// The inner side of a join: a scan, and what is done with its rows, over the relation's columns.
#[derive(Debug)]
pub(super) struct InnerSide<'a> {
    pub(super) scan: &'a RelationScanExec,
    pub(super) plan: InnerPlan,
}

/// A look-up that can replace a hash join.
#[derive(Debug)]
pub(super) struct Candidate<'a> {
    pub(super) inner: InnerSide<'a>,
    pub(super) kind: Kind,
    pub(super) outer_side: JoinSide,
    pub(super) index: IndexNo,
    /// Key parts that are searched.
    pub(super) parts: usize,
    pub(super) source: Arc<InnodbSource>,
    pub(super) equalities: Vec<Equality>,
    /// Whether the join has a predicate beyond its equalities.
    pub(super) residual: bool,
}

/// An equality of the join, seen from the inner side.
struct Condition {
    outer: PhysicalExprRef,
    /// The relation's column, if it is compared as it is stored or as a wider number.
    column: Option<usize>,
    /// Whether sort keys of the column's collation are compared.
    keyed: bool,
    /// The output of the inner side.
    output: usize,
}

/// All ways to look up what `join` joins.
pub(super) fn candidates(join: &HashJoinExec) -> Vec<Candidate<'_>> {
    let unfit =
        join.null_equality() != NullEquality::NullEqualsNothing || join.null_aware || join.fetch().is_some();
    if unfit {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (outer_side, inner) in [(JoinSide::Left, join.right()), (JoinSide::Right, join.left())] {
        if let Some(kind) = Kind::of(*join.join_type(), outer_side) {
            found.extend(candidates_of_side(join, kind, outer_side, inner));
        }
    }
    found
}

fn candidates_of_side<'a>(
    join: &'a HashJoinExec,
    kind: Kind,
    outer_side: JoinSide,
    inner: &'a Arc<dyn ExecutionPlan>,
) -> Vec<Candidate<'a>> {
    let relation = match inner_side(inner) {
        Some(inner) => Arc::clone(inner.scan.relation()),
        None => return Vec::new(),
    };
    let indexes = &relation.table().definition().indexes;
    let candidate = |(no, index): (usize, &Index)| {
        // Made anew for each index: conditions may add outputs of their own.
        let mut side = inner_side(inner)?;
        let conditions = conditions(join, outer_side, &mut side.plan, relation.schema())?;
        let (parts, exact) =
            key_parts(&relation, IndexNo(no), index, &conditions, &side.plan, join, outer_side)?;
        let rechecked = conditions.iter().enumerate().filter(|(no, _)| !exact.contains(no));
        let equalities: Vec<Equality> =
            rechecked.map(|(no, condition)| Equality { outer: no, inner: condition.output }).collect();
        // A found row is to come once: so its key alone must decide, not which of the outer rows it is compared with.
        if kind == Kind::Found && (!equalities.is_empty() || join.filter().is_some()) {
            return None;
        }
        let count = parts.len();
        let source = InnodbSource::new(Arc::clone(&relation), IndexNo(no), parts, side.plan.inputs()).ok()?;
        Some(Candidate {
            inner: side,
            kind,
            outer_side,
            index: IndexNo(no),
            parts: count,
            source: Arc::new(source),
            equalities,
            residual: join.filter().is_some(),
        })
    };
    indexes.iter().enumerate().filter_map(candidate).collect()
}

/// Brings a pile of projections and filters over a scan into one form; `None` if there is anything else in it.
fn inner_side(plan: &Arc<dyn ExecutionPlan>) -> Option<InnerSide<'_>> {
    if plan.fetch().is_some() {
        return None;
    }
    if let Some(scan) = plan.downcast_ref::<RelationScanExec>() {
        if scan.limit().is_some() {
            return None;
        }
        let schema = scan.relation().schema();
        let output = |column: &usize| -> Option<Arc<dyn PhysicalExpr>> {
            Some(Arc::new(Column::new(schema.fields().get(*column)?.name(), *column)))
        };
        let outputs =
            scan.projection().iter().map(|column| Some(Some(output(column)?))).collect::<Option<_>>()?;
        let predicates = scan.filters().to_vec();
        return steady(&predicates).then_some(InnerSide { scan, plan: InnerPlan { predicates, outputs } });
    }
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        let mut side = inner_side(projection.input())?;
        let expressions: Vec<_> = projection.expr().iter().map(|output| Arc::clone(&output.expr)).collect();
        let outputs = expressions.iter().map(|expression| side.plan.resolved(expression).map(Some));
        side.plan.outputs = outputs.collect::<Option<_>>()?;
        return steady(&expressions).then_some(side);
    }
    if let Some(filter) = plan.downcast_ref::<FilterExec>() {
        let mut side = inner_side(filter.input())?;
        let predicate = side.plan.resolved(filter.predicate())?;
        side.plan.predicates.push(predicate);
        if let Some(projection) = filter.projection() {
            let outputs = projection.iter().map(|no| side.plan.outputs.get(*no).cloned());
            side.plan.outputs = outputs.collect::<Option<_>>()?;
        }
        return steady(&side.plan.predicates).then_some(side);
    }
    // These change which stream a row comes in, which a look-up does not have.
    let passes = plan.is::<CoalescePartitionsExec>() || plan.is::<RepartitionExec>();
    match (passes, plan.children().as_slice()) {
        (true, [input]) => inner_side(input),
        _ => None,
    }
}

/// Whether expressions may be evaluated on fewer rows, or more often, than they were written for.
fn steady(expressions: &[Arc<dyn PhysicalExpr>]) -> bool {
    !expressions.iter().any(is_volatile)
}

impl InnerPlan {
    /// An expression over the outputs as one over the inputs.
    fn resolved(&self, expression: &Arc<dyn PhysicalExpr>) -> Option<Arc<dyn PhysicalExpr>> {
        substitute(expression, &|column| self.outputs.get(column.index()).cloned().flatten()).ok()
    }
}

/// The equalities of a join; an inner side that is no plain output becomes one more output.
fn conditions(
    join: &HashJoinExec,
    outer_side: JoinSide,
    plan: &mut InnerPlan,
    schema: &Schema,
) -> Option<Vec<Condition>> {
    let mut conditions = Vec::with_capacity(join.on().len());
    for (left, right) in join.on() {
        let (outer, inner) = if outer_side == JoinSide::Left { (left, right) } else { (right, left) };
        let resolved = plan.resolved(inner)?;
        let output = match inner.downcast_ref::<Column>() {
            Some(column) => column.index(),
            None => {
                plan.outputs.push(Some(Arc::clone(&resolved)));
                plan.outputs.len() - 1
            }
        };
        let keyed = keyed_column(&resolved, schema);
        let compared = resolved.downcast_ref::<CastExpr>().map_or(&resolved, CastExpr::expr);
        let column = keyed.or_else(|| compared.downcast_ref::<Column>().map(Column::index));
        conditions.push(Condition { outer: Arc::clone(outer), column, keyed: keyed.is_some(), output });
    }
    steady(&join.on().iter().flat_map(|(l, r)| [Arc::clone(l), Arc::clone(r)]).collect::<Vec<_>>())
        .then_some(conditions)
}

/// The longest prefix of an index whose parts have values: from the outer row, or from a constant that a predicate asks
/// for. At least one comes from the outer row. Also, which conditions the index decides by itself.
fn key_parts(
    relation: &InnodbRelation,
    no: IndexNo,
    index: &Index,
    conditions: &[Condition],
    plan: &InnerPlan,
    join: &HashJoinExec,
    outer_side: JoinSide,
) -> Option<(Vec<KeyPart>, Vec<usize>)> {
    if index.kind != IndexKind::BTree {
        return None;
    }
    let outer = if outer_side == JoinSide::Left { join.left() } else { join.right() };
    let mut parts = Vec::new();
    let mut exact = Vec::new();
    for (position, part) in index.parts.iter().enumerate() {
        if !relation.table().searchable(no, position) {
            break;
        }
        let stored = relation.schema().fields().get(part.column.0)?.data_type().clone();
        let condition = conditions.iter().position(|condition| condition.column == Some(part.column.0));
        match condition {
            Some(condition) => {
                let value = conditions[condition].outer.data_type(&outer.schema()).ok()?;
                if conditions[condition].keyed {
                    if value != DataType::BinaryView || !relation.table().searchable_by_sort_key(no, position)
                    {
                        break;
                    }
                    exact.push(condition);
                    parts.push(KeyPart::Outer(condition));
                    continue;
                }
                if value != stored && !widens(&stored, &value) || !searchable_type(&value) {
                    break;
                }
                if part.prefix_bytes.is_none() && exact_type(&value) {
                    exact.push(condition);
                }
                parts.push(KeyPart::Outer(condition));
            }
            None => match constant(plan, part.column.0, relation.schema()) {
                Some(value)
                    if value.data_type() == DataType::BinaryView
                        && relation.table().searchable_by_sort_key(no, position) =>
                {
                    parts.push(KeyPart::Constant(value));
                }
                Some(value) if value.data_type() == stored && searchable_type(&stored) => {
                    parts.push(KeyPart::Constant(value));
                }
                _ => break,
            },
        }
    }
    parts.iter().any(|part| matches!(part, KeyPart::Outer(_))).then_some((parts, exact))
}

/// The column whose sort key, in its own collation, an expression is.
fn keyed_column(expression: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Option<usize> {
    let call = expression.downcast_ref::<ScalarFunctionExpr>().filter(|call| call.name() == SORT_KEY)?;
    let [column, name] = call.args() else { return None };
    let column = column.downcast_ref::<Column>()?.index();
    let name = name.downcast_ref::<Literal>()?.value().try_as_str().flatten()?;
    let own = collation_of(schema.fields().get(column)?)?;
    (own == name).then_some(column)
}

/// The constant that a predicate compares a column with.
fn constant(plan: &InnerPlan, column: usize, schema: &Schema) -> Option<datafusion::common::ScalarValue> {
    let is_column = |side: &Arc<dyn PhysicalExpr>| {
        let plain = side.downcast_ref::<Column>().map(Column::index);
        plain.or_else(|| keyed_column(side, schema)) == Some(column)
    };
    for predicate in plan.predicates.iter().flat_map(split_conjunction) {
        let Some(comparison) = predicate.downcast_ref::<BinaryExpr>() else { continue };
        if *comparison.op() != Operator::Eq {
            continue;
        }
        let sides = [(comparison.left(), comparison.right()), (comparison.right(), comparison.left())];
        for (side, other) in sides {
            if let Some(literal) = other.downcast_ref::<Literal>()
                && is_column(side)
                && !literal.value().is_null()
            {
                return Some(literal.value().clone());
            }
        }
    }
    None
}

impl Candidate<'_> {
    /// What the look-up join is made of.
    pub(super) fn spec(&self, join: &HashJoinExec, priority: u8, estimate: Estimate) -> Result<JoinSpec> {
        let inner = if self.outer_side == JoinSide::Left { join.right() } else { join.left() };
        let (left, right) = (join.left().schema(), join.right().schema());
        let (_, indices) = build_join_schema(&left, &right, join.join_type());
        let side_column = |index: &datafusion::physical_plan::joins::utils::ColumnIndex| match index.side {
            JoinSide::None => SideColumn::Matched,
            side if side == self.outer_side => SideColumn::Outer(index.index),
            _ => SideColumn::Inner(index.index),
        };
        let keys = join.on().iter().map(|(left, right)| match self.outer_side {
            JoinSide::Left => Arc::clone(left),
            _ => Arc::clone(right),
        });
        Ok(JoinSpec {
            join_type: *join.join_type(),
            kind: self.kind,
            keys: keys.collect(),
            inner: self.inner.plan.over(&self.inner.plan.inputs())?,
            equalities: self.equalities.clone(),
            residual: join.filter().map(|filter| Residual {
                expression: Arc::clone(filter.expression()),
                columns: filter.column_indices().iter().map(side_column).collect(),
                schema: Arc::clone(filter.schema()),
            }),
            columns: indices.iter().map(side_column).collect(),
            schema: Arc::clone(join.join_schema()),
            projection: join.projection.as_ref().map(|projection| projection.to_vec()),
            priority,
            estimate,
            inner_statistics: column_statistics(inner),
        })
    }
}
