//! Which access path is cheapest.
//!
//! 1. Rows of a selection: by descents to the ends of its ranges. Where the index cannot be descended, by distinct
//!    values of the equal leading parts, and by the predicates' hits among the sampled rows; the smaller counts (a
//!    sample that a rare value is not in says only "few").
//! 2. Each selection is an index-only scan if the index covers, else bookmarks; or single look-ups if a key has few
//!    rows.
//! 3. An index that covers may also be read as a whole instead of the table.
//! 4. The cost model turns each into a time; the least wins. All of them are kept to be shown by `EXPLAIN`.

use std::sync::Arc;

use datafusion::arrow::array::{Array, BooleanArray};
use datafusion::common::Result as DataFusionResult;
use datafusion::common::cast::as_boolean_array;
use datafusion::logical_expr::Expr;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::utils::collect_columns;
use tanada_innodb::IndexNo;
use tanada_innodb::schema::IndexKind;

use super::constraint::constraints;
use super::gather::decoded_columns;
use super::path::{AccessPath, Selection, covers, everything, index_name, selections};
use crate::columnar::Finding;
use crate::cost::{Cost, CostModel, Lookups};
use crate::relation::InnodbRelation;
use crate::session::context::QueryContext;
use crate::settings::{Choice, ColumnarUse};

/// Share of rows that a predicate is taken to leave where the sample cannot say.
const UNKNOWN_SELECTIVITY: f64 = 0.2;
/// Ranges of a selection whose ends are descended to.
const MOST_DESCENDED: usize = 8;
/// Rows of a key above which its leaves are read as a range rather than looked up page by page.
const MOST_ROWS_PER_LOOKUP: f64 = 64.0;

/// A chosen path and why.
#[derive(Debug, Clone)]
pub struct ScanChoice {
    /// The path.
    pub path: AccessPath,
    /// Rows after all predicates, estimated.
    pub rows: f64,
    /// What was weighed, cheapest first: description and cost.
    pub considered: Vec<(String, Cost)>,
    /// Whether columnar mirrors are read, and why, where there may be such.
    pub columnar: Option<String>,
}

/// Chooses how to read `projection` of the rows that pass `predicates`; `filters` are the same predicates as physical
/// expressions over the relation's schema.
pub async fn choose(
    relation: &Arc<InnodbRelation>,
    predicates: &[Expr],
    filters: &[Arc<dyn PhysicalExpr>],
    projection: &[usize],
    query: &QueryContext,
    cores: usize,
) -> DataFusionResult<ScanChoice> {
    let options = query.options();
    let (model, _) = relation.cost_model(options, cores);
    let sampled = SampledFilters::new(relation, filters)?;
    let needed = decoded_columns(projection, filters);
    let weigh = Weigh { relation, model, sampled, columns: needed.len() as f64 };
    let mut rows = None::<f64>;

    let full = weigh.model.full_scan(&relation.shape(), weigh.columns);
    let mut candidates = vec![(AccessPath::FullScan, "full scan".to_string(), weigh.model.time(full))];
    // Where damage is stepped over, only what scans lose is known.
    if options.index_scan != Choice::Never && !options.skip_damaged {
        for selection in selections(relation, &constraints(relation, predicates))? {
            let selected = weigh.rows(&selection, query).await;
            let others = (0..filters.len()).filter(|predicate| !selection.predicates.contains(predicate));
            let passing = selected * weigh.sampled.selectivity(others);
            rows = Some(rows.map_or(passing, |least| least.min(passing)));
            candidates.extend(weigh.selection(selection, selected, &needed));
        }
        candidates.extend(weigh.covering_indexes(&needed));
    }
    let sampled = || relation.statistics().rows as f64 * weigh.sampled.selectivity(0..filters.len());
    let rows = rows.unwrap_or_else(sampled);
    let mirrors = match options.skip_damaged {
        true => None,
        false => weigh.mirrors(&needed, query).await,
    };
    candidates.sort_by(|a, b| a.2.time_us.total_cmp(&b.2.time_us));
    let wanted = |path: &AccessPath| {
        options.index_scan != Choice::Always || options.skip_damaged || !matches!(path, AccessPath::FullScan)
    };
    let chosen = candidates.iter().position(|(path, _, _)| wanted(path)).unwrap_or(0);
    let mut first = candidates.remove(chosen);
    let columnar = mirrors.map(|mirrors| match mirrors {
        Ok(mirrors) => match why_not(&mirrors, &first, query) {
            None => {
                let replaced = std::mem::replace(&mut first, mirrors);
                candidates.insert(0, replaced);
                "all columns have mirrors of the files as they are".to_string()
            }
            Some(why) => format!("pages: {why}"),
        },
        Err(why) => format!("pages: {why}"),
    });
    let path = first.0.clone();
    let considered = std::iter::once(first).chain(candidates).map(|(_, name, cost)| (name, cost)).collect();
    Ok(ScanChoice { path, rows, considered, columnar })
}

type Candidate = (AccessPath, String, Cost);

/// Why mirrors are not read, though they could be; `None` if they are.
fn why_not(mirrors: &Candidate, best: &Candidate, query: &QueryContext) -> Option<&'static str> {
    let options = query.options();
    if query.keeps_order() && !matches!(best.0, AccessPath::FullScan) {
        return Some("rows are wanted in the order of an index");
    }
    match options.columnar {
        ColumnarUse::Always => {
            matches!(best.0, AccessPath::Lookups { .. }).then_some("single rows are looked up")
        }
        _ => (mirrors.2.time_us > best.2.time_us).then_some("they would take longer"),
    }
}

struct Weigh<'a> {
    relation: &'a Arc<InnodbRelation>,
    model: CostModel,
    sampled: SampledFilters,
    columns: f64,
}

impl Weigh<'_> {
    /// Mirrors of all needed columns, or why there are none; `None` where none are kept.
    async fn mirrors(&self, needed: &[usize], query: &QueryContext) -> Option<Result<Candidate, String>> {
        let columnar = query.columnar()?;
        let found = columnar.find(self.relation, needed, query.orders_dates()).await;
        query.warn(columnar.take_warnings());
        let mirrors = match found {
            Finding::Found(mirrors) => mirrors,
            Finding::Pages(why) => return Some(Err(why)),
        };
        let (files, groups) = (mirrors.files().len() as f64, mirrors.groups() as f64);
        let work = self.model.mirrors(mirrors.rows() as f64, files, groups, mirrors.bytes() as f64);
        let name = match mirrors.columns() {
            1 => "mirror of 1 column".to_string(),
            count => format!("mirrors of {count} columns"),
        };
        Some(Ok((AccessPath::Mirrors(mirrors), name, self.model.time(work))))
    }

    /// `None` if the index does not cover and rows cannot be fetched by what it knows of them.
    fn selection(
        &self,
        selection: Selection,
        rows: f64,
        needed: &[usize],
    ) -> Option<(AccessPath, String, Cost)> {
        let relation = self.relation;
        let total = relation.statistics().rows as f64;
        let index = selection.index;
        let share = if total > 0.0 { rows / total } else { 0.0 };
        let covering = index == IndexNo(0) || covers(relation, index, needed);
        if !covering && !relation.table().fetchable() {
            return None;
        }
        let shape = relation.shape();
        let index_shape = relation.index_shape(index);
        let keys = selection.keys.len() as f64;
        let per_key = rows / keys.max(1.0);
        let name = index_name(relation, index);
        if !selection.bounded && !selection.keys.is_empty() && per_key <= MOST_ROWS_PER_LOOKUP {
            let lookups = Lookups {
                keys,
                matches_per_key: per_key,
                index: index_shape,
                bookmarks: !covering,
                columns: self.columns,
            };
            let cost = self.model.time(self.model.lookup(&shape, &lookups));
            let what = if keys == 1.0 { "look-up".to_string() } else { format!("{keys} look-ups") };
            let path = AccessPath::Lookups { index, keys: selection.keys };
            return Some((path, format!("{what} in {name}"), cost));
        }
        let ranges = selection.ranges;
        if covering {
            let cost = self.model.time(self.model.range_scan(&shape, &index_shape, share, self.columns));
            return Some(if index == IndexNo(0) {
                (AccessPath::ClusteredRange { ranges }, format!("range of {name}"), cost)
            } else {
                (AccessPath::IndexOnly { index, ranges }, format!("index-only range of {name}"), cost)
            });
        }
        let cost = self.model.time(self.model.bookmark_scan(&shape, &index_shape, share, self.columns));
        Some((AccessPath::Bookmarks { index, ranges }, format!("bookmarks of {name}"), cost))
    }

    /// Whole indexes that hold all needed columns.
    fn covering_indexes(&self, needed: &[usize]) -> Vec<(AccessPath, String, Cost)> {
        let relation = self.relation;
        let definition = relation.table().definition();
        let clustered = relation.index_shape(IndexNo(0));
        let secondary = (1..definition.indexes.len()).map(IndexNo).filter(|index| {
            definition.indexes[index.0].kind == IndexKind::BTree
                && relation.index_shape(*index).leaf_pages < clustered.leaf_pages
                && covers(relation, *index, needed)
        });
        secondary
            .map(|index| {
                let work =
                    self.model.range_scan(&relation.shape(), &relation.index_shape(index), 1.0, self.columns);
                let name = format!("index-only scan of {}", index_name(relation, index));
                (AccessPath::IndexOnly { index, ranges: vec![everything()] }, name, self.model.time(work))
            })
            .collect()
    }

    /// Rows of a selection.
    async fn rows(&self, selection: &Selection, query: &QueryContext) -> f64 {
        match self.descended(selection, query).await {
            // Where damage is in the way, the query will tell.
            Err(_) | Ok(None) => self.sampled_rows(selection),
            Ok(Some(rows)) => rows,
        }
    }

    /// Rows between the ends of its ranges; of many ranges some are looked at. `None` if there are none.
    async fn descended(
        &self,
        selection: &Selection,
        query: &QueryContext,
    ) -> tanada_innodb::Result<Option<f64>> {
        let (table, ranges) = (self.relation.table(), &selection.ranges);
        let step = ranges.len().div_ceil(MOST_DESCENDED).max(1);
        let descents = ranges.iter().step_by(step);
        let descents = descents.map(|range| table.range_rows(selection.index, range, query.io()));
        let found = futures::future::try_join_all(descents).await?;
        let rows: f64 = found.iter().map(|found| found.rows).sum();
        let is_known = !found.is_empty();
        Ok(is_known.then(|| rows * ranges.len() as f64 / found.len() as f64))
    }

    /// The same, as the sample tells.
    fn sampled_rows(&self, selection: &Selection) -> f64 {
        let statistics = self.relation.statistics();
        let total = statistics.rows as f64;
        let by_sample = total * self.sampled.selectivity(selection.predicates.iter().copied());
        let Some(part) = selection.equal_parts.checked_sub(1) else { return by_sample };
        let index = &self.relation.table().definition().indexes[selection.index.0];
        let distinct =
            statistics.indexes.get(selection.index.0).and_then(|index| index.distinct.get(part)).copied();
        let whole_key = index.unique && selection.equal_parts == index.parts.len();
        let per_key = match distinct {
            _ if whole_key => 1.0,
            Some(distinct) if distinct > 0 => total / distinct as f64,
            _ => return by_sample,
        };
        by_sample.min(per_key * selection.keys.len() as f64)
    }
}

/// Hits of each predicate among the sampled rows.
struct SampledFilters {
    rows: usize,
    /// `None` where the sample lacks a column.
    hits: Vec<Option<BooleanArray>>,
}

impl SampledFilters {
    fn new(relation: &InnodbRelation, filters: &[Arc<dyn PhysicalExpr>]) -> DataFusionResult<SampledFilters> {
        let sample = relation.sample();
        let mut hits = Vec::with_capacity(filters.len());
        for filter in filters {
            let known = collect_columns(filter).iter().all(|column| relation.sampled(column.index()));
            // A predicate that fails on some row (a division by zero) fails when it is run, not here.
            let result = if known { filter.evaluate(sample).ok() } else { None };
            hits.push(match result {
                Some(value) => Some(as_boolean_array(&value.into_array(sample.num_rows())?)?.clone()),
                None => None,
            });
        }
        Ok(SampledFilters { rows: sample.num_rows(), hits })
    }

    /// Share of rows that pass all of these predicates.
    fn selectivity(&self, predicates: impl Iterator<Item = usize>) -> f64 {
        let mut unknown = 1.0;
        let mut known: Vec<&BooleanArray> = Vec::new();
        for predicate in predicates {
            match &self.hits[predicate] {
                Some(hits) => known.push(hits),
                None => unknown *= UNKNOWN_SELECTIVITY,
            }
        }
        if known.is_empty() {
            return unknown;
        }
        let passes = |row: usize| known.iter().all(|hits| hits.is_valid(row) && hits.value(row));
        let passed = (0..self.rows).filter(|row| passes(*row)).count();
        // Laplace's rule of succession: no hit among n rows does not mean none in the table.
        unknown * (passed as f64 + 1.0) / (self.rows as f64 + 2.0)
    }
}
