//! JSON_TABLE, a table of FROM: the rows of a document.
//!
//! The resolution of names makes it a derived table, LATERAL if its document is made of columns of tables to the left.
//! [`JsonTablePlanner`] plans it as a node over one row, [`JsonRows`], which puts the rows of the document beside each
//! row of its input; over the values of outer columns it has one row for each. What the rows are is in
//! `expression::json`.

mod exec;
mod node;
mod planner;
mod read;

pub(crate) use exec::planned;
pub(crate) use node::JsonRows;
pub(crate) use planner::JsonTablePlanner;
pub(crate) use read::names;
