//! Cuts the power at the points of a story, and has each outcome judged.
//!
//! A point is an I/O that is about to take effect, or a crash point that is being passed. The story goes on as if
//! nothing had happened: the disks and the oracle are copied as they are, which is cheap, and recoveries happen in
//! worlds of their own. So one story serves many power cuts.
//!
//! Before an I/O takes effect all that was started since the last one is in flight; so between two such points nothing
//! else can be found.

use std::sync::Arc;

use parking_lot::Mutex;
use tanada_base::SplitMix64;

use super::book::Book;
use super::recovery::Judge;
use super::report::{Case, Failure, Report};
use crate::disk::DiskSet;
use crate::trace::mix;

/// Where and how often power is cut in a story.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Density {
    /// Chance in a thousand that power is cut at a point.
    pub per_thousand: u32,
    /// Outcomes judged for each cut.
    pub outcomes: u64,
}

impl Density {
    /// Whether power is cut at a point of the story of `case`.
    pub(crate) fn is_chosen(&self, case: &Case, point: u64) -> bool {
        match case.point {
            Some(only) => only == point,
            None => SplitMix64::new(base(case, point)).below(1000) < u64::from(self.per_thousand),
        }
    }

    /// The outcomes judged of a cut at a point of the story of `case`, with the random values of each.
    pub(crate) fn outcomes_at(&self, case: &Case, point: u64) -> impl Iterator<Item = (u64, SplitMix64)> {
        let base = base(case, point);
        let outcomes = case.outcome.map_or(0..self.outcomes, |only| only..only + 1);
        outcomes.map(move |outcome| (outcome, SplitMix64::new(mix(base, outcome + 1))))
    }
}

/// Where the random values of a point begin.
fn base(case: &Case, point: u64) -> u64 {
    mix(mix(case.seed, 0xc07), point)
}

#[derive(Debug, Default)]
struct State {
    next_point: u64,
    /// Points do not count.
    is_paused: bool,
    is_made: bool,
    report: Report,
    failure: Option<Failure>,
}

/// See the module's head. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Cutter {
    pub(crate) case: Case,
    pub(crate) density: Density,
    pub(crate) judge: Judge,
    pub(crate) disks: DiskSet,
    pub(crate) book: Book,
    state: Arc<Mutex<State>>,
}

impl Cutter {
    pub(crate) fn new(case: &Case, density: Density, judge: Judge, disks: DiskSet, book: &Book) -> Cutter {
        Cutter { case: case.clone(), density, judge, disks, book: book.clone(), state: Arc::default() }
    }

    /// A point is passed.
    pub(crate) fn point(&self) {
        let no = {
            let mut state = self.state.lock();
            if state.is_paused || state.failure.is_some() {
                return;
            }
            state.next_point += 1;
            state.next_point - 1
        };
        if self.density.is_chosen(&self.case, no) {
            self.cut(no);
        }
    }

    fn cut(&self, point: u64) {
        let oracle = self.book.open().oracle.clone();
        let judge = Judge { is_made: self.state.lock().is_made, ..self.judge.clone() };
        let wreck = self.disks.wreck();
        let mut report = Report { points: 1, ..Report::default() };
        let mut failure = None;
        for (outcome, mut random) in self.density.outcomes_at(&self.case, point) {
            if let Err(what) = judge.judge(&wreck, &oracle, &mut random, &mut report) {
                let case = Case { point: Some(point), outcome: Some(outcome), ..self.case.clone() };
                failure = Some(Failure { case, what, settings: String::new() });
                break;
            }
        }
        let mut state = self.state.lock();
        state.report.add(&report);
        state.failure = failure;
    }

    /// Cuts no more; what was found.
    pub(crate) fn end(&self) -> (Report, Option<Failure>) {
        let mut state = self.state.lock();
        state.is_paused = true;
        (std::mem::take(&mut state.report), state.failure.take())
    }

    /// Counts no points for a while.
    pub(crate) fn pause(&self, is_paused: bool) {
        self.state.lock().is_paused = is_paused;
    }

    /// Whether there must be a volume from now on.
    pub(crate) fn set_made(&self, is_made: bool) {
        self.state.lock().is_made = is_made;
    }
}
