//! How a table was created, from where its definition comes from, and from the server's dictionary.

use tanada_io::IoContext;

use super::definition::{Sources, read_file};
use super::file_name::decode;
use super::listing::TableFiles;
use super::sys_tables::{SystemForeignKey, SystemTables};
use super::{Catalog, Entry};
use crate::page::header::{u16_at, u64_at};
use crate::schema::description::{ForeignKey, ReferenceRule, TableDescription};
use crate::schema::{
    description_from_frm, description_from_sdi, private_text, read_sdi_spaces, read_sdi_tables,
    table_named_by_sdi,
};
use crate::{Error, ErrorKind, Result, Server, Table, Tablespace};

/// In the header of an index page: how many records it has.
const RECORDS: usize = 54;
/// In the header of the clustered root: the last value of AUTO_INCREMENT that was given out (MariaDB 10.2.4 on).
const LAST_AUTO_INCREMENT: usize = 56;
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
            for json in read_sdi_tables(&space, &self.context).await? {
                let named = table_named_by_sdi(&json);
                let is_own = definition.partitions.len() > 1
                    || named.is_some_and(|(_, name)| name.eq_ignore_ascii_case(&definition.name));
                if is_own {
                    let options = space_options(&space, &self.context).await?;
                    return description_from_sdi(&json, &options);
                }
            }
        }
        Err(text_only())
    }

    async fn described_by_frm(&self, sources: &Sources<'_>, files: &TableFiles) -> Result<TableDescription> {
        let Some(frm) = &files.frm else { return Err(text_only()) };
        let disk = &*sources.environment.files;
        let bytes = read_file(disk, frm).await?;
        let mut description = description_from_frm(&bytes)?;
        match sources.dictionary.and_then(super::dictionary::Dictionary::of_mariadb) {
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
        if SystemTables::is_elsewhere(disk, &files.folder, &files.stem) {
            description.omitted.push("DATA DIRECTORY".to_owned());
        }
        Ok(description)
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

fn text_only() -> Error {
    let message = "it is given as the text of CREATE TABLE, which has it already";
    Error::new(ErrorKind::Unsupported, message)
}

/// Options of a tablespace of MySQL, as its dictionary object has them.
async fn space_options(space: &Tablespace, context: &IoContext) -> Result<String> {
    let mut options = String::new();
    for json in read_sdi_spaces(space, context).await? {
        options.push_str(&private_text(&json, "options"));
    }
    Ok(options)
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
