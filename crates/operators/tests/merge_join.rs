//! Merge joins against joins of nested loops.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray};
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::{JoinType, NullEquality};
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{FairSpillPool, MemoryPool};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::physical_expr::expressions::col;
use datafusion::physical_plan::joins::SortMergeJoinExec;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::SessionConfig;
use proptest::prelude::*;

use tanada_operators::MergeJoin;

/// A key of two columns, and the row's place.
type Row = (Option<i64>, Option<&'static str>, i64);
/// What a join puts out: rows of either side, by their places.
type Joined = (Option<i64>, Option<i64>);

const BATCH_ROWS: usize = 16;

fn schema(side: &str) -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new(format!("{side}_number"), DataType::Int64, true),
        Field::new(format!("{side}_text"), DataType::Utf8, true),
        Field::new(format!("{side}_place"), DataType::Int64, true),
    ]))
}

/// Rows in the order of their keys, in batches of `of`.
fn input(side: &str, rows: &[Row], of: usize) -> Arc<dyn ExecutionPlan> {
    let batch = |rows: &[Row]| {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(rows.iter().map(|row| row.0).collect::<Int64Array>()),
            Arc::new(rows.iter().map(|row| row.1).collect::<StringArray>()),
            Arc::new(rows.iter().map(|row| Some(row.2)).collect::<Int64Array>()),
        ];
        RecordBatch::try_new(schema(side), columns).unwrap()
    };
    let batches: Vec<RecordBatch> = rows.chunks(of).map(batch).collect();
    MemorySourceConfig::try_new_exec(&[batches], schema(side), None).unwrap()
}

fn plan(
    left: Arc<dyn ExecutionPlan>,
    right: Arc<dyn ExecutionPlan>,
    kind: JoinType,
    nulls: NullEquality,
) -> Arc<dyn ExecutionPlan> {
    let on = ["number", "text"].map(|name| {
        let key = |side: &str| col(&format!("{side}_{name}"), &schema(side)).unwrap();
        (key("left"), key("right"))
    });
    let options = vec![SortOptions { descending: false, nulls_first: true }; 2];
    let join = SortMergeJoinExec::try_new(left, right, on.to_vec(), None, kind, options, nulls).unwrap();
    Arc::new(MergeJoin::in_place_of(&join).unwrap())
}

/// The places of joined rows, in order, and how often a group was written.
async fn run(plan: &Arc<dyn ExecutionPlan>, memory: usize) -> (Vec<Joined>, usize) {
    let pool: Arc<dyn MemoryPool> = Arc::new(FairSpillPool::new(memory));
    let runtime = RuntimeEnvBuilder::new().with_memory_pool(Arc::clone(&pool)).build_arc().unwrap();
    let config = SessionConfig::new().with_batch_size(BATCH_ROWS);
    let context = Arc::new(TaskContext::default().with_runtime(runtime).with_session_config(config));
    let batches = collect(Arc::clone(plan), context).await.unwrap();
    assert_eq!(pool.reserved(), 0);
    let mut rows = Vec::new();
    for batch in &batches {
        let column = |name: &str| {
            let column = batch.column_by_name(name)?.as_any().downcast_ref::<Int64Array>().cloned();
            Some(column.unwrap().iter().collect::<Vec<_>>())
        };
        let none = vec![None; batch.num_rows()];
        let [left, right] =
            ["left_place", "right_place"].map(|name| column(name).unwrap_or_else(|| none.clone()));
        rows.extend(left.into_iter().zip(right));
    }
    let spills = plan.metrics().and_then(|metrics| metrics.spill_count()).unwrap_or(0);
    (rows, spills)
}

/// The same by nested loops, sorted.
fn expected(left: &[Row], right: &[Row], kind: JoinType, nulls: NullEquality) -> Vec<Joined> {
    let equals = |a: &Row, b: &Row| {
        let has_null = a.0.is_none() || a.1.is_none();
        (a.0, a.1) == (b.0, b.1) && (nulls == NullEquality::NullEqualsNull || !has_null)
    };
    let with_partner = |row: &Row, of: &[Row]| of.iter().any(|other| equals(row, other));
    let pairs =
        left.iter().flat_map(|a| right.iter().filter(move |b| equals(a, b)).map(|b| (Some(a.2), Some(b.2))));
    let alone = |rows: &[Row], of: &[Row], wanted: bool| -> Vec<i64> {
        rows.iter().filter(|row| with_partner(row, of) == wanted).map(|row| row.2).collect()
    };
    let lefts = |wanted| alone(left, right, wanted).into_iter().map(|place| (Some(place), None));
    let rights = |wanted| alone(right, left, wanted).into_iter().map(|place| (None, Some(place)));
    let mut rows: Vec<Joined> = match kind {
        JoinType::Inner => pairs.collect(),
        JoinType::Left => pairs.chain(lefts(false)).collect(),
        JoinType::Right => pairs.chain(rights(false)).collect(),
        JoinType::Full => pairs.chain(lefts(false)).chain(rights(false)).collect(),
        JoinType::LeftSemi => lefts(true).collect(),
        JoinType::LeftAnti => lefts(false).collect(),
        JoinType::RightSemi => rights(true).collect(),
        JoinType::RightAnti => rights(false).collect(),
        JoinType::LeftMark | JoinType::RightMark => unreachable!(),
    };
    rows.sort_unstable();
    rows
}

fn sorted(mut rows: Vec<(Option<i64>, Option<&'static str>)>) -> Vec<Row> {
    rows.sort_unstable();
    rows.into_iter().zip(0..).map(|((number, text), place)| (number, text, place)).collect()
}

const KINDS: [JoinType; 8] = [
    JoinType::Inner,
    JoinType::Left,
    JoinType::Right,
    JoinType::Full,
    JoinType::LeftSemi,
    JoinType::LeftAnti,
    JoinType::RightSemi,
    JoinType::RightAnti,
];

#[tokio::test]
async fn a_key_with_more_rows_than_memory_holds_is_written() {
    let rows = |keys: &[i64]| sorted(keys.iter().map(|key| (Some(*key), Some("a"))).collect());
    let left = rows(&[1, 2, 2, 2, 3, 5]);
    let right = rows(&[vec![1], vec![2; 200], vec![4, 5]].concat());
    for kind in KINDS {
        let plan =
            plan(input("left", &left, 2), input("right", &right, 7), kind, NullEquality::NullEqualsNothing);
        let (mut found, spills) = run(&plan, 1).await;
        found.sort_unstable();
        assert_eq!(found, expected(&left, &right, kind, NullEquality::NullEqualsNothing), "{kind}");
        let holds_rights = matches!(kind, JoinType::Inner | JoinType::Left | JoinType::Full);
        assert!(!holds_rights || spills == 1, "{kind}: {spills}");
    }
}

#[tokio::test]
async fn a_join_that_nobody_reads_ends() {
    let rows = sorted((0..5_000).map(|key| (Some(key), Some("a"))).collect());
    let plan = plan(
        input("left", &rows, 100),
        input("right", &rows, 100),
        JoinType::Inner,
        NullEquality::NullEqualsNothing,
    );
    let context = Arc::new(TaskContext::default());
    let mut stream = plan.execute(0, context).unwrap();
    assert!(futures::StreamExt::next(&mut stream).await.unwrap().unwrap().num_rows() > 0);
    drop(stream);
}

proptest! {
    #[test]
    fn any_inputs_give_the_rows_of_nested_loops(
        left in prop::collection::vec((prop::option::of(0_i64..6), prop::option::of(prop::sample::select(vec!["a", "b"]))), 0..60),
        right in prop::collection::vec((prop::option::of(0_i64..6), prop::option::of(prop::sample::select(vec!["a", "b"]))), 0..60),
        of in (1_usize..9, 1_usize..9),
        kind in prop::sample::select(KINDS.to_vec()),
        null_equals in any::<bool>(),
        memory in prop::sample::select(vec![1_usize, 1 << 20]),
    ) {
        let nulls = if null_equals { NullEquality::NullEqualsNull } else { NullEquality::NullEqualsNothing };
        let (left, right) = (sorted(left), sorted(right));
        let plan = plan(input("left", &left, of.0), input("right", &right, of.1), kind, nulls);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (found, _) = runtime.block_on(run(&plan, memory));
        // Rows of the input whose order is kept are in it, and so are the rows that each is joined with.
        let is_kept = match kind {
            JoinType::Inner | JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti => found.is_sorted(),
            JoinType::Right | JoinType::RightSemi | JoinType::RightAnti => found.is_sorted_by_key(|(a, b)| (*b, *a)),
            _ => true,
        };
        prop_assert!(is_kept, "{:?}", found);
        let mut found = found;
        found.sort_unstable();
        prop_assert_eq!(found, expected(&left, &right, kind, nulls));
    }
}
