//! Where a table's definition comes from: SDI in its files, else the `.frm` beside them, else `CREATE TABLE` text.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tanada_io::IoContext;

use super::listing::{TableFile, TableFiles, unreadable};
use super::sys_tables::SystemTables;
use crate::files::{FileKind, Files};
use crate::schema::{self, partition_names, read_sdi_tables, table_from_frm, table_from_sdi};
use crate::{Environment, Error, ErrorKind, Partition, Result, Server, TableDefinition, Tablespace};

/// Definitions are kilobytes; what is longer is something else.
const LONGEST_FILE: u64 = 16 << 20;

/// What definitions are made of beside the table's own files.
pub(super) struct Sources<'a> {
    pub(super) environment: &'a Arc<Environment>,
    pub(super) context: &'a IoContext,
    /// MariaDB's dictionary, if the mount has it.
    pub(super) system: Option<&'a SystemTables>,
    /// Files with `CREATE TABLE` statements.
    pub(super) ddl: &'a [PathBuf],
}

impl Sources<'_> {
    /// The definition of `database.table`, with its partitions' files.
    pub(super) async fn definition(
        &self,
        database: &str,
        table: &str,
        files: &TableFiles,
    ) -> Result<TableDefinition> {
        let shared = self.in_system_tablespace(files);
        let files = shared.as_ref().unwrap_or(files);
        let Some(first) = files.spaces.first() else {
            let message = format!("table {database}.{table} has a definition, but no .ibd file");
            return Err(Error::new(ErrorKind::NotFound, message));
        };
        let (sdi, server) = self.read_sdi(files).await?;
        let mut definition = match sdi {
            Some(definition) => definition,
            None => self.read_text(database, table, files, server).await?,
        };
        database.clone_into(&mut definition.database);
        table.clone_into(&mut definition.name);
        settle_partitions(&*self.environment.files, &mut definition, files, first).await?;
        if let Some(system) = self.system.filter(|_| definition.server == Server::MariaDb) {
            system.place_roots(&mut definition, files, self.environment, self.context).await?;
        }
        Ok(definition)
    }

    /// The files of a table of MariaDB that has no file of its own, but lies in the system tablespace.
    fn in_system_tablespace(&self, files: &TableFiles) -> Option<TableFiles> {
        let system = self.system.filter(|_| files.spaces.is_empty())?;
        let folder = self.environment.files.real_path(&files.folder).ok()?;
        let path = system.shared_file(&folder, &files.stem)?.to_owned();
        Some(TableFiles { spaces: vec![TableFile { partition: None, path }], folder, ..files.clone() })
    }

    /// The first file that has the table among its dictionary objects; of a partitioned table only one has.
    async fn read_sdi(&self, files: &TableFiles) -> Result<(Option<TableDefinition>, Server)> {
        let mut server = Server::MariaDb;
        for file in &files.spaces {
            let space = Tablespace::open(&file.path, self.environment).await?;
            server = space.server();
            for json in read_sdi_tables(&space, self.context).await? {
                if let Some(definition) = table_from_sdi(&json)? {
                    return Ok((Some(definition), server));
                }
            }
            if space.sdi_root().is_none() {
                break;
            }
        }
        Ok((None, server))
    }

    async fn read_text(
        &self,
        database: &str,
        table: &str,
        files: &TableFiles,
        server: Server,
    ) -> Result<TableDefinition> {
        let disk = &*self.environment.files;
        if let Some(frm) = &files.frm {
            let bytes = read_file(disk, frm).await?;
            return table_from_frm(&bytes, database, table).map_err(|error| error.within(frm.display()));
        }
        let beside = files.folder.join(format!("{}.create.sql", files.stem));
        let beside = disk.exists(&beside).then_some(beside);
        for path in self.ddl.iter().chain(&beside) {
            let text = read_file(disk, path).await?;
            let text = String::from_utf8_lossy(&text);
            if let Some(definition) = schema::table_from_ddl(&text, database, table, server)
                .map_err(|error| error.within(path.display()))?
            {
                return Ok(definition);
            }
        }
        let message = format!(
            "table {database}.{table} has neither dictionary information (SDI) nor a .frm file; \
             give its CREATE TABLE statement (the output of SHOW CREATE TABLE) in a file with --ddl FILE"
        );
        Err(Error::new(ErrorKind::NotFound, message))
    }
}

/// A whole file of definitions.
async fn read_file(disk: &dyn Files, path: &Path) -> Result<Vec<u8>> {
    let kind = disk.kind(path).map_err(|error| unreadable(path, &error))?;
    if let FileKind::File { bytes } = kind
        && bytes > LONGEST_FILE
    {
        return Err(Error::new(
            ErrorKind::InvalidInput,
            format!("{} has {bytes} bytes, too many for a definition", path.display()),
        ));
    }
    disk.read(path, 0, LONGEST_FILE as usize).await.map_err(|error| unreadable(path, &error))
}

/// Gives each partition its file. SDI names the partitions; else the `.par` file lists them; else the files do.
async fn settle_partitions(
    disk: &dyn Files,
    definition: &mut TableDefinition,
    files: &TableFiles,
    first: &TableFile,
) -> Result<()> {
    if first.partition.is_none() {
        definition.partitions = vec![Partition { name: String::new(), path: first.path.clone() }];
        return Ok(());
    }
    let named_by_sdi = definition.partitions.iter().any(|partition| !partition.name.is_empty());
    let names = if named_by_sdi {
        definition.partitions.iter().map(|partition| partition.name.clone()).collect()
    } else {
        listed_partitions(disk, files).await?
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
    Ok(())
}

async fn listed_partitions(disk: &dyn Files, files: &TableFiles) -> Result<Vec<String>> {
    let par = files.folder.join(format!("{}.par", files.stem));
    if !disk.exists(&par) {
        return Ok(files.spaces.iter().filter_map(|file| file.partition.clone()).collect());
    }
    let names =
        partition_names(&read_file(disk, &par).await?).map_err(|error| error.within(par.display()))?;
    Ok(names.iter().map(|name| super::file_name::decode_partition(name)).collect())
}
