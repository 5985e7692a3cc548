//! The operator against DataFusion's hash join on the same rows.

mod fake;

use std::sync::Arc;

use datafusion::arrow::array::{Int64Array, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::common::{JoinSide, JoinType, NullEquality, Result};
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::GreedyMemoryPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{binary, col, lit};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::utils::{JoinFilter, build_join_schema};
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion::physical_plan::projection::EmbeddedProjection;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::SessionConfig;
use futures::StreamExt;
use tanada_base::SplitMix64;
use tanada_io::{ExecutorOptions, Executors, Method};

use self::fake::FakeSource;
use super::assembly::{Equality, Residual, SideColumn};
use super::estimate::Estimate;
use super::exec::{JoinSpec, OutOfOrderLookupJoinExec};
use super::inner::InnerPlan;
use super::kind::Kind;
use crate::placement::Watched;
use crate::session::context::QueryContext;
use crate::settings::{Execution, TanadaOptions};

const JOIN_TYPES: [JoinType; 9] = [
    JoinType::Inner,
    JoinType::Left,
    JoinType::LeftSemi,
    JoinType::LeftAnti,
    JoinType::LeftMark,
    JoinType::Right,
    JoinType::RightSemi,
    JoinType::RightAnti,
    JoinType::RightMark,
];

/// One join in both forms.
struct Case {
    join_type: JoinType,
    outer_side: JoinSide,
    outer: RecordBatch,
    inner: RecordBatch,
    /// Parts of the index; the join has two equalities, so with one part the second is tested on found rows.
    parts: usize,
    inner_predicate: bool,
    residual: bool,
    projection: Option<Vec<usize>>,
    batch_rows: usize,
}

fn schema(prefix: &str) -> SchemaRef {
    let field = |name: &str| Field::new(format!("{prefix}{name}"), DataType::Int64, true);
    Arc::new(Schema::new(vec![field("_a"), field("_b"), field("_v")]))
}

fn rows(prefix: &str, rows: usize, keys: u64, random: &mut SplitMix64) -> RecordBatch {
    let mut column = |most: u64| -> Arc<Int64Array> {
        let mut value = || (random.below(8) > 0).then(|| random.below(most).cast_signed());
        Arc::new((0..rows).map(|_| value()).collect())
    };
    RecordBatch::try_new(schema(prefix), vec![column(keys), column(3), column(100)]).unwrap()
}

impl Case {
    fn random(seed: u64) -> Case {
        let mut random = SplitMix64::new(seed);
        let join_type = JOIN_TYPES[(seed % 9) as usize];
        let right = matches!(
            join_type,
            JoinType::Right | JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark
        );
        let either = join_type == JoinType::Inner && random.below(2) == 0;
        let semi = matches!(join_type, JoinType::LeftSemi | JoinType::RightSemi);
        // The other side of a semi join drives: found rows are put out.
        let found = semi && random.below(2) == 0;
        let keys = 1 + random.below(60);
        let (outer_rows, inner_rows) = (random.below(300) as usize, random.below(300) as usize);
        Case {
            join_type,
            outer_side: if (right || either) != found { JoinSide::Right } else { JoinSide::Left },
            outer: rows("o", outer_rows, keys, &mut random),
            inner: rows("i", inner_rows, keys, &mut random),
            parts: if found { 2 } else { 1 + random.below(2) as usize },
            inner_predicate: random.below(2) == 0,
            residual: !found && random.below(2) == 0,
            projection: None,
            batch_rows: [1, 7, 64, 8_192][random.below(4) as usize],
        }
    }

    /// The outer rows in several batches, two partitions of them.
    fn outer(&self) -> Arc<dyn ExecutionPlan> {
        let mut partitions = vec![Vec::new(), Vec::new()];
        let rows = self.outer.num_rows();
        let step = rows.div_ceil(5).max(1);
        for (no, start) in (0..rows).step_by(step).enumerate() {
            partitions[no % 2].push(self.outer.slice(start, step.min(rows - start)));
        }
        MemorySourceConfig::try_new_exec(&partitions, schema("o"), None).unwrap()
    }

    fn predicates(&self) -> Vec<Arc<dyn PhysicalExpr>> {
        let schema = schema("i");
        let predicate = || binary(col("i_v", &schema)?, Operator::Lt, lit(70i64), &schema);
        if self.inner_predicate { vec![predicate().unwrap()] } else { Vec::new() }
    }

    /// `o_v < i_v` over a batch of both.
    fn residual(&self) -> Option<(Arc<dyn PhysicalExpr>, SchemaRef)> {
        let schema = Arc::new(Schema::new(vec![schema("o").field(2).clone(), schema("i").field(2).clone()]));
        let predicate =
            binary(col("o_v", &schema).unwrap(), Operator::Lt, col("i_v", &schema).unwrap(), &schema);
        self.residual.then(|| (predicate.unwrap(), schema))
    }

    fn hash_join(&self) -> Arc<dyn ExecutionPlan> {
        let inner = MemorySourceConfig::try_new_exec(&[vec![self.inner.clone()]], schema("i"), None).unwrap();
        let mut inner: Arc<dyn ExecutionPlan> = inner;
        for predicate in self.predicates() {
            inner = Arc::new(FilterExec::try_new(predicate, inner).unwrap());
        }
        let outer = MemorySourceConfig::try_new_exec(&[vec![self.outer.clone()]], schema("o"), None).unwrap();
        let outer: Arc<dyn ExecutionPlan> = outer;
        let on = |name: &str| {
            let outer = col(&format!("o_{name}"), &schema("o")).unwrap();
            let inner = col(&format!("i_{name}"), &schema("i")).unwrap();
            if self.outer_side == JoinSide::Left { (outer, inner) } else { (inner, outer) }
        };
        let filter = self.residual().map(|(expression, schema)| {
            let columns = JoinFilter::build_column_indices(vec![2], vec![2]);
            let filter = JoinFilter::new(expression, columns, schema);
            if self.outer_side == JoinSide::Left { filter } else { filter.swap() }
        });
        let (left, right) = if self.outer_side == JoinSide::Left { (outer, inner) } else { (inner, outer) };
        let join = HashJoinExec::try_new(
            left,
            right,
            vec![on("a"), on("b")],
            filter,
            &self.join_type,
            self.projection.clone(),
            PartitionMode::CollectLeft,
            NullEquality::NullEqualsNothing,
            false,
        );
        Arc::new(join.unwrap())
    }

    fn lookup_join(&self, source: FakeSource) -> Result<OutOfOrderLookupJoinExec<FakeSource>> {
        let (outer_schema, inner_schema) = (schema("o"), schema("i"));
        let (join_schema, indices) = if self.outer_side == JoinSide::Left {
            build_join_schema(&outer_schema, &inner_schema, &self.join_type)
        } else {
            build_join_schema(&inner_schema, &outer_schema, &self.join_type)
        };
        let columns = indices.iter().map(|index| match index.side {
            JoinSide::None => SideColumn::Matched,
            side if side == self.outer_side => SideColumn::Outer(index.index),
            _ => SideColumn::Inner(index.index),
        });
        let spec = JoinSpec {
            join_type: self.join_type,
            kind: Kind::of(self.join_type, self.outer_side).unwrap(),
            keys: vec![col("o_a", &outer_schema)?, col("o_b", &outer_schema)?],
            inner: InnerPlan {
                predicates: self.predicates(),
                outputs: ["i_a", "i_b", "i_v"]
                    .iter()
                    .map(|name| col(name, &inner_schema).map(Some))
                    .collect::<Result<_>>()?,
            },
            equalities: if self.parts == 1 { vec![Equality { outer: 1, inner: 1 }] } else { Vec::new() },
            residual: self.residual().map(|(expression, schema)| Residual {
                expression,
                columns: vec![SideColumn::Outer(2), SideColumn::Inner(2)],
                schema,
            }),
            columns: columns.collect(),
            schema: Arc::new(join_schema),
            projection: None,
            priority: 1,
            estimate: unknown(),
            inner_statistics: Vec::new(),
        };
        let outer = match spec.kind {
            Kind::Found => Arc::new(CoalescePartitionsExec::new(self.outer())),
            _ => self.outer(),
        };
        OutOfOrderLookupJoinExec::try_new(outer, Arc::new(source), spec)?
            .with_projection(self.projection.clone())
    }

    fn source(&self) -> FakeSource {
        FakeSource::new(self.inner.clone(), self.parts)
    }
}

fn unknown() -> Estimate {
    Estimate { outer_rows: None, matches_per_key: 1.0, output_per_outer_row: 1.0, lookup: None, hash: None }
}

fn executors() -> Arc<Executors> {
    let options = ExecutorOptions { threads: 2, method: Method::Buffered, ..ExecutorOptions::default() };
    Executors::start(options).unwrap()
}

fn task(executors: &Arc<Executors>, options: TanadaOptions, batch_rows: usize) -> Arc<TaskContext> {
    let query = QueryContext::new(Arc::clone(executors), options, Watched::by_nobody());
    let config = SessionConfig::new().with_batch_size(batch_rows).with_extension(query);
    Arc::new(TaskContext::default().with_session_config(config))
}

fn in_order() -> TanadaOptions {
    TanadaOptions { execution: Execution::InOrder, ..TanadaOptions::default() }
}

/// Rows as text, sorted.
fn text(batches: &[RecordBatch]) -> Vec<String> {
    let mut lines = Vec::new();
    for batch in batches.iter().filter(|batch| batch.num_rows() > 0) {
        if batch.num_columns() == 0 {
            lines.extend(vec![String::new(); batch.num_rows()]);
            continue;
        }
        for row in 0..batch.num_rows() {
            let row = batch.slice(row, 1);
            let table = pretty_format_batches(&[row]).unwrap().to_string();
            lines.push(table.lines().nth(3).unwrap().split_whitespace().collect());
        }
    }
    lines.sort();
    lines
}

async fn compare(case: &Case, executors: &Arc<Executors>, options: TanadaOptions, what: &str) {
    let expected = collect(case.hash_join(), task(executors, TanadaOptions::default(), 8_192)).await.unwrap();
    let join = case.lookup_join(case.source()).unwrap();
    assert_eq!(join.schema(), case.hash_join().schema(), "{what}");
    let found = collect(Arc::new(join), task(executors, options, case.batch_rows)).await.unwrap();
    let (found, expected) = (text(&found), text(&expected));
    let first = found.iter().zip(&expected).find(|(found, expected)| found != expected);
    let counts = (found.len(), expected.len());
    assert!(found == expected, "{what}: {:?}: {counts:?} rows, first difference {first:?}", case.join_type);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn equals_the_hash_join() {
    let executors = executors();
    for seed in 0..270 {
        let case = Case::random(seed);
        compare(&case, &executors, TanadaOptions::default(), &format!("seed {seed}")).await;
        if seed % 3 == 0 {
            compare(&case, &executors, in_order(), &format!("seed {seed} in order")).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn equals_the_hash_join_projected() {
    let executors = executors();
    for seed in 0..90 {
        let mut case = Case::random(seed);
        let columns = case.hash_join().schema().fields().len();
        let mut random = SplitMix64::new(seed);
        let mut projection: Vec<usize> = (0..columns).filter(|_| random.below(2) == 0).collect();
        projection.reverse();
        case.projection = Some(projection);
        compare(&case, &executors, TanadaOptions::default(), &format!("seed {seed}")).await;
    }
}

fn many_keys(join_type: JoinType) -> Case {
    let mut case = Case::random(0);
    let mut random = SplitMix64::new(99);
    case.join_type = join_type;
    case.outer_side = JoinSide::Left;
    case.outer = rows("o", 2_000, 1_000_000, &mut random);
    case.inner = rows("i", 2_000, 1_000_000, &mut random);
    (case.parts, case.residual, case.inner_predicate) = (1, false, false);
    case
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_order_runs_one_lookup_at_a_time_and_out_of_order_many() {
    let executors = executors();
    let mut case = many_keys(JoinType::Left);
    // A tenth of the rows: two partitions each have a stream of their own, so only one of them is read here.
    case.outer = case.outer.slice(0, 200);
    for (options, one) in [(in_order(), true), (TanadaOptions::default(), false)] {
        let source = case.source();
        let join = Arc::new(case.lookup_join(source.clone()).unwrap());
        let task = task(&executors, options, 8_192);
        let mut stream = join.execute(0, task).unwrap();
        while let Some(batch) = stream.next().await {
            batch.unwrap();
        }
        assert_eq!(source.most_running() == 1, one, "{}", source.most_running());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn equal_keys_are_looked_up_once() {
    let executors = executors();
    let mut case = many_keys(JoinType::Inner);
    case.outer = rows("o", 1_000, 1, &mut SplitMix64::new(1));
    let source = case.source();
    let join = Arc::new(case.lookup_join(source.clone()).unwrap());
    collect(join, task(&executors, TanadaOptions::default(), 8_192)).await.unwrap();
    // Five batches with one key each.
    assert_eq!(source.lookups(), 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn semi_joins_stop_at_the_first_match_and_decode_nothing() {
    let executors = executors();
    let mut case = many_keys(JoinType::LeftSemi);
    case.parts = 2;
    // Three keys with many rows each.
    case.outer = rows("o", 100, 1, &mut SplitMix64::new(5));
    case.inner = rows("i", 1_000, 1, &mut SplitMix64::new(6));
    let source = case.source();
    let join = case.lookup_join(source.clone()).unwrap();
    assert!(super::LookupSource::schema(join.source().as_ref()).fields().is_empty());
    let found = collect(Arc::new(join), task(&executors, TanadaOptions::default(), 8_192)).await.unwrap();
    assert!(text(&found).len() > 50);
    assert_eq!(source.matches(), source.lookups());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_stream_cancels_its_lookups() {
    let executors = executors();
    let case = many_keys(JoinType::Inner);
    let source = case.source().endless();
    let join = Arc::new(case.lookup_join(source.clone()).unwrap());
    let mut stream = join.execute(0, task(&executors, TanadaOptions::default(), 8_192)).unwrap();
    let reading = tokio::spawn(async move { stream.next().await.is_some() });
    while source.running() == 0 {
        tokio::task::yield_now().await;
    }
    reading.abort();
    while source.running() > 0 {
        tokio::task::yield_now().await;
    }
    while executors.tasks() > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_is_given_back_and_its_lack_is_an_error() {
    let executors = executors();
    let case = many_keys(JoinType::Left);
    for (bytes, enough) in [(1_000, false), (64 << 20, true)] {
        let pool = Arc::new(GreedyMemoryPool::new(bytes));
        let runtime = RuntimeEnvBuilder::new().with_memory_pool(pool).build_arc().unwrap();
        let task = task(&executors, TanadaOptions::default(), 8_192);
        let task = Arc::new(
            TaskContext::default().with_session_config(task.session_config().clone()).with_runtime(runtime),
        );
        let outcome = collect(Arc::new(case.lookup_join(case.source()).unwrap()), Arc::clone(&task)).await;
        match outcome {
            Ok(_) => assert!(enough),
            Err(error) => assert!(!enough && error.to_string().contains("OutOfOrderLookupJoin"), "{error}"),
        }
        while executors.tasks() > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(task.memory_pool().reserved(), 0);
    }
}
