//! MySQL's LOBs (`lob0first.h`, `lob0index.h`, `lob0pages.h`).
//!
//! The first page has at 64 the list of index entries, the first ten of them from 96 on, and data from 696 on. An entry of 60 bytes names at 6 the
//! next entry (page, offset), at 48 a data page and at 52 how many bytes of the value lie there; more entries lie on index pages. After a partial
//! update the list holds the newest version; older ones hang beside it. The entries are followed first, then all data pages are read at once.

use futures::{StreamExt, TryStreamExt, stream};
use tanada_io::IoContext;

use crate::page::header::{link_at, page_type, u16_at};
use crate::{Page, PageNo, Result, Tablespace};

const LIST_FIRST: usize = 64 + 4;
const FIRST_PAGE_DATA: usize = 696;
const ENTRY_BYTES: usize = 60;
const ENTRY_NEXT: usize = 6;
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
    let parts = entries(space, &first, length, context).await?;
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

/// The data pages with the bytes on each, `length` in all.
async fn entries(
    space: &Tablespace,
    first: &Page,
    length: usize,
    context: &IoContext,
) -> Result<Vec<(PageNo, usize)>> {
    let mut page = first.clone();
    let mut address = address_at(page.bytes(), LIST_FIRST);
    let mut parts = Vec::new();
    let mut left = length;
    while left > 0 {
        let Some((no, offset)) = address else {
            return Err(space.corrupt(first.number(), &format!("an off-page value ends {left} bytes early")));
        };
        if no != page.number() {
            page = if no == first.number() { first.clone() } else { space.page(no, context).await? };
            if !matches!(page.page_type(), page_type::LOB_FIRST | page_type::LOB_INDEX) {
                let what =
                    format!("it has type {} where the index of a value should go on", page.page_type());
                return Err(space.corrupt(no, &what));
            }
        }
        let Some(entry) = page.bytes().get(offset..offset + ENTRY_BYTES) else {
            return Err(space.corrupt(no, &format!("an index entry of an off-page value at {offset}")));
        };
        let bytes = usize::from(u16_at(entry, ENTRY_LENGTH)).min(left);
        let data = link_at(entry, ENTRY_PAGE);
        // An entry without bytes would let the list run in circles for ever.
        let Some(data) = data.filter(|_| bytes > 0) else {
            return Err(space.corrupt(no, "an index entry of an off-page value names no data"));
        };
        parts.push((data, bytes));
        left -= bytes;
        address = address_at(entry, ENTRY_NEXT);
    }
    Ok(parts)
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

fn address_at(bytes: &[u8], offset: usize) -> Option<(PageNo, usize)> {
    let page = link_at(bytes, offset)?;
    Some((page, usize::from(u16_at(bytes, offset + 4))))
}
