//! The modification log of a compressed page: records that were written since the page was last compressed. An entry
//! has the record's number in the heap, from 1 on, in one byte or, with the top bit set, in two, above a bit that tells
//! that the data are cleared instead. Then come the NULL bitmap and the lengths, the nearest to the header first, and
//! the data without what is stored elsewhere. A zero byte ends the log.

use super::records::Heap;
use super::{Fault, HEADER, RECORDS};

impl Heap<'_> {
    /// Applies the log of `image` between `start` and `limit`; returns where it ends.
    pub(super) fn apply_log(&mut self, image: &[u8], start: usize, limit: usize) -> Result<usize, Fault> {
        let mut log = Log { bytes: image.get(..limit).unwrap_or_default(), at: start };
        loop {
            let mut number = usize::from(log.byte()?);
            if number == 0 {
                break;
            }
            if number & 0x80 != 0 {
                number = (number & 0x7f) << 8 | usize::from(log.byte()?);
            }
            let no = (number >> 1).checked_sub(1).filter(|no| *no < self.directory.origins.len());
            let no = no.ok_or("its log names an impossible record")?;
            let is_cleared = number & 1 == 1;
            // A record that is new comes next in the heap.
            if no > self.known || no == self.known && is_cleared {
                return Err("its log names a record before it writes it");
            }
            self.known = self.known.max(no + 1);
            match is_cleared {
                true => self.clear(no)?,
                false => self.write(no, &mut log)?,
            }
        }
        if self.known < self.directory.origins.len() {
            return Err("a record is neither in its stream nor in its log");
        }
        Ok(log.at)
    }

    fn clear(&mut self, no: usize) -> Result<(), Fault> {
        let origin = usize::from(self.directory.origins[no].0);
        self.fields.measure_at(self.page, origin, &mut self.extents)?;
        let data = self.page.get_mut(origin..origin + self.extents.data);
        data.ok_or("a record ends outside of its page")?.fill(0);
        Ok(())
    }

    fn write(&mut self, no: usize, log: &mut Log<'_>) -> Result<(), Fault> {
        let origin = usize::from(self.directory.origins[no].0);
        let head = log.bytes.get(log.at..).unwrap_or_default();
        self.fields.measure(|at| head.get(at).copied(), &mut self.extents)?;
        let first = no.checked_sub(1).map_or(RECORDS, |before| usize::from(self.directory.origins[before].0));
        let extra = self.extents.extra;
        if extra + HEADER + first > origin || origin + self.extents.data > self.end_of(no) {
            return Err("its log writes a record over others");
        }
        let extra_bytes = log.take(extra)?;
        let to = &mut self.page[origin - HEADER - extra..origin - HEADER];
        to.iter_mut().rev().zip(extra_bytes).for_each(|(to, byte)| *to = *byte);
        for (at, len) in self.extents.pieces() {
            self.page[origin + at..origin + at + len].copy_from_slice(log.take(len)?);
        }
        Ok(())
    }
}

struct Log<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Log<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], Fault> {
        let bytes = self.bytes.get(self.at..self.at + len).ok_or("its log does not end")?;
        self.at += len;
        Ok(bytes)
    }

    fn byte(&mut self) -> Result<u8, Fault> {
        self.take(1).map(|bytes| bytes[0])
    }
}
