//! A trace of nine TPC-H queries, made from a seed: for tests, and to judge policies where no recorded trace is at
//! hand.
//!
//! 1. [`database`] lays out the tables and the indexes of DBT-3, with the sizes of the pre-query storage tiering paper
//!    (2.7 GB at scale 1) .
//! 2. [`queries`] walks each query's nested loops as MySQL plans them: which index each one descends, how many rows
//!    lead where. Rows that are random in the real data are random here; lineitems lie in the order of their orders, as
//!    they do there.
//! 3. [`cache`] is the page cache above, least recently used, a third of the data: what it serves is not in the trace.
//!
//! It has the shape of the real trace, not its rows; figures made with it are about policies, not about TPC-H.

mod cache;
mod database;
mod queries;

pub use queries::QUERIES;

use queries::Generator;
use tanada_placement::Trace;

/// What to make.
#[derive(Debug, Clone, PartialEq)]
pub struct Synthetic {
    /// TPC-H's scale factor.
    pub scale: f64,
    /// The page cache, as a share of the data.
    pub cache_share: f64,
    /// Another seed, other rows.
    pub seed: u64,
    /// Names out of [`QUERIES`], in order; a name may come more than once.
    pub queries: Vec<&'static str>,
}

impl Default for Synthetic {
    fn default() -> Synthetic {
        Synthetic { scale: 1.0, cache_share: 1.0 / 3.0, seed: 1, queries: QUERIES.to_vec() }
    }
}

/// The trace. Unknown names are left out.
pub fn nine_queries(what: &Synthetic) -> Trace {
    let mut generator = Generator::new(what);
    for name in &what.queries {
        generator.query(name);
    }
    generator.into_trace()
}
