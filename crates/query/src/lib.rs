//! SQL over relations: catalog, out-of-order operators, cost model.
//!
//! Above: the faces (`tanada`). Below: `tanada-innodb`, `tanada-volume`, `tanada-io`. The only library crate that links
//! DataFusion.
#![forbid(unsafe_code)]

mod binding;
pub mod calibrate;
pub mod catalog;
mod collation;
mod columnar;
mod copy;
pub mod cost;
mod error;
pub mod explain;
mod expression;
mod external;
pub mod functions;
pub mod interruption;
mod json_table;
pub mod lookup;
pub mod placement;
pub mod predict;
mod recursion;
pub mod relation;
mod rules;
pub mod scan;
pub mod session;
pub mod settings;
mod spill;
pub mod store;
mod subquery;
pub mod text;
pub mod volume;

pub use error::{Error, ErrorKind, Result};
pub use session::{
    QueryProgress, QueryReport, QueryResult, QueryWatch, Session, SessionOptions, StatementText,
};
pub use tanada_innodb::{Loss, LostRows};
