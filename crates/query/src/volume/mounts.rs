//! Which folders of a tree of files are data directories or databases.
//!
//! A folder that holds a server's own files is a data directory, and what lies below belongs to it; any other folder
//! that holds tables is a database. So several servers' folders in one volume are found each for itself.

use std::path::{Path, PathBuf};

use super::VolumeFiles;

/// Files and folders that only a data directory has.
const OF_SERVERS: [&str; 4] = ["ibdata1", "ib_logfile0", "mysql.ibd", "#innodb_redo"];

/// The data directories and databases among `files`, in order of their names.
pub fn databases(files: &VolumeFiles) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    let mut data_directory: Option<&Path> = None;
    // In a sorted map a folder comes right before what lies below it.
    for (folder, entries) in files.folders() {
        let is_inside = data_directory.is_some_and(|above| folder.starts_with(above));
        let is_hidden = folder.components().any(|part| part.as_os_str().as_encoded_bytes().starts_with(b"#"));
        if is_inside || is_hidden {
            continue;
        }
        let is_data_directory = entries.iter().any(|entry| is_of_server(entry));
        if is_data_directory {
            data_directory = Some(folder);
        }
        if is_data_directory || entries.iter().any(|entry| is_table(entry)) {
            found.push(folder.clone());
        }
    }
    found
}

fn is_of_server(entry: &Path) -> bool {
    let name = entry.file_name().unwrap_or_default();
    OF_SERVERS.iter().any(|own| name == *own)
}

fn is_table(entry: &Path) -> bool {
    entry.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("ibd"))
}
