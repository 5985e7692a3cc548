//! The loop over both inputs.

use std::cmp::Ordering;

use datafusion::common::{Result, internal_datafusion_err};
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_plan::spill::{SpillManager, get_record_batch_memory_size};
use futures::StreamExt;

use super::group::{self, Group, Part};
use super::pairs::Pairs;
use super::side::{Current, Side};

/// Which rows come out, beside those of pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Inner,
    /// Streamed rows without a partner, too.
    Outer,
    /// Rows of both inputs without a partner, too.
    Full,
    /// Streamed rows that have a partner, once.
    Semi,
    /// Streamed rows that have none.
    Anti,
}

/// A join that runs.
pub(super) struct Merge {
    pub(super) kind: Kind,
    pub(super) streamed: Side,
    pub(super) buffered: Side,
    pub(super) pairs: Pairs,
    /// Memory for a group that lies in several batches.
    pub(super) reservation: MemoryReservation,
    pub(super) spills: SpillManager,
    /// Rows of the buffered batch before this one have had a partner, from its row on.
    pub(super) matched_to: usize,
    /// Batches that were read again.
    pub(super) read_again: u64,
}

/// Numbers of batches that are read again begin here; inputs have fewer.
const FIRST_READ_AGAIN: u64 = 1 << 63;

impl Merge {
    /// Joins all rows.
    ///
    /// # Errors
    /// If an input or a file fails, or nobody waits for the rows.
    pub(super) async fn run(mut self) -> Result<()> {
        loop {
            match (self.streamed.current(), self.buffered.current()) {
                (None, None) => break,
                (None, Some(_)) if self.kind != Kind::Full => break,
                (Some(_), None) if matches!(self.kind, Kind::Inner | Kind::Semi) => break,
                (None, Some(buffered)) => {
                    let end = buffered.batch.num_rows();
                    self.leave_buffered(end).await?;
                }
                (Some(streamed), None) => {
                    let end = streamed.batch.num_rows();
                    self.leave_streamed(end).await?;
                }
                (Some(streamed), Some(buffered)) => {
                    let (next_streamed, next_buffered) = (streamed.row + 1, buffered.row + 1);
                    if streamed.is_null() {
                        self.leave_streamed(next_streamed).await?;
                    } else if buffered.is_null() {
                        self.leave_buffered(next_buffered).await?;
                    } else {
                        match streamed.compare(buffered) {
                            Ordering::Less => self.leave_streamed(next_streamed).await?,
                            Ordering::Greater => self.leave_buffered(next_buffered).await?,
                            Ordering::Equal => self.join().await?,
                        }
                    }
                }
            }
        }
        self.pairs.finish().await
    }

    /// Goes on to the streamed row `end`; those before it have no partner.
    async fn leave_streamed(&mut self, end: usize) -> Result<()> {
        if matches!(self.kind, Kind::Outer | Kind::Full | Kind::Anti)
            && let Some(current) = self.streamed.current()
        {
            self.pairs.stream_from(&current.batch, current.number).await?;
            self.pairs.push_streamed(current.row..end).await?;
        }
        self.streamed.go_to(end).await
    }

    /// Goes on to the buffered row `end`; those before it have no partner but those that had one.
    async fn leave_buffered(&mut self, end: usize) -> Result<()> {
        let Some(current) = self.buffered.current() else { return Ok(()) };
        let alone = current.row.max(self.matched_to)..end;
        if self.kind == Kind::Full && !alone.is_empty() {
            self.pairs.buffer_from(&current.batch, current.number).await?;
            self.pairs.push_buffered(alone).await?;
        }
        self.pass_buffered(end).await
    }

    async fn pass_buffered(&mut self, end: usize) -> Result<()> {
        let before = self.buffered.current().map(|current| current.number);
        self.buffered.go_to(end).await?;
        if self.buffered.current().map(|current| current.number) != before {
            self.matched_to = 0;
        }
        Ok(())
    }

    /// Joins streamed rows with the buffered ones that have the same key.
    async fn join(&mut self) -> Result<()> {
        let (Some(streamed), Some(buffered)) = (self.streamed.current(), self.buffered.current()) else {
            return Ok(());
        };
        let streamed_end = streamed.end_of(buffered);
        match self.kind {
            Kind::Anti => return self.streamed.go_to(streamed_end).await,
            Kind::Semi => {
                self.pairs.stream_from(&streamed.batch, streamed.number).await?;
                self.pairs.push_streamed(streamed.row..streamed_end).await?;
                return self.streamed.go_to(streamed_end).await;
            }
            Kind::Inner | Kind::Outer | Kind::Full => {}
        }
        let end = buffered.end_of(streamed);
        if end == buffered.batch.num_rows() {
            return self.join_group(end).await;
        }
        self.pairs.stream_from(&streamed.batch, streamed.number).await?;
        self.pairs.buffer_from(&buffered.batch, buffered.number).await?;
        for row in streamed.row..streamed_end {
            self.pairs.push(row, buffered.row..end).await?;
        }
        self.matched_to = end;
        // The next streamed batch may begin with the same key.
        if streamed_end < streamed.batch.num_rows() {
            self.pass_buffered(end).await?;
        }
        self.streamed.go_to(streamed_end).await
    }

    /// Joins streamed rows with a group that reaches the end of its batch, `end`.
    async fn join_group(&mut self, end: usize) -> Result<()> {
        let probe = self.buffered.current().cloned();
        let probe = probe.ok_or_else(|| internal_datafusion_err!("a join has lost its row"))?;
        let group = self.collect(&probe, end).await?;
        while let Some(current) = self.streamed.current()
            && current.compare(&probe) == Ordering::Equal
            && !current.is_null()
        {
            let (rows, end) = (current.row, current.end_of(&probe));
            self.pairs.stream_from(&current.batch, current.number).await?;
            for row in rows..end {
                match &group {
                    Group::Memory(parts) => {
                        for part in parts {
                            self.pairs.buffer_from(&part.batch, part.number).await?;
                            self.pairs.push(row, part.rows.clone()).await?;
                        }
                    }
                    Group::Written(file) => {
                        let mut batches = self.spills.read_spill_as_stream(file.clone(), None)?;
                        while let Some(batch) = batches.next().await.transpose()? {
                            self.pairs.buffer_from(&batch, FIRST_READ_AGAIN + self.read_again).await?;
                            self.pairs.push(row, 0..batch.num_rows()).await?;
                            self.read_again += 1;
                        }
                    }
                }
            }
            self.streamed.go_to(end).await?;
        }
        self.reservation.free();
        Ok(())
    }

    /// All buffered rows with the key of `probe`, the first of them, whose first part ends at `end`.
    async fn collect(&mut self, probe: &Current, end: usize) -> Result<Group> {
        let mut parts = vec![part(probe, end)];
        self.pass_buffered(end).await?;
        while let Some(next) = self.next_part(probe).await? {
            let bytes = get_record_batch_memory_size(&next.batch);
            parts.push(next);
            if self.reservation.try_grow(bytes).is_err() {
                let spills = self.spills.clone();
                let rest = futures::stream::try_unfold(self, |merge| async move {
                    Ok(merge.next_part(probe).await?.map(|part| (part, merge)))
                });
                return group::write(&spills, parts, rest).await;
            }
        }
        Ok(Group::Memory(parts))
    }

    /// Buffered rows of the current batch with the key of `probe`.
    async fn next_part(&mut self, probe: &Current) -> Result<Option<Part>> {
        let found = self
            .buffered
            .current()
            .filter(|current| !current.is_null() && current.compare(probe) == Ordering::Equal);
        let Some(current) = found else { return Ok(None) };
        let end = current.end_of(probe);
        let part = part(current, end);
        self.pass_buffered(end).await?;
        Ok(Some(part))
    }
}

fn part(current: &Current, end: usize) -> Part {
    Part { batch: current.batch.clone(), number: current.number, rows: current.row..end }
}
