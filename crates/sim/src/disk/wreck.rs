//! What a power cut leaves: the durable bytes, and the changes that may or may not have reached them.
//!
//! One [`Wreck`] is the root of many outcomes: [`Wreck::survivors`] draws one of them. Each pending change is kept,
//! lost or torn on its own, so older changes may be lost while newer ones survive. A file that grew may have its old
//! size, its new one, or one between.

use tanada_base::SplitMix64;

use super::effect::Effect;
use super::image::DiskImage;

/// How a power cut treats what was not durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tearing {
    /// Nothing of it survives: what a volatile cache leaves.
    LoseAll,
    /// All of it survives: what the kill of a process leaves.
    KeepAll,
    /// All but one change.
    LoseOne,
    /// One change only.
    KeepOne,
    /// Each is kept, lost or torn.
    Any,
}

impl Tearing {
    /// One of them; [`Any`](Tearing::Any) most often.
    pub fn draw(random: &mut SplitMix64) -> Tearing {
        match random.below(8) {
            0 => Tearing::LoseAll,
            1 => Tearing::KeepAll,
            2 => Tearing::LoseOne,
            3 => Tearing::KeepOne,
            _ => Tearing::Any,
        }
    }
}

/// One disk at a power cut.
#[derive(Debug, Clone)]
pub struct WreckedDisk {
    pub(super) name: String,
    pub(super) durable: DiskImage,
    pub(super) pending: Vec<Effect>,
}

impl WreckedDisk {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Changes that were not durable, those in flight included.
    pub fn pending_changes(&self) -> usize {
        self.pending.len()
    }

    /// What is certainly there.
    pub fn durable(&self) -> &DiskImage {
        &self.durable
    }

    /// One image that may be found after the cut.
    pub fn survivor(&self, random: &mut SplitMix64, tearing: Tearing) -> DiskImage {
        let mut image = self.durable.clone();
        let chosen = random.below(self.pending.len() as u64) as usize;
        for (no, effect) in self.pending.iter().enumerate() {
            match tearing {
                Tearing::LoseAll => {}
                Tearing::KeepAll => effect.apply(&mut image),
                Tearing::LoseOne if no == chosen => {}
                Tearing::LoseOne => effect.apply(&mut image),
                Tearing::KeepOne if no == chosen => effect.apply(&mut image),
                Tearing::KeepOne => {}
                Tearing::Any => match random.below(3) {
                    0 => {}
                    1 => effect.apply(&mut image),
                    _ => effect.apply_torn(&mut image, random),
                },
            }
        }
        if tearing == Tearing::Any {
            self.change_size(&mut image, random);
        }
        image
    }

    /// Lets the size lag behind the data that reached the disk, or run ahead of it.
    fn change_size(&self, image: &mut DiskImage, random: &mut SplitMix64) {
        let (old, now) = (self.durable.size_bytes(), image.size_bytes());
        let latest = self.pending.iter().map(Effect::end).fold(now, u64::max);
        match random.below(8) {
            0 => image.set_size(old),
            1 => image.set_size(old + random.below((latest - old) / 512 + 1) * 512),
            2 => image.set_size(latest),
            _ => {}
        }
    }
}

/// All disks at a power cut, in the order of their making. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Wreck {
    pub(crate) disks: Vec<WreckedDisk>,
}

impl Wreck {
    /// The disks.
    pub fn disks(&self) -> &[WreckedDisk] {
        &self.disks
    }

    /// Changes that were not durable, on all disks.
    pub fn pending_changes(&self) -> usize {
        self.disks.iter().map(WreckedDisk::pending_changes).sum()
    }

    /// One outcome of the cut, disk by disk. Half of the time all disks are treated alike, else each as it comes: a
    /// disk that keeps all beside one that loses all is what shows that an order between them was assumed.
    pub fn survivors(&self, random: &mut SplitMix64) -> Vec<(String, DiskImage)> {
        let alike = (random.below(2) == 0).then(|| Tearing::draw(random));
        let survive = |disk: &WreckedDisk| {
            let tearing = alike.unwrap_or_else(|| Tearing::draw(random));
            (disk.name.clone(), disk.survivor(random, tearing))
        };
        self.disks.iter().map(survive).collect()
    }

    /// The outcome for one way of tearing on all disks.
    pub fn survivors_of(&self, tearing: Tearing, random: &mut SplitMix64) -> Vec<(String, DiskImage)> {
        let survive = |disk: &WreckedDisk| (disk.name.clone(), disk.survivor(random, tearing));
        self.disks.iter().map(survive).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_of_two_writes_is_drawn_and_no_other() {
        let disk = WreckedDisk {
            name: "disk".to_owned(),
            durable: DiskImage::from_bytes(&[1; 512]),
            pending: vec![
                Effect::write(0, &[2; 512]),
                Effect::write(0, &[3; 512]),
                Effect::write(512, &[4; 512]),
            ],
        };
        let mut random = SplitMix64::new(5);
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..1000 {
            let tearing = Tearing::draw(&mut random);
            let bytes = disk.survivor(&mut random, tearing).to_bytes();
            assert!(bytes.chunks(512).all(|sector| sector.iter().all(|byte| *byte == sector[0])));
            seen.insert((bytes[0], bytes.get(512).copied()));
        }
        let expected =
            [1, 2, 3].into_iter().flat_map(|first| [None, Some(0), Some(4)].map(|second| (first, second)));
        assert_eq!(seen, expected.collect());
    }
}
