//! What stays of earlier runs when their chance is taken away.
//!
//! 1. A chunk's uses in a segment become the mean over the segments around it.
//! 2. Then they become the mean over its neighbours: chunks of an index are read alike, unless there is more to it than
//!    chance.

use std::collections::BTreeMap;

use super::history::Segment;
use crate::costs::Reads;

/// Segments that are taken as one.
pub(super) const GROUP: usize = 4;

/// Groups before and behind.
const GROUPS: usize = 3;

/// Chunks before and behind.
const NEIGHBOURS: u32 = 32;

/// What such segments expect all together.
pub(super) fn together(segments: &[Segment]) -> Segment {
    let mut sum: BTreeMap<u32, Reads> = BTreeMap::new();
    for (no, uses) in segments.iter().flatten() {
        let entry = sum.entry(*no).or_default();
        *entry = entry.plus(*uses, 1.0);
    }
    sum.into_iter().collect()
}

/// The segments of each group, without their chance.
pub(super) fn smoothed(segments: &[Segment]) -> Vec<Segment> {
    let groups: Vec<(Segment, usize)> =
        segments.chunks(GROUP).map(|group| (together(group), group.len())).collect();
    let over_time = (0..groups.len()).map(|at| {
        let around = &groups[at.saturating_sub(GROUPS)..(at + GROUPS + 1).min(groups.len())];
        let share = 1.0 / around.iter().map(|(_, len)| *len).sum::<usize>().max(1) as f32;
        let mut mean: BTreeMap<u32, Reads> = BTreeMap::new();
        for (no, uses) in around.iter().flat_map(|(group, _)| group) {
            let sum = mean.entry(*no).or_default();
            *sum = sum.plus(*uses, share);
        }
        mean.into_iter().collect::<Segment>()
    });
    over_time.map(|segment| over_neighbours(&segment)).collect()
}

fn over_neighbours(segment: &Segment) -> Segment {
    let (mut from, mut to, mut sum) = (0, 0, Reads::default());
    let mean = |(no, _): &(u32, Reads)| {
        while let Some((other, uses)) = segment.get(to)
            && *other <= no.saturating_add(NEIGHBOURS)
        {
            sum = sum.plus(*uses, 1.0);
            to += 1;
        }
        while let Some((other, uses)) = segment.get(from)
            && *other + NEIGHBOURS < *no
        {
            sum = sum.plus(*uses, -1.0);
            from += 1;
        }
        let share = 1.0 / (to - from).max(1) as f32;
        let of = |sum: f32| (sum * share).max(0.0);
        (
            *no,
            Reads {
                random: of(sum.random),
                close: of(sum.close),
                sequential: of(sum.sequential),
                bytes: of(sum.bytes),
            },
        )
    };
    segment.iter().map(mean).collect()
}

/// The cosine of what was expected and the reads that were seen: 1 if they are the same but for their number.
pub(super) fn agreement(expected: &Segment, seen: &std::collections::HashMap<u32, f32>) -> f64 {
    let product: f64 =
        expected.iter().filter_map(|(no, uses)| seen.get(no).map(|seen| uses.ios() * f64::from(*seen))).sum();
    let expected: f64 = expected.iter().map(|(_, uses)| uses.ios().powi(2)).sum();
    let seen: f64 = seen.values().map(|seen| f64::from(*seen).powi(2)).sum();
    if expected * seen > 0.0 { product / (expected * seen).sqrt() } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(reads: &[(u32, f32)]) -> Segment {
        reads.iter().map(|(no, random)| (*no, Reads::random(*random))).collect()
    }

    #[test]
    fn smoothing_removes_noise_and_keeps_the_signal() {
        let noisy: Vec<Segment> = (0..20)
            .map(|at| segment(&(0..40).map(|no| (no, ((at * 7 + no * 13) % 5) as f32)).collect::<Vec<_>>()))
            .collect();
        assert_eq!(smoothed(&noisy).len(), 20 / GROUP);
        for (no, uses) in &smoothed(&noisy)[2] {
            assert!((1.5..2.5).contains(&uses.random), "chunk {no}: {uses:?}");
        }
        let apart = smoothed(&[segment(&[(0, 8.0), (1, 8.0), (100, 1.0)])]);
        assert_eq!(apart[0], segment(&[(0, 8.0), (1, 8.0), (100, 1.0)]));
    }

    #[test]
    fn agreement_is_one_for_the_same_and_nothing_for_others() {
        let expected = segment(&[(1, 2.0), (2, 4.0)]);
        assert!((agreement(&expected, &[(1, 1.0), (2, 2.0)].into()) - 1.0).abs() < 1e-6);
        assert_eq!(agreement(&expected, &[(7, 1.0)].into()), 0.0);
        assert_eq!(agreement(&Vec::new(), &[(7, 1.0)].into()), 0.0);
    }
}
