//! Data of files: reads, writes, sizes, holes, syncs.

use tanada_io::Buffer;

use super::{Errno, FileSystem, Ino, Result};

/// Bits of `fallocate`'s mode.
const KEEP_SIZE: i32 = libc::FALLOC_FL_KEEP_SIZE;
const PUNCH: i32 = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
const ZERO: i32 = libc::FALLOC_FL_ZERO_RANGE;
const ZERO_KEEP_SIZE: i32 = ZERO | KEEP_SIZE;

impl FileSystem {
    /// Reads up to `len` bytes at `offset`: fewer where the file ends.
    ///
    /// # Errors
    /// `EIO` if the data are damaged or a device fails; `ENOKEY` if a key is missing.
    pub async fn read(&self, ino: Ino, offset: u64, len: usize) -> Result<Buffer> {
        let object = self.object(ino)?;
        let left = object.size_bytes().saturating_sub(offset);
        let len = len.min(usize::try_from(left).unwrap_or(usize::MAX));
        let buffer = self.buffers.allocate(len);
        if len == 0 {
            return Ok(buffer);
        }
        let buffer = object.read(offset, buffer).await?;
        if let Some(observer) = self.observer.get() {
            observer.read(&object, offset, len as u64);
        }
        Ok(buffer)
    }

    /// A buffer with these bytes, for [`write`](Self::write).
    pub fn buffer(&self, bytes: &[u8]) -> Buffer {
        let mut buffer = self.buffers.allocate(bytes.len());
        buffer.copy_from_slice(bytes);
        buffer
    }

    /// Writes bytes at `offset`; they are durable when this returns if `is_synced`, else after the next sync.
    ///
    /// # Errors
    /// `ENOSPC`, `EDQUOT`, `EROFS`, `EFBIG`, `EIO`.
    pub async fn write(&self, ino: Ino, offset: u64, buffer: Buffer, is_synced: bool) -> Result<()> {
        self.check_writable()?;
        let object = self.object(ino)?;
        check_size(offset.checked_add(buffer.len() as u64))?;
        let bytes = buffer.len() as u64;
        object.write(offset, buffer).await?;
        if let Some(observer) = self.observer.get() {
            observer.written(&object, offset, bytes);
        }
        self.touch(ino);
        if is_synced {
            object.sync().await?;
        }
        Ok(())
    }

    /// Makes a file `size` bytes long.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub async fn resize(&self, ino: Ino, size: u64) -> Result<()> {
        self.check_writable()?;
        check_size(Some(size))?;
        self.object(ino)?.resize(size).await?;
        self.touch(ino);
        Ok(())
    }

    /// Allocates, punches or zeroes a range, as `fallocate` does. Space is not reserved: it is refused where it could
    /// not be had now.
    ///
    /// # Errors
    /// `EOPNOTSUPP` for other modes, `ENOSPC`, and as [`write`](Self::write).
    pub async fn allocate(&self, ino: Ino, offset: u64, len: u64, mode: i32) -> Result<()> {
        self.check_writable()?;
        let object = self.object(ino)?;
        let end = offset.checked_add(len);
        check_size(end)?;
        let end = end.unwrap_or(u64::MAX);
        match mode {
            0 | KEEP_SIZE => self.check_room(&object, offset, end)?,
            PUNCH | ZERO | ZERO_KEEP_SIZE => object.punch(offset, len).await?,
            _ => return Err(Errno::new(libc::EOPNOTSUPP)),
        }
        // The kernel lets nobody else change the size meanwhile.
        if mode & KEEP_SIZE == 0 && end > object.size_bytes() {
            object.resize(end).await?;
        }
        self.touch(ino);
        Ok(())
    }

    /// Fails if holes within a range need more space than is free.
    fn check_room(&self, object: &tanada_volume::Object, offset: u64, end: u64) -> Result<()> {
        let (mut at, mut missing) = (offset, 0);
        while at < end {
            let data = object.next_data(at).map_or(end, |data| data.min(end));
            missing += data - at;
            at = if data < end { object.next_hole(data).max(data + 1) } else { end };
        }
        if missing > self.space().free_bytes { Err(Errno::new(libc::ENOSPC)) } else { Ok(()) }
    }

    /// Where data or a hole begins from `offset` on, as `SEEK_DATA` and `SEEK_HOLE` say.
    ///
    /// # Errors
    /// `ENXIO` behind the end or if there are no data, `EINVAL` for other directions.
    pub fn seek(&self, ino: Ino, offset: i64, whence: i32) -> Result<i64> {
        let object = self.object(ino)?;
        let no_such = || Errno::new(libc::ENXIO);
        let from = u64::try_from(offset).map_err(|_| no_such())?;
        if from >= object.size_bytes() {
            return Err(no_such());
        }
        let found = match whence {
            libc::SEEK_DATA => object.next_data(from).ok_or_else(no_such)?,
            libc::SEEK_HOLE => object.next_hole(from),
            _ => return Err(Errno::new(libc::EINVAL)),
        };
        i64::try_from(found).map_err(|_| Errno::new(libc::EOVERFLOW))
    }

    /// Returns when what was written to the file before is durable, and, unless only data matter, its attributes. Its
    /// name is, too.
    ///
    /// # Errors
    /// `EIO` if a device fails: no later sync says otherwise.
    pub async fn sync_file(&self, ino: Ino, only_data: bool) -> Result<()> {
        if self.is_read_only {
            return Ok(());
        }
        let object = self.object(ino)?;
        if !only_data {
            self.keep_times(ino)?;
        }
        Ok(object.sync().await?)
    }

    /// Returns when all names are durable.
    ///
    /// # Errors
    /// `EIO` if the metadata device fails.
    pub async fn sync_folder(&self) -> Result<()> {
        if self.is_read_only {
            return Ok(());
        }
        Ok(self.volume.sync_names().await?)
    }
}

/// Fails for a file larger than there may be.
fn check_size(end: Option<u64>) -> Result<()> {
    match end {
        Some(end) if end <= tanada_volume::LARGEST_OBJECT => Ok(()),
        _ => Err(Errno::new(libc::EFBIG)),
    }
}
