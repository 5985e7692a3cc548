//! CSV and newline-delimited JSON files: their columns, told by their first rows or by the table's statement, and their
//! rows, decoded as they are read.

use std::sync::Arc;

use bytes::{Buf, Bytes};
use datafusion::arrow::array::{ArrayRef, AsArray};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::csv::reader::{Decoder as CsvDecoder, Format, ReaderBuilder as CsvBuilder};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::json::reader::{
    Decoder as JsonDecoder, ReaderBuilder as JsonBuilder, infer_json_schema,
};
use datafusion::arrow::record_batch::RecordBatch;
use regex::Regex;

use crate::store::{FileStore, Identity};
use crate::{Error, ErrorKind, Result};

/// Bytes of a file that its columns are told by.
const SAMPLE_BYTES: u64 = 1 << 20;
/// Rows of a batch.
const BATCH_ROWS: usize = 8192;

/// How lines are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Lines {
    /// Comma-separated values.
    Csv {
        delimiter: u8,
        has_header: bool,
        /// Which values are NULL.
        null_regex: String,
    },
    /// An object a line.
    Json,
}

impl Lines {
    /// CSV as COPY writes it.
    pub(crate) fn csv() -> Lines {
        Lines::Csv { delimiter: b',', has_header: true, null_regex: "^\\\\N$".to_string() }
    }

    /// Sets an option.
    ///
    /// # Errors
    /// `InvalidInput` if there is no such option, or it cannot have this value.
    pub(super) fn set(&mut self, key: &str, value: &str) -> Result<()> {
        let wrong = |use_this: &str| {
            let message = format!("option {key} cannot be '{value}'; use {use_this}");
            Err(Error::new(ErrorKind::InvalidInput, message))
        };
        match (key, self) {
            ("delimiter", Lines::Csv { delimiter, .. }) => match (value, value.as_bytes()) {
                ("\\t", _) => *delimiter = b'\t',
                (_, [sign]) if sign.is_ascii() && !matches!(sign, b'"' | b'\r' | b'\n') => *delimiter = *sign,
                _ => return wrong("one sign, for instance ; or \\t"),
            },
            ("has_header", Lines::Csv { has_header, .. }) => match value.to_ascii_lowercase().as_str() {
                "true" | "1" | "on" => *has_header = true,
                "false" | "0" | "off" => *has_header = false,
                _ => return wrong("true or false"),
            },
            ("null_regex", Lines::Csv { null_regex, .. }) => *null_regex = pattern(value)?.to_string(),
            ("null_value", Lines::Csv { null_regex, .. }) => {
                *null_regex = format!("^{}$", regex::escape(value));
            }
            (_, lines) => {
                let known = match lines {
                    Lines::Csv { .. } => "; known are delimiter, has_header, null_value, null_regex",
                    Lines::Json => "",
                };
                let message = format!("there is no option '{key}' of {} files{known}", lines.name());
                return Err(Error::new(ErrorKind::InvalidInput, message));
            }
        }
        Ok(())
    }

    fn name(&self) -> &'static str {
        match self {
            Lines::Csv { .. } => "CSV",
            Lines::Json => "JSON",
        }
    }
}

/// A file of lines.
#[derive(Debug)]
pub(crate) struct TextFile {
    pub(crate) identity: Identity,
    /// What messages call the file.
    pub(crate) shown: String,
    pub(crate) schema: SchemaRef,
    lines: Lines,
}

fn pattern(of: &str) -> Result<Regex> {
    Regex::new(of).map_err(|_| {
        Error::new(
            ErrorKind::InvalidInput,
            format!("option null_regex cannot be '{of}': it is no regular expression"),
        )
    })
}

impl TextFile {
    /// Looks at a file. Its columns are `declared`, or told by its first rows.
    ///
    /// # Errors
    /// `Data` if its first rows are no lines of the format.
    pub(crate) async fn open(
        store: &FileStore,
        name: &str,
        lines: &Lines,
        declared: Option<&SchemaRef>,
    ) -> Result<TextFile> {
        let identity = store.opened(name)?.identity;
        let shown = store.medium().shown(name);
        let schema = match declared {
            Some(declared) => Arc::clone(declared),
            None => {
                let end = identity.bytes.min(SAMPLE_BYTES);
                let sample = store.read_range(name, 0..end).await?;
                Arc::new(told(whole_lines(&sample, end == identity.bytes), lines, &shown)?)
            }
        };
        Ok(TextFile { identity, shown, schema, lines: lines.clone() })
    }

    /// A decoder of its rows.
    ///
    /// # Errors
    /// If its columns cannot be decoded.
    pub(crate) fn decoder(&self) -> Result<LineDecoder> {
        let schema = with_texts(&self.schema);
        let decoder = match &self.lines {
            Lines::Csv { delimiter, has_header, null_regex } => AnyDecoder::Csv(Box::new(
                CsvBuilder::new(schema)
                    .with_header(*has_header)
                    .with_delimiter(*delimiter)
                    .with_null_regex(pattern(null_regex)?)
                    .with_batch_size(BATCH_ROWS)
                    .build_decoder(),
            )),
            Lines::Json => {
                let has_decimals = schema != self.schema;
                let builder =
                    JsonBuilder::new(schema).with_batch_size(BATCH_ROWS).with_coerce_primitive(has_decimals);
                let decoder = builder.build_decoder().map_err(|error| self.failed(&error))?;
                AnyDecoder::Json(Box::new(decoder))
            }
        };
        Ok(LineDecoder { decoder, schema: Arc::clone(&self.schema) })
    }

    /// The error for lines that cannot be decoded.
    pub(crate) fn failed(&self, error: &ArrowError) -> Error {
        failed(&self.shown, &self.lines, &self.schema, error)
    }
}

/// The sample up to its last complete line; all of it if it is the whole file.
fn whole_lines(sample: &[u8], is_whole: bool) -> &[u8] {
    let end = sample.iter().rposition(|byte| *byte == b'\n').map_or(sample.len(), |at| at + 1);
    if is_whole { sample } else { &sample[..end] }
}

/// The columns that the first rows tell.
fn told(sample: &[u8], lines: &Lines, shown: &str) -> Result<Schema> {
    let no_columns = Arc::new(Schema::empty());
    let failed = |error: ArrowError| failed(shown, lines, &no_columns, &error);
    let schema = match lines {
        Lines::Csv { delimiter, has_header, null_regex } => {
            let format = Format::default()
                .with_header(*has_header)
                .with_delimiter(*delimiter)
                .with_null_regex(pattern(null_regex)?);
            format.infer_schema(sample, None).map_err(failed)?.0
        }
        Lines::Json => infer_json_schema(sample, None).map_err(failed)?.0,
    };
    // Of a column that has only NULLs there nothing is told.
    let fields = schema.fields().iter().map(|field| {
        let data_type = match field.data_type() {
            DataType::Null => DataType::Utf8,
            other => other.clone(),
        };
        Field::new(field.name(), data_type, true)
    });
    Ok(Schema::new(fields.collect::<Vec<_>>()))
}

/// What is wrong with a line, in words of SQL.
fn failed(shown: &str, lines: &Lines, schema: &Schema, error: &ArrowError) -> Error {
    let text = error.to_string();
    let text = text.lines().next().unwrap_or_default();
    let quoted = |from: &str, to: &str| {
        let rest = text.split_once(from)?.1;
        Some(rest.split_once(to).map_or(rest, |(found, _)| found).to_string())
    };
    let message = match (quoted("parsing value '", "' as type"), quoted("for column ", " at line")) {
        (Some(value), Some(column)) => {
            let line = quoted("at line ", ".").unwrap_or_default();
            let name = column.trim().parse().ok().and_then(|no: usize| schema.fields().get(no));
            let name = name.map_or(column.clone(), |field| field.name().clone());
            format!(
                "{shown}, line {line}: '{value}' does not fit column {name}; declare the columns: CREATE \
                 EXTERNAL TABLE t ({name} TEXT, ...)"
            )
        }
        _ => {
            let text = text.split_once(": ").map_or(text, |(_, text)| text);
            format!("{shown} cannot be read as {}: {text}", lines.name())
        }
    };
    Error::new(ErrorKind::Data, message)
}

/// Decodes lines that come in parts.
pub(crate) struct LineDecoder {
    decoder: AnyDecoder,
    schema: SchemaRef,
}

enum AnyDecoder {
    Csv(Box<CsvDecoder>),
    Json(Box<JsonDecoder>),
}

impl LineDecoder {
    /// Takes bytes until a batch is full or all are taken; the batch.
    ///
    /// # Errors
    /// If they are no lines of the format.
    pub(crate) fn decode(
        &mut self,
        bytes: &mut Bytes,
    ) -> std::result::Result<Option<RecordBatch>, ArrowError> {
        while !bytes.is_empty() {
            let taken = match &mut self.decoder {
                AnyDecoder::Csv(decoder) => decoder.decode(bytes)?,
                AnyDecoder::Json(decoder) => decoder.decode(bytes)?,
            };
            bytes.advance(taken);
            if taken == 0 {
                let batch = self.flush()?;
                let stuck = || ArrowError::ParseError("a line cannot be decoded".to_string());
                return batch.map(Some).ok_or_else(stuck);
            }
        }
        Ok(None)
    }

    /// The last rows.
    ///
    /// # Errors
    /// If the last line is not complete.
    pub(crate) fn finish(&mut self) -> std::result::Result<Option<RecordBatch>, ArrowError> {
        match &mut self.decoder {
            AnyDecoder::Csv(decoder) => {
                decoder.decode(&[])?;
            }
            AnyDecoder::Json(decoder) if decoder.has_partial_record() => {
                return Err(ArrowError::ParseError("the last line is not complete".to_string()));
            }
            AnyDecoder::Json(_) => {}
        }
        self.flush()
    }

    fn flush(&mut self) -> std::result::Result<Option<RecordBatch>, ArrowError> {
        let batch = match &mut self.decoder {
            AnyDecoder::Csv(decoder) => decoder.flush()?,
            AnyDecoder::Json(decoder) => decoder.flush()?,
        };
        batch.map(|batch| self.with_decimals(&batch)).transpose()
    }

    /// The batch with its columns of DECIMAL, which were decoded as texts.
    fn with_decimals(&self, batch: &RecordBatch) -> std::result::Result<RecordBatch, ArrowError> {
        let columns = batch.columns().iter().zip(self.schema.fields());
        let columns = columns.map(|(column, field)| match column.data_type() == field.data_type() {
            true => Ok(Arc::clone(column)),
            false => decimals(column, field),
        });
        RecordBatch::try_new(Arc::clone(&self.schema), columns.collect::<std::result::Result<_, _>>()?)
    }
}

/// The columns with texts instead of DECIMAL: the decoders would cut digits off.
fn with_texts(schema: &SchemaRef) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| match field.data_type().is_decimal() {
        true => Arc::new(field.as_ref().clone().with_data_type(DataType::Utf8)),
        false => Arc::clone(field),
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// Numbers of a DECIMAL column, as they are spelled.
fn decimals(column: &ArrayRef, field: &Field) -> std::result::Result<ArrayRef, ArrowError> {
    let scale = match field.data_type() {
        DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale) => usize::from(scale.unsigned_abs()),
        _ => 0,
    };
    let is_exact = |text: &str| {
        let fraction = text.trim().split_once('.').map_or("", |(_, fraction)| fraction);
        fraction.trim_end_matches('0').len() <= scale && !text.contains(['e', 'E'])
    };
    if let Some(text) = column.as_string::<i32>().iter().flatten().find(|text| !is_exact(text)) {
        let message =
            format!("'{text}' has more digits than column {} keeps; declare it with more", field.name());
        return Err(ArrowError::ParseError(message));
    }
    let options = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(column, field.data_type(), &options)
}
