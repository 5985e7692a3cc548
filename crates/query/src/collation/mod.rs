//! Texts compared, ordered and grouped by the servers' collations.
//!
//! DataFusion compares texts by bytes. An analyzer rule ([`CollationRule`]) gives it other values to compare, before
//! types are coerced:
//!
//! - comparisons, joins, IN, ORDER BY and windows take [`sort_key`](sort_key::NAME) of their texts, byte strings that
//!   compare as the texts do, so that hash joins and sorts stay as they are;
//! - where a text is compared with constants, its key is not made ([`comparison`]);
//! - GROUP BY, DISTINCT and what becomes of UNION, EXCEPT and INTERSECT group by the keys and show the text that was
//!   read first;
//! - MIN and MAX choose by the keys; LIKE is matched character by character;
//! - documents of MySQL have keys of their own ([`document_key`]).
//!
//! How a text compares is found bottom-up over the logical plan ([`comparing`]). Where it is not known, or its order is
//! not, and it matters, the query is refused.

mod choice;
mod choices;
mod chosen;
mod comparing;
mod comparison;
mod correlated;
mod document_key;
mod grouping;
mod index;
mod like;
mod operators;
mod rule;
mod sliding;
mod sort_key;

pub use chosen::aggregates;
pub(crate) use chosen::shows_one_text;
pub(crate) use comparing::{Texts, collation_of};
pub(crate) use comparison::{DirectComparisonRule, TextComparison, with_direct_comparisons};
pub use rule::CollationRule;
pub(crate) use sort_key::{NAME as SORT_KEY, keyed_column, keyed_text};

use datafusion::logical_expr::ScalarUDF;

/// Functions that the rule calls.
pub fn functions() -> Vec<ScalarUDF> {
    vec![sort_key::function(), like::function(), choice::function(), document_key::function()]
}
