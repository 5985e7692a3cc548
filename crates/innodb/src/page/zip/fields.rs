//! The description of an index's fields with which the stream of a compressed page begins, and the extents of records
//! by it.
//!
//! One entry a field, in a byte or, from 126 on, in two, the high one first, with the top bit set:
//!
//! | value | field |
//! |---|---|
//! | 0, 1 | of variable length, at most 255 bytes |
//! | 126, 127 in a byte | of variable length, more than 255 bytes possible |
//! | others | of a fixed length: the value without its lowest bit, halved |
//!
//! The lowest bit is set if the field is NOT NULL. Neighbours that are fixed and NOT NULL are one entry, but DB_TRX_ID
//! begins one, which DB_ROLL_PTR belongs to. A last number follows: on a leaf the entry of DB_TRX_ID (0 in a secondary
//! index), above the leaves how many fields of the index are nullable, which the NULL bitmap has bits for.

use super::{CHILD_BYTES, Fault, HEADER, REFERENCE_BYTES, SYSTEM_BYTES};

/// More fields than an index may have.
const MOST_FIELDS: usize = 1023 + 3;

/// How many bytes a field takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Length {
    Fixed(u16),
    /// One length byte.
    Short,
    /// One or two length bytes; the value may lie off the page.
    Long,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Field {
    length: Length,
    nullable: bool,
}

/// Which kind of page the records are of, and so what of them lies outside of the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PageKind {
    /// Child page numbers.
    Node,
    /// Nothing.
    SecondaryLeaf,
    /// DB_TRX_ID and DB_ROLL_PTR, which begin with this field, and references to off-page values.
    ClusteredLeaf(usize),
}

impl PageKind {
    /// Bytes of each record that lie outside of the stream at a place of their own.
    pub(super) fn stored_apart(self) -> usize {
        match self {
            PageKind::Node => CHILD_BYTES,
            PageKind::SecondaryLeaf => 0,
            PageKind::ClusteredLeaf(_) => SYSTEM_BYTES,
        }
    }
}

/// The fields of a page's records.
#[derive(Debug)]
pub(super) struct Fields {
    fields: Vec<Field>,
    pub(super) kind: PageKind,
    null_bytes: usize,
}

/// Where the parts of a record lie.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Extents {
    /// Bytes before the record's header: NULL bitmap and lengths.
    pub(super) extra: usize,
    /// Bytes from the origin on, all told.
    pub(super) data: usize,
    /// Ranges of the data that are not in the stream, ascending: offset and length.
    pub(super) holes: Vec<(usize, usize)>,
    /// The hole of DB_TRX_ID or of the child page number, whose place is the record's.
    pub(super) apart: usize,
}

impl Extents {
    /// Bytes of the data that are in the stream.
    pub(super) fn streamed(&self) -> usize {
        self.data - self.holes.iter().map(|(_, len)| len).sum::<usize>()
    }

    /// The parts of the data that are in the stream, as offset and length.
    pub(super) fn pieces(&self) -> impl Iterator<Item = (usize, usize)> {
        let starts = std::iter::once(0).chain(self.holes.iter().map(|(at, len)| at + len));
        let ends = self.holes.iter().map(|(at, _)| *at).chain(std::iter::once(self.data));
        starts.zip(ends).map(|(start, end)| (start, end - start)).filter(|(_, len)| *len > 0)
    }
}

impl Fields {
    /// Reads the description.
    pub(super) fn parse(bytes: &[u8], is_leaf: bool) -> Result<Fields, Fault> {
        let mut numbers = Numbers { bytes };
        let mut fields = Vec::new();
        let mut last = numbers.next().ok_or("its fields are not described")?;
        while let Some(number) = numbers.next() {
            if fields.len() == MOST_FIELDS {
                return Err("it has too many fields");
            }
            fields.push(field(last));
            last = number;
        }
        if !numbers.bytes.is_empty() || fields.is_empty() {
            return Err("its fields are not described");
        }
        let last = usize::from(last.value);
        let nullable = fields.iter().filter(|field| field.nullable).count();
        let (kind, null_bits) = match last {
            bits if !is_leaf => (PageKind::Node, bits),
            0 => (PageKind::SecondaryLeaf, nullable),
            entry => (PageKind::ClusteredLeaf(entry), nullable),
        };
        if null_bits < nullable {
            return Err("it has more nullable fields than its index");
        }
        if let PageKind::ClusteredLeaf(entry) = kind {
            let holds = |field: &Field| {
                !field.nullable
                    && matches!(field.length, Length::Fixed(len) if usize::from(len) >= SYSTEM_BYTES)
            };
            if !fields.get(entry).is_some_and(holds) {
                return Err("no field holds its DB_TRX_ID");
            }
        }
        Ok(Fields { fields, kind, null_bytes: null_bits.div_ceil(8) })
    }

    /// Measures a record into `extents`; `head` gives the byte so many before its header, the nearest being 0.
    pub(super) fn measure(
        &self,
        head: impl Fn(usize) -> Option<u8>,
        extents: &mut Extents,
    ) -> Result<(), Fault> {
        let outside = || "a record's lengths lie outside of it";
        let (mut lengths, mut null_bit, mut data) = (self.null_bytes, 0, 0usize);
        extents.holes.clear();
        for (no, field) in self.fields.iter().enumerate() {
            if field.nullable {
                let bits = head(null_bit / 8).ok_or_else(outside)?;
                let is_null = bits >> (null_bit % 8) & 1 == 1;
                null_bit += 1;
                if is_null {
                    continue;
                }
            }
            let start = data;
            match field.length {
                Length::Fixed(len) => data += usize::from(len),
                Length::Short => {
                    data += usize::from(head(lengths).ok_or_else(outside)?);
                    lengths += 1;
                }
                Length::Long => {
                    let first = head(lengths).ok_or_else(outside)?;
                    lengths += 1;
                    if first & 0x80 == 0 {
                        data += usize::from(first);
                    } else {
                        let second = head(lengths).ok_or_else(outside)?;
                        lengths += 1;
                        data += usize::from(first & 0x3f) << 8 | usize::from(second);
                        if first & 0x40 != 0 {
                            self.take_reference(start, data, extents)?;
                        }
                    }
                }
            }
            if self.kind == PageKind::ClusteredLeaf(no) {
                extents.apart = extents.holes.len();
                extents.holes.push((start, SYSTEM_BYTES));
            }
        }
        if self.kind == PageKind::Node {
            extents.apart = 0;
            extents.holes.push((data, CHILD_BYTES));
            data += CHILD_BYTES;
        }
        (extents.extra, extents.data) = (lengths.max(self.null_bytes), data);
        Ok(())
    }

    fn take_reference(&self, start: usize, end: usize, extents: &mut Extents) -> Result<(), Fault> {
        if !matches!(self.kind, PageKind::ClusteredLeaf(_)) {
            return Err("a value lies off the page where none may");
        }
        if end - start < REFERENCE_BYTES {
            return Err("an off-page value has no reference");
        }
        extents.holes.push((end - REFERENCE_BYTES, REFERENCE_BYTES));
        Ok(())
    }

    /// Measures the record at `origin` of `page`.
    pub(super) fn measure_at(&self, page: &[u8], origin: usize, extents: &mut Extents) -> Result<(), Fault> {
        let before = page.get(..origin.saturating_sub(HEADER)).unwrap_or_default();
        self.measure(|at| before.len().checked_sub(at + 1).map(|at| before[at]), extents)
    }
}

/// A number of the description.
struct Number {
    value: u16,
    /// Whether it took two bytes.
    is_long: bool,
}

struct Numbers<'a> {
    bytes: &'a [u8],
}

impl Numbers<'_> {
    /// The next number; `None` at the end, and if only half of one is left.
    fn next(&mut self) -> Option<Number> {
        let (first, rest) = self.bytes.split_first()?;
        if first & 0x80 == 0 {
            self.bytes = rest;
            return Some(Number { value: u16::from(*first), is_long: false });
        }
        let (second, rest) = rest.split_first()?;
        self.bytes = rest;
        Some(Number { value: u16::from_be_bytes([first & 0x7f, *second]), is_long: true })
    }
}

fn field(number: Number) -> Field {
    let length = match number {
        Number { value: 0 | 1, is_long: false } => Length::Short,
        Number { value: 126 | 127, is_long: false } => Length::Long,
        Number { value, .. } => Length::Fixed(value >> 1),
    };
    Field { length, nullable: number.value & 1 == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What MariaDB 10.11, 11.8 and MySQL 9.7 wrote for `id INT PRIMARY KEY, v VARCHAR(5) NOT NULL, b BINARY(n) NOT
    /// NULL`: the key, DB_TRX_ID and DB_ROLL_PTR, v, b, and the entry of DB_TRX_ID.
    #[test]
    fn fixed_fields_have_the_lengths_that_the_servers_describe() {
        for (described, len) in [
            (&[0x7d][..], 62),
            (&[0x80, 0x7f], 63),
            (&[0x80, 0x81], 64),
            (&[0x80, 0xff], 127),
            (&[0x81, 0x01], 128),
            (&[0x81, 0xff], 255),
            (&[0x85, 0x8d], 710),
        ] {
            let description = [&[0x09, 0x1b, 0x01], described, &[0x01]].concat();
            let fields = Fields::parse(&description, true).unwrap();
            let mut extents = Extents::default();
            fields.measure(|at| (at == 0).then_some(3), &mut extents).unwrap();
            assert_eq!((extents.extra, extents.data), (1, 4 + 13 + 3 + len), "{described:x?}");
            assert_eq!(extents.holes, [(4, 13)], "{described:x?}");
        }
    }
}
