//! A join of two inputs that are sorted by its keys.
//!
//! One input is *streamed*: its rows come out in their order. Of the other, the *buffered* one, the rows that have the
//! current key are held; where the pool gives no memory for them they are written, and read again for each streamed
//! row. That costs no more than the rows that come of it.
//!
//! From the bottom up: `side` (an input and its place), `group` (buffered rows of one key), `pairs` (rows that go out
//! together), `merge` (the loop), `exec` (the operator).

mod exec;
mod group;
mod merge;
mod pairs;
mod side;

pub use exec::MergeJoin;
