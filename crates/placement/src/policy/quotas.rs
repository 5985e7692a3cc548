//! What users leave of the fast class to each object: a target that goes beyond it would be refused, and its room would
//! lie idle.
//!
//! Invariant: of an object with a quota no more chunks are let in than that.

use std::collections::HashMap;

use super::residency::{Residency, Where};
use crate::layout::{ChunkNo, Layout, ObjectNo};

/// Counts the chunks of a target.
#[derive(Debug)]
pub(super) struct Quotas<'a> {
    layout: &'a Layout,
    has_rules: bool,
    taken: HashMap<ObjectNo, u32>,
}

impl<'a> Quotas<'a> {
    pub(super) fn new(layout: &'a Layout) -> Quotas<'a> {
        Quotas { layout, has_rules: layout.has_rules(), taken: HashMap::new() }
    }

    /// Whether neither a pin nor a quota keeps it out; counted, if so.
    pub(super) fn admits(&mut self, chunk: ChunkNo) -> bool {
        !self.has_rules || !self.layout.is_pinned(chunk) && self.takes(chunk)
    }

    /// Whether one more chunk of its object may be there; counted, if so.
    pub(super) fn takes(&mut self, chunk: ChunkNo) -> bool {
        if !self.has_rules {
            return true;
        }
        let Some(most) = self.layout.rule_of(chunk).quota_chunks else { return true };
        let Some((object, _)) = self.layout.owner(chunk) else { return true };
        let taken = self.taken.entry(object).or_default();
        let is_within = *taken < most;
        *taken += u32::from(is_within);
        is_within
    }
}

/// Chunks of objects with quotas that are in the fast class or on their way there, while decisions are made. Each
/// object is counted once, when it is first asked about; from then on whoever decides tells what [came](Present::came)
/// and [went](Present::went).
#[derive(Debug, Default)]
pub(super) struct Present(HashMap<ObjectNo, u32>);

impl Present {
    /// The object of a chunk that may not come before another of the same object goes, because its quota is used up.
    pub(super) fn used_up(
        &mut self,
        layout: &Layout,
        residency: &Residency,
        chunk: ChunkNo,
    ) -> Option<ObjectNo> {
        if !layout.has_rules() {
            return None;
        }
        let most = layout.rule_of(chunk).quota_chunks?;
        let object = layout.owner(chunk)?.0;
        let count = || {
            let is_there = |no: &u32| !matches!(residency.of(ChunkNo(*no)), Where::Slow | Where::Leaving);
            layout.all(object).into_iter().flatten().filter(is_there).count() as u32
        };
        let taken = *self.0.entry(object).or_insert_with(count);
        (taken >= most).then_some(object)
    }

    /// It was decided that the chunk comes.
    pub(super) fn came(&mut self, layout: &Layout, chunk: ChunkNo) {
        if let Some(taken) = self.of(layout, chunk) {
            *taken += 1;
        }
    }

    /// It was decided that the chunk goes.
    pub(super) fn went(&mut self, layout: &Layout, chunk: ChunkNo) {
        if let Some(taken) = self.of(layout, chunk) {
            *taken = taken.saturating_sub(1);
        }
    }

    /// The count of its object, if it has been counted.
    fn of(&mut self, layout: &Layout, chunk: ChunkNo) -> Option<&mut u32> {
        if self.0.is_empty() {
            return None;
        }
        self.0.get_mut(&layout.owner(chunk)?.0)
    }
}

/// Whether the chunk is one of the object.
pub(super) fn is_of(layout: &Layout, chunk: ChunkNo, object: ObjectNo) -> bool {
    layout.owner(chunk).is_some_and(|(owner, _)| owner == object)
}

#[cfg(test)]
mod tests {
    use crate::layout::{ChunkNo, ObjectNo, Rule};
    use crate::policy::tests::bench;
    use crate::testing::*;
    use crate::{Action, Event, Source};

    fn with_quota(policy: &str, quota: u32) -> Bench {
        let mut bench = bench(policy, 20, 10);
        bench.layout.add("b", 10 << 20);
        bench.layout.set_rule(ObjectNo(0), Rule { pin: None, quota_chunks: Some(quota) });
        bench
    }

    /// It had asked for all of them, and what was refused was not asked for again.
    #[test]
    fn benefit_wants_no_more_than_the_quota_and_exchanges_within_it() {
        let mut bench = with_quota("benefit", 2);
        assert_eq!(bench.begin(1, &[look_ups(3..6, 900)]), ["mirror 3", "mirror 4"]);
        assert!(bench.done_all().is_empty());
        bench.end();
        let wanted = bench.begin(2, &[look_ups(8..9, 4000)]);
        assert!(
            matches!(wanted.as_slice(), [drop, mirror] if drop.starts_with("drop") && mirror == "mirror 8"),
            "{wanted:?}"
        );
    }

    /// All that was there was counted anew for each that was wanted: these took 20 s.
    #[test]
    fn quotas_take_time_in_proportion_to_chunks() {
        let chunks = 100_000;
        let mut bench = bench("static", u64::from(chunks), chunks);
        bench.layout.set_rule(ObjectNo(0), Rule { pin: None, quota_chunks: Some(chunks - 1) });
        (0..chunks).for_each(|chunk| bench.train(chunk));
        let begun = std::time::Instant::now();
        assert_eq!(bench.prepare().len(), chunks as usize - 1);
        assert!(begun.elapsed().as_secs() < 10, "{:?}", begun.elapsed());
    }

    /// Those that could make room were looked through anew for each that was wanted: these took half a minute.
    #[test]
    fn exchanges_within_quotas_take_time_in_proportion_to_chunks() {
        let chunks = 150_000;
        let mut bench = bench("static", 2 * u64::from(chunks), 2 * chunks);
        bench.layout.add("b", u64::from(chunks) << 20);
        bench.layout.set_rule(ObjectNo(0), Rule { pin: None, quota_chunks: Some(chunks) });
        // There are half of the object with the quota, and all of the other one, which had fewer I/Os and so would go
        // before.
        for chunk in (0..chunks).chain(2 * chunks..3 * chunks) {
            let action = Action::Mirror(Source::Copy);
            bench.handle(&Event::Done { chunk: ChunkNo(chunk), action, is_done: true });
        }
        (0..2 * chunks).for_each(|chunk| (0..=chunk / chunks).for_each(|_| bench.train(chunk)));
        let begun = std::time::Instant::now();
        assert_eq!(bench.prepare().len(), 2 * chunks as usize);
        assert!(begun.elapsed().as_secs() < 10, "{:?}", begun.elapsed());
    }

    #[test]
    fn static_and_plan_want_no_more_than_the_quota() {
        let mut fixed = with_quota("static", 2);
        [1, 1, 1, 5, 5, 3, 25].into_iter().for_each(|chunk| fixed.train(chunk));
        assert_eq!(fixed.prepare(), ["promote 1", "promote 5", "promote 25"]);
        let mut plan = with_quota("plan", 1);
        [1, 1, 1, 5, 5, 3].into_iter().for_each(|chunk| plan.train(chunk));
        assert_eq!(plan.begin(1, &[look_ups(1..6, 9)]), ["promote 1"]);
        plan.done_all();
        assert_eq!(
            plan.begin(2, &[look_ups(5..6, 9)]),
            ["demote 1", "promote 5"],
            "there is room, but not for it"
        );
    }
}
