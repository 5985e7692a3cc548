//! What a server's own dictionary says of files: which tablespace is in which.
//!
//! MySQL has it in `mysql.ibd` ([`TablespaceFiles`]), MariaDB in `ibdata1` ([`SystemTables`]). Either lies in the data
//! directory, which is the folder that is mounted or the one around it. A folder that was copied away from there has
//! none, and nothing can be asked then.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tanada_io::IoContext;

use super::listing::Tables;
use super::mysql_dictionary::{DICTIONARY, TablespaceFiles};
use super::path_map::PathMap;
use super::sys_tables::SystemTables;
use crate::files::Files;
use crate::{Environment, ErrorKind, Result, SpaceId};

/// Tables that a warning names.
const NAMED: usize = 5;

/// The dictionary of the server whose files are mounted.
#[derive(Debug)]
pub(super) enum Dictionary {
    MariaDb(SystemTables),
    MySql(TablespaceFiles),
}

impl Dictionary {
    /// Reads the dictionary in `folder` or in the folder around it. If it is there but cannot be read, a warning says
    /// so.
    ///
    /// # Errors
    /// `NotClean` if a page of it is newer than the end of the redo log.
    pub(super) async fn find(
        folder: &Path,
        map: &PathMap,
        environment: &Arc<Environment>,
        context: &IoContext,
        warnings: &mut Vec<String>,
    ) -> Result<Option<Dictionary>> {
        let files = &*environment.files;
        let folder = files.real_path(folder).unwrap_or_else(|_| folder.to_owned());
        let of_server = |folder: &Path| {
            [DICTIONARY, "ibdata1"].map(|name| folder.join(name)).into_iter().find(|path| files.exists(path))
        };
        let path = [Some(folder.as_path()), folder.parent()].into_iter().flatten().find_map(of_server);
        let Some(path) = path else { return Ok(None) };
        let read = match path.ends_with(DICTIONARY) {
            true => TablespaceFiles::read(&path, map, environment, context).await.map(Dictionary::MySql),
            false => SystemTables::read(&path, environment, context).await.map(Dictionary::MariaDb),
        };
        match read {
            Err(error) if error.kind() == ErrorKind::NotClean => Err(error),
            Err(error) => {
                warnings.push(format!(
                    "the dictionary in {} is not used, so it is not known which file belongs to which table: {error}",
                    path.display()
                ));
                Ok(None)
            }
            Ok(dictionary) => Ok(Some(dictionary)),
        }
    }

    /// The dictionary's file.
    pub(super) fn path(&self) -> &Path {
        match self {
            Dictionary::MariaDb(system) => system.path(),
            Dictionary::MySql(files) => files.path(),
        }
    }

    /// The dictionary, if it is MariaDB's.
    pub(super) fn of_mariadb(&self) -> Option<&SystemTables> {
        match self {
            Dictionary::MariaDb(system) => Some(system),
            Dictionary::MySql(_) => None,
        }
    }

    /// The dictionary, if it is MySQL's.
    pub(super) fn of_mysql(&self) -> Option<&TablespaceFiles> {
        match self {
            Dictionary::MariaDb(_) => None,
            Dictionary::MySql(files) => Some(files),
        }
    }

    /// Whether tables, or partitions of one, share the tablespace in the file at `path`.
    pub(super) fn is_shared(&self, path: &Path) -> bool {
        match self {
            Dictionary::MariaDb(system) => system.path() == path,
            Dictionary::MySql(files) => files.shared_files().any(|file| file.path == path),
        }
    }

    /// The undo tablespaces, if the dictionary is one that names them.
    pub(super) fn undo_files(&self) -> Option<Vec<PathBuf>> {
        match self {
            Dictionary::MariaDb(_) => None,
            Dictionary::MySql(files) => Some(files.undo_files()),
        }
    }

    /// The tablespace that the server has in the file at `path`, of a table whose files are listed in `folder`.
    pub(super) fn space_of(&self, disk: &dyn Files, folder: &Path, path: &Path) -> Option<SpaceId> {
        match self {
            Dictionary::MariaDb(system) => {
                let stem = path.file_stem()?.to_str()?;
                system.table(disk, folder, stem).map(|table| table.space)
            }
            Dictionary::MySql(files) => {
                let name = path.file_name()?.to_str()?;
                let inside = names_in(disk, folder, name).find_map(|name| files.id_of(&name));
                inside.or_else(|| files.id_of(path.to_str()?))
            }
        }
    }

    /// The tablespace that the server has in the file at `path`, which is in the data directory itself or elsewhere.
    pub(super) fn general_space_of(&self, path: &Path) -> Option<SpaceId> {
        match self {
            Dictionary::MariaDb(_) => None,
            Dictionary::MySql(files) => {
                let elsewhere = path.to_str().and_then(|path| files.id_of(path));
                elsewhere.or_else(|| files.id_of(path.file_name()?.to_str()?))
            }
        }
    }

    /// A warning about the tables of `database` whose files the server does not know, as when files were put into its
    /// directory and never imported.
    pub(super) fn unknown(&self, disk: &dyn Files, database: &str, tables: &Tables) -> Option<String> {
        let is_unknown = |(name, files): (&String, &super::listing::TableFiles)| {
            let mut spaces = files.spaces.iter();
            spaces
                .any(|file| self.space_of(disk, &files.folder, &file.path).is_none())
                .then(|| format!("{database}.{name}"))
        };
        let unknown: Vec<String> = tables.iter().filter_map(is_unknown).collect();
        if unknown.is_empty() {
            return None;
        }
        let more = unknown.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        Some(format!(
            "the server's dictionary in {} does not know the files of {}{more}: they are read as they are, but the server would not \
             (see ALTER TABLE ... IMPORT TABLESPACE)",
            self.path().display(),
            unknown[..unknown.len().min(NAMED)].join(", "),
        ))
    }
}

/// `folder/name` with the folder's name as it is written, then as it is without links.
pub(super) fn names_in<'a>(
    disk: &'a dyn Files,
    folder: &'a Path,
    name: &'a str,
) -> impl Iterator<Item = String> + 'a {
    let name_of = move |folder: &Path| Some(format!("{}/{name}", folder.file_name()?.to_str()?));
    // The links are only followed if the name as it is written leads nowhere.
    let written = std::iter::once_with(move || name_of(folder));
    let real = std::iter::once_with(move || disk.real_path(folder).ok().and_then(|real| name_of(&real)));
    written.chain(real).flatten()
}
