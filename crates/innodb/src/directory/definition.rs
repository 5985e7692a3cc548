//! Where a table's definition comes from: SDI in its files, else the `.frm` beside them, else `CREATE TABLE` text. That
//! also takes the place of SDI that is damaged.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tanada_io::IoContext;

use super::belonging::Belonging;
use super::dictionary::Dictionary;
use super::listing::{TableFile, TableFiles, unreadable};
use super::old_forms::{self, Undecided};
use crate::files::{FileKind, Files};
use crate::schema::{
    self, SdiTableSpaces, object_of, partition_names, read_sdi_tables, table_and_spaces, table_from_frm,
};
use crate::{Environment, Error, ErrorKind, Partition, Result, Server, TableDefinition, Tablespace};

/// Definitions are kilobytes; what is longer is something else.
const LONGEST_FILE: u64 = 16 << 20;

/// What definitions are made of beside the table's own files.
pub(super) struct Sources<'a> {
    pub(super) environment: &'a Arc<Environment>,
    pub(super) context: &'a IoContext,
    /// The server's dictionary, if the mount has it.
    pub(super) dictionary: Option<&'a Dictionary>,
    /// Whether a single file is mounted, which is read whatever the dictionary says.
    pub(super) is_single_file: bool,
    /// Files with `CREATE TABLE` statements.
    pub(super) ddl: &'a [PathBuf],
}

/// A table in the dictionary information of a file.
struct SdiTable {
    path: PathBuf,
    definition: TableDefinition,
    spaces: SdiTableSpaces,
}

impl Sources<'_> {
    /// The definition of `database.table`, with its partitions' files, and what is odd about these.
    pub(super) async fn definition(
        &self,
        database: &str,
        table: &str,
        files: &TableFiles,
    ) -> Result<(TableDefinition, Vec<String>)> {
        let shared = self.in_system_tablespace(files);
        let files = shared.as_ref().unwrap_or(files);
        let Some(first) = files.spaces.first() else {
            let message = format!(
                "table {database}.{table} has a definition, but no .ibd file; if it lies in the system tablespace, mount the folder of its \
                 database in the data directory, beside ibdata1"
            );
            return Err(Error::new(ErrorKind::NotFound, message));
        };
        self.check_presence(database, table, files)?;
        let mut belonging = Belonging { sources: self, files, warnings: Vec::new() };
        let (sdi, server, lost) = match self.read_sdi(database, table, files).await {
            Ok((sdi, server)) => (sdi, server, None),
            // A statement may say what the file does not any more.
            Err(error) if matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Unsupported) => {
                (None, Tablespace::open(&first.path, self.environment).await?.server(), Some(error))
            }
            Err(error) => return Err(error),
        };
        let mut undecided = Undecided::default();
        let (mut definition, named_spaces) = match sdi {
            Some(sdi) => {
                belonging.check_sdi_name(&sdi.path, database, table, &sdi.definition)?;
                (sdi.definition, sdi.spaces)
            }
            None => {
                let text = self.read_text(database, table, files, server).await?;
                let (definition, of_text) =
                    text.ok_or_else(|| undefined(database, table, first, lost.as_ref()))?;
                // A file with dictionary information has the forms of MySQL 8.
                undecided = if lost.is_some() { Undecided::default() } else { of_text };
                let instead = |error| format!("{error}; its CREATE TABLE statement is read instead");
                belonging.warnings.extend(lost.map(instead));
                (definition, Vec::new())
            }
        };
        database.clone_into(&mut definition.database);
        table.clone_into(&mut definition.name);
        let files = &self.with_shared_partitions(files, &definition, &named_spaces);
        let lacks_list = settle_partitions(&*self.environment.files, &mut definition, files, first).await?;
        belonging.warnings.extend(lacks_list);
        let all_known = belonging.check_spaces(&definition).await?;
        belonging.check_partitions(&definition, &named_spaces).await?;
        if let Some(system) = self.dictionary.and_then(Dictionary::of_mariadb) {
            belonging.place_roots(&mut definition, system, all_known).await?;
        }
        let definition = old_forms::settle(definition, &undecided, self.environment, self.context).await?;
        Ok((definition, belonging.warnings))
    }

    /// Whether all files are there that something names.
    fn check_presence(&self, database: &str, table: &str, files: &TableFiles) -> Result<()> {
        let disk = &*self.environment.files;
        let Some(missing) = files.spaces.iter().find(|file| !disk.exists(&file.path)) else { return Ok(()) };
        let of = missing.partition.as_ref().map(|name| format!("partition {name} of ")).unwrap_or_default();
        let place = missing.path.display();
        let folder = missing.path.parent();
        let is_at_home = folder == Some(&files.folder)
            || disk.real_path(&files.folder).is_ok_and(|real| folder == Some(&real));
        let message = match is_at_home {
            true => format!(
                "{of}table {database}.{table} is in the server's dictionary, but its file is missing: {place}: it was removed, or the \
                 table is discarded (ALTER TABLE ... DISCARD TABLESPACE); restore it"
            ),
            false => format!(
                "{of}table {database}.{table} has its file outside of the data directory, where it is not: {place}; restore it, or say \
                 with --path-map OLD=NEW where it is"
            ),
        };
        Err(Error::new(ErrorKind::NotFound, message))
    }

    /// The files of a table of MariaDB that has no file of its own, or has partitions that have none, but lies in the
    /// system tablespace.
    fn in_system_tablespace(&self, files: &TableFiles) -> Option<TableFiles> {
        let may_share = files.spaces.iter().all(|file| file.partition.is_some());
        let system = self.dictionary.and_then(Dictionary::of_mariadb).filter(|_| may_share)?;
        let disk = &*self.environment.files;
        if files.spaces.is_empty()
            && let Some(path) = system.shared_file(disk, &files.folder, &files.stem)
        {
            let path = path.to_owned();
            return Some(TableFiles { spaces: vec![TableFile { partition: None, path }], ..files.clone() });
        }
        let partitions = system.shared_partitions(disk, &files.folder, &files.stem).into_iter();
        let shared = partitions
            .map(|(name, _)| TableFile { partition: Some(name), path: system.path().to_owned() })
            .filter(|shared| files.spaces.iter().all(|own| own.partition != shared.partition));
        let mut all = files.clone();
        all.spaces.extend(shared);
        (all.spaces.len() > files.spaces.len()).then_some(all)
    }

    /// The files of a table of MySQL with those of its partitions that have none of their own: its dictionary
    /// information says in which tablespace each is.
    fn with_shared_partitions(
        &self,
        files: &TableFiles,
        definition: &TableDefinition,
        spaces: &SdiTableSpaces,
    ) -> TableFiles {
        let mut all = files.clone();
        let Some(dictionary) = self.dictionary.and_then(Dictionary::of_mysql) else { return all };
        for (partition, space) in definition.partitions.iter().zip(spaces) {
            let alike = |own: &TableFile| {
                own.partition.as_ref().is_some_and(|own| own.to_lowercase() == partition.name.to_lowercase())
            };
            if !partition.name.is_empty()
                && !all.spaces.iter().any(alike)
                && let Some(path) = space.and_then(|space| dictionary.shared_file(space))
            {
                let path = path.to_owned();
                all.spaces.push(TableFile { partition: Some(partition.name.clone()), path });
            }
        }
        all
    }

    /// The first file that has the table among its dictionary objects; of a partitioned table only one has.
    async fn read_sdi(
        &self,
        database: &str,
        table: &str,
        files: &TableFiles,
    ) -> Result<(Option<SdiTable>, Server)> {
        let mut server = Server::MariaDb;
        for file in &files.spaces {
            let space = Tablespace::open(&file.path, self.environment).await?;
            server = space.server();
            let objects = read_sdi_tables(&space, self.context).await?;
            let own = object_of(&objects, database, table);
            if let Some((definition, spaces)) = own.map(|json| table_and_spaces(json)).transpose()?.flatten()
            {
                return Ok((Some(SdiTable { path: file.path.clone(), definition, spaces }), server));
            }
            if space.sdi_root().is_none() {
                break;
            }
        }
        Ok((None, server))
    }

    /// What the `.frm` or a statement says, if there is either.
    async fn read_text(
        &self,
        database: &str,
        table: &str,
        files: &TableFiles,
        server: Server,
    ) -> Result<Option<(TableDefinition, Undecided)>> {
        let disk = &*self.environment.files;
        if let Some(frm) = &files.frm {
            let bytes = read_file(disk, frm).await?;
            let definition = table_from_frm(&bytes, database, table);
            return definition
                .map(|definition| Some((definition, Undecided::default())))
                .map_err(|error| error.within(frm.display()));
        }
        let beside = files.folder.join(format!("{}.create.sql", files.stem));
        let beside = disk.exists(&beside).then_some(beside);
        for path in self.ddl.iter().chain(&beside) {
            let text = read_file(disk, path).await?;
            let text = String::from_utf8_lossy(&text);
            let parsed = |server| {
                schema::table_from_ddl(&text, database, table, server)
                    .map_err(|error| error.within(path.display()))
            };
            if let Some(definition) = parsed(server)? {
                let as_mysql = parsed(Server::MySql)?;
                let as_mysql = as_mysql.as_ref().unwrap_or(&definition);
                let undecided = Undecided::new(&definition, as_mysql, schema::names_temporal_forms(&text)?);
                return Ok(Some((definition, undecided)));
            }
        }
        Ok(None)
    }
}

/// Nothing defines a table; `lost` is why its dictionary information does not.
fn undefined(database: &str, table: &str, first: &TableFile, lost: Option<&Error>) -> Error {
    let ddl = "give its CREATE TABLE statement (the output of SHOW CREATE TABLE) in a file with --ddl FILE";
    match lost {
        Some(error) => Error::new(error.kind(), format!("{error}; if it cannot be restored, {ddl}")),
        None => {
            let message = format!(
                "{}: table {database}.{table} has neither dictionary information (SDI) nor a .frm file; {ddl}",
                first.path.display()
            );
            Error::new(ErrorKind::NotFound, message)
        }
    }
}

/// Checks that the files with statements can be read; gives a warning for each that creates no table of those that
/// `is_listed` knows.
///
/// # Errors
/// If one does not exist, cannot be read or is no text of statements.
pub(super) async fn check_ddl(
    disk: &dyn Files,
    ddl: &[PathBuf],
    is_listed: impl Fn(Option<&str>, &str) -> bool,
) -> Result<Vec<String>> {
    let mut warnings = Vec::new();
    for path in ddl {
        let text = read_file(disk, path).await?;
        let named = schema::tables_named(&String::from_utf8_lossy(&text))
            .map_err(|error| error.within(path.display()))?;
        if !named.iter().any(|(database, table)| is_listed(database.as_deref(), table)) {
            let what = if named.is_empty() {
                "has no CREATE TABLE statement"
            } else {
                "creates no table that is mounted"
            };
            warnings.push(format!("{} {what}, so it is not used", path.display()));
        }
    }
    Ok(warnings)
}

/// A whole file of definitions.
pub(super) async fn read_file(disk: &dyn Files, path: &Path) -> Result<Vec<u8>> {
    let wrong = |what: &str| Error::new(ErrorKind::InvalidInput, format!("{} {what}", path.display()));
    match disk.kind(path).map_err(|error| unreadable(path, &error))? {
        FileKind::Folder => return Err(wrong("is a folder, not a file of definitions")),
        FileKind::File { bytes } if bytes > LONGEST_FILE => {
            return Err(wrong(&format!("has {bytes} bytes, too many for a definition")));
        }
        FileKind::File { .. } => {}
    }
    disk.read(path, 0, LONGEST_FILE as usize).await.map_err(|error| unreadable(path, &error))
}

/// Gives each partition its file. SDI names the partitions; else the `.par` file lists them; else the files do, which
/// is worth a warning: a file that is not there is not missed.
async fn settle_partitions(
    disk: &dyn Files,
    definition: &mut TableDefinition,
    files: &TableFiles,
    first: &TableFile,
) -> Result<Option<String>> {
    if first.partition.is_none() {
        definition.partitions = vec![Partition { name: String::new(), path: first.path.clone() }];
        return Ok(None);
    }
    let named_by_sdi = definition.partitions.iter().any(|partition| !partition.name.is_empty());
    let mut warning = None;
    let names: Vec<String> = if named_by_sdi {
        definition.partitions.iter().map(|partition| partition.name.clone()).collect()
    } else if let Some(listed) = listed_partitions(disk, files).await? {
        listed
    } else {
        warning = Some(format!(
            "table {}.{}: no file ({}.par) lists its partitions, so those are read whose .ibd files are there, and one that is missing is not missed",
            definition.database, definition.name, files.stem
        ));
        files.spaces.iter().filter_map(|file| file.partition.clone()).collect()
    };
    let mut partitions = Vec::with_capacity(names.len());
    for name in names {
        let own = |file: &&TableFile| {
            file.partition.as_ref().is_some_and(|own| own.to_lowercase() == name.to_lowercase())
        };
        let file = files.spaces.iter().find(own).ok_or_else(|| {
            let message = format!(
                "partition {name} of table {}.{} has no .ibd file",
                definition.database, definition.name
            );
            Error::new(ErrorKind::NotFound, message)
        })?;
        partitions.push(Partition { name, path: file.path.clone() });
    }
    if !named_by_sdi {
        for index in &mut definition.indexes {
            index.roots = vec![None; partitions.len()];
        }
    }
    definition.partitions = partitions;
    Ok(warning)
}

/// The partitions that the `.par` file lists, if there is one.
async fn listed_partitions(disk: &dyn Files, files: &TableFiles) -> Result<Option<Vec<String>>> {
    let par = files.folder.join(format!("{}.par", files.stem));
    if !disk.exists(&par) {
        return Ok(None);
    }
    let names =
        partition_names(&read_file(disk, &par).await?).map_err(|error| error.within(par.display()))?;
    Ok(Some(names.iter().map(|name| super::file_name::decode_partition(name)).collect()))
}
