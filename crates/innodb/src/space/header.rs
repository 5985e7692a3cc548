//! The tablespace header on page 0 (FSP header, `fsp0fsp.h`) and what its flags say about all other pages.
//!
//! The flags have three dialects. MariaDB's full_crc32 is told by bit 4, which would be an impossible compressed page
//! size in the others. MySQL 8 and later set bit 14 (serialized dictionary information) and leave their version in the
//! header of page 0.

use std::path::Path;

use crate::page::codec::{DECRYPT, PageFormat};
use crate::page::compression::Algorithm;
use crate::page::header::{self, page_type, u16_at, u32_at};
use crate::{Error, ErrorKind, PageNo, PageSize, Result, Server, SpaceId};

/// Bytes of page 0 that are enough for [`SpaceHeader::parse`].
pub(crate) const PREFIX_BYTES: usize = 4096;
/// The smallest page.
const SMALLEST_PAGE: usize = 1024;

const FSP_SPACE: usize = 38;
const FSP_SIZE: usize = 46;
/// Pages from here on were never given to anyone.
pub(super) const FSP_FREE_LIMIT: usize = 50;
const FSP_FLAGS: usize = 54;
/// Extent descriptors of page 0.
pub(super) const XDES_ARRAY: usize = 150;

const FULL_CRC32: u32 = 1 << 4;
const MYSQL_ENCRYPTED: u32 = 1 << 13;
const MYSQL_SDI: u32 = 1 << 14;

/// What page 0 tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SpaceHeader {
    pub(crate) space: SpaceId,
    /// Of the pages in the file.
    pub(crate) page_size: PageSize,
    /// Of the pages that the server works on: larger than those in the file if the table has ROW_FORMAT=COMPRESSED.
    pub(crate) logical_size: PageSize,
    pub(crate) format: PageFormat,
    pub(crate) server: Server,
    /// Pages that the space should have; the file may be longer, and shorter if it was cut.
    pub(crate) size_pages: u32,
    /// Pages from here on were never given to anyone.
    pub(crate) free_limit: u32,
    /// Whether MySQL's dictionary information lies in the space.
    pub(crate) has_sdi: bool,
    /// Whether the space was created by MySQL 5.0 or earlier, which left the type of all pages but those of B+trees
    /// undefined.
    pub(crate) lacks_page_types: bool,
}

impl SpaceHeader {
    /// Reads the header from the first [`PREFIX_BYTES`] of the file at `path`; its checksum is verified later, when the
    /// page size is known.
    ///
    /// # Errors
    /// If the file is no tablespace, or an encrypted one.
    pub(crate) fn parse(prefix: &[u8], path: &Path) -> Result<SpaceHeader> {
        let error = |kind, what: &str| Error::new(kind, format!("{}: {what}", path.display()));
        if prefix.len() < SMALLEST_PAGE {
            return Err(error(ErrorKind::Corrupt, "the file is shorter than a page"));
        }
        if prefix.iter().all(|byte| *byte == 0) {
            return Err(error(ErrorKind::Corrupt, "page 0 was never written"));
        }
        let flags = u32_at(prefix, FSP_FLAGS);
        let names_itself =
            u32_at(prefix, FSP_SPACE) == u32_at(prefix, header::SPACE) && u32_at(prefix, header::NUMBER) == 0;
        // Such a space has no flags either, since all of them are younger. The checksum of the page is verified as that
        // of any other.
        let lacks_page_types = u16_at(prefix, header::TYPE) != page_type::FSP_HEADER;
        if lacks_page_types && !(names_itself && flags == 0 && u32_at(prefix, FSP_SIZE) != 0) {
            return Err(error(ErrorKind::InvalidInput, "not an InnoDB tablespace"));
        }
        if !names_itself {
            return Err(error(ErrorKind::Corrupt, "page 0 is damaged: it does not name itself"));
        }
        let version = u32_at(prefix, header::PREVIOUS);
        let dialect = if flags & FULL_CRC32 != 0 { full_crc32(flags) } else { classic(flags, version) };
        let dialect = dialect.map_err(|(kind, what)| error(kind, &what))?;
        Ok(SpaceHeader {
            space: SpaceId(u32_at(prefix, FSP_SPACE)),
            page_size: dialect.page_size,
            logical_size: dialect.logical_size,
            format: dialect.format,
            server: dialect.server,
            size_pages: u32_at(prefix, FSP_SIZE),
            free_limit: u32_at(prefix, FSP_FREE_LIMIT),
            has_sdi: dialect.has_sdi,
            lacks_page_types,
        })
    }

    /// Looks, on the whole page 0, for what only lies behind the extent descriptors: MariaDB's encryption record and
    /// MySQL's SDI root.
    ///
    /// # Errors
    /// If the space is encrypted by MariaDB.
    pub(crate) fn sdi_root(&self, page: &[u8], path: &Path) -> Result<Option<PageNo>> {
        let extents = xdes_count(self.page_size, self.logical_size) as usize;
        let behind = XDES_ARRAY + xdes_bytes(self.logical_size) * extents;
        if self.server == Server::MariaDb {
            return match is_encrypted_by_mariadb(page, behind) {
                true => Err(Error::new(ErrorKind::Unsupported, encrypted(path))),
                false => Ok(None),
            };
        }
        // Room for the encryption information, then version and root.
        let root = u32_at(page, behind + 115 + 4);
        Ok((self.has_sdi && root != 0 && root != PageNo::NULL.0).then_some(PageNo(root)))
    }
}

struct Dialect {
    page_size: PageSize,
    logical_size: PageSize,
    format: PageFormat,
    server: Server,
    has_sdi: bool,
}

type Refusal = (ErrorKind, String);

fn full_crc32(flags: u32) -> std::result::Result<Dialect, Refusal> {
    let algorithm = u64::from(flags >> 5 & 7);
    let known = Algorithm::of_mariadb(algorithm);
    if algorithm != 0 && known.is_none() {
        return Err((ErrorKind::Unsupported, format!("page compression algorithm {algorithm} is not known")));
    }
    let page_size = page_size(flags & 15)?;
    Ok(Dialect {
        page_size,
        logical_size: page_size,
        format: PageFormat::FullCrc32(known),
        server: Server::MariaDb,
        has_sdi: false,
    })
}

fn classic(flags: u32, version: u32) -> std::result::Result<Dialect, Refusal> {
    let has_sdi = flags & MYSQL_SDI != 0;
    let server =
        if has_sdi || (80_000..200_000).contains(&version) { Server::MySql } else { Server::MariaDb };
    if server == Server::MySql && flags & MYSQL_ENCRYPTED != 0 {
        return Err((ErrorKind::Unsupported, format!("{ENCRYPTED}; {DECRYPT}")));
    }
    let shift = match flags >> 6 & 15 {
        0 => 5,
        shift => shift,
    };
    let logical_size = page_size(shift)?;
    let (page_size, format) = match flags >> 1 & 15 {
        0 => (logical_size, PageFormat::Classic),
        shift => (zip_size(shift, logical_size)?, PageFormat::Zip(logical_size)),
    };
    Ok(Dialect { page_size, logical_size, format, server, has_sdi })
}

const ENCRYPTED: &str = "the tablespace is encrypted, which is not read";

fn encrypted(path: &Path) -> String {
    format!("{}: {ENCRYPTED}; {DECRYPT}", path.display())
}

/// 3 is 4 KiB, 7 is 64 KiB.
fn page_size(shift: u32) -> std::result::Result<PageSize, Refusal> {
    if (3..=7).contains(&shift) {
        Ok(PageSize(512 << shift))
    } else {
        Err((ErrorKind::Corrupt, format!("page 0 is damaged: {shift} is no page size")))
    }
}

/// The size of pages in a file with ROW_FORMAT=COMPRESSED, whose server's pages have `logical_size`: 1 is 1 KiB, 5 is
/// 16 KiB.
fn zip_size(shift: u32, logical_size: PageSize) -> std::result::Result<PageSize, Refusal> {
    let size = PageSize(512 << shift);
    if shift <= 5 && size <= logical_size && logical_size.0 <= 16384 {
        return Ok(size);
    }
    let what = format!("page 0 is damaged: {shift} is no size of compressed pages of {}", logical_size.0);
    Err((ErrorKind::Corrupt, what))
}

/// Bytes of an extent descriptor, by the size of the pages that the server works on: 24, and two bits for each page of
/// the extent.
pub(super) fn xdes_bytes(page_size: PageSize) -> usize {
    24 + page_size.extent_pages() as usize / 4
}

/// Extent descriptors on each page that has some, by the sizes of pages in the file and of those that the server works
/// on.
pub(super) fn xdes_count(page_size: PageSize, logical_size: PageSize) -> u32 {
    page_size.0 / logical_size.extent_pages()
}

/// `fil0crypt.cc`: 38 bytes behind the descriptors a magic, the scheme, the IV with its length, the lowest key version
/// in use (0 while pages are in the clear).
fn is_encrypted_by_mariadb(page: &[u8], behind: usize) -> bool {
    const MAGIC: [u8; 6] = [b's', 0x0e, 0x0c, b'R', b'E', b't'];
    let at = behind + 38;
    page.get(at..at + 28)
        .is_some_and(|record| record.starts_with(&MAGIC) && record[6] != 0 && record[24..] != [0; 4])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page0(flags: u32, version: u32) -> Vec<u8> {
        let mut page = vec![0; 16384];
        page[header::TYPE + 1] = page_type::FSP_HEADER as u8;
        page[header::SPACE..header::SPACE + 4].copy_from_slice(&7u32.to_be_bytes());
        page[FSP_SPACE..FSP_SPACE + 4].copy_from_slice(&7u32.to_be_bytes());
        page[FSP_SIZE + 3] = 9;
        page[FSP_FLAGS..FSP_FLAGS + 4].copy_from_slice(&flags.to_be_bytes());
        page[header::PREVIOUS..header::PREVIOUS + 4].copy_from_slice(&version.to_be_bytes());
        page
    }

    fn parse(flags: u32, version: u32) -> Result<SpaceHeader> {
        SpaceHeader::parse(&page0(flags, version), Path::new("t.ibd"))
    }

    #[test]
    fn the_three_dialects_of_flags() {
        let mysql = parse(0x4021, 90704).unwrap();
        assert_eq!(
            (mysql.server, mysql.page_size, mysql.format),
            (Server::MySql, PageSize(16384), PageFormat::Classic)
        );
        assert_eq!((mysql.space, mysql.size_pages, mysql.has_sdi), (SpaceId(7), 9, true));
        let classic = parse(0x10021, 0).unwrap();
        assert_eq!((classic.server, classic.format), (Server::MariaDb, PageFormat::Classic));
        let plain = parse(0x15, 0).unwrap();
        assert_eq!((plain.server, plain.format), (Server::MariaDb, PageFormat::FullCrc32(None)));
        assert_eq!(parse(0x95, 0).unwrap().format, PageFormat::FullCrc32(Some(Algorithm::Lzma)));
    }

    #[test]
    fn page_sizes_in_both_notations() {
        for (shift, bytes) in [(3, 4096), (4, 8192), (5, 16384), (6, 32768), (7, 65536)] {
            assert_eq!(parse(0x10 | shift, 0).unwrap().page_size, PageSize(bytes));
            assert_eq!(parse(0x4021 | shift << 6, 90704).unwrap().page_size, PageSize(bytes));
        }
        for flags in [0x18, 0x12, 0x4021 | 1 << 6, 0x4021 | 8 << 6] {
            assert_eq!(parse(flags, 90704).unwrap_err().kind(), ErrorKind::Corrupt);
        }
    }

    #[test]
    fn compressed_row_format_has_two_page_sizes() {
        for (flags, version) in [(0x4021, 90704), (0x21, 0)] {
            for shift in 1..=5 {
                let header = parse(flags | shift << 1, version).unwrap();
                assert_eq!(
                    (header.page_size, header.logical_size),
                    (PageSize(512 << shift), PageSize(16384))
                );
                assert_eq!(header.format, PageFormat::Zip(PageSize(16384)));
            }
            for shift in [6, 7] {
                assert_eq!(parse(flags | shift << 1, version).unwrap_err().kind(), ErrorKind::Corrupt);
            }
            // Pages of 8 KiB hold no more; pages of 32 KiB cannot be compressed.
            assert_eq!(parse(flags | 4 << 6 | 4 << 1, version).unwrap().logical_size, PageSize(8192));
            assert_eq!(parse(flags | 4 << 6 | 5 << 1, version).unwrap_err().kind(), ErrorKind::Corrupt);
            assert_eq!(parse(flags | 6 << 6 | 4 << 1, version).unwrap_err().kind(), ErrorKind::Corrupt);
        }
    }

    #[test]
    fn unreadable_spaces_are_refused_by_name() {
        let encrypted = parse(0x6021, 90704).unwrap_err();
        assert_eq!(encrypted.kind(), ErrorKind::Unsupported);
        assert_eq!(parse(0xf5, 0).unwrap_err().kind(), ErrorKind::Unsupported);
        let no_space = SpaceHeader::parse(&vec![1; PREFIX_BYTES], Path::new("t.txt")).unwrap_err();
        assert_eq!(no_space.kind(), ErrorKind::InvalidInput);
        assert!(SpaceHeader::parse(&[0; 100], Path::new("t.ibd")).is_err());
    }

    #[test]
    fn the_dictionary_root_lies_behind_the_extents() {
        let header = parse(0x4021, 90704).unwrap();
        let mut page = page0(0x4021, 90704);
        page[10505 + 3] = 1;
        page[10509 + 3] = 3;
        assert_eq!(header.sdi_root(&page, Path::new("t.ibd")).unwrap(), Some(PageNo(3)));
    }

    #[test]
    fn a_mariadb_encryption_record_is_noticed() {
        let header = parse(0x15, 0).unwrap();
        let mut page = page0(0x15, 0);
        page[10428..10434].copy_from_slice(&[b's', 0x0e, 0x0c, b'R', b'E', b't']);
        page[10434] = 1;
        assert_eq!(header.sdi_root(&page, Path::new("t.ibd")).unwrap(), None);
        page[10428 + 27] = 1;
        assert_eq!(header.sdi_root(&page, Path::new("t.ibd")).unwrap_err().kind(), ErrorKind::Unsupported);
    }

    #[test]
    fn page_0_of_mysql_5_0_has_any_type() {
        let of_type = |page_type: u8, flags| {
            let mut page = page0(flags, 0);
            page[header::TYPE..header::TYPE + 2].copy_from_slice(&[0, page_type]);
            SpaceHeader::parse(&page, Path::new("t.ibd"))
        };
        for page_type in [0, 3, 255] {
            let header = of_type(page_type, 0).unwrap();
            assert!(header.lacks_page_types);
            assert_eq!(header.page_size, PageSize(16384));
            // Spaces with flags were created when pages had types.
            assert_eq!(of_type(page_type, 0x21).unwrap_err().kind(), ErrorKind::InvalidInput);
        }
        assert!(!of_type(8, 0).unwrap().lacks_page_types);
    }

    proptest::proptest! {
        #[test]
        fn any_page_0_is_survived(flags: u32, version: u32, at in 0usize..16384, noise: u64) {
            let mut page = page0(flags, version);
            let noise = noise.to_be_bytes();
            let end = (at + noise.len()).min(page.len());
            page[at..end].copy_from_slice(&noise[..end - at]);
            if let Ok(header) = SpaceHeader::parse(&page[..PREFIX_BYTES], Path::new("t.ibd")) {
                for len in [PREFIX_BYTES, page.len()] {
                    let _ = header.sdi_root(&page[..len], Path::new("t.ibd"));
                }
            }
        }
    }
}
