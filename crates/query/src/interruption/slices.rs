//! Passes batches on in slices of few rows.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::StreamExt;

/// The rows of its input in their order, at most `rows` in a batch; nothing is copied.
#[derive(Debug)]
pub(super) struct SlicesExec {
    input: Arc<dyn ExecutionPlan>,
    rows: usize,
}

impl SlicesExec {
    pub(super) fn new(input: Arc<dyn ExecutionPlan>, rows: usize) -> SlicesExec {
        SlicesExec { input, rows: rows.max(1) }
    }
}

impl DisplayAs for SlicesExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SlicesExec: rows={}", self.rows)
    }
}

impl ExecutionPlan for SlicesExec {
    fn name(&self) -> &'static str {
        "SlicesExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
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
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match (children.pop(), children.is_empty()) {
            (Some(input), true) => Ok(Arc::new(SlicesExec::new(input, self.rows))),
            _ => Err(DataFusionError::Internal("slices are cut of one input".to_string())),
        }
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, task: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(partition, task)?;
        let schema = input.schema();
        let rows = self.rows;
        let slices = input.flat_map(move |batch| {
            let slices: VecDeque<Result<RecordBatch>> = match batch {
                Ok(batch) => cut(&batch, rows).map(Ok).collect(),
                Err(error) => VecDeque::from([Err(error)]),
            };
            futures::stream::iter(slices)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, slices)))
    }
}

fn cut(batch: &RecordBatch, rows: usize) -> impl Iterator<Item = RecordBatch> {
    let starts = (0..batch.num_rows()).step_by(rows);
    starts.map(move |start| batch.slice(start, rows.min(batch.num_rows() - start)))
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{ArrayRef, Int32Array};

    use super::*;

    #[test]
    fn slices_are_the_batch_in_its_order() {
        let values: ArrayRef = Arc::new(Int32Array::from_iter_values(0..10));
        let batch = RecordBatch::try_from_iter([("n", values)]).unwrap();
        let slices: Vec<RecordBatch> = cut(&batch, 4).collect();
        assert_eq!(slices.iter().map(RecordBatch::num_rows).collect::<Vec<_>>(), [4, 4, 2]);
        assert_eq!(
            slices[2].column(0).as_ref(),
            &Int32Array::from(vec![8, 9]) as &dyn datafusion::arrow::array::Array
        );
        assert_eq!(cut(&batch.slice(0, 0), 4).count(), 0);
    }
}
