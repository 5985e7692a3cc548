//! Merges of lists against what the lists say.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use futures::executor::block_on;
use futures::future::BoxFuture;
use proptest::prelude::*;

use super::*;
use crate::Result;
use crate::entry::{Content, RangeTombstone, SequenceNo, Version};
use crate::tombstone::{RangeTombstones, SeenTombstones};

/// A sorted list as a source that has to load before every third version.
struct List {
    versions: Vec<(Vec<u8>, Version)>,
    direction: Direction,
    /// Of the version behind the position, or in reverse the one before it.
    at: usize,
    is_loading: bool,
}

impl List {
    fn new(mut versions: Vec<(Vec<u8>, Version)>) -> List {
        versions.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.sequence.cmp(&a.1.sequence)));
        versions.dedup_by(|a, b| a.0 == b.0 && a.1.sequence == b.1.sequence);
        List { versions, direction: Direction::Forward, at: 0, is_loading: false }
    }

    fn current(&self) -> Option<&(Vec<u8>, Version)> {
        match self.direction {
            _ if self.is_loading => None,
            Direction::Forward => self.versions.get(self.at),
            Direction::Reverse => self.at.checked_sub(1).and_then(|at| self.versions.get(at)),
        }
    }

    fn pause(&mut self) -> Step {
        self.is_loading = self.at.is_multiple_of(3);
        if self.is_loading { Step::Load } else { Step::Done }
    }
}

impl Source for List {
    fn seek(&mut self, direction: Direction, bound: Option<&[u8]>) -> Result<Step> {
        self.direction = direction;
        self.at = match (direction, bound) {
            (Direction::Forward, None) => 0,
            (Direction::Reverse, None) => self.versions.len(),
            (_, Some(bound)) => self.versions.partition_point(|(key, _)| &**key < bound),
        };
        Ok(self.pause())
    }

    fn advance(&mut self) -> Result<Step> {
        match self.direction {
            Direction::Forward => self.at += 1,
            Direction::Reverse => self.at -= 1,
        }
        Ok(self.pause())
    }

    fn load(&mut self) -> BoxFuture<'_, Result<()>> {
        self.is_loading = false;
        Box::pin(async { Ok(()) })
    }

    fn key(&self) -> Option<&[u8]> {
        self.current().map(|(key, _)| &**key)
    }

    fn sequence(&self) -> SequenceNo {
        self.current().map_or(0, |(_, version)| version.sequence)
    }

    fn version(&self) -> Result<Version> {
        Ok(self.current().unwrap().1.clone())
    }
}

type Entries = Vec<(u8, SequenceNo, u8)>;

/// Of several versions with one key and number the last one counts: sources are built newest last here, and turned
/// round.
fn build(key: u8, sequence: SequenceNo, kind: u8) -> (Vec<u8>, Version) {
    let content =
        if kind.is_multiple_of(3) { Content::Deleted } else { Content::Inline(Bytes::from(vec![kind])) };
    let expires_s = (kind % 5 == 4).then_some(50 + u32::from(kind));
    (vec![key], Version::new(sequence, expires_s, content))
}

/// Sources, newest first, so that equal versions differ by nothing but their source.
fn sources() -> impl Strategy<Value = Vec<Entries>> {
    let entry = (0u8..12, 1u64..30, any::<u8>());
    proptest::collection::vec(proptest::collection::vec(entry, 0..40), 0..5)
}

fn tombstones() -> impl Strategy<Value = Vec<RangeTombstone>> {
    let tombstone = (0u8..12, proptest::option::of(0u8..14), 1u64..30).prop_map(|(start, end, sequence)| {
        let key = |key: u8| Bytes::from(vec![key]);
        RangeTombstone { start: key(start), end: end.map(key), sequence }
    });
    prop_oneof![
        proptest::collection::vec(tombstone.clone(), 0..4),
        proptest::collection::vec(tombstone, 10..40),
    ]
}

/// Loads that ended before number 31, which is the newest; one at most for each number.
fn loads() -> impl Strategy<Value = Vec<Load>> {
    proptest::collection::btree_map(1u64..30, 1u64..12, 0..4).prop_map(|loads| {
        loads.into_iter().map(|(begin, until)| Load { begin, end: (begin + until).min(31) }).collect()
    })
}

fn lists(sources: &[Entries]) -> Vec<List> {
    let list = |entries: &Entries| {
        List::new(entries.iter().map(|(key, sequence, kind)| build(*key, *sequence, *kind)).collect())
    };
    sources.iter().map(list).collect()
}

/// All versions, of equal ones that of the newest source.
fn model(sources: &[Entries]) -> BTreeMap<(Vec<u8>, std::cmp::Reverse<SequenceNo>), Version> {
    let mut model = BTreeMap::new();
    for list in lists(sources).into_iter().rev() {
        model.extend(
            list.versions
                .into_iter()
                .map(|(key, version)| ((key, std::cmp::Reverse(version.sequence)), version)),
        );
    }
    model
}

fn visible(
    versions: &BTreeMap<(Vec<u8>, std::cmp::Reverse<SequenceNo>), Version>,
    tombstones: &[RangeTombstone],
    (snapshot, unseen): (SequenceNo, &[SequenceNo]),
    now_s: u64,
) -> Vec<(Vec<u8>, Version)> {
    let mut newest: BTreeMap<Vec<u8>, Version> = BTreeMap::new();
    for ((key, _), version) in versions {
        if version.sequence <= snapshot && !unseen.contains(&version.sequence) {
            newest.entry(key.clone()).or_insert_with(|| version.clone());
        }
    }
    let is_hidden = |key: &[u8], version: &Version| {
        tombstones.iter().any(|tombstone| {
            tombstone.covers(key) && tombstone.sequence <= snapshot && tombstone.sequence > version.sequence
        })
    };
    newest.into_iter().filter(|(key, version)| is_live(version, now_s) && !is_hidden(key, version)).collect()
}

async fn walk(view: &mut View<List>, direction: Direction, bound: Option<&[u8]>) -> Vec<(Vec<u8>, Version)> {
    view.seek(direction, bound).await.unwrap();
    let mut walked = Vec::new();
    while view.step().await.unwrap() {
        walked.push((view.key().to_vec(), view.version().unwrap().clone()));
    }
    assert!(view.version().is_none());
    walked
}

proptest! {
    #[test]
    fn merged_views_return_the_versions_of_their_snapshot(
        sources in sources(),
        tombstones in tombstones(),
        loads in loads(),
        snapshot in 0u64..32,
        now_s in 0u64..300,
        bound in 0u8..13,
    ) {
        block_on(async {
            // Of two sources.
            let mut seen = SeenTombstones::default();
            for some in tombstones.chunks(2) {
                seen.add(Arc::new(RangeTombstones::new(some.to_vec())), snapshot);
            }
            let unseen = Readers { numbers: vec![], loads }.unseen_at(snapshot);
            let visibility = Visibility { snapshot, unseen: unseen.clone(), now_s, tombstones: seen };
            let mut view = View::new(lists(&sources), visibility);
            let mut expected = visible(&model(&sources), &tombstones, (snapshot, &unseen), now_s);
            assert_eq!(walk(&mut view, Direction::Forward, None).await, expected);
            let from: Vec<_> = expected.iter().filter(|(key, _)| *key >= vec![bound]).cloned().collect();
            assert_eq!(walk(&mut view, Direction::Forward, Some(&[bound])).await, from);
            expected.reverse();
            assert_eq!(walk(&mut view, Direction::Reverse, None).await, expected);
            let before: Vec<_> = expected.into_iter().filter(|(key, _)| *key < vec![bound]).collect();
            assert_eq!(walk(&mut view, Direction::Reverse, Some(&[bound])).await, before);
        });
    }

    #[test]
    fn a_merge_is_in_order_both_ways(sources in sources()) {
        block_on(async {
            let mut merge = Merge::new(lists(&sources));
            let mut runs = Vec::new();
            for direction in [Direction::Forward, Direction::Reverse] {
                merge.seek(direction, None).await.unwrap();
                let mut run = Vec::new();
                while let Some(key) = merge.key() {
                    run.push((key.to_vec(), std::cmp::Reverse(merge.sequence()), merge.top().unwrap()));
                    if merge.advance().unwrap() == Step::Load {
                        merge.load().await.unwrap();
                    }
                }
                runs.push(run);
            }
            assert_eq!(runs[0].len(), lists(&sources).iter().map(|list| list.versions.len()).sum::<usize>());
            assert!(runs[0].is_sorted());
            runs[1].reverse();
            assert_eq!(runs[0], runs[1]);
        });
    }

    /// What a merge keeps looks the same to every snapshot, over what lies below it, and is as little as can be.
    #[test]
    fn merges_keep_exactly_what_snapshots_see(
        sources in sources(),
        tombstones in tombstones(),
        below in proptest::collection::vec((0u8..12, any::<u8>()), 0..12),
        loads in loads(),
        mut numbers in proptest::collection::vec(0u64..32, 0..4),
        is_bottom: bool,
        now_s in 0u64..300,
    ) {
        block_on(async {
            numbers.sort_unstable();
            let readers = Readers { numbers, loads };
            let prepared = RangeTombstones::new(tombstones.clone());
            let retention = Retention { readers: readers.clone(), now_s, is_bottom };
            let mut groups = Groups::new(lists(&sources), prepared, None).await.unwrap();
            // Below lies what is older, in a tree that has a below.
            let below: Entries = if is_bottom { vec![] } else { below.iter().map(|(key, kind)| (*key, 0, *kind)).collect() };
            let older = model(std::slice::from_ref(&below));
            let mut kept = BTreeMap::new();
            while groups.next(&retention).await.unwrap() {
                let (key, versions) = groups.group();
                for version in versions.drain(..) {
                    kept.insert((key.to_vec(), std::cmp::Reverse(version.sequence)), version);
                }
            }
            let kept_tombstones = retention.tombstones_within(groups.tombstones(), &[], None);
            let mut before = model(&sources);
            before.extend(older.clone());
            let mut after = kept.clone();
            after.extend(older);
            let mut seen = BTreeSet::new();
            for snapshot in readers.numbers.iter().copied().chain([SequenceNo::MAX]) {
                let unseen = readers.unseen_at(snapshot);
                let now_visible = visible(&after, &kept_tombstones, (snapshot, &unseen), now_s);
                let was_visible = visible(&before, &tombstones, (snapshot, &unseen), now_s);
                assert_eq!(now_visible, was_visible, "at {snapshot}");
                seen.extend(was_visible.into_iter().map(|(key, version)| (key, version.sequence)));
            }
            let values = kept.iter().filter(|(_, version)| version.content != Content::Deleted);
            for ((key, sequence), _) in values {
                assert!(seen.contains(&(key.clone(), sequence.0)), "{key:?} at {sequence:?} is kept for nobody");
            }
            if is_bottom && readers.numbers.is_empty() {
                assert!(kept_tombstones.is_empty());
                assert_eq!(kept.len(), visible(&before, &tombstones, (SequenceNo::MAX, &[]), now_s).len());
            }
        });
    }
}
