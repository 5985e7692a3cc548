//! The tasks of an executor that can go on.
//!
//! Each has a moment that counts: for a task that is in a [chain](super::begin_chain) when that began, for any other
//! when it became ready. The earliest goes first. So chains end about in the order in which they began, however many
//! I/Os each of them has, and nobody is passed for ever.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

use async_task::Runnable;

use super::remote::TaskNo;

/// A moment of an executor; none is given twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Age(u64);

/// A task whose chain began at a moment.
struct Begun<T>(Age, T);

impl<T> PartialEq for Begun<T> {
    fn eq(&self, other: &Begun<T>) -> bool {
        self.0 == other.0
    }
}

impl<T> Eq for Begun<T> {}

impl<T> PartialOrd for Begun<T> {
    fn partial_cmp(&self, other: &Begun<T>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Begun<T> {
    fn cmp(&self, other: &Begun<T>) -> Ordering {
        self.0.cmp(&other.0)
    }
}

/// Tasks that can go on.
pub(super) struct ReadyQueue<T = Runnable<TaskNo>> {
    /// In no chain, in the order in which they came.
    fresh: VecDeque<(Age, T)>,
    begun: BinaryHeap<Reverse<Begun<T>>>,
    moments: u64,
}

impl<T> Default for ReadyQueue<T> {
    fn default() -> ReadyQueue<T> {
        ReadyQueue { fresh: VecDeque::new(), begun: BinaryHeap::new(), moments: 0 }
    }
}

impl<T> ReadyQueue<T> {
    /// Now.
    pub(super) fn next_age(&mut self) -> Age {
        self.moments += 1;
        Age(self.moments)
    }

    /// Adds a task whose chain, if it is in one, has this age.
    pub(super) fn push(&mut self, task: T, age: Option<Age>) {
        match age {
            Some(age) => self.begun.push(Reverse(Begun(age, task))),
            None => {
                let now = self.next_age();
                self.fresh.push_back((now, task));
            }
        }
    }

    /// Takes out the one that goes first.
    pub(super) fn pop(&mut self) -> Option<T> {
        let is_first = |Reverse(Begun(age, _)): &Reverse<Begun<T>>| {
            self.fresh.front().is_none_or(|(came, _)| age < came)
        };
        if self.begun.peek().is_some_and(is_first) {
            return self.begun.pop().map(|Reverse(Begun(_, task))| task);
        }
        self.fresh.pop_front().map(|(_, task)| task)
    }

    pub(super) fn len(&self) -> usize {
        self.fresh.len() + self.begun.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_task_runs_first() {
        let mut queue = ReadyQueue::default();
        let old = queue.next_age();
        queue.push("first that came", None);
        let young = queue.next_age();
        queue.push("second that came", None);
        queue.push("young", Some(young));
        queue.push("old", Some(old));
        assert_eq!(queue.len(), 4);
        let order: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(order, ["old", "first that came", "young", "second that came"]);
        assert!(queue.is_empty());
    }
}
