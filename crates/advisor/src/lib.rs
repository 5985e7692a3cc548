//! Placement for other database systems, by the plans that they explain.
//!
//! Above: the command. Below: `tanada-mount`, whose files the systems use, `tanada-placement`, whose policies decide,
//! and `tanada-innodb`, which knows where indexes lie.
//!
//! 1. A [`PlanSource`] explains a statement: tables, indexes, how they are read, how many rows. `EXPLAIN` is all that
//!    is asked; no system is changed.
//! 2. A [`FileLayout`] asks files where tables and indexes lie; [`Statistics`] are what the system has counted.
//! 3. Both make [`message::Announcement`]s ([`Advisor`]), which a [`Client`] takes to the process that serves the
//!    mount.
//! 4. There a [`Guide`] has a policy place chunks, as for Tanada's own queries.
//! 5. A [`proxy`] sees the statements of clients that know nothing of all this.
//!
//! ```
//! use tanada_advisor::{AccessKind, plan};
//!
//! let answer = r#"{"query_block": {"select_id": 1, "nested_loop": [
//!     {"table": {"table_name": "o", "access_type": "range", "key": "o_date", "rows": 48}}]}}"#;
//! let rewritten = "select 1 from `shop`.`orders` `o`";
//! let accesses = plan::mysql(answer, rewritten, Some("shop"))?;
//! assert_eq!((accesses[0].table.as_str(), accesses[0].kind), ("orders", AccessKind::Range));
//! # Ok::<(), tanada_advisor::Error>(())
//! ```
#![forbid(unsafe_code)]

mod access;
mod advice;
mod client;
mod error;
pub mod estimate;
mod fingerprint;
mod guide;
pub mod layout;
pub mod message;
pub mod plan;
pub mod proxy;
pub mod server;

pub use access::{
    AccessKind, FileLayout, FileReads, IndexPlaces, PlanSource, PlannedAccess, RunningStatement, Statistics,
};
pub use advice::Advisor;
pub use client::{Client, Mounts};
pub use error::{Error, ErrorKind, Result};
pub use fingerprint::{Purpose, fingerprint, normalized, purpose};
pub use guide::Guide;
pub use guide::socket::{Listening, listen};
