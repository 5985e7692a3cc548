//! Mounting: a data directory, a database folder or single files; what is in them; whether the server left them clean.
//!
//! [`Catalog::open`] looks at file names only (`listing`), so that a directory of thousands of tables mounts at once
//! and a damaged table harms no other. A table's definition is read (`definition`) and its files are opened when it is
//! first asked for.

mod belonging;
mod beside;
mod clean;
mod definition;
mod description;
mod dictionary;
mod elsewhere;
mod file_name;
mod file_name_letters;
mod listing;
mod mysql_dictionary;
mod old_forms;
mod path_map;
mod sys_tables;
mod view;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use tanada_io::{Gate, GateLimits, IoContext};

use crate::schema::{SdiTableSpaces, Server, read_sdi_tables, table_and_spaces};
use crate::space::{LogEnd, ServerFiles};
use crate::{Environment, Error, ErrorKind, Result, SpaceId, Table, TableDefinition, Tablespace};
pub use beside::Beside;
use clean::{CleanState, verify_clean, verify_log};
use definition::Sources;
use dictionary::Dictionary;
use elsewhere::Shared;
use listing::{Listing, SYSTEM_DATABASES, TableFile, TableFiles, Tables};
use mysql_dictionary::SYSTEM_DATABASE;
use path_map::PathMap;
pub use view::{DatabaseDescription, ViewDescription};

/// How to mount.
#[derive(Debug, Clone, Default)]
pub struct MountOptions {
    /// Read files although the server was not shut down cleanly (rows may be missing, doubled or uncommitted).
    pub allow_stale: bool,
    /// Extra files with `CREATE TABLE` statements for tables without SDI or `.frm`, where the tables are (see
    /// [`files`](crate::files)).
    pub ddl: Vec<PathBuf>,
    /// Where files outside of the data directory are now: pairs of a folder or a file as the server knows it, and its
    /// place.
    pub path_map: Vec<(PathBuf, PathBuf)>,
}

/// The databases and tables of one mount.
#[derive(Debug)]
pub struct Catalog {
    environment: Arc<Environment>,
    context: IoContext,
    databases: BTreeMap<String, BTreeMap<String, Entry>>,
    dictionary: Option<Dictionary>,
    is_single_file: bool,
    ddl: Vec<PathBuf>,
    /// Tables that were asked for. The inner lock is held while a table opens, so that it opens once.
    open: Mutex<HashMap<(String, String), Arc<OpenTable>>>,
    warnings: Vec<String>,
    /// Where the files of each database lie.
    folders: BTreeMap<String, PathBuf>,
}

type OpenTable = futures::lock::Mutex<Option<Arc<Table>>>;

/// A table that is listed.
#[derive(Debug)]
enum Entry {
    /// It has files of its own.
    Files(TableFiles),
    /// It lies in a tablespace with others, whose dictionary information had to be read to list it.
    Defined(Box<TableDefinition>),
    /// It lies in a tablespace whose file is missing or cannot be read, as this says.
    Lost(ErrorKind, String),
}

impl Catalog {
    /// Lists what lies at `path`: a data directory, a database folder, or one `.ibd` file. Verifies the clean shutdown
    /// unless stale data is allowed. Opens no table yet. Runs on an executor's thread.
    ///
    /// # Errors
    /// `NotFound` if there are no InnoDB tables at `path`, `NotClean` if the server was not shut down cleanly.
    pub async fn open(
        path: &Path,
        options: &MountOptions,
        environment: &Arc<Environment>,
    ) -> Result<Catalog> {
        let mut warnings = Vec::new();
        let context = IoContext::new(Gate::new(GateLimits::default()));
        let map = PathMap::new(&options.path_map);
        let mut listing = listing::list(&*environment.files, path, &map, &mut warnings).await?;
        let folder = listing.folder(path);
        // Before anything of them is read.
        let data_directory = clean::data_directory(&*environment.files, folder).ok().flatten();
        let server_files = data_directory
            .map_or_else(ServerFiles::default, |folder| ServerFiles::now(&*environment.files, &folder));
        let log = accept(verify_log(&*environment.files, folder).await, options, &mut warnings)?;
        if log.is_none() {
            server_files.accept_stale();
        }
        let log_end = log.as_ref().and_then(|log| log.end.as_ref());
        let log_end = log_end.map(|end| LogEnd {
            lsn: end.lsn,
            accept_stale: options.allow_stale,
            pages: end.pages.clone(),
        });
        let environment = &Arc::new(environment.with_log_end(log_end, server_files));
        let dictionary = Dictionary::find(folder, &map, environment, &context, &mut warnings).await?;
        let shared = shared_spaces(&mut listing, path, dictionary.as_ref(), environment);
        let undo = dictionary.as_ref().and_then(Dictionary::undo_files);
        if let Some(log) = log {
            let only = listing.only();
            let state = verify_clean(&*environment.files, &log, only.as_deref(), undo.as_deref()).await;
            match accept(state, options, &mut warnings)? {
                Some(CleanState::Unverified(warning)) => warnings.push(warning),
                Some(CleanState::Verified) => {}
                None => environment.server_files.accept_stale(),
            }
        }
        let mut catalog = Catalog {
            environment: environment.clone(),
            context,
            databases: BTreeMap::new(),
            dictionary,
            is_single_file: matches!(listing, Listing::File { .. }),
            ddl: options.ddl.clone(),
            open: Mutex::default(),
            warnings,
            folders: BTreeMap::new(),
        };
        catalog.add(listing, shared, path).await;
        if catalog.listed() == 0 {
            return Err(listing::no_tables(path));
        }
        let files = &*environment.files;
        let warnings =
            definition::check_ddl(files, &options.ddl, |database, table| catalog.is_listed(database, table));
        let warnings = warnings.await?;
        catalog.warnings.extend(warnings);
        Ok(catalog)
    }

    /// Adds what was found at `path`, and the tables in the `shared` tablespaces.
    async fn add(&mut self, listing: Listing, shared: Shared, path: &Path) {
        match listing {
            Listing::DataDirectory { databases, .. } => {
                for (name, tables) in databases {
                    self.add_files(name, tables);
                }
            }
            Listing::Database { name, tables } if !tables.is_empty() => self.add_files(name, tables),
            Listing::Database { .. } => {}
            Listing::File { database, tables } => {
                // A general tablespace holds several tables; what cannot be told now is said when the table is opened.
                let general = self.add_general(path, None).await.is_ok() && self.listed() > 1;
                if !general {
                    self.databases.clear();
                    self.add_files(database, tables);
                }
            }
        }
        for space in &shared.files {
            if let Err(error) = self.add_general(space, shared.only.as_deref()).await {
                self.add_lost(space, &error, shared.only.as_deref()).await;
                self.warnings.push(format!("tablespace {} is left out: {error}", space.display()));
            }
        }
        for space in &shared.missing {
            if let Err(error) = self.add_missing(space, shared.only.as_deref()).await {
                self.warnings.push(format!("it is not known which tables are in {}: {error}", space.name));
            }
        }
    }

    fn add_files(&mut self, database: String, tables: Tables) {
        if let Some(files) = tables.values().next() {
            self.folders.insert(database.clone(), files.folder.clone());
        }
        let files = &*self.environment.files;
        let unknown =
            self.dictionary.as_ref().and_then(|dictionary| dictionary.unknown(files, &database, &tables));
        self.warnings.extend(unknown);
        let entries = tables.into_iter().map(|(name, files)| (name, Entry::Files(files)));
        self.databases.entry(database).or_default().extend(entries);
    }

    /// Whether a statement that names `table`, and maybe its database, may mean a table that is mounted.
    fn is_listed(&self, database: Option<&str>, table: &str) -> bool {
        let alike = |a: &str, b: &str| a.to_lowercase() == b.to_lowercase();
        let mut databases =
            self.databases.iter().filter(|(name, _)| database.is_none_or(|database| alike(name, database)));
        databases.any(|(_, tables)| tables.keys().any(|name| alike(name, table)))
    }

    /// Tables listed so far.
    fn listed(&self) -> usize {
        self.databases.values().map(BTreeMap::len).sum()
    }

    /// Lists the tables of a general tablespace, of all databases or `only` one.
    async fn add_general(&mut self, path: &Path, only: Option<&str>) -> Result<()> {
        let space = Tablespace::open(path, &self.environment).await?;
        let known = self.dictionary.as_ref().and_then(|dictionary| dictionary.general_space_of(path));
        if let Some(known) = known.filter(|known| *known != space.id() && !self.is_single_file) {
            let what = format!(
                "it is tablespace {}, but the server's dictionary has tablespace {known} here; restore the right file",
                space.id()
            );
            return Err(Error::new(ErrorKind::Corrupt, what));
        }
        for json in read_sdi_tables(&space, &self.context).await? {
            let Some((definition, spaces)) = table_and_spaces(&json)? else { continue };
            if is_wanted(&definition.database, only) {
                self.add_shared(path, space.id(), definition, &spaces);
            }
        }
        Ok(())
    }

    /// Lists a table of the tablespace `space`, which is the file at `path`. `spaces` are those of its partitions.
    fn add_shared(
        &mut self,
        path: &Path,
        space: SpaceId,
        mut definition: TableDefinition,
        spaces: &SdiTableSpaces,
    ) {
        let tables = self.databases.entry(definition.database.clone()).or_default();
        let named = |no: usize| spaces.get(no).copied().flatten();
        // Partitions may have files of their own beside those that have none.
        if let Some(Entry::Files(files)) = tables.get_mut(&definition.name) {
            for (no, partition) in definition.partitions.into_iter().enumerate() {
                let is_shared = named(no) == Some(space) && !partition.name.is_empty();
                let partition = Some(partition.name);
                if is_shared && files.spaces.iter().all(|own| own.partition != partition) {
                    files.spaces.push(TableFile { partition, path: path.to_owned() });
                }
            }
            files.spaces.sort_by(|a, b| a.partition.cmp(&b.partition));
            return;
        }
        let elsewhere = definition.partitions.iter().enumerate().find_map(|(no, partition)| {
            let id = named(no).filter(|id| *id != space && !partition.name.is_empty())?;
            Some(format!(
                "its partition {} is tablespace {id}, whose file is not there; restore it",
                partition.name
            ))
        });
        let name = definition.name.clone();
        let entry = match elsewhere {
            Some(what) => Entry::Lost(ErrorKind::NotFound, what),
            None => {
                for partition in &mut definition.partitions {
                    path.clone_into(&mut partition.path);
                }
                Entry::Defined(Box::new(definition))
            }
        };
        tables.entry(name).or_insert(entry);
    }

    /// Lists the tables of a shared tablespace whose file is not there, so that each can say so.
    async fn add_missing(&mut self, space: &mysql_dictionary::SpaceFile, only: Option<&str>) -> Result<()> {
        let Some(dictionary) = self.dictionary.as_ref().and_then(Dictionary::of_mysql) else { return Ok(()) };
        let tables = dictionary.tables_in(&space.name, &self.environment, &self.context).await?;
        let missing = format!(
            "tablespace {} is not there: {}; restore it, or say with --path-map OLD=NEW where it is",
            space.name,
            space.path.display()
        );
        let has_tables = self.list_lost(tables, only, ErrorKind::NotFound, &missing);
        self.warnings.extend(has_tables.then_some(missing));
        Ok(())
    }

    /// Lists the tables of a shared tablespace that cannot be read, as the server's dictionary knows them.
    async fn add_lost(&mut self, path: &Path, error: &Error, only: Option<&str>) {
        let Some(dictionary) = self.dictionary.as_ref().and_then(Dictionary::of_mysql) else { return };
        let real = self.environment.files.real_path(path).unwrap_or_else(|_| path.to_owned());
        let Some(space) = dictionary.shared_files().find(|space| space.path == real) else { return };
        // What is wrong with the dictionary is told of the tables that are asked for in it.
        let tables = dictionary.tables_in(&space.name, &self.environment, &self.context).await;
        self.list_lost(tables.unwrap_or_default(), only, error.kind(), &error.to_string());
    }

    /// Lists `tables`, of all databases or `only` one, as those that cannot be read; whether there are any.
    fn list_lost(
        &mut self,
        tables: Vec<(String, String)>,
        only: Option<&str>,
        kind: ErrorKind,
        what: &str,
    ) -> bool {
        let mut has_tables = false;
        for (database, table) in tables.into_iter().filter(|(database, _)| is_wanted(database, only)) {
            has_tables = true;
            let tables = self.databases.entry(database).or_default();
            tables.entry(table).or_insert_with(|| Entry::Lost(kind, what.to_owned()));
        }
        has_tables
    }

    /// The database of the server's own tables, which is not listed, but whose tables can be asked for by name; and
    /// their names.
    pub fn system_tables(&self) -> Option<(&str, &[String])> {
        let dictionary = self.dictionary.as_ref().and_then(Dictionary::of_mysql)?;
        (!self.is_single_file).then_some((SYSTEM_DATABASE, dictionary.system_tables()))
    }

    /// The server that wrote what is mounted: by its dictionary, else by the first table that can be read. Runs on an
    /// executor's thread.
    pub async fn server(&self) -> Option<Server> {
        match &self.dictionary {
            Some(Dictionary::MySql(_)) => return Some(Server::MySql),
            Some(Dictionary::MariaDb(_)) => return Some(Server::MariaDb),
            None => {}
        }
        for (database, tables) in &self.databases {
            for table in tables.keys() {
                if let Ok(definition) = self.definition(database, table).await {
                    return Some(definition.server);
                }
            }
        }
        None
    }

    /// Names of the databases (decoded from the file system's spelling), sorted.
    pub fn databases(&self) -> Vec<String> {
        self.databases.keys().cloned().collect()
    }

    /// Names of the tables of `database` (partitions folded into one, SYS and temporary tables left out), sorted.
    pub fn tables(&self, database: &str) -> Vec<String> {
        self.databases.get(database).map(|tables| tables.keys().cloned().collect()).unwrap_or_default()
    }

    /// Opens a table, or hands out the one that is open. Runs on an executor's thread.
    ///
    /// # Errors
    /// `NotFound` if it is not listed, its tablespace is missing or nothing defines it; else what is wrong with its
    /// files. The next call tries again.
    pub async fn table(&self, database: &str, table: &str) -> Result<Arc<Table>> {
        if !self.is_system_table(database, table) {
            self.entry(database, table)?;
        }
        let key = (database.to_owned(), table.to_owned());
        let slot = self.open.lock().entry(key).or_default().clone();
        let mut open = slot.lock().await;
        if let Some(table) = &*open {
            return Ok(table.clone());
        }
        let (definition, warnings) = self.definition_with_warnings(database, table).await?;
        let opened = Table::open_with(definition, &self.environment, warnings).await?;
        *open = Some(opened.clone());
        Ok(opened)
    }

    /// The definition of a table, read anew. Index roots may still be unknown. Runs on an executor's thread.
    ///
    /// # Errors
    /// As [`table`](Self::table).
    pub async fn definition(&self, database: &str, table: &str) -> Result<TableDefinition> {
        self.definition_with_warnings(database, table).await.map(|(definition, _)| definition)
    }

    async fn definition_with_warnings(
        &self,
        database: &str,
        table: &str,
    ) -> Result<(TableDefinition, Vec<String>)> {
        if self.is_system_table(database, table)
            && let Some(dictionary) = self.dictionary.as_ref().and_then(Dictionary::of_mysql)
        {
            let definition = dictionary.system_table(table, &self.environment, &self.context).await?;
            return Ok((definition, Vec::new()));
        }
        let files = match self.entry(database, table)? {
            Entry::Files(files) => files,
            Entry::Defined(definition) => return Ok((TableDefinition::clone(definition), Vec::new())),
            Entry::Lost(kind, what) => {
                let message = format!("table {database}.{table} cannot be read: {what}");
                return Err(Error::new(*kind, message));
            }
        };
        self.sources().definition(database, table, files).await
    }

    /// Where definitions of its tables are looked for.
    fn sources(&self) -> Sources<'_> {
        Sources {
            environment: &self.environment,
            context: &self.context,
            dictionary: self.dictionary.as_ref(),
            is_single_file: self.is_single_file,
            ddl: &self.ddl,
        }
    }

    fn is_system_table(&self, database: &str, table: &str) -> bool {
        self.system_tables().is_some_and(|(own, tables)| {
            own == database && !self.databases.contains_key(own) && tables.iter().any(|name| name == table)
        })
    }

    fn entry(&self, database: &str, table: &str) -> Result<&Entry> {
        let entry = self.databases.get(database).and_then(|tables| tables.get(table));
        entry.ok_or_else(|| Error::new(ErrorKind::NotFound, format!("there is no table {database}.{table}")))
    }

    /// Warnings gathered while mounting (stale data accepted, a file that is no tablespace, ...).
    pub fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }
}

/// Whether tables of `database` in a shared tablespace are listed: of all databases but the server's own, or of `only`
/// one.
fn is_wanted(database: &str, only: Option<&str>) -> bool {
    !SYSTEM_DATABASES.contains(&database) && only.is_none_or(|only| only == database)
}

/// The tablespaces that tables share; completes the `listing` of what is at `path` by files that are elsewhere.
fn shared_spaces(
    listing: &mut Listing,
    path: &Path,
    dictionary: Option<&Dictionary>,
    environment: &Arc<Environment>,
) -> Shared {
    match (dictionary.and_then(Dictionary::of_mysql), listing) {
        (Some(dictionary), listing) => elsewhere::complete(listing, path, &*environment.files, dictionary),
        (None, Listing::DataDirectory { general, .. }) => {
            Shared { files: std::mem::take(general), ..Shared::default() }
        }
        (None, _) => Shared::default(),
    }
}

/// Refuses files that the server did not leave clean, or takes the user at their word: then `None`, with a warning.
fn accept<T>(state: Result<T>, options: &MountOptions, warnings: &mut Vec<String>) -> Result<Option<T>> {
    match state {
        Ok(state) => Ok(Some(state)),
        Err(error) if options.allow_stale => {
            warnings
                .push(format!("stale data accepted, rows may be missing, doubled or uncommitted: {error}"));
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
