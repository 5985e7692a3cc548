//! A tree as it is at one moment, and what an edit makes of it.
//!
//! It is generic over what stands for a kvset: its record alone (for the manifest and for tests of decisions), or an
//! opened one. What readers have never changes: applying an edit gives another tree. Only a manifest changes its own as
//! it is read, for there are as many edits as kvsets, leaves and segments; so an edit has to cost what it changes, not
//! what there is.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use bytes::Bytes;

use super::edit::{Change, Edit, KvsetNo, KvsetRecord, LeafNo, Place, Position, SegmentRecord};
use super::mirror::Mirror;
use crate::entry::SegmentNo;
use crate::{Error, Result};

/// A range of keys at the bottom of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Leaf<K> {
    pub(crate) no: LeafNo,
    /// The first key that may be in it.
    pub(crate) start: Bytes,
    /// Newest first.
    pub(crate) kvsets: Vec<K>,
}

impl<K: AsRef<KvsetRecord>> Leaf<K> {
    /// Bytes of values that it has in each segment.
    pub(crate) fn values_by_segment(&self) -> BTreeMap<SegmentNo, u64> {
        let mut bytes = BTreeMap::new();
        for references in self.kvsets.iter().flat_map(|kvset| &kvset.as_ref().info.references) {
            *bytes.entry(references.segment).or_default() += references.stored_bytes;
        }
        bytes
    }
}

/// A store's kvsets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tree<K> {
    /// Newest first.
    pub(crate) root: Vec<K>,
    /// By first key, ascending; none only before the first edit that adds one.
    pub(crate) leaves: Vec<Leaf<K>>,
    /// Segments in which values that leaves have elsewhere may be read, too. That they are here does not make them
    /// referenced.
    pub(crate) mirrors: BTreeMap<SegmentNo, Mirror>,
    /// The value segments that kvsets reference, or that are mirrors; what there is of both beside these are log
    /// segments.
    pub(crate) segments: BTreeMap<SegmentNo, SegmentRecord>,
    /// First key of each leaf, by its number.
    starts: Arc<HashMap<LeafNo, Bytes>>,
    /// Number of kvsets that reference each segment, log segments included.
    uses: HashMap<SegmentNo, u32>,
}

/// A tree as the manifest knows it.
pub(crate) type TreeRecord = Tree<KvsetRecord>;

impl<K> Default for Tree<K> {
    fn default() -> Tree<K> {
        Tree {
            root: Vec::new(),
            leaves: Vec::new(),
            mirrors: BTreeMap::new(),
            segments: BTreeMap::new(),
            starts: Arc::default(),
            uses: HashMap::new(),
        }
    }
}

impl<K> Tree<K> {
    /// The index of the leaf that `key` belongs to.
    pub(crate) fn leaf_index(&self, key: &[u8]) -> Option<usize> {
        self.leaves.partition_point(|leaf| *leaf.start <= *key).checked_sub(1)
    }

    /// The leaf that `key` belongs to.
    pub(crate) fn leaf(&self, key: &[u8]) -> Option<&Leaf<K>> {
        self.leaves.get(self.leaf_index(key)?)
    }

    /// The leaf of that number.
    pub(crate) fn leaf_by_no(&self, no: LeafNo) -> Option<&Leaf<K>> {
        self.leaves.get(self.index_by_no(no)?)
    }

    fn index_by_no(&self, no: LeafNo) -> Option<usize> {
        let start = self.starts.get(&no)?;
        self.leaves.binary_search_by(|leaf| leaf.start.cmp(start)).ok()
    }

    /// The first key behind the leaf at `index`; `None` for the last one.
    pub(crate) fn leaf_end(&self, index: usize) -> Option<&Bytes> {
        self.leaves.get(index + 1).map(|leaf| &leaf.start)
    }

    /// A number that no leaf has.
    pub(crate) fn next_leaf(&self) -> LeafNo {
        self.leaves.iter().map(|leaf| leaf.no + 1).max().unwrap_or(0)
    }

    /// All kvsets.
    pub(crate) fn kvsets(&self) -> impl Iterator<Item = &K> {
        self.root.iter().chain(self.leaves.iter().flat_map(|leaf| &leaf.kvsets))
    }

    fn place(&mut self, place: Place) -> Option<&mut Vec<K>> {
        match place {
            Place::Root => Some(&mut self.root),
            Place::Spilled => None,
            Place::Leaf(no) => {
                let index = self.index_by_no(no)?;
                self.leaves.get_mut(index).map(|leaf| &mut leaf.kvsets)
            }
        }
    }
}

fn impossible(what: impl Into<String>) -> Error {
    Error::corrupted(format!("an edit does not fit its tree: {}", what.into()))
}

impl<K: AsRef<KvsetRecord> + Clone> Tree<K> {
    /// The tree after `edit`; `open` gives what stands for a kvset that it adds.
    ///
    /// # Errors
    /// `Corrupted` if the edit does not fit, and those of `open`.
    pub(crate) fn apply(&self, edit: &Edit, open: impl FnMut(&KvsetRecord) -> Result<K>) -> Result<Tree<K>> {
        let mut tree = self.clone();
        tree.change(edit, open)?;
        Ok(tree)
    }

    /// Makes the tree what it is after `edit`, as [`apply`](Self::apply) does. After an error it is neither what it was
    /// nor what it should be.
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
    pub(crate) fn change(
        &mut self,
        edit: &Edit,
        mut open: impl FnMut(&KvsetRecord) -> Result<K>,
    ) -> Result<()> {
        let mut unsure = BTreeSet::new();
        for change in &edit.changes {
            match change {
                Change::AddKvset { place: Place::Spilled, .. }
                | Change::RemoveKvset { place: Place::Spilled, .. } => {}
                Change::AddMirror { segment, stored_bytes } => {
                    self.mirrors.entry(*segment).or_default().stored_bytes += stored_bytes;
                }
                Change::RemoveMirror { segment } => {
                    self.mirrors.remove(segment);
                    unsure.insert(*segment);
                }
                Change::AddLeaf { leaf, start } => self.add_leaf(*leaf, start)?,
                Change::JoinLeaf { leaf } => self.join_leaf(*leaf)?,
                Change::AddSegment { segment } => {
                    self.segments.insert(segment.no, segment.clone());
                }
                Change::AddKvset { place, position, kvset } => {
                    let opened = open(kvset)?;
                    let kvsets = self.kvsets_at(*place)?;
                    let index = match position {
                        Position::Top => 0,
                        Position::Above(below) => index_of(kvsets, *below)?,
                    };
                    kvsets.insert(index, opened);
                    self.count_uses(kvset);
                }
                Change::RemoveKvset { place, kvset } => {
                    let kvsets = self.kvsets_at(*place)?;
                    let removed = kvsets.remove(index_of(kvsets, *kvset)?);
                    unsure.extend(self.discount_uses(removed.as_ref()));
                }
            }
        }
        // A kvset may have come again at another place meanwhile, and what held copies may be a mirror now.
        for no in unsure.iter().filter(|no| !self.uses.contains_key(no) && !self.mirrors.contains_key(no)) {
            self.segments.remove(no);
        }
        Ok(())
    }

    /// Returns whether any kvset references that segment.
    pub(crate) fn is_referenced(&self, segment: SegmentNo) -> bool {
        self.uses.contains_key(&segment)
    }

    fn count_uses(&mut self, kvset: &KvsetRecord) {
        for references in &kvset.info.references {
            *self.uses.entry(references.segment).or_default() += 1;
        }
    }

    /// Takes back what was counted of a kvset; the segments that no other references.
    fn discount_uses(&mut self, kvset: &KvsetRecord) -> Vec<SegmentNo> {
        let mut unused = Vec::new();
        for references in &kvset.info.references {
            match self.uses.get_mut(&references.segment) {
                Some(uses) if *uses > 1 => *uses -= 1,
                _ => {
                    self.uses.remove(&references.segment);
                    unused.push(references.segment);
                }
            }
        }
        unused
    }

    fn kvsets_at(&mut self, place: Place) -> Result<&mut Vec<K>> {
        self.place(place).ok_or_else(|| impossible(format!("there is no {place:?}")))
    }

    fn add_leaf(&mut self, no: LeafNo, start: &Bytes) -> Result<()> {
        if self.starts.contains_key(&no) {
            return Err(impossible(format!("there is a leaf {no} already")));
        }
        if self.leaves.is_empty() && !start.is_empty() {
            return Err(impossible("the first leaf does not begin at the empty key"));
        }
        match self.leaves.binary_search_by(|leaf| leaf.start.cmp(start)) {
            Ok(_) => Err(impossible("two leaves begin at one key")),
            Err(index) => {
                self.leaves.insert(index, Leaf { no, start: start.clone(), kvsets: Vec::new() });
                Arc::make_mut(&mut self.starts).insert(no, start.clone());
                Ok(())
            }
        }
    }

    fn join_leaf(&mut self, no: LeafNo) -> Result<()> {
        let index = self.index_by_no(no).ok_or_else(|| impossible(format!("there is no leaf {no}")))?;
        if index == 0 {
            return Err(impossible("the first leaf has none before it"));
        }
        let mut kvsets = self.leaves.remove(index).kvsets;
        let before = &mut self.leaves[index - 1].kvsets;
        kvsets.append(before);
        *before = kvsets;
        Arc::make_mut(&mut self.starts).remove(&no);
        Ok(())
    }

    /// The tree without its mirrors, for whoever does not read by them: what holds a tree holds the segments of its
    /// kvsets.
    pub(crate) fn without_mirrors(&self) -> Tree<K> {
        Tree { mirrors: BTreeMap::new(), ..self.clone() }
    }

    /// Returns the values and stored bytes that all kvsets reference, by segment.
    pub(crate) fn references(&self) -> BTreeMap<SegmentNo, (u64, u64)> {
        let mut sums: BTreeMap<SegmentNo, (u64, u64)> = BTreeMap::new();
        for references in self.kvsets().flat_map(|kvset| &kvset.as_ref().info.references) {
            let sum = sums.entry(references.segment).or_default();
            sum.0 += references.values;
            sum.1 += references.stored_bytes;
        }
        sums
    }

    /// The tree's records.
    #[cfg(test)]
    pub(crate) fn record(&self) -> TreeRecord {
        let records = |kvsets: &[K]| kvsets.iter().map(|kvset| kvset.as_ref().clone()).collect();
        let leaf =
            |leaf: &Leaf<K>| Leaf { no: leaf.no, start: leaf.start.clone(), kvsets: records(&leaf.kvsets) };
        Tree {
            root: records(&self.root),
            leaves: self.leaves.iter().map(leaf).collect(),
            mirrors: self.mirrors.clone(),
            segments: self.segments.clone(),
            starts: self.starts.clone(),
            uses: self.uses.clone(),
        }
    }

    /// The edit that makes this tree of an empty one.
    pub(crate) fn to_edit(&self) -> Edit {
        let mut changes: Vec<Change> = self
            .leaves
            .iter()
            .map(|leaf| Change::AddLeaf { leaf: leaf.no, start: leaf.start.clone() })
            .collect();
        changes.extend(self.segments.values().map(|segment| Change::AddSegment { segment: segment.clone() }));
        let leaves = self.leaves.iter().map(|leaf| (Place::Leaf(leaf.no), &leaf.kvsets));
        for (place, kvsets) in std::iter::once((Place::Root, &self.root)).chain(leaves) {
            let oldest_first = kvsets.iter().rev();
            changes.extend(oldest_first.map(|kvset| Change::AddKvset {
                place,
                position: Position::Top,
                kvset: kvset.as_ref().clone(),
            }));
        }
        let mirrors = self.mirrors.iter();
        changes.extend(mirrors.map(|(segment, mirror)| Change::AddMirror {
            segment: *segment,
            stored_bytes: mirror.stored_bytes,
        }));
        Edit { changes }
    }
}

fn index_of<K: AsRef<KvsetRecord>>(kvsets: &[K], no: KvsetNo) -> Result<usize> {
    let index = kvsets.iter().position(|kvset| kvset.as_ref().no == no);
    index.ok_or_else(|| impossible(format!("there is no kvset {no}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keyfile::{KeyFileInfo, SegmentReferences};

    fn kvset(no: KvsetNo, segments: &[SegmentNo]) -> KvsetRecord {
        let references = segments.iter().map(|segment| SegmentReferences {
            segment: *segment,
            values: 1,
            stored_bytes: 10,
        });
        let info = KeyFileInfo { references: references.collect(), ..KeyFileInfo::default() };
        KvsetRecord { no, info, ..KvsetRecord::default() }
    }

    fn add(place: Place, position: Position, kvset: KvsetRecord) -> Change {
        Change::AddKvset { place, position, kvset }
    }

    fn apply(tree: &TreeRecord, changes: Vec<Change>) -> Result<TreeRecord> {
        tree.apply(&Edit { changes }, |record| Ok(record.clone()))
    }

    fn numbers(kvsets: &[KvsetRecord]) -> Vec<KvsetNo> {
        kvsets.iter().map(|kvset| kvset.no).collect()
    }

    fn start() -> TreeRecord {
        let segment = SegmentRecord { no: 50, stored_bytes: 30, class: None };
        let changes = vec![
            Change::AddLeaf { leaf: 0, start: Bytes::new() },
            Change::AddLeaf { leaf: 1, start: Bytes::from_static(b"m") },
            Change::AddSegment { segment },
            Change::AddMirror { segment: 40, stored_bytes: 7 },
            add(Place::Root, Position::Top, kvset(10, &[40])),
            add(Place::Root, Position::Top, kvset(11, &[41])),
            add(Place::Root, Position::Top, kvset(12, &[])),
            add(Place::Leaf(1), Position::Top, kvset(13, &[50])),
        ];
        apply(&TreeRecord::default(), changes).unwrap()
    }

    #[test]
    fn a_spill_is_applied_under_a_newer_flush() {
        let tree = start();
        assert_eq!(numbers(&tree.root), [12, 11, 10]);
        let changes = vec![
            add(Place::Root, Position::Above(11), kvset(20, &[])),
            Change::RemoveKvset { place: Place::Root, kvset: 11 },
            Change::RemoveKvset { place: Place::Root, kvset: 10 },
            add(Place::Leaf(1), Position::Top, kvset(21, &[50])),
            Change::RemoveKvset { place: Place::Leaf(1), kvset: 13 },
        ];
        let after = apply(&tree, changes).unwrap();
        assert_eq!(numbers(&after.root), [12, 20]);
        assert_eq!(numbers(&after.leaf(b"m").unwrap().kvsets), [21]);
        assert!(after.leaf(b"lzz").unwrap().kvsets.is_empty());
        assert_eq!(after.references().get(&50), Some(&(1, 10)));
        assert_eq!(numbers(&tree.root), [12, 11, 10], "the tree before is as it was");
    }

    #[test]
    fn leaves_become_one() {
        let changes = vec![
            add(Place::Leaf(0), Position::Top, kvset(20, &[])),
            add(Place::Leaf(1), Position::Top, kvset(21, &[])),
            Change::AddLeaf { leaf: 2, start: Bytes::from_static(b"t") },
            Change::JoinLeaf { leaf: 2 },
            Change::JoinLeaf { leaf: 1 },
        ];
        let tree = start();
        let after = apply(&tree, changes).unwrap();
        assert_eq!(after.leaves.len(), 1);
        assert_eq!(numbers(&after.leaf(b"z").unwrap().kvsets), [21, 13, 20], "each newest first");
        assert!(after.leaf_by_no(1).is_none() && after.segments.contains_key(&50));
        assert_eq!(apply(&TreeRecord::default(), after.to_edit().changes).unwrap(), after);
        // The number is free again.
        let again = Change::AddLeaf { leaf: 1, start: Bytes::from_static(b"q") };
        assert_eq!(apply(&after, vec![again]).unwrap().leaf(b"r").unwrap().no, 1);
    }

    #[test]
    fn a_segment_leaves_with_its_last_reference() {
        let tree = start();
        assert!(tree.segments.contains_key(&50));
        let removed = Change::RemoveKvset { place: Place::Leaf(1), kvset: 13 };
        let after = apply(&tree, vec![removed.clone()]).unwrap();
        assert!(after.segments.is_empty());
        // Moved, whether it goes or comes first; and referenced by another one.
        let moved = add(Place::Leaf(0), Position::Top, kvset(13, &[50]));
        for changes in [[removed.clone(), moved.clone()], [moved, removed.clone()]] {
            let after = apply(&tree, changes.to_vec()).unwrap();
            assert!(after.segments.contains_key(&50));
            let removed = Change::RemoveKvset { place: Place::Leaf(0), kvset: 13 };
            assert!(apply(&after, vec![removed]).unwrap().segments.is_empty());
        }
        let shared = add(Place::Leaf(0), Position::Top, kvset(14, &[40, 50]));
        let after = apply(&tree, vec![shared, removed]).unwrap();
        assert!(after.segments.contains_key(&50));
        assert_eq!(after.uses.get(&40), Some(&2));
    }

    #[test]
    fn a_segment_of_copies_stays_as_a_mirror() {
        let removed = Change::RemoveKvset { place: Place::Leaf(1), kvset: 13 };
        let after =
            apply(&start(), vec![Change::AddMirror { segment: 50, stored_bytes: 4 }, removed]).unwrap();
        assert!(after.segments.contains_key(&50) && !after.is_referenced(50));
        assert_eq!(apply(&TreeRecord::default(), after.to_edit().changes).unwrap(), after);
        let after = apply(&after, vec![Change::RemoveMirror { segment: 50 }]).unwrap();
        assert!(after.segments.is_empty());
        // What is referenced stays.
        let kept = [Change::AddMirror { segment: 50, stored_bytes: 4 }, Change::RemoveMirror { segment: 50 }];
        assert!(apply(&start(), kept.to_vec()).unwrap().segments.contains_key(&50));
    }

    #[test]
    fn mirrors_add_up_and_are_no_references() {
        let more = Change::AddMirror { segment: 40, stored_bytes: 3 };
        let after = apply(&start(), vec![more, Change::AddMirror { segment: 42, stored_bytes: 5 }]).unwrap();
        let bytes: Vec<_> = after.mirrors.iter().map(|(no, mirror)| (*no, mirror.stored_bytes)).collect();
        assert_eq!(bytes, [(40, 10), (42, 5)]);
        assert!(!after.references().contains_key(&42));
        let after = apply(&after, vec![Change::RemoveMirror { segment: 40 }]).unwrap();
        assert_eq!(after.mirrors.keys().copied().collect::<Vec<_>>(), [42]);
        assert!(after.references().contains_key(&40));
    }

    #[test]
    fn records_of_spills_by_earlier_versions_are_skipped() {
        let tree = start();
        let changes = vec![
            add(Place::Spilled, Position::Top, kvset(30, &[41])),
            Change::RemoveKvset { place: Place::Spilled, kvset: 29 },
        ];
        let opens = |_: &KvsetRecord| -> Result<KvsetRecord> { panic!("nothing is opened") };
        assert_eq!(tree.apply(&Edit { changes }, opens).unwrap(), tree);
    }

    #[test]
    fn a_tree_is_rebuilt_from_its_edit() {
        let tree = start();
        assert_eq!(apply(&TreeRecord::default(), tree.to_edit().changes).unwrap(), tree);
        assert_eq!(tree.record(), tree);
    }

    #[test]
    fn an_edit_that_does_not_fit_is_refused() {
        let tree = start();
        let misfits = [
            Change::AddLeaf { leaf: 1, start: Bytes::from_static(b"x") },
            Change::AddLeaf { leaf: 2, start: Bytes::from_static(b"m") },
            Change::RemoveKvset { place: Place::Root, kvset: 13 },
            Change::RemoveKvset { place: Place::Leaf(5), kvset: 13 },
            Change::JoinLeaf { leaf: 0 },
            Change::JoinLeaf { leaf: 5 },
            add(Place::Leaf(0), Position::Above(13), kvset(30, &[])),
        ];
        for misfit in misfits {
            assert!(apply(&tree, vec![misfit.clone()]).is_err(), "{misfit:?}");
        }
        let late = Change::AddLeaf { leaf: 0, start: Bytes::from_static(b"x") };
        assert!(apply(&TreeRecord::default(), vec![late]).is_err());
    }
}
