//! A table ready to be read: scans, lookups, statistics.
//!
//! All async functions run on an executor's thread and do their page reads through the given
//! [`IoContext`](tanada_io::IoContext).
//!
//! - [`Table::access`] compiles which columns are read through which index; [`Table::key`] turns values into search
//!   keys.
//! - [`Table::leaves`] and [`Table::scan`] read leaf pages in large runs, past the cache, in any order and from many
//!   tasks at once.
//! - [`Table::lookup`] finds the rows of one key through the cache; where a secondary index does not cover, all rows of
//!   the key are fetched at once. [`Table::bookmarks`] and [`Table::fetch`] are the two halves of that for ranges.
//! - [`Table::sound_leaves`] and [`Table::scan_sound`] read what is not damaged and list what is ([`Losses`]).

mod access;
mod bookmark;
mod chunks;
mod columns;
mod facts;
mod fit;
mod layout;
mod lookup;
mod losses;
mod open;
mod range_rows;
mod rescue;
mod row;
mod sampling;
mod scan;
mod skipping;
mod stale;
mod state;
mod statistics;
mod verify;
mod walked;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use parking_lot::Mutex;

use crate::tree::{KeyPart, KeyShape, Order, Tree};
use crate::{ColumnType, Environment, Error, ErrorKind, IndexNo, Result, TableDefinition, Tablespace, Value};

pub use crate::tree::{Key, KeyRange, RangeRows};
pub use access::Access;
pub use bookmark::Bookmark;
pub use chunks::{ChunkLayout, IndexInChunk};
pub use columns::{Column, RowReceiver, Rows};
pub use facts::{IndexFacts, TableFacts};
pub use layout::{FileRange, IndexLayout, IndexSegments, LeafSteps, SpaceLayout, SpaceSegments, TableLayout};
pub use losses::{Loss, Losses, LostRows};
pub use row::Row;
pub use scan::LeafRun;
pub use state::TableState;
pub use statistics::{IndexStatistics, TableStatistics};

/// Called for each row; `Break` ends the walk early.
pub type OnRow<'a> = &'a mut dyn FnMut(&Row<'_>) -> Result<ControlFlow<()>>;

/// An open table.
#[derive(Debug)]
pub struct Table {
    definition: Arc<TableDefinition>,
    environment: Arc<Environment>,
    spaces: Vec<Arc<Tablespace>>,
    /// By index.
    keys: Vec<Arc<KeyShape>>,
    /// By index, then by partition; `None` for an index that is not read.
    trees: Vec<Option<Vec<Arc<Tree>>>>,
    warnings: Vec<String>,
    statistics: Mutex<Option<Arc<TableStatistics>>>,
    has_warned_of_damage: AtomicBool,
}

impl Table {
    fn new(
        definition: TableDefinition,
        environment: Arc<Environment>,
        spaces: Vec<Arc<Tablespace>>,
        keys: Vec<Arc<KeyShape>>,
        trees: Vec<Option<Vec<Arc<Tree>>>>,
        warnings: Vec<String>,
    ) -> Table {
        Table {
            definition: Arc::new(definition),
            environment,
            spaces,
            keys,
            trees,
            warnings,
            statistics: Mutex::new(None),
            has_warned_of_damage: AtomicBool::new(false),
        }
    }

    /// The same table with some of its partitions alone, by their positions.
    ///
    /// # Errors
    /// `InvalidInput` if it has no such partition.
    pub fn of_partitions(&self, chosen: &[usize]) -> Result<Arc<Table>> {
        let missing = || {
            let what = format!("{} has fewer partitions", self.label());
            Error::new(ErrorKind::InvalidInput, what)
        };
        fn kept<T: Clone>(all: &[T], chosen: &[usize]) -> Option<Vec<T>> {
            chosen.iter().map(|no| all.get(*no).cloned()).collect()
        }
        let mut definition = TableDefinition::clone(&self.definition);
        definition.partitions = kept(&definition.partitions, chosen).ok_or_else(missing)?;
        // Both are by partition, or empty.
        for index in definition.indexes.iter_mut().filter(|index| !index.roots.is_empty()) {
            index.roots = kept(&index.roots, chosen).ok_or_else(missing)?;
        }
        if !definition.instant_columns.is_empty() {
            definition.instant_columns = kept(&definition.instant_columns, chosen).ok_or_else(missing)?;
        }
        let spaces = kept(&self.spaces, chosen).ok_or_else(missing)?;
        let of_index = |trees: &Option<Vec<Arc<Tree>>>| match trees {
            Some(trees) => kept(trees, chosen).map(Some).ok_or_else(missing),
            None => Ok(None),
        };
        let trees = self.trees.iter().map(of_index).collect::<Result<_>>()?;
        let (keys, environment) = (self.keys.clone(), Arc::clone(&self.environment));
        Ok(Arc::new(Table::new(definition, environment, spaces, keys, trees, self.warnings.clone())))
    }

    /// Its definition.
    pub fn definition(&self) -> &Arc<TableDefinition> {
        &self.definition
    }

    /// Its environment.
    pub fn environment(&self) -> &Arc<Environment> {
        &self.environment
    }

    /// Its tablespaces, one per partition.
    pub fn spaces(&self) -> &[Arc<Tablespace>] {
        &self.spaces
    }

    /// What was found on opening that a user should know: indexes that are not read because the server left changes to
    /// them in its change buffer, files that say that they are of another table. Each was handed to [`tanada_io::warn`]
    /// once.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Whether `index` can be read: a B+tree that was found in every partition and is up to date.
    pub fn readable(&self, index: IndexNo) -> bool {
        self.trees_of(index).is_ok()
    }

    fn label(&self) -> String {
        format!("table {}.{}", self.definition.database, self.definition.name)
    }

    fn key_shape(&self, index: IndexNo) -> Option<&Arc<KeyShape>> {
        self.keys.get(index.0)
    }

    fn trees_of(&self, index: IndexNo) -> Result<&[Arc<Tree>]> {
        match self.trees.get(index.0) {
            Some(Some(trees)) => Ok(trees),
            Some(None) => {
                let name = &self.definition.indexes[index.0].name;
                let what = format!("{}: index {name} is not one that can be read", self.label());
                Err(Error::new(ErrorKind::Unsupported, what))
            }
            None => {
                let what = format!("{} has no index {}", self.label(), index.0);
                Err(Error::new(ErrorKind::InvalidInput, what))
            }
        }
    }

    fn tree(&self, index: IndexNo, partition: usize) -> Result<&Arc<Tree>> {
        let missing = || {
            let what = format!("{} has no partition {partition}", self.label());
            Error::new(ErrorKind::InvalidInput, what)
        };
        self.trees_of(index)?.get(partition).ok_or_else(missing)
    }

    /// Whether key part `part` of `index` can be searched with values (numbers, dates, binary-comparable strings; not
    /// collations that are not known here). A prefix part can be searched but finds a superset.
    ///
    /// Equality is the index's own: in a collation without case, or one that pads with spaces, more is found than
    /// equals the value byte by byte. So callers compare again.
    pub fn searchable(&self, index: IndexNo, part: usize) -> bool {
        self.part(index, part).is_some_and(|(_, key, _)| !key.order.is_unknown() && key.one_form)
    }

    /// Whether the index keeps part `part` in the order of its values, so that a range of values is a range of keys:
    /// not for prefixes, strings in collations that pad or fold case, ENUM, SET and addresses, which can be searched
    /// for equality only.
    pub fn ordered(&self, index: IndexNo, part: usize) -> bool {
        self.part(index, part).is_some_and(|(column_type, key, prefix)| {
            let by_number = matches!(
                column_type,
                ColumnType::Enum { .. }
                    | ColumnType::Set { .. }
                    | ColumnType::Uuid
                    | ColumnType::Inet6
                    | ColumnType::Inet4
            );
            // The bytes of other sets are in another order than the texts that they are shown as.
            let by_text = match column_type {
                ColumnType::Char { collation, .. }
                | ColumnType::VarChar { collation, .. }
                | ColumnType::Text { collation, .. } => {
                    matches!(collation.charset.as_str(), "binary" | "utf8mb3" | "utf8mb4")
                }
                _ => true,
            };
            let whole = prefix.is_none() && matches!(key.order, Order::Bytes | Order::Float | Order::Double);
            whole && by_text && !by_number && self.searchable(index, part)
        })
    }

    /// Whether the index keeps part `part`, texts, in the order of their collation, so that a range of texts in that
    /// order is a range of keys.
    pub fn ordered_by_collation(&self, index: IndexNo, part: usize) -> bool {
        self.part(index, part).is_some_and(|(column_type, key, prefix)| {
            let is_text = matches!(
                column_type,
                ColumnType::Char { .. } | ColumnType::VarChar { .. } | ColumnType::Text { .. }
            );
            // Without their spaces at the end, unequal values are equal in the index.
            let whole = matches!(key.order, Order::Bytes | Order::Padded(_) | Order::Collated(_));
            is_text && whole && prefix.is_none() && self.searchable(index, part)
        })
    }

    /// Whether key part `part` of `index` can be searched with the sort keys of texts, given as bytes.
    pub fn searchable_by_sort_key(&self, index: IndexNo, part: usize) -> bool {
        self.part(index, part).is_some_and(|(_, key, prefix)| {
            key.order.has_sort_keys() && prefix.is_none() && self.searchable(index, part)
        })
    }

    fn part(&self, index: IndexNo, part: usize) -> Option<(&ColumnType, &KeyPart, Option<u32>)> {
        self.trees_of(index).ok()?;
        let declared = self.definition.indexes.get(index.0)?.parts.get(part)?;
        let column = self.definition.columns.get(declared.column.0)?;
        let key = self.keys.get(index.0)?.parts.get(part)?;
        Some((&column.column_type, key, declared.prefix_bytes))
    }

    /// Encodes the first `values.len()` parts of `index`, fewer if several stored strings are shown as a value: the key
    /// then finds more. `None` if no row can have these values (out of the type's range, NULL in an equality is up to
    /// the caller: NULL is encoded as NULL).
    ///
    /// # Errors
    /// `InvalidInput` if there are more values than parts, a part cannot be searched, or a value's kind does not go
    /// with its part's type.
    pub fn key(&self, index: IndexNo, values: &[Value<'_>]) -> Result<Option<Key>> {
        self.trees_of(index)?;
        if let Some(part) = (0..values.len()).find(|part| !self.searchable(index, *part)) {
            let name = &self.definition.indexes[index.0].name;
            let what = format!("{}: part {} of index {name} cannot be searched", self.label(), part + 1);
            return Err(Error::new(ErrorKind::InvalidInput, what));
        }
        self.keys[index.0].encode(values).map_err(|error| error.within(self.label()))
    }
}
