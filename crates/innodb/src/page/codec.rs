//! From the image of a page on disk to its content: steps 1 and 2 of the [module](super).
//!
//! Classic files (MySQL, MariaDB without full_crc32), in this order: a page of zeros is free; a compressed page (type
//! 14 by MySQL, 34354 by MariaDB) is decompressed, since its checksum is the inner page's; the checksum; then number
//! and tablespace. Files with full_crc32: the type's top bit marks a compressed page and its low bits times 256 the
//! stored size, whose last four bytes are the checksum of what lies before; the algorithm belongs to the tablespace
//! (`fil0pagecompress.cc`, `buf0checksum.h`). Files with ROW_FORMAT=COMPRESSED: the checksum of the page as it is
//! stored; number and tablespace; pages of B+trees are decompressed ([`zip`]).

use std::fmt;
use std::sync::Arc;

use super::checksum;
use super::compression::Algorithm;
use super::header::{self, page_type, u16_at, u32_at, u64_at};
use super::zip;
use crate::space::PageLsns;
use crate::{ErrorKind, Lsn, PageNo, PageSize, SpaceId};

/// How pages of a tablespace are framed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageFormat {
    /// Checksum in header and trailer; compressed pages describe themselves.
    Classic,
    /// MariaDB's full_crc32, with the algorithm of compressed pages if there may be any.
    FullCrc32(Option<Algorithm>),
    /// ROW_FORMAT=COMPRESSED, with the size of the pages that the server works on.
    Zip(PageSize),
}

/// Why a page cannot be used. The tablespace adds file, space and page number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PageFault {
    /// No checksum algorithm accepts the page.
    Checksum,
    /// A header that no server writes.
    Header(&'static str),
    /// The image is intact, but of another page.
    Misdirected { space: u32, number: u32 },
    /// A compressed page does not decompress.
    Compression(Algorithm, String),
    /// Encrypted.
    Encrypted,
    /// An unknown compression algorithm.
    UnknownAlgorithm(u64),
    /// The page was changed after the redo log beside its file had ended.
    Newer { lsn: Lsn, log_end: Lsn },
    /// The redo log beside the file has a later change of the page.
    Older { lsn: Lsn, logged: Lsn },
}

/// What to do about a file of another time than the redo log beside it.
const WAYS_OUT: &str = "copy all files again after a clean shutdown (SET GLOBAL innodb_fast_shutdown = 0; SHUTDOWN), or \
    this table's under FLUSH TABLES ... FOR EXPORT, or use a prepared backup (mariabackup or xtrabackup --prepare); \
    --allow-stale reads it as it is";

/// What to do about an encrypted tablespace.
pub(crate) const DECRYPT: &str = "decrypt it on its server (MySQL: ALTER TABLE or TABLESPACE ... ENCRYPTION = 'N', \
    MariaDB: ALTER TABLE ... ENCRYPTED = NO) and shut that down";

impl PageFault {
    pub(crate) fn kind(&self) -> ErrorKind {
        match self {
            PageFault::Encrypted | PageFault::UnknownAlgorithm(_) => ErrorKind::Unsupported,
            PageFault::Newer { .. } | PageFault::Older { .. } => ErrorKind::NotClean,
            _ => ErrorKind::Corrupt,
        }
    }
}

impl fmt::Display for PageFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PageFault::Checksum => f.write_str("the checksum does not match: the page is damaged"),
            PageFault::Header(what) => write!(f, "the page is damaged: {what}"),
            PageFault::Misdirected { space, number } => {
                write!(f, "the page found there is page {number} of space {space}")
            }
            PageFault::Compression(algorithm, why) => {
                write!(f, "the page is damaged: {algorithm:?} cannot decompress it: {why}")
            }
            PageFault::Encrypted => write!(f, "the page is encrypted, which is not read; {DECRYPT}"),
            PageFault::UnknownAlgorithm(number) => {
                write!(f, "page compression algorithm {number} is not known")
            }
            PageFault::Newer { lsn, log_end } => write!(
                f,
                "the page was changed at LSN {lsn}, but the redo log of its directory ends at LSN {log_end}: the file \
                 was copied later than the log, from a running server, or is of another time or server; {WAYS_OUT}"
            ),
            PageFault::Older { lsn, logged } => write!(
                f,
                "the page was changed last at LSN {lsn}, but the redo log of its directory has a change of it at LSN \
                 {logged}: the file was copied earlier than the log, from a running server, or is of another time; \
                 {WAYS_OUT}"
            ),
        }
    }
}

/// Checks and decompresses the pages of one tablespace.
#[derive(Debug, Clone)]
pub(crate) struct PageCodec {
    pub(crate) format: PageFormat,
    /// Of pages in the file.
    pub(crate) page_size: PageSize,
    pub(crate) space: SpaceId,
    /// Whether checksums are verified; number and tablespace are in any case.
    pub(crate) verify: bool,
    /// Where the redo log of the directory ends, if newer pages are refused.
    pub(crate) log_end: Option<Lsn>,
    /// Pages that the redo log has changes of, if older ones are refused.
    pub(crate) logged: Option<Arc<PageLsns>>,
}

impl PageCodec {
    /// Checks `image`, of the length of a page, which was read where page `number` should be. `None` if it is the page
    /// as it stands, otherwise what it decompresses to.
    pub(crate) fn decode(&self, image: &[u8], number: PageNo) -> Result<Option<Vec<u8>>, PageFault> {
        if image.len() != self.page_size.bytes() {
            return Err(PageFault::Header("it is cut short"));
        }
        if is_all_zero(image) {
            return Ok(None);
        }
        let decoded = match self.format {
            PageFormat::Classic => self.decode_classic(image, number)?,
            PageFormat::FullCrc32(algorithm) => self.decode_full_crc32(image, number, algorithm)?,
            PageFormat::Zip(page_size) => self.decode_zip(image, number, page_size)?,
        };
        self.check_age(image, number)?;
        Ok(decoded)
    }

    /// Refuses a page that is newer than the redo log, or older than a change that the log has. The LSN is where it is
    /// on pages of all kinds, compressed ones too.
    pub(crate) fn check_age(&self, image: &[u8], number: PageNo) -> Result<(), PageFault> {
        let lsn = Lsn(u64_at(image, header::LSN));
        if let Some(log_end) = self.log_end.filter(|log_end| lsn > *log_end) {
            return Err(PageFault::Newer { lsn, log_end });
        }
        match self.logged.as_ref().and_then(|logged| logged.get(&number)) {
            Some(logged) if lsn < *logged => Err(PageFault::Older { lsn, logged: *logged }),
            _ => Ok(()),
        }
    }

    fn decode_classic(&self, image: &[u8], number: PageNo) -> Result<Option<Vec<u8>>, PageFault> {
        let decompressed = match u16_at(image, header::TYPE) {
            page_type::MYSQL_COMPRESSED => Some(self.decompress_mysql(image)?),
            page_type::MARIADB_COMPRESSED => Some(self.decompress_mariadb(image)?),
            page_type::MARIADB_COMPRESSED_AND_ENCRYPTED
            | page_type::MYSQL_ENCRYPTED
            | page_type::MYSQL_COMPRESSED_AND_ENCRYPTED
            | page_type::MYSQL_ENCRYPTED_RTREE => return Err(PageFault::Encrypted),
            _ => None,
        };
        let page = decompressed.as_deref().unwrap_or(image);
        if self.verify && !checksum::classic_matches(page) {
            return Err(PageFault::Checksum);
        }
        self.check_identity(page, number)?;
        Ok(decompressed)
    }

    /// Offsets 26 to 33: version, algorithm, original type, original and compressed size; the stream of the body
    /// from 38.
    fn decompress_mysql(&self, image: &[u8]) -> Result<Vec<u8>, PageFault> {
        let number = image[27];
        let algorithm = Algorithm::of_mysql(number).ok_or(PageFault::UnknownAlgorithm(number.into()))?;
        let original_type = &image[28..30];
        let original_size = usize::from(u16_at(image, 30));
        let compressed_size = usize::from(u16_at(image, 32));
        let stream = image[header::DATA..].get(..compressed_size);
        let stream = stream.ok_or(PageFault::Header("its compressed size exceeds the page"))?;
        // The field has two bytes, so that of a page of 64 KiB is cut, but 65498 still fits.
        if original_size != image.len() - header::DATA {
            return Err(PageFault::Header("its original size is not a page"));
        }
        let mut page = vec![0; image.len()];
        page[..header::FLUSH_LSN].copy_from_slice(&image[..header::FLUSH_LSN]);
        page[header::TYPE..header::FLUSH_LSN].copy_from_slice(original_type);
        page[header::SPACE..header::DATA].copy_from_slice(&image[header::SPACE..header::DATA]);
        decompress(algorithm, stream, &mut page[header::DATA..])?;
        Ok(page)
    }

    /// Offset 26: the algorithm; 38: the stream's length; the stream of the whole page from 40.
    fn decompress_mariadb(&self, image: &[u8]) -> Result<Vec<u8>, PageFault> {
        let number = u64_at(image, header::FLUSH_LSN);
        let algorithm = Algorithm::of_mariadb(number).ok_or(PageFault::UnknownAlgorithm(number))?;
        let stream = image[header::DATA + 2..].get(..usize::from(u16_at(image, header::DATA)));
        let stream = stream.ok_or(PageFault::Header("its compressed size exceeds the page"))?;
        let mut page = vec![0; image.len()];
        decompress(algorithm, stream, &mut page)?;
        Ok(page)
    }

    fn decode_full_crc32(
        &self,
        image: &[u8],
        number: PageNo,
        algorithm: Option<Algorithm>,
    ) -> Result<Option<Vec<u8>>, PageFault> {
        const COMPRESSED: u16 = 1 << 15;
        let stored_type = u16_at(image, header::TYPE);
        let compressed = stored_type & COMPRESSED != 0;
        let stored_size = if compressed { usize::from(stored_type & !COMPRESSED) << 8 } else { image.len() };
        let stored = image.get(..stored_size).filter(|stored| stored.len() > header::FLUSH_LSN + 5);
        let stored = stored.ok_or(PageFault::Header("its stored size is impossible"))?;
        if self.verify && !checksum::full_crc32_matches(stored) {
            return Err(PageFault::Checksum);
        }
        if u32_at(image, header::CHECKSUM) != 0 {
            return Err(PageFault::Encrypted);
        }
        if !compressed {
            self.check_identity(image, number)?;
            return Ok(None);
        }
        let algorithm = algorithm.ok_or(PageFault::Header("it is compressed in a space that is not"))?;
        let end = if algorithm.needs_exact_length() { exact_end(stored) } else { stored.len() - 4 };
        let stream = stored.get(header::FLUSH_LSN..end);
        let stream = stream.ok_or(PageFault::Header("its compressed size is impossible"))?;
        let mut page = vec![0; image.len()];
        decompress(algorithm, stream, &mut page)?;
        self.check_identity(&page, number)?;
        Ok(Some(page))
    }

    fn decode_zip(
        &self,
        image: &[u8],
        number: PageNo,
        page_size: PageSize,
    ) -> Result<Option<Vec<u8>>, PageFault> {
        if self.verify && !checksum::zip_matches(image) {
            return Err(PageFault::Checksum);
        }
        self.check_identity(image, number)?;
        match u16_at(image, header::TYPE) {
            page_type::INDEX | page_type::RTREE | page_type::SDI => {
                zip::decompress(image, page_size).map(Some).map_err(PageFault::Header)
            }
            page_type::MYSQL_ENCRYPTED | page_type::MYSQL_ENCRYPTED_RTREE => Err(PageFault::Encrypted),
            _ => Ok(None),
        }
    }

    fn check_identity(&self, page: &[u8], number: PageNo) -> Result<(), PageFault> {
        let found = (u32_at(page, header::SPACE), u32_at(page, header::NUMBER));
        if found == (self.space.0, number.0) {
            return Ok(());
        }
        Err(PageFault::Misdirected { space: found.0, number: found.1 })
    }
}

/// Where the stream ends: the stored size is rounded up to 256 bytes, and the byte before the checksum holds what the
/// length with five bytes of trailer was modulo 256.
fn exact_end(stored: &[u8]) -> usize {
    let low = usize::from(stored[stored.len() - 5]);
    let with_trailer = if low == 0 { stored.len() } else { stored.len() + low - 256 };
    with_trailer.saturating_sub(5)
}

fn decompress(algorithm: Algorithm, stream: &[u8], output: &mut [u8]) -> Result<(), PageFault> {
    algorithm.decompress(stream, output).map_err(|why| PageFault::Compression(algorithm, why))
}

/// Cheap for pages in use: their header differs from zero.
fn is_all_zero(image: &[u8]) -> bool {
    let (words, rest) = image.as_chunks::<16>();
    words.iter().all(|word| u128::from_ne_bytes(*word) == 0) && rest.iter().all(|byte| *byte == 0)
}

#[cfg(test)]
mod tests;
