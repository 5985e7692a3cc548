//! Values in tables with ROW_FORMAT=COMPRESSED by MariaDB, and by MySQL before 8.0: a zlib stream over a chain of
//! pages, which FIL_PAGE_NEXT links. The stream goes from 38 to the end of each page. Objects of MySQL's dictionary
//! information lie so, too, deflated as they are.

use tanada_io::IoContext;

use super::inflate::Inflater;
use crate::page::header;
use crate::{Page, Result, Tablespace};

/// Appends the `length` bytes of the value whose stream begins on page `first` and goes on over pages of the type
/// `kind`.
pub(crate) async fn read(
    space: &Tablespace,
    first: Page,
    kind: u16,
    length: usize,
    value: &mut Vec<u8>,
    context: &IoContext,
) -> Result<()> {
    let mut inflater = Inflater::new(length);
    let mut page = first;
    for _ in 0..space.pages() {
        let part = page.bytes().get(header::DATA..).unwrap_or_default();
        let fed = inflater.feed(part, value);
        let damaged = |what| space.corrupt(page.number(), &format!("the stream of an off-page value {what}"));
        if fed.map_err(damaged)? {
            return Ok(());
        }
        let Some(next) = page.next() else {
            return Err(space.corrupt(page.number(), "the stream of an off-page value ends early"));
        };
        page = space.page(next, context).await?;
        if page.page_type() != kind {
            let what = format!("it has type {} where an off-page value should go on", page.page_type());
            return Err(space.corrupt(next, &what));
        }
    }
    Err(space.corrupt(page.number(), "a chain of pages of an off-page value has no end"))
}
