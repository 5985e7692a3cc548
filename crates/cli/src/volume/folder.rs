//! The files that are brought into a volume: one file, or what the InnoDB reader needs of a folder.
//!
//! Of a data directory or a database's folder these are tablespaces, table definitions, and what tells whether the
//! server left them clean (redo log, undo tablespaces, a backup's notes). A tablespace that an `.isl` file points to
//! comes along, below `#linked`.

use std::path::{Path, PathBuf};

use crate::failure::{Failure, Outcome};

/// Objects of such names are the engine's own.
const RESERVED: &str = "tanada.";

/// Databases of the servers themselves, which no mount shows.
const SYSTEM_DATABASES: [&str; 4] = ["mysql", "sys", "performance_schema", "information_schema"];
const NAMES: [&str; 4] =
    ["ibdata1", "aria_log_control", "mariadb_backup_checkpoints", "xtrabackup_checkpoints"];
const BEGINNINGS: [&str; 3] = ["ibdata", "ib_logfile", "undo"];
const EXTENSIONS: [&str; 6] = ["ibd", "frm", "cfg", "isl", "par", "ibu"];
const REDO_FOLDER: &str = "#innodb_redo";
const LINKED: &str = "#linked";
/// A data directory is two folders deep.
const DEEPEST: usize = 4;

/// A file and the name its object gets.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Source {
    /// Where the file is, absolute and without links.
    pub path: PathBuf,
    /// The object's name.
    pub name: String,
    /// Its length.
    pub bytes: u64,
}

/// What lies at `path`, in order of names: the objects are called `name`, or begin with `name/` if it is a folder.
/// Without `name` it is the last part of the path.
pub fn sources(path: &Path, name: Option<&str>) -> Outcome<Vec<Source>> {
    let failed = |error: std::io::Error| Failure::failed(format!("cannot read {}: {error}", path.display()));
    let real = path.canonicalize().map_err(failed)?;
    let own = real.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let name = name.map_or(own, |name| name.trim_end_matches('/').to_owned());
    if name.is_empty() {
        return Err(Failure::usage("the object needs a name: --name NAME"));
    }
    if name.starts_with(RESERVED) {
        return Err(Failure::usage(format!(
            "names that begin with {RESERVED} are the engine's own; give the object another one: --name NAME"
        )));
    }
    let metadata = real.metadata().map_err(failed)?;
    if !metadata.is_dir() {
        return Ok(vec![Source { path: real, name, bytes: metadata.len() }]);
    }
    let mut found = Vec::new();
    collect(&real, &name, 0, &mut found).map_err(failed)?;
    found.extend(linked(&found, &name));
    found.sort_by(|a, b| a.name.cmp(&b.name));
    if !found.iter().any(|source| has_extension(&source.path, &["ibd"])) {
        return Err(Failure::failed(format!(
            "{} holds no InnoDB tables; name a data directory, a folder of one database, or single files",
            path.display()
        )));
    }
    Ok(found)
}

fn collect(folder: &Path, prefix: &str, depth: usize, found: &mut Vec<Source>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let own = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let metadata = std::fs::metadata(&path)?;
        let name = format!("{prefix}/{own}");
        if metadata.is_dir() {
            let is_system = SYSTEM_DATABASES.contains(&own.as_str()) && depth == 0;
            let is_hidden = own.starts_with(['.', '#']) && own != REDO_FOLDER;
            if !is_system && !is_hidden && depth < DEEPEST {
                collect(&path, &name, depth + 1, found)?;
            }
        } else if metadata.is_file() && is_needed(&path, &own) {
            found.push(Source { path: path.canonicalize()?, name, bytes: metadata.len() });
        }
    }
    Ok(())
}

fn is_needed(path: &Path, own: &str) -> bool {
    let is_log = path.parent().and_then(Path::file_name).is_some_and(|folder| folder == REDO_FOLDER);
    is_log
        || NAMES.contains(&own)
        || BEGINNINGS.iter().any(|beginning| own.starts_with(beginning))
        || own.ends_with(".create.sql")
        || (has_extension(path, &EXTENSIONS) && !own.starts_with("#sql"))
}

fn has_extension(path: &Path, extensions: &[&str]) -> bool {
    path.extension().is_some_and(|own| extensions.iter().any(|other| own.eq_ignore_ascii_case(other)))
}

/// The tablespaces that `.isl` files among `found` point to.
fn linked(found: &[Source], name: &str) -> Vec<Source> {
    let links = found.iter().filter(|source| has_extension(&source.path, &["isl"]));
    links
        .filter_map(|link| {
            let target = std::fs::read_to_string(&link.path).ok()?;
            let path = PathBuf::from(target.trim());
            let bytes = path.metadata().ok().filter(|metadata| metadata.is_file())?.len();
            let below = path.strip_prefix("/").ok()?.to_string_lossy().into_owned();
            Some(Source { name: format!("{name}/{LINKED}/{below}"), path, bytes })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_gives_what_the_reader_needs() {
        let folder = tempfile::tempdir().unwrap();
        let far = folder.path().join("far/shop/t.ibd");
        let files = [
            "data/ibdata1",
            "data/undo_001",
            "data/mysql.ibd",
            "data/#innodb_redo/#ib_redo1",
            "data/shop/orders.ibd",
            "data/shop/orders.frm",
            "data/shop/#sql-1.ibd",
            "data/mysql/user.frm",
            "data/binlog.000001",
            "data/server.err",
            "data/.hidden/x.ibd",
            "far/shop/t.ibd",
        ];
        for file in files {
            let path = folder.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, b"x").unwrap();
        }
        let link = folder.path().join("data/shop/t.isl");
        std::fs::write(&link, format!("{}\n", far.display())).unwrap();
        let found = sources(&folder.path().join("data"), Some("b")).unwrap();
        let names: Vec<&str> = found.iter().map(|source| source.name.as_str()).collect();
        let linked = format!("b/#linked{}", far.display());
        let expected = [
            "b/#innodb_redo/#ib_redo1",
            &linked,
            "b/ibdata1",
            "b/mysql.ibd",
            "b/shop/orders.frm",
            "b/shop/orders.ibd",
            "b/shop/t.isl",
            "b/undo_001",
        ];
        assert_eq!(names, expected);
        let one = sources(&folder.path().join("data/shop/orders.ibd"), None).unwrap();
        assert_eq!((one.len(), one[0].name.as_str(), one[0].bytes), (1, "orders.ibd", 1));
    }

    #[test]
    fn a_folder_without_tables_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("notes.txt"), b"x").unwrap();
        assert!(sources(folder.path(), None).unwrap_err().to_string().contains("no InnoDB tables"));
        assert!(sources(&folder.path().join("none"), None).is_err());
    }
}
