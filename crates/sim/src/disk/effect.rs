//! What a write or a punch does to an image, whole or sector by sector.

use std::sync::Arc;

use tanada_base::SplitMix64;

use super::image::DiskImage;

/// The smallest unit that a power cut keeps or loses.
pub(crate) const SECTOR_BYTES: u64 = 512;

#[derive(Debug, Clone)]
enum Change {
    Write(Arc<[u8]>),
    Punch(u64),
}

/// A change that is not durable yet. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Effect {
    offset: u64,
    change: Change,
}

impl Effect {
    pub(super) fn write(offset: u64, bytes: &[u8]) -> Effect {
        Effect { offset, change: Change::Write(bytes.into()) }
    }

    pub(super) fn punch(offset: u64, len: u64) -> Effect {
        Effect { offset, change: Change::Punch(len) }
    }

    pub(super) fn is_punch(&self) -> bool {
        matches!(self.change, Change::Punch(_))
    }

    fn len(&self) -> u64 {
        match &self.change {
            Change::Write(bytes) => bytes.len() as u64,
            Change::Punch(len) => *len,
        }
    }

    /// The size that a file has at least once this took place; a punch changes none.
    pub(super) fn end(&self) -> u64 {
        match self.change {
            Change::Write(_) => self.offset + self.len(),
            Change::Punch(_) => 0,
        }
    }

    pub(super) fn apply(&self, image: &mut DiskImage) {
        self.apply_part(image, 0, self.len());
    }

    /// Applies bytes `from` to `to` of it.
    fn apply_part(&self, image: &mut DiskImage, from: u64, to: u64) {
        match &self.change {
            Change::Write(bytes) => image.write(self.offset + from, &bytes[from as usize..to as usize]),
            Change::Punch(_) => image.zero(self.offset + from, to - from),
        }
    }

    /// Applies some of it; see [`torn`](Self::torn).
    pub(super) fn apply_torn(&self, image: &mut DiskImage, random: &mut SplitMix64) {
        for (from, to) in self.torn_ranges(random) {
            self.apply_part(image, from, to);
        }
    }

    /// Some of it: a prefix, a suffix, or any subset of its units, which are sectors or pages. May be all or nothing.
    pub(super) fn torn(&self, random: &mut SplitMix64) -> Vec<Effect> {
        let part = |(from, to): (u64, u64)| match &self.change {
            Change::Write(bytes) => Effect::write(self.offset + from, &bytes[from as usize..to as usize]),
            Change::Punch(_) => Effect::punch(self.offset + from, to - from),
        };
        self.torn_ranges(random).into_iter().map(part).collect()
    }

    fn torn_ranges(&self, random: &mut SplitMix64) -> Vec<(u64, u64)> {
        let unit = if random.below(2) == 0 { SECTOR_BYTES } else { 8 * SECTOR_BYTES };
        let mut units = units(self.offset, self.len(), unit);
        let cut = random.below(units.len() as u64 + 1) as usize;
        match random.below(4) {
            0 => units.truncate(cut),
            1 => drop(units.drain(..cut)),
            _ => units.retain(|_| random.below(2) == 0),
        }
        units
    }
}

/// The parts of a range that lie in one unit each, as offsets in the range.
fn units(offset: u64, len: u64, unit: u64) -> Vec<(u64, u64)> {
    let mut parts = Vec::new();
    let mut from = 0;
    while from < len {
        let to = ((offset + from) / unit * unit + unit - offset).min(len);
        parts.push((from, to));
        from = to;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn write_units_are_aligned_to_sectors() {
        assert_eq!(units(512, 1024, 512), [(0, 512), (512, 1024)]);
        assert_eq!(units(100, 1000, 512), [(0, 412), (412, 924), (924, 1000)]);
        assert_eq!(units(0, 512, 4096), [(0, 512)]);
        assert_eq!(units(5, 0, 512), []);
    }

    #[test]
    fn a_torn_write_keeps_whole_sectors_and_in_time_every_subset() {
        let old = DiskImage::from_bytes(&[1; 2048]);
        let effect = Effect::write(512, &[2; 1024]);
        let mut seen = [false; 4];
        let mut random = SplitMix64::new(9);
        for _ in 0..200 {
            let mut image = old.clone();
            effect.apply_torn(&mut image, &mut random);
            let bytes = image.to_bytes();
            let sectors: Vec<u8> = bytes.chunks(512).map(|sector| sector[0]).collect();
            assert!(bytes.chunks(512).all(|sector| sector.iter().all(|byte| *byte == sector[0])));
            assert_eq!((sectors[0], sectors[3]), (1, 1));
            seen[usize::from(sectors[1] - 1) + 2 * usize::from(sectors[2] - 1)] = true;
        }
        assert_eq!(seen, [true; 4]);
    }
}
