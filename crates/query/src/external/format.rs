//! Formats of files, and files of tables.

use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;

use super::parquet::ParquetFile;
use super::text::{Lines, TextFile};
use crate::store::{FileStore, Identity};
use crate::{Error, ErrorKind, Result};

/// How the files of a table are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FileFormat {
    /// Apache Parquet.
    Parquet,
    /// CSV or newline-delimited JSON, whose columns a statement may declare.
    Text(Lines, Option<SchemaRef>),
}

/// What a statement says of a table's files.
#[derive(Debug, Default)]
pub(crate) struct Wanted<'a> {
    /// The format's name.
    pub(crate) name: &'a str,
    pub(crate) options: &'a [(String, String)],
    pub(crate) declared: Option<SchemaRef>,
}

impl FileFormat {
    /// The format that a statement names.
    ///
    /// # Errors
    /// `Unsupported` if it is not known, or cannot have such columns; if it has no such option.
    pub(crate) fn new(wanted: Wanted<'_>) -> Result<FileFormat> {
        let mut format = match (wanted.name.to_ascii_uppercase().as_str(), wanted.declared) {
            ("PARQUET", None) => FileFormat::Parquet,
            ("PARQUET", Some(_)) => {
                let message =
                    "a Parquet file says itself which columns it has; leave the list of columns out";
                return Err(Error::new(ErrorKind::Unsupported, message));
            }
            ("CSV", declared) => FileFormat::Text(Lines::csv(), declared),
            ("JSON" | "NDJSON" | "JSONL", declared) => FileFormat::Text(Lines::Json, declared),
            (name, _) => {
                let message = format!("STORED AS {name} is not known; use PARQUET, CSV or JSON");
                return Err(Error::new(ErrorKind::Unsupported, message));
            }
        };
        for (key, value) in wanted.options {
            let key = key.to_ascii_lowercase();
            format.set(key.strip_prefix("format.").unwrap_or(&key), value)?;
        }
        Ok(format)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        let name = self.name();
        let FileFormat::Text(lines, _) = self else {
            let message = format!("there is no option '{key}' of {name} files that are read");
            return Err(Error::new(ErrorKind::InvalidInput, message));
        };
        lines.set(key, value)
    }

    /// What names of such files end with.
    pub(crate) fn extensions(&self) -> &'static [&'static str] {
        match self {
            FileFormat::Parquet => &[".parquet"],
            FileFormat::Text(Lines::Csv { .. }, _) => &[".csv"],
            FileFormat::Text(Lines::Json, _) => &[".json", ".jsonl", ".ndjson"],
        }
    }

    /// Whether a name is one of such a file.
    pub(crate) fn has_file(&self, name: &str) -> bool {
        let name = name.to_ascii_lowercase();
        self.extensions().iter().any(|extension| name.ends_with(extension) && name.len() > extension.len())
    }

    /// What messages and plans call it.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            FileFormat::Parquet => "parquet",
            FileFormat::Text(Lines::Csv { .. }, _) => "csv",
            FileFormat::Text(Lines::Json, _) => "json",
        }
    }

    /// Looks at a file.
    ///
    /// # Errors
    /// If it is none of this format.
    pub(crate) async fn open(&self, store: &FileStore, name: String) -> Result<TableFile> {
        match self {
            FileFormat::Parquet => {
                let file = ParquetFile::open(store, &name).await?;
                let (identity, shown) = (file.identity, file.shown.clone());
                Ok(TableFile { name, shown, identity, content: Content::Parquet(Arc::new(file)) })
            }
            FileFormat::Text(lines, declared) => {
                let file = TextFile::open(store, &name, lines, declared.as_ref()).await?;
                let (identity, shown) = (file.identity, file.shown.clone());
                Ok(TableFile { name, shown, identity, content: Content::Text(Arc::new(file)) })
            }
        }
    }
}

/// A file of a table.
#[derive(Debug)]
pub(crate) struct TableFile {
    /// Its name on its medium.
    pub(crate) name: String,
    /// What messages call it.
    pub(crate) shown: String,
    pub(crate) identity: Identity,
    pub(crate) content: Content,
}

/// What is known of a file.
#[derive(Debug)]
pub(crate) enum Content {
    Parquet(Arc<ParquetFile>),
    Text(Arc<TextFile>),
}

impl TableFile {
    /// The fields of its columns.
    pub(crate) fn schema(&self) -> &SchemaRef {
        match &self.content {
            Content::Parquet(file) => file.schema(),
            Content::Text(file) => &file.schema,
        }
    }
}
