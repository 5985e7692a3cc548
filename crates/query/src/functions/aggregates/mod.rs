//! Aggregates as in MySQL and MariaDB, instead of DataFusion's of the same name or beside them.

mod bits;
mod concatenation;
mod deviation;
mod frames;
mod json;
mod rows;
mod sums;

use std::sync::Arc;

use datafusion::logical_expr::AggregateUDF;

pub use concatenation::{NAME as GROUP_CONCAT, aggregate as group_concat};
pub use deviation::{aggregate as fixed_deviation, window as fixed_window};
pub use frames::aggregate as frame_sum;
pub use json::{
    ARRAY as JSON_ARRAYAGG, OBJECT as JSON_OBJECTAGG, array as json_array, object as json_object,
};

/// Aggregates to register instead of DataFusion's.
pub fn aggregates() -> Vec<Arc<AggregateUDF>> {
    let mut aggregates = sums::aggregates();
    aggregates.extend(deviation::aggregates());
    aggregates.extend(bits::NAMES.map(bits::aggregate));
    aggregates.push(concatenation::aggregate(usize::MAX));
    aggregates.push(json::array(true));
    aggregates.push(json::object(true));
    aggregates
}
