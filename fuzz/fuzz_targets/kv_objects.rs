//! Whole objects of a key-value database, with checksums made right: a log segment is replayed, a key file walked over
//! in every way, a manifest recovered, values read from a segment. The first byte chooses. Give objects of a small
//! database as the corpus, each with that byte before it.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use tanada_io::{Device, DeviceOptions};
use tanada_kv::blocking::wait;
use tanada_kv::fuzzing::Files;
use tanada_volume::{ClassSettings, Parts, Volume, VolumeSettings};

static FILES: LazyLock<(tempfile::TempDir, Files)> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let options = DeviceOptions { create: true, ..DeviceOptions::default() };
    let device = |name: &str| Device::open(folder.path().join(name), &options).expect("a file");
    let parts = Parts::new(device("metadata")).with_class("fast", vec![device("fast")]);
    let class = ClassSettings { name: "fast".to_owned(), size_bytes: 256 << 20, ..ClassSettings::default() };
    let settings =
        VolumeSettings { id: *b"16 random bytes!", classes: vec![class], ..VolumeSettings::default() };
    let files = Files::new(&wait(Volume::create(parts, &settings)).expect("a volume"));
    (folder, files)
});

fuzz_target!(|input: &[u8]| {
    let Some((kind, bytes)) = input.split_first() else { return };
    let _ = FILES.1.read(*kind, bytes);
});
