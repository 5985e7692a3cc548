//! The space of a database: usage, limits, what is reserved, and deletions.

pub(crate) mod account;
pub(crate) mod deletion;
pub(crate) mod limit;
pub(crate) mod reservation;
pub(crate) mod size_limits;
pub(crate) mod usage;
pub(crate) mod watch;
