//! The line that says how far a statement is, on a terminal, for what lasts over a second.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tanada_base::ByteSize;
use tanada_query::{QueryProgress, QueryWatch};

use super::cost::counted;

/// How often the line is drawn anew.
pub const REFRESH: Duration = Duration::from_millis(200);
/// What is done sooner is not accompanied.
const QUIET: Duration = Duration::from_secs(1);

/// The line, once there is one. Dropping it wipes it off.
#[derive(Debug, Default)]
pub struct RunningLine(Option<ProgressBar>);

impl RunningLine {
    /// Shows how far the query is, if it has lasted long enough.
    pub fn show(&mut self, watch: &QueryWatch) {
        let progress = watch.progress();
        if progress.elapsed >= QUIET {
            self.0.get_or_insert_with(bar).set_message(text(&progress));
        }
    }

    /// Wipes the line off.
    pub fn clear(&mut self) {
        if let Some(bar) = self.0.take() {
            bar.finish_and_clear();
        }
    }
}

impl Drop for RunningLine {
    fn drop(&mut self) {
        self.clear();
    }
}

fn bar() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    // The form is a constant; were it wrong, indicatif's own would do.
    bar.set_style(
        ProgressStyle::with_template("{wide_msg}").unwrap_or_else(|_| ProgressStyle::default_bar()),
    );
    bar
}

/// `37 %, 1,204,000 rows, 5,310 I/Os (83.0 MiB), 3 s, about 5 s left`.
fn text(progress: &QueryProgress) -> String {
    let mut parts = Vec::new();
    parts.extend(progress.share.map(|share| format!("{:.0} %", share * 100.0)));
    parts.push(counted(progress.rows, "row"));
    if progress.ios > 0 {
        parts.push(format!("{} ({})", counted(progress.ios, "I/O"), ByteSize::new(progress.bytes)));
    }
    parts.push(lasting(progress.elapsed));
    parts.extend(progress.left().map(|left| format!("about {} left", lasting(left))));
    parts.join(", ")
}

/// `59 s`, `2 min 5 s`, `3 h 20 min`.
fn lasting(time: Duration) -> String {
    let seconds = time.as_secs();
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_names_share_rows_ios_and_times() {
        let mut progress = QueryProgress {
            share: Some(0.25),
            rows: 1_204_000,
            ios: 5310,
            bytes: 5310 * 16384,
            elapsed: Duration::from_secs(25),
        };
        assert_eq!(
            text(&progress),
            "25 %, 1,204,000 rows, 5,310 I/Os (83.0 MiB), 25 s, about 1 min 15 s left"
        );
        progress = QueryProgress { elapsed: Duration::from_secs(7260), ..QueryProgress::default() };
        assert_eq!(text(&progress), "0 rows, 2 h 1 min");
    }
}
