//! What the operators of one query share.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use datafusion::common::{DataFusionError, Result as DataFusionResult};
use datafusion::execution::TaskContext;
use parking_lot::Mutex;
use tanada_innodb::{Loss, Losses};
use tanada_io::{Executors, Gate, GateLimits, IoContext};

use crate::columnar::Columnar;
use crate::cost::MediumCosts;
use crate::expression::{Note, Notes};
use crate::lookup::LookupBudget;
use crate::placement::Watched;
use crate::session::stars::Shown;
use crate::settings::{Execution, TanadaOptions};

/// The I/O context, executors and counters of one query; an extension of the query's session configuration.
#[derive(Debug)]
pub struct QueryContext {
    io: IoContext,
    executors: Arc<Executors>,
    options: TanadaOptions,
    warnings: Arc<Mutex<Vec<String>>>,
    shown_by_star: Mutex<Shown>,
    watched: Arc<Watched>,
    /// What scans leave out, if they step over damage.
    losses: Option<Arc<Losses>>,
    lookup_budget: Arc<LookupBudget>,
    orders_dates: AtomicBool,
    keeps_order: AtomicBool,
    keeps_rows: AtomicBool,
    /// What the servers warn of while they compute.
    noted: Arc<Mutex<Noted>>,
    /// Whether the statement is run: what is computed to plan it is no part of its answer.
    is_run: AtomicBool,
    /// The default database's collation, if the statement was found to need it.
    text_collation: Mutex<Option<String>>,
    /// Columnar mirrors, where such are kept.
    columnar: OnceLock<Arc<Columnar>>,
}

/// Warnings of conversions.
#[derive(Debug, Default)]
pub(crate) struct Noted {
    /// The first ones.
    pub kept: Vec<Note>,
    /// How many there are.
    pub count: u64,
    leaves_out_divisions: bool,
    /// The constant expressions that were computed.
    constants: HashSet<String>,
}

/// The most warnings that are kept.
const MAX_NOTES: usize = 1024;

impl Noted {
    fn add(&mut self, notes: Notes) {
        let kept = notes.kept.len() as u64;
        for note in notes.kept {
            let is_known = note.is_of_constant && self.kept.contains(&note);
            if is_known || self.leaves_out_divisions && Notes::is_division(&note) {
                continue;
            }
            self.count += 1;
            if self.kept.len() < MAX_NOTES {
                self.kept.push(note);
            }
        }
        self.count += notes.count - kept;
    }
}

impl QueryContext {
    /// A context with a gate as `options` want it.
    pub(crate) fn new(
        executors: Arc<Executors>,
        options: TanadaOptions,
        watched: Arc<Watched>,
    ) -> Arc<QueryContext> {
        let ios = match (options.execution, options.io_depth) {
            (Execution::InOrder, _) => Some(1),
            (Execution::OutOfOrder, 0) => None,
            (Execution::OutOfOrder, depth) => Some(depth),
        };
        let gate = Gate::new(GateLimits { ios, bytes: options.io_bytes });
        let io = IoContext::new(gate).observed_by(Arc::clone(&watched) as _);
        let losses = options.skip_damaged.then(Arc::default);
        let lookup_budget = LookupBudget::new(options.lookup_memory_bytes);
        let (warnings, shown_by_star) = (Arc::default(), Mutex::default());
        Arc::new(QueryContext {
            io,
            executors,
            options,
            warnings,
            shown_by_star,
            watched,
            losses,
            lookup_budget,
            orders_dates: AtomicBool::new(false),
            keeps_order: AtomicBool::new(false),
            keeps_rows: AtomicBool::new(true),
            noted: Arc::default(),
            is_run: AtomicBool::new(false),
            text_collation: Mutex::default(),
            columnar: OnceLock::new(),
        })
    }

    /// The context of the query that a task belongs to.
    pub fn from_task(task: &TaskContext) -> DataFusionResult<Arc<QueryContext>> {
        let context = task.session_config().get_extension::<QueryContext>();
        context.ok_or_else(|| DataFusionError::Internal("the task belongs to no Tanada query".to_string()))
    }

    /// Has scans read columnar mirrors where there are such.
    pub(super) fn use_mirrors(&self, columnar: Arc<Columnar>) {
        // The first ones stay.
        let _ = self.columnar.set(columnar);
    }

    /// Columnar mirrors, where such are kept.
    pub(crate) fn columnar(&self) -> Option<&Arc<Columnar>> {
        self.columnar.get()
    }

    /// Memory of all look-up joins.
    pub(crate) fn lookup_budget(&self) -> &Arc<LookupBudget> {
        &self.lookup_budget
    }

    /// The root I/O context: its counters are those of the whole query. Operators take `for_operator` of it.
    pub fn io(&self) -> &IoContext {
        &self.io
    }

    /// Threads that read and decode.
    pub fn executors(&self) -> &Arc<Executors> {
        &self.executors
    }

    /// The settings when the query began.
    pub fn options(&self) -> &TanadaOptions {
        &self.options
    }

    /// Whether exactly one I/O may be outstanding.
    pub fn in_order(&self) -> bool {
        self.options.execution == Execution::InOrder
    }

    /// Those who are told of the query.
    pub(crate) fn watched(&self) -> &Arc<Watched> {
        &self.watched
    }

    /// I/Os that it keeps in flight, about.
    pub(crate) fn depth(&self) -> u32 {
        match (self.options.execution, self.options.io_depth) {
            (Execution::InOrder, _) => 1,
            (Execution::OutOfOrder, 0) => MediumCosts::default().adaptive_depth as u32,
            (Execution::OutOfOrder, depth) => u32::try_from(depth).unwrap_or(u32::MAX),
        }
    }

    /// Notes that the query puts dates in order, so that those which no calendar has are refused.
    pub(crate) fn order_dates(&self) {
        self.orders_dates.store(true, Ordering::Relaxed);
    }

    /// Lets scans give rows in the order of the index that they read.
    pub(crate) fn keep_order(&self) {
        self.keeps_order.store(true, Ordering::Relaxed);
    }

    /// Whether scans give rows in the order of the index that they read.
    pub(crate) fn keeps_order(&self) -> bool {
        self.in_order() || self.keeps_order.load(Ordering::Relaxed)
    }

    /// Says that the server keeps no rows of the statement in a table of its own.
    pub(crate) fn keep_no_rows(&self) {
        self.keeps_rows.store(false, Ordering::Relaxed);
    }

    /// Whether the server may keep rows of the statement in a table of its own.
    pub(crate) fn keeps_rows(&self) -> bool {
        self.keeps_rows.load(Ordering::Relaxed)
    }

    /// Whether the query puts dates in order.
    pub(crate) fn orders_dates(&self) -> bool {
        self.orders_dates.load(Ordering::Relaxed)
    }

    /// Adds the warnings of a computation; those of a constant expression, which `constant` tells from others, once.
    pub(crate) fn note(&self, notes: Notes, constant: Option<&str>) {
        if notes.count == 0 || (constant.is_none() && !self.is_run.load(Ordering::Relaxed)) {
            return;
        }
        let mut noted = self.noted.lock();
        if constant.is_none_or(|text| noted.constants.insert(text.to_string())) {
            noted.add(notes);
        }
    }

    /// Says that from now on the statement is run.
    pub(crate) fn run(&self) {
        self.is_run.store(true, Ordering::Relaxed);
    }

    /// Leaves out warnings of divisions by zero, which a mode of the session makes.
    pub(crate) fn leave_out_divisions(&self) {
        self.noted.lock().leaves_out_divisions = true;
    }

    /// What was warned of, which may outlive the query.
    pub(super) fn noted(&self) -> Arc<Mutex<Noted>> {
        Arc::clone(&self.noted)
    }

    /// Notes the default database's collation.
    pub(crate) fn set_text_collation(&self, collation: String) {
        *self.text_collation.lock() = Some(collation);
    }

    /// The default database's collation, if it was noted.
    pub(crate) fn text_collation(&self) -> Option<String> {
        self.text_collation.lock().clone()
    }

    /// Notes a warning unless it was noted before.
    pub(crate) fn warn_once(&self, warning: String) {
        let mut warnings = self.warnings.lock();
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }

    /// Lets these virtual columns be NULL where they cannot be computed: only a `*` shows them.
    pub(crate) fn show_by_star(&self, shown: Shown) {
        *self.shown_by_star.lock() = shown;
    }

    /// Whether only a `*` shows a virtual column.
    pub(crate) fn is_shown_by_star(&self, table: &str, column: &str) -> bool {
        self.shown_by_star.lock().contains(&(table.to_lowercase(), column.to_lowercase()))
    }

    /// Notes what whoever asked should know.
    pub(crate) fn warn(&self, warnings: Vec<String>) {
        self.warnings.lock().extend(warnings);
    }

    /// The list of warnings alone, which may outlive the query.
    pub(super) fn warning_list(&self) -> Arc<Mutex<Vec<String>>> {
        Arc::clone(&self.warnings)
    }

    /// What whoever asked should know.
    pub fn warnings(&self) -> Vec<String> {
        self.warnings.lock().clone()
    }

    /// Where scans list what they leave out, if they step over damage.
    pub(crate) fn losses(&self) -> Option<&Losses> {
        self.losses.as_deref()
    }

    /// What scans left out so far because it is damaged.
    pub fn lost(&self) -> Vec<Loss> {
        self.losses.as_ref().map(|losses| losses.list()).unwrap_or_default()
    }
}
