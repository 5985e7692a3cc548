//! What a database has beside tables of InnoDB: views, and tables of other engines.
//!
//! MySQL's dictionary has the text of each view's query, and the names of its columns. A view of MariaDB is a `.frm`
//! file that begins with `TYPE=VIEW`: lines of `name=value`, in which `query` is the text of its query with full names.

use std::path::{Path, PathBuf};

use super::Catalog;
use super::dictionary::Dictionary;
use super::file_name::decode;
use crate::Result;
use crate::files::Files;

/// Files of other engines, by the ending of a file with rows.
const ENGINES: [(&str, &str); 6] = [
    ("MYD", "MyISAM"),
    ("MAD", "Aria"),
    ("ARZ", "ARCHIVE"),
    ("CSV", "CSV"),
    ("MRG", "MERGE"),
    ("sdb", "another engine"),
];

/// How every view's file begins.
pub(super) const VIEW: &[u8] = b"TYPE=VIEW\n";

/// Most bytes of a view's file; a query is shorter than a packet.
pub(super) const MAX_VIEW_BYTES: usize = 1 << 20;

/// Something that is named like a table, but is no table of InnoDB.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Beside {
    /// A view.
    View {
        /// The text of its query.
        query: String,
        /// Names of its columns; empty if they are those of the query.
        columns: Vec<String>,
    },
    /// A table of another engine.
    Engine(&'static str),
}

impl Catalog {
    /// What is called `name` in `database` and is no table of InnoDB. Runs on an executor's thread.
    ///
    /// # Errors
    /// If the folder or the file cannot be read.
    pub async fn beside(&self, database: &str, name: &str) -> Result<Option<Beside>> {
        if let Some(dictionary) = self.dictionary.as_ref().and_then(Dictionary::of_mysql) {
            let views = dictionary.views(database, &self.environment, &self.context).await?;
            if let Some((_, query, columns)) = views.into_iter().find(|(view, _, _)| view == name) {
                return Ok(Some(Beside::View { query, columns }));
            }
        }
        let Some(folder) = self.folders.get(database) else { return Ok(None) };
        let files = &*self.environment.files;
        let mut engine = None;
        let mut view: Option<PathBuf> = None;
        for path in super::listing::entries(files, folder)? {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            if decode(&stem) != name {
                continue;
            }
            let ending = path.extension().unwrap_or_default().to_string_lossy();
            engine = engine.or(ENGINES.iter().find(|(own, _)| *own == ending).map(|(_, engine)| *engine));
            if ending == "frm" {
                view = Some(path);
            }
        }
        if let Some(path) = view
            && let Some(query) = read_view(files, &path).await?
        {
            return Ok(Some(Beside::View { query, columns: Vec::new() }));
        }
        Ok(engine.map(Beside::Engine))
    }

    /// Names of the views of `database`, sorted; none where they cannot be read. Runs on an executor's thread.
    pub async fn views(&self, database: &str) -> Vec<String> {
        if let Some(dictionary) = self.dictionary.as_ref().and_then(Dictionary::of_mysql) {
            let views =
                dictionary.views(database, &self.environment, &self.context).await.unwrap_or_default();
            return views.into_iter().map(|(name, _, _)| name).collect();
        }
        let Some(folder) = self.folders.get(database) else { return Vec::new() };
        let files = &*self.environment.files;
        let mut names = Vec::new();
        for path in super::listing::entries(files, folder).unwrap_or_default() {
            let is_frm = path.extension().is_some_and(|ending| ending == "frm");
            if is_frm && files.read(&path, 0, VIEW.len()).await.is_ok_and(|begin| begin == VIEW) {
                names.push(decode(&path.file_stem().unwrap_or_default().to_string_lossy()));
            }
        }
        names.sort_unstable();
        names
    }
}

/// The query of a view; `None` if the file is no view's.
async fn read_view(files: &dyn Files, path: &Path) -> Result<Option<String>> {
    let read = files.read(path, 0, MAX_VIEW_BYTES).await;
    let bytes = read.map_err(|error| super::listing::unreadable(path, &error))?;
    if !bytes.starts_with(VIEW) {
        return Ok(None);
    }
    let text = String::from_utf8_lossy(&bytes);
    Ok(text.lines().find_map(|line| line.strip_prefix("query=")).map(unescaped))
}

/// A value of such a file, in which a backslash stands before what would end it.
pub(super) fn unescaped(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            text.push(character);
            continue;
        }
        match characters.next() {
            Some('n') => text.push('\n'),
            Some('0') => text.push('\0'),
            Some('z') => text.push('\u{1a}'),
            Some(other) => text.push(other),
            None => {}
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_view_files_are_unescaped() {
        assert_eq!(unescaped(r"select \'it\'\'s\',\n\\ from `t`"), "select 'it''s',\n\\ from `t`");
    }
}
