//! What the servers' expressions need of the engine: integers that do not wrap around, division, numbers of other
//! values, dates compared with texts, aggregates.

mod aggregates;
mod arithmetic;
mod division;
mod floating;
mod json_values;
pub mod numbers;
mod quotient;
mod random;
mod simple;
mod stored_order;
mod temporal;

use std::sync::Arc;

use datafusion::logical_expr::ScalarUDF;
use datafusion::logical_expr::planner::ExprPlanner;

pub use aggregates::{
    GROUP_CONCAT, JSON_ARRAYAGG, JSON_OBJECTAGG, aggregates, fixed_deviation, fixed_window, frame_sum,
    group_concat, json_array, json_object,
};
pub use arithmetic::IntegerPlanner;
pub use division::DivisionPlanner;
pub use floating::FloatPlanner;
pub use json_values::quoted as quoted_json;
pub use random::{RANDOM_BYTES, UUID_SHORT};
pub use stored_order::StoredOrderRule;
pub use temporal::{TemporalPlanner, TemporalRule};

/// Functions to register, instead of others of the same name.
pub fn functions() -> Vec<Arc<ScalarUDF>> {
    let mut functions = vec![quotient::function(), stored_order::key_function()];
    functions.extend(numbers::functions());
    functions.extend(json_values::functions());
    functions.push(numbers::unsigned_zero());
    functions.extend(random::functions());
    functions.into_iter().map(Arc::new).collect()
}

/// The function that gives a number for any value.
pub fn number_function() -> ScalarUDF {
    let [number, _] = numbers::functions();
    number
}

/// The function that makes 0 of -0.0.
pub fn unsigned_zero_function() -> ScalarUDF {
    numbers::unsigned_zero()
}

/// The function that refuses doubles out of range.
pub fn finite_function() -> ScalarUDF {
    numbers::finite()
}

/// The function that gives 64 bits for any number.
pub fn bits_function() -> ScalarUDF {
    let [_, bits] = numbers::functions();
    bits
}

/// The function that gives a value as JSON, by MySQL's or MariaDB's spelling.
pub fn json_value_function(mysql: bool) -> ScalarUDF {
    let [of_mysql, of_mariadb] = json_values::functions();
    if mysql { of_mysql } else { of_mariadb }
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
