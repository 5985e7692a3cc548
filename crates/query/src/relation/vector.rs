//! VECTOR columns: lists of 4-byte floats, and back to the bytes that the servers store and print.
//!
//! A list has as many entries as the column's definition says. MySQL takes shorter vectors, too: the entries that they
//! lack are NULL, which no entry of a vector is.

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BinaryViewArray, FixedSizeListBuilder, PrimitiveBuilder,
};
use datafusion::arrow::datatypes::{DataType, Float32Type};

/// Bytes of an entry.
const ENTRY_BYTES: usize = 4;

/// Builds a column of vectors.
pub type VectorBuilder = FixedSizeListBuilder<PrimitiveBuilder<Float32Type>>;

/// The type of a column of vectors of up to `dimensions` entries.
pub fn vector_type(dimensions: u32) -> DataType {
    let dimensions = i32::try_from(dimensions).unwrap_or(i32::MAX);
    DataType::new_fixed_size_list(DataType::Float32, dimensions, true)
}

/// Whether a type is that of vectors.
pub fn is_vector(data_type: &DataType) -> bool {
    matches!(data_type, DataType::FixedSizeList(item, _) if *item.data_type() == DataType::Float32)
}

/// A builder of a column of `dimensions` entries a row.
pub fn builder(dimensions: i32) -> VectorBuilder {
    FixedSizeListBuilder::new(PrimitiveBuilder::new(), dimensions)
}

/// Appends a stored vector and returns the bytes it takes; `None` if it is none of this column's.
pub fn append(builder: &mut VectorBuilder, stored: &[u8]) -> Option<usize> {
    let dimensions = usize::try_from(builder.value_length()).ok()?;
    let (entries, rest) = stored.as_chunks::<ENTRY_BYTES>();
    let lacking = dimensions.checked_sub(entries.len()).filter(|_| rest.is_empty())?;
    entries.iter().for_each(|entry| builder.values().append_value(f32::from_le_bytes(*entry)));
    builder.values().append_nulls(lacking);
    builder.append(true);
    Some(dimensions * ENTRY_BYTES)
}

/// Appends NULL.
pub fn append_null(builder: &mut VectorBuilder) {
    let dimensions = usize::try_from(builder.value_length()).unwrap_or(0);
    builder.values().append_nulls(dimensions);
    builder.append(false);
}

/// The vectors of `array` as they are stored; `None` if it has none.
pub fn stored(array: &ArrayRef) -> Option<BinaryViewArray> {
    if !is_vector(array.data_type()) {
        return None;
    }
    let lists = array.as_fixed_size_list();
    let bytes = |row: usize| {
        let entries = lists.value(row);
        let entries = entries.as_primitive::<Float32Type>();
        entries.iter().map_while(|entry| entry).flat_map(f32::to_le_bytes).collect::<Vec<u8>>()
    };
    Some((0..lists.len()).map(|row| lists.is_valid(row).then(|| bytes(row))).collect())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn stored_vectors_come_back_whatever_their_length() {
        let mut column = builder(2);
        let two: Vec<u8> = [1.5f32, -0.0].into_iter().flat_map(f32::to_le_bytes).collect();
        assert_eq!(append(&mut column, &two), Some(8));
        append_null(&mut column);
        assert!(append(&mut column, &two[..4]).is_some() && append(&mut column, &[]).is_some());
        for no_vector in [&two[..3], &[0; 12][..]] {
            assert_eq!(append(&mut column, no_vector), None);
        }
        let array: ArrayRef = Arc::new(column.finish());
        assert_eq!(*array.data_type(), vector_type(2));
        let stored = stored(&array).unwrap();
        let found: Vec<_> = stored.iter().collect();
        assert_eq!(found, [Some(&two[..]), None, Some(&two[..4]), Some(&[][..])]);
    }
}
