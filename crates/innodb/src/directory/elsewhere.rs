//! Files of tables that are not where the tables are listed: what MySQL's dictionary adds to the names of files.
//!
//! - A table, or a partition, with DATA DIRECTORY has its file in a folder of its database's name elsewhere.
//! - A table whose file was removed or discarded has none in its database's folder. It is listed nonetheless, as the
//!   server lists it, and the error of a query names the file.
//! - General tablespaces and the system tablespace hold tables of any database; which ones, their own dictionary
//!   information says.
//!
//! A database's folder that is mounted alone is completed by the dictionary of the data directory around it, if it is
//! still there. MariaDB needs none of this: a link (`.isl`) lies in the database's folder for each file elsewhere, and
//! there are no general tablespaces.

use std::path::{Path, PathBuf};

use super::file_name::{self, TableFileName};
use super::listing::{Listing, SYSTEM_DATABASES, TableFile, TableFiles, Tables};
use super::mysql_dictionary::{SpaceFile, TablespaceFiles};
use crate::files::Files;

/// Tablespaces that tables of several databases may share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// Their files.
    pub(super) files: Vec<PathBuf>,
    /// Those whose files are not there.
    pub(super) missing: Vec<SpaceFile>,
    /// The database whose tables are wanted; all if there is none.
    pub(super) only: Option<String>,
}

/// Adds to `listing`, which was found at `path`, the files that are elsewhere; returns the tablespaces that tables
/// share.
pub(super) fn complete(
    listing: &mut Listing,
    path: &Path,
    disk: &dyn Files,
    dictionary: &TablespaceFiles,
) -> Shared {
    let real = disk.real_path(path).unwrap_or_else(|_| path.to_owned());
    match listing {
        Listing::DataDirectory { databases, general } if real == dictionary.folder() => {
            for (folder, file) in elsewhere(dictionary, disk) {
                let name = file_name::decode(&folder);
                if !SYSTEM_DATABASES.contains(&name.as_str()) {
                    add(databases.entry(name).or_default(), dictionary, disk, &folder, file);
                }
            }
            databases.retain(|_, tables| !tables.is_empty());
            let mut shared = shared(dictionary, disk, None);
            let is_listed = |file: &PathBuf| {
                general.iter().any(|own| own == file || disk.real_path(own).is_ok_and(|own| own == *file))
            };
            shared.files.retain(|file| !is_listed(file));
            shared.files.append(general);
            shared
        }
        Listing::DataDirectory { general, .. } => {
            Shared { files: std::mem::take(general), ..Shared::default() }
        }
        Listing::Database { name, tables } if real.parent() == Some(dictionary.folder()) => {
            let own = real.file_name().unwrap_or_default().to_string_lossy();
            for (folder, file) in elsewhere(dictionary, disk).filter(|(folder, _)| *folder == own) {
                add(tables, dictionary, disk, &folder, file);
            }
            shared(dictionary, disk, Some(name.clone()))
        }
        Listing::Database { .. } => Shared::default(),
        Listing::File { tables, .. } => {
            let folder = real.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
            for (own, file) in elsewhere(dictionary, disk).filter(|(own, _)| *own == folder) {
                let Some(name) = table_of(file) else { continue };
                if name.partition.is_some() && tables.contains_key(&name.table) {
                    add(tables, dictionary, disk, &own, file);
                }
            }
            Shared::default()
        }
    }
}

/// The files of single tables elsewhere, and those that are missing, with the name of the folder that each is in, which
/// is that of its database.
fn elsewhere<'a>(
    dictionary: &'a TablespaceFiles,
    disk: &dyn Files,
) -> impl Iterator<Item = (String, &'a SpaceFile)> {
    dictionary.files_not_at_home(disk).filter_map(|file| {
        // The place may have been renamed, the tablespace was not.
        let (folder, _) = file.name.split_once('/')?;
        let of_path = file.path.parent().and_then(Path::file_name).and_then(|name| name.to_str());
        Some((of_path.filter(|own| own.eq_ignore_ascii_case(folder)).unwrap_or(folder).to_owned(), file))
    })
}

fn table_of(file: &SpaceFile) -> Option<TableFileName> {
    TableFileName::parse(&file.path.file_stem()?.to_string_lossy())
}

/// Adds a file of a table. One that lies in the database's folder under the same name takes its place where there is
/// none elsewhere.
fn add(tables: &mut Tables, dictionary: &TablespaceFiles, disk: &dyn Files, folder: &str, file: &SpaceFile) {
    let Some(TableFileName { table, partition }) = table_of(file) else { return };
    let stem = file.path.file_stem().unwrap_or_default().to_string_lossy();
    let path = file.path.clone();
    let exists = disk.exists(&path);
    // A server with `lower_case_table_names` writes what the file system may spell otherwise.
    let alike = |a: &str, b: &str| a.to_lowercase() == b.to_lowercase();
    let is_there = |(own, files): (&String, &TableFiles)| {
        let mut partitions = files.spaces.iter().map(|own| own.partition.as_deref().unwrap_or_default());
        alike(own, &table) && partitions.any(|own| alike(own, partition.as_deref().unwrap_or_default()))
    };
    if !exists && tables.iter().any(is_there) {
        return;
    }
    let files = tables.entry(table).or_insert_with(|| TableFiles {
        folder: dictionary.folder().join(folder),
        stem: stem.split('#').next().unwrap_or_default().to_owned(),
        ..TableFiles::default()
    });
    match files.spaces.iter_mut().find(|own| own.partition == partition) {
        Some(own) if exists => own.path = path,
        Some(_) => {}
        None => files.spaces.push(TableFile { partition, path }),
    }
    files.spaces.sort_by(|a, b| a.partition.cmp(&b.partition));
}

fn shared(dictionary: &TablespaceFiles, disk: &dyn Files, only: Option<String>) -> Shared {
    let (there, missing): (Vec<_>, Vec<_>) =
        dictionary.shared_files().cloned().partition(|file| disk.exists(&file.path));
    Shared { files: there.into_iter().map(|file| file.path).collect(), missing, only }
}
