//! Answers of SHOW and DESCRIBE: what is asked for is found here, [`answer`] makes rows of it.

use std::sync::Arc;

use datafusion::arrow::datatypes::Schema;
use datafusion::arrow::record_batch::RecordBatch;

use tanada_innodb::Beside;

use super::command::{Command, TableName};
use super::context::QueryContext;
use super::information::InformationSchema;
use super::status::{STATUS, StatusSchema};
use super::{
    INFORMATION_SCHEMA, Session, answer, create_table, create_view, headed, liked, no_table, no_table_but,
    variables,
};
use crate::{Error, ErrorKind, Result};

impl Session {
    /// The answer to a SHOW or DESCRIBE.
    pub(super) async fn shown(&self, command: Command, context: &Arc<QueryContext>) -> Result<RecordBatch> {
        match command {
            Command::ShowDatabases { pattern } => {
                let names = liked(self.database_names(), pattern.as_deref())?;
                answer::names(&headed("Database", pattern.as_deref()), &names)
            }
            Command::ShowWarnings { counted } => {
                let warnings = self.shared.warnings.read().lock().clone();
                let noted = Arc::clone(&self.shared.noted.read());
                let noted = noted.lock();
                if counted {
                    return answer::counted(warnings.len() as u64 + noted.count);
                }
                answer::warnings(&warnings, &noted.kept, context.options().server)
            }
            Command::ShowTables { database, full, pattern } => {
                self.shown_tables(database.as_deref(), full, pattern.as_deref()).await
            }
            Command::ShowColumns { table, full, pattern } => {
                self.shown_columns(&table, full, pattern.as_deref()).await
            }
            Command::ShowIndex(name) if self.is_status_or_default(name.database.as_deref()) => {
                StatusSchema::schema(&name.table).ok_or_else(|| no_table(&name.table, STATUS))?;
                let message = format!(
                    "tables of database '{STATUS}' have no indexes; DESCRIBE {} shows its columns",
                    name.table
                );
                Err(Error::new(ErrorKind::Unsupported, message))
            }
            Command::ShowIndex(table) => self.shown_indexes(&table, context).await,
            Command::ShowTableStatus { database, pattern } => {
                self.shown_status(database.as_deref(), pattern.as_deref()).await
            }
            Command::ShowCreateDatabase { database, if_not_exists } => {
                let home = self.database_named(&database)?;
                let server = context.options().server;
                let described = home.described().await?;
                let text = create_view::database(home.name(), &described, server, if_not_exists)?;
                answer::create_database(home.name(), text)
            }
            Command::ShowOfServer { what, pattern } => self.shown_of_server(what, pattern.as_deref()).await,
            Command::ShowCreate { table, view } => self.shown_create(&table, view, context).await,
            Command::ShowVariables { pattern } => {
                let state = self.state_for(context);
                answer::variables(&variables::listed(
                    state.config_options(),
                    self.system_variables(),
                    pattern.as_deref(),
                )?)
            }
            Command::Use(_)
            | Command::Set(_)
            | Command::Transaction
            | Command::Copy
            | Command::CreateFiles
            | Command::Drop { .. }
            | Command::Chosen { .. }
            | Command::Named(_)
            | Command::Query => {
                Err(Error::new(ErrorKind::InvalidInput, "only SHOW and DESCRIBE show something"))
            }
        }
    }

    async fn shown_tables(
        &self,
        database: Option<&str>,
        full: bool,
        pattern: Option<&str>,
    ) -> Result<RecordBatch> {
        let mut views = Vec::new();
        let (database, tables) = match self.is_status_or_default(database) {
            true => (STATUS.to_string(), StatusSchema::names()),
            false => {
                let (of_files, mut tables) = self.files_in(database)?.unzip();
                let tables: &mut Vec<String> = tables.get_or_insert_default();
                let database = match (of_files, self.database_or_default(database)) {
                    (_, Ok(database)) => database,
                    (Some(schema), Err(_)) => {
                        let header = headed(&format!("Tables_in_{schema}"), pattern);
                        let tables = liked(std::mem::take(tables), pattern)?;
                        return match full {
                            true => answer::tables(&header, &tables, &[]),
                            false => answer::names(&header, &tables),
                        };
                    }
                    (None, Err(error)) => return Err(error),
                };
                views = database.views().await?;
                let mut tables = std::mem::take(tables);
                tables.extend(database.tables());
                tables.extend(views.iter().cloned());
                tables.sort_unstable();
                tables.dedup();
                (database.name().to_string(), tables)
            }
        };
        let header = headed(&format!("Tables_in_{database}"), pattern);
        let tables = liked(tables, pattern)?;
        match full {
            true => answer::tables(&header, &tables, &views),
            false => answer::names(&header, &tables),
        }
    }

    async fn shown_create(
        &self,
        name: &TableName,
        view: bool,
        context: &Arc<QueryContext>,
    ) -> Result<RecordBatch> {
        let database = self.database_or_default(name.database.as_deref())?;
        let Some(table) = database.open_table(&name.table).await? else {
            return match database.beside(&name.table).await? {
                Some(Beside::View { .. }) => self.created_view(&database, &name.table).await,
                other => Err(no_table_but(other, &name.table, database.name())),
            };
        };
        let definition = table.table().definition();
        if view {
            let message = format!("'{}.{}' is not VIEW", definition.database, definition.name);
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        let description = database.description(&name.table).await?;
        let text = create_table::text(definition, &description)?;
        let omitted = description.omitted.iter();
        context.warn(
            omitted.map(|what| format!("left out, because the files do not tell it: {what}")).collect(),
        );
        *self.shared.warnings.write() = context.warning_list();
        answer::create_table(&definition.name, text)
    }

    async fn shown_columns(
        &self,
        name: &TableName,
        full: bool,
        pattern: Option<&str>,
    ) -> Result<RecordBatch> {
        if self.is_status_or_default(name.database.as_deref()) {
            let schema = StatusSchema::schema(&name.table).ok_or_else(|| no_table(&name.table, STATUS))?;
            return answer::fields(&schema);
        }
        if let Some(fields) = self.file_fields(name).await? {
            let names = fields.fields().iter().map(|field| field.name().clone()).collect();
            let shown = liked(names, pattern)?;
            let kept = fields.fields().iter().filter(|field| shown.contains(field.name())).cloned();
            return answer::fields(&Schema::new(kept.collect::<Vec<_>>()));
        }
        if self.system_schema(name.database.as_deref()) == Some(INFORMATION_SCHEMA) && !full {
            let definition = InformationSchema::definition(&name.table, self.options().server);
            let definition = definition.ok_or_else(|| no_table(&name.table, INFORMATION_SCHEMA))?;
            let names = definition.columns.iter().map(|column| column.name.clone()).collect();
            return answer::columns(&definition, None, &liked(names, pattern)?, full);
        }
        let table = self.table(name).await?;
        let definition = table.table().definition();
        let names = definition.columns.iter().map(|column| column.name.clone()).collect();
        let shown = liked(names, pattern)?;
        let home = self.database_or_default(name.database.as_deref())?;
        // A definition that is given as text has no description.
        let description = home.description(&name.table).await.ok();
        answer::columns(definition, description.as_ref(), &shown, full)
    }
}
