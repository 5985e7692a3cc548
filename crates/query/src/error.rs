//! The crate's error.

use datafusion::arrow::error::ArrowError;
use datafusion::common::DataFusionError;
use datafusion::sql::sqlparser::parser::ParserError;

/// What a caller can do about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The SQL, a setting or a path is wrong.
    InvalidInput,
    /// No such database, table or column.
    NotFound,
    /// The data needs something that is not read, or the SQL something that is not run.
    Unsupported,
    /// Data on disk is damaged or not clean.
    Data,
    /// Reading failed.
    Io,
    /// Memory or another limit was exceeded.
    Resources,
    /// The query was cancelled.
    Cancelled,
    /// A fault of the program.
    Internal,
}

/// What failed, where, and what to do.
#[derive(Debug, Clone)]
pub struct Error {
    kind: ErrorKind,
    message: String,
}

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error of `kind`.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error { kind, message: message.into() }
    }
    /// What a caller can do.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}
impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}
impl std::error::Error for Error {}

impl From<tanada_innodb::Error> for Error {
    fn from(error: tanada_innodb::Error) -> Error {
        use tanada_innodb::ErrorKind as Inner;
        let kind = match error.kind() {
            Inner::InvalidInput => ErrorKind::InvalidInput,
            Inner::NotFound => ErrorKind::NotFound,
            Inner::Unsupported => ErrorKind::Unsupported,
            Inner::NotClean | Inner::Corrupt => ErrorKind::Data,
            Inner::Cancelled => ErrorKind::Cancelled,
            _ => ErrorKind::Io,
        };
        Error::new(kind, error.to_string())
    }
}

impl From<tanada_io::Error> for Error {
    fn from(error: tanada_io::Error) -> Error {
        tanada_innodb::Error::from(error).into()
    }
}

impl From<tanada_volume::Error> for Error {
    fn from(error: tanada_volume::Error) -> Error {
        use tanada_volume::ErrorKind as Inner;
        let kind = match error.kind() {
            Inner::InvalidInput => ErrorKind::InvalidInput,
            Inner::NotFound => ErrorKind::NotFound,
            Inner::Corrupted | Inner::WrongVolume | Inner::Changed => ErrorKind::Data,
            Inner::FutureFormat => ErrorKind::Unsupported,
            Inner::Cancelled => ErrorKind::Cancelled,
            Inner::NoSpace | Inner::QuotaExceeded => ErrorKind::Resources,
            _ => ErrorKind::Io,
        };
        Error::new(kind, error.to_string())
    }
}

impl From<tanada_placement::live::KeepError> for Error {
    fn from(error: tanada_placement::live::KeepError) -> Error {
        use tanada_placement::live::KeepError;
        match error {
            KeepError::Volume(error) => error.into(),
            KeepError::Foreign(_) => Error::new(ErrorKind::InvalidInput, error.to_string()),
        }
    }
}

impl From<Error> for DataFusionError {
    fn from(error: Error) -> DataFusionError {
        DataFusionError::External(Box::new(error))
    }
}

impl From<DataFusionError> for Error {
    fn from(error: DataFusionError) -> Error {
        let root = root(&error);
        if let DataFusionError::External(inner) = root
            && let Some(own) = own_error(inner.as_ref())
        {
            return own;
        }
        // Files for temporary data are written through the standard library's interface.
        if let Some(own) = io_error(root).and_then(|io| io.get_ref()).and_then(|inner| own_error(inner)) {
            return own;
        }
        let kind = match root {
            DataFusionError::SQL(..)
            | DataFusionError::Plan(_)
            | DataFusionError::Configuration(_)
            | DataFusionError::ArrowError(..)
            | DataFusionError::Execution(_) => ErrorKind::InvalidInput,
            DataFusionError::SchemaError(..) => ErrorKind::NotFound,
            DataFusionError::NotImplemented(_) => ErrorKind::Unsupported,
            DataFusionError::ResourcesExhausted(_) => ErrorKind::Resources,
            DataFusionError::IoError(_) | DataFusionError::ObjectStore(_) => ErrorKind::Io,
            _ => ErrorKind::Internal,
        };
        if let DataFusionError::SQL(error, _) = root {
            return Error::new(kind, one_line(&not_parsed(error)));
        }
        let message = one_line(&root.message());
        if kind == ErrorKind::Resources || kind == ErrorKind::Io || !shows_engine(&message) {
            return Error::new(kind, message);
        }
        match kind {
            ErrorKind::NotFound | ErrorKind::InvalidInput => Error::new(ErrorKind::Unsupported, NOT_RUN),
            ErrorKind::Internal => Error::new(kind, FAULT),
            kind => Error::new(kind, NOT_RUN),
        }
    }
}

/// Said instead of what only those understand who know the engine below.
const NOT_RUN: &str = "the statement combines types or clauses in a way that is not supported";

/// Said of an inconsistency that the engine below found in itself.
const FAULT: &str = "the statement could not be run: a fault of Tanada, which a report would help to mend";

/// Words of the engine below, none of SQL.
const ENGINE_WORDS: [&str; 27] = [
    "Utf8",
    "Int8",
    "Int16",
    "Int32",
    "Int64",
    "Float32",
    "Float64",
    "Decimal128",
    "Decimal256",
    "Date32",
    "Timestamp(",
    "Time64",
    "Binary(",
    "DataFusion",
    "datafusion",
    "Arrow",
    "arrow",
    "LogicalPlan",
    "ExecutionPlan",
    "ScalarFunction",
    "AggregateFunction",
    "coerc",
    "signature",
    "schema",
    "sqltorel",
    "__",
    "::",
];

/// Whether a message tells of the engine below.
fn shows_engine(message: &str) -> bool {
    ENGINE_WORDS.iter().any(|word| message.contains(word))
}

/// The innermost error of DataFusion: contexts, shared and collected ones taken off.
fn root(error: &DataFusionError) -> &DataFusionError {
    match error {
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => root(inner),
        DataFusionError::Shared(inner) => root(inner),
        DataFusionError::Collection(errors) => errors.first().map_or(error, root),
        DataFusionError::External(inner) => match inner.downcast_ref::<DataFusionError>() {
            Some(inner) => root(inner),
            None => error,
        },
        DataFusionError::ArrowError(inner, _) => match inner.as_ref() {
            ArrowError::ExternalError(inner) => inner.downcast_ref::<DataFusionError>().map_or(error, root),
            _ => error,
        },
        error => error,
    }
}

/// What is wrong with a statement, and where.
fn not_parsed(error: &ParserError) -> String {
    let text = match error {
        ParserError::TokenizerError(text) | ParserError::ParserError(text) => text,
        ParserError::RecursionLimitExceeded => return "the statement is nested too deeply".to_string(),
    };
    let (what, place) = text.split_once(" at Line: ").unwrap_or((text, ""));
    let mut message = what.replace("Expected: ", "expected ").replace("found: EOF", "found its end");
    message = message.replace("found: ", "found ");
    if let Some((line, column)) = place.split_once(", Column: ") {
        message = format!("{message} at line {line}, column {column}");
    }
    format!("the statement cannot be parsed: {message}")
}

/// The error of the standard library that stands behind this one.
fn io_error(error: &DataFusionError) -> Option<&std::io::Error> {
    match error {
        DataFusionError::IoError(io) => Some(io),
        DataFusionError::ArrowError(inner, _) => match inner.as_ref() {
            ArrowError::IoError(_, io) => Some(io),
            _ => None,
        },
        _ => None,
    }
}

fn own_error(error: &(dyn std::error::Error + 'static)) -> Option<Error> {
    if let Some(own) = error.downcast_ref::<Error>() {
        return Some(own.clone());
    }
    if let Some(inner) = error.downcast_ref::<tanada_innodb::Error>() {
        return Some(inner.clone().into());
    }
    error.downcast_ref::<tanada_io::Error>().map(|inner| inner.clone().into())
}

/// The first line of a message that may go on with a backtrace or hints, without its last full stop.
fn one_line(message: &str) -> String {
    message.lines().next().unwrap_or_default().trim_end_matches('.').to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_layers_below_come_through_unchanged() {
        let inner = tanada_innodb::Error::new(
            tanada_innodb::ErrorKind::Corrupt,
            "space 5, page 7: checksum mismatch",
        );
        let wrapped = DataFusionError::External(Box::new(inner)).context("while scanning");
        let error = Error::from(wrapped);
        assert_eq!(error.kind(), ErrorKind::Data);
        assert_eq!(error.to_string(), "space 5, page 7: checksum mismatch");
        let again = Error::from(DataFusionError::from(error));
        assert_eq!(again.kind(), ErrorKind::Data);
    }

    #[test]
    fn messages_hide_the_engine_below() {
        for message in [
            "Cannot coerce arithmetic expression Utf8 + Date32 to valid types",
            "type_coercion: There isn't a common type to coerce Int64 and List(Utf8)",
            "Schema error: No field named t.__number",
            "Invalid argument error: column types must match schema types, expected Int64 but found Utf8",
        ] {
            let error = Error::from(DataFusionError::Plan(message.into()));
            assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::Unsupported, NOT_RUN));
            let error = Error::from(DataFusionError::Internal(message.into()));
            assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::Internal, FAULT));
        }
    }

    #[test]
    fn errors_of_the_parser_say_what_is_wrong_and_where() {
        let said = |error: ParserError| Error::from(DataFusionError::SQL(Box::new(error), None)).to_string();
        assert_eq!(
            said(ParserError::ParserError("Expected: ), found: charset at Line: 2, Column: 5".into())),
            "the statement cannot be parsed: expected ), found charset at line 2, column 5"
        );
        assert_eq!(
            said(ParserError::ParserError("Expected: identifier, found: EOF".into())),
            "the statement cannot be parsed: expected identifier, found its end"
        );
        assert_eq!(said(ParserError::RecursionLimitExceeded), "the statement is nested too deeply");
    }

    #[test]
    fn kinds_say_what_to_do() {
        assert_eq!(
            Error::from(DataFusionError::ResourcesExhausted("full".into())).kind(),
            ErrorKind::Resources
        );
        assert_eq!(Error::from(DataFusionError::NotImplemented("x".into())).kind(), ErrorKind::Unsupported);
        assert_eq!(Error::from(DataFusionError::Plan("two\nlines.".into())).to_string(), "two");
    }
}
