//! A subquery over all values of its outer columns at once.
//!
//! The distinct values are a table with a number for each. It is joined to the leaves of the subquery that need it,
//! and goes up with the rows: a filter reads its columns instead of the outer ones, groups and windows are taken for
//! each number, a LIMIT counts the rows of each (Neumann and Kemper, Unnesting Arbitrary Queries).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::common::{Column, DFSchema, Result};
use datafusion::datasource::provider_as_source;
use datafusion::functions_aggregate::first_last::first_value_udaf;
use datafusion::functions_window::row_number::row_number;
use datafusion::logical_expr::expr::Sort as SortKey;
use datafusion::logical_expr::utils::split_conjunction_owned;
use datafusion::logical_expr::{
    Aggregate, Distinct, Expr, ExprFunctionExt, Extension, FetchType, Filter, Join, JoinType, Limit,
    LogicalPlan, LogicalPlanBuilder, Projection, SkipType, Union, UserDefinedLogicalNodeCore, Window, ident,
    lit, when,
};

use super::apply::Apply;
use super::attach::aggregate;
use super::columns::{all, bound, fresh, has_outer, is_correlated};
use super::exec::DomainTable;
use super::rule::unsupported;
use super::values::of_no_rows;
use crate::json_table::JsonRows;

/// The distinct values of the outer columns of a subquery.
pub(super) struct Domain {
    id: u64,
    /// The outer columns, what they are over the rows outside, and what their columns are called.
    outer: Vec<(Expr, Expr, String)>,
    schema: SchemaRef,
}

/// The column of the number.
const NUMBER: &str = "__number";

/// A plan with the values beside its columns.
pub(super) struct Over {
    pub plan: LogicalPlan,
    /// The number of the values.
    pub id: Column,
    /// The columns of the values, in the order of the domain's.
    values: Vec<Column>,
}

impl Domain {
    /// The outer columns of `subquery`, whose own are those of `input`; others are of queries further out.
    pub(super) fn of(subquery: &LogicalPlan, input: &DFSchema) -> Result<Domain> {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let mut fields: Vec<FieldRef> = vec![Arc::new(Field::new(NUMBER, DataType::UInt64, false))];
        let mut outer = Vec::new();
        for column in subquery.all_out_ref_exprs() {
            let Expr::OuterReferenceColumn(field, inner) = &column else { continue };
            let name = fresh("outer");
            fields.push(Arc::new(field.as_ref().clone().with_name(&name).with_nullable(true)));
            let key = match input.has_column(inner) {
                true => Expr::Column(inner.clone()),
                false => column.clone(),
            };
            outer.push((column, key, name));
        }
        let id = NUMBERS.fetch_add(1, Ordering::Relaxed);
        Ok(Domain { id, outer, schema: Arc::new(Schema::new(fields)) })
    }

    pub(super) fn id(&self) -> u64 {
        self.id
    }

    /// Columns of the leaves.
    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The values over the rows outside.
    pub(super) fn keys(&self) -> Vec<Expr> {
        self.outer.iter().map(|(_, key, _)| key.clone()).collect()
    }

    fn leaf(&self) -> Result<Over> {
        let name = fresh("domain");
        let table = Arc::new(DomainTable::new(self.id, Arc::clone(&self.schema)));
        let plan = LogicalPlanBuilder::scan(name.as_str(), provider_as_source(table), None)?.build()?;
        let mut columns = plan.schema().columns().into_iter();
        let id = columns.next().unwrap_or_else(|| Column::new_unqualified(NUMBER));
        Ok(Over { plan, id, values: columns.collect() })
    }

    /// The expression with the values' columns instead of the outer ones.
    fn bind(&self, expression: Expr, values: &[Column]) -> Result<Expr> {
        bound(expression, &|outer| {
            let at = self.outer.iter().position(|(known, ..)| known == outer)?;
            values.get(at).cloned()
        })
    }

    /// The same under the name that the expression had.
    fn bind_named(&self, expression: Expr, values: &[Column]) -> Result<Expr> {
        if !is_correlated(&expression) {
            return Ok(expression);
        }
        let (qualifier, name) = expression.qualified_name();
        Ok(self.bind(expression.unalias(), values)?.alias_qualified(qualifier, name))
    }

    /// `plan` over all values.
    pub(super) fn over(&self, plan: &LogicalPlan) -> Result<Over> {
        if !has_outer(plan) {
            let leaf = self.leaf()?;
            let joined = LogicalPlanBuilder::from(leaf.plan).cross_join(plan.clone())?.build()?;
            return Ok(Over { plan: joined, ..leaf });
        }
        match plan {
            LogicalPlan::Filter(filter) => self.over_filter(filter),
            LogicalPlan::Projection(projection) => self.over_projection(projection),
            LogicalPlan::SubqueryAlias(alias) => {
                let over = self.over(&alias.input)?;
                let renamed = alias.input.schema().columns().into_iter().zip(alias.schema.columns());
                let outputs = renamed
                    .map(|(inner, outer)| Expr::Column(inner).alias_qualified(outer.relation, outer.name));
                over.project(outputs.collect())
            }
            LogicalPlan::Aggregate(aggregate) => self.over_aggregate(aggregate),
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => self.over(&sort.input),
            LogicalPlan::Sort(sort) => {
                let fetch = sort.fetch.map_or(i64::MAX, |rows| i64::try_from(rows).unwrap_or(i64::MAX));
                self.over_limit(&sort.input, &sort.expr, 0, Some(fetch))
            }
            LogicalPlan::Limit(limit) => self.over_rows(limit),
            LogicalPlan::Distinct(Distinct::All(input)) => {
                let columns = all(input);
                let over = self.over(input)?.project(columns)?;
                Ok(Over { plan: LogicalPlanBuilder::from(over.plan).distinct()?.build()?, ..over })
            }
            LogicalPlan::Join(join) => self.over_join(join),
            LogicalPlan::Union(union) => self.over_union(union),
            LogicalPlan::Window(window) => self.over_window(window),
            LogicalPlan::Extension(extension) => match extension.node.as_any().downcast_ref::<JsonRows>() {
                Some(rows) => self.over_json_rows(rows),
                None => self.over_apply(extension),
            },
            _ => Err(unsupported("a correlated subquery of this form is not run")),
        }
    }

    fn over_filter(&self, filter: &Filter) -> Result<Over> {
        let over = self.over(&filter.input)?;
        let predicate = self.bind(filter.predicate.clone(), &over.values)?;
        Ok(Over { plan: LogicalPlanBuilder::from(over.plan).filter(predicate)?.build()?, ..over })
    }

    fn over_projection(&self, projection: &Projection) -> Result<Over> {
        let over = self.over(&projection.input)?;
        let outputs = projection.expr.iter().cloned();
        let outputs = outputs.map(|output| self.bind_named(output, &over.values)).collect::<Result<_>>()?;
        over.project(outputs)
    }

    fn over_aggregate(&self, node: &Aggregate) -> Result<Over> {
        if node.group_expr.iter().any(|group| matches!(group, Expr::GroupingSet(_))) {
            return Err(unsupported("WITH ROLLUP in a correlated subquery is not run"));
        }
        let over = self.over(&node.input)?;
        let named = |expressions: &[Expr]| {
            let expressions = expressions.iter().cloned();
            expressions.map(|part| self.bind_named(part, &over.values)).collect::<Result<Vec<Expr>>>()
        };
        let (mut groups, mut aggregates) = (named(&node.group_expr)?, named(&node.aggr_expr)?);
        groups.push(Expr::Column(over.id.clone()));
        let columns: Vec<Expr> = node.schema.columns().into_iter().map(Expr::Column).collect();
        if !node.group_expr.is_empty() {
            // The values of a number are the same in all of its rows.
            let names: Vec<String> = over.values.iter().map(|_| fresh("outer")).collect();
            let values = over.values.iter().zip(&names);
            aggregates.extend(
                values.map(|(value, name)| {
                    aggregate(first_value_udaf(), Expr::Column(value.clone())).alias(name)
                }),
            );
            let plan = LogicalPlanBuilder::from(over.plan).aggregate(groups, aggregates)?.build()?;
            let values = names.into_iter().map(Column::new_unqualified).collect();
            return Over { plan, id: over.id, values }.project(columns);
        }
        // Without groups there is a row of no rows, too: it comes from the values.
        let plan = LogicalPlanBuilder::from(over.plan).aggregate(groups, aggregates)?.build()?;
        let leaf = self.leaf()?;
        let same = Expr::Column(leaf.id.clone()).eq(Expr::Column(over.id.clone()));
        let joined = LogicalPlanBuilder::from(leaf.plan).join_on(plan, JoinType::Left, [same])?.build()?;
        let is_empty = Expr::Column(over.id).is_null();
        let outputs = node.schema.columns().into_iter().zip(of_no_rows(node)?).map(|(column, none)| {
            let value = Expr::Column(column.clone());
            Ok(match none {
                None => value,
                Some(none) => when(is_empty.clone(), lit(none))
                    .otherwise(value)?
                    .alias_qualified(column.relation, column.name),
            })
        });
        let outputs = outputs.collect::<Result<Vec<Expr>>>()?;
        Over { plan: joined, id: leaf.id, values: leaf.values }.project(outputs)
    }

    fn over_rows(&self, limit: &Limit) -> Result<Over> {
        // Which rows there are is decided below a projection, where the order is.
        if let LogicalPlan::Projection(projection) = limit.input.as_ref() {
            let below = Limit { input: Arc::clone(&projection.input), ..limit.clone() };
            let input = Arc::new(LogicalPlan::Limit(below));
            let moved = Projection::try_new_with_schema(
                projection.expr.clone(),
                input,
                Arc::clone(&projection.schema),
            )?;
            return self.over_projection(&moved);
        }
        let (SkipType::Literal(skip), FetchType::Literal(fetch)) =
            (limit.get_skip_type()?, limit.get_fetch_type()?)
        else {
            return Err(unsupported("a LIMIT that is computed is not run in a correlated subquery"));
        };
        let number = |rows: usize| i64::try_from(rows).unwrap_or(i64::MAX);
        let (input, order) = match limit.input.as_ref() {
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => (&sort.input, sort.expr.clone()),
            _ => (&limit.input, Vec::new()),
        };
        self.over_limit(input, &order, number(skip), fetch.map(number))
    }

    /// The rows of each number from the `skip`th on, `fetch` of them.
    fn over_limit(
        &self,
        input: &LogicalPlan,
        order: &[SortKey],
        skip: i64,
        fetch: Option<i64>,
    ) -> Result<Over> {
        let columns = all(input);
        let over = self.over(input)?;
        let order: Vec<SortKey> = order
            .iter()
            .map(|key| {
                let expr = self.bind(key.expr.clone(), &over.values)?;
                Ok(SortKey { expr, ..key.clone() })
            })
            .collect::<Result<_>>()?;
        let name = fresh("row");
        let partition = vec![Expr::Column(over.id.clone())];
        let row = row_number().partition_by(partition);
        let row = if order.is_empty() { row } else { row.order_by(order) };
        let row = row.build()?.alias(&name);
        let mut kept = ident(&name).gt(lit(skip));
        if let Some(fetch) = fetch {
            kept = kept.and(ident(&name).lt_eq(lit(skip.saturating_add(fetch))));
        }
        let plan = LogicalPlanBuilder::from(over.plan).window(vec![row])?.filter(kept)?.build()?;
        Over { plan, ..over }.project(columns)
    }

    fn over_join(&self, join: &Join) -> Result<Over> {
        use JoinType::{Inner, Left, LeftAnti, LeftSemi, Right};
        if !matches!(join.join_type, Inner | Left | Right | LeftSemi | LeftAnti) {
            return Err(unsupported("this join in a correlated subquery is not run"));
        }
        let of_left = has_outer(&join.left);
        let of_right = has_outer(&join.right);
        let needs_both = match join.join_type {
            Inner => of_left && of_right,
            Right => of_left,
            _ => of_right,
        };
        let columns: Vec<Expr> = join.schema.columns().into_iter().map(Expr::Column).collect();
        let alone = |plan: &Arc<LogicalPlan>| Arc::clone(plan);
        let (left, right, id, values, same) = if needs_both {
            let (left, right) = (self.over(&join.left)?, self.over(&join.right)?);
            let same = Expr::Column(left.id.clone()).eq(Expr::Column(right.id.clone()));
            let kept = if join.join_type == Right { &right } else { &left };
            let (id, values) = (kept.id.clone(), kept.values.clone());
            (Arc::new(left.plan), Arc::new(right.plan), id, values, Some(same))
        } else if (of_right && join.join_type == Inner) || join.join_type == Right {
            let right = self.over(&join.right)?;
            (alone(&join.left), Arc::new(right.plan), right.id, right.values, None)
        } else {
            let left = self.over(&join.left)?;
            (Arc::new(left.plan), alone(&join.right), left.id, left.values, None)
        };
        let mut conditions: Vec<Expr> = same.into_iter().collect();
        for condition in join.filter.iter().cloned().flat_map(split_conjunction_owned) {
            conditions.push(self.bind(condition, &values)?);
        }
        let on = join
            .on
            .iter()
            .cloned()
            .map(|(one, other)| Ok((self.bind(one, &values)?, self.bind(other, &values)?)));
        let plan = Join::try_new(
            left,
            right,
            on.collect::<Result<_>>()?,
            conditions.into_iter().reduce(Expr::and),
            join.join_type,
            join.join_constraint,
            join.null_equality,
            join.null_aware,
        )?;
        Over { plan: LogicalPlan::Join(plan), id, values }.project(columns)
    }

    fn over_union(&self, union: &Union) -> Result<Over> {
        let number = fresh("number");
        let names: Vec<String> = self.outer.iter().map(|_| fresh("outer")).collect();
        let parts = union.inputs.iter().map(|input| {
            let columns = input.schema().columns();
            let over = self.over(input)?;
            let mut outputs: Vec<Expr> = columns
                .into_iter()
                .zip(union.schema.fields())
                .map(|(column, field)| Expr::Column(column).alias(field.name()))
                .collect();
            outputs.push(Expr::Column(over.id).alias(&number));
            outputs.extend(
                over.values.into_iter().zip(&names).map(|(value, name)| Expr::Column(value).alias(name)),
            );
            Ok(Arc::new(LogicalPlanBuilder::from(over.plan).project(outputs)?.build()?))
        });
        let plan = LogicalPlan::Union(Union::try_new_with_loose_types(parts.collect::<Result<_>>()?)?);
        let columns = plan.schema().columns();
        let width = union.schema.fields().len();
        let outputs = columns
            .iter()
            .cloned()
            .zip(union.schema.columns())
            .map(|(column, named)| Expr::Column(column).alias_qualified(named.relation, named.name));
        let outputs = outputs.take(width).collect();
        let id = columns.get(width).cloned().unwrap_or_else(|| Column::new_unqualified(number));
        let values = columns.get(width + 1..).unwrap_or_default().to_vec();
        Over { plan, id, values }.project(outputs)
    }

    fn over_window(&self, window: &Window) -> Result<Over> {
        let mut outputs = all(&window.input);
        let over = self.over(&window.input)?;
        let mut expressions = Vec::with_capacity(window.window_expr.len());
        for (expression, named) in
            window.window_expr.iter().zip(window.schema.columns().split_off(outputs.len()))
        {
            let bound = self.bind(expression.clone().unalias(), &over.values)?;
            let Expr::WindowFunction(mut function) = bound else {
                return Err(unsupported("this window function in a correlated subquery is not run"));
            };
            function.params.partition_by.push(Expr::Column(over.id.clone()));
            let name = fresh("window");
            expressions.push(Expr::WindowFunction(function).alias(&name));
            outputs.push(ident(name).alias_qualified(named.relation, named.name));
        }
        let plan = LogicalPlan::Window(Window::try_new(expressions, Arc::new(over.plan))?);
        Over { plan, id: over.id, values: over.values }.project(outputs)
    }

    /// JSON_TABLE: a document for each of the values.
    fn over_json_rows(&self, rows: &JsonRows) -> Result<Over> {
        let columns: Vec<Expr> = rows.schema().columns().into_iter().map(Expr::Column).collect();
        let over = self.over_leaf_or(&rows.input)?;
        let document = self.bind(rows.document.clone(), &over.values)?;
        let node = rows.over(over.plan, document)?;
        let plan = LogicalPlan::Extension(Extension { node: Arc::new(node) });
        Over { plan, id: over.id, values: over.values }.project(columns)
    }

    /// `plan` over all values, which is the values themselves for one row without columns.
    fn over_leaf_or(&self, plan: &LogicalPlan) -> Result<Over> {
        match plan {
            LogicalPlan::EmptyRelation(relation)
                if relation.produce_one_row && relation.schema.fields().is_empty() =>
            {
                self.leaf()
            }
            plan => self.over(plan),
        }
    }

    /// A subquery of the subquery: its rows are over all values, its own values may be these.
    fn over_apply(&self, extension: &Extension) -> Result<Over> {
        let Some(apply) = extension.node.as_any().downcast_ref::<Apply>() else {
            return Err(unsupported("a correlated subquery of this form is not run"));
        };
        let columns: Vec<Expr> = all(&LogicalPlan::Extension(extension.clone()));
        let over = match has_outer(&apply.input) || apply.keys.iter().any(is_correlated) {
            true => self.over(&apply.input)?,
            false => return Err(unsupported("a correlated subquery of this form is not run")),
        };
        let keys = apply.keys.iter().cloned();
        let keys = keys.map(|key| self.bind(key, &over.values)).collect::<Result<_>>()?;
        let node = apply.with(keys, over.plan, apply.inner.clone())?;
        let plan = LogicalPlan::Extension(Extension { node: Arc::new(node) });
        Over { plan, id: over.id, values: over.values }.project(columns)
    }
}

impl Over {
    /// With these columns, and the values behind them.
    fn project(self, mut outputs: Vec<Expr>) -> Result<Over> {
        outputs.push(Expr::Column(self.id.clone()));
        outputs.extend(self.values.iter().cloned().map(Expr::Column));
        let plan = LogicalPlanBuilder::from(self.plan).project(outputs)?.build()?;
        Ok(Over { plan, ..self })
    }
}
