//! Writing all pages of an object anew: with the compression and under the key that it has now, and close together.
//!
//! The pages go to chunks in which nothing lies, so that the ones where they were become free as a whole. A sync after
//! each few MiB makes them so. If there is no space in between, each page is as it was or as it will be.

use std::sync::Arc;

use super::Pages;
use crate::{Error, Object, Result};

/// Pages are read and written in batches of a chunk, or of this many bytes if that is less,
const LARGEST_BATCH_BYTES: u64 = 1 << 20;

/// and made durable after so many chunks of them: as much space as this takes is needed in between.
const CHUNKS_PER_SYNC: u64 = 8;

/// How far an optimization is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OptimizeProgress {
    /// Pages that were looked at.
    pub done: u64,
    /// All pages of the object.
    pub pages: u64,
}

/// What an optimization has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Optimized {
    /// Pages that were written anew; holes are none.
    pub rewritten: u64,
    /// Bytes that the object took up before.
    pub allocated_before: u64,
    /// Bytes that it takes up now.
    pub allocated_after: u64,
}

impl Object {
    /// Writes all pages anew, in the form that the attributes ask for.
    ///
    /// # Errors
    /// `InvalidInput` if the object has no transform, `MissingKey`, `NoSpace` if there is no free chunk, `Corrupted` if
    /// a page is damaged: the pages before it are rewritten then, and all others are as they were.
    pub async fn optimize(&self, progress: &(dyn Fn(OptimizeProgress) + Send + Sync)) -> Result<Optimized> {
        self.check_writable()?;
        let Some(pages) = self.state.pages.get().cloned() else {
            let message = format!(
                "object {:?} has no transform: alter its compression or encryption first",
                self.name()
            );
            return Err(Error::invalid(message));
        };
        let mut report = Optimized { allocated_before: self.allocated_bytes(), ..Optimized::default() };
        pages.state.lock().space.begin_chunk();
        let batch = LARGEST_BATCH_BYTES.min(self.core.chunk_bytes) >> pages.shift;
        let (mut page, mut unsynced) = (0, 0);
        loop {
            let all = pages.pages_below(pages.size());
            progress(OptimizeProgress { done: page.min(all), pages: all });
            if page >= all {
                break;
            }
            report.rewritten += self.rewrite(&pages, page, (page + batch).min(all) - 1).await?;
            page += batch;
            unsynced += batch << pages.shift;
            if unsynced >= CHUNKS_PER_SYNC * self.core.chunk_bytes {
                // CRASH: any of the pages may be as before or as rewritten.
                self.core.crash.reached("optimize.before-sync");
                self.sync().await?;
                unsynced = 0;
            }
        }
        self.sync().await?;
        let newest = pages.state.lock().newest_retired();
        if let Some(period) = newest {
            self.core.grace.wait(period).await;
        }
        self.reclaim_pages(&pages);
        report.allocated_after = self.allocated_bytes();
        Ok(report)
    }

    async fn rewrite(&self, pages: &Arc<Pages>, first: u64, last: u64) -> Result<u64> {
        let _hold = pages.holds.hold(first..=last, true).await;
        self.check_writable()?;
        let chain = self.chain(pages)?;
        let mut sealed = Vec::new();
        for page in first..=last {
            if pages.state.lock().is_written(page) {
                let whole = self.read_whole_page(pages, page).await?;
                sealed.push((page, self.seal(&chain, page, &whole)?));
            }
        }
        let rewritten = sealed.len() as u64;
        self.store(pages, sealed, true).await?;
        Ok(rewritten)
    }
}
