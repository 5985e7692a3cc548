//! What a transaction's snapshot sees of a source, so that it can be merged with the transaction's own writes, whose
//! numbers are larger than all others.

use futures::future::BoxFuture;

use crate::Result;
use crate::entry::{SequenceNo, Version};
use crate::merge::{Direction, Source, Step};

/// A source without what was committed after a snapshot.
pub(super) struct Committed {
    source: Box<dyn Source>,
    snapshot: SequenceNo,
}

impl Committed {
    pub(super) fn new(source: Box<dyn Source>, snapshot: SequenceNo) -> Committed {
        Committed { source, snapshot }
    }

    /// Goes on to a version that the snapshot sees.
    fn settle(&mut self, mut step: Step) -> Result<Step> {
        while step == Step::Done && self.source.key().is_some() && self.source.sequence() > self.snapshot {
            step = self.source.advance()?;
        }
        Ok(step)
    }
}

impl Source for Committed {
    fn seek(&mut self, direction: Direction, bound: Option<&[u8]>) -> Result<Step> {
        let step = self.source.seek(direction, bound)?;
        self.settle(step)
    }

    fn advance(&mut self) -> Result<Step> {
        let step = self.source.advance()?;
        self.settle(step)
    }

    fn load(&mut self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async {
            loop {
                self.source.load().await?;
                if self.settle(Step::Done)? == Step::Done {
                    return Ok(());
                }
            }
        })
    }

    fn key(&self) -> Option<&[u8]> {
        self.source.key()
    }

    fn sequence(&self) -> SequenceNo {
        self.source.sequence()
    }

    fn version(&self) -> Result<Version> {
        self.source.version()
    }
}
