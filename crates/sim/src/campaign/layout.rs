//! Which disks a volume under test lies on, and how they become its parts.

use std::collections::BTreeMap;
use std::sync::Arc;

use tanada_io::BufferPool;
use tanada_volume::{ClassParts, ClassSettings, CrashPoints, Parts, PlantedBug, VolumeSettings};

use crate::disk::{DiskImage, DiskOptions, SimDisk};
use crate::executor::World;

/// A class of the volume under test.
#[derive(Debug, Clone)]
pub(crate) struct ClassLayout {
    pub(crate) name: &'static str,
    pub(crate) devices: usize,
    pub(crate) chunks: u64,
    pub(crate) segment_bytes: u64,
    /// Whether the volume has it from its creation on; else it may be added.
    pub(crate) is_there_from_the_start: bool,
}

/// The volume under test. Small, so that a power cut costs milliseconds and space is reused often.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    pub(crate) chunk_bytes: u64,
    pub(crate) journal_bytes: u64,
    /// Fastest first.
    pub(crate) classes: Vec<ClassLayout>,
}

/// Images by the names of their disks.
pub(crate) type Images = BTreeMap<String, DiskImage>;

impl Layout {
    /// Three classes, one of them striped over two devices, one to be added.
    pub(crate) fn usual() -> Layout {
        let class = |name, devices, chunks, segment_bytes, is_there_from_the_start| ClassLayout {
            name,
            devices,
            chunks,
            segment_bytes,
            is_there_from_the_start,
        };
        Layout {
            chunk_bytes: 8192,
            journal_bytes: 64 << 10,
            classes: vec![
                class("fast", 1, 6, 4096, true),
                class("middle", 1, 8, 8192, false),
                class("slow", 2, 24, 4096, true),
            ],
        }
    }

    pub(crate) fn settings(&self) -> VolumeSettings {
        let there = self.classes.iter().filter(|class| class.is_there_from_the_start);
        VolumeSettings {
            id: *b"a simulated disk",
            chunk_bytes: self.chunk_bytes,
            classes: there.map(|class| self.class_settings(class)).collect(),
            journal_bytes: self.journal_bytes,
            ..VolumeSettings::default()
        }
    }

    pub(crate) fn class_settings(&self, class: &ClassLayout) -> ClassSettings {
        ClassSettings {
            name: class.name.to_owned(),
            segment_bytes: class.segment_bytes,
            size_bytes: class.chunks * self.chunk_bytes,
        }
    }
}

/// The disks of a volume in one world.
#[derive(Debug, Clone)]
pub(crate) struct Rig {
    pub(crate) metadata: SimDisk,
    /// By class, in the layout's order.
    pub(crate) classes: Vec<(&'static str, Vec<SimDisk>)>,
}

impl Rig {
    /// Attaches the disks that `images` has, and blank ones for the others.
    pub(crate) fn attach(world: &World, layout: &Layout, mut images: Images) -> Rig {
        let mut attach = |name: String| {
            let image = images.remove(&name).unwrap_or_default();
            let options = DiskOptions { alignment: 4096, ..DiskOptions::named(name) };
            world.disk_with(options, image)
        };
        let metadata = attach("metadata".to_owned());
        let mut classes = Vec::new();
        for class in &layout.classes {
            let disks = (0..class.devices).map(|device| attach(format!("{}.{device}", class.name)));
            classes.push((class.name, disks.collect()));
        }
        Rig { metadata, classes }
    }

    /// The volume's parts. Devices are opened anew, as a process does.
    pub(crate) fn parts(
        &self,
        world: &World,
        buffers: &Arc<BufferPool>,
        crash_points: CrashPoints,
        planted_bug: PlantedBug,
    ) -> Parts {
        let class = |(name, disks): &(&'static str, Vec<SimDisk>)| ClassParts {
            name: (*name).to_owned(),
            devices: disks.iter().map(|disk| Some(disk.device())).collect(),
        };
        Parts {
            classes: self.classes.iter().map(class).collect(),
            clock: world.clock(),
            buffers: buffers.clone(),
            crash_points,
            planted_bug,
            ..Parts::new(self.metadata.device())
        }
    }
}
