//! From a query's text to its plan: its tables are opened, its names resolved, its functions respelled.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use datafusion::common::TableReference;
use datafusion::execution::context::SQLOptions;
use datafusion::execution::{SessionState, TaskContext};
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{ObjectName, Statement as SqlStatement};
use datafusion::sql::sqlparser::tokenizer::Token;

use super::announce::Text;
use super::command::{TableName, keyword};
use super::context::QueryContext;
use super::information::{INFORMATION, InformationSchema};
use super::mirrors::want_looked_up;
use super::names::{self, NamedTable, TableColumn};
use super::stars::VirtualColumns;
use super::{
    INFORMATION_SCHEMA, QueryResult, STATUS, Session, aggregates, dialect, explain, forms, kept, row_order,
    stars,
};
use crate::binding::orders_dates;
use crate::catalog::Database;
use crate::predict::{predict, row_estimates};
use crate::{Error, ErrorKind, Result};
use tanada_innodb::Beside;
use tanada_innodb::schema::Server;

/// Most views that a statement may be made of.
const MAX_VIEWS: usize = 256;

/// A query whose names are resolved.
#[derive(Debug)]
pub(super) struct Prepared {
    statement: Statement,
    /// Names of its columns, if it is not explained.
    header: Option<Vec<String>>,
    /// Virtual columns of its tables.
    generated: VirtualColumns,
    /// Columns that its text names.
    named: std::collections::BTreeSet<String>,
    /// Whether it may have a JSON_TABLE, whose texts have the default database's collation in MariaDB.
    has_json_table: bool,
}

/// Tables of a statement as they are found.
#[derive(Default)]
struct Found {
    tables: HashMap<String, NamedTable>,
    /// How many views were opened.
    views: usize,
    generated: VirtualColumns,
}

impl Session {
    /// Reads a query and resolves its names. Its tables are opened, so that one that cannot be read says why.
    pub(super) async fn prepared(&self, sql: &str, tokens: &[Token]) -> Result<Prepared> {
        let state = self.shared.state.read().clone();
        self.shared.databases.files().set_server(self.options().server);
        let respelled = forms::respelled(tokens, self.options().server);
        let statement = dialect::parse(respelled.as_deref().unwrap_or(sql))?;
        let relations = names::relations(&statement);
        let mut found = Found::default();
        for name in &relations.tables {
            let is_common = name.0.len() == 1
                && relations.common.contains(&name.to_string().replace('`', "").to_lowercase());
            match self.find(&state, name, &mut found).await {
                Err(_) if is_common => {}
                other => other?,
            }
        }
        let named = stars::named(&statement);
        let options = self.options();
        let variables = |name: &str| self.variable(name);
        let context = names::Context {
            tables: found.tables,
            server: options.server,
            only_full_group_by: self.is_mode("ONLY_FULL_GROUP_BY"),
            found_rows: self.shared.found.lock().as_ref().map_or(Some(0), |found| found.rows()),
            tokens,
            variables: &variables,
        };
        let names::Named { statement, header } = names::resolve(statement, context)?;
        let has_json_table = tokens.iter().any(|token| keyword(token) == "JSON_TABLE");
        Ok(Prepared { statement, header, generated: found.generated, named, has_json_table })
    }

    /// Finds a table.
    async fn find(&self, state: &SessionState, name: &ObjectName, found: &mut Found) -> Result<()> {
        let key = names::table_key(name);
        let parts: Vec<&str> =
            name.0.iter().filter_map(|part| part.as_ident().map(|ident| ident.value.as_str())).collect();
        let (database, table) = match parts.as_slice() {
            [table] => (None, *table),
            [database, table] => (Some(*database), *table),
            _ => return Err(Error::new(ErrorKind::InvalidInput, format!("'{name}' is no table's name"))),
        };
        if database.is_none() && table.eq_ignore_ascii_case("dual") || found.tables.contains_key(&key) {
            return Ok(());
        }
        if let Some(schema) = self.system_schema(database) {
            let shown = self.shared.shown.lock().get(table).map(|rows| rows.schema());
            let information = shown
                .or_else(|| InformationSchema::schema(table, self.options().server))
                .filter(|_| schema == INFORMATION_SCHEMA);
            // MySQL computes most of these tables by views.
            let is_view = information.is_some()
                && self.options().server == Server::MySql
                && !table.starts_with('#')
                && !table.eq_ignore_ascii_case("engines");
            let own = information.as_ref().map(|_| INFORMATION);
            let columns = match information {
                Some(of) => Some(of.fields().iter().map(|field| field.name().clone()).collect()),
                None => system_columns(state, schema, table).await,
            };
            let columns: Vec<String> = columns.ok_or_else(|| super::no_table(table, schema))?;
            let columns = columns.into_iter().map(|name| TableColumn { name, invisible: false });
            let table = NamedTable {
                database: schema.to_string(),
                name: table.to_ascii_lowercase(),
                columns: columns.collect(),
                schema: own,
                is_view,
                ..NamedTable::default()
            };
            found.tables.insert(key, table);
            return Ok(());
        }
        if let Some(of_files) = self.find_files(database, table).await? {
            found.tables.insert(key, of_files);
            return Ok(());
        }
        let name = TableName { database: database.map(str::to_string), table: table.to_string() };
        let home = self.database_or_default(name.database.as_deref())?;
        let Some(opened) = home.open_table(&name.table).await? else {
            return self.find_beside(state, &home, &name.table, key, found).await;
        };
        let definition = opened.table().definition();
        let generated = definition.columns.iter().filter(|column| column.virtual_expression.is_some());
        let generated = generated.map(|column| column.name.to_lowercase());
        found.generated.entry(definition.name.to_lowercase()).or_default().extend(generated);
        found.tables.insert(key, NamedTable::of(definition));
        Ok(())
    }

    /// Finds a view and the tables that it is made of; whoever names a table of another engine is told.
    async fn find_beside(
        &self,
        state: &SessionState,
        home: &Database,
        name: &str,
        key: String,
        found: &mut Found,
    ) -> Result<()> {
        let database = home.name();
        let (query, columns) = match home.beside(name).await? {
            Some(Beside::View { query, columns }) => (query, columns),
            other => return Err(super::no_table_but(other, name, database)),
        };
        if found.views >= MAX_VIEWS {
            let message = format!("view {database}.{name} is made of too many views");
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        found.views += 1;
        let statement = dialect::parse(&query)?;
        for table in &names::relations(&statement).tables {
            Box::pin(self.find(state, table, found)).await?;
        }
        let view = match &statement {
            Statement::Statement(sql) => match sql.as_ref() {
                SqlStatement::Query(query) => Some(query.clone()),
                _ => None,
            },
            _ => None,
        };
        let Some(view) = view else {
            let message = format!("view {database}.{name} is no query that is read here");
            return Err(Error::new(ErrorKind::Unsupported, message));
        };
        let table = NamedTable {
            database: database.to_string(),
            name: name.to_string(),
            view: Some(view),
            view_columns: columns,
            ..NamedTable::default()
        };
        found.tables.insert(key, table);
        Ok(())
    }

    /// Plans and starts a query.
    pub(super) async fn query(
        &self,
        prepared: Prepared,
        text: Text,
        context: Arc<QueryContext>,
        begun: Instant,
    ) -> Result<QueryResult> {
        *self.shared.warnings.write() = context.warning_list();
        *self.shared.noted.write() = context.noted();
        if !self.is_mode("ERROR_FOR_DIVISION_BY_ZERO") {
            context.leave_out_divisions();
        }
        if prepared.has_json_table
            && context.options().server == Server::MariaDb
            && let Ok(home) = self.database_or_default(None)
            && let Some(collation) = home.described().await?.collation
        {
            context.set_text_collation(collation.name);
        }
        if !kept::keeps_rows(&prepared.statement) {
            context.keep_no_rows();
        }
        let state = self.state_for(&context);
        let header = prepared.header.clone();
        let (explained, plan) = self.planned(prepared, &state).await?;
        let explained = match explained {
            Some(inner) => Some(explain::plan_of(inner, &state).await?),
            None => None,
        };
        if let Some(columnar) = context.columnar() {
            want_looked_up(&plan, columnar);
        }
        let placement = match &explained {
            Some(inner) => self.planned_placement(inner, text.clone(), &context).await,
            None => None,
        };
        let predicted =
            |plan: &Arc<dyn ExecutionPlan>| predict(plan, context.options(), context.executors().threads());
        let prediction = explained.as_ref().map(predicted);
        let analyzed = explain::analyzed(&plan).map(|inner| (predicted(&inner), inner));
        let ending = self.announce(text, &plan, &context).await;
        context.run();
        let mut stream = execute_stream(Arc::clone(&plan), Arc::new(TaskContext::from(&state)))?;
        if let Some(prediction) = prediction {
            stream = explain::with_row(stream, "prediction", move || prediction.to_string());
        }
        if let Some((prediction, inner)) = analyzed {
            let running = Instant::now();
            stream = explain::with_row(stream, "prediction", move || {
                let taken_ms = running.elapsed().as_secs_f64() * 1e3;
                let rows: Vec<String> = row_estimates(&inner).iter().map(|row| format!("\n{row}")).collect();
                format!("{prediction}; it took {taken_ms:.1} ms{}", rows.concat())
            });
        }
        if let Some(placement) = placement {
            stream = explain::with_row(stream, "placement", move || placement);
        }
        Ok(QueryResult::new(stream, Some(plan), context, begun).under(header).ending_with(ending))
    }

    /// The plan of a query that only reads, and of an `EXPLAIN` what it explains.
    pub(super) async fn planned(
        &self,
        prepared: Prepared,
        state: &SessionState,
    ) -> Result<(Option<Statement>, Arc<dyn ExecutionPlan>)> {
        let Prepared { statement, generated, named, .. } = prepared;
        let database = self.database();
        let statement = aggregates::respell(statement, database.as_deref());
        let statement = crate::binding::lower(statement)?;
        let explained = explain::explained(&statement);
        let plan = state.statement_to_plan(statement).await?;
        let reads_only =
            SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
        reads_only.verify_plan(&plan)?;
        if let Some(context) = state.config().get_extension::<QueryContext>() {
            context.show_by_star(stars::shown(&plan, &generated, &named)?);
        }
        let optimized = state.optimize(&plan)?;
        if let Some(context) = state.config().get_extension::<QueryContext>()
            && orders_dates(&optimized, context.options().server)?
        {
            context.order_dates();
        }
        let planner = state.query_planner();
        let has_recursion = row_order::has_recursion(&optimized);
        let plan = planner.create_physical_plan(&optimized, state).await?;
        let reads_in_order = row_order::is_shown(&optimized) && row_order::reads_little(plan.as_ref());
        if !has_recursion && !reads_in_order {
            return Ok((explained, plan));
        }
        if reads_in_order && let Some(context) = state.config().get_extension::<QueryContext>() {
            context.keep_order();
        }
        let mut single = state.clone();
        single.config_mut().options_mut().execution.target_partitions = 1;
        Ok((explained, planner.create_physical_plan(&optimized, &single).await?))
    }

    /// The schema of a table that is no database's; `database` is the one that is named.
    pub(super) fn system_schema(&self, database: Option<&str>) -> Option<&'static str> {
        let default = self.database();
        let schema = database.or(default.as_deref())?;
        let is_status = self.is_status(schema);
        let is_information = schema.eq_ignore_ascii_case(INFORMATION_SCHEMA);
        is_status.then_some(STATUS).or(is_information.then_some(INFORMATION_SCHEMA))
    }
}

/// Columns of a table of `schema`, if there is such a table.
async fn system_columns(state: &SessionState, schema: &str, table: &str) -> Option<Vec<String>> {
    let wanted = TableReference::partial(schema, table.to_ascii_lowercase());
    let schema = state.schema_for_ref(wanted.clone()).ok()?;
    let table = schema.table(wanted.table()).await.ok()??;
    Some(table.schema().fields().iter().map(|field| field.name().clone()).collect())
}
