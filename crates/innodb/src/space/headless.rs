//! A tablespace whose page 0 is lost: damaged, all zeros, or not in the part of the file that is there.
//!
//! Page 0 says how large pages are, how they are framed and which tablespace they are of. Other pages tell the same, if
//! their checksums are verified:
//!
//! 1. pages spread over the file are read as pages of each size, in each form of framing;
//! 2. the form in which most of them are intact, name their own place and the same tablespace is the right one. Two
//!    pages are enough: a checksum fits by chance once in four billion times.
//!
//! A file whose pages are intact but name other places was cut out of a larger one, which is an error that says where
//! they belong.

use std::collections::HashMap;
use std::path::Path;

use tanada_io::Device;

use super::LARGEST_PAGE;
use super::header::SpaceHeader;
use crate::page::checksum::{classic_matches, full_crc32_matches, zip_matches};
use crate::page::codec::{PageCodec, PageFault, PageFormat};
use crate::page::compression::Algorithm;
use crate::page::header::{self, page_type, u16_at, u32_at};
use crate::{Environment, Error, ErrorKind, PageNo, PageSize, Result, Server, SpaceId};

const PAGE_SIZES: [u32; 7] = [16 << 10, 4 << 10, 8 << 10, 32 << 10, 64 << 10, 2 << 10, 1 << 10];
/// Pages that are larger or smaller than these are of ROW_FORMAT=COMPRESSED, or are not.
const MIN_WHOLE_BYTES: u32 = 4 << 10;
const MAX_ZIP_BYTES: u32 = 16 << 10;
/// Sizes of pages in memory of tables with ROW_FORMAT=COMPRESSED, the usual one first.
const ZIP_LOGICAL_BYTES: [u32; 3] = [16 << 10, 8 << 10, 4 << 10];
/// Pages looked at for each size.
const MAX_PAGES: u64 = 32;
/// Intact pages that are enough.
const MIN_INTACT: usize = 2;
/// Where MySQL has its own dictionary information in a table's file.
const SDI_ROOT: PageNo = PageNo(3);

/// What page 0 would tell, and the root of MySQL's dictionary information.
pub(super) struct Guess {
    pub(super) header: SpaceHeader,
    pub(super) sdi_root: Option<PageNo>,
}

/// The images of some pages of one size, with their numbers by their places.
struct Images {
    page_size: PageSize,
    images: Vec<(PageNo, Vec<u8>)>,
}

/// What the other pages of a file tell in place of page 0; `None` if they tell nothing.
///
/// # Errors
/// If the file is a part of a larger one that begins elsewhere, or cannot be read.
pub(super) async fn guess(path: &Path, device: &Device, environment: &Environment) -> Result<Option<Guess>> {
    let size_bytes = device.size_bytes()?;
    for page_size in PAGE_SIZES.map(PageSize) {
        let images = read(device, environment, page_size, size_bytes).await?;
        if let Some(guess) = images.tell(size_bytes) {
            return Ok(Some(guess));
        }
        images.refuse_displaced(path)?;
    }
    Ok(None)
}

/// Reads the first pages, and others evenly spread.
async fn read(
    device: &Device,
    environment: &Environment,
    page_size: PageSize,
    size_bytes: u64,
) -> Result<Images> {
    let (bytes, mut images) = (u64::from(page_size.0), Vec::new());
    let pages = size_bytes / bytes;
    let step = (pages / MAX_PAGES).max(1);
    let mut places: Vec<u64> =
        (0..8).chain((0..pages).step_by(step as usize)).filter(|no| *no < pages).collect();
    places.sort_unstable();
    places.dedup();
    for no in places {
        let buffer = environment.executors.buffers().allocate(page_size.bytes().min(LARGEST_PAGE));
        // A sector that cannot be read is why page 0 is missing, maybe.
        let Ok(image) = device.read(no * bytes, buffer).await else { continue };
        if image.len() == page_size.bytes() && image.iter().any(|byte| *byte != 0) {
            images.push((PageNo(no as u32), image.to_vec()));
        }
    }
    Ok(Images { page_size, images })
}

impl Images {
    /// Forms of framing that pages of this size may have, the simplest first.
    fn formats(&self) -> impl Iterator<Item = PageFormat> {
        let bytes = self.page_size.0;
        let compressed =
            (1..=6).filter_map(|number| Some(PageFormat::FullCrc32(Some(Algorithm::of_mariadb(number)?))));
        let whole = [PageFormat::Classic, PageFormat::FullCrc32(None)].into_iter().chain(compressed);
        let zips = ZIP_LOGICAL_BYTES.into_iter().filter(move |logical| bytes <= *logical);
        let zips = zips.map(|logical| PageFormat::Zip(PageSize(logical)));
        whole.filter(move |_| bytes >= MIN_WHOLE_BYTES).chain(zips.filter(move |_| bytes <= MAX_ZIP_BYTES))
    }

    /// The space that most of the pages name, intact in `format`, and how many do.
    fn intact(&self, format: PageFormat) -> Option<(SpaceId, usize)> {
        let mut count: HashMap<u32, usize> = HashMap::new();
        for (no, image) in &self.images {
            let space = u32_at(image, header::SPACE);
            let codec = PageCodec {
                format,
                page_size: self.page_size,
                space: SpaceId(space),
                verify: true,
                log_end: None,
                logged: None,
            };
            // A compressed page names its space within the stream alone.
            let named = match codec.decode(image, *no) {
                Ok(_) => Some(space),
                Err(PageFault::Misdirected { space, number }) if number == no.0 => Some(space),
                Err(_) => None,
            };
            if let Some(space) = named.filter(|_| no.0 > 0) {
                *count.entry(space).or_default() += 1;
            }
        }
        count.into_iter().max_by_key(|(_, count)| *count).map(|(space, count)| (SpaceId(space), count))
    }

    fn tell(&self, size_bytes: u64) -> Option<Guess> {
        let mut best: Option<(PageFormat, SpaceId, usize)> = None;
        for format in self.formats() {
            if let Some((space, count)) = self.intact(format)
                && count >= MIN_INTACT
                && best.is_none_or(|(_, _, most)| count > most)
            {
                best = Some((format, space, count));
            }
        }
        let (format, space, _) = best?;
        let is_sdi = |(no, image): &(PageNo, Vec<u8>)| {
            *no == SDI_ROOT && u16_at(image, header::TYPE) == page_type::SDI
        };
        let may_have_sdi = matches!(format, PageFormat::Classic | PageFormat::Zip(_));
        let has_sdi = may_have_sdi && self.images.iter().any(is_sdi);
        let logical_size = match format {
            PageFormat::Zip(logical_size) => logical_size,
            _ => self.page_size,
        };
        let header = SpaceHeader {
            space,
            page_size: self.page_size,
            logical_size,
            format,
            server: if has_sdi { Server::MySql } else { Server::MariaDb },
            size_pages: (size_bytes / u64::from(self.page_size.0)) as u32,
            // Any page may have been given to somebody.
            free_limit: u32::MAX,
            has_sdi,
            lacks_page_types: false,
        };
        Some(Guess { header, sdi_root: has_sdi.then_some(SDI_ROOT) })
    }

    /// Refuses a file whose pages are intact, but name places that are all as far from their own.
    fn refuse_displaced(&self, path: &Path) -> Result<()> {
        let displaced = |(no, image): &(PageNo, Vec<u8>)| {
            let is_intact = classic_matches(image) || full_crc32_matches(image) || zip_matches(image);
            let by = u32_at(image, header::NUMBER).checked_sub(no.0)?;
            (is_intact && by > 0).then_some(by)
        };
        let by: Vec<u32> = self.images.iter().filter_map(displaced).collect();
        if by.len() < MIN_INTACT || by.windows(2).any(|pair| pair[0] != pair[1]) {
            return Ok(());
        }
        let (first, bytes) = (by[0], self.page_size.0);
        let what = format!(
            "{}: it is a part of a tablespace that begins with page {first}: write it to its place in an empty file (dd if=PART of=FILE bs={bytes} \
             seek={first}) and read that with --skip-damaged",
            path.display()
        );
        Err(Error::new(ErrorKind::Corrupt, what))
    }
}
