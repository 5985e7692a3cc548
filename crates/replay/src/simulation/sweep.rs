//! Many replays of one trace, on several threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use tanada_placement::{Layout, Result, Trace};

use super::{Outcome, SimulationOptions, simulate_after};

/// Replays the trace once for each of `runs`, `threads` at once; the outcomes come in the order of the runs. `progress`
/// is told how many are done, on the thread that did the last.
///
/// # Errors
/// The first that any run had; see [`simulate`](super::simulate). What can be known beforehand is: then nothing runs.
pub fn sweep(
    trace: &Trace,
    rules: Option<&Layout>,
    runs: &[SimulationOptions],
    threads: usize,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<Vec<Outcome>> {
    sweep_after(trace, trace, rules, runs, threads, progress)
}

/// The same, after another run than the one that counts, as [`simulate_after`].
///
/// # Errors
/// As [`sweep`]; see [`simulate_after`].
pub fn sweep_after(
    training: &Trace,
    trace: &Trace,
    rules: Option<&Layout>,
    runs: &[SimulationOptions],
    threads: usize,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<Vec<Outcome>> {
    for options in runs {
        options.policy_and_layout(trace)?;
    }
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let outcomes: Mutex<Vec<Option<Result<Outcome>>>> = Mutex::new(runs.iter().map(|_| None).collect());
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, runs.len().max(1)) {
            scope.spawn(|| {
                while let Some((no, options)) = {
                    let no = next.fetch_add(1, Ordering::Relaxed);
                    runs.get(no).map(|options| (no, options))
                } {
                    let outcome = simulate_after(training, trace, rules, options);
                    outcomes.lock().unwrap_or_else(PoisonError::into_inner)[no] = Some(outcome);
                    progress(done.fetch_add(1, Ordering::Relaxed) + 1);
                }
            });
        }
    });
    outcomes.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().flatten().collect()
}
