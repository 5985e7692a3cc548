//! What `tanada-volume` promises, one file per behaviour.

#![allow(clippy::unwrap_used)]

mod adopted;
mod between;
mod checking;
mod cleaners;
mod devices;
mod failures;
mod folders;
mod model;
mod names;
mod needed;
mod objects;
mod pages;
mod recovery;
mod relocation;
mod scale;
mod statistics;
mod threads;

use std::path::{Path, PathBuf};

use tanada_base::SplitMix64;
use tanada_io::{Device, DeviceOptions, Method};
use tanada_volume::{ClassSettings, OpenOptions, Parts, Volume, VolumeSettings};
use tempfile::TempDir;

/// A volume in a folder: metadata and devices as files.
struct Place {
    folder: TempDir,
    /// Class names and numbers of devices.
    classes: Vec<(&'static str, usize)>,
}

impl Place {
    fn new(classes: &[(&'static str, usize)]) -> Place {
        Place { folder: tempfile::tempdir().unwrap(), classes: classes.to_vec() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn parts(&self) -> Parts {
        let mut parts = Parts::new(device(&self.path("metadata")));
        for (name, devices) in &self.classes {
            let devices = (0..*devices).map(|i| device(&self.path(&format!("{name}-{i}")))).collect();
            parts = parts.with_class(name, devices);
        }
        parts
    }

    /// Small chunks and segments, so that small files have many.
    fn settings(&self, chunks: u64) -> VolumeSettings {
        let class = |(name, _): &(&str, usize)| ClassSettings {
            name: (*name).to_owned(),
            segment_bytes: 16 << 10,
            size_bytes: chunks * CHUNK,
        };
        VolumeSettings {
            id: *b"0123456789abcdef",
            chunk_bytes: CHUNK,
            classes: self.classes.iter().map(class).collect(),
            journal_bytes: 64 << 10,
            ..VolumeSettings::default()
        }
    }

    async fn create(&self, chunks: u64) -> Volume {
        Volume::create(self.parts(), &self.settings(chunks)).await.unwrap()
    }

    async fn open(&self) -> Volume {
        Volume::open(self.parts(), &OpenOptions::default()).await.unwrap()
    }
}

const CHUNK: u64 = 64 << 10;

fn device(path: &Path) -> Device {
    let options = DeviceOptions { method: Method::Buffered, writable: true, create: true };
    Device::open(path, &options).unwrap()
}

fn bytes(len: usize, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; len];
    SplitMix64::new(seed).fill(&mut bytes);
    bytes
}
