//! What a story and its power cuts write down together: the oracle, the counts, the first thing that went wrong.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tanada_volume::CrashProbe;

use super::report::Report;
use crate::oracle::Oracle;

#[derive(Debug, Default)]
pub(crate) struct Pages {
    pub(crate) oracle: Oracle,
    pub(crate) report: Report,
    pub(crate) failure: Option<String>,
}

/// The book. Cheap to clone. It is never locked while the volume is asked for anything.
#[derive(Debug, Clone, Default)]
pub(crate) struct Book {
    pages: Arc<Mutex<Pages>>,
    /// Whether each operation is told on stderr: for the repetition of a failure.
    is_aloud: bool,
}

impl Book {
    pub(crate) fn with(oracle: Oracle) -> Book {
        Book { pages: Arc::new(Mutex::new(Pages { oracle, ..Pages::default() })), is_aloud: false }
    }

    #[must_use]
    pub(crate) fn aloud(mut self, is_aloud: bool) -> Book {
        self.is_aloud = is_aloud;
        self
    }

    /// Tells what happens, if anybody wants to hear it.
    pub(crate) fn tell(&self, what: impl FnOnce() -> String) {
        if self.is_aloud {
            eprintln!("{}", what());
        }
    }

    pub(crate) fn open(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock()
    }

    /// Notes what went wrong; the first counts.
    pub(crate) fn fail(&self, what: impl Into<String>) {
        self.open().failure.get_or_insert_with(|| what.into());
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.open().failure.is_some()
    }
}

type Hook = Arc<dyn Fn() + Send + Sync>;

/// Counts crash points, and tells of each.
pub(crate) struct Probe {
    pub(crate) book: Book,
    pub(crate) hook: Option<Hook>,
}

impl CrashProbe for Probe {
    fn reached(&self, name: &'static str) {
        *self.book.open().report.marks.entry(name).or_default() += 1;
        if let Some(hook) = &self.hook {
            hook();
        }
    }
}
