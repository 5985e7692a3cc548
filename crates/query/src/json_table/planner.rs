//! Plans JSON_TABLE where the engine meets one in FROM.

use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::planner::{
    PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning,
};
use datafusion::logical_expr::{Extension, LogicalPlan, LogicalPlanBuilder};
use datafusion::sql::sqlparser::ast::TableFactor;
use std::sync::Arc;

use super::node::JsonRows;
use super::read::table;
use crate::binding::StatementRules;
use crate::{Error, ErrorKind};

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct JsonTablePlanner;

impl RelationPlanner for JsonTablePlanner {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        let TableFactor::JsonTable { json_expr, json_path, columns, alias } = relation else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        let statement = context.context_provider().options().extensions.get::<StatementRules>().cloned();
        let missing = || Error::new(ErrorKind::Internal, "JSON_TABLE stands in no statement");
        let statement = statement.ok_or_else(missing)?;
        let (rows, own) = table(&json_path, &columns, statement.rules(), &statement.text_collation())?;
        let document = context.sql_to_expr(json_expr, &DFSchema::empty())?;
        let input = LogicalPlanBuilder::empty(true).build()?;
        let node = JsonRows::new(input, document, rows, &own, *statement.rules())?;
        let plan = LogicalPlan::Extension(Extension { node: Arc::new(node) });
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, alias))))
    }
}
