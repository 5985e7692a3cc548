//! The volume under power cuts and failing disks.

#![allow(clippy::unwrap_used)]

mod cuts;
mod faults;
mod planted;

use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tanada_sim::{Case, Failure, Report, Trial};

/// Tries all `cases` on all cores; stops at the first failure, in the order of the cases among those that were tried.
fn try_all(trial: &Trial, cases: &[Case]) -> Result<Report, Failure> {
    let next = AtomicUsize::new(0);
    let failed = Mutex::new(None::<(usize, Failure)>);
    let total = Mutex::new(Report::default());
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(4);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while failed.lock().is_none() {
                    let no = next.fetch_add(1, Ordering::Relaxed);
                    let Some(case) = cases.get(no) else { return };
                    match trial.run(case) {
                        Ok(report) => total.lock().add(&report),
                        Err(failure) => {
                            let mut first = failed.lock();
                            if first.as_ref().is_none_or(|(earlier, _)| no < *earlier) {
                                *first = Some((no, failure));
                            }
                        }
                    }
                }
            });
        }
    });
    match failed.into_inner() {
        Some((_, failure)) => Err(failure),
        None => Ok(total.into_inner()),
    }
}

/// The same, and nothing may fail.
fn all_hold(trial: &Trial, cases: &[Case]) -> Report {
    match try_all(trial, cases) {
        Ok(report) => report,
        Err(failure) => panic!("{failure}"),
    }
}

fn seeds(story: &str, seeds: std::ops::Range<u64>) -> Vec<Case> {
    seeds.map(|seed| Case::new(story, seed)).collect()
}
