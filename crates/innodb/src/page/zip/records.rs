//! The heap of a compressed page: records in the order of their addresses, cut from what the stream gave.
//!
//! The stream has the heap from its start: bytes between records and before their headers, then the data without what
//! is stored elsewhere. Bytes behind the last record may follow. Records that were added since the page was last
//! compressed are in the log only. Which are, is told by where the stream ends: a record whose data it does not reach
//! was not there yet.

use super::directory::Directory;
use super::fields::{Extents, Fields, PageKind};
use super::{Fault, HEADER, RECORDS, REFERENCE_BYTES};

/// A page whose records are being filled in.
pub(super) struct Heap<'a> {
    pub(super) fields: &'a Fields,
    pub(super) directory: &'a Directory,
    pub(super) page: &'a mut [u8],
    /// How many records are there, in the order of the heap.
    pub(super) known: usize,
    pub(super) extents: Extents,
}

impl<'a> Heap<'a> {
    /// Places what the stream gave.
    pub(super) fn place(
        fields: &'a Fields,
        directory: &'a Directory,
        page: &'a mut [u8],
        stream: &[u8],
    ) -> Result<Heap<'a>, Fault> {
        let mut heap = Heap { fields, directory, page, known: 0, extents: Extents::default() };
        let mut rest = Rest { bytes: stream, at: RECORDS };
        for no in 0..directory.origins.len() {
            if !heap.place_record(no, &mut rest)? {
                break;
            }
            heap.known += 1;
        }
        // Records that are not in the stream lie behind all that is.
        let end = directory
            .origins
            .get(heap.known)
            .map_or(directory.heap_top, |(origin, _)| usize::from(*origin) - HEADER);
        let left = rest.bytes.len();
        if rest.at + left > end {
            return Err("its stream has more than its heap");
        }
        rest.copy(heap.page, left)?;
        Ok(heap)
    }

    /// Places record `no` of the heap, if the stream has it.
    fn place_record(&mut self, no: usize, rest: &mut Rest<'_>) -> Result<bool, Fault> {
        let origin = usize::from(self.directory.origins[no].0);
        let between = (origin - HEADER).checked_sub(rest.at).ok_or("its records overlap")?;
        if rest.bytes.len() < between || rest.bytes.is_empty() {
            return Ok(false);
        }
        rest.copy(self.page, between)?;
        let is_last = rest.bytes.is_empty();
        if self.fields.kind == PageKind::SecondaryLeaf && !is_last {
            rest.at = origin;
            return Ok(true);
        }
        let measured = self.fields.measure_at(self.page, origin, &mut self.extents);
        if is_last && (measured.is_err() || self.extents.extra > between || self.extents.streamed() > 0) {
            return Ok(false);
        }
        measured?;
        if self.extents.extra > between {
            return Err("its records overlap");
        }
        if origin + self.extents.data > self.directory.heap_top {
            return Err("a record ends outside of its heap");
        }
        rest.at = origin;
        if self.fields.kind == PageKind::SecondaryLeaf {
            return Ok(true);
        }
        for (at, len) in self.extents.pieces() {
            rest.at = origin + at;
            rest.copy(self.page, len)?;
        }
        rest.at = origin + self.extents.data;
        Ok(true)
    }

    /// Where the record `no` may reach: to the space before the next one's header.
    pub(super) fn end_of(&self, no: usize) -> usize {
        self.directory
            .origins
            .get(no + 1)
            .map_or(self.directory.heap_top, |(origin, _)| usize::from(*origin) - HEADER)
    }

    /// Fills in what lies behind the log: child page numbers, or DB_TRX_ID and DB_ROLL_PTR, which begin at `apart`, and
    /// references to off-page values before them, which must not reach the log's end.
    pub(super) fn restore(&mut self, image: &[u8], apart: usize, log_end: usize) -> Result<(), Fault> {
        let each = self.fields.kind.stored_apart();
        if each == 0 {
            return Ok(());
        }
        let mut references = apart;
        let mut place = self.directory.starts_at;
        for no in 0..self.directory.origins.len() {
            let (origin, is_used) = self.directory.origins[no];
            let origin = usize::from(origin);
            self.fields.measure_at(self.page, origin, &mut self.extents)?;
            place -= each;
            for (hole, (at, len)) in self.extents.holes.iter().enumerate() {
                let hole_bytes = self.page.get_mut(origin + at..origin + at + len);
                let hole_bytes = hole_bytes.ok_or("a record ends outside of its page")?;
                if hole == self.extents.apart {
                    hole_bytes.copy_from_slice(&image[place..place + each]);
                } else if is_used {
                    let below = references.checked_sub(REFERENCE_BYTES).filter(|at| *at >= log_end);
                    references = below.ok_or("its references to off-page values reach its log")?;
                    hole_bytes.copy_from_slice(&image[references..references + REFERENCE_BYTES]);
                }
            }
        }
        Ok(())
    }
}

/// What is left of the stream, and where it goes.
struct Rest<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Rest<'_> {
    fn copy(&mut self, page: &mut [u8], len: usize) -> Result<(), Fault> {
        let (bytes, rest) = self.bytes.split_at_checked(len).ok_or("its stream ends within a record")?;
        let to = page.get_mut(self.at..self.at + len).ok_or("a record ends outside of its page")?;
        to.copy_from_slice(bytes);
        (self.bytes, self.at) = (rest, self.at + len);
        Ok(())
    }
}
