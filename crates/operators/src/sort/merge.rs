//! A merge of runs.
//!
//! A tree of losers says which run's head is the least. A run whose batch is used up needs its next one at once, so
//! batches are read ahead; where there is no room to do that for all runs, for those that will need theirs first. That
//! is known: the run whose last key in memory is the least ends first (Knuth's forecasting).

use std::cmp::Ordering;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::{Result, exec_datafusion_err};
use datafusion::execution::SendableRecordBatchStream;
use futures::StreamExt;

use super::buffer::interleaved;
use crate::keys::{BatchKeys, Keys};

/// A merge of runs into batches.
pub(super) struct Merge {
    keys: Arc<Keys>,
    inputs: Vec<Input>,
    /// `tree[0]` is the run with the least head; `tree[i]` the loser of the match at node `i`, whose two sides are the
    /// nodes `2i` and `2i + 1`; run `r` is the leaf `inputs.len() + r`.
    tree: Vec<usize>,
    /// Batches of which rows are in `places`, or still to come.
    batches: Vec<RecordBatch>,
    /// Rows that are put out next: a batch of `batches`, a row of it.
    places: Vec<(usize, usize)>,
    batch_rows: usize,
    /// Runs that may have a batch read ahead at once.
    most_ahead: usize,
}

/// A run that is merged.
struct Input {
    source: Source,
    /// What it has in memory; `None` at its end.
    loaded: Option<Loaded>,
}

/// Where an input's next batch comes from.
enum Source {
    /// Nobody reads it.
    Idle(SendableRecordBatchStream),
    /// A task reads its next batch.
    Ahead(SpawnedTask<(SendableRecordBatchStream, Option<Result<RecordBatch>>)>),
    End,
}

/// A batch whose rows are being merged.
struct Loaded {
    /// Its place in `batches`.
    place: usize,
    keys: BatchKeys,
    row: usize,
}

impl Merge {
    /// A merge of `runs` into batches of `batch_rows`, with at most `most_ahead` batches beyond one of each run.
    ///
    /// # Errors
    /// If a run cannot be read.
    pub(super) async fn new(
        keys: Arc<Keys>,
        runs: Vec<SendableRecordBatchStream>,
        batch_rows: usize,
        most_ahead: usize,
    ) -> Result<Merge> {
        let inputs: Vec<Input> =
            runs.into_iter().map(|run| Input { source: Source::Idle(run), loaded: None }).collect();
        let tree = vec![0; inputs.len()];
        let (batches, places) = (Vec::new(), Vec::with_capacity(batch_rows));
        let mut merge = Merge { keys, inputs, tree, batches, places, batch_rows, most_ahead };
        for at in 0..merge.inputs.len() {
            merge.load(at).await?;
        }
        merge.read_ahead();
        merge.plant();
        Ok(merge)
    }

    /// The next rows; `None` at the end.
    ///
    /// # Errors
    /// If a run cannot be read.
    pub(super) async fn next(&mut self) -> Result<Option<RecordBatch>> {
        while self.places.len() < self.batch_rows {
            let Some(&first) = self.tree.first() else { break };
            let Some(loaded) = &mut self.inputs[first].loaded else { break };
            self.places.push((loaded.place, loaded.row));
            loaded.row += 1;
            if loaded.row == loaded.keys.len() {
                self.load(first).await?;
                self.read_ahead();
            }
            self.replay(first);
        }
        if self.places.is_empty() {
            return Ok(None);
        }
        let batch = interleaved(&self.batches, &self.places)?;
        self.places.clear();
        self.forget();
        Ok(Some(batch))
    }

    /// Gives a run its next batch with rows.
    async fn load(&mut self, at: usize) -> Result<()> {
        let input = &mut self.inputs[at];
        input.loaded = None;
        loop {
            let (rest, batch) = match std::mem::replace(&mut input.source, Source::End) {
                Source::Idle(mut stream) => {
                    let batch = stream.next().await;
                    (stream, batch)
                }
                Source::Ahead(task) => task
                    .join_unwind()
                    .await
                    .map_err(|error| exec_datafusion_err!("reading a run: {error}"))?,
                Source::End => return Ok(()),
            };
            let Some(batch) = batch.transpose()? else { return Ok(()) };
            input.source = Source::Idle(rest);
            if batch.num_rows() > 0 {
                let place = self.batches.len();
                input.loaded = Some(Loaded { place, keys: self.keys.of(&batch)?, row: 0 });
                self.batches.push(batch);
                return Ok(());
            }
        }
    }

    /// Starts to read the batches that are needed first.
    fn read_ahead(&mut self) {
        let mut free = self.most_ahead.saturating_sub(
            self.inputs.iter().filter(|input| matches!(input.source, Source::Ahead(_))).count(),
        );
        while free > 0 {
            let idle = (0..self.inputs.len()).filter(|at| {
                let input = &self.inputs[*at];
                matches!(input.source, Source::Idle(_)) && input.loaded.is_some()
            });
            let Some(first) = idle.min_by(|a, b| self.compare_last(*a, *b)) else { return };
            let input = &mut self.inputs[first];
            if let Source::Idle(mut stream) = std::mem::replace(&mut input.source, Source::End) {
                input.source = Source::Ahead(SpawnedTask::spawn(async move {
                    let batch = stream.next().await;
                    (stream, batch)
                }));
            }
            free -= 1;
        }
    }

    /// How the last keys of what two runs have in memory compare.
    fn compare_last(&self, a: usize, b: usize) -> Ordering {
        match (&self.inputs[a].loaded, &self.inputs[b].loaded) {
            (Some(a), Some(b)) => compare(&a.keys, a.keys.len() - 1, &b.keys, b.keys.len() - 1),
            _ => Ordering::Equal,
        }
    }

    /// How the heads of two runs compare: runs at their end are the greatest, of equal keys the first run's is the
    /// least.
    fn compare_heads(&self, a: usize, b: usize) -> Ordering {
        let by_key = match (&self.inputs[a].loaded, &self.inputs[b].loaded) {
            (Some(a), Some(b)) => compare(&a.keys, a.row, &b.keys, b.row),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => Ordering::Equal,
        };
        by_key.then(a.cmp(&b))
    }

    /// Plays all matches.
    fn plant(&mut self) {
        let count = self.inputs.len();
        // Winners of the nodes, the leaves among them.
        let mut winners: Vec<usize> = (0..count).chain(0..count).collect();
        for node in (1..count).rev() {
            let (left, right) = (winners[2 * node], winners[2 * node + 1]);
            let (winner, loser) = match self.compare_heads(left, right) {
                Ordering::Less => (left, right),
                _ => (right, left),
            };
            winners[node] = winner;
            self.tree[node] = loser;
        }
        if count > 0 {
            self.tree[0] = winners[usize::from(count > 1)];
        }
    }

    /// Plays the matches of a run whose head has changed anew.
    fn replay(&mut self, run: usize) {
        let mut winner = run;
        let mut node = (self.inputs.len() + run) / 2;
        while node > 0 {
            let other = self.tree[node];
            if self.compare_heads(other, winner) == Ordering::Less {
                self.tree[node] = winner;
                winner = other;
            }
            node /= 2;
        }
        self.tree[0] = winner;
    }

    /// Forgets batches whose rows have been put out.
    fn forget(&mut self) {
        let mut kept = Vec::with_capacity(self.inputs.len());
        for loaded in self.inputs.iter_mut().filter_map(|input| input.loaded.as_mut()) {
            kept.push(self.batches[loaded.place].clone());
            loaded.place = kept.len() - 1;
        }
        self.batches = kept;
    }
}

fn compare(a: &BatchKeys, row: usize, b: &BatchKeys, of: usize) -> Ordering {
    a.prefix(row).cmp(&b.prefix(of)).then_with(|| a.compare_rest(row, b, of))
}
