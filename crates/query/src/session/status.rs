//! The database `tanada`: what the engine knows of mounted volumes and of what it did there, as tables.
//!
//! | table | a row for each |
//! |---|---|
//! | `objects` | object: its sizes, its compression, and its pages by algorithm, as they are now |
//! | `volume_stats` | chunk with a home, a mirror or I/Os |
//! | `placements` | relocation that a policy wanted: the newest 1,024 of this session, and of the sessions before |
//! | `footprints` | index that one of the newest 1,024 announced queries reads: pages expected and read |
//! | `columnar_mirrors` | columnar mirror of a column: what it is of, and whether that has changed since |
//! | `history` | chunk of an index that a statement has read in earlier runs, in the mean |
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

use super::Shared;
use super::mirrors::mirror_columns;
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
    ColumnarMirrors,
    Objects,
    VolumeStats,
    Placements,
    Footprints,
    History,
}

const TABLES: [(&str, Kind); 6] = [
    ("columnar_mirrors", Kind::ColumnarMirrors),
    ("footprints", Kind::Footprints),
    ("history", Kind::History),
    ("objects", Kind::Objects),
    ("placements", Kind::Placements),
    ("volume_stats", Kind::VolumeStats),
];

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
            Some(session) if self.kind == Kind::ColumnarMirrors => {
                vec![batch(&self.schema, mirror_columns(&session).await)?]
            }
            Some(session) => self.kind.batches(&session, &self.schema)?,
            None => Vec::new(),
        };
        let rows = MemTable::try_new(Arc::clone(&self.schema), vec![batches])?;
        rows.scan(state, projection, filters, limit).await
    }
}

/// Columns of `objects`.
const OBJECT_COLUMNS: [(&str, DataType); 15] = [
    ("volume", DataType::Utf8),
    ("object", DataType::Utf8),
    ("fs_block_size", DataType::UInt64),
    ("logical_size", DataType::UInt64),
    ("allocated_size", DataType::UInt64),
    ("stored_size", DataType::UInt64),
    ("compression", DataType::Utf8),
    ("page_size", DataType::UInt64),
    ("encryption_key", DataType::UInt64),
    ("pages_none", DataType::UInt64),
    ("pages_lz4", DataType::UInt64),
    ("pages_zstd", DataType::UInt64),
    ("pages_zlib", DataType::UInt64),
    ("pages_encrypted", DataType::UInt64),
    ("pages_hole", DataType::UInt64),
];

/// Columns of `columnar_mirrors`.
const MIRROR_COLUMNS: [(&str, DataType); 9] = [
    ("place", DataType::Utf8),
    ("mirror", DataType::Utf8),
    ("database_name", DataType::Utf8),
    ("table_name", DataType::Utf8),
    ("column_name", DataType::Utf8),
    ("row_count", DataType::UInt64),
    ("bytes", DataType::UInt64),
    ("is_used", DataType::Boolean),
    ("state", DataType::Utf8),
];

impl Kind {
    fn schema(self) -> SchemaRef {
        let columns: &[(&str, DataType)] = match self {
            Kind::Objects => &OBJECT_COLUMNS,
            Kind::ColumnarMirrors => &MIRROR_COLUMNS,
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
                ("session", DataType::UInt64),
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
            Kind::History => &[
                ("volume", DataType::Utf8),
                ("statement", DataType::Utf8),
                ("fingerprint", DataType::Utf8),
                ("runs", DataType::Float64),
                ("object", DataType::Utf8),
                ("index_name", DataType::Utf8),
                ("chunk", DataType::UInt64),
                ("ios", DataType::Float64),
            ],
            Kind::Footprints => &[
                ("volume", DataType::Utf8),
                ("session", DataType::UInt64),
                ("query", DataType::UInt64),
                ("statement", DataType::Utf8),
                ("fingerprint", DataType::Utf8),
                ("depth", DataType::UInt64),
                ("is_over", DataType::Boolean),
                ("object", DataType::Utf8),
                ("index_name", DataType::Utf8),
                ("columns", DataType::Utf8),
                ("pattern", DataType::Utf8),
                ("stage", DataType::UInt64),
                ("extents", DataType::UInt64),
                ("bytes", DataType::UInt64),
                ("expected_pages", DataType::UInt64),
                ("earlier_runs", DataType::Float64),
                ("earlier_pages", DataType::UInt64),
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
            // Their files are read to list them.
            Kind::ColumnarMirrors => Ok(Vec::new()),
            Kind::Objects => objects(session, schema),
            Kind::VolumeStats => volume_stats(session, schema),
            Kind::Placements => placements(session, schema),
            Kind::Footprints => footprints(session, schema),
            Kind::History => history(session, schema),
        }
    }
}

/// A row for each object: counted from its map now, so it is never stale.
fn objects(session: &Shared, schema: &SchemaRef) -> Result<Vec<RecordBatch>> {
    let mut batches = Vec::new();
    for directory in session.volumes.read().iter() {
        let path = directory.path().display().to_string();
        let objects = directory.volume().objects();
        let pages: Vec<_> = objects.iter().map(tanada_volume::Object::page_statistics).collect();
        let attributes: Vec<_> = objects.iter().map(tanada_volume::Object::attributes).collect();
        let by_algorithm = |name: &str| -> ArrayRef {
            let count =
                |pages: &tanada_volume::PageStatistics| pages.by_algorithm.get(name).copied().unwrap_or(0);
            Arc::new(pages.iter().map(|pages| pages.as_ref().map(count)).collect::<UInt64Array>())
        };
        let of_pages = |value: fn(&tanada_volume::PageStatistics) -> u64| -> ArrayRef {
            Arc::new(pages.iter().map(|pages| pages.as_ref().map(value)).collect::<UInt64Array>())
        };
        let keys = attributes.iter().map(|said| said.encryption.map(u64::from)).collect::<UInt64Array>();
        let columns: Vec<ArrayRef> = vec![
            text(objects.iter().map(|_| Some(path.clone()))),
            text(objects.iter().map(|object| Some(object.name()))),
            numbers(objects.iter().map(|_| tanada_volume::BLOCK_BYTES)),
            numbers(objects.iter().map(tanada_volume::Object::size_bytes)),
            numbers(objects.iter().map(tanada_volume::Object::allocated_bytes)),
            of_pages(|pages| pages.stored_bytes),
            text(attributes.iter().map(|said| Some(said.compression.to_string()))),
            of_pages(|pages| pages.page_bytes),
            Arc::new(keys),
            by_algorithm("none"),
            by_algorithm("lz4"),
            by_algorithm("zstd"),
            by_algorithm("zlib"),
            of_pages(|pages| pages.by_key.values().sum()),
            of_pages(|pages| pages.holes),
        ];
        batches.push(batch(schema, columns)?);
    }
    Ok(batches)
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
        let rows = steering.placement_rows();
        let columns: Vec<ArrayRef> = vec![
            text(rows.iter().map(|_| Some(path.clone()))),
            numbers(rows.iter().map(|row| row.session)),
            floats(rows.iter().map(|row| row.at_s)),
            text(rows.iter().map(|row| Some(row.policy.clone()))),
            text(rows.iter().map(|row| Some(row.object.clone()))),
            numbers(rows.iter().map(|row| row.chunk)),
            text(rows.iter().map(|row| Some(row.action.clone()))),
            numbers(rows.iter().map(|row| row.bytes)),
            floats(rows.iter().map(|row| row.gain_s)),
            text(rows.iter().map(|row| Some(row.why.clone()))),
            text(rows.iter().map(|row| row.refusal.clone())),
        ];
        batches.push(batch(schema, columns)?);
    }
    Ok(batches)
}

fn footprints(session: &Shared, schema: &SchemaRef) -> Result<Vec<RecordBatch>> {
    let mut batches = Vec::new();
    for steering in session.placements.read().iter() {
        let path = steering.directory().path().display().to_string();
        let rows = steering.footprint_rows();
        let columns: Vec<ArrayRef> = vec![
            text(rows.iter().map(|_| Some(path.clone()))),
            numbers(rows.iter().map(|row| row.session)),
            numbers(rows.iter().map(|row| u64::from(row.query))),
            text(rows.iter().map(|row| Some(row.statement.clone()))),
            text(rows.iter().map(|row| Some(in_hexadecimal(row.fingerprint)))),
            numbers(rows.iter().map(|row| u64::from(row.depth))),
            Arc::new(rows.iter().map(|row| Some(row.is_over)).collect::<BooleanArray>()),
            text(rows.iter().map(|row| Some(row.object.clone()))),
            text(rows.iter().map(|row| Some(row.index.clone()))),
            text(rows.iter().map(|row| Some(row.columns.clone()))),
            text(rows.iter().map(|row| Some(row.pattern.clone()))),
            numbers(rows.iter().map(|row| u64::from(row.stage))),
            numbers(rows.iter().map(|row| row.extents)),
            numbers(rows.iter().map(|row| row.bytes)),
            numbers(rows.iter().map(|row| row.expected_pages)),
            floats(rows.iter().map(|row| row.earlier_runs)),
            Arc::new(rows.iter().map(|row| row.earlier_pages).collect::<UInt64Array>()),
            Arc::new(rows.iter().map(|row| row.observed.map(|(ios, _)| ios)).collect::<UInt64Array>()),
            Arc::new(rows.iter().map(|row| row.observed.map(|(_, bytes)| bytes)).collect::<UInt64Array>()),
        ];
        batches.push(batch(schema, columns)?);
    }
    Ok(batches)
}

fn history(session: &Shared, schema: &SchemaRef) -> Result<Vec<RecordBatch>> {
    let mut batches = Vec::new();
    for steering in session.placements.read().iter() {
        let path = steering.directory().path().display().to_string();
        let history = steering.history();
        let indexes = history
            .statements
            .iter()
            .flat_map(|statement| statement.indexes().iter().map(move |index| (statement, index)));
        let rows: Vec<_> = indexes
            .flat_map(|(statement, index)| index.chunks.iter().map(move |chunk| (statement, index, chunk)))
            .collect();
        let columns: Vec<ArrayRef> = vec![
            text(rows.iter().map(|_| Some(path.clone()))),
            text(rows.iter().map(|(statement, ..)| Some(statement.statement.clone()))),
            text(rows.iter().map(|(statement, ..)| Some(in_hexadecimal(statement.fingerprint)))),
            floats(rows.iter().map(|(statement, ..)| statement.runs)),
            text(rows.iter().map(|(_, index, _)| Some(index.object.clone()))),
            text(rows.iter().map(|(_, index, _)| Some(index.index.clone()))),
            numbers(rows.iter().map(|(_, _, (chunk, _))| *chunk)),
            floats(rows.iter().map(|(_, _, (_, ios))| f64::from(*ios))),
        ];
        batches.push(batch(schema, columns)?);
    }
    Ok(batches)
}

fn in_hexadecimal(fingerprint: u64) -> String {
    format!("{fingerprint:016x}")
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
