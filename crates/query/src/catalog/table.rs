//! An InnoDB table as a DataFusion table provider.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::ProjectionExec;
use tanada_innodb::{Index, Table};
use tanada_io::Executors;
use tokio::sync::OnceCell;

use super::virtual_column::VirtualColumns;
use crate::placement::Watched;
use crate::relation::{InnodbRelation, schema_of};
use crate::scan::{RelationScanExec, choose};
use crate::session::context::QueryContext;
use crate::settings::TanadaOptions;
use crate::{Error, ErrorKind};

/// Leaf pages below which a scan has one partition: starting more takes longer than reading.
const SMALL_TABLE_PAGES: u64 = 16;

/// An open table; its statistics are taken when it is first scanned.
#[derive(Debug)]
pub struct InnodbTable {
    table: Arc<Table>,
    executors: Arc<Executors>,
    schema: SchemaRef,
    relation: OnceCell<Arc<InnodbRelation>>,
}

impl InnodbTable {
    /// Wraps an open table.
    pub fn new(table: Arc<Table>, executors: Arc<Executors>) -> Arc<InnodbTable> {
        let schema = schema_of(table.definition());
        Arc::new(InnodbTable { table, executors, schema, relation: OnceCell::new() })
    }

    /// The table.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// Names of the columns of its primary key, none without one.
    pub(crate) fn primary_key(&self) -> Vec<String> {
        let definition = self.table.definition();
        let primary = definition.indexes.iter().find(|index| index.name == "PRIMARY");
        let parts = primary.into_iter().flat_map(|index| &index.parts);
        parts
            .filter_map(|part| definition.columns.get(part.column.0))
            .map(|column| column.name.clone())
            .collect()
    }

    /// Names of the columns of each key of which no two rows are the same, and none has a NULL.
    pub(crate) fn unique_keys(&self) -> Vec<Vec<String>> {
        let definition = self.table.definition();
        let columns = |index: &Index| {
            let parts = index.parts.iter().map(|part| {
                let column = definition.columns.get(part.column.0)?;
                (!column.nullable && part.prefix_bytes.is_none()).then(|| column.name.clone())
            });
            parts.collect::<Option<Vec<String>>>().filter(|parts| !parts.is_empty())
        };
        let is_unique = |index: &&Index| index.unique || index.name == "PRIMARY";
        definition.indexes.iter().filter(is_unique).filter_map(columns).collect()
    }

    /// The relation, with statistics; read through `query`'s gate if they were not yet.
    pub async fn relation(&self, query: &QueryContext) -> crate::Result<&Arc<InnodbRelation>> {
        let open = async || {
            let table = Arc::clone(&self.table);
            InnodbRelation::open(table, &self.executors, query.io()).await.map(Arc::new)
        };
        self.relation.get_or_try_init(open).await
    }

    fn is_virtual(&self, column: usize) -> bool {
        self.table.definition().columns.get(column).is_some_and(|column| column.virtual_expression.is_some())
    }

    fn read_only(&self) -> datafusion::common::DataFusionError {
        Error::new(ErrorKind::Unsupported, format!("table {} is read only", self.table.definition().name))
            .into()
    }

    /// Whether the scan itself can evaluate a predicate: over stored columns, without subqueries, the same for equal
    /// rows.
    fn evaluates(&self, filter: &Expr) -> Result<bool> {
        let mut plain = !filter.is_volatile();
        filter.apply(|node| {
            plain &= match node {
                Expr::Column(column) => {
                    self.schema.index_of(&column.name).is_ok_and(|column| !self.is_virtual(column))
                }
                Expr::ScalarSubquery(_)
                | Expr::Exists(_)
                | Expr::InSubquery(_)
                | Expr::SetComparison(_)
                | Expr::OuterReferenceColumn(..)
                | Expr::Placeholder(_) => false,
                _ => true,
            };
            Ok(if plain { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
        })?;
        Ok(plain)
    }

    /// The context of the query that is planned.
    fn query_context(&self, state: &dyn Session) -> Arc<QueryContext> {
        let query = state.config().get_extension::<QueryContext>();
        query.unwrap_or_else(|| {
            QueryContext::new(Arc::clone(&self.executors), TanadaOptions::default(), Watched::by_nobody())
        })
    }

    /// A scan of stored columns.
    async fn stored(
        &self,
        state: &dyn Session,
        projection: Vec<usize>,
        predicates: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let query = self.query_context(state);
        let relation = self.relation(&query).await?;
        let fields = DFSchema::try_from(Arc::clone(&self.schema))?;
        let filters: Vec<Arc<dyn PhysicalExpr>> = predicates
            .iter()
            .map(|predicate| state.create_physical_expr(unqualified(predicate)?, &fields))
            .collect::<Result<_>>()?;
        let cores = self.executors.threads();
        let choice = choose(relation, predicates, &filters, &projection, &query, cores).await?;
        let pages: u64 = relation.statistics().indexes.first().map_or(0, |index| index.leaf_pages);
        let partitions = if pages <= SMALL_TABLE_PAGES { 1 } else { state.config().target_partitions() };
        let scan =
            RelationScanExec::new(Arc::clone(relation), projection, filters, limit, choice, partitions)?;
        Ok(Arc::new(scan))
    }
}

/// No keys are declared: DataFusion takes them to hold for joined rows and for NULLs, where they do not.
#[async_trait]
impl TableProvider for InnodbTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    /// Scans stored columns; virtual ones are computed above from the columns they are made of.
    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let wanted = projection.cloned().unwrap_or_else(|| (0..self.schema.fields().len()).collect());
        if !wanted.iter().any(|column| self.is_virtual(*column)) {
            return self.stored(state, wanted, filters, limit).await;
        }
        let query = self.query_context(state);
        let definition = self.table.definition();
        let computed = VirtualColumns::plan(&query, definition, &wanted)?;
        let stored = wanted.iter().copied().filter(|column| !computed.contains(*column));
        let needed: BTreeSet<usize> = stored.chain(computed.inputs()).collect();
        let needed: Vec<usize> = needed.into_iter().collect();
        let scan = self.stored(state, needed.clone(), filters, limit).await?;
        let outputs = wanted.iter().map(|column| {
            let name = self.schema.field(*column).name().clone();
            if computed.contains(*column) {
                return Ok((computed.expression(*column, definition, &self.schema, &needed)?, name));
            }
            let position = needed.iter().position(|needed| needed == column).unwrap_or_default();
            Ok((Arc::new(Column::new(&name, position)) as _, name))
        });
        let outputs: Vec<(Arc<dyn PhysicalExpr>, String)> = outputs.collect::<Result<_>>()?;
        Ok(Arc::new(ProjectionExec::try_new(outputs, scan)?))
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        let support = |filter: &&Expr| {
            Ok(match self.evaluates(filter)? {
                true => TableProviderFilterPushDown::Exact,
                false => TableProviderFilterPushDown::Unsupported,
            })
        };
        filters.iter().map(support).collect()
    }

    async fn insert_into(
        &self,
        _: &dyn Session,
        _: Arc<dyn ExecutionPlan>,
        _: datafusion::logical_expr::dml::InsertOp,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Err(self.read_only())
    }
}

/// The predicate with plain column names, as the scan's schema has them.
pub(crate) fn unqualified(predicate: &Expr) -> Result<Expr> {
    use datafusion::common::tree_node::{Transformed, TransformedResult};
    predicate
        .clone()
        .transform(|node| {
            Ok(match node {
                Expr::Column(column) if column.relation.is_some() => {
                    Transformed::yes(Expr::Column(datafusion::common::Column::new_unqualified(column.name)))
                }
                node => Transformed::no(node),
            })
        })
        .data()
}
