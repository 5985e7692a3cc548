//! Many sources as one, in order.

mod source;

pub(crate) use source::{Direction, Source, Step};
