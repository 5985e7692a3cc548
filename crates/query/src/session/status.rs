//! The database `tanada`: what the engine knows of mounted volumes and of what it did there, as tables.
//!
//! | table | a row for each |
//! |---|---|
//! | `volume_stats` | chunk with a home, a mirror or I/Os |
//! | `placements` | relocation that a policy wanted, the newest 1,024 |
//! | `footprints` | index that an announced query reads, of the newest 1,024 queries: what was expected and what was read |
//!
//! A mounted database of that name hides them. Their rows are those of the moment in which the query is planned.

use std::sync::{Arc, Weak};

use async_trait::async_trait;
use datafusion::arrow::array::{ArrayRef, BooleanArray, Float64Array, StringArray, UInt64Array};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::catalog::{MemTable, SchemaProvider, Session, TableProvider};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use tanada_placement::Pattern;

use super::Shared;
use crate::relation::types::MYSQL_TYPE;

/// The name of the database.
pub(super) const STATUS: &str = "tanada";

/// The tables of `tanada`.
#[derive(Clone)]
pub(super) struct StatusSchema {
    session: Weak<Shared>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    VolumeStats,
    Placements,
    Footprints,
}

const TABLES: [(&str, Kind); 3] =
    [("footprints", Kind::Footprints), ("placements", Kind::Placements), ("volume_stats", Kind::VolumeStats)];

impl StatusSchema {
    pub(super) fn new(session: Weak<Shared>) -> Arc<StatusSchema> {
        Arc::new(StatusSchema { session })
    }

    /// Names of the tables.
    pub(super) fn names() -> Vec<String> {
        TABLES.iter().map(|(name, _)| (*name).to_string()).collect()
    }

    /// The columns of a table.
    pub(super) fn schema(table: &str) -> Option<SchemaRef> {
        Self::kind(table).map(Kind::schema)
    }

    fn kind(name: &str) -> Option<Kind> {
        TABLES.iter().find(|(table, _)| table.eq_ignore_ascii_case(name)).map(|(_, kind)| *kind)
    }
}

impl std::fmt::Debug for StatusSchema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StatusSchema").finish_non_exhaustive()
    }
}

#[async_trait]
impl SchemaProvider for StatusSchema {
    fn table_names(&self) -> Vec<String> {
        StatusSchema::names()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let session = self.clone();
        Ok(Self::kind(name).map(|kind| Arc::new(StatusTable { session, kind, schema: kind.schema() }) as _))
    }

    fn table_exist(&self, name: &str) -> bool {
        Self::kind(name).is_some()
    }
}

#[derive(Debug)]
struct StatusTable {
    session: StatusSchema,
    kind: Kind,
    schema: SchemaRef,
}

#[async_trait]
impl TableProvider for StatusTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let batches = match self.session.session.upgrade() {
            Some(session) => self.kind.batches(&session, &self.schema)?,
            None => Vec::new(),
        };
        let rows = MemTable::try_new(Arc::clone(&self.schema), vec![batches])?;
        rows.scan(state, projection, filters, limit).await
    }
}

impl Kind {
    fn schema(self) -> SchemaRef {
        let columns: &[(&str, DataType)] = match self {
            Kind::VolumeStats => &[
                ("volume", DataType::Utf8),
                ("object", DataType::Utf8),
                ("chunk", DataType::UInt64),
                ("class", DataType::Utf8),
                ("mirror", DataType::Utf8),
                ("reads", DataType::UInt64),
                ("writes", DataType::UInt64),
                ("bytes_read", DataType::UInt64),
                ("bytes_written", DataType::UInt64),
                ("sequential_share", DataType::Float64),
                ("heat", DataType::Float64),
            ],
            Kind::Placements => &[
                ("volume", DataType::Utf8),
                ("at_s", DataType::Float64),
                ("policy", DataType::Utf8),
                ("object", DataType::Utf8),
                ("chunk", DataType::UInt64),
                ("action", DataType::Utf8),
                ("bytes", DataType::UInt64),
                ("gain_s", DataType::Float64),
                ("why", DataType::Utf8),
                ("refusal", DataType::Utf8),
            ],
            Kind::Footprints => &[
                ("volume", DataType::Utf8),
                ("query", DataType::UInt64),
                ("statement", DataType::Utf8),
                ("fingerprint", DataType::Utf8),
                ("depth", DataType::UInt64),
                ("is_over", DataType::Boolean),
                ("object", DataType::Utf8),
                ("index_name", DataType::Utf8),
                ("pattern", DataType::Utf8),
                ("stage", DataType::UInt64),
                ("extents", DataType::UInt64),
                ("bytes", DataType::UInt64),
                ("expected_pages", DataType::UInt64),
                ("observed_ios", DataType::UInt64),
                ("observed_bytes", DataType::UInt64),
            ],
        };
        let field = |(name, kind): &(&str, DataType)| {
            let mysql = match kind {
                DataType::Utf8 => "varchar",
                DataType::Float64 => "double",
                DataType::Boolean => "tinyint(1)",
                _ => "bigint unsigned",
            };
            Field::new(*name, kind.clone(), true)
                .with_metadata([(MYSQL_TYPE.to_string(), mysql.to_string())].into())
        };
        Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()))
    }

    fn batches(self, session: &Shared, schema: &SchemaRef) -> Result<Vec<RecordBatch>> {
        match self {
            Kind::VolumeStats => volume_stats(session, schema),
            Kind::Placements => placements(session, schema),
            Kind::Footprints => footprints(session, schema),
        }
    }
}

/// A batch for each object.
fn volume_stats(session: &Shared, schema: &SchemaRef) -> Result<Vec<RecordBatch>> {
    let mut batches = Vec::new();
    for directory in session.volumes.read().iter() {
        let volume = directory.volume();
        let path = directory.path().display().to_string();
        let classes = volume.classes();
        let class = |place: Option<tanada_volume::Place>| {
            let number = place.map(|place| place.class);
            classes.iter().find(|class| Some(class.number) == number).map(|class| class.name.clone())
        };
        for object in volume.objects() {
            let (name, is_adopted) = (object.name(), object.is_adopted());
            let chunks = object.chunks(0..u64::MAX);
            let home = |place| class(place).or_else(|| is_adopted.then(|| "adopted".to_string()));
            let statistics = || chunks.iter().map(|chunk| chunk.statistics);
            let columns: Vec<ArrayRef> = vec![
                text(chunks.iter().map(|_| Some(path.clone()))),
                text(chunks.iter().map(|_| Some(name.clone()))),
                numbers(chunks.iter().map(|chunk| chunk.no)),
                text(chunks.iter().map(|chunk| home(chunk.home))),
                text(chunks.iter().map(|chunk| class(chunk.mirror))),
                numbers(statistics().map(|of| u64::from(of.reads))),
                numbers(statistics().map(|of| u64::from(of.writes))),
                numbers(statistics().map(|of| of.bytes_read)),
                numbers(statistics().map(|of| of.bytes_written)),
                floats(statistics().map(|of| f64::from(of.sequential_share()))),
                floats(statistics().map(|of| f64::from(of.heat))),
            ];
            batches.push(batch(schema, columns)?);
        }
    }
    Ok(batches)
}

fn placements(session: &Shared, schema: &SchemaRef) -> Result<Vec<RecordBatch>> {
    let mut batches = Vec::new();
    for steering in session.placements.read().iter() {
        let path = steering.directory().path().display().to_string();
        let placed = steering.placed();
        let columns: Vec<ArrayRef> = vec![
            text(placed.iter().map(|_| Some(path.clone()))),
            floats(placed.iter().map(|noted| noted.at_ns as f64 / 1e9)),
            text(placed.iter().map(|noted| Some(noted.policy.clone()))),
            text(placed.iter().map(|noted| Some(noted.object.clone()))),
            numbers(placed.iter().map(|noted| noted.chunk)),
            text(placed.iter().map(|noted| Some(noted.action.to_string()))),
            numbers(placed.iter().map(|noted| noted.bytes)),
            floats(placed.iter().map(|noted| f64::from(noted.gain_s))),
            text(placed.iter().map(|noted| Some(noted.why.clone()))),
            text(placed.iter().map(|noted| noted.refusal.clone())),
        ];
        batches.push(batch(schema, columns)?);
    }
    Ok(batches)
}

fn footprints(session: &Shared, schema: &SchemaRef) -> Result<Vec<RecordBatch>> {
    let mut batches = Vec::new();
    for steering in session.placements.read().iter() {
        let path = steering.directory().path().display().to_string();
        let queries = steering.queries();
        let rows: Vec<_> = queries
            .iter()
            .flat_map(|query| {
                let accesses = query.footprint.accesses.iter().zip(&query.names);
                accesses.map(move |(access, names)| (query, access, names))
            })
            .collect();
        // What several accesses to one index have read is not told apart: the first of them shows it.
        let mut shown = std::collections::HashSet::new();
        let observed: Vec<Option<(u64, u64)>> = rows
            .iter()
            .map(|(query, access, _)| {
                let read = query.observed.get(&(access.object, access.cause)).copied().unwrap_or_default();
                shown.insert((query.query, access.object, access.cause)).then_some(read)
            })
            .collect();
        let columns: Vec<ArrayRef> = vec![
            text(rows.iter().map(|_| Some(path.clone()))),
            numbers(rows.iter().map(|(query, ..)| u64::from(query.query.0))),
            text(rows.iter().map(|(query, ..)| Some(query.name.clone()))),
            text(rows.iter().map(|(query, ..)| Some(format!("{:016x}", query.fingerprint)))),
            numbers(rows.iter().map(|(query, ..)| u64::from(query.depth))),
            Arc::new(rows.iter().map(|(query, ..)| Some(query.is_over)).collect::<BooleanArray>()),
            text(rows.iter().map(|(_, _, (object, _))| Some(object.clone()))),
            text(rows.iter().map(|(_, _, (_, index))| Some(index.clone()))),
            text(rows.iter().map(|(_, access, _)| Some(pattern(access.pattern)))),
            numbers(rows.iter().map(|(_, access, _)| u64::from(access.stage))),
            numbers(rows.iter().map(|(_, access, _)| access.extents.len() as u64)),
            numbers(rows.iter().map(|(_, access, _)| access.extents.iter().map(|extent| extent.len).sum())),
            numbers(rows.iter().map(|(_, access, _)| access.expected_pages)),
            Arc::new(observed.iter().map(|read| read.map(|(ios, _)| ios)).collect::<UInt64Array>()),
            Arc::new(observed.iter().map(|read| read.map(|(_, bytes)| bytes)).collect::<UInt64Array>()),
        ];
        batches.push(batch(schema, columns)?);
    }
    Ok(batches)
}

/// How an access reads, in words.
pub(super) fn pattern(pattern: Pattern) -> String {
    match pattern {
        Pattern::SequentialScan => "scan".to_string(),
        Pattern::RandomLookUps { expected } => format!("{expected} look-ups"),
        Pattern::IndexRange => "range".to_string(),
    }
}

fn batch(schema: &SchemaRef, columns: Vec<ArrayRef>) -> Result<RecordBatch> {
    RecordBatch::try_new(Arc::clone(schema), columns)
        .map_err(|error| DataFusionError::Internal(error.to_string()))
}

fn text(values: impl Iterator<Item = Option<String>>) -> ArrayRef {
    Arc::new(values.collect::<StringArray>())
}

fn numbers(values: impl Iterator<Item = u64>) -> ArrayRef {
    Arc::new(UInt64Array::from_iter_values(values))
}

fn floats(values: impl Iterator<Item = f64>) -> ArrayRef {
    Arc::new(Float64Array::from_iter_values(values))
}
