//! How a table was created, from where its definition comes from, and from the server's dictionary.

use std::path::Path;

use super::definition::{Sources, read_file};
use super::dictionary::Dictionary;
use super::file_name::decode;
use super::listing::{TableFiles, linked};
use super::sys_tables::SystemForeignKey;
use super::{Catalog, Entry};
use crate::page::header::{u16_at, u64_at};
use crate::schema::description::{DATA_DIRECTORY, ForeignKey, ReferenceRule, TableDescription};
use crate::schema::{
    description_from_frm, description_from_sdi, object_of, private_number, private_text, read_sdi_spaces,
    read_sdi_tables,
};
use crate::{Error, ErrorKind, Result, Server, Table, Tablespace};

/// In the header of an index page: how many records it has.
const RECORDS: usize = 54;
/// In the header of the clustered root: the last value of AUTO_INCREMENT that was given out (MariaDB 10.2.4 on).
const LAST_AUTO_INCREMENT: usize = 56;
/// MariaDB's redo log, and the place of its creator's name in it.
const LOG: &str = "ib_logfile0";
const LOG_CREATOR: u64 = 16;
const LOG_CREATOR_BYTES: usize = 32;
const DELETE_CASCADE: u32 = 1;
const DELETE_SET_NULL: u32 = 2;
const UPDATE_CASCADE: u32 = 4;
const UPDATE_SET_NULL: u32 = 8;
const DELETE_NO_ACTION: u32 = 16;
const UPDATE_NO_ACTION: u32 = 32;

impl Catalog {
    /// How a table was created. Runs on an executor's thread.
    ///
    /// # Errors
    /// As [`table`](Self::table), and `Unsupported` for what its definition has that is not read.
    pub async fn description(&self, database: &str, table: &str) -> Result<TableDescription> {
        let place = || format!("the definition of {database}.{table}");
        let opened = self.table(database, table).await?;
        let sources = self.sources();
        let described = match self.entry(database, table)? {
            Entry::Files(files) if opened.definition().server == Server::MariaDb => {
                self.described_by_frm(&sources, files).await
            }
            _ => self.described_by_sdi(&opened).await,
        };
        let mut description = described.map_err(|error| error.within(place()))?;
        if description.columns.len() != opened.definition().columns.len() {
            let message = "it has other columns than the table";
            return Err(Error::new(ErrorKind::Corrupt, message).within(place()));
        }
        self.find_auto_increment(&opened, &mut description).await?;
        Ok(description)
    }

    async fn described_by_sdi(&self, table: &Table) -> Result<TableDescription> {
        let definition = table.definition();
        let mut paths: Vec<_> = definition.partitions.iter().map(|partition| &partition.path).collect();
        paths.dedup();
        for path in paths {
            let space = Tablespace::open(path, &self.environment).await?;
            let objects = read_sdi_tables(&space, &self.context).await?;
            let Some(json) = object_of(&objects, &definition.database, &definition.name) else { continue };
            let spaces = read_sdi_spaces(&space, &self.context).await?;
            let options: String = spaces.iter().map(|json| private_text(json, "options")).collect();
            let mut description = description_from_sdi(json, &options)?;
            if private_number(&private_text(json, "se_private_data"), "data_directory") == Some(1_u8) {
                let name = spaces.first().map(|json| private_text(json, "name")).unwrap_or_default();
                let dictionary = self.dictionary.as_ref().and_then(Dictionary::of_mysql);
                description.add_data_directory(dictionary.and_then(|files| files.data_directory(&name)));
            }
            return Ok(description);
        }
        Err(text_only())
    }

    async fn described_by_frm(&self, sources: &Sources<'_>, files: &TableFiles) -> Result<TableDescription> {
        let Some(frm) = &files.frm else { return Err(text_only()) };
        let disk = &*sources.environment.files;
        let bytes = read_file(disk, frm).await?;
        let mut description = description_from_frm(&bytes)?;
        match sources.dictionary.and_then(Dictionary::of_mariadb) {
            Some(system) => {
                let names = super::dictionary::names_in(disk, &files.folder, &files.stem);
                for name in names {
                    let keys = system.foreign_keys(&name);
                    if !keys.is_empty() {
                        description.foreign_keys = keys.iter().map(foreign_key).collect::<Result<_>>()?;
                        break;
                    }
                }
            }
            None => description
                .omitted
                .push("foreign keys, which the server has in ibdata1; mount its data directory".to_owned()),
        }
        let link = files.folder.join(format!("{}.isl", files.stem));
        if disk.exists(&link) {
            let file = linked(disk, &link).await;
            description.add_data_directory(file.as_deref().and_then(Path::parent).and_then(Path::parent));
        }
        let own = description.server_version;
        description.server_version = own.max(self.version_of_log().await);
        Ok(description)
    }

    /// The version of the server that made the redo log of MariaDB: its header names it, `MariaDB 10.11.19`. A `.frm`
    /// keeps the version of the server that wrote it.
    async fn version_of_log(&self) -> Option<u32> {
        let folder = self.dictionary.as_ref()?.path().parent()?;
        let header =
            self.environment.files.read(&folder.join(LOG), LOG_CREATOR, LOG_CREATOR_BYTES).await.ok()?;
        let text = String::from_utf8_lossy(&header);
        let version = text.trim_end_matches('\0').strip_prefix("MariaDB ")?;
        let parts: Vec<u32> = version.split('.').map(|part| part.parse().ok()).collect::<Option<_>>()?;
        match parts[..] {
            [major @ ..100, minor @ ..100, patch @ ..100] => Some(major * 10_000 + minor * 100 + patch),
            _ => None,
        }
    }

    /// The next value of AUTO_INCREMENT. MariaDB has it in the root of the clustered index; MySQL's may lie in its
    /// dictionary's buffer.
    async fn find_auto_increment(&self, table: &Table, description: &mut TableDescription) -> Result<()> {
        let definition = table.definition();
        if !definition.columns.iter().any(|column| column.declaration.auto_increment) {
            return Ok(());
        }
        let root = definition.indexes.first().and_then(|index| index.roots.first().copied().flatten());
        if let ([partition], Some(root), Server::MariaDb) =
            (definition.partitions.as_slice(), root, definition.server)
        {
            let space = Tablespace::open(&partition.path, &self.environment).await?;
            let page = space.page(root, &self.context).await?;
            let last = u64_at(page.bytes(), LAST_AUTO_INCREMENT);
            let is_empty = u16_at(page.bytes(), RECORDS) == 0;
            if last > 0 || is_empty {
                description.auto_increment = (last > 0).then(|| last.saturating_add(1));
                return Ok(());
            }
        }
        description.omitted.push("the next value of AUTO_INCREMENT".to_owned());
        Ok(())
    }
}

impl TableDescription {
    /// Adds the option of a table whose file is elsewhere: in a folder of `folder`.
    fn add_data_directory(&mut self, folder: Option<&Path>) {
        match folder.and_then(Path::to_str) {
            Some(folder) => {
                let folder = format!("'{}/'", folder.trim_end_matches('/'));
                self.options.push((DATA_DIRECTORY.to_owned(), folder));
            }
            None => self.omitted.push(DATA_DIRECTORY.to_owned()),
        }
    }
}

fn text_only() -> Error {
    let message = "it is given as the text of CREATE TABLE, which has it already";
    Error::new(ErrorKind::Unsupported, message)
}

fn foreign_key(key: &SystemForeignKey) -> Result<ForeignKey> {
    let parent = key.parent.split_once('/');
    let (database, table) = parent.ok_or_else(|| {
        Error::new(ErrorKind::Corrupt, format!("foreign key {} names no parent table", key.id))
    })?;
    let rule = |cascade: u32, set_null: u32, no_action: u32| match key.flags {
        flags if flags & cascade != 0 => ReferenceRule::Cascade,
        flags if flags & set_null != 0 => ReferenceRule::SetNull,
        flags if flags & no_action != 0 => ReferenceRule::NoAction,
        _ => ReferenceRule::Restrict,
    };
    Ok(ForeignKey {
        name: key.id.split_once('/').map_or(key.id.as_str(), |(_, name)| name).to_owned(),
        columns: key.columns.iter().map(|(own, _)| own.clone()).collect(),
        parent_database: decode(database),
        parent_table: decode(table),
        parent_columns: key.columns.iter().map(|(_, parent)| parent.clone()).collect(),
        parent_key: None,
        on_update: rule(UPDATE_CASCADE, UPDATE_SET_NULL, UPDATE_NO_ACTION),
        on_delete: rule(DELETE_CASCADE, DELETE_SET_NULL, DELETE_NO_ACTION),
    })
}
