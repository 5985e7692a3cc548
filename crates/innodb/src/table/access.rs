//! How an index is read into a projection.

use std::sync::Arc;

use super::row::Projection;
use crate::record::Layout;
use crate::{ColumnNo, Error, ErrorKind, IndexNo, Result, Table};

/// Which index is read and how its records are decoded into a projection. Made by [`Table::access`]; cheap to clone.
#[derive(Debug, Clone)]
pub struct Access(Arc<Plan>);

#[derive(Debug)]
struct Plan {
    index: IndexNo,
    covering: bool,
    /// One for each partition: of the index if it covers, else of the clustered index.
    projections: Vec<Arc<Projection>>,
}

impl Access {
    /// The index.
    pub fn index(&self) -> IndexNo {
        self.0.index
    }

    /// Whether the index holds all projected columns, so that no bookmark look-up is needed.
    pub fn covering(&self) -> bool {
        self.0.covering
    }

    /// The index whose records are decoded.
    pub(super) fn decoded_index(&self) -> IndexNo {
        if self.0.covering { self.0.index } else { IndexNo(0) }
    }

    pub(super) fn projection(&self, partition: usize) -> Result<&Arc<Projection>> {
        let missing = || Error::new(ErrorKind::InvalidInput, format!("partition {partition} does not exist"));
        self.0.projections.get(partition).ok_or_else(missing)
    }
}

impl Table {
    /// Compiles a reader of `columns` (slot i is columns[i]) through `index`. Virtual columns can only be read from an
    /// index that holds them; asking for one elsewhere is an error.
    ///
    /// # Errors
    /// `InvalidInput` for an index or a column that is not there or not stored, `Unsupported` for an index, a type or a
    /// collation that is not read.
    pub fn access(&self, index: IndexNo, columns: &[ColumnNo]) -> Result<Access> {
        let layouts =
            |no: IndexNo| self.trees_of(no).map(|trees| trees.iter().map(|tree| tree.layout.clone()));
        if let Some(projections) = self.project(layouts(index)?, columns)? {
            return Ok(Access(Arc::new(Plan { index, covering: true, projections })));
        }
        if index.0 > 0
            && let Some(projections) = self.project(layouts(IndexNo(0))?, columns)?
        {
            if !self.fetchable() {
                let what = format!(
                    "{} has a primary key in a collation that is not known here, so rows cannot be fetched by index {}",
                    self.label(),
                    self.definition().indexes[index.0].name
                );
                return Err(Error::new(ErrorKind::Unsupported, what));
            }
            return Ok(Access(Arc::new(Plan { index, covering: false, projections })));
        }
        let what = format!("{}: a virtual column can only be read from an index that holds it", self.label());
        Err(Error::new(ErrorKind::InvalidInput, what))
    }

    /// Whether rows can be fetched by their clustered key, as [`fetch`](Table::fetch) and look-ups by an index that
    /// does not cover do: not if a part of the key is a string in a collation that is not known here.
    pub fn fetchable(&self) -> bool {
        self.key_shape(IndexNo(0)).is_some_and(|key| key.parts.iter().all(|part| !part.order.is_unknown()))
    }

    fn project(
        &self,
        layouts: impl Iterator<Item = Arc<Layout>>,
        columns: &[ColumnNo],
    ) -> Result<Option<Vec<Arc<Projection>>>> {
        let projection = |layout: Arc<Layout>| Projection::new(self.definition(), &layout, columns);
        layouts.map(|layout| Ok(projection(layout)?.map(Arc::new))).collect()
    }
}
