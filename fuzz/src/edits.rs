//! Reading an input: it is a row of small numbers, and never too short.

use crate::seal::Framing;

/// Edits of a page at most; more are not read.
const MAX_EDITS: usize = 24;

/// An input that is read from its beginning; behind its end are zeros.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a>(pub &'a [u8]);

impl<'a> Input<'a> {
    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().map_or((0, self.0), |(first, rest)| (*first, rest));
        self.0 = rest;
        first
    }

    /// The next two bytes.
    pub fn word(&mut self) -> usize {
        usize::from(self.byte()) << 8 | usize::from(self.byte())
    }

    /// Up to `count` bytes.
    pub fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (bytes, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        bytes
    }

    /// The element that the next byte names.
    pub fn choose<'b, T>(&mut self, among: &'b [T]) -> &'b T {
        &among[usize::from(self.byte()) % among.len()]
    }

    /// Whether all has been read.
    pub fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    /// Edits bytes of `file`, most of them in page headers, record headers and directories, and seals the pages that
    /// were edited.
    ///
    /// An edit: the page, the area with the number of bytes, the place in the area, and the bytes. Pages from `first`
    /// on are edited.
    pub fn edit_pages(&mut self, file: &mut [u8], framing: Framing, first: usize) {
        let pages = file.len() / framing.page_bytes;
        if pages <= first {
            return;
        }
        let mut edited = Vec::new();
        for _ in 0..MAX_EDITS {
            if self.is_over() {
                break;
            }
            let no = first + usize::from(self.byte()) % (pages - first);
            let page = &mut file[no * framing.page_bytes..][..framing.page_bytes];
            let how = self.byte();
            let place = self.word();
            let (from, area) = match how % 4 {
                0 => (0, 130),
                1 => (page.len() - 200, 200),
                2 => (94, 800),
                _ => (0, page.len()),
            };
            let at = (from + place % area).min(page.len());
            let count = usize::from(how >> 2 & 7) + 1;
            let bytes = self.bytes(count);
            for (byte, new) in page[at..].iter_mut().zip(bytes) {
                *byte = *new;
            }
            // A link is followed only if the page it leads to says that it is itself.
            if how & 0x80 != 0 && no > 0 {
                page[4..8].copy_from_slice(&(no as u32).to_be_bytes());
            }
            edited.push(no);
        }
        for no in edited {
            framing.seal.put(&mut file[no * framing.page_bytes..][..framing.page_bytes]);
        }
    }

    /// Edits bytes of something without pages: overwrites, inserts, deletes and cuts.
    pub fn edit_bytes(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..MAX_EDITS {
            if self.is_over() {
                break;
            }
            let how = self.byte();
            let at = self.word() % (bytes.len() + 1);
            let count = usize::from(how >> 3) + 1;
            match how % 8 {
                0..=3 => {
                    let new = self.bytes(count.min(8));
                    bytes[at..].iter_mut().zip(new).for_each(|(byte, new)| *byte = *new);
                }
                4 => {
                    let new = self.bytes(count);
                    bytes.splice(at..at, new.iter().copied());
                }
                5 => drop(bytes.drain(at..(at + count).min(bytes.len()))),
                6 => {
                    let end = (at + count * 4).min(bytes.len());
                    let copy = bytes[at..end].to_vec();
                    bytes.splice(at..at, copy);
                }
                _ => bytes.truncate(at.max(bytes.len() / 2)),
            }
        }
    }
}
