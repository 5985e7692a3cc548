//! Writes the mirror of one column: a Parquet file with a checksum of each group of rows and of its footer.
//!
//! The checksum of the footer is in the footer: it is computed with zeros in its place.

use std::sync::Arc;

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::arrow::record_batch::RecordBatch;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};

use super::file::{CHECKSUM_KEY, CHECKSUM_PLACE, DESCRIPTION_KEY, Description, TAIL_BYTES, with_checksum};
use super::types::{has_partial_dates, stored, stored_type};
use crate::external::parquet::place;
use crate::{Error, ErrorKind, Result};

/// Rows of a page of a column.
const PAGE_ROWS: usize = 8192;

/// The mirror of one column that is being written.
pub(super) struct ColumnWriter {
    writer: ArrowWriter<Vec<u8>>,
    schema: SchemaRef,
    description: Description,
    /// Bytes that were taken from the writer.
    taken: u64,
}

impl ColumnWriter {
    /// A writer of a column of type `data_type`.
    ///
    /// # Errors
    /// If the type cannot be written.
    pub(super) fn new(data_type: &DataType, description: Description) -> Result<ColumnWriter> {
        let data_type = stored_type(data_type);
        let is_text = matches!(data_type, DataType::Utf8View | DataType::BinaryView);
        // A dictionary may take two zeros of different signs for one.
        let has_dictionary = !data_type.is_floating();
        let schema = Arc::new(Schema::new(vec![Field::new("values", data_type, true)]));
        let properties = WriterProperties::builder()
            .set_compression(if is_text { Compression::LZ4_RAW } else { Compression::UNCOMPRESSED })
            .set_dictionary_enabled(has_dictionary)
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_offset_index_disabled(true)
            .set_data_page_row_count_limit(PAGE_ROWS)
            .set_max_row_group_row_count(Some(description.group_rows as usize))
            .set_created_by(format!("tanada {}", env!("CARGO_PKG_VERSION")))
            .build();
        let writer = ArrowWriter::try_new(Vec::new(), Arc::clone(&schema), Some(properties));
        Ok(ColumnWriter { writer: writer.map_err(|error| failed(&error))?, schema, description, taken: 0 })
    }

    /// Writes values; the bytes that are complete.
    ///
    /// # Errors
    /// If they are not of the column's type.
    pub(super) fn write(&mut self, values: &ArrayRef) -> Result<Vec<u8>> {
        self.description.has_partial_dates |= has_partial_dates(values);
        self.description.rows += values.len() as u64;
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), vec![stored(values)?]);
        let batch = batch.map_err(|error| Error::new(ErrorKind::Internal, error.to_string()))?;
        self.writer.write(&batch).map_err(|error| failed(&error))?;
        self.complete()
    }

    /// The bytes that are complete; notes the checksums of the groups among them.
    fn complete(&mut self) -> Result<Vec<u8>> {
        let unwritten = |error: std::io::Error| Error::new(ErrorKind::Internal, error.to_string());
        self.writer.sync().map_err(unwritten)?;
        let bytes = std::mem::take(self.writer.inner_mut());
        let start = self.taken;
        self.taken += bytes.len() as u64;
        let known = self.description.checksums.len();
        for group in self.writer.flushed_row_groups().iter().skip(known) {
            let chunk = group.columns().first().and_then(place).and_then(|chunk| {
                let (begin, end) = (chunk.start.checked_sub(start)?, chunk.end.checked_sub(start)?);
                bytes.get(usize::try_from(begin).ok()?..usize::try_from(end).ok()?)
            });
            let chunk = chunk.ok_or_else(|| Error::new(ErrorKind::Internal, "a group lies elsewhere"))?;
            self.description.checksums.push(crc32fast::hash(chunk));
        }
        Ok(bytes)
    }

    /// Ends the file; the rest of its bytes.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub(super) fn finish(mut self) -> Result<Vec<u8>> {
        self.writer.flush().map_err(|error| failed(&error))?;
        let mut rest = self.complete()?;
        let description = serde_json::to_string(&self.description)
            .map_err(|error| Error::new(ErrorKind::Internal, error.to_string()))?;
        self.writer.append_key_value_metadata(KeyValue::new(DESCRIPTION_KEY.to_string(), description));
        self.writer
            .append_key_value_metadata(KeyValue::new(CHECKSUM_KEY.to_string(), CHECKSUM_PLACE.to_string()));
        self.writer.finish().map_err(|error| failed(&error))?;
        let mut end = std::mem::take(self.writer.inner_mut());
        let internal = || Error::new(ErrorKind::Internal, "a mirror has no footer");
        let footer_end = end.len().checked_sub(TAIL_BYTES).ok_or_else(internal)?;
        let length = end.get(footer_end..footer_end + 4).and_then(|length| length.try_into().ok());
        let length = length.map_or(0, u32::from_le_bytes) as usize;
        let begin = footer_end.checked_sub(length).ok_or_else(internal)?;
        let footer = with_checksum(&end[begin..footer_end]).ok_or_else(internal)?;
        end[begin..footer_end].copy_from_slice(&footer);
        rest.extend(end);
        Ok(rest)
    }
}

fn failed(error: &ParquetError) -> Error {
    Error::new(ErrorKind::Internal, format!("a mirror cannot be written: {error}"))
}
