//! Reads the dictionary objects out of a MySQL tablespace.
//!
//! They lie in a B+tree of their own whose root the tablespace's header names. Its records have seven fields: object
//! type (4 bytes), object id (8), transaction id (6), roll pointer (7), length of the JSON (4), length of its zlib form
//! (4), and the zlib form, which is in the record or, behind a 20-byte reference, in a chain of BLOB pages, deflated
//! once more in a space with ROW_FORMAT=COMPRESSED. The records are DYNAMIC, and COMPACT in the space of a COMPACT or
//! REDUNDANT table: then a prefix of 768 bytes stays before the reference.
//!
//! 1. Go down along each level's leftmost record to the leaves.
//! 2. Follow the leaves; in each follow the records from the infimum.
//! 3. Collect the zlib forms of the tables and inflate them.
//!
//! Every chain is limited by the pages in the file, every record walk by the bytes in a page, every object by
//! [`LONGEST_OBJECT`].

use std::io::Read;

use tanada_io::IoContext;

use crate::lob::read_deflated;
use crate::page::header::{u16_at, u32_at};
use crate::page::page_type;
use crate::{Page, PageNo, Result, Tablespace};

/// No table definition is anywhere near as long; a table of 4,096 columns takes some MiB.
const LONGEST_OBJECT: usize = 64 << 20;
const MOST_LEVELS: u16 = 16;
const LEVEL: usize = 64;
const INFIMUM: usize = 99;
const SUPREMUM: usize = 112;
const FIRST_RECORD: usize = 120;
const RECORD_HEADER: usize = 5;
const INFO_DELETED: u8 = 0x20;
const KEY_BYTES: usize = 4 + 8;
const FIXED_BYTES: usize = KEY_BYTES + 6 + 7 + 4 + 4;
const TYPE_TABLE: u32 = 1;
const TYPE_TABLESPACE: u32 = 2;
const REFERENCE_BYTES: usize = 20;
const BLOB_HEADER: usize = 8;

/// The JSON of all table objects in `space`; none if it has no dictionary information (MariaDB).
///
/// # Errors
/// If a page cannot be read, or the tree is damaged.
pub async fn read_sdi_tables(space: &Tablespace, context: &IoContext) -> Result<Vec<Vec<u8>>> {
    read_objects(space, TYPE_TABLE, context).await
}

/// The JSON of the tablespace's own object in `space`.
///
/// # Errors
/// If a page cannot be read, or the tree is damaged.
pub(crate) async fn read_sdi_spaces(space: &Tablespace, context: &IoContext) -> Result<Vec<Vec<u8>>> {
    read_objects(space, TYPE_TABLESPACE, context).await
}

async fn read_objects(space: &Tablespace, kind: u32, context: &IoContext) -> Result<Vec<Vec<u8>>> {
    let Some(root) = space.sdi_root() else {
        return Ok(Vec::new());
    };
    let mut leaf = Some(leftmost_leaf(space, root, context).await?);
    let mut objects = Vec::new();
    let mut leaves = 0;
    while let Some(page) = leaf {
        for record in records(space, &page)? {
            if let Some(json) = object(space, &page, record, kind, context).await? {
                objects.push(json);
            }
        }
        leaves += 1;
        leaf = match page.next() {
            Some(next) if leaves < space.pages() => Some(index_page(space, next, context).await?),
            Some(_) => return Err(damaged(space, &page, "its chain of leaves is a circle")),
            None => None,
        };
    }
    Ok(objects)
}

fn damaged(space: &Tablespace, page: &Page, what: &str) -> crate::Error {
    space.corrupt(page.number(), &format!("dictionary information (SDI): {what}"))
}

async fn index_page(space: &Tablespace, no: PageNo, context: &IoContext) -> Result<Page> {
    let page = space.page(no, context).await?;
    match page.page_type() {
        page_type::SDI => Ok(page),
        other => Err(damaged(space, &page, &format!("page type {other} in its tree"))),
    }
}

async fn leftmost_leaf(space: &Tablespace, root: PageNo, context: &IoContext) -> Result<Page> {
    let mut page = index_page(space, root, context).await?;
    let mut level = u16_at(page.bytes(), LEVEL);
    if level > MOST_LEVELS {
        return Err(damaged(space, &page, &format!("{level} levels")));
    }
    while level > 0 {
        let first = records(space, &page)?.into_iter().next();
        let child = first.and_then(|origin| page.bytes().get(origin + KEY_BYTES..)?.first_chunk::<4>());
        let child = child.ok_or_else(|| damaged(space, &page, "a node without children"))?;
        page = index_page(space, PageNo(u32::from_be_bytes(*child)), context).await?;
        level -= 1;
        if u16_at(page.bytes(), LEVEL) != level {
            return Err(damaged(space, &page, "a child of another level"));
        }
    }
    Ok(page)
}

/// Origins of the records of `page` in key order.
fn records(space: &Tablespace, page: &Page) -> Result<Vec<usize>> {
    let bytes = page.bytes();
    let most = bytes.len() / (RECORD_HEADER + KEY_BYTES);
    let mut origins = Vec::new();
    let mut origin = INFIMUM;
    loop {
        // The offset is relative and wraps at 64 KiB, as the server computes it.
        let next = u16_at(bytes, origin - 2);
        origin = usize::from((origin as u16).wrapping_add(next));
        if origin == SUPREMUM {
            return Ok(origins);
        }
        if origin < FIRST_RECORD || origin >= bytes.len() || origins.len() > most {
            return Err(damaged(space, page, "its records are not linked"));
        }
        origins.push(origin);
    }
}

/// The JSON of the record at `origin`, unless it is deleted or of another kind.
async fn object(
    space: &Tablespace,
    page: &Page,
    origin: usize,
    kind: u32,
    context: &IoContext,
) -> Result<Option<Vec<u8>>> {
    let bytes = page.bytes();
    let outside = || damaged(space, page, "a record ends outside of its page");
    let fixed = bytes.get(origin..origin + FIXED_BYTES).ok_or_else(outside)?;
    if bytes[origin - RECORD_HEADER] & INFO_DELETED != 0 || u32_at(fixed, 0) != kind {
        return Ok(None);
    }
    let json_len = u32_at(fixed, FIXED_BYTES - 8) as usize;
    let zlib_len = u32_at(fixed, FIXED_BYTES - 4) as usize;
    if json_len > LONGEST_OBJECT || zlib_len > LONGEST_OBJECT {
        return Err(damaged(space, page, &format!("an object of {json_len} bytes, {zlib_len} compressed")));
    }
    let first = bytes[origin - RECORD_HEADER - 1];
    let external = first & 0xc0 == 0xc0;
    let zlib = if external {
        // A length of two bytes: that of the prefix with the reference.
        let local_len = usize::from(first & 0x3f) << 8 | usize::from(bytes[origin - RECORD_HEADER - 2]);
        let local = bytes.get(origin + FIXED_BYTES..origin + FIXED_BYTES + local_len).ok_or_else(outside)?;
        let prefix_len = local_len.checked_sub(REFERENCE_BYTES).ok_or_else(outside)?;
        let (prefix, reference) = local.split_at(prefix_len);
        let rest_len = zlib_len.checked_sub(prefix_len).ok_or_else(outside)?;
        let first = PageNo(u32_at(reference, 4));
        let rest = off_page(space, first, u32_at(reference, 8), rest_len, context).await?;
        [prefix, &rest].concat()
    } else {
        bytes.get(origin + FIXED_BYTES..origin + FIXED_BYTES + zlib_len).ok_or_else(outside)?.to_vec()
    };
    let mut json = Vec::new();
    // One byte more than announced is enough to see that the announcement is wrong.
    let inflated =
        flate2::read::ZlibDecoder::new(zlib.as_slice()).take(json_len as u64 + 1).read_to_end(&mut json);
    match inflated {
        Ok(len) if len == json_len => Ok(Some(json)),
        Ok(len) => {
            Err(damaged(space, page, &format!("an object inflates to {len} bytes, {json_len} announced")))
        }
        Err(error) => Err(damaged(space, page, &format!("an object does not inflate: {error}"))),
    }
}

/// Collects `len` bytes from the chain of BLOB pages that starts at `no`.
async fn off_page(
    space: &Tablespace,
    no: PageNo,
    offset: u32,
    len: usize,
    context: &IoContext,
) -> Result<Vec<u8>> {
    if space.is_zipped() {
        let first = space.page(no, context).await?;
        if first.page_type() != page_type::SDI_ZBLOB {
            return Err(damaged(
                space,
                &first,
                &format!("type {} where an object begins", first.page_type()),
            ));
        }
        let mut object = Vec::new();
        read_deflated(space, first, page_type::SDI_ZBLOB, len, &mut object, context).await?;
        return Ok(object);
    }
    let mut bytes = Vec::new();
    let mut next = Some(no);
    let header = offset as usize;
    for _ in 0..space.pages() {
        let Some(no) = next.filter(|_| bytes.len() < len) else { break };
        let page = space.page(no, context).await?;
        let part_len = u32_at(page.bytes(), header) as usize;
        let part =
            page.bytes().get(header.saturating_add(BLOB_HEADER)..).and_then(|rest| rest.get(..part_len));
        let part = part
            .filter(|part| !part.is_empty())
            .ok_or_else(|| damaged(space, &page, "a part of an object has no place in its page"))?;
        bytes.extend_from_slice(part);
        next = Some(PageNo(u32_at(page.bytes(), header.saturating_add(4)))).filter(|no| *no != PageNo::NULL);
    }
    if bytes.len() != len {
        return Err(space.corrupt(
            no,
            &format!("dictionary information (SDI): an object has {} of {len} bytes", bytes.len()),
        ));
    }
    Ok(bytes)
}
