//! Placement for other database systems, by the plans that they explain.

#![forbid(unsafe_code)]
