//! Chains of BLOB pages: at 38 the length of the part (4), the next page (4), then the part.

use tanada_io::IoContext;

use crate::page::header::{self, link_at, page_type, u32_at};
use crate::{Page, Result, Tablespace};

const PART_BYTES: usize = header::DATA;
const NEXT: usize = header::DATA + 4;
const PART: usize = header::DATA + 8;

/// Appends the `length` bytes of the chain that begins with `page`.
pub(super) async fn read(
    space: &Tablespace,
    mut page: Page,
    length: usize,
    value: &mut Vec<u8>,
    context: &IoContext,
) -> Result<()> {
    value.reserve_exact(length);
    let mut left = length;
    loop {
        let part = part(space, &page)?;
        if part.len() > left {
            let what =
                format!("a part of {} bytes of an off-page value of which {left} are left", part.len());
            return Err(space.corrupt(page.number(), &what));
        }
        value.extend_from_slice(part);
        left -= part.len();
        if left == 0 {
            return Ok(());
        }
        let Some(next) = link_at(page.bytes(), NEXT) else {
            return Err(space.corrupt(page.number(), &format!("an off-page value ends {left} bytes early")));
        };
        page = space.page(next, context).await?;
        if !space.is_of_type(&page, &[page_type::BLOB]) {
            let what = format!("it has type {} where an off-page value should go on", page.page_type());
            return Err(space.corrupt(next, &what));
        }
    }
}

/// The part on `page`.
pub(super) fn part<'a>(space: &Tablespace, page: &'a Page) -> Result<&'a [u8]> {
    let bytes = page.bytes();
    let part_bytes = u32_at(bytes, PART_BYTES) as usize;
    let part = PART.checked_add(part_bytes).and_then(|end| bytes.get(PART..end));
    // A part without bytes would let a chain run in circles for ever.
    part.filter(|part| !part.is_empty()).ok_or_else(|| {
        space.corrupt(
            page.number(),
            &format!("a part of {part_bytes} bytes of an off-page value does not fit it"),
        )
    })
}
