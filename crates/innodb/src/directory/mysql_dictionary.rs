//! MySQL's dictionary: which file is which tablespace, and where the undo tablespaces are.
//!
//! `mysql.ibd` is a general tablespace whose tables describe all others, and it describes these itself. `tablespace_files` has the path of every
//! tablespace's file, relative to the data directory unless it lies elsewhere (`innodb_undo_directory`, `CREATE UNDO TABLESPACE`, DATA DIRECTORY),
//! and the tablespace's id.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tanada_io::IoContext;

use super::clean::is_undo_file;
use crate::schema::{private_number, read_sdi_tables, table_from_sdi};
use crate::{
    Environment, Error, ErrorKind, IndexNo, KeyRange, Result, RowSink, SpaceId, Table, TableDefinition,
    Tablespace, Value,
};

/// The dictionary's file in the data directory.
pub(super) const DICTIONARY: &str = "mysql.ibd";

/// The files of all tablespaces, as the dictionary spells them (without a leading `./`).
#[derive(Debug)]
pub(super) struct TablespaceFiles {
    path: PathBuf,
    ids: HashMap<String, Option<SpaceId>>,
}

impl TablespaceFiles {
    /// Reads the dictionary at `path`.
    ///
    /// # Errors
    /// If it cannot be read or is not as known.
    pub(super) async fn read(
        path: &Path,
        environment: &Arc<Environment>,
        context: &IoContext,
    ) -> Result<TablespaceFiles> {
        let definition = definition(path, environment, context).await?;
        let unknown = || Error::new(ErrorKind::Unsupported, "the dictionary has no table of files as known");
        let columns = ["file_name", "se_private_data"].map(|name| definition.column(name));
        let [Some(name), Some(data)] = columns else { return Err(unknown()) };
        let table = Table::open(definition, environment).await?;
        let access = table.access(IndexNo(0), &[name, data])?;
        let (range, mut rows) = (KeyRange::all(), FileRows::default());
        for run in table.leaves(IndexNo(0), &range, context).await? {
            let mut on_row = |row: &crate::Row<'_>| row.decode(&mut rows).map(|()| ControlFlow::Continue(()));
            table.scan(&access, &run, &range, context, &mut on_row).await?;
        }
        Ok(TablespaceFiles { path: path.to_owned(), ids: rows.ids })
    }

    /// The dictionary's file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The undo tablespaces, relative paths taken from where the dictionary lies.
    pub(super) fn undo_files(&self) -> Vec<PathBuf> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let paths = self.ids.keys().map(|name| folder.join(name));
        paths.filter(|path| is_undo_file(path)).collect()
    }

    /// The id of the tablespace in `file`, a path relative to the data directory or an absolute one; in any case of letters, since a server with
    /// `lower_case_table_names` writes what the file system may spell otherwise.
    pub(super) fn id_of(&self, file: &str) -> Option<SpaceId> {
        let in_any_case = || {
            let lower = file.to_lowercase();
            self.ids.iter().find(|(name, _)| name.to_lowercase() == lower).map(|(_, id)| id)
        };
        self.ids.get(file).or_else(in_any_case).copied().flatten()
    }
}

async fn definition(
    dictionary: &Path,
    environment: &Arc<Environment>,
    context: &IoContext,
) -> Result<TableDefinition> {
    let space = Tablespace::open(dictionary, environment).await?;
    for json in read_sdi_tables(&space, context).await? {
        let Some(mut definition) = table_from_sdi(&json)? else { continue };
        if definition.database == "mysql" && definition.name == "tablespace_files" {
            for partition in &mut definition.partitions {
                dictionary.clone_into(&mut partition.path);
            }
            return Ok(definition);
        }
    }
    let what = format!("{}: the dictionary does not describe itself", dictionary.display());
    Err(Error::new(ErrorKind::Unsupported, what))
}

/// Rows of file name and private data (`id=2;`).
#[derive(Default)]
struct FileRows {
    name: String,
    ids: HashMap<String, Option<SpaceId>>,
}

impl RowSink for FileRows {
    fn push(&mut self, slot: usize, value: Value<'_>) -> Result<()> {
        let text = match value {
            Value::Text(text) => text.into_owned(),
            _ => String::new(),
        };
        if slot == 0 {
            self.name = text.strip_prefix("./").unwrap_or(&text).to_owned();
        } else {
            let name = std::mem::take(&mut self.name);
            self.ids.insert(name, private_number(&text, "id").map(SpaceId));
        }
        Ok(())
    }
}
