//! SQL over files of real servers: answers are those of the servers.
//!
//! One executable, since each that links DataFusion takes long to link.
#![allow(clippy::unwrap_used)]

mod addresses;
mod answers;
mod cases;
mod collations;
mod columnar;
mod commands;
mod copies;
mod corpus;
mod definitions;
mod displays;
mod engine_faults;
mod errors;
#[path = "../../../innodb/tests/fixtures/mod.rs"]
mod fixtures;
mod footprints;
mod functions;
mod golden;
mod instant;
mod lookups;
mod off_page;
mod parquet;
mod placements;
mod plans;
mod sessions;
mod spills;
mod text_files;
mod virtual_columns;
mod volumes;
mod zero_dates;
