//! The FIL header that every page starts with, and the page types (`fil0types.h`).

use crate::PageNo;

/// Checksum; on MariaDB's full_crc32 pages the key version, 0 if not encrypted.
pub(crate) const CHECKSUM: usize = 0;
/// Page number.
pub(crate) const NUMBER: usize = 4;
/// Previous page of the level. On page 0 of a MySQL file: the server's version.
pub(crate) const PREVIOUS: usize = 8;
/// Next page of the level.
pub(crate) const NEXT: usize = 12;
/// LSN of the last change.
pub(crate) const LSN: usize = 16;
/// Page type.
pub(crate) const TYPE: usize = 24;
/// On page 0 of the system tablespace: LSN up to which all files were flushed. On a compressed page: how.
pub(crate) const FLUSH_LSN: usize = 26;
/// Tablespace id.
pub(crate) const SPACE: usize = 34;
/// Where the page's content starts.
pub(crate) const DATA: usize = 38;
/// Length of the trailer.
pub(crate) const TRAILER: usize = 8;

/// Values of FIL_PAGE_TYPE.
pub mod page_type {
    /// Allocated, content undefined.
    pub const ALLOCATED: u16 = 0;
    /// Segment inodes.
    pub const INODE: u16 = 3;
    /// Bitmap of free space and of changes in the change buffer.
    pub const CHANGE_BUFFER_BITMAP: u16 = 5;
    /// System page (system tablespace).
    pub const SYS: u16 = 6;
    /// Tablespace header: page 0.
    pub const FSP_HEADER: u16 = 8;
    /// Extent descriptors.
    pub const XDES: u16 = 9;
    /// Part of an off-page value, the older form.
    pub const BLOB: u16 = 10;
    /// First part of an off-page value of a table with ROW_FORMAT=COMPRESSED, the older form.
    pub const ZBLOB: u16 = 11;
    /// Further part of such a value.
    pub const ZBLOB_NEXT: u16 = 12;
    /// Compressed by MySQL's page compression.
    pub const MYSQL_COMPRESSED: u16 = 14;
    /// Encrypted by MySQL.
    pub const MYSQL_ENCRYPTED: u16 = 15;
    /// Compressed, then encrypted by MySQL.
    pub const MYSQL_COMPRESSED_AND_ENCRYPTED: u16 = 16;
    /// R-tree page encrypted by MySQL.
    pub const MYSQL_ENCRYPTED_RTREE: u16 = 17;
    /// Root of a MariaDB clustered index with instantly changed columns.
    pub const INSTANT: u16 = 18;
    /// Part of an off-page object of MySQL's dictionary information, in a space with ROW_FORMAT=COMPRESSED.
    pub const SDI_ZBLOB: u16 = 19;
    /// Index of an off-page value of MySQL 8.
    pub const LOB_INDEX: u16 = 22;
    /// Data of an off-page value of MySQL 8.
    pub const LOB_DATA: u16 = 23;
    /// First page of an off-page value of MySQL 8.
    pub const LOB_FIRST: u16 = 24;
    /// First page of an off-page value of MySQL 8 in a table with ROW_FORMAT=COMPRESSED.
    pub const ZLOB_FIRST: u16 = 25;
    /// Data of such a value.
    pub const ZLOB_DATA: u16 = 26;
    /// Index of such a value.
    pub const ZLOB_INDEX: u16 = 27;
    /// Ends of several streams of such a value.
    pub const ZLOB_FRAGMENTS: u16 = 28;
    /// List of the fragment pages of such a value.
    pub const ZLOB_FRAGMENT_LIST: u16 = 29;
    /// Serialized dictionary information of MySQL, a B+tree.
    pub const SDI: u16 = 17853;
    /// R-tree (SPATIAL index).
    pub const RTREE: u16 = 17854;
    /// B+tree.
    pub const INDEX: u16 = 17855;
    /// Compressed by MariaDB's page compression, files without full_crc32.
    pub const MARIADB_COMPRESSED: u16 = 34354;
    /// Compressed, then encrypted by MariaDB.
    pub const MARIADB_COMPRESSED_AND_ENCRYPTED: u16 = 37401;

    /// Whether a page of this type has a part of an off-page value.
    pub fn is_value(page_type: u16) -> bool {
        matches!(page_type, BLOB | ZBLOB | ZBLOB_NEXT | LOB_INDEX..=LOB_FIRST | ZLOB_FIRST..=ZLOB_FRAGMENT_LIST)
    }
}

fn array_at<const N: usize>(bytes: &[u8], offset: usize) -> [u8; N] {
    match bytes.get(offset..).and_then(|rest| rest.first_chunk()) {
        Some(array) => *array,
        None => [0; N],
    }
}

/// Two bytes; 0 past the end, which no caller reaches with a page of a legal size.
#[inline]
pub(crate) fn u16_at(bytes: &[u8], offset: usize) -> u16 {
    u16::from_be_bytes(array_at(bytes, offset))
}

/// Four bytes; 0 past the end.
#[inline]
pub(crate) fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    u32::from_be_bytes(array_at(bytes, offset))
}

/// Eight bytes; 0 past the end.
#[inline]
pub(crate) fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    u64::from_be_bytes(array_at(bytes, offset))
}

/// A page number, `None` for FIL_NULL and past the end.
#[inline]
pub(crate) fn link_at(bytes: &[u8], offset: usize) -> Option<PageNo> {
    let no =
        bytes.get(offset..).and_then(|rest| rest.first_chunk()).map(|no| PageNo(u32::from_be_bytes(*no)));
    no.filter(|no| *no != PageNo::NULL)
}
