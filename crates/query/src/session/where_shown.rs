//! SHOW ... WHERE: the rows of an answer become a table for one query, whose condition chooses among them.

use std::sync::Arc;
use std::time::Instant;

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::arrow::record_batch::RecordBatch;
use tanada_innodb::schema::Server;
use tanada_innodb::{Collation, Column, ColumnType, Declaration, Display};

use super::announce::{Text, name_of};
use super::context::QueryContext;
use super::{INFORMATION_SCHEMA, QueryResult, Session, command};
use crate::binding::KIND;
use crate::placement::fingerprint;
use crate::relation::types::field;
use crate::{Error, ErrorKind, Result};

/// The collation of texts that the servers show.
const COLLATION: &str = "utf8mb3_general_ci";

impl Session {
    /// The rows of an answer that a condition, given as text, chooses.
    pub(super) async fn chosen(
        &self,
        shown: &RecordBatch,
        condition: &str,
        context: Arc<QueryContext>,
        begun: Instant,
    ) -> Result<QueryResult> {
        let table = format!("#shown_{}", self.next_query().0);
        let sql = format!("SELECT * FROM {INFORMATION_SCHEMA}.`{table}` WHERE ({condition}\n)");
        let tokens = command::tokens(&sql)?;
        let rows = typed(shown, context.options().server)?;
        self.shared.shown.lock().insert(table.clone(), rows);
        let text =
            Text { fingerprint: fingerprint(&tokens, self.database().as_deref()), name: name_of("show") };
        let result = match self.prepared(&sql, &tokens).await {
            Ok(prepared) => self.query(prepared, text, context, begun).await,
            Err(error) => Err(error),
        };
        self.shared.shown.lock().remove(&table);
        result
    }
}

/// An answer whose columns have types of the server.
fn typed(shown: &RecordBatch, server: Server) -> Result<RecordBatch> {
    let internal = |error: datafusion::arrow::error::ArrowError| {
        Error::new(ErrorKind::Internal, format!("SHOW with WHERE: {error}"))
    };
    let mut fields = Vec::with_capacity(shown.num_columns());
    let mut columns: Vec<ArrayRef> = Vec::with_capacity(shown.num_columns());
    for (of, array) in shown.schema().fields().iter().zip(shown.columns()) {
        let field = if of.metadata().contains_key(KIND) { of.as_ref().clone() } else { answered(of, server) };
        columns.push(cast(array, field.data_type()).map_err(internal)?);
        fields.push(field);
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).map_err(internal)
}

/// The field of a column of texts or numbers.
fn answered(of: &Field, server: Server) -> Field {
    let column_type = match (of.data_type(), Collation::with_name(COLLATION)) {
        (DataType::Utf8 | DataType::Utf8View, Some(collation)) => {
            ColumnType::VarChar { length: 64, collation }
        }
        _ => ColumnType::Integer { bytes: 8, unsigned: true },
    };
    let column = Column {
        name: of.name().clone(),
        column_type,
        display: Display::default(),
        nullable: true,
        invisible: false,
        virtual_expression: None,
        compressed: false,
        comment: String::new(),
        declaration: Declaration::default(),
    };
    field(&column, server)
}
