//! Rows of a fixed length as the paper has them: what the first query of TPC-H needs of LINEITEM, and that query.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use tanada_base::SplitMix64;

use crate::{Error, Result};

/// Bytes of a row; a row of LINEITEM has about as many.
pub(super) const ROW_BYTES: usize = 128;
/// Rows of LINEITEM at scale factor 1.
pub(super) const ROWS_OF_SCALE_1: u64 = 6_001_215;
/// Days that ship dates fall on, and the last one that the query takes.
const DAYS: u64 = 2526;
const LAST_DAY: u32 = 2436;
/// Combinations of return flag and line status.
const GROUPS: usize = 4;
/// Rows that are made at once.
const ROWS_AT_ONCE: u64 = 1 << 15;

/// A file of rows, removed on drop.
#[derive(Debug)]
pub(super) struct Lineitem {
    path: PathBuf,
    /// Whole blocks of the largest size that is read.
    pub(super) bytes: u64,
}

/// What the query sums up of a group.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sums {
    quantity: i128,
    base_price: i128,
    discounted: i128,
    charge: i128,
    discount: i128,
    count: u64,
}

/// The answer, and what it was before its end.
pub(super) type Answer = [Sums; GROUPS];

impl Lineitem {
    /// Makes `rows` rows, or a few more, in `folder`: a multiple of `block_bytes`.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn make(folder: &Path, rows: u64, block_bytes: u64) -> Result<Lineitem> {
        let bytes = (rows * ROW_BYTES as u64).next_multiple_of(block_bytes);
        let path = folder.join(format!("tanada-bench-lineitem-{}.data", std::process::id()));
        let file = Lineitem { path, bytes };
        let mut options = OpenOptions::new();
        let made = options.write(true).create_new(true).mode(0o600).open(&file.path);
        made.and_then(|mut made| fill(&mut made, bytes / ROW_BYTES as u64))
            .map_err(|error| Error::at_path("write", &file.path, &error))?;
        Ok(file)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Lineitem {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

fn fill(file: &mut File, rows: u64) -> std::io::Result<()> {
    let mut random = SplitMix64::new(rows);
    let mut block = Vec::with_capacity(ROWS_AT_ONCE as usize * ROW_BYTES);
    let mut left = rows;
    while left > 0 {
        block.clear();
        for _ in 0..left.min(ROWS_AT_ONCE) {
            block.extend_from_slice(&row(&mut random));
        }
        file.write_all(&block)?;
        left -= left.min(ROWS_AT_ONCE);
    }
    file.sync_all()
}

/// Numbers in hundredths, little-endian: quantity, price, discount, tax, then the day and the group.
fn row(random: &mut SplitMix64) -> [u8; ROW_BYTES] {
    let mut row = [0; ROW_BYTES];
    // What is not read is random too, so that no device can compress it.
    random.fill(&mut row);
    let quantity = 1 + random.below(50);
    let numbers =
        [quantity * 100, quantity * (90_000 + random.below(20_000)), random.below(11), random.below(9)];
    for (no, number) in numbers.into_iter().enumerate() {
        row[no * 8..(no + 1) * 8].copy_from_slice(&number.to_le_bytes());
    }
    row[32..36].copy_from_slice(&(random.below(DAYS) as u32).to_le_bytes());
    row[36] = random.below(GROUPS as u64) as u8;
    row
}

/// Adds the rows of `block` to `answer`.
pub(super) fn add(block: &[u8], answer: &mut Answer) {
    let number = |row: &[u8; ROW_BYTES], no: usize| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&row[no * 8..(no + 1) * 8]);
        i64::from_le_bytes(bytes)
    };
    for row in block.as_chunks::<ROW_BYTES>().0 {
        if u32::from_le_bytes([row[32], row[33], row[34], row[35]]) > LAST_DAY {
            continue;
        }
        let Some(sums) = answer.get_mut(usize::from(row[36])) else { continue };
        let [quantity, price, discount, tax] = [0, 1, 2, 3].map(|no| number(row, no));
        let discounted = price * (100 - discount);
        sums.quantity += i128::from(quantity);
        sums.base_price += i128::from(price);
        sums.discounted += i128::from(discounted);
        sums.charge += i128::from(discounted) * i128::from(100 + tax);
        sums.discount += i128::from(discount);
        sums.count += 1;
    }
}

/// Adds what another thread has summed up.
pub(super) fn merge(answer: &mut Answer, other: &Answer) {
    for (sums, others) in answer.iter_mut().zip(other) {
        sums.quantity += others.quantity;
        sums.base_price += others.base_price;
        sums.discounted += others.discounted;
        sums.charge += others.charge;
        sums.discount += others.discount;
        sums.count += others.count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_file_sum_up_to_the_whole() {
        let folder = tempfile::tempdir().unwrap();
        let made = Lineitem::make(folder.path(), 5000, 64 << 10).unwrap();
        let bytes = std::fs::read(made.path()).unwrap();
        assert_eq!(bytes.len() as u64, made.bytes);
        let (mut whole, mut parts) = (Answer::default(), Answer::default());
        add(&bytes, &mut whole);
        for part in bytes.chunks(64 << 10) {
            let mut of_part = Answer::default();
            add(part, &mut of_part);
            merge(&mut parts, &of_part);
        }
        assert_eq!(whole, parts);
        let count: u64 = whole.iter().map(|sums| sums.count).sum();
        assert!(count > 4500 && count < made.bytes / ROW_BYTES as u64, "{count}");
    }
}
