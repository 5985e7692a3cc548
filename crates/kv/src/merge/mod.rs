//! Many sources as one, in order.
//!
//! - [`source`]: what a merge draws from; [`kway`]: the merge itself;
//! - [`view`]: what a snapshot sees of it, for cursors;
//! - [`retain`]: what outlives it, for the jobs that write it anew; [`readers`]: who it outlives it for.

mod kway;
mod readers;
mod retain;
mod source;
#[cfg(test)]
mod tests;
mod view;

pub(crate) use kway::Merge;
pub(crate) use readers::{Load, Readers};
pub(crate) use retain::{Groups, Retention};
pub(crate) use source::{Direction, Source, Step};
pub(crate) use view::{View, Visibility, is_live};
