//! Subqueries in expressions, taken out of them before DataFusion's optimizer sees the plan.
//!
//! DataFusion takes apart subqueries that are correlated by equalities. The servers run any, so all of them are
//! rewritten here ([`SubqueryRule`]):
//!
//! 1. `EXISTS`, `NOT EXISTS`, `IN` and `NOT IN` as conditions of WHERE become semi and anti joins, if what correlates
//!    them can be pulled up to the join ([`pull`], [`semi`]).
//! 2. A scalar subquery that is not correlated becomes a cross join with its one row.
//! 3. An aggregate that is correlated by equalities of one type becomes an outer join with a grouped one ([`keyed`]).
//! 4. Everything else becomes an [`Apply`](apply::Apply): the distinct values of the outer columns are collected, the
//!    subquery is run once over all of them ([`domain`]), and each row takes the result of its values.
//!
//! A join with a LATERAL table is such an [`Apply`](apply::Apply), too, which joins rows ([`lateral`]).
//!
//! A subquery in place of a value that has several rows is an error, which the aggregate [`SINGLE_VALUE`] raises.

mod aggregates;
mod apply;
mod attach;
mod columns;
mod domain;
mod exec;
mod keyed;
mod lateral;
mod planner;
mod pull;
mod rule;
mod semi;
mod values;

pub(crate) use aggregates::{ANY_TRUE, SINGLE_VALUE, aggregates};
pub(crate) use exec::DomainTable;
pub(crate) use planner::SubqueryPlanner;
pub(crate) use rule::SubqueryRule;
