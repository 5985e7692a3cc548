//! Values that lie outside of their row: 20-byte references and what they lead to.
//!
//! MariaDB, and MySQL before 8.0, chain BLOB pages ([`chain`]). MySQL since 8.0 has a first page with an index of data
//! pages ([`indexed`]). In tables with ROW_FORMAT=COMPRESSED both are deflated ([`deflated_chain`],
//! [`deflated_index`]). The type of the first page tells which. A length is believed only as far as the file could hold
//! it.

mod chain;
mod deflated_chain;
mod deflated_index;
mod entries;
mod indexed;
mod inflate;

pub(crate) use deflated_chain::read as read_deflated;
use tanada_io::IoContext;

use crate::page::header::page_type;
use crate::{Error, ErrorKind, PageNo, Result, Tablespace};

/// Bytes of a reference.
pub(crate) const REFERENCE_BYTES: usize = 20;

/// Where the rest of a value lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reference {
    space: u32,
    page: PageNo,
    length: u32,
}

impl Reference {
    /// Splits what a record holds of an external value into its leading bytes and the reference behind them.
    pub(crate) fn split(local: &[u8]) -> Result<(&[u8], Reference)> {
        let Some((prefix, reference)) = local.split_last_chunk::<REFERENCE_BYTES>() else {
            return Err(Error::new(ErrorKind::Corrupt, "an off-page value has no reference"));
        };
        let word = |at: usize| {
            u32::from_be_bytes([reference[at], reference[at + 1], reference[at + 2], reference[at + 3]])
        };
        // The upper half of the length holds flags about ownership, which matter to rollback only.
        Ok((prefix, Reference { space: word(0), page: PageNo(word(4)), length: word(16) }))
    }

    /// Bytes that lie outside of the record.
    pub(crate) fn length(&self) -> usize {
        self.length as usize
    }
}

/// Fetches a value of which the record holds `local`, at most `longest` bytes in all.
pub(crate) async fn fetch(
    space: &Tablespace,
    local: &[u8],
    longest: u64,
    context: &IoContext,
) -> Result<Vec<u8>> {
    let (prefix, reference) = Reference::split(local)?;
    let mut value = prefix.to_vec();
    if reference.length == 0 {
        return Ok(value);
    }
    let total = prefix.len() as u64 + u64::from(reference.length);
    let room = room(space);
    if total > longest || u64::from(reference.length) > room || reference.space != space.id().0 {
        let what = format!("an off-page value of {total} bytes in space {} is impossible", reference.space);
        return Err(Error::new(ErrorKind::Corrupt, what));
    }
    let first = space.page(reference.page, context).await?;
    match first.page_type() {
        page_type::BLOB => chain::read(space, first, reference.length(), &mut value, context).await?,
        page_type::LOB_FIRST => indexed::read(space, first, reference.length(), &mut value, context).await?,
        page_type::ZBLOB => {
            let (next, length) = (page_type::ZBLOB_NEXT, reference.length());
            deflated_chain::read(space, first, next, length, &mut value, context).await?;
        }
        page_type::ZLOB_FIRST => {
            deflated_index::read(space, first, reference.length(), &mut value, context).await?;
        }
        _ if space.is_of_type(&first, &[page_type::BLOB]) => {
            chain::read(space, first, reference.length(), &mut value, context).await?;
        }
        other => {
            let what = format!("it has type {other} where an off-page value should begin");
            return Err(space.corrupt(reference.page, &what));
        }
    }
    Ok(value)
}

/// The most bytes that the file could hold, as it is or deflated.
fn room(space: &Tablespace) -> u64 {
    let stored = u64::from(space.pages()) * u64::from(space.page_size().0);
    match space.is_zipped() {
        true => stored.saturating_mul(inflate::MOST_RATIO),
        false => stored,
    }
}

/// The first part of the chain that begins at page `no`, of whatever length.
pub(crate) async fn first_part(space: &Tablespace, no: PageNo, context: &IoContext) -> Result<Vec<u8>> {
    let page = space.page(no, context).await?;
    if !space.is_of_type(&page, &[page_type::BLOB]) {
        return Err(space.corrupt(no, &format!("it has type {} and not a BLOB's", page.page_type())));
    }
    chain::part(space, &page).map(<[u8]>::to_vec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_come_last() {
        let mut local = b"prefix".to_vec();
        local.extend_from_slice(&[0, 0, 0, 9, 0, 0, 0, 7, 0, 0, 0, 38, 0x80, 0, 0, 0, 0, 1, 0, 0]);
        let (prefix, reference) = Reference::split(&local).unwrap();
        assert_eq!(prefix, b"prefix");
        assert_eq!(reference, Reference { space: 9, page: PageNo(7), length: 65536 });
        assert!(Reference::split(&local[7..]).is_err());
    }
}
