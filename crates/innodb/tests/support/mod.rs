//! What tests of rows share: an environment, rows as owned values, and the servers' answers.

use std::collections::BTreeMap;
use std::future::Future;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use tanada_innodb::{
    Access, Catalog, ColumnNo, ColumnType, Decimal, Environment, Files, IndexNo, Key, KeyRange, MountOptions,
    PageCache, Result, Row, RowReceiver, RowSink, Rows, StoredColumn, Table, Value,
};
use tanada_io::{ExecutorOptions, Executors, Gate, GateLimits, IoContext, Method};

/// An environment with a cache that holds everything.
pub fn environment(verify_checksums: bool) -> Arc<Environment> {
    Arc::new(start(verify_checksums))
}

/// The same over `files`, without verifying checksums.
pub fn environment_of(files: Arc<dyn Files>) -> Arc<Environment> {
    Arc::new(start(false).with_files(files))
}

fn start(verify_checksums: bool) -> Environment {
    let options = ExecutorOptions { threads: 1, method: Method::Threads, ..ExecutorOptions::default() };
    let executors = Executors::start(options).unwrap();
    Environment::new(executors, PageCache::new(256 << 20), Method::Threads, verify_checksums)
}

/// Runs what `make` makes on an executor and waits for it.
pub fn run<F, T>(environment: &Arc<Environment>, make: impl FnOnce() -> F + Send + 'static) -> T
where
    F: Future<Output = T> + 'static,
    T: Send + 'static,
{
    environment.executors.block_on(make).unwrap()
}

/// Limits that do not bind.
pub fn context() -> IoContext {
    IoContext::new(Gate::new(GateLimits { ios: Some(64), bytes: 64 << 20 }))
}

/// A mounted folder of samples. Those of the cases have no server's logs beside them.
pub async fn mount(path: &Path, environment: &Arc<Environment>) -> Catalog {
    let options = MountOptions { allow_stale: true, ..MountOptions::default() };
    Catalog::open(path, &options, environment).await.unwrap()
}

/// A value that borrows nothing.
pub fn owned(value: Value<'_>) -> Value<'static> {
    match value {
        Value::Text(text) => Value::Text(text.into_owned().into()),
        Value::Bytes(bytes) => Value::Bytes(bytes.into_owned().into()),
        Value::Null => Value::Null,
        Value::Int(number) => Value::Int(number),
        Value::UInt(number) => Value::UInt(number),
        Value::Float(number) => Value::Float(number),
        Value::Double(number) => Value::Double(number),
        Value::Decimal(number) => Value::Decimal(number),
        Value::Date(days) => Value::Date(days),
        Value::DateTime(micros) => Value::DateTime(micros),
        Value::Time(micros) => Value::Time(micros),
        Value::ZeroDate(text) => Value::ZeroDate(text),
    }
}

/// A row of owned values.
pub type Values = Vec<Value<'static>>;

#[derive(Default)]
struct Collect(Values);

impl RowSink for Collect {
    fn push(&mut self, slot: usize, value: Value<'_>) -> Result<()> {
        assert_eq!(slot, self.0.len());
        self.0.push(owned(value));
        Ok(())
    }
}

/// Collects rows that are handed out.
pub fn collect<'a>(rows: &'a mut Vec<Values>) -> impl FnMut(&Row<'_>) -> Result<ControlFlow<()>> + 'a {
    |row| {
        let mut sink = Collect::default();
        row.decode(&mut sink)?;
        rows.push(sink.0);
        Ok(ControlFlow::Continue(()))
    }
}

/// Keeps rows that come column by column, each by the loop for its type and as values.
#[derive(Default)]
struct CollectColumns(Vec<Values>);

impl RowReceiver for CollectColumns {
    fn rows(&mut self, rows: &mut Rows<'_>) -> Result<ControlFlow<()>> {
        let mut found: Vec<Values> = vec![Values::new(); rows.len()];
        for slot in 0.. {
            let Ok(column) = rows.column(slot) else { break };
            let mut values = Vec::new();
            column.values(|value| {
                values.push(owned(value));
                Ok(())
            })?;
            if let Some(typed) = typed(&column)? {
                assert_eq!(typed, values);
            }
            found.iter_mut().zip(values).for_each(|(row, value)| row.push(value));
        }
        self.0.extend(found);
        Ok(ControlFlow::Continue(()))
    }

    fn row(&mut self, row: &Row<'_>) -> Result<ControlFlow<()>> {
        collect(&mut self.0)(row)
    }
}

/// The values of a column by the loop for its type.
fn typed(column: &StoredColumn<'_>) -> Result<Option<Values>> {
    let mut values = Values::new();
    let mut numbers = Vec::new();
    let scale = column.scale().unwrap_or(0);
    let done = column.decimals(|value| {
        let decimal = |value: i64| Decimal { scale, ..Decimal::from_i128(value.into()) };
        values.push(value.map_or(Value::Null, |value| Value::Decimal(decimal(value))));
    })? || column.dates(|value| match value {
        Ok(days) => values.push(days.map_or(Value::Null, Value::Date)),
        Err(other) => values.push(owned(other)),
    })? || column.texts(|text| {
        values.push(text.map_or(Value::Null, |text| Value::Text(text.to_string().into())));
        Ok(())
    })?;
    if done {
        return Ok(Some(values));
    }
    if !column.integers(|value| numbers.push(value))? {
        return Ok(None);
    }
    let mut signed = Vec::new();
    column.values(|value| {
        signed.push(matches!(value, Value::Int(_)));
        Ok(())
    })?;
    let number = |(value, signed): (Option<i64>, bool)| match value {
        None => Value::Null,
        Some(value) if signed => Value::Int(value),
        Some(value) => Value::UInt(value.cast_unsigned()),
    };
    Ok(Some(numbers.into_iter().zip(signed).map(number).collect()))
}

/// All rows of a covering access within `range`, which are the same row by row and column by column.
pub async fn scan(table: &Table, access: &Access, range: &KeyRange) -> Result<Vec<Values>> {
    let by_row = scan_rows(table, access, range).await;
    let by_column = scan_columns(table, access, range).await;
    match (&by_row, &by_column) {
        (Ok(rows), Ok(columns)) => assert_eq!(columns, rows, "by column, by row"),
        (Err(row), Err(column)) => assert_eq!(column.kind(), row.kind(), "{column}, {row}"),
        (row, column) => panic!("by row {:?}, by column {:?}", row.as_ref().err(), column.as_ref().err()),
    }
    by_row
}

async fn scan_rows(table: &Table, access: &Access, range: &KeyRange) -> Result<Vec<Values>> {
    let context = context();
    let mut rows = Vec::new();
    for run in table.leaves(access.index(), range, &context).await? {
        table.scan(access, &run, range, &context, &mut collect(&mut rows)).await?;
    }
    Ok(rows)
}

async fn scan_columns(table: &Table, access: &Access, range: &KeyRange) -> Result<Vec<Values>> {
    let context = context();
    let mut columns = CollectColumns::default();
    for run in table.leaves(access.index(), range, &context).await? {
        table.scan_columns(access, &run, range, &context, &mut columns).await?;
    }
    Ok(columns.0)
}

/// All rows that a secondary index leads to within `range`.
pub async fn scan_bookmarks(table: &Table, access: &Access, range: &KeyRange) -> Result<Vec<Values>> {
    let context = context();
    let mut rows = Vec::new();
    for run in table.leaves(access.index(), range, &context).await? {
        for bookmark in table.bookmarks(access.index(), &run, range, &context).await? {
            table.fetch(access, &bookmark, &context, &mut collect(&mut rows)).await?;
        }
    }
    Ok(rows)
}

/// The rows of a key.
pub async fn lookup(table: &Table, access: &Access, key: &Key, context: &IoContext) -> Result<Vec<Values>> {
    let mut rows = Vec::new();
    table.lookup(access, key, context, &mut collect(&mut rows)).await?;
    Ok(rows)
}

/// The columns that the clustered index holds.
pub fn stored_columns(table: &Table) -> Vec<ColumnNo> {
    let columns = table.definition().columns.iter().enumerate();
    columns.filter(|(_, column)| column.virtual_expression.is_none()).map(|(no, _)| ColumnNo(no)).collect()
}

/// The indexes that can be read, the clustered one left out.
pub fn secondary_indexes(table: &Table) -> Vec<IndexNo> {
    (1..table.definition().indexes.len()).map(IndexNo).filter(|index| table.readable(*index)).collect()
}

/// Types of columns.
pub fn types(table: &Table, columns: &[ColumnNo]) -> Vec<ColumnType> {
    columns.iter().map(|column| table.definition().columns[column.0].column_type.clone()).collect()
}

/// Rows as the server spells them.
pub fn spelled(rows: &[Values], types: &[ColumnType]) -> Vec<Vec<String>> {
    let spell = |row: &Values| row.iter().zip(types).map(|(value, of)| value.to_mysql_text(of)).collect();
    rows.iter().map(spell).collect()
}

/// What the server answered: rows by column name.
pub struct Answer {
    columns: BTreeMap<String, usize>,
    rows: Vec<Vec<String>>,
}

impl Answer {
    /// Reads the output of `mysql --batch`.
    pub fn read(path: &Path) -> Answer {
        let text = std::fs::read(path).unwrap();
        let text = String::from_utf8(text).unwrap();
        let mut lines = text.lines();
        let header = lines.next().unwrap_or_default();
        let names = header.split('\t').map(|name| name.trim_end_matches("__hex").to_owned());
        let columns = names.enumerate().map(|(at, name)| (name, at)).collect();
        let rows = lines.map(|line| line.split('\t').map(unescape).collect()).collect();
        Answer { columns, rows }
    }

    /// The rows, of the given columns.
    pub fn rows(&self, table: &Table, columns: &[ColumnNo]) -> Vec<Vec<String>> {
        if self.rows.is_empty() {
            // The client prints no header either.
            return Vec::new();
        }
        let at = |column: &ColumnNo| self.columns[&table.definition().columns[column.0].name];
        let places: Vec<usize> = columns.iter().map(at).collect();
        self.rows.iter().map(|row| places.iter().map(|place| row[*place].clone()).collect()).collect()
    }
}

fn unescape(field: &str) -> String {
    let mut text = String::with_capacity(field.len());
    let mut characters = field.chars();
    while let Some(character) = characters.next() {
        text.push(match character {
            '\\' => match characters.next() {
                Some('n') => '\n',
                Some('t') => '\t',
                Some('0') => '\0',
                Some(other) => other,
                None => '\\',
            },
            other => other,
        });
    }
    text
}

/// Compares rows regardless of their order and names the first that differs.
pub fn assert_same_rows(mut found: Vec<Vec<String>>, mut expected: Vec<Vec<String>>, what: &str) {
    found.sort();
    expected.sort();
    for (found, expected) in found.iter().zip(&expected) {
        let differs = found.iter().zip(expected).position(|(found, expected)| found != expected);
        assert!(
            differs.is_none(),
            "{what}: column {differs:?}\n found {found:.200?}\n expected {expected:.200?}"
        );
    }
    assert_eq!(found.len(), expected.len(), "{what}: number of rows");
}
