//! What the classes of a volume are good at.
//!
//! 1. A class that lies under a device model is as good as the model.
//! 2. Of others the kernel says whether their disks rotate, and what drives them.
//! 3. The user says which class is the faster one: where the kernel sees no difference, the first class is taken to be
//!    a step above the last.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use tanada_io::{ModelSpec, Preset};
use tanada_volume::directory::{ClassConfig, Directory};

use crate::{Costs, measure};

/// From the slowest to the fastest.
const STEPS: [Preset; 4] = [Preset::Hdd7200, Preset::SataSsd, Preset::Nvme, Preset::Scm];

/// Of the first and the last class.
pub fn costs_of(directory: &Directory) -> Costs {
    let config = directory.config();
    let volume = directory.volume();
    let data: u64 = volume.objects().iter().map(|object| object.size_bytes()).sum();
    let (Some(fast), Some(slow)) = (config.classes.first(), config.classes.last()) else {
        return Costs::default();
    };
    let slow_spec = spec_of(slow, directory.path());
    let mut fast_spec = spec_of(fast, directory.path());
    let is_guessed = fast.model.is_none();
    if is_guessed && step(&fast_spec) <= step(&slow_spec) {
        let above = STEPS.get(step(&slow_spec) + 1).copied().unwrap_or(Preset::Scm);
        fast_spec = ModelSpec::new(above);
    }
    let room = volume.classes().first().map_or(0, |class| class.chunks) * volume.chunk_bytes();
    Costs { fast: measure(&fast_spec, room), slow: measure(&slow_spec, data) }
}

fn step(spec: &ModelSpec) -> usize {
    STEPS.iter().position(|preset| *preset == spec.preset()).unwrap_or(1)
}

fn spec_of(class: &ClassConfig, folder: &Path) -> ModelSpec {
    if let Some(spec) = class.model.as_ref().and_then(|model| model.parse::<ModelSpec>().ok()) {
        return spec;
    }
    let paths = class.paths.iter().map(|path| folder.join(path));
    let presets: Vec<Preset> = paths.map(|path| preset_of(&path)).collect();
    let slowest = STEPS.into_iter().find(|preset| presets.contains(preset)).unwrap_or(Preset::SataSsd);
    ModelSpec::new(slowest).times(presets.len().max(1) as u32)
}

/// What the kernel says of the disk under a file, folder or block device.
fn preset_of(path: &Path) -> Preset {
    let Ok(metadata) = std::fs::metadata(path) else { return Preset::SataSsd };
    let number = if metadata.rdev() != 0 { metadata.rdev() } else { metadata.dev() };
    let block = PathBuf::from(format!("/sys/dev/block/{}:{}", major(number), minor(number)));
    let Ok(block) = std::fs::canonicalize(block) else { return Preset::SataSsd };
    // A partition's queue is that of its disk.
    let disk = if block.join("queue").exists() { block.clone() } else { block.join("..") };
    let name = block.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let rotates = std::fs::read_to_string(disk.join("queue/rotational"));
    match rotates.as_deref().map(str::trim) {
        Ok("1") => Preset::Hdd7200,
        _ if name.starts_with("nvme") => Preset::Nvme,
        _ if name.starts_with("pmem") => Preset::Scm,
        _ => Preset::SataSsd,
    }
}

/// As `makedev(3)` has it on Linux.
fn major(device: u64) -> u64 {
    ((device >> 8) & 0xfff) | ((device >> 32) & !0xfff)
}

fn minor(device: u64) -> u64 {
    (device & 0xff) | ((device >> 12) & 0xffff_ff00)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_numbers_are_taken_apart() {
        assert_eq!((major(0x803), minor(0x803)), (8, 3));
        // 259, 1000
        let device = (259 << 8) | (1000 & 0xff) | ((1000 & !0xff) << 12);
        assert_eq!((major(device), minor(device)), (259, 1000));
    }

    #[test]
    fn any_path_has_a_preset() {
        preset_of(Path::new("/"));
        assert_eq!(preset_of(Path::new("/does/not/exist")), Preset::SataSsd);
    }
}
