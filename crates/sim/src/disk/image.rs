//! A disk's contents: sparse pages, shared between copies until one of them is written.
//!
//! Campaigns copy whole disks for every power cut, so a copy costs one reference, and a page that was never written
//! costs nothing and reads as zeros.

use std::collections::BTreeMap;
use std::sync::Arc;

const PAGE_BYTES: usize = 4096;

type Page = [u8; PAGE_BYTES];

/// Bytes of a disk, and its size. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct DiskImage {
    pages: Arc<BTreeMap<u64, Arc<Page>>>,
    size_bytes: u64,
}

impl DiskImage {
    /// An image of these bytes.
    pub fn from_bytes(bytes: &[u8]) -> DiskImage {
        let mut image = DiskImage::default();
        image.write(0, bytes);
        image
    }

    /// Size of the file or device.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Cuts the image, or lets it grow by a hole.
    pub fn set_size(&mut self, size_bytes: u64) {
        if size_bytes < self.size_bytes {
            self.zero(size_bytes, self.size_bytes - size_bytes);
        }
        self.size_bytes = size_bytes;
    }

    /// Fills `bytes` from `offset`; what lies past the end reads as zeros.
    pub fn read(&self, offset: u64, bytes: &mut [u8]) {
        for (at, from, run) in runs(offset, bytes.len()) {
            let target = &mut bytes[at..at + run];
            match self.pages.get(&((offset + at as u64) / PAGE_BYTES as u64)) {
                Some(page) => target.copy_from_slice(&page[from..from + run]),
                None => target.fill(0),
            }
        }
    }

    /// All bytes from the first to the last.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.size_bytes as usize];
        self.read(0, &mut bytes);
        bytes
    }

    /// Writes `bytes` at `offset`; the image grows if it must.
    pub fn write(&mut self, offset: u64, bytes: &[u8]) {
        let pages = Arc::make_mut(&mut self.pages);
        for (at, from, run) in runs(offset, bytes.len()) {
            let source = &bytes[at..at + run];
            let no = (offset + at as u64) / PAGE_BYTES as u64;
            if let Ok(whole) = <&Page>::try_from(source) {
                pages.insert(no, Arc::new(*whole));
            } else {
                let page = pages.entry(no).or_insert_with(|| Arc::new([0; PAGE_BYTES]));
                Arc::make_mut(page)[from..from + run].copy_from_slice(source);
            }
        }
        self.size_bytes = self.size_bytes.max(offset + bytes.len() as u64);
    }

    /// Frees the bytes: they read as zeros. The size stays.
    pub fn zero(&mut self, offset: u64, len: u64) {
        let end = offset.saturating_add(len).min(self.size_bytes.max(offset));
        let pages = Arc::make_mut(&mut self.pages);
        let (first, last) = (offset / PAGE_BYTES as u64, end.div_ceil(PAGE_BYTES as u64));
        let touched: Vec<u64> = pages.range(first..last.max(first)).map(|(no, _)| *no).collect();
        for no in touched {
            let start = no * PAGE_BYTES as u64;
            let (from, to) = (offset.max(start) - start, end.min(start + PAGE_BYTES as u64) - start);
            if to - from == PAGE_BYTES as u64 {
                pages.remove(&no);
            } else if let Some(page) = pages.get_mut(&no) {
                Arc::make_mut(page)[from as usize..to as usize].fill(0);
            }
        }
    }

    /// Flips one bit: rot.
    pub fn flip(&mut self, offset: u64, bit: u32) {
        let mut byte = [0];
        self.read(offset, &mut byte);
        byte[0] ^= 1 << (bit % 8);
        let size_bytes = self.size_bytes;
        self.write(offset, &byte);
        self.size_bytes = size_bytes;
    }

    /// Bytes of memory in pages; pages shared with other copies count here too.
    pub fn allocated_bytes(&self) -> u64 {
        (self.pages.len() * PAGE_BYTES) as u64
    }
}

impl PartialEq for DiskImage {
    fn eq(&self, other: &DiskImage) -> bool {
        let zeros = Arc::new([0; PAGE_BYTES]);
        let same = |no: &u64, page: &Arc<Page>, other: &DiskImage| {
            other.pages.get(no).unwrap_or(&zeros)[..] == page[..]
        };
        self.size_bytes == other.size_bytes
            && self.pages.iter().all(|(no, page)| same(no, page, other))
            && other.pages.iter().all(|(no, page)| self.pages.contains_key(no) || same(no, page, self))
    }
}

/// A range of bytes page by page: where in the range, where in its page, how many.
fn runs(offset: u64, len: usize) -> impl Iterator<Item = (usize, usize, usize)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let from = ((offset + at as u64) % PAGE_BYTES as u64) as usize;
        let run = (PAGE_BYTES - from).min(len - at);
        let item = (at, from, run);
        at += run;
        (run > 0).then_some(item)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tanada_base::SplitMix64;

    #[test]
    fn a_disk_image_equals_a_byte_vector() {
        let mut random = SplitMix64::new(3);
        let (mut image, mut model) = (DiskImage::default(), Vec::new());
        for step in 0..600 {
            let (offset, len) = (random.below(40_000), random.below(9000));
            let end = (offset + len) as usize;
            match random.below(4) {
                0 => {
                    image.zero(offset, len);
                    let end = end.min(model.len());
                    model[end.min(offset as usize)..end].fill(0);
                }
                1 if step % 20 == 0 => {
                    image.set_size(offset);
                    model.resize(offset as usize, 0);
                }
                _ => {
                    let mut bytes = vec![0; len as usize];
                    random.fill(&mut bytes);
                    image.write(offset, &bytes);
                    model.resize(model.len().max(end), 0);
                    model[offset as usize..end].copy_from_slice(&bytes);
                }
            }
            assert_eq!(image.to_bytes(), model);
        }
        assert_eq!(image, DiskImage::from_bytes(&model));
    }

    #[test]
    fn copies_share_pages_until_written() {
        let mut image = DiskImage::from_bytes(&[5; 3 * PAGE_BYTES]);
        let copy = image.clone();
        image.write(PAGE_BYTES as u64, &[6]);
        assert!(Arc::ptr_eq(&image.pages[&0], &copy.pages[&0]));
        assert_eq!(copy.to_bytes(), [5; 3 * PAGE_BYTES]);
        assert_ne!(image, copy);
        image.zero(0, 1 << 40);
        assert_eq!((image.allocated_bytes(), image.size_bytes()), (0, 3 * PAGE_BYTES as u64));
        image.flip(1 << 13, 3);
        assert_eq!(image.to_bytes()[1 << 13], 8);
    }
}
