//! Where on its devices a class's bytes lie.
//!
//! The physical chunks of a class lie one after the other in its address space; the address space goes over the devices
//! in turn, a segment at a time (RAID-0). Each device has its label before that.

use crate::settings::{BLOCK_BYTES, ClassSettings};

/// The geometry of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Striping {
    segment_shift: u32,
    devices: u64,
    /// Where the address space begins on each device.
    data_offset: u64,
}

/// A run of bytes on one device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) device: usize,
    pub(crate) offset: u64,
    pub(crate) len: u64,
}

impl Striping {
    pub(crate) fn new(settings: &ClassSettings, devices: usize) -> Striping {
        Striping {
            segment_shift: settings.segment_bytes.trailing_zeros(),
            devices: devices as u64,
            data_offset: settings.segment_bytes.max(BLOCK_BYTES),
        }
    }

    /// The first part of `len` bytes at `address` that lies in one piece.
    pub(crate) fn first_extent(&self, address: u64, len: u64) -> Extent {
        if self.devices == 1 {
            return Extent { device: 0, offset: self.data_offset + address, len };
        }
        let segment = address >> self.segment_shift;
        let within = address & ((1 << self.segment_shift) - 1);
        Extent {
            device: (segment % self.devices) as usize,
            offset: self.data_offset + ((segment / self.devices) << self.segment_shift) + within,
            len: len.min((1 << self.segment_shift) - within),
        }
    }

    /// All parts of `len` bytes at `address`, in order.
    pub(crate) fn extents(&self, address: u64, len: u64) -> impl Iterator<Item = Extent> {
        let (mut at, end) = (address, address + len);
        std::iter::from_fn(move || {
            (at < end).then(|| {
                let extent = self.first_extent(at, end - at);
                at += extent.len;
                extent
            })
        })
    }

    /// Bytes that each device needs for `len` bytes of address space.
    pub(crate) fn device_bytes(&self, len: u64) -> u64 {
        if self.devices == 1 {
            return self.data_offset + len;
        }
        let segments = len.div_ceil(1 << self.segment_shift);
        self.data_offset + (segments.div_ceil(self.devices) << self.segment_shift)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_block_has_its_own_place_within_the_devices() {
        for (devices, segment_bytes) in [(1, 8192), (2, 4096), (3, 16384)] {
            let settings = ClassSettings { segment_bytes, ..ClassSettings::default() };
            let striping = Striping::new(&settings, devices);
            let len = 50 * 4096;
            let mut seen = HashSet::new();
            for block in 0..50 {
                let extent = striping.first_extent(block * 4096, 4096);
                assert_eq!(extent.len, 4096);
                assert!(extent.device < devices && extent.offset >= segment_bytes);
                assert!(extent.offset + 4096 <= striping.device_bytes(len));
                assert!(seen.insert((extent.device, extent.offset)));
            }
            let pieces: Vec<Extent> = striping.extents(4096, len - 4096).collect();
            assert_eq!(pieces.iter().map(|piece| piece.len).sum::<u64>(), len - 4096);
            assert_eq!(pieces.len() == 1, devices == 1);
        }
    }
}
