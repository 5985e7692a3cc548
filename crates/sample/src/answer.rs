//! Answers as text: what `mysql --batch` prints, and whether two of them say the same.
//!
//! Rows are compared as a set, because SQL promises an order only where it is asked for. Values are compared as text,
//! and where the texts differ as numbers with a relative tolerance: engines round the scale of averages differently.

use datafusion::arrow::array::RecordBatch;

use crate::{Error, Result};

/// Largest relative difference between numbers that are the same.
const TOLERANCE: f64 = 1e-6;

/// The rows of `batches` as tab-separated lines, without a header.
///
/// # Errors
/// When a value has no text.
pub fn lines(batches: &[RecordBatch]) -> Result<Vec<String>> {
    let mut lines = Vec::new();
    for batch in batches {
        let schema = batch.schema();
        let columns = schema
            .fields()
            .iter()
            .zip(batch.columns())
            .map(|(field, array)| tanada_query::text::column_text(field, array))
            .collect::<tanada_query::Result<Vec<_>>>()?;
        lines.extend((0..batch.num_rows()).map(|row| {
            let cells = columns.iter().map(|column| match &column[row] {
                Some(bytes) => String::from_utf8_lossy(bytes).into_owned(),
                None => "NULL".to_owned(),
            });
            cells.collect::<Vec<_>>().join("\t")
        }));
    }
    Ok(lines)
}

/// Checks `rows` against `expected`, a header line and rows as `mysql --batch` prints them.
///
/// # Errors
/// Names the first difference.
pub fn check(mut rows: Vec<String>, expected: &str) -> Result<()> {
    let mut wanted: Vec<&str> = expected.lines().skip(1).collect();
    if rows.len() != wanted.len() {
        return Err(Error::failed(format!("the answer has {} rows instead of {}", rows.len(), wanted.len())));
    }
    rows.sort_unstable();
    wanted.sort_unstable();
    match rows.iter().zip(&wanted).find(|(row, wanted)| !same_row(row, wanted)) {
        None => Ok(()),
        Some((row, wanted)) => {
            Err(Error::failed(format!("the answer has the row {row:?} instead of {wanted:?}")))
        }
    }
}

fn same_row(row: &str, wanted: &str) -> bool {
    row.split('\t').count() == wanted.split('\t').count()
        && row.split('\t').zip(wanted.split('\t')).all(|(a, b)| a == b || same_number(a, b))
}

fn same_number(a: &str, b: &str) -> bool {
    // Fractions alone: a key that differs in its last digit is another key.
    if !a.contains('.') && !b.contains('.') {
        return false;
    }
    match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(a), Ok(b)) => (a - b).abs() <= TOLERANCE * a.abs().max(b.abs()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(rows: &[&str], expected: &str) -> Result<()> {
        check(rows.iter().map(|row| row.to_string()).collect(), expected)
    }

    #[test]
    fn rows_may_come_in_any_order_and_scales_may_differ() {
        assert!(checked(&["2\tb", "1\ta"], "n\tt\n1\ta\n2\tb\n").is_ok());
        assert!(checked(&["0.0500000\ta"], "n\tt\n0.05\ta\n").is_ok());
    }

    #[test]
    fn a_wrong_missing_or_doubled_row_is_noticed() {
        let expected = "n\tt\n1\ta\n2\tb\n";
        assert!(checked(&["1\ta"], expected).is_err());
        assert!(checked(&["1\ta", "1\ta"], expected).is_err());
        assert!(checked(&["1\ta", "2\tc"], expected).is_err());
        assert!(checked(&["1000000000\ta"], "n\tt\n1000000001\ta\n").is_err());
        assert!(checked(&["1.5\ta"], "n\tt\n1.6\ta\n").is_err());
    }
}
