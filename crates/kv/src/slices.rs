//! Work of the processor that takes long, with turns of other tasks of its thread in between: whoever waits there waits
//! for no more than one part of it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use crate::notify::yield_now;

/// Items that are processed before the task yields: a fraction of a millisecond.
const ITEMS_PER_SLICE: usize = 4096;

/// Counts what was done, for one loop.
#[derive(Debug, Default)]
pub(crate) struct Slices {
    done: usize,
}

impl Slices {
    /// One more item was looked at: now and then others have their turn.
    #[inline]
    pub(crate) async fn note(&mut self) {
        self.done += 1;
        if self.done == ITEMS_PER_SLICE {
            self.done = 0;
            yield_now().await;
        }
    }
}

/// Items in their order.
pub(crate) async fn sorted<T: Ord + Copy>(mut items: Vec<T>) -> Vec<T> {
    if items.len() <= ITEMS_PER_SLICE {
        items.sort_unstable();
        return items;
    }
    for part in items.chunks_mut(ITEMS_PER_SLICE) {
        part.sort_unstable();
        yield_now().await;
    }
    let mut parts: BinaryHeap<Reverse<(T, usize)>> =
        (0..items.len()).step_by(ITEMS_PER_SLICE).map(|first| Reverse((items[first], first))).collect();
    let mut merged = Vec::with_capacity(items.len());
    let mut portions = Slices::default();
    while let Some(mut first) = parts.peek_mut() {
        let Reverse((item, at)) = *first;
        merged.push(item);
        let next = at + 1;
        if next < items.len() && !next.is_multiple_of(ITEMS_PER_SLICE) {
            *first = Reverse((items[next], next));
            drop(first);
        } else {
            PeekMut::pop(first);
        }
        portions.note().await;
    }
    merged
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use proptest::prelude::*;

    use super::*;

    /// What comes of it, and how often it gave way.
    fn turns_of<T>(work: impl Future<Output = T>) -> (T, usize) {
        let (mut work, mut turns) = (pin!(work), 0);
        loop {
            match work.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(done) => return (done, turns),
                Poll::Pending => turns += 1,
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn all_items_are_there_in_their_order(items in proptest::collection::vec(0u16..5000, 0..3 * ITEMS_PER_SLICE)) {
            let (mut expected, count) = (items.clone(), items.len());
            expected.sort_unstable();
            let (sorted, turns) = turns_of(sorted(items));
            prop_assert_eq!(sorted, expected);
            let least = if count > ITEMS_PER_SLICE { 2 * (count / ITEMS_PER_SLICE) } else { 0 };
            prop_assert!(turns >= least);
        }
    }
}
