//! Rows of real servers' files: all of them, by every way there is, value by value; and files that are damaged.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../fixtures/mod.rs"]
mod fixtures;
#[path = "../support/mod.rs"]
mod support;

mod cases;
mod change_buffer;
mod compressed;
mod damage;
mod elsewhere;
mod layout;
mod mixed;
mod old_times;
mod outside;
mod ranges;
mod skipping;
mod texts;
mod torn;
mod tpch;
mod undefined;
