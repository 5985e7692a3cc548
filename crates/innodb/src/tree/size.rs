//! How many rows a range of keys has, by descents to its two ends.
//!
//! 1. While both ends lie below one node, go down.
//! 2. From the node where they part, go down to both: nodes between them are counted on the level where they part, and
//!    multiplied by the children that a node has, level by level.
//! 3. In the two leaves the rows of the range are counted, and in some of the leaves between, whose mean counts for the
//!    others.
//!
//! So at most two pages a level and `MOST_BETWEEN` leaves are read, and ranges of a few leaves are exact.

use tanada_io::IoContext;

use super::Node;
use super::descent::Tree;
use super::key::KeyRange;
use crate::record::{self, Spans};
use crate::{PageNo, Result};

/// Leaves between the ends that are read at most.
const MOST_BETWEEN: usize = 8;

/// The rows of a range.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RangeRows {
    /// How many, estimated.
    pub rows: f64,
    /// Whether they were counted.
    pub exact: bool,
}

/// The nodes of a level that a range touches.
struct Touched {
    first: Node,
    /// `None` if it is the first.
    last: Option<Node>,
    /// How many lie between, estimated,
    between: f64,
    /// and some of them, if they are leaves.
    known: Vec<PageNo>,
}

impl Tree {
    /// Rows of `range`: at most two page reads for each level, and a few leaves.
    pub(crate) async fn range_rows(&self, range: &KeyRange, context: &IoContext) -> Result<RangeRows> {
        let root = self.root(context).await?;
        let (id, mut level) = (root.index_id(), root.level());
        let mut touched = Touched { first: root, last: None, between: 0.0, known: Vec::new() };
        while level > 0 {
            level -= 1;
            match self.below(&touched, range, level, id, context).await? {
                Some(below) => touched = below,
                None => return Ok(RangeRows { rows: 0.0, exact: true }),
            }
        }
        let (first, _) = self.leaf_rows(&touched.first, range)?;
        let Some(last) = &touched.last else { return Ok(RangeRows { rows: first as f64, exact: true }) };
        let (last, _) = self.leaf_rows(last, range)?;
        let step = touched.known.len().div_ceil(MOST_BETWEEN).max(1);
        let reads = touched.known.iter().step_by(step).map(|no| self.node(*no, 0, id, context));
        let read = futures::future::try_join_all(reads).await?;
        let mut rows = 0;
        for leaf in &read {
            rows += self.leaf_rows(leaf, range)?.1;
        }
        let exact = read.len() as f64 == touched.between;
        let between = touched.between * rows as f64 / read.len().max(1) as f64;
        Ok(RangeRows { rows: (first + last) as f64 + between, exact })
    }

    /// The nodes of `level` below those that are touched above; `None` if there are none.
    async fn below(
        &self,
        above: &Touched,
        range: &KeyRange,
        level: u16,
        id: u64,
        context: &IoContext,
    ) -> Result<Option<Touched>> {
        let mut known = self.children(&above.first, range)?;
        let mut between = 0.0;
        if let Some(last) = &above.last {
            let of_last = self.children(last, range)?;
            let each = (self.all_children(&above.first)?.len() + self.all_children(last)?.len()) as f64 / 2.0;
            between = above.between * each;
            known.extend(of_last);
        }
        let (Some(low), Some(high)) = (known.first().copied(), known.last().copied()) else {
            return Ok(None);
        };
        let first = self.node(low, level, id, context).await?;
        let last = if low == high { None } else { Some(self.node(high, level, id, context).await?) };
        known.remove(0);
        known.pop();
        Ok(Some(Touched { first, last, between: between + known.len() as f64, known }))
    }

    /// Rows of a leaf within `range`, and all of them.
    fn leaf_rows(&self, leaf: &Node, range: &KeyRange) -> Result<(usize, usize)> {
        self.leaf_rows_unplaced(leaf, range).map_err(|error| self.at(leaf.page().number(), &error))
    }

    fn leaf_rows_unplaced(&self, leaf: &Node, range: &KeyRange) -> Result<(usize, usize)> {
        let stretch = self.stretch(leaf, range)?;
        let (mut all, mut within) = (0, 0);
        let mut is_within = stretch.is_some_and(|(before, _)| before == leaf.infimum());
        let mut spans = Spans::new();
        let mut records = leaf.records();
        while let Some(origin) = records.next()? {
            let is_row = leaf.is_row(origin)? && self.is_current_row(leaf, origin, &mut spans)?;
            all += usize::from(is_row);
            within += usize::from(is_row && is_within);
            if let Some((before, last)) = stretch {
                is_within = (is_within || origin == before) && last != Some(origin);
            }
        }
        Ok((within, all))
    }

    /// Whether a row is not one of the past, which system-versioned tables keep beside the others.
    fn is_current_row(&self, leaf: &Node, origin: usize, spans: &mut Spans) -> Result<bool> {
        let (bytes, shape) = (leaf.bytes(), &self.layout.shape);
        let fields = self.layout.key_fields.max(self.layout.current_fields());
        record::parse_leaf(bytes, origin, leaf.is_compact(), shape, fields, spans)?;
        Ok(self.layout.is_current(bytes, spans))
    }
}
