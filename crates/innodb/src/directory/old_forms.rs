//! Types of which a `CREATE TABLE` statement does not say how they are stored, told by the rows.
//!
//! Until MySQL 5.5 and MariaDB 5.3, TIME, DATETIME and TIMESTAMP were stored in other forms than today, and a table
//! keeps them until it is rebuilt. `SHOW CREATE TABLE` shows both alike. JSON is a binary form in MySQL 5.7 and text in
//! MariaDB, whose files need not differ else.
//!
//! 1. Each way to read the undecided columns is tried on the first leaves: lengths have to fit, and all values have to
//!    be valid.
//! 2. If one way is left, it is right. If several are, but give the same values (TIME and midnight), it does not
//!    matter.
//! 3. Else the table is refused: the statement has to say it.

use std::ops::ControlFlow;
use std::sync::Arc;

use tanada_io::IoContext;

use crate::{
    ColumnNo, ColumnType, Environment, Error, ErrorKind, IndexNo, KeyRange, Result, RowSink, Table,
    TableDefinition, Value,
};

/// Runs of leaves that are looked at.
const SAMPLED_RUNS: usize = 4;

/// What a statement leaves undecided.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Undecided {
    /// Whether it does not say in which form temporal columns are.
    pub(super) temporal: bool,
    /// Columns of JSON.
    pub(super) json: Vec<ColumnNo>,
}

impl Undecided {
    /// Of the definition of a statement, in a file that no server is named in; `as_mysql` is what the statement means
    /// to MySQL.
    pub(super) fn new(
        definition: &TableDefinition,
        as_mysql: &TableDefinition,
        names_forms: bool,
    ) -> Undecided {
        let is_json = |(no, column): (usize, &crate::Column)| {
            let differs = definition.columns.get(no).is_some_and(|own| own.column_type != ColumnType::Json);
            (differs && column.column_type == ColumnType::Json).then_some(ColumnNo(no))
        };
        let is_temporal = |column: &crate::Column| with_form(&column.column_type, true).is_some();
        Undecided {
            temporal: !names_forms && definition.columns.iter().any(is_temporal),
            json: as_mysql.columns.iter().enumerate().filter_map(is_json).collect(),
        }
    }

    fn holds(&self, no: ColumnNo, column_type: &ColumnType) -> bool {
        self.json.contains(&no) || self.temporal && with_form(column_type, true).is_some()
    }
}

/// A way to read the undecided columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Forms {
    old_temporal: bool,
    binary_json: bool,
}

/// The definition in the form that the rows are in.
///
/// # Errors
/// `InvalidInput` if several forms fit; else why none does.
pub(super) async fn settle(
    definition: TableDefinition,
    undecided: &Undecided,
    environment: &Arc<Environment>,
    context: &IoContext,
) -> Result<TableDefinition> {
    if *undecided == Undecided::default() {
        return Ok(definition);
    }
    let ways = [(false, false), (true, false), (false, true), (true, true)];
    let ways = ways.into_iter().filter(|(old_temporal, binary_json)| {
        (undecided.temporal || !old_temporal) && (!undecided.json.is_empty() || !binary_json)
    });
    let mut fitting: Vec<(TableDefinition, Vec<String>)> = Vec::new();
    let mut misfit = None;
    for (old_temporal, binary_json) in ways {
        let candidate = in_form(&definition, undecided, Forms { old_temporal, binary_json });
        match sample(&candidate, undecided, environment, context).await {
            Ok(values) => fitting.push((candidate, values)),
            Err(error) => misfit = misfit.or(Some(error)),
        }
    }
    let alike = fitting.windows(2).all(|pair| pair[0].1 == pair[1].1);
    match fitting.len() {
        // What is wrong is not the form; whoever opens the table says it.
        0 => misfit.map_or(Ok(definition), Err),
        _ if alike => Ok(fitting.swap_remove(0).0),
        _ => Err(ambiguous(&definition)),
    }
}

fn ambiguous(definition: &TableDefinition) -> Error {
    let what = format!(
        "table {}.{}: its rows can be read with temporal (or JSON) columns in the form of MySQL 5.5 or in that of 5.6 and later, and nothing \
         says which is right; in the CREATE TABLE statement write /* 5.5 binary format */ or /* mysql-5.6 */ behind each TIME, DATETIME and \
         TIMESTAMP, and LONGTEXT or JSON as it is",
        definition.database, definition.name
    );
    Error::new(ErrorKind::InvalidInput, what)
}

/// A temporal type in its old form or that of today; `None` for other types.
fn with_form(column_type: &ColumnType, legacy: bool) -> Option<ColumnType> {
    match column_type {
        ColumnType::Time { fsp, .. } => Some(ColumnType::Time { fsp: *fsp, legacy }),
        ColumnType::DateTime { fsp, .. } => Some(ColumnType::DateTime { fsp: *fsp, legacy }),
        // Without a fraction the two forms are the same.
        ColumnType::Timestamp { fsp, .. } if *fsp > 0 => Some(ColumnType::Timestamp { fsp: *fsp, legacy }),
        _ => None,
    }
}

fn in_form(definition: &TableDefinition, undecided: &Undecided, forms: Forms) -> TableDefinition {
    let mut changed = definition.clone();
    let change = |column_type: &mut ColumnType, column: Option<ColumnNo>| {
        if let Some(own) = with_form(column_type, forms.old_temporal).filter(|_| undecided.temporal) {
            *column_type = own;
        }
        if forms.binary_json && column.is_some_and(|column| undecided.json.contains(&column)) {
            *column_type = ColumnType::Json;
        }
    };
    for (no, column) in changed.columns.iter_mut().enumerate() {
        change(&mut column.column_type, Some(ColumnNo(no)));
    }
    for field in &mut changed.stored_fields {
        change(&mut field.column_type, field.column);
    }
    changed
}

/// The values of the undecided columns on the first leaves, each as the server would print it.
async fn sample(
    definition: &TableDefinition,
    undecided: &Undecided,
    environment: &Arc<Environment>,
    context: &IoContext,
) -> Result<Vec<String>> {
    let columns: Vec<ColumnNo> = (0..definition.columns.len())
        .map(ColumnNo)
        .filter(|no| {
            let column = &definition.columns[no.0];
            undecided.holds(*no, &column.column_type) && column.virtual_expression.is_none()
        })
        .collect();
    let table = Table::open(definition.clone(), environment).await?;
    let access = table.access(IndexNo(0), &columns)?;
    let mut texts =
        Texts { is_json: columns.iter().map(|no| undecided.json.contains(no)).collect(), values: Vec::new() };
    let range = KeyRange::all();
    for run in table.leaves(IndexNo(0), &range, context).await?.iter().take(SAMPLED_RUNS) {
        let mut on_row = |row: &crate::Row<'_>| row.decode(&mut texts).map(|()| ControlFlow::Continue(()));
        table.scan(&access, run, &range, context, &mut on_row).await?;
    }
    Ok(texts.values)
}

struct Texts {
    is_json: Vec<bool>,
    values: Vec<String>,
}

impl RowSink for Texts {
    fn push(&mut self, slot: usize, value: Value<'_>) -> Result<()> {
        if let (Some(true), Value::Text(text)) = (self.is_json.get(slot), &value)
            && serde_json::from_str::<serde::de::IgnoredAny>(text).is_err()
        {
            return Err(Error::new(ErrorKind::Corrupt, "a JSON value is no JSON"));
        }
        self.values.push(format!("{value:?}"));
        Ok(())
    }
}
