//! Tablespaces, the environment they are opened in, and the page cache they share.
//!
//! A [`Tablespace`] is read in two ways: single pages through the [`PageCache`] ([`Tablespace::page`]), which tree
//! walks use, and runs of consecutive pages past it ([`Tablespace::run`]), which scans use. Either way a page is
//! verified and decompressed before it is seen.
//!
//! In a file with ROW_FORMAT=COMPRESSED pages have two sizes. Places in the file, groups of extents and runs go by the
//! stored one ([`Tablespace::page_size`]); the cache holds pages of B+trees in the size that the server works with, so
//! that each is decompressed once as long as it is held, and takes up to sixteen times as much memory there as in the
//! file.

mod age;
mod cache;
mod change_buffer;
mod extents;
pub(crate) mod header;
mod headless;
pub(crate) mod ranges;
mod run;
mod segment;
mod server_files;

pub(crate) use age::{LogEnd, LoggedPages, PageLsns};
pub use cache::{PageCache, PageCacheCounters};
pub(crate) use change_buffer::Stale;
pub(crate) use extents::{SegmentPages, Use};
pub use ranges::PageRange;
pub use run::PageRun;
pub(crate) use segment::Roots;
pub(crate) use server_files::ServerFiles;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tanada_io::{Buffer, Device, Executors, IoContext, Method};

use crate::files::{FileStamp, Files, HostFiles};
use crate::page::PageBytes;
use crate::page::checksum::is_unsealed;
use crate::page::codec::{PageCodec, PageFault, PageFormat};
use crate::page::header::{LSN, u64_at};
use crate::page::page_type;
use crate::{Error, ErrorKind, Lsn, Page, PageNo, PageSize, Result, Server, SpaceId};
use cache::{Claim, FileInstance, PageKey};
use header::SpaceHeader;

/// What tablespaces need from the process. Shared by all mounts and queries.
#[derive(Debug)]
pub struct Environment {
    /// Executors that run tree walks.
    pub executors: Arc<Executors>,
    /// The page cache.
    pub cache: Arc<PageCache>,
    /// How files are read.
    pub method: Method,
    /// Whether page checksums are verified on read.
    pub verify_checksums: bool,
    /// Where the files are.
    pub files: Arc<dyn Files>,
    /// The end of the redo log beside the files, and the changes that it has, if there is one.
    pub(crate) log_end: Option<LogEnd>,
    /// The server's own files beside the tables as they were when its directory was mounted.
    pub(crate) server_files: Arc<ServerFiles>,
}

impl Environment {
    /// An environment over the host's files.
    pub fn new(
        executors: Arc<Executors>,
        cache: Arc<PageCache>,
        method: Method,
        verify_checksums: bool,
    ) -> Environment {
        Environment {
            executors,
            cache,
            method,
            verify_checksums,
            files: Arc::new(HostFiles),
            log_end: None,
            server_files: Arc::default(),
        }
    }

    /// The same over other files.
    pub fn with_files(self, files: Arc<dyn Files>) -> Environment {
        Environment { files, ..self }
    }

    /// The same for the files of a data directory whose redo log ends at `log_end`.
    pub(crate) fn with_log_end(&self, log_end: Option<LogEnd>, server_files: ServerFiles) -> Environment {
        let (executors, cache) = (self.executors.clone(), self.cache.clone());
        let (method, verify_checksums, files) = (self.method, self.verify_checksums, self.files.clone());
        let server_files = Arc::new(server_files);
        Environment { executors, cache, method, verify_checksums, files, log_end, server_files }
    }
}

/// One `.ibd` file, or a general tablespace.
#[derive(Debug)]
pub struct Tablespace {
    path: PathBuf,
    device: Device,
    environment: Arc<Environment>,
    file: FileInstance,
    header: SpaceHeader,
    codec: PageCodec,
    /// Whole pages in the file.
    pages: u32,
    /// Bytes after the last whole page, which nothing refers to.
    tail_bytes: u64,
    sdi_root: Option<PageNo>,
    /// Whether page 0 was written without a checksum.
    lacks_checksums: bool,
    /// Why page 0 cannot be read, if the other pages told what it would.
    loss: Option<Error>,
    /// The stamp of the file that is open, where there are such.
    stamp: Option<FileStamp>,
    /// The LSN of page 0.
    first_lsn: Lsn,
    /// Whether a page was newer than the end of the redo log, and read all the same.
    has_newer: AtomicBool,
}

/// Blocks by which the servers extend files.
const BLOCK_BYTES: u64 = 4 << 10;

/// The largest page: the size is only known once page 0 has been seen.
const LARGEST_PAGE: usize = 64 << 10;

/// What page 0 tells.
struct Start {
    header: SpaceHeader,
    codec: PageCodec,
    sdi_root: Option<PageNo>,
    lacks_checksums: bool,
    /// Why page 0 cannot be read, if the other pages tell what it would.
    loss: Option<Error>,
    /// The LSN of page 0.
    first_lsn: Lsn,
}

impl Start {
    fn codec(header: &SpaceHeader, environment: &Environment) -> PageCodec {
        let log = environment.log_end.as_ref().filter(|log| !log.accept_stale);
        PageCodec {
            format: header.format,
            page_size: header.page_size,
            space: header.space,
            verify: environment.verify_checksums,
            log_end: log.map(|log| log.lsn),
            logged: log.and_then(|log| log.pages.of(header.space).cloned()),
        }
    }

    /// What the other pages tell, if page 0 cannot be read for `error`, else that error.
    async fn without_page_0(
        path: &Path,
        device: &Device,
        environment: &Environment,
        error: Error,
    ) -> Result<Start> {
        let Some(headless::Guess { header, sdi_root }) = headless::guess(path, device, environment).await?
        else {
            return Err(error);
        };
        let codec = Start::codec(&header, environment);
        let (lacks_checksums, loss, first_lsn) = (false, Some(error), Lsn(0));
        Ok(Start { header, codec, sdi_root, lacks_checksums, loss, first_lsn })
    }

    async fn read(path: &Path, device: &Device, environment: &Environment) -> Result<Start> {
        let start = device.read(0, environment.executors.buffers().allocate(LARGEST_PAGE)).await?;
        let header = SpaceHeader::parse(start.get(..header::PREFIX_BYTES).unwrap_or(&start), path)?;
        let codec = Start::codec(&header, environment);
        let Some(page0) = start.get(..header.page_size.bytes()) else {
            return Err(Error::new(
                ErrorKind::Corrupt,
                format!("{}: the file ends within page 0", path.display()),
            ));
        };
        codec.decode(page0, PageNo(0)).map_err(|fault| fault_in(path, codec.space, PageNo(0), &fault))?;
        let sdi_root = header.sdi_root(page0, path)?;
        let lacks_checksums = !matches!(header.format, PageFormat::FullCrc32(_)) && is_unsealed(page0);
        let first_lsn = Lsn(u64_at(page0, LSN));
        Ok(Start { header, codec, sdi_root, lacks_checksums, loss: None, first_lsn })
    }
}

impl Tablespace {
    /// Opens a file: reads page 0, checks the header and flags; an encrypted space is refused with an error of its own.
    ///
    /// # Errors
    /// If it cannot be read, is no tablespace, is damaged, or uses what is not read.
    pub async fn open(path: &Path, environment: &Arc<Environment>) -> Result<Arc<Tablespace>> {
        let before = environment.files.stamp(path).ok();
        let device = environment.files.open(path, environment.method)?;
        // What was there before and after the file was opened is the file that is open.
        let stamp = before.filter(|before| environment.files.stamp(path).is_ok_and(|after| after == *before));
        let size_bytes = device.size_bytes()?;
        let read = Start::read(path, &device, environment).await;
        let start = match read {
            // Damage may look like anything, as long as the checksum is not reached.
            Err(error) if error.kind() != ErrorKind::Io => {
                device.distrust(0, LARGEST_PAGE as u64);
                Start::read(path, &device, environment).await
            }
            read => read,
        };
        let start = match start {
            Err(error) if error.kind() != ErrorKind::NotClean => {
                Start::without_page_0(path, &device, environment, error).await?
            }
            start => start?,
        };
        let Start { header, codec, sdi_root, lacks_checksums, loss, first_lsn } = start;
        let page_bytes = header.page_size.bytes();
        // A page number has 32 bits, and FIL_NULL is none.
        let pages = (size_bytes / page_bytes as u64).min(u64::from(u32::MAX)) as u32;
        let space = Tablespace {
            path: path.to_owned(),
            device,
            environment: environment.clone(),
            file: FileInstance::next(),
            header,
            codec,
            pages,
            tail_bytes: size_bytes % page_bytes as u64,
            sdi_root,
            lacks_checksums,
            loss,
            stamp,
            first_lsn,
            has_newer: AtomicBool::new(false),
        };
        space.check_last_changes().await?;
        Ok(Arc::new(space))
    }

    /// The stamp of the file that is open; `None` where changes of files leave no trace.
    pub(crate) fn stamp(&self) -> Option<FileStamp> {
        self.stamp
    }

    /// The LSN of page 0 when the file was opened.
    pub(crate) fn first_lsn(&self) -> Lsn {
        self.first_lsn
    }

    /// Its id.
    pub fn id(&self) -> SpaceId {
        self.header.space
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What its file lies on.
    pub fn medium(&self) -> tanada_io::Medium {
        self.device.medium()
    }

    /// The size of pages in the file.
    pub fn page_size(&self) -> PageSize {
        self.header.page_size
    }

    /// The size of the pages that the server works on, and that B+tree pages have in memory: more than in the file if
    /// the table has ROW_FORMAT=COMPRESSED.
    pub fn logical_page_size(&self) -> PageSize {
        self.header.logical_size
    }

    /// Whether the table has ROW_FORMAT=COMPRESSED.
    pub(crate) fn is_zipped(&self) -> bool {
        matches!(self.header.format, PageFormat::Zip(_))
    }

    /// Whole pages in the file.
    pub fn pages(&self) -> u32 {
        self.pages
    }

    /// The cache that its pages go through.
    pub fn cache(&self) -> &PageCache {
        &self.environment.cache
    }

    /// Who wrote it.
    pub fn server(&self) -> Server {
        self.header.server
    }

    /// Whether page 0 has no checksum (`innodb_checksum_algorithm = none`): in such pages damage is not noticed, and
    /// others may be like it.
    pub fn lacks_checksums(&self) -> bool {
        self.lacks_checksums
    }

    /// Whether `page` is of one of `types`, or may be: in a file of MySQL 5.0 only pages of B+trees say what they are.
    pub(crate) fn is_of_type(&self, page: &Page, types: &[u16]) -> bool {
        let of_page = page.page_type();
        types.contains(&of_page) || self.header.lacks_page_types && of_page != page_type::INDEX
    }

    /// Pages that the file should have by its header; it may have more, and fewer if it was cut.
    pub(crate) fn declared_pages(&self) -> u32 {
        self.header.size_pages
    }

    /// Why pages that are referred to may be missing, to be told behind that; nothing if the file is as long as its
    /// header says.
    pub(crate) fn shortage(&self) -> String {
        let (pages, size) = (self.pages, self.header.size_pages);
        if pages < size { format!(": it was cut short to {pages} of {size} pages") } else { String::new() }
    }

    /// Root of the serialized dictionary information (MySQL only).
    pub fn sdi_root(&self) -> Option<PageNo> {
        self.sdi_root
    }

    /// What is odd about the file but does no harm unless a missing page is needed: it ends within a page, or before
    /// the size that its header gives.
    pub fn note(&self) -> Option<String> {
        let (pages, size) = (self.pages, self.header.size_pages);
        if let Some(error) = &self.loss {
            let (page_size, space) = (self.page_size().0, self.id());
            return Some(format!(
                "{error}; that the pages have {page_size} bytes and are of tablespace {space} is taken from the others"
            ));
        }
        let missing_bytes = u64::from(size.saturating_sub(pages)) * u64::from(self.page_size().0);
        // The servers extend files by whole blocks, so that the last small pages may be missing.
        if missing_bytes >= BLOCK_BYTES {
            return Some(format!(
                "{}: the file has {pages} of {size} pages; what lay on the others cannot be read",
                self.path.display()
            ));
        }
        (self.tail_bytes > 0)
            .then(|| format!("{}: {} bytes after the last page", self.path.display(), self.tail_bytes))
    }

    /// A page, through the cache (admitted by and counted in `context`).
    ///
    /// # Errors
    /// If it cannot be read, lies past the end of the file, or is damaged.
    #[inline]
    pub async fn page(&self, no: PageNo, context: &IoContext) -> Result<Page> {
        if let Some(page) = self.cached_page(no, context) {
            return Ok(page);
        }
        self.load(no, context).await
    }

    /// A page, if the cache holds it: what [`page`](Self::page) tries first.
    #[inline]
    pub fn cached_page(&self, no: PageNo, context: &IoContext) -> Option<Page> {
        let page = self.environment.cache.get(PageKey::new(self.file, no))?;
        context.counters().cache_hit();
        Some(page)
    }

    async fn load(&self, no: PageNo, context: &IoContext) -> Result<Page> {
        match self.environment.cache.claim(PageKey::new(self.file, no)).await {
            Claim::Shared(page) => {
                context.counters().cache_hit();
                Ok(page)
            }
            Claim::Read(ticket) => {
                let page = self.read_page(no, context).await?;
                ticket.fulfil(page.clone());
                Ok(page)
            }
        }
    }

    /// What is damaged is read once more: a copy of the file may be, or a server has been writing the page.
    async fn read_page(&self, no: PageNo, context: &IoContext) -> Result<Page> {
        if no.0 >= self.pages {
            return Err(self.missing(no));
        }
        let page = self.read_page_once(no, context).await;
        if !self.is_doubtful(&page) {
            return page;
        }
        drop(page);
        let page_bytes = self.page_size().bytes() as u64;
        self.device.distrust(u64::from(no.0) * page_bytes, page_bytes);
        self.read_page_once(no, context).await
    }

    async fn read_page_once(&self, no: PageNo, context: &IoContext) -> Result<Page> {
        let Images { buffer, start } = self.read_pages(no, 1, context).await?;
        let len = self.page_size().bytes();
        let image = buffer.get(start..(start + len).min(buffer.len())).unwrap_or_default();
        self.note_age(image, no);
        let bytes = match self.codec.decode(image, no) {
            Ok(None) if buffer.len() == len => PageBytes::Buffer(buffer),
            // The block that was read holds other pages too, which the cache does not account for.
            Ok(None) => PageBytes::Stored(image.to_vec()),
            Ok(Some(decompressed)) => PageBytes::Heap(decompressed),
            Err(fault) => return Err(fault_in(&self.path, self.id(), no, &fault)),
        };
        Ok(Page::new(self.id(), no, bytes))
    }

    /// Whether a page that something refers to may be another one where it is read next: it is damaged, or all zeros
    /// though it was given to somebody.
    fn is_doubtful(&self, page: &Result<Page>) -> bool {
        match page {
            Ok(page) => self.is_lost(page),
            Err(error) => error.kind() == ErrorKind::Corrupt,
        }
    }

    /// Whether the page is all zeros though it was given to somebody. Nothing refers to a free one.
    pub(crate) fn is_lost(&self, page: &Page) -> bool {
        page.is_unwritten() && page.number().0 < self.header.free_limit
    }

    /// Page `i` of a run of this tablespace, to which something refers; if it is damaged there, it is read once more
    /// for itself.
    ///
    /// # Errors
    /// As [`page`](Self::page).
    pub async fn page_of(&self, run: &PageRun, i: u32, context: &IoContext) -> Result<Page> {
        let page = run.page(i);
        if i < run.pages() && self.is_doubtful(&page) {
            return self.page(PageNo(run.first().0.saturating_add(i)), context).await;
        }
        page
    }

    /// Reads the images of `count` pages; the memory is only taken once the I/O may start. Pages that are smaller than
    /// the blocks of the device come with their blocks.
    async fn read_pages(&self, first: PageNo, count: u32, context: &IoContext) -> Result<Images> {
        let (offset, start, len) = self.blocks_of(first, count);
        let permit = context.admit(len).await;
        let buffer = self.environment.executors.buffers().allocate(len);
        let buffer = self.device.read(offset, buffer).await?;
        context.observe(&permit, &self.path, offset, len as u64);
        Ok(Images { buffer, start })
    }

    /// Where the device's blocks with `count` pages begin, where in them the pages start, and how many bytes they have.
    fn blocks_of(&self, first: PageNo, count: u32) -> (u64, usize, usize) {
        let page_bytes = self.page_size().bytes();
        let block = self.device.alignment().max(1);
        let offset = u64::from(first.0) * page_bytes as u64;
        let start = (offset % block as u64) as usize;
        (offset - start as u64, start, (start + count as usize * page_bytes).next_multiple_of(block))
    }

    /// Reads the image of a page when the file is opened, which nothing limits yet.
    async fn read_unadmitted(&self, no: PageNo) -> Result<Images> {
        let (offset, start, len) = self.blocks_of(no, 1);
        let buffer = self.device.read(offset, self.environment.executors.buffers().allocate(len)).await?;
        Ok(Images { buffer, start })
    }

    /// `count` pages from `first` with one large I/O that neither uses nor fills the cache. Pages past the end of the
    /// file are only missed when they are asked for.
    ///
    /// # Errors
    /// If they cannot be read, or are more than [`PageRun::MOST_BYTES`].
    pub async fn run(&self, first: PageNo, count: u32, context: &IoContext) -> Result<PageRun> {
        let fits = count > 0 && count as usize <= PageRun::MOST_BYTES / self.page_size().bytes();
        if !fits {
            let what = format!("{}: a run of {count} pages cannot be read at once", self.path.display());
            return Err(Error::new(ErrorKind::InvalidInput, what));
        }
        let present = self.pages.saturating_sub(first.0).min(count);
        let images = match present {
            0 => Images { buffer: self.environment.executors.buffers().allocate(0), start: 0 },
            present => self.read_pages(first, present, context).await?,
        };
        let stored = images.buffer.get(images.start..).unwrap_or_default();
        for (at, image) in stored.chunks_exact(self.page_size().bytes()).enumerate() {
            self.note_age(image, PageNo(first.0.saturating_add(at as u32)));
        }
        Ok(PageRun::new(&self.path, self.codec.clone(), first, count, images))
    }

    /// An error about page `no`, damaged in the way of `what`.
    pub(crate) fn corrupt(&self, no: PageNo, what: &str) -> Error {
        error_in(&self.path, self.id(), no, ErrorKind::Corrupt, &what)
    }

    fn missing(&self, no: PageNo) -> Error {
        let what =
            format!("it lies past the end of the file, which has {} pages{}", self.pages, self.shortage());
        self.corrupt(no, &what)
    }
}

/// What was read of consecutive pages.
struct Images {
    buffer: Buffer,
    /// Where the first page starts in it.
    start: usize,
}

fn fault_in(path: &Path, space: SpaceId, no: PageNo, fault: &PageFault) -> Error {
    error_in(path, space, no, fault.kind(), fault)
}

fn error_in(path: &Path, space: SpaceId, no: PageNo, kind: ErrorKind, what: &dyn std::fmt::Display) -> Error {
    Error::new(kind, format!("{}: space {space}, page {no}: {what}", path.display()))
}
