//! TIMESTAMP in the session's time zone: stored in UTC, it is shown as the clock there showed it.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Column, Result};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};

use super::bound::{BoundCall, input};
use super::field::kind_of;
use super::rule::Inputs;
use super::statement::StatementRules;
use crate::expression::{Kind, Zone};

/// The plan with such columns as they are shown.
pub(super) fn shown(plan: LogicalPlan, of: &StatementRules) -> Result<LogicalPlan> {
    let is_stored = |data_type: &DataType| matches!(data_type, DataType::Timestamp(_, Some(_)));
    if of.rules.zone == Zone::UTC || !plan.schema().fields().iter().any(|field| is_stored(field.data_type()))
    {
        return Ok(plan);
    }
    let columns = plan.schema().iter().map(|(qualifier, field)| {
        let column = Expr::Column(Column::from((qualifier, field)));
        if !is_stored(field.data_type()) {
            return column;
        }
        let fsp = kind_of(field).map_or(6, |kind| kind.fsp());
        let typed = input(0, Kind::Timestamp { fsp }, &of.rules);
        let inputs = Inputs { expressions: vec![column], parts: Vec::new() };
        BoundCall::expression("time_zone", typed, inputs, &of.query)
            .alias_qualified(qualifier.cloned(), field.name())
    });
    let columns: Vec<Expr> = columns.collect();
    LogicalPlanBuilder::from(plan).project(columns)?.build()
}
