//! Constraints as ranges and keys of indexes.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use datafusion::arrow::array::ArrayRef;
use datafusion::common::ScalarValue;
use tanada_innodb::schema::IndexKind;
use tanada_innodb::{IndexNo, Key, KeyRange, Table};

use super::constraint::Constraint;
use crate::Result;
use crate::columnar::MirroredColumns;
use crate::lookup::key::KeyColumn;
use crate::relation::InnodbRelation;

/// Most keys (or ranges) of a path.
const MAX_KEYS: usize = 10_000;

/// How a scan reaches its rows.
#[derive(Debug, Clone)]
pub enum AccessPath {
    /// All leaf pages of the clustered index.
    FullScan,
    /// Ranges of the clustered index.
    ClusteredRange {
        /// Disjoint ranges.
        ranges: Vec<KeyRange>,
    },
    /// Ranges of a secondary index that holds all needed columns.
    IndexOnly {
        /// The index.
        index: IndexNo,
        /// Disjoint ranges; one unbounded range reads the whole index.
        ranges: Vec<KeyRange>,
    },
    /// Ranges of a secondary index, then the rows of its bookmarks.
    Bookmarks {
        /// The index.
        index: IndexNo,
        /// Disjoint ranges.
        ranges: Vec<KeyRange>,
    },
    /// Single keys of any index.
    Lookups {
        /// The index.
        index: IndexNo,
        /// Distinct keys.
        keys: Vec<Key>,
    },
    /// Mirrors of all columns.
    Mirrors(Arc<MirroredColumns>),
}

impl AccessPath {
    /// The index that is read first.
    pub fn index(&self) -> IndexNo {
        match self {
            AccessPath::FullScan | AccessPath::ClusteredRange { .. } | AccessPath::Mirrors(_) => IndexNo(0),
            AccessPath::IndexOnly { index, .. }
            | AccessPath::Bookmarks { index, .. }
            | AccessPath::Lookups { index, .. } => *index,
        }
    }
}

/// The range of all keys.
pub(super) fn everything() -> KeyRange {
    KeyRange { lower: Bound::Unbounded, upper: Bound::Unbounded }
}

/// What the constraints select of one index.
#[derive(Debug, Clone)]
pub(super) struct Selection {
    /// The index.
    pub index: IndexNo,
    /// Equal leading parts, each combination once.
    pub keys: Vec<Key>,
    /// The same as ranges, narrowed by bounds on the part after them.
    pub ranges: Vec<KeyRange>,
    /// Leading parts with an equality.
    pub equal_parts: usize,
    /// Whether the part after them has a bound.
    pub bounded: bool,
    /// Predicates that took part.
    pub predicates: BTreeSet<usize>,
}

/// Selections of all indexes that can be searched by the constraints.
pub(super) fn selections(
    relation: &InnodbRelation,
    constraints: &BTreeMap<usize, Constraint>,
) -> Result<Vec<Selection>> {
    let indexes = relation.table().definition().indexes.len();
    let found = (0..indexes).map(|index| selection(relation, IndexNo(index), constraints));
    Ok(found.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
}

fn selection(
    relation: &InnodbRelation,
    no: IndexNo,
    constraints: &BTreeMap<usize, Constraint>,
) -> Result<Option<Selection>> {
    let table = relation.table();
    let index = &table.definition().indexes[no.0];
    if index.kind != IndexKind::BTree {
        return Ok(None);
    }
    let mut predicates = BTreeSet::new();
    let mut prefixes: Vec<Vec<ScalarValue>> = vec![Vec::new()];
    let mut equal_parts = 0;
    let mut last = None;
    for (position, part) in index.parts.iter().enumerate() {
        let constraint = constraints.get(&part.column.0).filter(|_| table.searchable(no, position));
        let Some(constraint) = constraint else { break };
        let values = constraint.values.as_ref().filter(|values| values.len() * prefixes.len() <= MAX_KEYS);
        let Some(values) = values else {
            last = Some((position, constraint));
            break;
        };
        let combine = |prefix: &Vec<ScalarValue>| -> Vec<Vec<ScalarValue>> {
            values.iter().map(|value| prefix.iter().chain([value]).cloned().collect()).collect()
        };
        prefixes = prefixes.iter().flat_map(combine).collect();
        predicates.extend(&constraint.predicates);
        equal_parts += 1;
    }
    let last = last.filter(|(position, constraint)| {
        let ordered = match constraint.collated {
            true => table.ordered_by_collation(no, *position),
            false => table.ordered(no, *position),
        };
        ordered && (constraint.lower.is_some() || constraint.upper.is_some())
    });
    if equal_parts == 0 && last.is_none() {
        return Ok(None);
    }
    let mut selection = Selection {
        index: no,
        keys: Vec::new(),
        ranges: Vec::new(),
        equal_parts,
        bounded: last.is_some(),
        predicates,
    };
    let mut seen = std::collections::HashSet::new();
    for prefix in prefixes {
        // No row has such a prefix if it cannot be encoded.
        let key = if prefix.is_empty() { None } else { encode(table, no, &prefix)? };
        if !prefix.is_empty() && key.as_ref().is_none_or(|key| !seen.insert(key.clone())) {
            continue;
        }
        let descending = last.is_some_and(|(position, _)| index.parts[position].descending);
        let range =
            bounds(table, no, &prefix, key.as_ref(), last.map(|(_, constraint)| constraint), descending)?;
        selection.ranges.push(range);
        selection.keys.extend(key);
    }
    if let Some((_, constraint)) = last {
        selection.predicates.extend(&constraint.predicates);
    }
    Ok(Some(selection))
}

/// The range of keys that begin with `prefix` and lie within the constraint.
fn bounds(
    table: &Table,
    index: IndexNo,
    prefix: &[ScalarValue],
    key: Option<&Key>,
    constraint: Option<&Constraint>,
    descending: bool,
) -> Result<KeyRange> {
    let whole = || key.map_or(Bound::Unbounded, |key| Bound::Included(key.clone()));
    let bound = |bound: Option<&Bound<ScalarValue>>| -> Result<Bound<Key>> {
        let (value, included) = match bound {
            Some(Bound::Included(value)) => (value, true),
            Some(Bound::Excluded(value)) => (value, false),
            _ => return Ok(whole()),
        };
        // A BINARY(n) is padded with zero bytes, so what is not equal to a shorter value may be equal in the index.
        let padded = value.data_type().is_binary();
        let values: Vec<ScalarValue> = prefix.iter().cloned().chain([value.clone()]).collect();
        Ok(match encode(table, index, &values)? {
            // A key that ends early equals rows on both sides of the bound.
            Some(key) if included || padded || key.part_count() < values.len() => Bound::Included(key),
            Some(key) => Bound::Excluded(key),
            // The value lies outside of the column's type; the predicate itself decides.
            None => whole(),
        })
    };
    let low = bound(constraint.and_then(|constraint| constraint.lower.as_ref()))?;
    let high = bound(constraint.and_then(|constraint| constraint.upper.as_ref()))?;
    Ok(if descending { KeyRange { lower: high, upper: low } } else { KeyRange { lower: low, upper: high } })
}

/// The key of leading values; `None` if no row can have them.
fn encode(table: &Table, index: IndexNo, values: &[ScalarValue]) -> Result<Option<Key>> {
    let definition = table.definition();
    let parts = &definition.indexes[index.0].parts;
    let mut columns: Vec<Option<KeyColumn>> = Vec::with_capacity(values.len());
    for (value, part) in values.iter().zip(parts) {
        if value.is_null() {
            columns.push(None);
            continue;
        }
        let array: ArrayRef = value.to_array()?;
        columns.push(Some(KeyColumn::new(&array, Some(&definition.columns[part.column.0].column_type))?));
    }
    let null = tanada_innodb::Value::Null;
    let values: Vec<_> = columns
        .iter()
        .map(|column| column.as_ref().and_then(|column| column.value(0)).unwrap_or(null.clone()))
        .collect();
    Ok(table.key(index, &values)?)
}

/// Whether all of `columns` can be read from `index` alone.
pub(super) fn covers(relation: &InnodbRelation, index: IndexNo, columns: &[usize]) -> bool {
    let numbers: Vec<_> = columns.iter().copied().map(tanada_innodb::ColumnNo).collect();
    relation.table().access(index, &numbers).is_ok_and(|access| access.covering())
}

/// The name of an index.
pub(super) fn index_name(relation: &Arc<InnodbRelation>, index: IndexNo) -> &str {
    let definition = relation.table().definition();
    definition.indexes.get(index.0).map_or("?", |index| index.name.as_str())
}
