//! Kvsets that are worth bringing together for the chunks they take: each takes whole ones, however little is in it,
//! and where hardly any is free, what deletes add to the root of a tree would take the last of them.
//!
//! Kvsets of the root are brought together, or those of a leaf. Where neither gives a chunk back and the tree is small,
//! its root goes down to its leaf: what was written and what deletes it are on different levels then, and together they
//! are one chunk, or none.
//!
//! What is chosen takes fewer chunks when it is written than are free, and gives more of them back than it takes. It
//! ends: a kvset takes the place of several.

use super::edit::{KvsetNo, KvsetRecord, LeafNo};
use super::shape::Tree;
use crate::tree::job::numbers;
use crate::tuning::tree::PICKS;

/// Neighbours that are to be merged, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Together {
    Root(Vec<KvsetNo>),
    Leaf(LeafNo, Vec<KvsetNo>),
    /// Merge these, the whole root of a tree of one leaf, into the leaf.
    Down(LeafNo, Vec<KvsetNo>),
}

/// Chunks that a merge frees in the end, and chunks that it takes before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Worth {
    gain: u64,
    takes: u64,
}

/// The merge that gives most chunks back of those for which `free_chunks` are enough; of the root, kvsets that nobody
/// else is to take away.
pub(crate) fn pick_together<K: AsRef<KvsetRecord>>(
    tree: &Tree<K>,
    chunk_bytes: u64,
    free_chunks: u64,
    is_taken: impl Fn(KvsetNo) -> bool,
) -> Option<Together> {
    let mut best: Option<(Worth, Together)> = None;
    let mut consider = |found: Option<(Worth, &[K])>, make: &dyn Fn(Vec<KvsetNo>) -> Together| {
        let Some((worth, kvsets)) = found else { return };
        let is_better = |best: &Worth| (worth.gain, best.takes) > (best.gain, worth.takes);
        if best.as_ref().is_none_or(|(best, _)| is_better(best)) {
            best = Some((worth, make(numbers(kvsets))));
        }
    };
    for run in tree.root.split(|kvset| is_taken(kvset.as_ref().no)) {
        consider(best_of(run, chunk_bytes, free_chunks), &Together::Root);
    }
    for leaf in &tree.leaves {
        let found = best_of(&leaf.kvsets, chunk_bytes, free_chunks);
        consider(found, &|kvsets| Together::Leaf(leaf.no, kvsets));
    }
    best.map(|(_, together)| together).or_else(|| down(tree, chunk_bytes, free_chunks, is_taken))
}

/// Returns the merge of a whole tree that would fit into one chunk.
fn down<K: AsRef<KvsetRecord>>(
    tree: &Tree<K>,
    chunk_bytes: u64,
    free_chunks: u64,
    is_taken: impl Fn(KvsetNo) -> bool,
) -> Option<Together> {
    let [leaf] = &tree.leaves[..] else { return None };
    let sizes = tree.root.iter().chain(&leaf.kvsets).map(|kvset| kvset.as_ref().info.size_bytes.max(1));
    let fits = sizes.sum::<u64>() <= chunk_bytes && free_chunks > 0;
    let is_free = !tree.root.iter().any(|kvset| is_taken(kvset.as_ref().no));
    let is_worth_it = fits && is_free && !tree.root.is_empty() && !leaf.kvsets.is_empty();
    is_worth_it.then(|| Together::Down(leaf.no, numbers(&tree.root)))
}

/// The neighbours among `kvsets` that give most chunks back.
fn best_of<K: AsRef<KvsetRecord>>(kvsets: &[K], chunk_bytes: u64, free_chunks: u64) -> Option<(Worth, &[K])> {
    let mut best: Option<(Worth, &[K])> = None;
    for first in 0..kvsets.len() {
        let (mut chunks, mut bytes) = (0, 0);
        for (index, kvset) in kvsets.iter().enumerate().skip(first) {
            let size = kvset.as_ref().info.size_bytes.max(1);
            chunks += size.div_ceil(chunk_bytes);
            bytes += size;
            let takes = bytes.div_ceil(chunk_bytes);
            if takes > free_chunks {
                break;
            }
            let worth = Worth { gain: chunks - takes, takes };
            let is_worth_it = worth.gain >= PICKS.min_gained_chunks || (worth.gain > 0 && takes == 1);
            if is_worth_it && best.is_none_or(|(best, _)| worth.gain > best.gain) {
                best = Some((worth, &kvsets[first..=index]));
            }
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::super::pick::testing::{kvset, tree};
    use super::*;
    use crate::tree::TreeRecord;

    const CHUNK: u64 = 1000;

    /// Kvsets of this many bytes, their numbers counted from `first` on.
    fn kvsets(first: KvsetNo, sizes: &[u64]) -> Vec<KvsetRecord> {
        let sized = |(index, size): (usize, &u64)| {
            let mut made = kvset(first + index as u64, 1, &[]);
            made.info.size_bytes = *size;
            made
        };
        sizes.iter().enumerate().map(sized).collect()
    }

    fn picked(tree: &TreeRecord, free_chunks: u64, taken: &[KvsetNo]) -> Option<Together> {
        pick_together(tree, CHUNK, free_chunks, |no| taken.contains(&no))
    }

    #[test]
    fn the_kvsets_that_free_most_chunks_are_merged() {
        let (root, leaf) = (kvsets(1, &[10, 10, 10]), kvsets(11, &[100, 200, 300, 100, 5900]));
        let both = tree(&root, &[&leaf], &[]);
        // Of the leaf four chunks give back three; with the large one seven would be taken for as many.
        assert_eq!(picked(&both, 9, &[]), Some(Together::Leaf(0, vec![11, 12, 13, 14])));
        let of_root = tree(&root, &[&leaf[4..]], &[]);
        assert_eq!(picked(&of_root, 9, &[]), Some(Together::Root(vec![1, 2, 3])));
        assert_eq!(picked(&of_root, 9, &[2]), None, "another job has the one between");
    }

    /// A store with one key, which was deleted.
    #[test]
    fn the_root_of_a_small_tree_is_merged_with_the_leaf_below() {
        let (root, leaf) = (kvsets(1, &[10]), kvsets(11, &[100]));
        let small = tree(&root, &[&leaf], &[]);
        assert_eq!(picked(&small, 1, &[]), Some(Together::Down(0, vec![1])));
        assert_eq!(picked(&small, 0, &[]), None);
        assert_eq!(picked(&small, 1, &[1]), None);
        assert_eq!(picked(&tree(&root, &[&leaf, &kvsets(21, &[10])], &[]), 1, &[]), None);
        assert_eq!(picked(&tree(&root, &[], &[]), 1, &[]), None);
        assert_eq!(picked(&tree(&[], &[&leaf], &[]), 1, &[]), None);
        assert_eq!(picked(&tree(&root, &[&kvsets(11, &[1000])], &[]), 1, &[]), None);
    }

    #[test]
    fn merges_without_space_or_gain_are_not_picked() {
        let large = kvsets(1, &[1100, 1100, 1100, 1100, 1100]);
        let large = tree(&large, &[], &[]);
        // All five are six chunks instead of ten; four are five instead of eight.
        assert_eq!(picked(&large, 6, &[]), Some(Together::Root(vec![1, 2, 3, 4, 5])));
        assert_eq!(picked(&large, 5, &[]), Some(Together::Root(vec![1, 2, 3, 4])));
        assert_eq!(picked(&large, 3, &[]), None);
        let two = tree(&kvsets(1, &[10, 1000]), &[&kvsets(11, &[600, 600]), &kvsets(21, &[10])], &[]);
        assert_eq!(picked(&two, 9, &[]), None);
        let small = tree(&kvsets(1, &[10, 1000]), &[&kvsets(11, &[300, 600])], &[]);
        assert_eq!(picked(&small, 1, &[]), Some(Together::Leaf(0, vec![11, 12])));
        assert_eq!(picked(&TreeRecord::default(), 9, &[]), None);
    }
}
