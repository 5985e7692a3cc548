//! Formats of files, and files of tables.

use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;

use super::parquet::ParquetFile;
use crate::store::{FileStore, Identity};
use crate::{Error, ErrorKind, Result};

/// How the files of a table are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FileFormat {
    /// Apache Parquet.
    Parquet,
}

impl FileFormat {
    /// The format of that name.
    ///
    /// # Errors
    /// `Unsupported` if it is not known.
    pub(crate) fn named(name: &str) -> Result<FileFormat> {
        match name.to_ascii_uppercase().as_str() {
            "PARQUET" => Ok(FileFormat::Parquet),
            _ => {
                let message = format!("STORED AS {name} is not known; use PARQUET");
                Err(Error::new(ErrorKind::Unsupported, message))
            }
        }
    }

    /// What names of such files end with.
    pub(crate) fn extensions(&self) -> &'static [&'static str] {
        match self {
            FileFormat::Parquet => &[".parquet"],
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
}

impl TableFile {
    /// The fields of its columns.
    pub(crate) fn schema(&self) -> &SchemaRef {
        match &self.content {
            Content::Parquet(file) => file.schema(),
        }
    }
}
