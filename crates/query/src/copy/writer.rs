//! Batches as the bytes of a file.

use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::arrow::record_batch::RecordBatch;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use super::columns::{file_batch, file_schema};
use super::options::CopyFormat;
use super::text::{CsvLines, JsonLines};
use crate::{Error, ErrorKind, Result};

/// Most bytes of a row group before it is written.
const ROW_GROUP_BYTES: usize = 128 << 20;

/// Writes batches of one schema.
pub(crate) enum FileWriter {
    Parquet { writer: Box<ArrowWriter<Vec<u8>>>, schema: SchemaRef },
    Csv(CsvLines),
    Json(JsonLines),
}

fn failed(error: &ParquetError) -> Error {
    let message = format!("this result cannot be written as a Parquet file: {error}");
    Error::new(ErrorKind::Unsupported, message.lines().next().unwrap_or_default())
}

fn properties(compression: Compression, row_group_rows: usize) -> WriterProperties {
    WriterProperties::builder()
        .set_compression(compression)
        .set_created_by(format!("tanada {}", env!("CARGO_PKG_VERSION")))
        .set_max_row_group_row_count(Some(row_group_rows))
        .set_max_row_group_bytes(Some(ROW_GROUP_BYTES))
        .build()
}

impl FileWriter {
    /// A writer of `format` for a result.
    ///
    /// # Errors
    /// If the result has columns that the format cannot hold.
    pub(crate) fn new(format: &CopyFormat, result: &Schema) -> Result<FileWriter> {
        let schema = file_schema(result)?;
        Ok(match format {
            CopyFormat::Parquet { compression, row_group_rows } => {
                let properties = properties(*compression, *row_group_rows);
                let writer = ArrowWriter::try_new(Vec::new(), schema.clone(), Some(properties));
                FileWriter::Parquet { writer: Box::new(writer.map_err(|error| failed(&error))?), schema }
            }
            CopyFormat::Csv { delimiter, has_header, null_value } => {
                FileWriter::Csv(CsvLines::new(*delimiter, *has_header, null_value.clone()))
            }
            CopyFormat::Json => FileWriter::Json(JsonLines::new(result)?),
        })
    }

    /// Writes a batch; the bytes that are complete.
    ///
    /// # Errors
    /// `Unsupported` if the format cannot hold a value.
    pub(crate) fn write(&mut self, batch: &RecordBatch) -> Result<Vec<u8>> {
        match self {
            FileWriter::Parquet { writer, schema } => {
                writer.write(&file_batch(batch, schema)?).map_err(|error| failed(&error))?;
                Ok(std::mem::take(writer.inner_mut()))
            }
            FileWriter::Csv(lines) => lines.write(batch),
            FileWriter::Json(lines) => lines.write(batch),
        }
    }

    /// Ends the file; the rest of its bytes.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub(crate) fn finish(self, result: &Schema) -> Result<Vec<u8>> {
        match self {
            FileWriter::Parquet { mut writer, .. } => {
                writer.finish().map_err(|error| failed(&error))?;
                Ok(std::mem::take(writer.inner_mut()))
            }
            FileWriter::Csv(mut lines) => Ok(lines.header(result)),
            FileWriter::Json(_) => Ok(Vec::new()),
        }
    }
}
