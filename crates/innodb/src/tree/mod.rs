//! B+trees: pages as nodes, keys and their order, descents, and which leaves a range takes.
//!
//! A descent goes from the root to a leaf in at most [`MAX_LEVELS`] steps; on the way the level falls by one each step
//! and the index id stays the root's, so damage cannot lead in circles. Below a node, the child to take is the last
//! whose key is less than the key sought (strictly, since rows of one key may begin on the page before the one whose
//! node pointer equals it), except when a whole unique key is sought.

mod descent;
mod key;
mod leaves;
mod node;
mod order;
mod size;

pub(crate) use descent::{Position, Seek, Tree};
pub use key::{Key, KeyRange};
pub(crate) use key::{KeyBuilder, KeyPart, KeyShape, Sought};
pub(crate) use node::Node;
pub(crate) use order::Order;
pub use size::RangeRows;

/// Deeper trees are damage: 64 KiB pages reach 2^32 leaves in far fewer.
pub(crate) const MAX_LEVELS: u16 = 16;
