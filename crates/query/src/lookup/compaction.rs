//! Texts of few rows without the bytes of many.
//!
//! Rows that are taken from a batch share its texts: arrays of views keep all buffers that they came from. In a chain
//! of joins each small batch would so hold, and be charged, the texts of all batches before it.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, GenericByteViewArray};
use datafusion::arrow::datatypes::{ByteViewType, DataType};
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::Result;

/// Bytes of texts below which sharing costs little.
const SMALL_BYTES: usize = 4 << 10;

/// The batch with arrays of views that hold their own texts alone.
pub(super) fn compacted(batch: RecordBatch) -> Result<RecordBatch> {
    let is_view = |array: &ArrayRef| matches!(array.data_type(), DataType::Utf8View | DataType::BinaryView);
    if !batch.columns().iter().any(is_view) {
        return Ok(batch);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let (schema, columns, _) = batch.into_parts();
    let columns = columns
        .into_iter()
        .map(|array| match array.data_type() {
            DataType::Utf8View => own(array.as_string_view()).map_or(array, |own| Arc::new(own) as ArrayRef),
            DataType::BinaryView => {
                own(array.as_binary_view()).map_or(array, |own| Arc::new(own) as ArrayRef)
            }
            _ => array,
        })
        .collect();
    Ok(RecordBatch::try_new_with_options(schema, columns, &options)?)
}

/// A copy with its own texts, if it shares more than it uses.
fn own<T: ByteViewType + ?Sized>(array: &GenericByteViewArray<T>) -> Option<GenericByteViewArray<T>> {
    let held: usize = array.data_buffers().iter().map(|buffer| buffer.capacity()).sum();
    (held > SMALL_BYTES && held / 2 > array.total_buffer_bytes_used()).then(|| array.gc())
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::StringViewArray;
    use datafusion::arrow::datatypes::{Field, Schema};

    use super::*;

    #[test]
    fn rows_that_were_taken_hold_no_other_texts() {
        let long = (0..1_000).map(|no| format!("a text of more than twelve bytes, number {no}"));
        let texts: ArrayRef = Arc::new(StringViewArray::from_iter_values(long));
        let schema = Arc::new(Schema::new(vec![Field::new("c", DataType::Utf8View, false)]));
        let batch = RecordBatch::try_new(schema, vec![texts]).unwrap();
        let few = batch.slice(10, 3);
        let own = compacted(few.clone()).unwrap();
        assert_eq!(own, few);
        assert!(own.get_array_memory_size() < few.get_array_memory_size() / 20);
        // What is used whole is not copied.
        let whole = compacted(batch.clone()).unwrap();
        assert!(Arc::ptr_eq(whole.column(0), batch.column(0)));
    }
}
