//! MySQL's LOBs (`lob0first.h`, `lob0index.h`, `lob0pages.h`).
//!
//! The first page has at 64 the list of index entries ([`super::entries`]), the first ten of them from 96 on, and data
//! from 696 on. An entry of 60 bytes names at 48 a data page and at 52 how many bytes of the value lie there; more
//! entries lie on index pages. The entries are followed first, then all data pages are read at once.

use futures::{StreamExt, TryStreamExt, stream};
use tanada_io::IoContext;

use super::entries::EntryList;
use crate::page::header::{link_at, page_type, u16_at};
use crate::{Page, PageNo, Result, Tablespace};

const ENTRIES: EntryList =
    EntryList { first_at: 64 + 4, entry_bytes: 60, page_types: [page_type::LOB_FIRST, page_type::LOB_INDEX] };
const FIRST_PAGE_DATA: usize = 696;
const ENTRY_PAGE: usize = 48;
const ENTRY_LENGTH: usize = 52;
const DATA_PAGE_DATA: usize = 49;
/// Data pages asked for at once.
const PREFETCH: usize = 64;

/// Appends the `length` bytes of the value that begins on page `first`.
pub(super) async fn read(
    space: &Tablespace,
    first: Page,
    length: usize,
    value: &mut Vec<u8>,
    context: &IoContext,
) -> Result<()> {
    value.reserve_exact(length);
    let parts = ENTRIES.read(space, &first, length, context, entry).await?;
    let reads = stream::iter(parts).map(|(no, bytes)| part(space, &first, no, bytes, context));
    let mut reads = reads.buffered(PREFETCH);
    while let Some((page, start, bytes)) = reads.try_next().await? {
        let part = page.bytes().get(start..start + bytes);
        let outside =
            || space.corrupt(page.number(), &format!("{bytes} bytes of an off-page value do not fit it"));
        value.extend_from_slice(part.ok_or_else(outside)?);
    }
    Ok(())
}

/// The data page that an entry names, with the bytes on it; at most `left`.
fn entry(entry: &[u8], left: usize) -> std::result::Result<((PageNo, usize), usize), String> {
    let bytes = usize::from(u16_at(entry, ENTRY_LENGTH)).min(left);
    let data = link_at(entry, ENTRY_PAGE).ok_or("no data")?;
    Ok(((data, bytes), bytes))
}

async fn part(
    space: &Tablespace,
    first: &Page,
    no: PageNo,
    bytes: usize,
    context: &IoContext,
) -> Result<(Page, usize, usize)> {
    if no == first.number() {
        return Ok((first.clone(), FIRST_PAGE_DATA, bytes));
    }
    let page = space.page(no, context).await?;
    if page.page_type() != page_type::LOB_DATA {
        return Err(space.corrupt(no, &format!("it has type {} where data should be", page.page_type())));
    }
    Ok((page, DATA_PAGE_DATA, bytes))
}
