//! Which mirrors are worth their space, by what is read of them.

use crate::tuning::mirrors::EVICTION;

/// In which order mirrors, newest first, go: indices of those that have `(reads, bytes)`. Reads are `None` if not
/// enough was seen to tell.
pub(crate) fn by_worth(mirrors: &[(Option<u64>, u64)]) -> Vec<usize> {
    let worth = |index: &usize| {
        let (reads, bytes) = mirrors[*index];
        reads.map_or(f64::INFINITY, |reads| reads as f64 / bytes.max(1) as f64)
    };
    let mut ordered: Vec<usize> = (0..mirrors.len()).rev().collect();
    // Among equals the oldest comes first.
    ordered.sort_by(|a, b| worth(a).total_cmp(&worth(b)));
    ordered
}

/// Returns true if `reads` of a mirror are significantly fewer than the `expected` reads of as many live bytes.
pub(crate) fn is_little(reads: u64, expected: f64) -> bool {
    let reads = reads as f64;
    reads <= EVICTION.evictable_read_density * expected
        && reads + EVICTION.significance_sigmas * expected.sqrt() <= expected
}

/// Returns how many times reads are halved at the end of a round, so that skipped rounds do not leave more.
pub(crate) fn halvings(all_reads: u64, round: u64) -> u32 {
    let left = |halvings: &u32| all_reads >> halvings <= round.max(1);
    (1..u64::BITS).find(left).unwrap_or(u64::BITS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mirrors_far_below_the_read_density_are_evictable() {
        assert!(is_little(750, 1001.0) && !is_little(751, 1001.0));
        assert!(is_little(0, 0.0), "nobody reads any of them");
        assert!(!is_little(0, 15.0) && !is_little(3, 20.0), "that may be chance");
        assert!(is_little(0, 16.0));
    }

    #[test]
    fn at_the_end_of_a_round_no_more_than_another_one_is_left() {
        assert_eq!([199, 200, 201, 1000, 0].map(|reads| halvings(reads, 100)), [1, 1, 1, 4, 1]);
        assert_eq!([1, 2, 3].map(|reads| halvings(reads, 0)), [1, 1, 1]);
    }

    #[test]
    fn mirrors_with_the_fewest_reads_are_evicted_first() {
        // Newest first: the newest could not show what it is worth yet.
        let mirrors = [
            (None, 100),
            (Some(10), 100),
            (Some(0), 100),
            (Some(50), 1000),
            (Some(0), 500),
            (Some(900), 1000),
        ];
        assert_eq!(by_worth(&mirrors), [4, 2, 3, 1, 5, 0]);
        // Nothing is known: the oldest.
        assert_eq!(by_worth(&[(None, 1), (None, 1), (None, 1)]), [2, 1, 0]);
        assert_eq!(by_worth(&[]), [0; 0]);
    }
}
