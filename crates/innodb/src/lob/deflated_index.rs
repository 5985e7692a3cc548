//! MySQL's LOBs in tables with ROW_FORMAT=COMPRESSED (`zlob0first.h`, `zlob0index.h`, `zlob0read.cc`).
//!
//! A value is cut into chunks of up to 128 KiB, each a zlib stream. The first page has at 88 the list of their index
//! entries ([`super::entries`]), which lie on it from 136 on and on index pages; data follow the entries there. An
//! entry of 66 bytes names at 48 the page where the stream begins, at 52 a fragment, at 54 the length of the chunk and
//! at 58 that of the stream. A stream goes over data pages, linked by FIL_PAGE_NEXT, and may end in a fragment: a page
//! of fragments has a directory at its end that names them.

use futures::{StreamExt, TryStreamExt, stream};
use tanada_io::IoContext;

use super::entries::EntryList;
use super::inflate::Inflater;
use crate::page::header::{self, link_at, page_type, u16_at, u32_at};
use crate::{Page, PageNo, Result, Tablespace};

const LIST: EntryList = EntryList {
    first_at: 88 + 4,
    entry_bytes: 66,
    page_types: [page_type::ZLOB_FIRST, page_type::ZLOB_INDEX],
};
/// Where the entries on the first page begin.
const ENTRIES: usize = 136;
const ENTRY_PAGE: usize = 48;
const ENTRY_FRAGMENT: usize = 52;
const ENTRY_CHUNK_BYTES: usize = 54;
const ENTRY_STREAM_BYTES: usize = 58;
/// On the first page: bytes of a stream there.
const FIRST_BYTES: usize = 54;
const FRAGMENT_ENTRY_BYTES: usize = 24;
/// On a data page.
const DATA_BYTES: usize = 39;
const DATA: usize = 49;
/// On a page of fragments, from its end: the directory's first entry; the others follow downwards, two bytes each.
const DIRECTORY: usize = header::TRAILER + 4;
const DIRECTORY_COUNT: usize = header::TRAILER + 2;
/// In a fragment: its bytes with these eight, and its data.
const FRAGMENT_BYTES: usize = 4;
const FRAGMENT_DATA: usize = 8;
const CHUNK_BYTES: usize = 128 << 10;
/// A stream has some bytes more than what cannot be compressed.
const STREAM_BYTES: usize = CHUNK_BYTES + (CHUNK_BYTES >> 8) + 64;
/// Chunks asked for at once.
const PREFETCH: usize = 16;

/// A chunk of a value.
#[derive(Debug, Clone, Copy)]
struct Chunk {
    page: PageNo,
    fragment: u16,
    bytes: usize,
    stream_bytes: usize,
}

/// Appends the `length` bytes of the value that begins on page `first`.
pub(super) async fn read(
    space: &Tablespace,
    first: Page,
    length: usize,
    value: &mut Vec<u8>,
    context: &IoContext,
) -> Result<()> {
    let chunks = LIST.read(space, &first, length, context, chunk).await?;
    let reads = stream::iter(chunks).map(|chunk| inflated(space, &first, chunk, context));
    let mut reads = reads.buffered(PREFETCH);
    let mut left = length;
    while let Some(chunk) = reads.try_next().await? {
        let used = chunk.len().min(left);
        value.extend_from_slice(&chunk[..used]);
        left -= used;
    }
    Ok(())
}

/// The chunk that an entry names, with its bytes.
fn chunk(entry: &[u8], _: usize) -> std::result::Result<(Chunk, usize), String> {
    let (bytes, stream_bytes) =
        (u32_at(entry, ENTRY_CHUNK_BYTES) as usize, u32_at(entry, ENTRY_STREAM_BYTES) as usize);
    let is_sound = (1..=CHUNK_BYTES).contains(&bytes) && (1..=STREAM_BYTES).contains(&stream_bytes);
    let page = link_at(entry, ENTRY_PAGE).filter(|_| is_sound);
    let page = page.ok_or_else(|| format!("{bytes} bytes, {stream_bytes} deflated"))?;
    Ok((Chunk { page, fragment: u16_at(entry, ENTRY_FRAGMENT), bytes, stream_bytes }, bytes))
}

/// Reads the stream of a chunk and inflates it.
async fn inflated(space: &Tablespace, first: &Page, chunk: Chunk, context: &IoContext) -> Result<Vec<u8>> {
    let mut inflater = Inflater::new(chunk.bytes);
    let mut value = Vec::new();
    let mut left = chunk.stream_bytes;
    let mut next = Some(chunk.page);
    let mut ended = false;
    while left > 0 {
        let Some(no) = next else {
            let what = format!("the stream of an off-page value ends {left} bytes early");
            return Err(space.corrupt(chunk.page, &what));
        };
        let page = if no == first.number() { first.clone() } else { space.page(no, context).await? };
        let part = part(space, &page, chunk.fragment)?;
        left = left.checked_sub(part.len()).filter(|_| !part.is_empty()).ok_or_else(|| {
            let what = format!("a part of {} bytes of the stream of a value has {left} left", part.len());
            space.corrupt(no, &what)
        })?;
        let fed = inflater.feed(part, &mut value);
        ended = fed.map_err(|what| space.corrupt(no, &format!("the stream of an off-page value {what}")))?;
        next = page.next();
    }
    if !ended {
        return Err(space.corrupt(chunk.page, "the stream of an off-page value does not end"));
    }
    Ok(value)
}

/// The bytes of a stream that lie on `page`, in `fragment` if it is a page of fragments.
fn part<'a>(space: &Tablespace, page: &'a Page, fragment: u16) -> Result<&'a [u8]> {
    let bytes = page.bytes();
    let part = match page.page_type() {
        page_type::ZLOB_FIRST => first_data(bytes.len())
            .and_then(|start| bytes.get(start..)?.get(..u32_at(bytes, FIRST_BYTES) as usize)),
        page_type::ZLOB_DATA => {
            bytes.get(DATA..).and_then(|rest| rest.get(..u32_at(bytes, DATA_BYTES) as usize))
        }
        page_type::ZLOB_FRAGMENTS => fragment_data(bytes, usize::from(fragment)),
        other => {
            let what = format!("it has type {other} where the stream of an off-page value should go on");
            return Err(space.corrupt(page.number(), &what));
        }
    };
    part.ok_or_else(|| space.corrupt(page.number(), "the stream of an off-page value does not fit it"))
}

/// The data of fragment `no` of a page.
fn fragment_data(bytes: &[u8], no: usize) -> Option<&[u8]> {
    let count = usize::from(u16_at(bytes, bytes.len().checked_sub(DIRECTORY_COUNT)?));
    if no >= count {
        return None;
    }
    let entry = bytes.len().checked_sub(DIRECTORY + 2 * no)?;
    let fragment = bytes.get(usize::from(u16_at(bytes, entry))..)?;
    fragment.get(FRAGMENT_DATA..usize::from(u16_at(fragment, FRAGMENT_BYTES)))
}

/// Where data start on the first page, behind its entries, whose number goes by the size of the page.
fn first_data(page_bytes: usize) -> Option<usize> {
    let (entries, fragments) = match page_bytes {
        1024 => (5, 5),
        2048 => (20, 20),
        4096 => (40, 40),
        8192 => (80, 100),
        16384 => (100, 200),
        _ => return None,
    };
    Some(ENTRIES + entries * LIST.entry_bytes + fragments * FRAGMENT_ENTRY_BYTES)
}
