//! `EXPLAIN`: what placement would do for the query, as a further row behind the plans.

use std::fmt::Write;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, StringArray};
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::execution::{SendableRecordBatchStream, SessionState};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::analyze::AnalyzeExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::sql::parser::Statement;
use futures::StreamExt;
use tanada_placement::Forecast;

use super::Session;
use super::announce::Text;
use super::context::QueryContext;
use crate::Result;
use crate::placement::{Announcement, Foreseen, pattern_in_words};

/// Moves that are shown one by one.
const SHOWN_MOVES: usize = 8;

/// What an `EXPLAIN` that runs nothing explains.
pub(super) fn explained(statement: &Statement) -> Option<Statement> {
    match statement {
        Statement::Explain(explain) if !explain.options.analyze => Some(explain.statement.as_ref().clone()),
        _ => None,
    }
}

/// The plan of what is explained.
pub(super) async fn plan_of(statement: Statement, state: &SessionState) -> Result<Arc<dyn ExecutionPlan>> {
    let plan = state.statement_to_plan(statement).await?;
    Ok(state.create_physical_plan(&plan).await?)
}

impl Session {
    /// What placement would do for a plan; `None` where there is no placement.
    pub(super) async fn planned_placement(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        text: Text,
        context: &Arc<QueryContext>,
    ) -> Option<String> {
        let placements = self.shared.placements.read().clone();
        if placements.is_empty() {
            return None;
        }
        let announcement = self.announcement(text, plan, context).await;
        let mut shown = String::new();
        let mut earlier_pages = vec![None; announcement.accesses.len()];
        for steering in placements {
            let volume = steering.directory().path().display();
            if !steering.places() {
                let _ = writeln!(shown, "volume {volume} is only read: no chunks are placed");
                continue;
            }
            let foreseen = steering.forecast(&announcement);
            let Foreseen { forecast, policy, objects, .. } = &foreseen;
            let _ = writeln!(shown, "volume {volume}, policy {policy}: {}", in_short(forecast));
            show_moves(&mut shown, forecast, objects);
            for (all, pages) in earlier_pages.iter_mut().zip(foreseen.earlier_pages) {
                *all = all.or(pages);
            }
        }
        show_accesses(&mut shown, &announcement, &earlier_pages);
        Some(shown)
    }
}

fn in_short(forecast: &Forecast) -> String {
    let Forecast { chunks, fast_chunks, move_count, move_bytes, gain_s, cost_s, remembered_runs, .. } =
        forecast;
    let mib = *move_bytes as f64 / f64::from(1 << 20);
    format!(
        "{} named, {fast_chunks} of them in the fast class; {}, {mib:.0} MiB to copy, estimated to save {gain_s:.3} s for {cost_s:.3} s of \
         copying; runs of this statement remembered: {remembered_runs}",
        count(u64::from(*chunks), "chunk"),
        count(u64::from(*move_count), "move")
    )
}

fn count(number: u64, of: &str) -> String {
    if number == 1 { format!("1 {of}") } else { format!("{number} {of}s") }
}

fn show_moves(shown: &mut String, forecast: &Forecast, objects: &[String]) {
    for planned in forecast.moves.iter().take(SHOWN_MOVES) {
        let object = objects.get(planned.object.0 as usize).map_or("?", String::as_str);
        let verb = planned.action.order();
        let _ = writeln!(
            shown,
            "  {verb} chunk {} of {object}: gain {:.1} ms, {}",
            planned.chunk_of_object,
            f64::from(planned.gain_s) * 1e3,
            planned.why
        );
    }
    if let Some(more) = (forecast.move_count as usize).checked_sub(SHOWN_MOVES).filter(|more| *more > 0) {
        let _ = writeln!(shown, "  and {more} more");
    }
}

/// What the plan expects to be read, and what earlier runs of the statement have read, where there were any.
fn show_accesses(shown: &mut String, announcement: &Announcement, earlier_pages: &[Option<u64>]) {
    for (access, earlier_pages) in announcement.accesses.iter().zip(earlier_pages) {
        let bytes: u64 = access.extents.iter().map(|extent| extent.len).sum();
        let earlier = earlier_pages.map(|pages| format!(", {pages} read before,")).unwrap_or_default();
        let _ = writeln!(
            shown,
            "reads {} in {}: {}, {} pages expected{earlier} of {:.1} MiB in {} extents, stage {}",
            access.index,
            access.path.display(),
            pattern_in_words(access.pattern),
            access.pages,
            bytes as f64 / f64::from(1 << 20),
            access.extents.len(),
            access.stage
        );
    }
}

/// What an `EXPLAIN ANALYZE` runs.
pub(super) fn analyzed(plan: &Arc<dyn ExecutionPlan>) -> Option<Arc<dyn ExecutionPlan>> {
    let analyze = plan.downcast_ref::<AnalyzeExec>()?;
    Some(Arc::clone(analyze.input()))
}

/// The rows of an `EXPLAIN`, and one more, which is made when they have all been read.
pub(super) fn with_row(
    stream: SendableRecordBatchStream,
    kind: &'static str,
    row: impl FnOnce() -> String + Send + 'static,
) -> SendableRecordBatchStream {
    let schema = stream.schema();
    let fields = Arc::clone(&schema);
    let added = futures::stream::once(async move { row_of(&fields, kind, &row()) });
    let added = added.filter_map(|batch| async move { batch.map(Ok) });
    Box::pin(RecordBatchStreamAdapter::new(schema, stream.chain(added)))
}

fn row_of(schema: &SchemaRef, kind: &str, row: &str) -> Option<RecordBatch> {
    let is_text = schema.fields().iter().all(|field| *field.data_type() == DataType::Utf8);
    let columns: Vec<ArrayRef> =
        [kind, row].map(|value| Arc::new(StringArray::from(vec![value])) as ArrayRef).into();
    RecordBatch::try_new(Arc::clone(schema), columns).ok().filter(|_| is_text)
}
