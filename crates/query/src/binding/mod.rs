//! Expressions of queries, computed by the rules of the server whose files are read.
//!
//! 1. [`lower`] turns each scalar operator and function of a statement's syntax tree into a call of one function,
//!    [`ServerCall`], which DataFusion plans without rules of its own.
//! 2. [`BindingRule`], the first rule of the analyzer, finds the servers' types of the operands (`field`) and replaces
//!    each call: by the engine's own operator where it means the same (`native`), so that push-down, hash joins and
//!    speed stay; else by a `BoundCall`, which evaluates the expression row by row (see `expression`). Aggregates
//!    become those of the server (`aggregates`) before what is above them is bound.
//! 3. What neither computes exactly is an error.
//!
//! Types travel in the metadata of Arrow fields, since an Arrow type says nothing of collations or fractional digits.

mod aggregates;
mod as_field;
mod bound;
mod call;
mod displayed;
mod documents;
mod field;
mod lower;
mod native;
mod origin;
mod own_digits;
mod plans;
mod rule;
mod set_operations;
mod statement;
mod time_zone;
mod zero_dates;

pub(crate) use call::ServerCall;
pub(crate) use field::{JSON_COLLATION, KIND, kind_of, metadata_of};
pub(crate) use lower::lower;
pub(crate) use rule::BindingRule;
pub(crate) use statement::StatementRules;
pub(crate) use zero_dates::orders_dates;

use crate::expression::Refusal;
use crate::{Error, ErrorKind};

/// The error for an expression that is not computed here.
fn unsupported(what: &str, refusal: &Refusal) -> datafusion::common::DataFusionError {
    let message = format!("{what} is not supported here: {refusal}");
    Error::new(ErrorKind::Unsupported, message).into()
}
