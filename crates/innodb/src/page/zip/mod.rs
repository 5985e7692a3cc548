//! B+tree pages of tables with ROW_FORMAT=COMPRESSED (`page0zip.cc`): from the 1 to 16 KiB in the file to the page that
//! the server works on.
//!
//! From the start of the stored page: the FIL and page headers as they are; from 94 on a zlib stream; the modification
//! log; free space. From the end downwards: the directory of all records, two bytes each; then for each record, in the
//! order of the heap, four bytes of child page number (above the leaves), or thirteen of DB_TRX_ID and DB_ROLL_PTR
//! (leaves of clustered indexes); then 20 bytes for each reference to an off-page value. The headers of records, their
//! order and the page directory follow from the directory and are not stored.
//!
//! 1. [`directory`]: the origins of all records, in key order, then those that were freed;
//! 2. [`inflater`]: the stream gives the description of the fields ([`fields`]), then the heap without what lies
//!    elsewhere;
//! 3. [`records`]: it is cut to records in the order of the heap; then [`log`]: the log replaces records whole;
//! 4. [`records`]: what lies behind the log goes to its places;
//! 5. [`directory`]: headers, links and page directory are made.
//!
//! Nothing read is believed: each offset lies within its page, records ascend without overlapping, none is left
//! unwritten, and the stream can give no more than a page.

mod directory;
mod fields;
mod inflater;
mod log;
mod records;

use super::PageSize;
use super::header::{u16_at, u32_at};
use directory::Directory;
use fields::Fields;
use records::Heap;

/// Why a stored page cannot be a page of a B+tree.
pub type Fault = &'static str;

/// Bytes of a record's header, before its origin.
const HEADER: usize = 5;
/// A child page number.
const CHILD_BYTES: usize = 4;
/// DB_TRX_ID and DB_ROLL_PTR.
const SYSTEM_BYTES: usize = 13;
/// A reference to an off-page value.
const REFERENCE_BYTES: usize = 20;
/// Where the stream starts, behind the page header.
const STREAM: usize = 94;
/// Where records start, behind infimum and supremum.
const RECORDS: usize = 120;

/// PAGE_N_DIR_SLOTS.
const DIRECTORY_SLOTS: usize = 38;
/// PAGE_HEAP_TOP.
const HEAP_TOP: usize = 40;
/// PAGE_N_HEAP; the top bit tells that records are compact.
const HEAP_COUNT: usize = 42;
/// PAGE_N_RECS.
const RECORD_COUNT: usize = 54;
/// PAGE_LEVEL.
const LEVEL: usize = 64;

/// The smallest and the largest stored page.
const STORED_BYTES: std::ops::RangeInclusive<usize> = 1024..=16384;

/// Returns the page of `page_size` bytes that `image`, a B+tree page of a file with ROW_FORMAT=COMPRESSED, holds.
///
/// # Errors
/// If no server wrote such a page; the reason reads behind "the page is damaged:". No input panics, and none makes it
/// take more memory than some pages.
pub fn decompress(image: &[u8], page_size: PageSize) -> Result<Vec<u8>, Fault> {
    let size = page_size.bytes();
    if !STORED_BYTES.contains(&image.len()) || !image.len().is_power_of_two() || size < image.len() {
        return Err("no compressed page has its size");
    }
    if !matches!(size, 4096 | 8192 | 16384) {
        return Err("pages of its tablespace cannot be compressed");
    }
    let is_leaf = u16_at(image, LEVEL) == 0;
    let directory = Directory::read(image, size)?;
    let mut page = vec![0; size];
    page[..STREAM].copy_from_slice(&image[..STREAM]);
    inflater::with_heap(image, directory.starts_at, size, |description, heap, end| {
        let fields = Fields::parse(description, is_leaf)?;
        let apart = directory.origins.len() * fields.kind.stored_apart();
        let apart = directory.starts_at.checked_sub(apart).filter(|apart| *apart > end);
        let apart = apart.ok_or("its records take more room than it has")?;
        let mut heap = Heap::place(&fields, &directory, &mut page, heap)?;
        let end = heap.apply_log(image, end, apart)?;
        heap.restore(image, apart, end)
    })?;
    let is_first = u32_at(image, super::header::PREVIOUS) == u32::MAX;
    directory.link(&mut page, is_leaf, is_first)?;
    Ok(page)
}
