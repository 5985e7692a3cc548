//! Whole benchmarks.
