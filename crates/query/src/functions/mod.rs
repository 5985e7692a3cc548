//! What MySQL users expect in expressions and DataFusion lacks or does otherwise: `hex`, `if`, `length` in bytes, integers that do not wrap around,
//! division, dates and times as strings.

mod aggregate;
mod arithmetic;
mod conditional;
mod division;
mod floating;
mod hex;
mod length;
mod signed;
mod temporal;

use std::sync::Arc;

use datafusion::logical_expr::ScalarUDF;
use datafusion::logical_expr::planner::ExprPlanner;

pub use aggregate::aggregates;
pub use arithmetic::IntegerPlanner;
pub use division::DivisionPlanner;
pub use floating::FloatPlanner;
pub use signed::NAME as SIGNED;
pub use temporal::{TemporalPlanner, TemporalRule};

/// Functions to register, instead of others of the same name.
pub fn functions() -> Vec<Arc<ScalarUDF>> {
    vec![
        Arc::new(ScalarUDF::from(hex::Hex::default())),
        Arc::new(ScalarUDF::from(conditional::If::default())),
        Arc::new(ScalarUDF::from(length::Length::default())),
        Arc::new(ScalarUDF::from(signed::Signed::default())),
    ]
}

/// Planners to ask before DataFusion's.
pub fn expression_planners() -> Vec<Arc<dyn ExprPlanner>> {
    vec![
        Arc::new(FloatPlanner),
        Arc::new(TemporalPlanner),
        Arc::new(IntegerPlanner),
        Arc::new(DivisionPlanner),
    ]
}
