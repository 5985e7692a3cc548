//! Mirrors and copies of values on the fastest class.

pub(crate) mod eviction;
pub(crate) mod keeper;
pub(crate) mod remirroring;
pub(crate) mod rooms;
pub(crate) mod worth;
