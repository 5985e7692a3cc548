//! A session: mounts, settings, and SQL statements in, batches and a report out.
//!
//! A statement goes this way: 1. it is told apart ([`command`]): the session answers `USE`, `SET`, `SHOW` and
//! `DESCRIBE` itself and refuses whatever writes; 2. tables it names are opened, so that their errors are told as they
//! are; 3. names are resolved ([`names`]); 4. it is planned and started with a [`context::QueryContext`] of its own.

mod aggregates;
mod announce;
mod answer;
mod command;
pub mod context;
mod conversion;
mod copy;
mod create_table;
mod create_view;
mod declared;
mod described;
mod dialect;
mod explain;
mod files;
mod forms;
mod status;

mod header;
mod information;
mod kept;
mod mirrors;
mod names;
mod planning;
mod prepared;
mod progress;
mod release;
mod result;
mod row_order;
mod set;
mod shown;
mod shown_lists;
mod spills;
mod split;
pub(crate) mod stars;
mod state;
mod variables;
mod volumes;
mod where_shown;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Instant;

use datafusion::arrow::array::StringArray;
use datafusion::arrow::compute::kernels::comparison::ilike;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::config::ConfigExtension;
use datafusion::execution::FunctionRegistry;
use datafusion::execution::{SendableRecordBatchStream, SessionState};
use datafusion::logical_expr::ScalarUDF;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use parking_lot::{Mutex, RwLock};
use tanada_innodb::schema::Server;
use tanada_innodb::{Beside, Catalog, Environment, Files, MountOptions, PageCache, PageCacheCounters};
use tanada_io::{ExecutorOptions, Executors, Method};
use tanada_volume::directory::Directory;

use crate::binding::{ServerCall, StatementRules};
use crate::catalog::{Database, Databases, InnodbTable};
use crate::expression::Rules;
use crate::placement::{OnPlaced, PlacedChunk, Recording, Steering, Watched, fingerprint};
use crate::settings::{ColumnarUse, TanadaOptions, server_name};
use crate::spill::SpillSpace;
use crate::{Error, ErrorKind, Result};
use announce::{Text, name_of};
#[cfg(test)]
pub(crate) use command::tokens;
use command::{Command, TableName};
use context::QueryContext;
use information::{INFORMATION, InformationSchema};
pub use progress::{QueryProgress, QueryWatch};
pub use result::{QueryReport, QueryResult};
pub use split::StatementText;
use status::{STATUS, StatusSchema};

/// The schema that describes the others.
const INFORMATION_SCHEMA: &str = "information_schema";

/// Resources of a session.
#[derive(Debug, Clone)]
pub struct SessionOptions {
    /// Executor threads for I/O; 0 means one per core.
    pub executors: usize,
    /// How files are read.
    pub method: Method,
    /// Page cache, in bytes.
    pub cache_bytes: u64,
    /// Memory for query operators, in bytes.
    pub memory_bytes: u64,
    /// Whether page checksums are verified.
    pub verify_checksums: bool,
}

impl Default for SessionOptions {
    fn default() -> Self {
        SessionOptions {
            executors: 0,
            method: Method::Uring,
            cache_bytes: 256 << 20,
            memory_bytes: 2 << 30,
            verify_checksums: true,
        }
    }
}

/// A session. Cheap to clone; clones share everything. Methods are called on a tokio runtime.
#[derive(Clone)]
pub struct Session {
    shared: Arc<Shared>,
}

struct Shared {
    environment: Arc<Environment>,
    databases: Arc<Databases>,
    /// What each query begins from: settings, catalog, functions, rules.
    state: RwLock<SessionState>,
    database: RwLock<Option<String>>,
    /// Mounted volumes, which have to be closed.
    volumes: RwLock<Vec<Arc<Directory>>>,
    /// Placement of those of them that have several classes.
    placements: RwLock<Vec<Arc<Steering>>>,
    /// What was placed on volumes that are closed again.
    placed: RwLock<Vec<PlacedChunk>>,
    /// Who is told of what is placed.
    on_placed: RwLock<Option<OnPlaced>>,
    recording: RwLock<Option<Recording>>,
    /// Queries so far.
    queries: AtomicU32,
    /// Warnings of the query before.
    warnings: RwLock<Arc<Mutex<Vec<String>>>>,
    /// What the servers warn of in the query before.
    noted: RwLock<Arc<Mutex<context::Noted>>>,
    /// Variables that were set.
    variables: RwLock<variables::Set>,
    /// Whether `tanada.server` was set, by a statement or a mount.
    is_server_set: AtomicBool,
    /// Where operators write what their memory does not hold.
    spill: Arc<SpillSpace>,
    /// Columnar mirrors, where such are kept.
    mirrors: RwLock<Option<mirrors::Kept>>,
    /// Answers of SHOW that a query chooses from, by the names of their tables.
    shown: Mutex<std::collections::HashMap<String, RecordBatch>>,
    /// What counts the rows of the last statement that had any.
    found: Mutex<Option<Arc<result::Clock>>>,
}

impl Session {
    /// Starts executors, cache and catalog.
    pub fn new(options: SessionOptions) -> Result<Session> {
        let defaults = ExecutorOptions::default();
        // Pages stay in their buffers while they are cached.
        let cached_bytes = usize::try_from(options.cache_bytes).unwrap_or(usize::MAX / 4);
        let executors = Executors::start(ExecutorOptions {
            threads: options.executors,
            method: options.method,
            buffer_bytes: cached_bytes.saturating_add(defaults.registered_bytes),
            ..defaults
        })?;
        let databases = Databases::new(Arc::clone(&executors));
        let spill = spills::space(&executors, options.method, options.memory_bytes);
        let state = state::session_state(&databases, options.memory_bytes, executors.threads(), &spill)?;
        let environment = Arc::new(Environment::new(
            executors,
            PageCache::new(options.cache_bytes),
            options.method,
            options.verify_checksums,
        ));
        let shared = Shared {
            environment,
            databases,
            state: RwLock::new(state),
            database: RwLock::default(),
            volumes: RwLock::default(),
            placements: RwLock::default(),
            placed: RwLock::default(),
            on_placed: RwLock::default(),
            recording: RwLock::default(),
            queries: AtomicU32::new(0),
            warnings: RwLock::default(),
            noted: RwLock::default(),
            variables: RwLock::default(),
            is_server_set: AtomicBool::new(false),
            spill,
            mirrors: RwLock::default(),
            shown: Mutex::default(),
            found: Mutex::default(),
        };
        let shared = Arc::new(shared);
        shared.databases.put_beside(STATUS, StatusSchema::new(Arc::downgrade(&shared)));
        shared.databases.put_beside(INFORMATION, InformationSchema::new(Arc::downgrade(&shared)));
        Ok(Session { shared })
    }

    /// Mounts a data directory, a database folder or an `.ibd` file; gives the databases found and warnings. With one
    /// database mounted in all it becomes the default, unless `tanada` was chosen.
    pub async fn mount_innodb(
        &self,
        path: &Path,
        options: &MountOptions,
    ) -> Result<(Vec<String>, Vec<String>)> {
        self.mount_in(path, options, &self.shared.environment).await
    }

    /// [`mount_innodb`](Self::mount_innodb) where `path` names something in `files`: on emulated disks, for instance.
    /// Executors and page cache are the session's.
    ///
    /// # Errors
    /// As [`mount_innodb`](Self::mount_innodb).
    pub async fn mount_innodb_in(
        &self,
        files: Arc<dyn Files>,
        path: &Path,
        options: &MountOptions,
    ) -> Result<(Vec<String>, Vec<String>)> {
        self.mount_in(path, options, &self.environment_over(files)).await
    }

    /// The session's environment over other files.
    fn environment_over(&self, files: Arc<dyn Files>) -> Arc<Environment> {
        let own = &self.shared.environment;
        let (executors, cache) = (Arc::clone(&own.executors), Arc::clone(&own.cache));
        Arc::new(Environment::new(executors, cache, own.method, own.verify_checksums).with_files(files))
    }

    /// Mounts what lies at `path` among the environment's files.
    async fn mount_in(
        &self,
        path: &Path,
        options: &MountOptions,
        environment: &Arc<Environment>,
    ) -> Result<(Vec<String>, Vec<String>)> {
        let (path, options) = (path.to_path_buf(), options.clone());
        let environment = Arc::clone(environment);
        let opened = self.shared.environment.executors.spawn(move || async move {
            let catalog = Catalog::open(&path, &options, &environment).await?;
            let server = catalog.server().await;
            let is_newer =
                server == Some(Server::MariaDb) && release::is_newer_mariadb(&environment.files, &path).await;
            Ok::<_, tanada_innodb::Error>((catalog, server, is_newer))
        });
        let (catalog, server, is_newer) = opened.await??;
        let warnings = catalog.warnings();
        let names = self.shared.databases.mount(catalog)?;
        if let Some(server) = server
            && !self.shared.is_server_set.swap(true, Ordering::Relaxed)
        {
            let key = format!("{}.server", TanadaOptions::PREFIX);
            self.shared.state.write().config_mut().options_mut().set(&key, server_name(server, is_newer))?;
        }
        let all = self.shared.databases.names();
        let is_chosen = self.database().is_some_and(|name| self.is_status(&name));
        if let [only] = all.as_slice()
            && !is_chosen
        {
            *self.shared.database.write() = Some(only.clone());
        }
        Ok((names, warnings))
    }

    /// The mounted databases and the engine's own, sorted.
    fn database_names(&self) -> Vec<String> {
        let mut names = self.shared.databases.names();
        names.extend(self.shared.databases.files().schema_names());
        names.sort_unstable();
        names.dedup();
        if !names.iter().any(|name| name.eq_ignore_ascii_case(STATUS)) {
            names.push(STATUS.to_string());
            names.sort_unstable();
        }
        names
    }

    /// Sets the default database.
    pub fn use_database(&self, name: &str) -> Result<()> {
        let name = match self.is_status(name) {
            true => STATUS.to_string(),
            false => match self.shared.databases.files().schema_named(name) {
                Some(schema) => schema,
                None => self.database_named(name)?.name().to_string(),
            },
        };
        *self.shared.database.write() = Some(name);
        Ok(())
    }

    /// The default database.
    pub fn database(&self) -> Option<String> {
        self.shared.database.read().clone()
    }

    /// Splits a text into statements (quotes, comments and MySQL backticks respected; empty ones dropped).
    pub fn split(sql: &str) -> Result<Vec<String>> {
        Ok(split::split(sql)?.into_iter().map(|statement| statement.sql).collect())
    }

    /// [`split`](Self::split) with the place of each statement and how its result is to be shown.
    ///
    /// # Errors
    /// If a quote or a comment is not closed.
    pub fn statements(sql: &str) -> Result<Vec<StatementText>> {
        split::split(sql)
    }

    /// Plans and starts one statement: SQL of DataFusion plus `USE db`, `SET tanada.x = y`, `SHOW DATABASES`,
    /// `SHOW TABLES`, `SHOW COLUMNS`, `SHOW INDEX`, `SHOW VARIABLES`, `DESCRIBE t`. Backticks quote names.
    pub async fn execute(&self, sql: &str) -> Result<QueryResult> {
        let result = self.executed(sql).await?;
        if !result.schema().fields().is_empty() {
            *self.shared.found.lock() = Some(result.clock());
        }
        Ok(result)
    }

    async fn executed(&self, sql: &str) -> Result<QueryResult> {
        let begun = Instant::now();
        let tokens = command::tokens(sql)?;
        let context = self.query_context()?;
        let answer = match command::recognise(&tokens)? {
            Command::Query if prepared::into_variables(&tokens).is_some() => {
                if let Some((sql, variables)) = prepared::into_variables(&tokens) {
                    self.select_into(&sql, &variables).await?;
                }
                None
            }
            Command::Query => {
                let database = self.database();
                let text =
                    Text { fingerprint: fingerprint(&tokens, database.as_deref()), name: name_of(sql) };
                let prepared = self.prepared(sql, &tokens).await?;
                return self.query(prepared, text, context, begun).await;
            }
            Command::Use(name) => {
                self.use_database(&name)?;
                None
            }
            Command::Set(assignments) => {
                self.assign(assignments).await?;
                None
            }
            Command::Named(named) => match self.named(named).await? {
                Some(result) => return Ok(result),
                None => None,
            },
            Command::Transaction => None,
            Command::Copy => {
                let copy = copy::read(sql, &tokens)?;
                let tokens = command::tokens(&copy.sql)?;
                let text = Text {
                    fingerprint: fingerprint(&tokens, self.database().as_deref()),
                    name: name_of(sql),
                };
                let prepared = self.prepared(&copy.sql, &tokens).await?;
                let result = self.query(prepared, text, Arc::clone(&context), begun).await?;
                return self.copied(copy, result, &context).await;
            }
            Command::CreateFiles => {
                self.create_files(sql).await?;
                None
            }
            Command::Drop { tables, if_exists } => {
                self.drop_tables(&tables, if_exists)?;
                None
            }
            Command::Chosen { shown, condition } => {
                let rows = self.shown(*shown, &context).await?;
                return self.chosen(&rows, &condition, context, begun).await;
            }
            shown => Some(self.shown(shown, &context).await?),
        };
        Ok(QueryResult::new(stream_of(answer), None, context, begun))
    }

    /// Applies `SET key = value`.
    pub async fn set(&self, key: &str, value: &str) -> Result<()> {
        if key.strip_prefix(TanadaOptions::PREFIX) == Some(".spill") {
            self.set_spill(value).await?;
        }
        let mut state = self.shared.state.write();
        if !key.starts_with(TanadaOptions::PREFIX) && !key.starts_with("datafusion.") {
            let message = format!("unknown setting '{key}'; settings begin with tanada. or datafusion.");
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        state.config_mut().options_mut().set(key, value)?;
        drop(state);
        if key.strip_prefix(TanadaOptions::PREFIX) == Some(".server") {
            self.shared.is_server_set.store(true, Ordering::Relaxed);
        }
        self.shared.spill.set_limit(self.options().spill_bytes as u64);
        self.want_placement()
    }

    /// Empties the page cache.
    pub fn clear_cache(&self) {
        self.shared.environment.cache.clear();
    }

    /// Counters of the page cache.
    pub fn cache_counters(&self) -> PageCacheCounters {
        self.shared.environment.cache.counters()
    }

    /// A context for a query that begins now.
    fn query_context(&self) -> Result<Arc<QueryContext>> {
        let options = self.options();
        let watched = Watched::new(self.next_query(), self.watchers(&options)?);
        let executors = Arc::clone(&self.shared.environment.executors);
        let mirrors = self.mirrors().filter(|_| options.columnar != ColumnarUse::Off);
        let limit = options.columnar_bytes as u64;
        let context = QueryContext::new(executors, options, watched);
        if let Some(mirrors) = mirrors {
            mirrors.set_limit(limit);
            context.use_mirrors(mirrors);
        }
        Ok(context)
    }

    /// The settings now.
    fn options(&self) -> TanadaOptions {
        let state = self.shared.state.read();
        state.config_options().extensions.get::<TanadaOptions>().cloned().unwrap_or_default()
    }

    /// The session's state for one query.
    fn state_for(&self, context: &Arc<QueryContext>) -> SessionState {
        let mut state = self.shared.state.read().clone();
        let config = state.config_mut();
        config.set_extension(Arc::clone(context));
        config.options_mut().catalog.default_schema = self.database().unwrap_or_default();
        state.mark_start_execution();
        let now = state.execution_props().query_execution_start_time;
        let rules = Rules {
            now_micros: now.map(|now| now.timestamp_micros()),
            zone: self.time_zone(),
            keeps_rows: context.keeps_rows(),
            default_week_format: self.number_set("default_week_format").map_or(0, |format| format as u8),
            connection: self.connection(context.options()),
            newer_mariadb: context.options().is_newer_mariadb,
            ..Rules::new(context.options().server == Server::MySql)
        };
        let statement = StatementRules::new(rules, Arc::clone(context));
        state.config_mut().options_mut().extensions.insert(statement);
        // Functions find the statement in these.
        let options = Arc::clone(state.config_options());
        state.execution_props_mut().config_options = Some(options);
        let call = ServerCall::new(rules, Arc::clone(context));
        // A function of this name is only replaced.
        let _ = state.register_udf(Arc::new(ScalarUDF::from(call)));
        state
    }

    /// Whether `name` is the engine's own schema, and no database of that name hides it.
    fn is_status(&self, name: &str) -> bool {
        name.eq_ignore_ascii_case(STATUS) && self.shared.databases.database(name).is_none()
    }

    /// The same of the default database, where none is named.
    fn is_status_or_default(&self, name: Option<&str>) -> bool {
        let default = self.database();
        name.or(default.as_deref()).is_some_and(|name| self.is_status(name))
    }

    async fn table(&self, name: &TableName) -> Result<Arc<InnodbTable>> {
        let database = self.database_or_default(name.database.as_deref())?;
        let table = database.open_table(&name.table).await?;
        match table {
            Some(table) => Ok(table),
            None => Err(no_table_but(database.beside(&name.table).await?, &name.table, database.name())),
        }
    }

    fn database_or_default(&self, name: Option<&str>) -> Result<Arc<Database>> {
        let default = self.database();
        match name.or(default.as_deref()) {
            Some(name) => self.database_named(name),
            None => {
                let message =
                    "no database is selected; USE one, or write database.table (see SHOW DATABASES)";
                Err(Error::new(ErrorKind::InvalidInput, message))
            }
        }
    }

    fn database_named(&self, name: &str) -> Result<Arc<Database>> {
        self.shared.databases.database(name).ok_or_else(|| {
            Error::new(ErrorKind::NotFound, format!("no database '{name}' is mounted; see SHOW DATABASES"))
        })
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let databases = self.shared.databases.names();
        f.debug_struct("Session")
            .field("databases", &databases)
            .field("database", &self.database())
            .finish_non_exhaustive()
    }
}

/// The names that are like `pattern`, as the servers compare them here: without regard to case.
fn liked(names: Vec<String>, pattern: Option<&str>) -> Result<Vec<String>> {
    let Some(pattern) = pattern else { return Ok(names) };
    let column: StringArray = names.iter().map(|name| Some(name.as_str())).collect();
    let is_like = ilike(&column, &StringArray::new_scalar(pattern))
        .map_err(datafusion::common::DataFusionError::from)?;
    let kept = names.into_iter().zip(&is_like).filter(|(_, is_like)| *is_like == Some(true));
    Ok(kept.map(|(name, _)| name).collect())
}

/// The header of a list of names that are like a pattern.
fn headed(header: &str, pattern: Option<&str>) -> String {
    pattern.map_or_else(|| header.to_string(), |pattern| format!("{header} ({pattern})"))
}

fn no_table(table: &str, database: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("no table '{table}' in database '{database}'; see SHOW TABLES"))
}

/// What is said of a name that is no table of InnoDB.
fn no_table_but(beside: Option<Beside>, table: &str, database: &str) -> Error {
    let message = match beside {
        None => return no_table(table, database),
        Some(Beside::Engine(engine)) => {
            format!("table {database}.{table} is of {engine}; only tables of InnoDB are read")
        }
        Some(Beside::View { .. }) => {
            format!(
                "'{database}.{table}' is a view: SHOW CREATE VIEW tells its query, its columns are not described"
            )
        }
    };
    Error::new(ErrorKind::Unsupported, message)
}

/// A stream of one batch, or of none.
fn stream_of(batch: Option<RecordBatch>) -> SendableRecordBatchStream {
    let schema = batch
        .as_ref()
        .map_or_else(|| Arc::new(datafusion::arrow::datatypes::Schema::empty()), RecordBatch::schema);
    let batches = futures::stream::iter(batch.map(Ok));
    Box::pin(RecordBatchStreamAdapter::new(schema, batches))
}
