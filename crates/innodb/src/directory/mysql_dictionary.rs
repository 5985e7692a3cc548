//! MySQL's dictionary: where the undo tablespaces are.
//!
//! `mysql.ibd` is a general tablespace whose tables describe all others, and it describes these itself. `tablespace_files` has the path of every
//! tablespace's file, relative to the data directory unless it lies elsewhere (`innodb_undo_directory`, `CREATE UNDO TABLESPACE`).

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tanada_io::IoContext;

use super::clean::is_undo_file;
use crate::schema::{read_sdi_tables, table_from_sdi};
use crate::{
    Environment, Error, ErrorKind, IndexNo, KeyRange, Result, RowSink, Table, TableDefinition, Tablespace,
    Value,
};

/// The dictionary's file in the data directory.
pub(super) const DICTIONARY: &str = "mysql.ibd";

/// The undo tablespaces that the dictionary at `dictionary` names, relative paths taken from where it lies.
///
/// # Errors
/// If it cannot be read or is not as known.
pub(super) async fn undo_files(
    dictionary: &Path,
    environment: &Arc<Environment>,
    context: &IoContext,
) -> Result<Vec<PathBuf>> {
    let definition = definition(dictionary, environment, context).await?;
    let unknown = || Error::new(ErrorKind::Unsupported, "the dictionary has no table of files as known");
    let column = definition.column("file_name").ok_or_else(unknown)?;
    let table = Table::open(definition, environment).await?;
    let access = table.access(IndexNo(0), &[column])?;
    let (range, mut names) = (KeyRange::all(), Names::default());
    for run in table.leaves(IndexNo(0), &range, context).await? {
        let mut on_row = |row: &crate::Row<'_>| row.decode(&mut names).map(|()| ControlFlow::Continue(()));
        table.scan(&access, &run, &range, context, &mut on_row).await?;
    }
    let folder = dictionary.parent().unwrap_or(Path::new("."));
    let paths = names.0.iter().map(|name| folder.join(name.strip_prefix("./").unwrap_or(name)));
    Ok(paths.filter(|path| is_undo_file(path)).collect())
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

#[derive(Default)]
struct Names(Vec<String>);

impl RowSink for Names {
    fn push(&mut self, _: usize, value: Value<'_>) -> Result<()> {
        if let Value::Text(name) = value {
            self.0.push(name.into_owned());
        }
        Ok(())
    }
}
