//! MySQL's dictionary: which file is which tablespace, where the undo tablespaces are, and what lies outside of the
//! data directory.
//!
//! `mysql.ibd` is a general tablespace whose tables describe all others, and it describes these itself. `tablespaces`
//! has the name of every tablespace: `database/table` of one that a table has for itself, else a name without a slash.
//! `tablespace_files` has the path of every tablespace's file, relative to the data directory unless it lies elsewhere
//! (`innodb_undo_directory`, `CREATE UNDO TABLESPACE`, DATA DIRECTORY), and the tablespace's id.

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tanada_io::IoContext;

use super::clean::is_undo_file;
use super::path_map::PathMap;
use super::view::{self, DatabaseDescription, ViewDescription};
use crate::files::Files;
use crate::schema::{private_number, read_sdi_tables, table_from_sdi, table_named_by_sdi};
use crate::{
    Collation, Environment, Error, ErrorKind, IndexNo, KeyRange, Result, RowSink, SpaceId, Table,
    TableDefinition, Tablespace, Value,
};

/// The dictionary's file in the data directory.
pub(super) const DICTIONARY: &str = "mysql.ibd";
/// The database that the dictionary and the server's own tables are in.
pub(super) const SYSTEM_DATABASE: &str = "mysql";
/// Before the names of the server's own tablespaces.
const RESERVED: &str = "innodb_";
const SYSTEM_TABLESPACE: &str = "innodb_system";

/// A tablespace's file as the dictionary has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SpaceFile {
    /// The tablespace's name.
    pub(super) name: String,
    /// Where the file is now.
    pub(super) path: PathBuf,
    /// Where the server has it; relative to the data directory unless it lies elsewhere.
    pub(super) known_as: PathBuf,
}

/// The files of all tablespaces, as the dictionary spells them (without a leading `./`).
#[derive(Debug)]
pub(super) struct TablespaceFiles {
    path: PathBuf,
    ids: HashMap<String, Option<SpaceId>>,
    files: Vec<SpaceFile>,
    /// Names of the tables in the dictionary's own tablespace.
    system_tables: Vec<String>,
}

impl TablespaceFiles {
    /// Reads the dictionary at `path`.
    ///
    /// # Errors
    /// If it cannot be read or is not as known.
    pub(super) async fn read(
        path: &Path,
        map: &PathMap,
        environment: &Arc<Environment>,
        context: &IoContext,
    ) -> Result<TablespaceFiles> {
        let dictionary = Reader { path, environment, context };
        let objects = dictionary.objects().await?;
        let spaces = dictionary.rows(&objects, "tablespaces", &["id", "name", "se_private_data"]).await?;
        let spaces: HashMap<String, (String, String)> = spaces
            .into_iter()
            .filter_map(|row| <[String; 3]>::try_from(row).ok())
            .map(|[id, name, data]| (id, (name, data)))
            .collect();
        let columns = ["tablespace_id", "file_name", "se_private_data"];
        let rows = dictionary.rows(&objects, "tablespace_files", &columns).await?;
        let folder = path.parent().unwrap_or(Path::new("."));
        let mut found = TablespaceFiles {
            path: path.to_owned(),
            ids: HashMap::new(),
            files: Vec::new(),
            system_tables: Vec::new(),
        };
        for row in rows {
            let [tablespace, file, data] = <[String; 3]>::try_from(row).unwrap_or_default();
            let file = file.strip_prefix("./").unwrap_or(&file).to_owned();
            let is_elsewhere = Path::new(&file).is_absolute();
            let place = if is_elsewhere { map.place(Path::new(&file)) } else { folder.join(&file) };
            let (name, of_space) = spaces.get(&tablespace).cloned().unwrap_or_default();
            // The file of the system tablespace has no id of its own.
            let id = private_number(&data, "id").or_else(|| private_number(&of_space, "id")).map(SpaceId);
            found.ids.extend(place.to_str().map(|place| (place.to_owned(), id)));
            found.files.push(SpaceFile { name, path: place, known_as: PathBuf::from(&file) });
            found.ids.insert(file, id);
        }
        found.files.sort_by(|a, b| a.path.cmp(&b.path));
        let names = objects.iter().filter(|((database, _), _)| database == SYSTEM_DATABASE);
        found.system_tables = names.map(|((_, name), _)| name.clone()).collect();
        Ok(found)
    }

    /// The views of a database: name, text of the query, names of the columns.
    ///
    /// # Errors
    /// If the dictionary cannot be read or is not as known.
    pub(super) async fn views(
        &self,
        database: &str,
        environment: &Arc<Environment>,
        context: &IoContext,
    ) -> Result<Vec<(String, String, Vec<String>)>> {
        let dictionary = Reader { path: &self.path, environment, context };
        let objects = dictionary.objects().await?;
        let schemas = dictionary.rows(&objects, "schemata", &["id", "name"]).await?;
        let Some(id) = schemas.into_iter().find_map(|row| match <[String; 2]>::try_from(row) {
            Ok([id, name]) => (name == database).then_some(id),
            Err(_) => None,
        }) else {
            return Ok(Vec::new());
        };
        let fields = ["schema_id", "id", "name", "type", "view_definition_utf8"];
        let tables = dictionary.rows(&objects, "tables", &fields).await?;
        let views: Vec<[String; 5]> = tables
            .into_iter()
            .filter_map(|row| <[String; 5]>::try_from(row).ok())
            .filter(|[schema, _, _, kind, _]| *schema == id && kind == "VIEW")
            .collect();
        let mut columns: BTreeMap<&str, BTreeMap<u32, String>> =
            views.iter().map(|[_, id, ..]| (id.as_str(), BTreeMap::new())).collect();
        for row in dictionary.rows(&objects, "columns", &["table_id", "ordinal_position", "name"]).await? {
            let [table, position, name] = <[String; 3]>::try_from(row).unwrap_or_default();
            if let Some(columns) = columns.get_mut(table.as_str()) {
                columns.insert(position.parse().unwrap_or(u32::MAX), name);
            }
        }
        let named = views.iter().map(|[_, id, name, _, query]| {
            let columns = columns.remove(id.as_str()).unwrap_or_default();
            (name.clone(), query.clone(), columns.into_values().collect())
        });
        let mut named: Vec<_> = named.collect();
        named.sort_unstable();
        Ok(named)
    }

    /// The views of a database as they were created, by name.
    ///
    /// # Errors
    /// If the dictionary cannot be read or is not as known.
    pub(super) async fn described_views(
        &self,
        database: &str,
        environment: &Arc<Environment>,
        context: &IoContext,
    ) -> Result<Vec<(String, ViewDescription)>> {
        let dictionary = Reader { path: &self.path, environment, context };
        let objects = dictionary.objects().await?;
        let schemas = dictionary.rows(&objects, "schemata", &["id", "name"]).await?;
        let id = schemas.into_iter().find(|row| row.get(1).is_some_and(|name| name == database));
        let Some([id, _]) = id.and_then(|row| <[String; 2]>::try_from(row).ok()) else {
            return Ok(Vec::new());
        };
        let rows = dictionary.rows(&objects, "tables", &view::FIELDS).await?;
        let is_own =
            |row: &&Vec<String>| row.first() == Some(&id) && row.get(2).is_some_and(|of| of == "VIEW");
        let name = |row: &Vec<String>| row.get(1).cloned().unwrap_or_default();
        let mut views: Vec<_> =
            rows.iter().filter(is_own).map(|row| (name(row), view::of_row(row))).collect();
        views.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(views)
    }

    /// The defaults of a database.
    ///
    /// # Errors
    /// If the dictionary cannot be read or is not as known.
    pub(super) async fn described_database(
        &self,
        database: &str,
        environment: &Arc<Environment>,
        context: &IoContext,
    ) -> Result<DatabaseDescription> {
        let dictionary = Reader { path: &self.path, environment, context };
        let objects = dictionary.objects().await?;
        let fields = ["name", "default_collation_id", "default_encryption"];
        let schemas = dictionary.rows(&objects, "schemata", &fields).await?;
        let rows = schemas.into_iter().filter_map(|row| <[String; 3]>::try_from(row).ok());
        let mut described = DatabaseDescription::default();
        for [_, collation, encryption] in rows.filter(|[name, ..]| name == database) {
            described.collation = collation.parse().ok().and_then(Collation::with_id);
            described.is_encrypted = Some(encryption == "YES");
        }
        Ok(described)
    }

    /// The dictionary's file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The data directory.
    pub(super) fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("."))
    }

    /// The undo tablespaces, relative paths taken from where the dictionary lies.
    pub(super) fn undo_files(&self) -> Vec<PathBuf> {
        let paths = self.files.iter().map(|file| &file.path);
        paths.filter(|path| is_undo_file(path)).cloned().collect()
    }

    /// The files of single tables that are not in a database's folder of the data directory, or should be there and
    /// are not. Databases whose folders are not there are left out: the copy was made without them.
    pub(super) fn files_not_at_home(&self, disk: &dyn Files) -> impl Iterator<Item = &SpaceFile> {
        let is_at_home = |path: &Path| path.parent().and_then(Path::parent) == Some(self.folder());
        let of_tables = self.files.iter().filter(|file| file.name.contains('/'));
        let has_folder = |path: &Path| path.parent().is_some_and(|folder| disk.exists(folder));
        of_tables
            .filter(move |file| !is_at_home(&file.path) || !disk.exists(&file.path) && has_folder(&file.path))
    }

    /// The folder of DATA DIRECTORY of the table in the tablespace `name`, as the server has it.
    pub(super) fn data_directory(&self, name: &str) -> Option<&Path> {
        let file = self.files.iter().find(|file| file.name == name)?;
        file.known_as.parent()?.parent().filter(|folder| folder.is_absolute())
    }

    /// The general tablespaces, and the system tablespace, which may hold tables too.
    pub(super) fn shared_files(&self) -> impl Iterator<Item = &SpaceFile> {
        let is_of_server = |name: &str| name.starts_with(RESERVED) && name != SYSTEM_TABLESPACE;
        self.files.iter().filter(move |file| {
            !file.name.is_empty()
                && !file.name.contains('/')
                && file.name != SYSTEM_DATABASE
                && !is_of_server(&file.name)
        })
    }

    /// The file of the tablespace `id`, if tables may share that.
    pub(super) fn shared_file(&self, id: SpaceId) -> Option<&Path> {
        let mut files = self.shared_files().map(|file| file.path.as_path());
        files.find(|path| path.to_str().and_then(|path| self.id_of(path)) == Some(id))
    }

    /// Names of the server's own tables.
    pub(super) fn system_tables(&self) -> &[String] {
        &self.system_tables
    }

    /// The definition of one of the server's own tables.
    ///
    /// # Errors
    /// `NotFound` if there is none of that name, else what is wrong with the dictionary.
    pub(super) async fn system_table(
        &self,
        name: &str,
        environment: &Arc<Environment>,
        context: &IoContext,
    ) -> Result<TableDefinition> {
        let reader = Reader { path: &self.path, environment, context };
        reader.definition(&reader.objects().await?, name)
    }

    /// The tables in the tablespace `space`, with their databases. Reads the dictionary anew.
    ///
    /// # Errors
    /// If it cannot be read or is not as known.
    pub(super) async fn tables_in(
        &self,
        space: &str,
        environment: &Arc<Environment>,
        context: &IoContext,
    ) -> Result<Vec<(String, String)>> {
        let reader = Reader { path: &self.path, environment, context };
        let objects = reader.objects().await?;
        let spaces = reader.rows(&objects, "tablespaces", &["id", "name"]).await?;
        let Some(id) = spaces.into_iter().find(|row| row[1] == space).map(|row| row[0].clone()) else {
            return Ok(Vec::new());
        };
        let schemata = reader.rows(&objects, "schemata", &["id", "name"]).await?;
        let tables = reader.rows(&objects, "tables", &["schema_id", "name", "tablespace_id"]).await?;
        let of_space = tables.into_iter().filter(|row| row[2] == id);
        let named = of_space.filter_map(|row| {
            let database = schemata.iter().find(|schema| schema[0] == row[0])?;
            Some((database[1].clone(), row[1].clone()))
        });
        Ok(named.collect())
    }

    /// The id of the tablespace in `file`, a path relative to the data directory or an absolute one; in any case of
    /// letters, since a server with `lower_case_table_names` writes what the file system may spell otherwise.
    pub(super) fn id_of(&self, file: &str) -> Option<SpaceId> {
        let in_any_case = || {
            let lower = file.to_lowercase();
            self.ids.iter().find(|(name, _)| name.to_lowercase() == lower).map(|(_, id)| id)
        };
        self.ids.get(file).or_else(in_any_case).copied().flatten()
    }
}

/// Dictionary objects by database and table.
type Objects = BTreeMap<(String, String), Vec<u8>>;

/// Reads tables of the dictionary.
struct Reader<'a> {
    path: &'a Path,
    environment: &'a Arc<Environment>,
    context: &'a IoContext,
}

impl Reader<'_> {
    async fn objects(&self) -> Result<Objects> {
        let space = Tablespace::open(self.path, self.environment).await?;
        let objects = read_sdi_tables(&space, self.context).await?;
        Ok(objects.into_iter().filter_map(|json| Some((table_named_by_sdi(&json)?, json))).collect())
    }

    fn definition(&self, objects: &Objects, table: &str) -> Result<TableDefinition> {
        let json = objects.get(&(SYSTEM_DATABASE.to_owned(), table.to_owned()));
        let definition = json.map(|json| table_from_sdi(json)).transpose()?.flatten();
        let mut definition = definition.ok_or_else(|| {
            let what = format!("{}: the dictionary does not describe its table {table}", self.path.display());
            Error::new(ErrorKind::NotFound, what)
        })?;
        for partition in &mut definition.partitions {
            self.path.clone_into(&mut partition.path);
        }
        Ok(definition)
    }

    /// All rows of `table`, of columns of text and numbers; NULL is the empty text, times are in microseconds.
    async fn rows(&self, objects: &Objects, table: &str, columns: &[&str]) -> Result<Vec<Vec<String>>> {
        let definition = self.definition(objects, table)?;
        let numbers: Option<Vec<_>> = columns.iter().map(|name| definition.column(name)).collect();
        let numbers = numbers.ok_or_else(|| {
            let what = format!("{}: the dictionary's table {table} is not as known", self.path.display());
            Error::new(ErrorKind::Unsupported, what)
        })?;
        let table = Table::open(definition, self.environment).await?;
        let access = table.access(IndexNo(0), &numbers)?;
        let (range, mut rows) = (KeyRange::all(), Vec::new());
        for run in table.leaves(IndexNo(0), &range, self.context).await? {
            let mut on_row = |row: &crate::Row<'_>| {
                let mut texts = Texts(Vec::with_capacity(numbers.len()));
                row.decode(&mut texts)?;
                rows.push(texts.0);
                Ok(ControlFlow::Continue(()))
            };
            table.scan(&access, &run, &range, self.context, &mut on_row).await?;
        }
        Ok(rows)
    }
}

/// The values of a row as text.
struct Texts(Vec<String>);

impl RowSink for Texts {
    fn push(&mut self, _: usize, value: Value<'_>) -> Result<()> {
        self.0.push(match value {
            Value::Text(text) => text.into_owned(),
            Value::Int(number) => number.to_string(),
            Value::UInt(number) => number.to_string(),
            Value::DateTime(micros) => micros.to_string(),
            _ => String::new(),
        });
        Ok(())
    }
}
