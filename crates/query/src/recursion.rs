//! Recursive common tables end where the servers end them.
//!
//! The recursive part of a query runs at most [`MAX_ITERATIONS`] times, the default of both servers. Once more is an
//! error at MySQL (`cte_max_recursion_depth`); MariaDB takes the rows that there are (`max_recursive_iterations`).

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering as Atomic};

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNodeRecursion};
use datafusion::common::{DFSchemaRef, DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{
    Expr, Extension, LogicalPlan, RecursiveQuery, UserDefinedLogicalNode, UserDefinedLogicalNodeCore,
};
use datafusion::optimizer::AnalyzerRule;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, EmptyRecordBatchStream, ExecutionPlan, PlanProperties,
};
use tanada_innodb::schema::Server;

use crate::settings::TanadaOptions;
use crate::{Error, ErrorKind};

/// How often the recursive part of a query runs at most.
const MAX_ITERATIONS: usize = 1000;

/// Bounds the recursive part of each recursive query.
#[derive(Debug)]
pub(crate) struct RecursionRule;

impl AnalyzerRule for RecursionRule {
    fn name(&self) -> &str {
        "tanada_recursion"
    }

    fn analyze(&self, plan: LogicalPlan, options: &ConfigOptions) -> Result<LogicalPlan> {
        let server = options.extensions.get::<TanadaOptions>().map_or(Server::MySql, |own| own.server);
        plan.transform_up_with_subqueries(|node| match node {
            LogicalPlan::RecursiveQuery(query) if !is_bounded(&query.recursive_term) => {
                let input = Arc::unwrap_or_clone(query.recursive_term);
                let bounded = Bounded { input, is_mysql: server == Server::MySql };
                let recursive_term = Arc::new(LogicalPlan::Extension(Extension { node: Arc::new(bounded) }));
                let query = RecursiveQuery { recursive_term, ..query };
                Ok(Transformed::yes(LogicalPlan::RecursiveQuery(query)))
            }
            other => Ok(Transformed::no(other)),
        })
        .data()
    }
}

fn is_bounded(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::Extension(extension) if extension.node.name() == NAME)
}

const NAME: &str = "Iterations";

/// The recursive part of a query.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Bounded {
    input: LogicalPlan,
    is_mysql: bool,
}

impl PartialOrd for Bounded {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.input.partial_cmp(&other.input)
    }
}

impl UserDefinedLogicalNodeCore for Bounded {
    fn name(&self) -> &str {
        NAME
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        self.input.schema()
    }

    fn expressions(&self) -> Vec<Expr> {
        Vec::new()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{NAME}: at most {MAX_ITERATIONS}")
    }

    fn with_exprs_and_inputs(&self, _: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Self> {
        let input = inputs.into_iter().next().ok_or_else(wrong)?;
        Ok(Bounded { input, ..self.clone() })
    }
}

fn wrong() -> DataFusionError {
    DataFusionError::Internal("a recursive part has one input".to_string())
}

/// The operator of a node, if it is one of this module.
pub(crate) fn planned(
    node: &dyn UserDefinedLogicalNode,
    inputs: &[Arc<dyn ExecutionPlan>],
) -> Option<Arc<dyn ExecutionPlan>> {
    let bounded = node.as_any().downcast_ref::<Bounded>()?;
    let input = inputs.first()?;
    Some(Arc::new(BoundedExec {
        input: Arc::clone(input),
        is_mysql: bounded.is_mysql,
        iterations: Arc::default(),
    }))
}

/// Counts how often it is run; whoever resets it shares the count.
#[derive(Debug)]
struct BoundedExec {
    input: Arc<dyn ExecutionPlan>,
    is_mysql: bool,
    iterations: Arc<AtomicUsize>,
}

impl DisplayAs for BoundedExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IterationsExec: at most {MAX_ITERATIONS}")
    }
}

impl ExecutionPlan for BoundedExec {
    fn name(&self) -> &'static str {
        "IterationsExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let input = children.into_iter().next().ok_or_else(wrong)?;
        let iterations = Arc::clone(&self.iterations);
        Ok(Arc::new(BoundedExec { input, is_mysql: self.is_mysql, iterations }))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, task: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let before = match partition {
            0 => self.iterations.fetch_add(1, Atomic::Relaxed),
            _ => self.iterations.load(Atomic::Relaxed).saturating_sub(1),
        };
        if before < MAX_ITERATIONS {
            return self.input.execute(partition, task);
        }
        if !self.is_mysql {
            return Ok(Box::pin(EmptyRecordBatchStream::new(self.schema())));
        }
        let message = format!(
            "Recursive query aborted after {} iterations. Try increasing @@cte_max_recursion_depth to a larger value.",
            MAX_ITERATIONS + 1
        );
        Err(Error::new(ErrorKind::Resources, message).into())
    }
}
