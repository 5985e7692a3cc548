//! Consecutive pages, read at once.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tanada_io::Buffer;

use super::{Images, error_in, fault_in};
use crate::page::PageBytes;
use crate::page::codec::PageCodec;
use crate::{ErrorKind, Page, PageNo, Result};

/// Consecutive pages read with one I/O, past the cache.
#[derive(Debug)]
pub struct PageRun {
    path: PathBuf,
    codec: PageCodec,
    first: PageNo,
    count: u32,
    /// Shorter than `count` pages at the end of the file.
    images: Arc<Buffer>,
    /// Where the first page starts in them.
    start: usize,
}

impl PageRun {
    /// The longest run.
    pub const MOST_BYTES: usize = 4 << 20;

    pub(super) fn new(path: &Path, codec: PageCodec, first: PageNo, count: u32, images: Images) -> PageRun {
        let Images { buffer, start } = images;
        PageRun { path: path.to_owned(), codec, first, count, images: Arc::new(buffer), start }
    }

    /// Page `i` of the run: verified and decompressed on demand, not copied if it is not compressed. It keeps the
    /// memory of the whole run.
    ///
    /// # Errors
    /// If it is damaged, or lies past the end of the file or the run.
    pub fn page(&self, i: u32) -> Result<Page> {
        let (space, len) = (self.codec.space, self.codec.page_size.bytes());
        let no = PageNo(self.first.0.saturating_add(i));
        let start = self.start + i as usize * len;
        let image = self.images.get(start..start + len).filter(|_| i < self.count);
        let Some(image) = image else {
            let what = "it lies past the end of the file or of the run";
            return Err(error_in(&self.path, space, no, ErrorKind::Corrupt, &what));
        };
        let bytes = match self.codec.decode(image, no) {
            Ok(None) => PageBytes::Run { run: self.images.clone(), start, len },
            Ok(Some(decompressed)) => PageBytes::Heap(decompressed),
            Err(fault) => return Err(fault_in(&self.path, space, no, &fault)),
        };
        Ok(Page::new(space, no, bytes))
    }

    /// The first page.
    pub fn first(&self) -> PageNo {
        self.first
    }

    /// Number of pages.
    pub fn pages(&self) -> u32 {
        self.count
    }
}
