//! The list of index entries of MySQL's LOBs, compressed or not.
//!
//! An entry names at 6 the next entry (page, offset). Entries lie on the value's first page and on index pages. After a
//! partial update the list holds the newest version; older ones hang beside it.

use tanada_io::IoContext;

use crate::page::header::{link_at, u16_at};
use crate::{Page, PageNo, Result, Tablespace};

const NEXT: usize = 6;

/// How the list of one kind of LOB is stored.
#[derive(Debug)]
pub(super) struct EntryList {
    /// Where the first page names the first entry.
    pub(super) first_at: usize,
    /// Length of an entry.
    pub(super) entry_bytes: usize,
    /// Types of the pages that entries lie on.
    pub(super) page_types: [u16; 2],
}

impl EntryList {
    /// The entries that hold the first `length` bytes of the value whose first page is `first`. `parse` returns what an
    /// entry says and how many bytes of the value it stands for, or what is wrong with it; its second argument is the
    /// number of bytes that are left.
    pub(super) async fn read<T>(
        &self,
        space: &Tablespace,
        first: &Page,
        length: usize,
        context: &IoContext,
        parse: impl Fn(&[u8], usize) -> std::result::Result<(T, usize), String>,
    ) -> Result<Vec<T>> {
        let mut page = first.clone();
        let mut address = address_at(page.bytes(), self.first_at);
        let mut entries = Vec::new();
        let mut left = length;
        while left > 0 {
            let Some((no, offset)) = address else {
                let what = format!("an off-page value ends {left} bytes early");
                return Err(space.corrupt(first.number(), &what));
            };
            if no != page.number() {
                page = if no == first.number() { first.clone() } else { space.page(no, context).await? };
                if !self.page_types.contains(&page.page_type()) {
                    let what =
                        format!("it has type {} where the index of a value should go on", page.page_type());
                    return Err(space.corrupt(no, &what));
                }
            }
            let Some(entry) = page.bytes().get(offset..offset + self.entry_bytes) else {
                let what = format!("an index entry of an off-page value at {offset}");
                return Err(space.corrupt(no, &what));
            };
            let parsed = parse(entry, left);
            let (parsed, bytes) = parsed.map_err(|what| {
                space.corrupt(no, &format!("an index entry of an off-page value names {what}"))
            })?;
            // An entry without bytes would let the list run in circles for ever.
            if bytes == 0 {
                return Err(space.corrupt(no, "an index entry of an off-page value names no data"));
            }
            entries.push(parsed);
            left = left.saturating_sub(bytes);
            address = address_at(entry, NEXT);
        }
        Ok(entries)
    }
}

fn address_at(bytes: &[u8], offset: usize) -> Option<(PageNo, usize)> {
    let page = link_at(bytes, offset)?;
    Some((page, usize::from(u16_at(bytes, offset + 4))))
}
