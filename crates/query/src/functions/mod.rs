//! What MySQL users expect in expressions and DataFusion lacks or does otherwise: `hex`, `if`, `length` in bytes, division, dates and times as strings.

mod conditional;
mod division;
mod floating;
mod hex;
mod length;
mod temporal;

use std::sync::Arc;

use datafusion::logical_expr::ScalarUDF;
use datafusion::logical_expr::planner::ExprPlanner;

pub use division::DivisionPlanner;
pub use floating::FloatPlanner;
pub use temporal::{TemporalPlanner, TemporalRule};

/// Functions to register, instead of others of the same name.
pub fn functions() -> Vec<Arc<ScalarUDF>> {
    vec![
        Arc::new(ScalarUDF::from(hex::Hex::default())),
        Arc::new(ScalarUDF::from(conditional::If::default())),
        Arc::new(ScalarUDF::from(length::Length::default())),
    ]
}

/// Planners to ask before DataFusion's.
pub fn expression_planners() -> Vec<Arc<dyn ExprPlanner>> {
    vec![Arc::new(FloatPlanner), Arc::new(TemporalPlanner), Arc::new(DivisionPlanner)]
}
