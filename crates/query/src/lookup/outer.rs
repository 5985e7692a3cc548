//! A batch of outer rows on its way through the look-ups.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::record_batch::RecordBatch;

/// Marks the end of a group's list.
const END: u32 = u32::MAX;

/// What becomes of rows with equal keys.
#[derive(Debug)]
pub(super) enum Grouping<'a, K> {
    /// Each is a group of its own.
    Single,
    /// They share a group.
    Shared,
    /// Only the first one counts, over all batches.
    Once(&'a mut HashSet<K>),
}

/// An outer batch, its key values, and its rows grouped by key.
#[derive(Debug)]
pub(super) struct OuterBatch<K> {
    /// The rows.
    pub(super) batch: RecordBatch,
    /// Values of the outer side of each join condition.
    pub(super) values: Vec<ArrayRef>,
    /// The key of each group.
    pub(super) keys: Vec<K>,
    /// Rows that can match nothing.
    pub(super) hopeless: Vec<u32>,
    groups: Groups,
}

/// Rows of each group: a first one, and a chain of further ones if any group has some.
#[derive(Debug)]
struct Groups {
    first: Vec<u32>,
    next: Vec<u32>,
}

impl<K: Clone + Eq + Hash> OuterBatch<K> {
    /// Groups rows by key.
    pub(super) fn new(
        batch: RecordBatch,
        values: Vec<ArrayRef>,
        found: Vec<Option<K>>,
        mut grouping: Grouping<'_, K>,
    ) -> OuterBatch<K> {
        let share = matches!(grouping, Grouping::Shared);
        let mut outer = OuterBatch {
            batch,
            values,
            keys: Vec::with_capacity(found.len()),
            hopeless: Vec::new(),
            groups: Groups { first: Vec::with_capacity(found.len()), next: Vec::new() },
        };
        let mut seen: HashMap<K, u32> = HashMap::with_capacity(if share { found.len() } else { 0 });
        let rows = found.len();
        for (row, key) in found.into_iter().enumerate() {
            // A batch is far smaller than 2^32 rows; saturation would only lose sharing, never rows.
            let row = u32::try_from(row).unwrap_or(END);
            let Some(key) = key else {
                outer.hopeless.push(row);
                continue;
            };
            if let Grouping::Once(seen) = &mut grouping
                && !seen.insert(key.clone())
            {
                continue;
            }
            if share {
                let group = u32::try_from(outer.keys.len()).unwrap_or(END);
                match seen.entry(key.clone()) {
                    Entry::Occupied(entry) => {
                        outer.groups.add(*entry.get() as usize, row, rows);
                        continue;
                    }
                    Entry::Vacant(entry) => {
                        entry.insert(group);
                    }
                }
            }
            outer.keys.push(key);
            outer.groups.first.push(row);
        }
        outer
    }
}

impl<K> OuterBatch<K> {
    /// Number of groups.
    pub(super) fn groups(&self) -> usize {
        self.keys.len()
    }

    /// Whether each group has one row.
    pub(super) fn all_single(&self) -> bool {
        self.groups.next.is_empty()
    }

    /// The rows of a group.
    pub(super) fn rows(&self, group: u32) -> impl Iterator<Item = u32> + '_ {
        let first = self.groups.first.get(group as usize).copied();
        std::iter::successors(first, |row| {
            self.groups.next.get(*row as usize).copied().filter(|next| *next != END)
        })
    }
}

impl Groups {
    /// Puts `row` after the first row of `group`.
    fn add(&mut self, group: usize, row: u32, rows: usize) {
        if self.next.is_empty() {
            self.next = vec![END; rows];
        }
        let first = self.first[group] as usize;
        self.next[row as usize] = self.next[first];
        self.next[first] = row;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::datatypes::Schema;

    use super::*;

    fn grouped(keys: &[Option<u8>], grouping: Grouping<'_, u8>) -> (Vec<(u8, Vec<u32>)>, Vec<u32>) {
        let batch = RecordBatch::new_empty(Arc::new(Schema::empty()));
        let outer = OuterBatch::new(batch, Vec::new(), keys.to_vec(), grouping);
        let mut groups = Vec::new();
        for (group, key) in outer.keys.iter().enumerate() {
            let mut rows: Vec<u32> = outer.rows(u32::try_from(group).unwrap()).collect();
            rows.sort_unstable();
            groups.push((*key, rows));
        }
        (groups, outer.hopeless)
    }

    #[test]
    fn equal_keys_share_a_group_and_nulls_are_set_aside() {
        let keys = [Some(7), None, Some(8), Some(7), Some(7), None];
        assert_eq!(grouped(&keys, Grouping::Shared), (vec![(7, vec![0, 3, 4]), (8, vec![2])], vec![1, 5]));
        let single = vec![(7, vec![0]), (8, vec![2]), (7, vec![3]), (7, vec![4])];
        assert_eq!(grouped(&keys, Grouping::Single), (single, vec![1, 5]));
        let mut seen = HashSet::from([8]);
        assert_eq!(grouped(&keys, Grouping::Once(&mut seen)), (vec![(7, vec![0])], vec![1, 5]));
        assert_eq!(grouped(&keys, Grouping::Once(&mut seen)), (vec![], vec![1, 5]));
    }
}
