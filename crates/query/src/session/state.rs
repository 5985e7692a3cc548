//! The DataFusion session state that all queries begin from.

use std::sync::Arc;

use datafusion::common::config::{ConfigNonZeroUsize, Dialect};
use datafusion::execution::disk_manager::DiskManagerBuilder;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::{FunctionRegistry, SessionState, SessionStateBuilder};
use datafusion::optimizer::Analyzer;
use datafusion::prelude::SessionConfig;

use crate::Result;
use crate::binding::BindingRule;
use crate::catalog::{CATALOG, Databases};
use crate::collation::{self, CollationRule};
use crate::functions::{StoredOrderRule, TemporalRule, aggregates, expression_planners, functions};
use crate::json_table::JsonTablePlanner;
use crate::lookup::physical_optimizer_rules;
use crate::recursion::RecursionRule;
use crate::rules;
use crate::settings::TanadaOptions;
use crate::spill::{SpillSpace, SpillingPool};
use crate::subquery::{SubqueryPlanner, SubqueryRule};

/// Of the memory of a partition, a sort keeps at most this part for its merge.
const MERGE_SHARE: usize = 16;
/// Batches that operators are taken to hold at once,
const BATCHES_IN_MEMORY: usize = 128;
/// and bytes of one of their rows.
const BYTES_PER_ROW: usize = 256;
/// Rows of a batch, least and most.
const BATCH_ROWS: (usize, usize) = (512, 8192);

/// A state over `databases` with `memory_bytes` for operators, which spill to `spill`, and `threads` partitions.
pub(super) fn session_state(
    databases: &Arc<Databases>,
    memory_bytes: u64,
    threads: usize,
    spill: &Arc<SpillSpace>,
) -> Result<SessionState> {
    let mut config = SessionConfig::new()
        .with_information_schema(true)
        .with_create_default_catalog_and_schema(false)
        .with_target_partitions(threads)
        .with_option_extension(TanadaOptions::default());
    let options = config.options_mut();
    options.catalog.default_catalog = CATALOG.to_string();
    options.catalog.default_schema = String::new();
    options.sql_parser.dialect = Dialect::MySQL;
    options.sql_parser.enable_ident_normalization = false;
    // As in MySQL, 0.1 is exactly a tenth.
    options.sql_parser.parse_float_as_decimal = true;
    // And NULL is less than any value.
    options.sql_parser.default_null_ordering = "nulls_min".to_string();

    let memory_bytes = usize::try_from(memory_bytes).unwrap_or(usize::MAX);
    // Each sort keeps this much for its merge; little memory is not all kept for that.
    let kept = &mut options.execution.sort_spill_reservation_bytes;
    *kept = (*kept).min(memory_bytes / threads.max(1) / MERGE_SHARE);
    // A merge holds a batch of each of its inputs.
    let rows = (memory_bytes / BATCHES_IN_MEMORY / BYTES_PER_ROW).clamp(BATCH_ROWS.0, BATCH_ROWS.1);
    options.execution.batch_size = ConfigNonZeroUsize::try_new(rows)?;
    // A file for each batch that a repartition writes: of two unfinished files its reader waits for the older one,
    // which may never end (DataFusion 24883).
    options.execution.max_spill_file_size_bytes = ConfigNonZeroUsize::try_new(1)?;
    let factory = Arc::clone(spill);
    let runtime = RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::new(SpillingPool::new(memory_bytes)))
        .with_disk_manager_builder(DiskManagerBuilder::default().with_temp_file_factory(factory))
        .build_arc()?;

    let mut analyzer = Analyzer::new();
    analyzer.rules.insert(0, Arc::new(RecursionRule));
    analyzer.rules.insert(0, Arc::new(TemporalRule));
    analyzer.rules.insert(0, Arc::new(CollationRule));
    analyzer.rules.insert(0, Arc::new(StoredOrderRule));
    analyzer.rules.splice(0..0, rules::analyzer_rules());
    // Rules behind it see joins instead of subqueries.
    analyzer.rules.insert(0, Arc::new(SubqueryRule));
    // Types are known before anything else looks at expressions.
    analyzer.rules.insert(0, Arc::new(BindingRule));
    let mut state = SessionStateBuilder::new()
        .with_config(config)
        .with_runtime_env(runtime)
        .with_expr_planners(expression_planners())
        .with_default_features()
        .with_analyzer_rules(analyzer.rules)
        .with_optimizer_rules(rules::optimizer_rules())
        .with_relation_planners(vec![Arc::new(JsonTablePlanner)])
        .with_query_planner(Arc::new(SubqueryPlanner))
        .with_physical_optimizer_rules(physical_optimizer_rules(memory_bytes))
        .build();
    for function in functions() {
        state.register_udf(function)?;
    }
    for function in collation::functions() {
        state.register_udf(Arc::new(function))?;
    }
    for aggregate in
        aggregates().into_iter().chain(crate::subquery::aggregates()).chain(collation::aggregates())
    {
        state.register_udaf(aggregate)?;
    }
    state.catalog_list().register_catalog(CATALOG.to_string(), Arc::clone(databases) as _);
    Ok(state)
}
