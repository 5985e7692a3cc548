//! What MySQL users expect in expressions and DataFusion lacks or does otherwise: `hex`, `if`, `length` in bytes, integers that do not wrap around,
//! division, dates and times as strings.

mod aggregate;
mod arithmetic;
mod clock;
mod conditional;
mod division;
mod floating;
mod hex;
mod length;
mod negative;
mod quotient;
mod signed;
mod simple;
mod stored_order;
mod temporal;
mod text;

use std::sync::Arc;

use datafusion::logical_expr::ScalarUDF;
use datafusion::logical_expr::planner::ExprPlanner;

pub use aggregate::aggregates;
pub use arithmetic::IntegerPlanner;
pub use division::DivisionPlanner;
pub use floating::FloatPlanner;
pub use negative::NAME as NEGATIVE;
pub use signed::{SIGNED, UNSIGNED};
pub use stored_order::StoredOrderRule;
pub use temporal::{TemporalPlanner, TemporalRule};
pub use text::{SUBSTRING, TEXT};

/// Functions to register, instead of others of the same name.
pub fn functions() -> Vec<Arc<ScalarUDF>> {
    let mut functions = vec![
        ScalarUDF::from(hex::Hex::default()),
        ScalarUDF::from(conditional::If::default()),
        ScalarUDF::from(length::Length::default()),
        negative::function(),
        quotient::function(),
    ];
    functions.push(stored_order::key_function());
    functions.extend(signed::functions());
    functions.extend(clock::functions());
    functions.extend(text::functions());
    functions.into_iter().map(Arc::new).collect()
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
