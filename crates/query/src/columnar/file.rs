//! The mirror of one column: its file is opened, checked, and read by groups of rows.
//!
//! Nothing of it is believed before it is checked: the footer by its checksum, which is in the footer itself and was
//! computed with zeros in its place; a group of rows by that which the footer has.

use std::ops::Range;

use bytes::Bytes;
use datafusion::arrow::datatypes::DataType;
use parquet::arrow::arrow_reader::RowSelection;
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use serde::{Deserialize, Serialize};

use super::types::{restored, stored_type};
use crate::external::parquet::{ParquetFile, RowGroupRows};
use crate::scan::number_of;
use crate::store::FileStore;
use crate::{Error, ErrorKind, Result};

/// Key of the description.
pub(super) const DESCRIPTION_KEY: &str = "tanada.mirror";
/// Key of the checksum.
pub(super) const CHECKSUM_KEY: &str = "tanada.footer";
/// What stands in the place of the checksum while it is computed.
pub(super) const CHECKSUM_PLACE: &str = "crc32:00000000";
/// The part of it that does not change.
const CHECKSUM_LABEL: &str = "crc32:";
/// Length of the footer and the magic.
pub(super) const TAIL_BYTES: usize = 8;

/// What a mirror says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Description {
    /// The hash of the state of the table's files.
    pub(super) state: String,
    pub(super) database: String,
    pub(super) table: String,
    pub(super) column: String,
    /// The column's position in the table.
    pub(super) column_no: usize,
    pub(super) rows: u64,
    /// Rows of a group; the last one may have fewer.
    pub(super) group_rows: u64,
    /// Of the bytes of each group.
    pub(super) checksums: Vec<u32>,
    /// Whether there are dates that queries which order dates refuse.
    pub(super) has_partial_dates: bool,
}

/// A mirror that is open.
#[derive(Debug)]
pub(crate) struct MirrorFile {
    /// The file's name in the store.
    pub(super) name: String,
    /// Its size.
    pub(super) bytes: u64,
    pub(super) description: Description,
    parquet: ParquetFile,
    /// Of the values of each group that are numbers: the least and the greatest; `None` if nothing is known.
    bounds: Vec<Option<(i128, i128)>>,
    data_type: DataType,
}

impl MirrorFile {
    /// Opens and checks a mirror of whatever is in it, for somebody to look at.
    ///
    /// # Errors
    /// `Data` if it is damaged, `NotFound` if there is none.
    pub(super) async fn describe(store: &FileStore, name: &str) -> Result<(Description, u64)> {
        let parquet = ParquetFile::open_checked(store, name, check_footer).await?;
        let bytes = parquet.identity.bytes;
        description_of(&parquet, name).map(|description| (description, bytes))
    }

    /// Opens and checks the mirror of column `column_no`, of type `data_type`, in the state `state`.
    ///
    /// # Errors
    /// `Data` if it is damaged or of something else, `NotFound` if there is none.
    pub(super) async fn open(
        store: &FileStore,
        name: &str,
        state: &str,
        column_no: usize,
        data_type: &DataType,
    ) -> Result<MirrorFile> {
        let parquet = ParquetFile::open_checked(store, name, check_footer).await?;
        let description = description_of(&parquet, name)?;
        let metadata = parquet.metadata();
        let stored = stored_type(data_type);
        let groups = metadata.num_row_groups();
        let rows = u64::try_from(metadata.file_metadata().num_rows()).unwrap_or(0);
        let is_sound = description.state == state
            && description.column_no == column_no
            && description.rows == rows
            && description.checksums.len() == groups
            && description.group_rows > 0
            && rows.div_ceil(description.group_rows) == groups as u64
            && matches!(parquet.schema().fields().iter().as_slice(), [only] if *only.data_type() == stored);
        if !is_sound {
            return Err(damaged(name, "it is not what its name says"));
        }
        let bounds = bounds_of(&parquet, data_type).unwrap_or_else(|| vec![None; groups]);
        let bytes = parquet.identity.bytes;
        let name = name.to_owned();
        Ok(MirrorFile { name, bytes, description, parquet, bounds, data_type: data_type.clone() })
    }

    /// Groups of rows.
    pub(super) fn groups(&self) -> usize {
        self.bounds.len()
    }

    /// The least and the greatest number in a group, if they are known.
    pub(crate) fn bounds(&self, group: usize) -> Option<(i128, i128)> {
        self.bounds.get(group).copied().flatten()
    }

    /// The name of its file.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The type of its values.
    pub(crate) fn data_type(&self) -> &DataType {
        &self.data_type
    }

    /// Where a group of rows lies in the file.
    pub(crate) fn place(&self, group: usize) -> Range<u64> {
        self.parquet.chunks(group, &[0]).pop().unwrap_or_default()
    }

    /// Checks the bytes of a group of rows.
    ///
    /// # Errors
    /// `Data` if they are damaged.
    pub(crate) fn verify(&self, group: usize, bytes: &[u8]) -> Result<()> {
        match self.description.checksums.get(group) == Some(&crc32fast::hash(bytes)) {
            true => Ok(()),
            false => Err(damaged(&self.name, &format!("group {group} has another checksum"))),
        }
    }

    /// Begins to decode a group of rows whose bytes were read and checked, or some of its rows.
    ///
    /// # Errors
    /// `Data` if they cannot be decoded.
    pub(crate) fn decode(
        &self,
        group: usize,
        bytes: Bytes,
        selection: Option<RowSelection>,
    ) -> Result<RowGroupRows> {
        self.parquet.decode_selected(group, &[0], vec![(self.place(group), bytes)], selection)
    }
}

pub(super) fn damaged(name: &str, what: &str) -> Error {
    Error::new(ErrorKind::Data, format!("the mirror {name} is damaged: {what}"))
}

fn value_of<'a>(parquet: &'a ParquetFile, key: &str) -> Option<&'a str> {
    let pairs = parquet.metadata().file_metadata().key_value_metadata()?;
    pairs.iter().find(|pair| pair.key == key)?.value.as_deref()
}

fn description_of(parquet: &ParquetFile, name: &str) -> Result<Description> {
    let text =
        value_of(parquet, DESCRIPTION_KEY).ok_or_else(|| damaged(name, "it does not say what it is"))?;
    serde_json::from_str(text).map_err(|error| damaged(name, &error.to_string()))
}

/// Where the digits of the checksum are in a footer: the last of the places that look like it, since nothing that
/// others may choose stands behind it.
fn digits(footer: &[u8]) -> Option<Range<usize>> {
    let label = CHECKSUM_LABEL.as_bytes();
    let at = footer.windows(CHECKSUM_PLACE.len()).rposition(|part| part.starts_with(label))?;
    Some(at + label.len()..at + CHECKSUM_PLACE.len())
}

/// The footer with its checksum, in which there are zeros in the place of that.
pub(super) fn with_checksum(footer: &[u8]) -> Option<Vec<u8>> {
    let digits = digits(footer)?;
    let mut footer = footer.to_vec();
    let checksum = format!("{:08x}", crc32fast::hash(&footer));
    footer[digits].copy_from_slice(checksum.as_bytes());
    Some(footer)
}

fn check_footer(footer: &[u8]) -> Result<()> {
    let wrong = || Error::new(ErrorKind::Data, "the checksum of a mirror's footer is wrong");
    let digits = digits(footer).ok_or_else(wrong)?;
    let mut zeroed = footer.to_vec();
    zeroed[digits].fill(b'0');
    match with_checksum(&zeroed).as_deref() == Some(footer) {
        true => Ok(()),
        false => Err(wrong()),
    }
}

fn bounds_of(parquet: &ParquetFile, data_type: &DataType) -> Option<Vec<Option<(i128, i128)>>> {
    let descriptor = parquet.metadata().file_metadata().schema_descr();
    let converter = StatisticsConverter::try_new("values", parquet.schema(), descriptor).ok()?;
    let groups = || parquet.metadata().row_groups().iter();
    let least = restored(&converter.row_group_mins(groups()).ok()?, data_type).ok()?;
    let most = restored(&converter.row_group_maxes(groups()).ok()?, data_type).ok()?;
    let (least, most) = (number_of(&least)?, number_of(&most)?);
    Some(least.into_iter().zip(most).map(|(least, most)| Some((least?, most?))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_footer_is_believed_with_its_own_checksum_alone() {
        let footer = format!("schema {CHECKSUM_PLACE} of a column, {CHECKSUM_KEY}{CHECKSUM_PLACE} and more");
        let sealed = with_checksum(footer.as_bytes()).unwrap();
        assert!(check_footer(&sealed).is_ok() && check_footer(footer.as_bytes()).is_err());
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert!(check_footer(&changed).is_err(), "{at}");
        }
        assert!(with_checksum(b"nothing").is_none() && check_footer(b"").is_err());
    }
}
