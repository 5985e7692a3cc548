//! Tables over files of other formats: `CREATE EXTERNAL TABLE`, `DROP TABLE`, folders that are schemas.

use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;
use datafusion::sql::parser::{CreateExternalTable, Statement};
use datafusion::sql::sqlparser::ast::ObjectName;

use super::command::TableName;
use super::copy::option_text;
use super::declared::declared;
use super::names::{NamedTable, TableColumn};
use super::{Session, dialect, no_table};
use crate::external::{FILES, FileFormat, FileTable, Wanted};
use crate::store::{Folders, Medium, VolumeObjects};
use crate::{Error, ErrorKind, Result};

/// What a location begins with that names an object of a mounted volume.
pub(super) const OF_VOLUME: &str = "volume:";

impl Session {
    /// Mounts a folder as a schema of its name: each `*.parquet` file in it, and each folder of such files, is a table.
    /// Files are looked at when a statement names them, so that one that cannot be read does not block the others.
    /// Gives the schema's name, which becomes the default if it is the only one.
    ///
    /// # Errors
    /// If the folder cannot be read, has no Parquet files, or there is such a schema already.
    pub async fn mount_parquet(&self, folder: &Path) -> Result<String> {
        if !folder.is_dir() {
            let why = if folder.exists() { "is no folder" } else { "does not exist" };
            let message = format!("{} {why}; name a folder of Parquet files", folder.display());
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        let real = folder.canonicalize().map_err(|error| {
            Error::new(ErrorKind::Io, format!("cannot read the folder {}: {error}", folder.display()))
        })?;
        let location = Folders::name(&real)?;
        let name = location.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(FILES).to_owned();
        self.mount_files(&name, Arc::new(Folders), location)?;
        Ok(name)
    }

    /// Mounts a folder of a medium as the schema `name`.
    pub(super) fn mount_files(&self, name: &str, medium: Arc<dyn Medium>, folder: String) -> Result<()> {
        let databases = &self.shared.databases;
        if databases.database(name).is_some() {
            let message = format!("a database '{name}' is mounted already; give the folder another name");
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        databases.files().mount(name, medium, folder)?;
        if self.database().is_none() && databases.names().is_empty() {
            *self.shared.database.write() = Some(name.to_owned());
        }
        Ok(())
    }

    /// `CREATE EXTERNAL TABLE`
    pub(super) async fn create_files(&self, sql: &str) -> Result<()> {
        let Statement::CreateExternalTable(wanted) = dialect::parse(sql)? else {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                "write CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION 'file'",
            ));
        };
        check_clauses(&wanted)?;
        let name = name_of(&wanted.name)?;
        let (schema, is_new) = self.schema_for(name.database.as_deref())?;
        if self.exists(&schema, &name.table).await? {
            match (wanted.if_not_exists, self.shared.databases.files().table(&schema, &name.table)?.is_some())
            {
                (true, _) => return Ok(()),
                (false, true) if wanted.or_replace => {}
                (false, _) => {
                    let message = format!("there is a table '{}' in '{schema}' already", name.table);
                    return Err(Error::new(ErrorKind::InvalidInput, message));
                }
            }
        }
        let [location] = wanted.locations.as_slice() else {
            return Err(Error::new(
                ErrorKind::Unsupported,
                "name one LOCATION: a file, or a folder of files",
            ));
        };
        let options: Vec<(String, String)> =
            wanted.options.iter().map(|(key, value)| (key.clone(), option_text(value))).collect();
        let declared = declared(&wanted.columns)?;
        let format = FileFormat::new(Wanted { name: &wanted.file_type, options: &options, declared })?;
        let (medium, location) = self.location(location)?;
        let table = FileTable::new(&name.table, medium, location, format);
        // Now, so that whoever makes the table learns what is wrong with its files.
        let files = self.shared.databases.files();
        files.set_server(self.options().server);
        files.checked(&table).await?;
        files.add(&schema, table);
        if is_new {
            *self.shared.database.write() = Some(schema);
        }
        Ok(())
    }

    /// The medium and the name of a location.
    pub(super) fn location(&self, location: &str) -> Result<(Arc<dyn Medium>, String)> {
        let Some(name) = location.strip_prefix(OF_VOLUME) else {
            let path = location.strip_prefix("file://").unwrap_or(location);
            if path.is_empty() || path.contains("://") {
                let message = format!(
                    "'{location}' is no place of files: name a path, or an object of a mounted volume as volume:NAME"
                );
                return Err(Error::new(ErrorKind::InvalidInput, message));
            }
            return Ok((Arc::new(Folders), Folders::name(Path::new(path))?));
        };
        let name = name.trim_matches('/').to_owned();
        let executors = &self.shared.environment.executors;
        let volumes = self.shared.volumes.read();
        let mut media =
            volumes.iter().map(|volume| VolumeObjects::new(Arc::clone(volume), Arc::clone(executors)));
        let first = media.next();
        let all = first.iter().cloned().chain(media);
        let found = all.into_iter().find(|objects| objects.has(&name) || objects.is_folder(&name));
        match found.or(first) {
            Some(objects) => Ok((Arc::new(objects), name)),
            None => {
                let message = format!("'{location}' is of a volume, and none is mounted; use --volume DIR");
                Err(Error::new(ErrorKind::InvalidInput, message))
            }
        }
    }

    /// `DROP TABLE`
    pub(super) fn drop_tables(&self, tables: &[TableName], if_exists: bool) -> Result<()> {
        for name in tables {
            let schema =
                name.database.clone().or_else(|| self.database()).unwrap_or_else(|| FILES.to_owned());
            let files = self.shared.databases.files();
            if files.remove(&schema, &name.table) {
                continue;
            }
            let is_of_folder = files.table(&schema, &name.table)?.is_some();
            let is_of_server = self.shared.databases.database(&schema).is_some_and(|database| {
                database.tables().iter().any(|table| table.eq_ignore_ascii_case(&name.table))
            });
            if is_of_folder || is_of_server {
                let message = format!(
                    "DROP TABLE is run only for tables that CREATE EXTERNAL TABLE made: the files of '{}' are only read",
                    name.table
                );
                return Err(Error::new(ErrorKind::Unsupported, message));
            }
            if !if_exists {
                return Err(no_table(&name.table, &schema));
            }
        }
        Ok(())
    }

    /// The schema in which a table is made, and whether it is a new one.
    fn schema_for(&self, named: Option<&str>) -> Result<(String, bool)> {
        let Some(name) = named.map(str::to_owned).or_else(|| self.database()) else {
            return Ok((FILES.to_owned(), true));
        };
        if self.is_status(&name) || name.eq_ignore_ascii_case(super::INFORMATION_SCHEMA) {
            let message = format!("no table is made in '{name}'; USE a database, or write database.table");
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        match self.shared.databases.files().schema_named(&name) {
            Some(schema) => Ok((schema, false)),
            None => Ok((self.database_named(&name)?.name().to_owned(), false)),
        }
    }

    async fn exists(&self, schema: &str, table: &str) -> Result<bool> {
        if self.shared.databases.files().table(schema, table)?.is_some() {
            return Ok(true);
        }
        let Some(database) = self.shared.databases.database(schema) else { return Ok(false) };
        let mut names = database.tables();
        names.extend(database.views().await?);
        Ok(names.iter().any(|name| name.eq_ignore_ascii_case(table)))
    }

    /// The tables over files in a schema, with its name.
    pub(super) fn files_in(&self, schema: Option<&str>) -> Result<Option<(String, Vec<String>)>> {
        let files = self.shared.databases.files();
        let default = self.database();
        let Some(schema) = schema.or(default.as_deref()).and_then(|name| files.schema_named(name)) else {
            return Ok(None);
        };
        let tables = files.table_names(&schema)?;
        Ok(Some((schema, tables)))
    }

    /// The fields of a table over files.
    pub(super) async fn file_fields(&self, name: &TableName) -> Result<Option<SchemaRef>> {
        let default = self.database();
        let Some(schema) = name.database.as_deref().or(default.as_deref()) else { return Ok(None) };
        let files = self.shared.databases.files();
        files.set_server(self.options().server);
        match files.loaded(schema, &name.table).await? {
            Some(table) => Ok(Some(table.schema())),
            None if self.is_only_files(schema) => Err(no_table(&name.table, schema)),
            None => Ok(None),
        }
    }

    /// Whether a schema is no database.
    fn is_only_files(&self, schema: &str) -> bool {
        let databases = &self.shared.databases;
        databases.files().schema_named(schema).is_some() && databases.database(schema).is_none()
    }

    /// A table over files as the resolution of names sees it.
    pub(super) async fn find_files(&self, schema: Option<&str>, table: &str) -> Result<Option<NamedTable>> {
        let name = TableName { database: schema.map(str::to_owned), table: table.to_owned() };
        let Some(fields) = self.file_fields(&name).await? else { return Ok(None) };
        let database = schema.map(str::to_owned).or_else(|| self.database()).unwrap_or_default();
        let columns = fields.fields().iter();
        let columns = columns.map(|field| TableColumn { name: field.name().clone(), invisible: false });
        let spelled = self.shared.databases.files().schema_named(&database).unwrap_or(database);
        Ok(Some(NamedTable {
            database: spelled,
            name: table.to_owned(),
            columns: columns.collect(),
            ..NamedTable::default()
        }))
    }
}

fn name_of(name: &ObjectName) -> Result<TableName> {
    let parts: Vec<String> =
        name.0.iter().filter_map(|part| part.as_ident().map(|ident| ident.value.clone())).collect();
    match parts.as_slice() {
        [table] => Ok(TableName { database: None, table: table.clone() }),
        [database, table] => Ok(TableName { database: Some(database.clone()), table: table.clone() }),
        _ => Err(Error::new(ErrorKind::InvalidInput, format!("'{name}' is no table's name"))),
    }
}

fn check_clauses(wanted: &CreateExternalTable) -> Result<()> {
    let refused = [
        (!wanted.table_partition_cols.is_empty(), "PARTITIONED BY"),
        (!wanted.order_exprs.is_empty(), "WITH ORDER"),
        (wanted.temporary, "TEMPORARY"),
        (wanted.unbounded, "UNBOUNDED"),
        (!wanted.constraints.is_empty(), "a constraint"),
    ];
    if let Some((_, clause)) = refused.iter().find(|(is_there, _)| *is_there) {
        let message = format!("{clause} of CREATE EXTERNAL TABLE is not supported");
        return Err(Error::new(ErrorKind::Unsupported, message));
    }
    Ok(())
}
