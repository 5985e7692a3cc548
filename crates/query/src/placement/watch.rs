//! Who is told of queries and their I/O, and how it reaches them.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tanada_io::{IoObserver, ObservedRead};
use tanada_placement::QueryId;

use super::announcement::Announcement;

/// Is told of queries: placement of a volume, a recording.
pub(crate) trait Watcher: Debug + Send + Sync {
    /// A query is about to begin.
    fn begins(&self, announcement: &Arc<Announcement>);
    /// A read of a query that has begun is complete.
    fn read(&self, query: QueryId, read: &ObservedRead<'_>);
    /// A query is over.
    fn ends(&self, query: QueryId);
}

/// One query's watchers. What is read before the query begins, to plan it, they are not told of. When it is dropped the
/// query is over.
#[derive(Debug)]
pub(crate) struct Watched {
    query: QueryId,
    has_begun: AtomicBool,
    watchers: Vec<Arc<dyn Watcher>>,
}

impl Watched {
    pub(crate) fn new(query: QueryId, watchers: Vec<Arc<dyn Watcher>>) -> Arc<Watched> {
        Arc::new(Watched { query, has_begun: AtomicBool::new(false), watchers })
    }

    /// Of a query that nobody watches.
    pub(crate) fn by_nobody() -> Arc<Watched> {
        Watched::new(QueryId(0), Vec::new())
    }

    /// Whether there is anybody to be told.
    pub(crate) fn has_watchers(&self) -> bool {
        !self.watchers.is_empty()
    }

    pub(crate) fn query(&self) -> QueryId {
        self.query
    }

    pub(crate) fn begin(&self, announcement: &Arc<Announcement>) {
        self.watchers.iter().for_each(|watcher| watcher.begins(announcement));
        self.has_begun.store(true, Ordering::Release);
    }

    /// The query is over. What is still read for it then is told to nobody.
    pub(crate) fn end(&self) {
        if self.has_begun.swap(false, Ordering::AcqRel) {
            self.watchers.iter().for_each(|watcher| watcher.ends(self.query));
        }
    }
}

impl IoObserver for Watched {
    fn read(&self, read: &ObservedRead<'_>) {
        if self.has_begun.load(Ordering::Acquire) {
            self.watchers.iter().for_each(|watcher| watcher.read(self.query, read));
        }
    }
}

/// Ends the query when it is dropped.
#[derive(Debug)]
pub(crate) struct Ending(pub(crate) Arc<Watched>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.end();
    }
}
