//! What lies in a directory, by file names alone: nothing is opened here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::file_name::{self, TableFileName};
use super::mysql_dictionary::DICTIONARY;
use super::path_map::PathMap;
use crate::files::{FileKind, Files};
use crate::schema::is_innodb_frm;
use crate::{Error, ErrorKind, Result};

/// Databases of the servers themselves, which no mount shows.
pub(super) const SYSTEM_DATABASES: [&str; 4] = ["mysql", "sys", "performance_schema", "information_schema"];
/// Enough of a `.frm` to tell the engine.
const FRM_HEADER: usize = 64;
/// Tablespaces of the server in the data directory.
const SYSTEM_SPACES: [&str; 1] = ["mysql.ibd"];

/// One `.ibd` file of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TableFile {
    /// `None` unless the table is partitioned.
    pub(super) partition: Option<String>,
    pub(super) path: PathBuf,
}

/// The files of one table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct TableFiles {
    pub(super) spaces: Vec<TableFile>,
    pub(super) frm: Option<PathBuf>,
    /// Where the files lie and how the table is spelled there.
    pub(super) folder: PathBuf,
    pub(super) stem: String,
}

/// The tables of one database by name.
pub(super) type Tables = BTreeMap<String, TableFiles>;

/// What a path turned out to be.
#[derive(Debug)]
pub(super) enum Listing {
    /// A data directory, its databases, and tablespaces that lie outside of them.
    DataDirectory { databases: BTreeMap<String, Tables>, general: Vec<PathBuf> },
    /// A database's folder.
    Database { name: String, tables: Tables },
    /// One file, with the other partitions of its table.
    File { database: String, tables: Tables },
}

impl Listing {
    /// The tablespaces concerned, if they are not all in the folder.
    pub(super) fn only(&self) -> Option<Vec<PathBuf>> {
        let Listing::File { tables, .. } = self else { return None };
        let spaces = tables.values().flat_map(|files| &files.spaces);
        Some(spaces.map(|file| file.path.clone()).collect())
    }

    /// The folder of what was found at `path`.
    pub(super) fn folder<'a>(&self, path: &'a Path) -> &'a Path {
        match self {
            Listing::File { .. } => folder_of(path),
            _ => path,
        }
    }
}

/// Lists what lies at `path`; `map` says where files are that links point to.
pub(super) async fn list(
    disk: &dyn Files,
    path: &Path,
    map: &PathMap,
    warnings: &mut Vec<String>,
) -> Result<Listing> {
    let kind = disk.kind(path).map_err(|error| unreadable(path, &error))?;
    if kind != FileKind::Folder {
        return list_file(disk, path, map).await;
    }
    if is_data_directory(disk, path)? {
        return list_data_directory(disk, path, map, warnings).await;
    }
    let tables = list_database(disk, path, map).await?;
    let real = disk.real_path(path).unwrap_or_else(|_| path.to_owned());
    // All tables of a database of MySQL may lie elsewhere.
    if tables.is_empty() && !real.parent().is_some_and(|folder| disk.exists(&folder.join(DICTIONARY))) {
        return Err(no_tables(path));
    }
    Ok(Listing::Database { name: database_name(disk, path), tables })
}

/// The error about a folder in which nothing can be mounted.
pub(super) fn no_tables(path: &Path) -> Error {
    let message = format!(
        "{} holds no InnoDB tables; expected a data directory (with ibdata1), a folder of one database, or an .ibd file",
        path.display()
    );
    Error::new(ErrorKind::NotFound, message)
}

pub(super) fn unreadable(path: &Path, error: &std::io::Error) -> Error {
    let kind = match error.kind() {
        std::io::ErrorKind::NotFound => ErrorKind::NotFound,
        _ => ErrorKind::Io,
    };
    Error::new(kind, format!("{}: {error}", path.display()))
}

/// The name of the folder that `path` is, even if it is written `.` or ends in `..`.
fn database_name(disk: &dyn Files, path: &Path) -> String {
    let real = disk.real_path(path).unwrap_or_else(|_| path.to_owned());
    real.file_name()
        .map(|name| file_name::decode(&name.to_string_lossy()))
        .unwrap_or_else(|| "database".to_owned())
}

pub(super) fn entries(disk: &dyn Files, folder: &Path) -> Result<Vec<PathBuf>> {
    let mut paths = disk.entries(folder).map_err(|error| unreadable(folder, &error))?;
    paths.sort();
    Ok(paths)
}

/// A data directory has the system tablespace, or is a folder of folders with tables.
fn is_data_directory(disk: &dyn Files, path: &Path) -> Result<bool> {
    const OF_SERVERS: [&str; 4] = ["ibdata1", "mysql.ibd", "#innodb_redo", "ib_logfile0"];
    if OF_SERVERS.iter().any(|name| disk.exists(&path.join(name))) {
        return Ok(true);
    }
    let mut folders_with_tables = false;
    for entry in entries(disk, path)? {
        if is_table_file(&entry) {
            return Ok(false);
        }
        if !folders_with_tables && is_database_folder(disk, &entry) {
            // A folder that cannot be read may be one with tables, which is then said.
            folders_with_tables =
                entries(disk, &entry).map_or(true, |files| files.iter().any(|file| is_table_file(file)));
        }
    }
    Ok(folders_with_tables)
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|own| own.eq_ignore_ascii_case(extension))
}

fn is_table_file(path: &Path) -> bool {
    has_extension(path, "ibd") || has_extension(path, "frm")
}

/// Whether a database may lie at `path`: a folder, or what cannot be told to be none.
fn is_database_folder(disk: &dyn Files, path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    !name.starts_with(['.', '#'])
        && !SYSTEM_DATABASES.contains(&name.as_ref())
        && match disk.kind(path) {
            Ok(kind) => kind == FileKind::Folder,
            // A link that leads nowhere, as to a socket of a server that has gone.
            Err(error) => error.kind() != std::io::ErrorKind::NotFound,
        }
}

async fn list_data_directory(
    disk: &dyn Files,
    path: &Path,
    map: &PathMap,
    warnings: &mut Vec<String>,
) -> Result<Listing> {
    let mut databases = BTreeMap::new();
    let mut general = Vec::new();
    let mut left_out = Vec::new();
    for entry in entries(disk, path)? {
        if is_database_folder(disk, &entry) {
            let name = file_name::decode(&entry.file_name().unwrap_or_default().to_string_lossy());
            match list_database(disk, &entry, map).await {
                Ok(tables) if tables.is_empty() => {}
                Ok(tables) => drop(databases.insert(name, tables)),
                Err(error) => left_out.push((name, error)),
            }
        } else if has_extension(&entry, "ibd") && disk.is_file(&entry) {
            let name = entry.file_name().unwrap_or_default().to_string_lossy();
            if !SYSTEM_SPACES.contains(&name.as_ref()) && !name.starts_with('#') {
                general.push(entry);
            }
        }
    }
    if databases.is_empty() && general.is_empty() && !disk.exists(&path.join(DICTIONARY)) {
        return Err(match left_out.into_iter().next() {
            Some((_, error)) => error.within(format!("data directory {} cannot be read", path.display())),
            None => Error::new(
                ErrorKind::NotFound,
                format!("data directory {} holds no InnoDB tables", path.display()),
            ),
        });
    }
    let left_out = left_out.iter().map(|(name, error)| format!("database {name} is left out: {error}"));
    warnings.extend(left_out);
    Ok(Listing::DataDirectory { databases, general })
}

async fn list_database(disk: &dyn Files, folder: &Path, map: &PathMap) -> Result<Tables> {
    Ok(group(disk, folder, map, entries(disk, folder)?).await)
}

async fn list_file(disk: &dyn Files, path: &Path, map: &PathMap) -> Result<Listing> {
    if !has_extension(path, "ibd") {
        let message = format!(
            "{} is not an .ibd file, nor a data directory or a folder of one database",
            path.display()
        );
        return Err(Error::new(ErrorKind::NotFound, message));
    }
    let folder = folder_of(path);
    let siblings = list_database(disk, folder, map).await?;
    let own = siblings
        .into_iter()
        .find(|(_, files)| files.spaces.iter().any(|file| file.path.file_name() == path.file_name()));
    let (name, files) = own.unwrap_or_else(|| alone(path, folder));
    Ok(Listing::File { database: database_name(disk, folder), tables: Tables::from([(name, files)]) })
}

fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A file whose name no server gives.
fn alone(path: &Path, folder: &Path) -> (String, TableFiles) {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let spaces = vec![TableFile { partition: None, path: path.to_owned() }];
    (stem.clone(), TableFiles { spaces, frm: None, folder: folder.to_owned(), stem })
}

/// Brings the files of each table together. A `.frm` without `.ibd` files is a table (whose tablespace is missing) only
/// if its engine is InnoDB.
async fn group(disk: &dyn Files, folder: &Path, map: &PathMap, paths: Vec<PathBuf>) -> Tables {
    let mut tables = Tables::new();
    for path in paths {
        let (is_space, is_frm, is_link) =
            (has_extension(&path, "ibd"), has_extension(&path, "frm"), has_extension(&path, "isl"));
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let Some(name) = TableFileName::parse(&stem).filter(|_| is_space || is_frm || is_link) else {
            continue;
        };
        let files = tables.entry(name.table).or_default();
        if files.folder.as_os_str().is_empty() {
            files.folder = folder.to_owned();
            files.stem = stem.split('#').next().unwrap_or_default().to_owned();
        }
        if is_frm {
            files.frm = Some(path);
        } else if is_space {
            files.spaces.push(TableFile { partition: name.partition, path });
        } else if !files.spaces.iter().any(|file| file.partition == name.partition) {
            // What the link does not tell is missing.
            let path = linked(disk, &path).await.map_or(path, |target| map.place(&target));
            files.spaces.push(TableFile { partition: name.partition, path });
        }
    }
    let mut others = Vec::new();
    for (name, files) in tables.iter().filter(|(_, files)| files.spaces.is_empty()) {
        let is_innodb = match &files.frm {
            Some(frm) => describes_innodb(disk, frm).await,
            None => false,
        };
        others.extend((!is_innodb).then(|| name.clone()));
    }
    others.iter().for_each(|name| drop(tables.remove(name)));
    tables
}

/// The tablespace that an `.isl` file points to: a table with DATA DIRECTORY.
pub(super) async fn linked(disk: &dyn Files, link: &Path) -> Option<PathBuf> {
    const LONGEST_PATH: usize = 4096;
    let target = String::from_utf8(disk.read(link, 0, LONGEST_PATH).await.ok()?).ok()?;
    Some(PathBuf::from(target.trim())).filter(|target| target.is_absolute())
}

/// Whether a `.frm` is of an InnoDB table; one that cannot be read may be, and says so when it is asked for.
async fn describes_innodb(disk: &dyn Files, frm: &Path) -> bool {
    let header = disk.read(frm, 0, FRM_HEADER).await;
    header.map_or(true, |header| header.len() == FRM_HEADER && is_innodb_frm(&header))
}
