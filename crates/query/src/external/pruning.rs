//! Which row groups of a file can hold rows that pass a query's filters, by the bounds in its footer.
//!
//! Bounds are used where they bound the table's values: not of floating numbers, and not of columns whose values are
//! converted. A column whose NULLs were not counted may have some.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, BooleanArray, UInt64Array};
use datafusion::arrow::compute::cast;
use datafusion::common::pruning::PruningStatistics;
use datafusion::common::stats::Precision;
use datafusion::common::{Column, ColumnStatistics, ScalarValue};
use datafusion::physical_optimizer::pruning::PruningPredicate;
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use parquet::file::metadata::RowGroupMetaData;

use super::columns::FileColumn;
use super::parquet::{ParquetFile, rows_of};

/// The bounds of a file's row groups.
pub(crate) struct RowGroupBounds<'a> {
    file: &'a ParquetFile,
    columns: &'a [FileColumn],
}

impl<'a> RowGroupBounds<'a> {
    /// Of a file that has the table's columns.
    pub(crate) fn new(file: &'a ParquetFile, columns: &'a [FileColumn]) -> RowGroupBounds<'a> {
        RowGroupBounds { file, columns }
    }

    /// Whether each row group may hold rows that pass.
    pub(crate) fn kept(&self, predicate: &PruningPredicate) -> Vec<bool> {
        let groups = self.file.metadata().num_row_groups();
        // What cannot be told keeps them all.
        predicate.prune(self).ok().filter(|kept| kept.len() == groups).unwrap_or_else(|| vec![true; groups])
    }

    fn groups(&self) -> &[RowGroupMetaData] {
        self.file.metadata().row_groups()
    }

    fn column(&self, name: &str) -> Option<&FileColumn> {
        self.columns.iter().find(|column| column.field.name() == name)
    }

    fn converter(&self, name: &str) -> Option<StatisticsConverter<'_>> {
        let descriptor = self.file.metadata().file_metadata().schema_descr();
        let converter = StatisticsConverter::try_new(name, self.file.schema(), descriptor).ok()?;
        Some(converter.with_missing_null_counts_as_zero(false))
    }

    fn bounds(&self, name: &str, is_low: bool) -> Option<ArrayRef> {
        let column = self.column(name).filter(|column| column.keeps_bounds())?;
        let converter = self.converter(name)?;
        let bounds = match is_low {
            true => converter.row_group_mins(self.groups()),
            false => converter.row_group_maxes(self.groups()),
        };
        cast(&bounds.ok()?, column.field.data_type()).ok()
    }

    /// An estimate for the planner: never exact, so that nothing is answered by it.
    pub(crate) fn estimate(&self, column: &FileColumn) -> ColumnStatistics {
        let name = column.field.name();
        let best = |is_low: bool| {
            let bounds = self.bounds(name, is_low)?;
            if bounds.null_count() > 0 || !column.field.data_type().is_primitive() {
                return None;
            }
            let values = (0..bounds.len()).filter_map(|no| ScalarValue::try_from_array(&bounds, no).ok());
            values.reduce(|one, other| {
                let is_less = other.partial_cmp(&one).is_some_and(std::cmp::Ordering::is_lt);
                if is_less == is_low { other } else { one }
            })
        };
        let precision = |value: Option<ScalarValue>| value.map_or(Precision::Absent, Precision::Inexact);
        ColumnStatistics {
            min_value: precision(best(true)),
            max_value: precision(best(false)),
            ..ColumnStatistics::new_unknown()
        }
    }
}

impl PruningStatistics for RowGroupBounds<'_> {
    fn min_values(&self, column: &Column) -> Option<ArrayRef> {
        self.bounds(&column.name, true)
    }

    fn max_values(&self, column: &Column) -> Option<ArrayRef> {
        self.bounds(&column.name, false)
    }

    fn num_containers(&self) -> usize {
        self.groups().len()
    }

    fn null_counts(&self, column: &Column) -> Option<ArrayRef> {
        self.column(&column.name).filter(|column| column.keeps_bounds())?;
        let counts = self.converter(&column.name)?.row_group_null_counts(self.groups()).ok()?;
        Some(Arc::new(counts))
    }

    fn row_counts(&self) -> Option<ArrayRef> {
        Some(Arc::new(UInt64Array::from_iter_values(self.groups().iter().map(rows_of))))
    }

    fn contained(&self, _: &Column, _: &HashSet<ScalarValue>) -> Option<BooleanArray> {
        None
    }
}
