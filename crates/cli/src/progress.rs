//! A progress bar on a terminal, for what lasts over a second.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

const QUIET: Duration = Duration::from_secs(1);

/// How far a work is, in bytes. Nothing is shown before a second has passed, and nothing where stderr is no terminal.
#[derive(Debug)]
pub struct Progress {
    what: String,
    total: u64,
    done: AtomicU64,
    began: Instant,
    bar: OnceLock<ProgressBar>,
}

impl Progress {
    /// A work on `total` bytes, called `what`.
    pub fn new(what: &str, total: u64) -> Progress {
        Progress {
            what: what.to_owned(),
            total,
            done: AtomicU64::new(0),
            began: Instant::now(),
            bar: OnceLock::new(),
        }
    }

    /// `bytes` more are done.
    pub fn add(&self, bytes: u64) {
        let done = self.done.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.show(done);
    }

    /// All in all `bytes` are done.
    pub fn set(&self, bytes: u64) {
        self.done.store(bytes, Ordering::Relaxed);
        self.show(bytes);
    }

    fn show(&self, done: u64) {
        if self.began.elapsed() >= QUIET {
            self.bar.get_or_init(|| bar(&self.what, self.total)).set_position(done);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = self.bar.get() {
            bar.finish_and_clear();
        }
    }
}

fn bar(what: &str, total: u64) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr_with_hz(10));
    let form = "{msg} [{bar:30}] {binary_bytes}/{binary_total_bytes}, {binary_bytes_per_sec}, {eta} left";
    // The form is a constant; were it wrong, indicatif's own would do.
    bar.set_style(ProgressStyle::with_template(form).unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.set_message(what.to_owned());
    bar
}
