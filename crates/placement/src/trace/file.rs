//! Trace files: a header, then blocks of records, each compressed and checksummed for itself. `docs/trace-format.md`.
//!
//! 1. The writer collects records until a block is full, compresses it with zstd and appends it. Its end is marked when
//!    it is finished.
//! 2. The reader believes a block when its checksum is right. A block that is cut off, or wrong and the last, is a torn
//!    tail: what comes before it is the trace. A wrong block that others follow is damage, and an error.

use std::io::{Read, Write};

use tanada_base::Reader;

use super::code::{Decoded, State, put_end, put_record, take_record};
use super::{Record, Trace};
use crate::{Error, Result};

const MAGIC: &[u8; 8] = b"TANADATR";
/// Version 1 has no I/O that tells which one it waited for.
const VERSION: u16 = 2;
const HEADER_BYTES: usize = 32;
const BLOCK_MAGIC: u32 = 0x5442_4c4b;
const BLOCK_HEADER_BYTES: usize = 20;

/// Bytes of records from which on a block is written.
const FULL_BLOCK: usize = 256 << 10;

/// Bytes of records that a block may have: a footprint may be long.
const MOST_BLOCK_BYTES: usize = 64 << 20;

/// The level at which zstd costs a writer next to nothing.
const LEVEL: i32 = 3;

/// How a trace file ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Its writer finished it.
    Finished,
    /// Its writer was stopped between two blocks.
    Stopped,
    /// Its last block is not whole; so many bytes were left out.
    Torn {
        /// Bytes left out.
        bytes: u64,
    },
}

/// Writes a trace.
///
/// ```
/// use tanada_placement::{End, Record, TraceReader, TraceWriter};
/// let mut writer = TraceWriter::new(Vec::new())?;
/// writer.push(&Record::Object { name: "orders".to_owned(), bytes: 1 << 20 })?;
/// let file = writer.finish()?;
/// let (trace, end) = TraceReader::new(&file[..])?.read()?;
/// assert_eq!((trace.objects()[0].name.as_str(), end), ("orders", End::Finished));
/// # Ok::<(), tanada_placement::Error>(())
/// ```
#[derive(Debug)]
pub struct TraceWriter<W: Write> {
    to: W,
    block: Vec<u8>,
    records: u32,
    state: State,
}

fn write_error(error: std::io::Error) -> Error {
    Error::io("writing the trace", error)
}

impl<W: Write> TraceWriter<W> {
    /// Begins a trace.
    ///
    /// # Errors
    /// If writing fails.
    pub fn new(mut to: W) -> Result<TraceWriter<W>> {
        let mut header = [0; HEADER_BYTES];
        header[..8].copy_from_slice(MAGIC);
        header[8..10].copy_from_slice(&VERSION.to_be_bytes());
        let checksum = crc32c::crc32c(&header[..HEADER_BYTES - 4]);
        header[HEADER_BYTES - 4..].copy_from_slice(&checksum.to_be_bytes());
        // Whoever is killed before the first block leaves a trace all the same.
        to.write_all(&header).and_then(|()| to.flush()).map_err(write_error)?;
        Ok(TraceWriter { to, block: Vec::new(), records: 0, state: State::default() })
    }

    /// Appends a record. What it names must have come before; whether it has, is found out when the trace is read.
    ///
    /// # Errors
    /// If writing fails.
    pub fn push(&mut self, record: &Record) -> Result<()> {
        put_record(record, &mut self.state, &mut self.block);
        self.records += 1;
        if self.block.len() >= FULL_BLOCK { self.flush() } else { Ok(()) }
    }

    /// Writes what has been collected as a block of its own, so that it is there after a stop.
    ///
    /// # Errors
    /// If writing fails, or a single record is larger than a block may be.
    pub fn flush(&mut self) -> Result<()> {
        if self.block.is_empty() {
            return Ok(());
        }
        if self.block.len() > MOST_BLOCK_BYTES {
            return Err(Error::invalid(format!(
                "a trace's block would have {} bytes, more than {MOST_BLOCK_BYTES}: its footprint is too long",
                self.block.len()
            )));
        }
        let stored = zstd::bulk::compress(&self.block, LEVEL).map_err(write_error)?;
        let mut header = Vec::with_capacity(BLOCK_HEADER_BYTES);
        for number in [BLOCK_MAGIC, stored.len() as u32, self.block.len() as u32, self.records] {
            header.extend_from_slice(&number.to_be_bytes());
        }
        let checksum = crc32c::crc32c_append(crc32c::crc32c(&header), &stored);
        header.extend_from_slice(&checksum.to_be_bytes());
        self.to.write_all(&header).and_then(|()| self.to.write_all(&stored)).map_err(write_error)?;
        self.to.flush().map_err(write_error)?;
        self.block.clear();
        (self.records, self.state) = (0, State::default());
        Ok(())
    }

    /// Marks the end and gives back what it wrote to.
    ///
    /// # Errors
    /// If writing fails.
    pub fn finish(mut self) -> Result<W> {
        put_end(&mut self.block);
        self.records += 1;
        self.flush()?;
        Ok(self.to)
    }
}

impl Trace {
    /// Writes all of it.
    ///
    /// # Errors
    /// If writing fails.
    pub fn write<W: Write>(&self, to: W) -> Result<W> {
        let mut writer = TraceWriter::new(to)?;
        for record in self.records() {
            writer.push(&record)?;
        }
        writer.finish()
    }
}

/// Reads a trace.
#[derive(Debug)]
pub struct TraceReader<R: Read> {
    from: R,
    /// Bytes read so far.
    offset: u64,
    records: std::vec::IntoIter<Record>,
    end: Option<End>,
}

impl<R: Read> TraceReader<R> {
    /// Begins to read.
    ///
    /// # Errors
    /// `Corrupted` if it is no trace, or of a later version.
    pub fn new(from: R) -> Result<TraceReader<R>> {
        let mut reader = TraceReader { from, offset: 0, records: Vec::new().into_iter(), end: None };
        let header = reader.fill(HEADER_BYTES)?;
        let rest =
            header.strip_prefix(MAGIC).ok_or_else(|| Error::corrupted("this is no trace of Tanada's"))?;
        let (fields, checksum) = rest.split_at_checked(HEADER_BYTES - 12).unwrap_or((rest, &[]));
        let computed = crc32c::crc32c_append(crc32c::crc32c(MAGIC), fields);
        if checksum != computed.to_be_bytes() {
            return Err(Error::corrupted("the trace's header is cut off or damaged"));
        }
        let version = u16::from_be_bytes([fields[0], fields[1]]);
        if !(1..=VERSION).contains(&version) {
            return Err(Error::corrupted(format!(
                "the trace is of version {version}, this program reads versions 1 to {VERSION}"
            )));
        }
        Ok(reader)
    }

    /// Up to `len` bytes, fewer at the end.
    fn fill(&mut self, len: usize) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let read = (&mut self.from).take(len as u64).read_to_end(&mut bytes);
        read.map_err(|error| Error::io("reading the trace", error))?;
        self.offset += bytes.len() as u64;
        Ok(bytes)
    }

    /// The next record; `None` at the end, which [`end`](Self::end) then tells of.
    ///
    /// # Errors
    /// `Corrupted` if a block is damaged that others follow, with its offset.
    pub fn next_record(&mut self) -> Result<Option<Record>> {
        loop {
            if let Some(record) = self.records.next() {
                return Ok(Some(record));
            }
            if self.end.is_some() {
                return Ok(None);
            }
            self.next_block()?;
        }
    }

    /// How the trace ends, once its last record was read.
    pub fn end(&self) -> Option<End> {
        self.end
    }

    /// All that is left of it.
    ///
    /// # Errors
    /// `Corrupted` if a block is damaged that others follow, or a record names what did not come before.
    pub fn read(mut self) -> Result<(Trace, End)> {
        let mut trace = Trace::default();
        while let Some(record) = self.next_record()? {
            trace.push(record)?;
        }
        Ok((trace, self.end.unwrap_or(End::Stopped)))
    }

    fn next_block(&mut self) -> Result<()> {
        let start = self.offset;
        let wrong =
            |why: &str| Error::corrupted(format!("the trace is damaged in the block at byte {start}: {why}"));
        let header = self.fill(BLOCK_HEADER_BYTES)?;
        if header.is_empty() {
            self.end = Some(End::Stopped);
            return Ok(());
        }
        let mut fields = Reader::new(&header);
        let mut field = || fields.u32().unwrap_or(0);
        let [magic, stored_len, raw_len, records, checksum] = [field(), field(), field(), field(), field()];
        if header.len() < BLOCK_HEADER_BYTES || header.iter().all(|byte| *byte == 0) {
            return self.torn_if_nothing_but_zeros_follow(start, wrong("nothing where a block should be"));
        }
        let raw_len = raw_len as usize;
        if magic != BLOCK_MAGIC || raw_len > MOST_BLOCK_BYTES || stored_len as usize > 2 * MOST_BLOCK_BYTES {
            return self.torn_if_nothing_but_zeros_follow(start, wrong("its header is none"));
        }
        let stored = self.fill(stored_len as usize)?;
        let computed = crc32c::crc32c_append(crc32c::crc32c(&header[..BLOCK_HEADER_BYTES - 4]), &stored);
        if stored.len() < stored_len as usize || computed != checksum {
            return self.torn_if_nothing_but_zeros_follow(start, wrong("its checksum is wrong"));
        }
        let raw = zstd::bulk::decompress(&stored, raw_len).map_err(|error| wrong(&error.to_string()))?;
        let mut reader = Reader::new(&raw);
        let (mut state, mut decoded) = (State::default(), Vec::new());
        for _ in 0..records {
            match take_record(&mut reader, &mut state).map_err(|why| wrong(&why))? {
                Decoded::Record(record) => decoded.push(record),
                Decoded::End => self.end = Some(End::Finished),
            }
        }
        self.records = decoded.into_iter();
        if self.end.is_some() {
            let end = self.offset;
            let follows = format!("the trace has ended at byte {end}, and something follows");
            return self.nothing_but_zeros_follow(Error::corrupted(follows));
        }
        Ok(())
    }

    /// # Errors
    /// `otherwise`, or if reading fails.
    fn nothing_but_zeros_follow(&mut self, otherwise: Error) -> Result<()> {
        loop {
            let rest = self.fill(64 << 10)?;
            if rest.is_empty() {
                return Ok(());
            }
            if rest.iter().any(|byte| *byte != 0) {
                return Err(otherwise);
            }
        }
    }

    /// The block at `start` is not right: a torn tail if it is the last, else damage.
    fn torn_if_nothing_but_zeros_follow(&mut self, start: u64, damage: Error) -> Result<()> {
        self.nothing_but_zeros_follow(damage)?;
        self.end = Some(End::Torn { bytes: self.offset - start });
        Ok(())
    }
}
