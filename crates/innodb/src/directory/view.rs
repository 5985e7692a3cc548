//! Views and databases as the server created them: what SHOW CREATE VIEW, SHOW CREATE DATABASE and
//! `information_schema` say of them.
//!
//! MySQL's dictionary has both. MariaDB has a view in a `.frm` of lines `name=value`, and the defaults of a database in
//! its `db.opt`, which a database without own defaults has not.

use std::path::Path;

use super::Catalog;
use super::beside::{MAX_VIEW_BYTES, VIEW, unescaped};
use super::dictionary::Dictionary;
use super::file_name::decode;
use crate::files::Files;
use crate::{Collation, Result};

/// The file with the defaults of a database.
const OPTIONS_FILE: &str = "db.opt";
/// Most bytes of it.
const MAX_OPTIONS_BYTES: usize = 1 << 16;

/// A view.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ViewDescription {
    /// Text of its query, with full names.
    pub query: String,
    /// Names that its definition gives to its columns (MySQL; in MariaDB the query has them).
    pub columns: Vec<String>,
    /// Whether rows can be changed through it. MariaDB shows what it finds out anew.
    pub is_updatable: bool,
    /// `UNDEFINED`, `MERGE` or `TEMPTABLE`.
    pub algorithm: &'static str,
    /// `DEFINER` or `INVOKER`.
    pub security: &'static str,
    /// `NONE`, `LOCAL` or `CASCADED`.
    pub check_option: &'static str,
    /// Who defined it: user and host.
    pub definer: (String, String),
    /// Character set of the client that created it.
    pub client_charset: Option<String>,
    /// Collation of the connection that created it.
    pub connection_collation: Option<String>,
    /// When it was created, in seconds since 1970 (MySQL).
    pub created_seconds: Option<i64>,
}

/// Defaults of a database.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DatabaseDescription {
    /// Its default collation, where the files tell it.
    pub collation: Option<Collation>,
    /// Its comment (MariaDB).
    pub comment: String,
    /// Whether its tables are encrypted by default (MySQL), where the files tell it.
    pub is_encrypted: Option<bool>,
}

impl Catalog {
    /// The view `name` of `database`. Runs on an executor's thread.
    ///
    /// # Errors
    /// If the dictionary or the file cannot be read.
    pub async fn view(&self, database: &str, name: &str) -> Result<Option<ViewDescription>> {
        if let Some(dictionary) = self.dictionary.as_ref().and_then(Dictionary::of_mysql) {
            let views = dictionary.described_views(database, &self.environment, &self.context).await?;
            return Ok(views.into_iter().find(|(view, _)| view == name).map(|(_, view)| view));
        }
        let Some(folder) = self.folders.get(database) else { return Ok(None) };
        let files = &*self.environment.files;
        for path in super::listing::entries(files, folder)? {
            let is_frm = path.extension().is_some_and(|ending| ending == "frm");
            if !is_frm || decode(&path.file_stem().unwrap_or_default().to_string_lossy()) != name {
                continue;
            }
            return read_file(files, &path).await;
        }
        Ok(None)
    }

    /// The defaults of `database`. Runs on an executor's thread.
    ///
    /// # Errors
    /// If the dictionary or the file cannot be read.
    pub async fn database(&self, database: &str) -> Result<DatabaseDescription> {
        if let Some(dictionary) = self.dictionary.as_ref().and_then(Dictionary::of_mysql) {
            return dictionary.described_database(database, &self.environment, &self.context).await;
        }
        let mut described = DatabaseDescription::default();
        let Some(folder) = self.folders.get(database) else { return Ok(described) };
        let (files, path) = (&*self.environment.files, folder.join(OPTIONS_FILE));
        if !files.exists(&path) {
            return Ok(described);
        }
        let read = files.read(&path, 0, MAX_OPTIONS_BYTES).await;
        let bytes = read.map_err(|error| super::listing::unreadable(&path, &error))?;
        let text = String::from_utf8_lossy(&bytes);
        for (key, value) in text.lines().filter_map(|line| line.split_once('=')) {
            match key {
                "default-collation" => described.collation = Collation::with_name(value),
                "comment" => described.comment = unescaped(value),
                _ => {}
            }
        }
        Ok(described)
    }
}

/// The view in a `.frm`; `None` if it is none of a view.
async fn read_file(files: &dyn Files, path: &Path) -> Result<Option<ViewDescription>> {
    let read = files.read(path, 0, MAX_VIEW_BYTES).await;
    let bytes = read.map_err(|error| super::listing::unreadable(path, &error))?;
    if !bytes.starts_with(VIEW) {
        return Ok(None);
    }
    Ok(Some(of_file(&String::from_utf8_lossy(&bytes))))
}

fn of_file(text: &str) -> ViewDescription {
    let value = |key: &str| {
        let mut pairs = text.lines().filter_map(|line| line.split_once('='));
        pairs.find(|(name, _)| *name == key).map(|(_, value)| unescaped(value))
    };
    ViewDescription {
        query: value("view_body_utf8").or_else(|| value("query")).unwrap_or_default(),
        columns: Vec::new(),
        is_updatable: value("updatable").as_deref() == Some("1"),
        algorithm: match value("algorithm").as_deref() {
            Some("1") => "MERGE",
            Some("2") => "TEMPTABLE",
            _ => "UNDEFINED",
        },
        security: if value("suid").as_deref() == Some("0") { "INVOKER" } else { "DEFINER" },
        check_option: match value("with_check_option").as_deref() {
            Some("1") => "LOCAL",
            Some("2") => "CASCADED",
            _ => "NONE",
        },
        definer: (value("definer_user").unwrap_or_default(), value("definer_host").unwrap_or_default()),
        client_charset: value("client_cs_name"),
        connection_collation: value("connection_cl_name"),
        created_seconds: None,
    }
}

/// The columns of the dictionary's table of views that [`of_row`] reads.
pub(super) const FIELDS: [&str; 13] = [
    "schema_id",
    "name",
    "type",
    "view_definition_utf8",
    "view_is_updatable",
    "view_algorithm",
    "view_security_type",
    "view_check_option",
    "view_definer",
    "view_client_collation_id",
    "view_connection_collation_id",
    "view_column_names",
    "created",
];

/// A view of a row of the dictionary with [`FIELDS`].
pub(super) fn of_row(row: &[String]) -> ViewDescription {
    let field = |name: &str| {
        let at = FIELDS.iter().position(|field| *field == name);
        at.and_then(|at| row.get(at)).map(String::as_str).unwrap_or_default()
    };
    let collation = |name: &str| field(name).parse().ok().and_then(Collation::with_id);
    let definer = field("view_definer");
    let (user, host) = definer.rsplit_once('@').unwrap_or((definer, ""));
    ViewDescription {
        query: field("view_definition_utf8").to_owned(),
        columns: column_names(field("view_column_names")),
        is_updatable: field("view_is_updatable") == "YES",
        algorithm: match field("view_algorithm") {
            "MERGE" => "MERGE",
            "TEMPTABLE" => "TEMPTABLE",
            _ => "UNDEFINED",
        },
        security: if field("view_security_type") == "INVOKER" { "INVOKER" } else { "DEFINER" },
        check_option: match field("view_check_option") {
            "LOCAL" => "LOCAL",
            "CASCADED" => "CASCADED",
            _ => "NONE",
        },
        definer: (user.to_owned(), host.to_owned()),
        client_charset: collation("view_client_collation_id").map(|of| of.charset),
        connection_collation: collation("view_connection_collation_id").map(|of| of.name),
        created_seconds: field("created").parse::<i64>().ok().map(|micros| micros.div_euclid(1_000_000)),
    }
}

/// The names in `1=a;2=b;`, in which a backslash stands before what would end one.
fn column_names(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut name = None;
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        match (&mut name, c) {
            (None, '=') => name = Some(String::new()),
            (None, _) => {}
            (Some(of), '\\') => of.extend(characters.next()),
            (Some(_), ';') => names.extend(name.take()),
            (Some(of), c) => of.push(c),
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_of_mariadb_are_read() {
        let view = of_file(
            "TYPE=VIEW\nquery=select \\'it\\\\\\'s\\' AS `t`\nmd5=a\nupdatable=1\nalgorithm=1\ndefiner_user=root\n\
             definer_host=%\nsuid=0\nwith_check_option=2\nclient_cs_name=utf8mb3\n\
             connection_cl_name=utf8mb3_general_ci\nview_body_utf8=select \\'it\\\\\\'s\\' AS `t`\n",
        );
        let expected = ViewDescription {
            query: "select 'it\\'s' AS `t`".to_owned(),
            is_updatable: true,
            algorithm: "MERGE",
            security: "INVOKER",
            check_option: "CASCADED",
            definer: ("root".to_owned(), "%".to_owned()),
            client_charset: Some("utf8mb3".to_owned()),
            connection_collation: Some("utf8mb3_general_ci".to_owned()),
            ..ViewDescription::default()
        };
        assert_eq!(view, expected);
    }

    #[test]
    fn names_of_columns_are_unescaped() {
        assert_eq!(column_names("1=p;2=a\\;b\\=;"), ["p", "a;b="]);
        assert!(column_names("").is_empty());
    }
}
