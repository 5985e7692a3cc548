//! A source in memory whose look-ups pause at random, so that they end in any order.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, UInt32Array};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::{Int64Type, SchemaRef};
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::Result;
use tanada_io::IoContext;

use crate::lookup::{Gather, LookupSource, OnMatch};
use crate::session::context::QueryContext;

/// Rows with an index on their first `parts` columns (all of type BIGINT).
#[derive(Debug, Clone)]
pub struct FakeSource {
    rows: RecordBatch,
    columns: Vec<usize>,
    schema: SchemaRef,
    index: Arc<HashMap<Vec<i64>, Vec<u32>>>,
    running: Arc<AtomicUsize>,
    most_running: Arc<AtomicUsize>,
    lookups: Arc<AtomicUsize>,
    matches: Arc<AtomicUsize>,
    endless: bool,
}

impl FakeSource {
    pub fn new(rows: RecordBatch, parts: usize) -> FakeSource {
        let mut index: HashMap<Vec<i64>, Vec<u32>> = HashMap::new();
        let columns: Vec<_> = (0..parts).map(|no| rows.column(no).as_primitive::<Int64Type>()).collect();
        for row in 0..rows.num_rows() {
            if columns.iter().all(|column| column.is_valid(row)) {
                let key = columns.iter().map(|column| column.value(row)).collect();
                index.entry(key).or_default().push(u32::try_from(row).unwrap());
            }
        }
        FakeSource {
            columns: (0..rows.num_columns()).collect(),
            schema: rows.schema(),
            rows,
            index: Arc::new(index),
            running: Arc::default(),
            most_running: Arc::default(),
            lookups: Arc::default(),
            matches: Arc::default(),
            endless: false,
        }
    }

    /// Look-ups never end.
    pub fn endless(mut self) -> FakeSource {
        self.endless = true;
        self
    }

    /// Most look-ups that ran at once.
    pub fn most_running(&self) -> usize {
        self.most_running.load(Ordering::SeqCst)
    }

    /// Look-ups that have begun.
    pub fn lookups(&self) -> usize {
        self.lookups.load(Ordering::SeqCst)
    }

    /// Rows handed out.
    pub fn matches(&self) -> usize {
        self.matches.load(Ordering::SeqCst)
    }

    /// Look-ups that run.
    pub fn running(&self) -> usize {
        self.running.load(Ordering::SeqCst)
    }
}

/// Row numbers of the source.
pub struct FakeSink {
    source: RecordBatch,
    columns: Vec<usize>,
    schema: SchemaRef,
    rows: Vec<u32>,
}

impl Gather for FakeSink {
    fn rows(&self) -> usize {
        self.rows.len()
    }
    fn bytes(&self) -> usize {
        self.rows.len() * 16
    }
    fn finish(&mut self) -> Result<RecordBatch> {
        let rows = UInt32Array::from(std::mem::take(&mut self.rows));
        let columns: Vec<ArrayRef> = self
            .columns
            .iter()
            .map(|no| take(self.source.column(*no), &rows, None))
            .collect::<Result<_, _>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?)
    }
}

/// Counts a look-up as running while it lives.
struct Running<'a>(&'a AtomicUsize);
impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl LookupSource for FakeSource {
    type Key = Vec<i64>;
    type Sink = FakeSink;

    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn with_columns(&self, columns: &[usize]) -> Result<FakeSource> {
        let columns: Vec<usize> = columns.iter().map(|slot| self.columns[*slot]).collect();
        let schema = Arc::new(self.rows.schema().project(&columns)?);
        Ok(FakeSource { columns, schema, ..self.clone() })
    }

    fn keys(&self, columns: &[ArrayRef], rows: usize) -> Result<Vec<Option<Vec<i64>>>> {
        let parts = self.index.keys().next().map_or(1, Vec::len);
        let columns: Vec<_> =
            columns.iter().take(parts).map(|column| column.as_primitive::<Int64Type>()).collect();
        let key = |row: usize| {
            columns.iter().map(|column| column.is_valid(row).then(|| column.value(row))).collect()
        };
        Ok((0..rows).map(key).collect())
    }

    fn sink(&self, _: &QueryContext) -> FakeSink {
        FakeSink {
            source: self.rows.clone(),
            columns: self.columns.clone(),
            schema: Arc::clone(&self.schema),
            rows: Vec::new(),
        }
    }

    async fn lookup(&self, key: &Vec<i64>, _: &IoContext, on_match: OnMatch<'_, FakeSink>) -> Result<()> {
        let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        let _running = Running(&self.running);
        self.most_running.fetch_max(running, Ordering::SeqCst);
        let turn = self.lookups.fetch_add(1, Ordering::SeqCst);
        if self.endless {
            std::future::pending::<()>().await;
        }
        for (no, row) in self.index.get(key).into_iter().flatten().enumerate() {
            pause((turn * 7 + no * 3) % 5).await;
            let decode = &mut |sink: &mut FakeSink| {
                sink.rows.push(*row);
                Ok(())
            };
            self.matches.fetch_add(1, Ordering::SeqCst);
            if let Ok(ControlFlow::Break(())) = on_match(decode) {
                break;
            }
        }
        pause(turn % 3).await;
        Ok(())
    }

    fn describe(&self) -> String {
        "fake".to_string()
    }
}

/// Lets other tasks run `times` times.
async fn pause(mut times: usize) {
    std::future::poll_fn(|cx| {
        if times == 0 {
            return Poll::Ready(());
        }
        times -= 1;
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
