//! Folders, attributes of files, and renames that replace.

use futures::executor::block_on;
use tanada_volume::{Attributes, Compression, ErrorKind, FileAttributes, Folder, Volume};

use crate::{CHUNK, Place, bytes};

fn file(mode: u32) -> FileAttributes {
    FileAttributes { mode, uid: 5, gid: 6, modified_ns: -7, changed_ns: i64::MAX }
}

fn folder(mode: u32) -> Folder {
    let attributes = Attributes {
        compression: Compression::Zstd(4),
        class: Some("slow".to_owned()),
        page_bytes: Some(8192),
        ..Attributes::default()
    };
    Folder { file: file(mode), attributes }
}

fn names(volume: &Volume) -> Vec<String> {
    let mut names: Vec<String> = volume.objects().iter().map(|object| object.name()).collect();
    names.sort();
    names
}

#[test]
fn folders_and_attributes_of_files_are_there_after_each_kind_of_stop() {
    let place = Place::new(&[("fast", 1), ("slow", 1)]);
    block_on(async {
        let volume = place.create(64).await;
        volume.set_folder("", &folder(0o755)).unwrap();
        volume.set_folder("a", &folder(0o700)).unwrap();
        volume.set_folder("a/b", &folder(0o711)).unwrap();
        volume.set_folder("gone", &Folder::default()).unwrap();
        let object = volume.create_file("a/b/x", &Attributes::default(), file(0o640)).unwrap();
        object.set_file_attributes(file(0o600)).unwrap();
        volume.create_object("plain", &Attributes::default()).unwrap();
        volume.remove_folder("gone").unwrap();
        volume.rename_folder("a", "c").unwrap();
        volume.sync_names().await.unwrap();
    });
    // First as the journal has it, then as the checkpoint of that opening has it, then as that of a clean stop has it.
    for _ in 0..3 {
        block_on(async {
            let volume = place.open().await;
            let folders = volume.folders();
            let expected = [("", 0o755), ("c", 0o700), ("c/b", 0o711)];
            assert_eq!(folders, expected.map(|(name, mode)| (name.to_owned(), folder(mode))));
            assert_eq!(names(&volume), ["c/b/x", "plain"]);
            assert_eq!(volume.open_object("c/b/x").unwrap().file_attributes(), Some(file(0o600)));
            assert_eq!(volume.open_object("plain").unwrap().file_attributes(), None);
            volume.close().await.unwrap();
        });
    }
}

#[test]
fn folders_are_renamed_with_all_that_lies_below_them() {
    let place = Place::new(&[("fast", 1), ("slow", 1)]);
    block_on(async {
        let volume = place.create(64).await;
        for name in ["a", "ab", "empty", "full", "full/x"] {
            volume.set_folder(name, &Folder::default()).unwrap();
        }
        for name in ["a/1", "a/deep/2", "ab/3", "file"] {
            volume.create_object(name, &Attributes::default()).unwrap();
        }
        let refused = |name: &str, new_name: &str| volume.rename_folder(name, new_name).unwrap_err().kind();
        assert_eq!(refused("a", "a/inside"), ErrorKind::InvalidInput);
        assert_eq!(refused("a", "file"), ErrorKind::AlreadyExists);
        assert_eq!(refused("a", "full"), ErrorKind::AlreadyExists);
        assert_eq!(refused("nowhere", "b"), ErrorKind::NotFound);
        assert_eq!(refused("a", &"x/".repeat(600)), ErrorKind::InvalidInput);
        assert_eq!(refused("a", &vec!["y"; 510].join("/")), ErrorKind::InvalidInput);
        volume.rename_folder("a", "empty").unwrap();
        assert_eq!(names(&volume), ["ab/3", "empty/1", "empty/deep/2", "file"]);
        assert!(volume.open_object("empty/deep/2").is_ok() && volume.open_object("a/1").is_err());
        assert_eq!(
            volume.set_folder("file", &Folder::default()).unwrap_err().kind(),
            ErrorKind::AlreadyExists
        );
    });
}

#[test]
fn an_object_takes_the_name_of_another_in_one_step() {
    let place = Place::new(&[("fast", 1), ("slow", 1)]);
    let (old, new) = (bytes(CHUNK as usize, 1), bytes(100, 2));
    block_on(async {
        let volume = place.create(64).await;
        for (name, data) in [("config", &old), ("config.new", &new)] {
            let object = volume.create_object(name, &Attributes::default()).unwrap();
            object.write_bytes(0, data).await.unwrap();
            object.sync().await.unwrap();
        }
        volume.replace("config.new", "config", "aside/1").unwrap();
        assert_eq!(volume.replace("missing", "config", "aside/2").unwrap_err().kind(), ErrorKind::NotFound);
        volume.sync_names().await.unwrap();
    });
    block_on(async {
        let volume = place.open().await;
        assert_eq!(names(&volume), ["aside/1", "config"]);
        let read = async |name: &str| volume.open_object(name).unwrap().read_bytes(0, 1 << 20).await.unwrap();
        assert_eq!(read("config").await, new);
        assert_eq!(read("aside/1").await, old);
    });
}

#[test]
fn data_and_holes_are_found_in_plain_and_compressed_objects() {
    let place = Place::new(&[("fast", 1), ("slow", 1)]);
    block_on(async {
        let volume = place.create(64).await;
        let paged = Attributes { compression: Compression::Lz4, ..Attributes::default() };
        for (attributes, unit) in [(Attributes::default(), CHUNK), (paged, 16 << 10)] {
            let object = volume.create_object(&format!("unit {unit}"), &attributes).unwrap();
            assert_eq!((object.next_data(0), object.next_hole(0)), (None, 0));
            object.write_bytes(2 * unit, &bytes(2 * unit as usize, 1)).await.unwrap();
            object.write_bytes(6 * unit, &[1]).await.unwrap();
            assert_eq!(object.next_data(0), Some(2 * unit));
            assert_eq!(object.next_data(2 * unit + 5), Some(2 * unit + 5));
            assert_eq!(object.next_hole(0), 0);
            assert_eq!(object.next_hole(2 * unit + 5), 4 * unit);
            assert_eq!(object.next_data(4 * unit), Some(6 * unit));
            assert_eq!(object.next_hole(6 * unit), 6 * unit + 1);
            object.resize(8 * unit).await.unwrap();
            assert_eq!(object.next_hole(6 * unit), 7 * unit);
            assert_eq!(object.next_data(7 * unit), None);
        }
    });
}
