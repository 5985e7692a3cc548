//! What the parts of the benchmark work on: a folder of their own, devices in it, volumes on them.

use std::sync::Arc;

use tanada_base::SplitMix64;
use tanada_io::{BufferPool, Device, DeviceOptions, Executors, ModelSpec, Timeline};
use tanada_volume::{ClassSettings, Parts, Volume, VolumeSettings};

use super::VolumeBenchOptions;
use super::blank::Blank;
use crate::{Error, Result};

/// Bytes of a large I/O and of a chunk.
pub const MIB: usize = 1 << 20;

/// A folder, removed on drop.
#[derive(Debug)]
pub struct Stage {
    pub options: VolumeBenchOptions,
    pub pool: Arc<BufferPool>,
    folder: tempfile::TempDir,
}

impl Stage {
    pub fn new(options: &VolumeBenchOptions, executors: &Executors) -> Result<Stage> {
        let folder = tempfile::Builder::new()
            .prefix("tanada-bench-volume-")
            .tempdir_in(&options.directory)
            .map_err(|error| Error::at_path("make a folder in", &options.directory, &error))?;
        Ok(Stage { options: options.clone(), pool: executors.buffers().clone(), folder })
    }

    /// A file of the folder.
    pub fn device(&self, name: &str) -> Result<Device> {
        let options = DeviceOptions { writable: true, create: true, ..DeviceOptions::default() };
        Device::open(self.folder.path().join(name), &options).map_err(failed)
    }

    /// A file of the folder, full of random bytes.
    pub async fn filled(&self, name: &str) -> Result<Device> {
        let device = self.device(name)?;
        self.fill(&device).await?;
        Ok(device)
    }

    /// Parts with these classes, one file each.
    pub fn parts(&self, classes: &[&str]) -> Result<Parts> {
        let mut parts = Parts::new(self.device("metadata")?);
        parts.buffers = self.pool.clone();
        parts.timer = Some(Arc::new(Timeline::real()));
        for class in classes {
            parts = parts.with_class(class, vec![self.device(class)?]);
        }
        Ok(parts)
    }

    /// A volume with these classes; each could hold all data.
    pub async fn volume(&self, classes: &[&str]) -> Result<Volume> {
        let class = |name: &&str| ClassSettings {
            name: (*name).to_owned(),
            size_bytes: self.options.data_bytes + (64 << 20),
            ..ClassSettings::default()
        };
        let settings = VolumeSettings {
            id: *b"tanada benchmark",
            classes: classes.iter().map(class).collect(),
            ..VolumeSettings::default()
        };
        Volume::create(self.parts(classes)?, &settings).await.map_err(failed)
    }

    /// A volume on emulated devices of a timeline: names of classes and their models, fastest first. And those devices.
    /// Of what is written only where it lies is kept, so nothing but the models takes time; the metadata lie on a model
    /// of their own, like the fastest class's.
    pub async fn modelled(
        &self,
        timeline: &Timeline,
        classes: &[(&str, &str)],
    ) -> Result<(Volume, Vec<Device>)> {
        let size_bytes = self.options.data_bytes + (256 << 20);
        let modelled = |model: &str, size_bytes, seed| {
            let model: ModelSpec = model.parse().map_err(failed)?;
            timeline.model(Device::from_backend(Blank::new(size_bytes)), &model, seed).map_err(failed)
        };
        let fastest = classes.first().map_or("nvme", |(_, model)| model);
        let mut parts = Parts::new(modelled(fastest, 1 << 40, 0)?);
        parts.buffers = self.pool.clone();
        parts.clock = timeline.clock();
        parts.timer = Some(Arc::new(timeline.clone()));
        let (mut devices, mut settings) = (Vec::new(), Vec::new());
        for (seed, (name, model)) in (1..).zip(classes) {
            let device = modelled(model, size_bytes + (8 << 20), seed)?;
            parts = parts.with_class(name, vec![device.clone()]);
            devices.push(device);
            settings.push(ClassSettings { name: (*name).to_owned(), size_bytes, ..ClassSettings::default() });
        }
        let settings =
            VolumeSettings { id: *b"emulated classes", classes: settings, ..VolumeSettings::default() };
        let volume = Volume::create(parts, &settings).await.map_err(failed)?;
        Ok((volume, devices))
    }

    /// Writes every block, so that no hole makes reading cheap.
    pub async fn fill(&self, device: &Device) -> Result<()> {
        let mut random = SplitMix64::new(1);
        let mut buffer = self.pool.allocate(MIB);
        for block in 0..self.options.data_bytes / MIB as u64 {
            random.fill(&mut buffer);
            buffer = device.write(block * MIB as u64, buffer).await.map_err(failed)?;
        }
        device.sync().await.map_err(failed)
    }
}

/// An error of the layers below.
pub fn failed(error: impl std::fmt::Display) -> Error {
    Error::failed(error.to_string())
}
