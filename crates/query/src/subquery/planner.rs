//! Physical plans with the operators for subqueries.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::catalog::Session;
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::{LogicalPlan, UserDefinedLogicalNode};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{DefaultPhysicalPlanner, ExtensionPlanner, PhysicalPlanner};

use crate::json_table::{self, JsonRows};
use crate::recursion;

use super::apply::{Apply, Kind, wrong};
use super::exec::{ApplyExec, DomainExec, Slot, Spec};

/// DataFusion's planner, which knows the subqueries' operators.
#[derive(Debug)]
pub(crate) struct SubqueryPlanner;

#[async_trait]
impl QueryPlanner for SubqueryPlanner {
    async fn create_physical_plan(
        &self,
        plan: &LogicalPlan,
        session: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let planner = DefaultPhysicalPlanner::with_extension_planners(vec![Arc::new(Operators)]);
        planner.create_physical_plan(plan, session).await
    }
}

struct Operators;

#[async_trait]
impl ExtensionPlanner for Operators {
    async fn plan_extension(
        &self,
        planner: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        logical_inputs: &[&LogicalPlan],
        physical_inputs: &[Arc<dyn ExecutionPlan>],
        session: &dyn Session,
        context: &datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        if let (Some(rows), [over], [input]) =
            (node.as_any().downcast_ref::<JsonRows>(), logical_inputs, physical_inputs)
        {
            let document = planner.create_physical_expr(&rows.document, over.schema(), session, context)?;
            return Ok(Some(json_table::planned(rows, document, Arc::clone(input))?));
        }
        let Some(apply) = node.as_any().downcast_ref::<Apply>() else {
            return Ok(recursion::planned(node, physical_inputs));
        };
        let ([rows, ..], [input, inner]) = (logical_inputs, physical_inputs) else {
            return Err(wrong("has two inputs"));
        };
        let keys =
            apply.keys.iter().map(|key| planner.create_physical_expr(key, rows.schema(), session, context));
        let keys = keys.collect::<Result<_>>()?;
        // Each place in a plan has values of its own.
        let slot = Slot::default();
        let inner = Arc::clone(inner).transform_down(|part| {
            let Some(leaf) = part.downcast_ref::<DomainExec>() else { return Ok(Transformed::no(part)) };
            if leaf.domain != apply.domain {
                return Ok(Transformed::no(part));
            }
            Ok(Transformed::yes(Arc::new(leaf.with_slot(&slot)?) as Arc<dyn ExecutionPlan>))
        })?;
        let mut fields = input.schema().fields().to_vec();
        let of_inner = inner.data.schema();
        let mut of_inner = of_inner.fields().iter().skip(1);
        match apply.kind {
            Kind::Scalar => fields.extend(
                of_inner
                    .next()
                    .map(|value| Arc::new(value.as_ref().clone().with_name(&apply.name).with_nullable(true))),
            ),
            Kind::Exists => fields.push(Arc::new(Field::new(&apply.name, DataType::Boolean, false))),
            Kind::Rows { keeps: false } => fields.extend(of_inner.cloned()),
            Kind::Rows { keeps: true } => {
                fields.extend(of_inner.map(|field| Arc::new(field.as_ref().clone().with_nullable(true))));
            }
        }
        let schema = Arc::new(Schema::new(fields));
        let spec = Spec { keys, kind: apply.kind, schema, values: Arc::clone(&apply.values), slot };
        Ok(Some(Arc::new(ApplyExec::new(Arc::clone(input), inner.data, Arc::new(spec)))))
    }
}
