//! External sorts against sorts in memory.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, UInt32Array,
};
use datafusion::arrow::compute::{SortOptions, concat_batches, sort_to_indices, take_record_batch};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{FairSpillPool, MemoryPool, UnboundedMemoryPool};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::physical_expr::expressions::col;
use datafusion::physical_expr::{LexOrdering, PhysicalSortExpr};
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::SessionConfig;
use proptest::prelude::*;

use tanada_operators::ExternalSort;

const BATCH_ROWS: usize = 64;

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("number", DataType::Int64, true),
        Field::new("text", DataType::Utf8, true),
        Field::new("float", DataType::Float64, false),
        Field::new("place", DataType::UInt32, false),
    ]))
}

/// Rows with a few of each value, the last column their place.
fn batches(rows: &[(Option<i64>, Option<String>, f64)], of: usize) -> Vec<RecordBatch> {
    let mut place = 0;
    let batch = |rows: &[(Option<i64>, Option<String>, f64)]| {
        let places: Vec<u32> = (place..).take(rows.len()).collect();
        place += rows.len() as u32;
        let columns: Vec<ArrayRef> = vec![
            Arc::new(rows.iter().map(|row| row.0).collect::<Int64Array>()),
            Arc::new(rows.iter().map(|row| row.1.as_deref()).collect::<StringArray>()),
            Arc::new(rows.iter().map(|row| row.2).collect::<Float64Array>()),
            Arc::new(UInt32Array::from(places)),
        ];
        RecordBatch::try_new(schema(), columns).unwrap()
    };
    rows.chunks(of.max(1)).map(batch).collect()
}

fn order(columns: &[(&str, SortOptions)]) -> LexOrdering {
    let by =
        columns.iter().map(|(name, options)| PhysicalSortExpr::new(col(name, &schema()).unwrap(), *options));
    LexOrdering::new(by).unwrap()
}

/// The rows that `plan` gives with `memory`, and how often it wrote.
async fn run(plan: &Arc<dyn ExecutionPlan>, memory: Arc<dyn MemoryPool>) -> (RecordBatch, usize) {
    let runtime = RuntimeEnvBuilder::new().with_memory_pool(Arc::clone(&memory)).build_arc().unwrap();
    let config = SessionConfig::new().with_batch_size(BATCH_ROWS);
    let context = Arc::new(TaskContext::default().with_runtime(runtime).with_session_config(config));
    let batches = collect(Arc::clone(plan), context).await.unwrap();
    assert!(batches.iter().all(|batch| batch.num_rows() <= BATCH_ROWS));
    assert_eq!(memory.reserved(), 0);
    let spills = plan.metrics().and_then(|metrics| metrics.spill_count()).unwrap_or(0);
    (concat_batches(&schema(), &batches).unwrap(), spills)
}

fn plan(input: Vec<RecordBatch>, order: &LexOrdering) -> Arc<dyn ExecutionPlan> {
    let input = MemorySourceConfig::try_new_exec(&[input], schema(), None).unwrap();
    Arc::new(ExternalSort::in_place_of(&SortExec::new(order.clone(), input)).unwrap())
}

/// Rows whose keys are mixed and repeat.
fn many(count: usize) -> Vec<(Option<i64>, Option<String>, f64)> {
    let row = |at: usize| {
        let mixed = (at as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
        let text = format!("a text that is longer than a prefix {}", mixed % 977);
        (
            (!mixed.is_multiple_of(11)).then_some(mixed as i64 % 501),
            (!mixed.is_multiple_of(7)).then_some(text),
            mixed as f64,
        )
    };
    (0..count).map(row).collect()
}

fn places(batch: &RecordBatch) -> Vec<u32> {
    batch.column(3).as_any().downcast_ref::<UInt32Array>().unwrap().values().to_vec()
}

/// Places of `rows` in order, of equal keys the first one first.
fn expected(rows: &[(Option<i64>, Option<String>, f64)], by_text: bool) -> Vec<u32> {
    let mut places: Vec<u32> = (0..rows.len() as u32).collect();
    places.sort_by(|a, b| {
        let (a, b) = (&rows[*a as usize], &rows[*b as usize]);
        match by_text {
            // Ascending, NULL first; then descending, NULL last.
            true => a.1.cmp(&b.1).then(b.0.cmp(&a.0)),
            false => a.0.cmp(&b.0),
        }
    });
    places
}

const UP: SortOptions = SortOptions { descending: false, nulls_first: true };
const DOWN: SortOptions = SortOptions { descending: true, nulls_first: false };

#[tokio::test]
async fn rows_in_memory_keep_the_order_of_equal_keys() {
    let rows = many(5_000);
    for (order, by_text) in
        [(order(&[("number", UP)]), false), (order(&[("text", UP), ("number", DOWN)]), true)]
    {
        let (sorted, spills) =
            run(&plan(batches(&rows, 100), &order), Arc::new(UnboundedMemoryPool::default())).await;
        assert_eq!(places(&sorted), expected(&rows, by_text));
        assert_eq!(spills, 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_are_merged_in_as_many_passes_as_memory_asks_for() {
    let rows = many(20_000);
    let order = order(&[("text", UP), ("number", DOWN), ("place", UP)]);
    let mut counts = Vec::new();
    for memory in [1 << 20, 200 << 10, 40 << 10, 1] {
        let (sorted, spills) =
            run(&plan(batches(&rows, 100), &order), Arc::new(FairSpillPool::new(memory))).await;
        assert_eq!(places(&sorted), expected(&rows, true), "{memory}");
        counts.push(spills);
    }
    assert!(counts.is_sorted() && counts[0] > 1, "{counts:?}");
    assert!(counts[3] > 200, "a merge of two at a time has passes: {counts:?}");
}

#[tokio::test]
async fn an_empty_input_gives_nothing() {
    let (sorted, _) =
        run(&plan(Vec::new(), &order(&[("number", UP)])), Arc::new(FairSpillPool::new(1))).await;
    assert_eq!(sorted.num_rows(), 0);
}

#[test]
fn sorts_of_the_first_rows_are_left_alone() {
    let input = MemorySourceConfig::try_new_exec(&[Vec::new()], schema(), None).unwrap();
    let sort = SortExec::new(order(&[("number", UP)]), input).with_fetch(Some(3));
    assert!(ExternalSort::in_place_of(&sort).is_none());
}

proptest! {
    #[test]
    fn any_rows_are_in_arrows_order(
        rows in prop::collection::vec(
            (prop::option::of(-3_i64..3), prop::option::of("[a-c]{0,20}"), prop::num::f64::ANY),
            0..400,
        ),
        of in 1_usize..50,
        memory in prop::sample::select(vec![1_usize, 4 << 10, 1 << 20]),
        column in 0_usize..3,
        descending in any::<bool>(),
        nulls_first in any::<bool>(),
    ) {
        let input = batches(&rows, of);
        let options = SortOptions { descending, nulls_first };
        let name = schema().field(column).name().clone();
        let order = order(&[(&name, options), ("place", UP)]);
        let whole = concat_batches(&schema(), &input).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (sorted, _) = runtime.block_on(run(&plan(input, &order), Arc::new(FairSpillPool::new(memory))));
        // Arrow's sort is not stable; equal keys are compared as sets.
        let indices = sort_to_indices(whole.column(column), Some(options), None).unwrap();
        let expected = take_record_batch(&whole, &indices).unwrap();
        prop_assert_eq!(sorted.num_rows(), expected.num_rows());
        prop_assert_eq!(sorted.column(column).to_data(), expected.column(column).to_data());
        let mut seen = places(&sorted);
        seen.sort_unstable();
        prop_assert!(seen.into_iter().eq(0..rows.len() as u32));
    }
}
