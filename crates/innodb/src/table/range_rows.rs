//! Estimates of ranges of an index, by descents of its trees.

use tanada_io::IoContext;

use super::Table;
use crate::tree::{KeyRange, RangeRows};
use crate::{IndexNo, Result};

impl Table {
    /// Rows of `index` with keys of `range`, by at most two page reads for each level of each partition's tree.
    ///
    /// ```text
    /// l_partkey = 5        30 rows, counted
    /// l_shipdate < ...     110,000 rows, estimated from the leaves between two descents
    /// ```
    ///
    /// # Errors
    /// If the index cannot be read, or `Corrupt` if a page on the way is damaged.
    pub async fn range_rows(
        &self,
        index: IndexNo,
        range: &KeyRange,
        context: &IoContext,
    ) -> Result<RangeRows> {
        let trees = self.trees_of(index)?;
        let sizes = trees.iter().map(|tree| tree.range_rows(range, context));
        let sizes = futures::future::try_join_all(sizes).await?;
        let sum = |sum: RangeRows, size: RangeRows| RangeRows {
            rows: sum.rows + size.rows,
            exact: sum.exact && size.exact,
        };
        Ok(sizes.into_iter().fold(RangeRows { rows: 0.0, exact: true }, sum))
    }
}
