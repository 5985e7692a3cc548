//! Files stay where they are, and are never served from a mirror that is older than they are.

use std::fs;
use std::sync::Arc;

use futures::executor::block_on;
use tanada_io::Method;
use tanada_volume::directory::HostOpener;
use tanada_volume::{Attributes, ErrorKind, Finding, OpenOptions, Parts, Relocation, Volume};

use crate::{CHUNK, Place, bytes};

fn parts(place: &Place) -> Parts {
    Parts { opener: Arc::new(HostOpener::new(Method::Buffered)), ..place.parts() }
}

#[test]
fn an_adopted_file_is_read_in_place_and_mirrored() {
    let place = Place::new(&[("fast", 2), ("slow", 1)]);
    let data = bytes(6 * CHUNK as usize + 1234, 1);
    let file = place.path("table.ibd");
    fs::write(&file, &data).unwrap();
    let path = file.to_str().unwrap();
    block_on(async {
        let volume = Volume::create(parts(&place), &place.settings(16)).await.unwrap();
        let object = volume.adopt("table", path, &Attributes::default()).unwrap();
        assert_eq!(object.read_bytes(0, data.len() + 5).await.unwrap(), data);
        assert_eq!(object.write_bytes(0, b"x").await.unwrap_err().kind(), ErrorKind::ReadOnly);
        assert_eq!(object.mirror_to(0..100, "fast", &Relocation::default()).await.unwrap().done, 7);
        assert!(object.move_to(0..1, "fast", &Relocation::default()).await.is_err());
        // Straight through the mirrors: the file's own bytes change unnoticed by its length and time.
        let modified = fs::metadata(&file).unwrap().modified().unwrap();
        fs::write(&file, vec![0; data.len()]).unwrap();
        fs::File::options().write(true).open(&file).unwrap().set_modified(modified).unwrap();
        assert_eq!(object.read_bytes(100, data.len()).await.unwrap(), data[100..]);
        volume.close().await.unwrap();
    });
    block_on(async {
        let volume = Volume::open(parts(&place), &OpenOptions::default()).await.unwrap();
        let object = volume.open_object("table").unwrap();
        assert_eq!(object.read_bytes(0, data.len()).await.unwrap(), data, "the mirrors are there still");
        let other = bytes(3 * CHUNK as usize, 2);
        fs::write(&file, &other).unwrap();
        assert_eq!(volume.check_adopted().len(), 1);
        assert_eq!(object.read_bytes(0, data.len()).await.unwrap(), other);
        volume.sync().await.unwrap();
        assert_eq!(volume.classes()[0].taken, 0, "the mirrors are gone");
        object.mirror_to(0..3, "fast", &Relocation::default()).await.unwrap();
        drop((object, volume));
        let third = bytes(other.len(), 3);
        fs::write(&file, &third).unwrap();
        let volume = Volume::open(parts(&place), &OpenOptions::default()).await.unwrap();
        let object = volume.open_object("table").unwrap();
        assert_eq!(object.read_bytes(0, other.len()).await.unwrap(), third);
        // A handle of a deleted object records nothing any more, whatever becomes of the file.
        let gone = volume.adopt("gone", path, &Attributes::default()).unwrap();
        volume.delete("gone").await.unwrap();
        fs::write(&file, &other).unwrap();
        gone.check_adopted();
        volume.sync().await.unwrap();
        let report = Volume::check(&parts(&place)).await.unwrap();
        let is_damage = |finding: &Finding| matches!(finding, Finding::MetadataDamaged { .. });
        assert!(!report.findings.iter().any(is_damage), "{:?}", report.findings);
        fs::remove_file(&file).unwrap();
        assert_eq!(volume.check_adopted().len(), 1);
        assert_eq!(object.read_bytes(0, 10).await.unwrap_err().kind(), ErrorKind::MissingDevice);
    });
}

#[test]
fn distrusted_mirrors_are_bypassed_for_the_file() {
    let place = Place::new(&[("fast", 1), ("slow", 1)]);
    let data = bytes(3 * CHUNK as usize, 1);
    let file = place.path("table.ibd");
    fs::write(&file, &data).unwrap();
    block_on(async {
        let volume = Volume::create(parts(&place), &place.settings(16)).await.unwrap();
        let object = volume.adopt("table", file.to_str().unwrap(), &Attributes::default()).unwrap();
        object.mirror_to(0..3, "fast", &Relocation::default()).await.unwrap();
        // The mirrors differ from the file from now on, as if they were damaged.
        let modified = fs::metadata(&file).unwrap().modified().unwrap();
        let other = bytes(data.len(), 2);
        fs::write(&file, &other).unwrap();
        fs::File::options().write(true).open(&file).unwrap().set_modified(modified).unwrap();
        let read = async || object.read_bytes(0, data.len()).await.unwrap();
        assert_eq!(read().await, data);
        let chunk = CHUNK as usize;
        object.device().distrust(CHUNK + 5, 10);
        assert_eq!(read().await, [&data[..chunk], &other[chunk..2 * chunk], &data[2 * chunk..]].concat());
        object.device().distrust(CHUNK, 0);
        object.device().distrust(CHUNK - 1, CHUNK + 2);
        assert_eq!(read().await, other);
        let why = object.explain(2).unwrap();
        assert_eq!(why.why, "a reader found it damaged");
        assert_eq!(volume.classes()[0].statistics.errors, 3);
        volume.sync().await.unwrap();
        assert_eq!(volume.classes()[0].taken, 0, "their room is free again");
    });
}

#[test]
fn changed_or_missing_adopted_files_affect_their_object_only() {
    let place = Place::new(&[("fast", 1), ("slow", 1)]);
    let data = bytes(2 * CHUNK as usize, 1);
    let files: Vec<_> = ["same", "changed", "gone"].iter().map(|name| place.path(name)).collect();
    files.iter().for_each(|file| fs::write(file, &data).unwrap());
    block_on(async {
        let volume = Volume::create(parts(&place), &place.settings(16)).await.unwrap();
        for file in &files {
            let name = file.file_name().unwrap().to_str().unwrap();
            let object = volume.adopt(name, file.to_str().unwrap(), &Attributes::default()).unwrap();
            object.mirror_to(0..2, "fast", &Relocation::default()).await.unwrap();
        }
        let plain = volume.create_object("plain", &Attributes::default()).unwrap();
        plain.write_bytes(0, &data).await.unwrap();
        volume.close().await.unwrap();
    });
    fs::write(&files[1], b"shorter").unwrap();
    fs::remove_file(&files[2]).unwrap();
    block_on(async {
        let volume = Volume::open(parts(&place), &OpenOptions::default()).await.unwrap();
        let changed = || {
            let mut names: Vec<String> = volume.check_adopted().iter().map(|object| object.name()).collect();
            names.sort();
            names
        };
        // What lost its mirrors at the opening is said once, what is gone each time.
        assert_eq!(changed(), ["changed", "gone"]);
        assert_eq!(changed(), ["gone"]);
        let read = async |name: &str| volume.open_object(name).unwrap().read_bytes(0, data.len()).await;
        assert_eq!(read("same").await.unwrap(), data);
        assert_eq!(read("plain").await.unwrap(), data);
        assert_eq!(read("changed").await.unwrap(), b"shorter");
        assert_eq!(read("gone").await.unwrap_err().kind(), ErrorKind::MissingDevice);
        let plain = volume.open_object("plain").unwrap();
        plain.write_bytes(0, b"and it can be written").await.unwrap();
        volume.close().await.unwrap();
    });
}

/// What is behind its new end is an error until somebody looks, never zeros; then the object is as long as the file.
#[test]
fn a_file_that_is_cut_while_it_is_open_gives_what_it_has() {
    let place = Place::new(&[("fast", 1), ("slow", 1)]);
    let data = bytes(4 * CHUNK as usize, 1);
    let path = place.path("cut");
    fs::write(&path, &data).unwrap();
    block_on(async {
        let volume = Volume::create(parts(&place), &place.settings(16)).await.unwrap();
        let object = volume.adopt("cut", path.to_str().unwrap(), &Attributes::default()).unwrap();
        object.mirror_to(3..4, "fast", &Relocation::default()).await.unwrap();
        let left = CHUNK as usize + 5000;
        fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(left as u64).unwrap();
        assert_eq!(object.read_bytes(0, CHUNK as usize).await.unwrap(), data[..CHUNK as usize]);
        let error = object.read_bytes(2 * CHUNK, 100).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Device, "{error}");
        assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
        assert!(object.read_bytes(0, data.len()).await.is_err());
        // Nothing of it becomes a mirror under its old identity; the one there was is gone.
        let mirrored = object.mirror_to(0..4, "fast", &Relocation::default()).await.unwrap();
        assert!(mirrored.done < 4, "{mirrored:?}");
        assert_eq!(object.size_bytes(), left as u64);
        assert_eq!(object.read_bytes(0, data.len()).await.unwrap(), data[..left]);
        assert!(volume.check_adopted().is_empty(), "it was seen already");
        volume.close().await.unwrap();
    });
}
