//! Which disks a volume under test lies on, and how they become its parts.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::channel::mpsc::{self, UnboundedSender};
use tanada_io::{BufferPool, Device};
use tanada_volume::{
    ClassParts, ClassSettings, CleanerWork, Cleaners, CrashPoints, Identity, KeyRing, Opener, Parts,
    PlantedBug, SpawnCleaner, Timer, VolumeSettings,
};

use crate::disk::{DiskImage, DiskOptions, SimDisk};
use crate::executor::{VirtualTimer, World};
use crate::oracle::{CHUNK_BYTES, FIRST_FILE, pattern};
use crate::trace::hash_bytes;

/// Keys of the volumes under test.
const KEYS: &str = "\
1;000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f
2;404142434445464748494a4b4c4d4e4f505152535455565758595a5b5c5d5e5f606162636465666768696a6b6c6d6e6f707172737475767778797a7b7c7d7e7f
";

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
    /// Files that may be adopted: paths and lengths.
    pub(crate) files: Vec<(&'static str, usize)>,
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
            chunk_bytes: CHUNK_BYTES,
            journal_bytes: 64 << 10,
            classes: vec![
                class("fast", 1, 6, 4096, true),
                class("middle", 1, 8, 8192, false),
                class("slow", 2, 24, 4096, true),
            ],
            files: vec![("first.ibd", 20 << 10), ("second.ibd", 9000)],
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
    /// By path.
    pub(crate) files: Vec<(&'static str, SimDisk)>,
    pub(crate) timer: VirtualTimer,
    /// Where cleaners run, if pages are stored behind the back of their writers.
    cleaners: Option<SimCleaners>,
}

/// Cleaners of a volume under test, and the pages that may wait for them.
const CLEANERS: usize = 2;
const DIRTY_PAGES: u64 = 4;

/// What a file holds before anybody changes it.
fn file_image(no: usize, len: usize) -> DiskImage {
    let mut bytes = vec![0; len];
    pattern(FIRST_FILE + no as u16, 0, 0, &mut bytes);
    DiskImage::from_bytes(&bytes)
}

impl Rig {
    /// Attaches the disks that `images` has, and blank ones for the others.
    pub(crate) fn attach(world: &World, layout: &Layout, mut images: Images) -> Rig {
        let mut attach_with = |name: String, new: DiskImage, alignment: usize| {
            let image = images.remove(&name).unwrap_or(new);
            world.disk_with(DiskOptions { alignment, ..DiskOptions::named(name) }, image)
        };
        let files = layout.files.iter().enumerate().map(|(no, (path, len))| {
            let disk = attach_with((*path).to_owned(), file_image(no, *len), 512);
            (*path, disk)
        });
        let files = files.collect();
        let mut attach = |name: String| attach_with(name, DiskImage::default(), 4096);
        let metadata = attach("metadata".to_owned());
        let mut classes = Vec::new();
        for class in &layout.classes {
            let disks = (0..class.devices).map(|device| attach(format!("{}.{device}", class.name)));
            classes.push((class.name, disks.collect()));
        }
        // In every second world.
        let cleaners = world.seed().is_multiple_of(2).then(|| SimCleaners::start(world));
        Rig { metadata, classes, files, timer: world.timer(), cleaners }
    }

    /// The volume's parts. Devices are opened anew, as a process does.
    pub(crate) fn parts(
        &self,
        world: &World,
        buffers: &Arc<BufferPool>,
        crash_points: CrashPoints,
        planted_bug: PlantedBug,
    ) -> Parts {
        Parts {
            classes: self.classes.iter().filter_map(|(name, _)| self.class_parts(name)).collect(),
            clock: world.clock(),
            opener: Arc::new(SimFiles { files: self.files.clone() }),
            timer: Some(Arc::new(SimTimer(self.timer.clone()))),
            buffers: buffers.clone(),
            crash_points,
            planted_bug,
            keys: KeyRing::parse(KEYS, "the keys").unwrap_or_default(),
            cleaners: self.cleaners.clone().map(|spawn| Cleaners {
                count: CLEANERS,
                memory_bytes: DIRTY_PAGES * CHUNK_BYTES,
                spawn: Arc::new(spawn),
            }),
            ..Parts::new(self.metadata.device())
        }
    }
}

impl Rig {
    /// The devices of a class.
    pub(crate) fn class_parts(&self, name: &str) -> Option<ClassParts> {
        let (name, disks) = self.classes.iter().find(|(known, _)| *known == name)?;
        let devices = disks.iter().map(|disk| Some(disk.device())).collect();
        Some(ClassParts { name: (*name).to_owned(), devices })
    }

    /// The first disk of a class.
    pub(crate) fn disk(&self, class: &str) -> Option<&SimDisk> {
        self.classes.iter().find(|(known, _)| *known == class).and_then(|(_, disks)| disks.first())
    }

    pub(crate) fn file(&self, path: &str) -> Option<&SimDisk> {
        self.files.iter().find(|(known, _)| *known == path).map(|(_, disk)| disk)
    }
}

/// Files that a volume may adopt. A file that holds other bytes than before has another time of modification.
#[derive(Debug)]
struct SimFiles {
    files: Vec<(&'static str, SimDisk)>,
}

impl SimFiles {
    fn find(&self, path: &str) -> tanada_io::Result<(SimDisk, Identity)> {
        let found = self.files.iter().enumerate().find(|(_, (known, _))| *known == path);
        let (no, (_, disk)) = found.ok_or_else(|| {
            tanada_io::Error::new(tanada_io::ErrorKind::NotFound, format!("there is no file {path}"))
        })?;
        let image = disk.cache();
        let modified_ns = i128::from(hash_bytes(&image.to_bytes()));
        Ok((disk.clone(), Identity { file: no as u128, size_bytes: image.size_bytes(), modified_ns }))
    }
}

impl Opener for SimFiles {
    fn open(&self, path: &str) -> tanada_io::Result<(Device, Identity)> {
        self.find(path).map(|(disk, identity)| (disk.device(), identity))
    }

    fn identity(&self, path: &str) -> tanada_io::Result<Identity> {
        self.find(path).map(|(_, identity)| identity)
    }
}

/// Runs cleaners as tasks of the world, which stays on its thread.
#[derive(Debug, Clone)]
struct SimCleaners {
    work: UnboundedSender<CleanerWork>,
}

impl SimCleaners {
    fn start(world: &World) -> SimCleaners {
        let (work, arriving) = mpsc::unbounded::<CleanerWork>();
        let _runs_on = world.spawn(arriving.for_each_concurrent(None, |work| work));
        SimCleaners { work }
    }
}

impl SpawnCleaner for SimCleaners {
    fn spawn(&self, work: CleanerWork) {
        // At the end of the world nobody runs it.
        let _ = self.work.unbounded_send(work);
    }
}

#[derive(Debug)]
struct SimTimer(VirtualTimer);

impl Timer for SimTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(self.0.sleep(duration))
    }
}
