//! A volume in a folder has one writer or several readers, and keeps its classes' places.

use std::path::PathBuf;
use std::sync::Arc;

use futures::executor::block_on;
use tanada_io::Method;
use tanada_volume::directory::{ClassConfig, Directory, DirectoryConfig, Settings};
use tanada_volume::{Attributes, Budget, ErrorKind, OpenOptions, Relocation, VolumeSettings};
use tempfile::TempDir;

use crate::{CHUNK, bytes};

fn settings() -> Settings {
    Settings { method: Method::Buffered, ..Settings::default() }
}

async fn made(folder: &TempDir) -> Directory {
    let devices = folder.path().join("devices");
    std::fs::create_dir(&devices).unwrap();
    let classes = [
        ClassConfig::new("staging", vec![devices.clone(), devices.clone()], Some(16 * CHUNK)),
        ClassConfig::new("capacity", vec![PathBuf::from("capacity-file")], Some(32 * CHUNK)),
    ];
    let volume = VolumeSettings { id: [7; 16], chunk_bytes: CHUNK, ..VolumeSettings::default() };
    Directory::create(&folder.path().join("volume"), &volume, &classes, settings()).await.unwrap()
}

#[test]
fn a_folder_has_one_writer_or_several_readers_and_conflicts_name_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("volume");
    let read_only = OpenOptions { read_only: true, ..OpenOptions::default() };
    let open = |options: &OpenOptions| block_on(Directory::open(&path, options, settings()));
    let writer = block_on(made(&folder));
    block_on(async {
        let object = writer.volume().create_object("a", &Attributes::default()).unwrap();
        object.write_bytes(0, b"hello").await.unwrap();
    });
    for options in [OpenOptions::default(), read_only] {
        let error = open(&options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Locked);
        assert!(error.to_string().contains(&format!("process {}", std::process::id())), "{error}");
    }
    block_on(writer.close()).unwrap();
    let readers = [open(&read_only).unwrap(), open(&read_only).unwrap()];
    for reader in &readers {
        let object = reader.volume().open_object("a").unwrap();
        assert_eq!(block_on(object.read_bytes(0, 10)).unwrap(), b"hello");
        assert_eq!(block_on(object.write_bytes(0, b"x")).unwrap_err().kind(), ErrorKind::ReadOnly);
    }
    let error = open(&OpenOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked);
    drop(readers);
    assert!(open(&OpenOptions::default()).is_ok());
    let missing = block_on(Directory::open(folder.path(), &read_only, settings())).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
}

#[test]
fn emptied_metadata_are_lost_and_no_volume_that_was_never_made() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("volume");
    block_on(async { made(&folder).await.close().await.unwrap() });
    for left in [vec![], vec![0; 1 << 20], vec![7; 1 << 20]] {
        std::fs::write(path.join("metadata"), left).unwrap();
        let opened = block_on(Directory::open(&path, &OpenOptions::default(), settings())).map(drop);
        let checked = block_on(Directory::check(&path, false, settings())).map(drop);
        let repaired = block_on(Directory::check(&path, true, settings())).map(drop);
        for error in [opened, checked, repaired].map(Result::unwrap_err) {
            assert_eq!(error.kind(), ErrorKind::Corrupted, "{error}");
            let text = error.to_string();
            assert!(text.contains("volume.json says") && text.contains("from a copy"), "{text}");
        }
    }
    for (missing, there) in [("metadata", "metadata"), ("volume.json", "metadata is there")] {
        let aside = folder.path().join("aside");
        std::fs::rename(path.join(missing), &aside).unwrap();
        let error = block_on(Directory::open(&path, &OpenOptions::default(), settings())).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupted, "{error}");
        let text = error.to_string();
        assert!(text.contains(there) && text.contains("from a copy"), "{text}");
        std::fs::rename(&aside, path.join(missing)).unwrap();
    }
}

#[test]
fn classes_come_and_go_with_their_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("volume");
    let devices = folder.path().join("devices");
    block_on(async {
        let directory = made(&folder).await;
        assert_eq!(std::fs::read_dir(&devices).unwrap().count(), 2);
        let object = directory.volume().create_object("a", &Attributes::default()).unwrap();
        let data = bytes(10 * CHUNK as usize, 1);
        object.write_bytes(0, &data).await.unwrap();
        let fastest = ClassConfig::new("memory", vec![devices.clone()], Some(4 * CHUNK));
        directory.add_class(&fastest, 0).await.unwrap();
        object.mirror_to(0..4, "memory", &Relocation::default()).await.unwrap();
        let paced = Relocation {
            budget: Budget { bytes_per_second: Some(100 << 20), ..Budget::default() },
            ..Relocation::default()
        };
        object.move_to(0..10, "staging", &paced).await.unwrap();
        directory.volume().drain_class("memory", &Relocation::default()).await.unwrap();
        directory.remove_class("memory").await.unwrap();
        assert_eq!(std::fs::read_dir(&devices).unwrap().count(), 2);
        directory.resize_class("capacity", 40 * CHUNK, &Relocation::default()).await.unwrap();
        drop(object);
        directory.close().await.unwrap();
        let report = Directory::check(&path, false, settings()).await.unwrap();
        assert!(report.is_sound() && report.was_clean, "{:?}", report.findings);
        let directory = Directory::open(&path, &OpenOptions::default(), settings()).await.unwrap();
        let names: Vec<String> = directory.config().classes.into_iter().map(|class| class.name).collect();
        assert_eq!(names, ["staging", "capacity"]);
        assert_eq!(directory.volume().classes()[1].chunks, 40);
        let object = directory.volume().open_object("a").unwrap();
        assert_eq!(object.read_bytes(0, data.len()).await.unwrap(), data);
    });
}

#[test]
fn a_model_is_put_under_a_class_by_whoever_knows_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("volume");
    let mut slow = ClassConfig::new("slow", vec![PathBuf::from("file")], Some(4 * CHUNK));
    slow.model = Some("8 x hdd-7200".to_owned());
    let volume = VolumeSettings { id: [7; 16], chunk_bytes: CHUNK, ..VolumeSettings::default() };
    let error = block_on(Directory::create(&path, &volume, &[slow.clone()], settings())).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    let seen = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let seen_by = seen.clone();
    let model: tanada_volume::directory::ModelFn = Arc::new(move |model| {
        seen_by.lock().push(model.to_owned());
        Ok(tanada_io::Timeline::real().array(&model.parse()?, 1))
    });
    let settings = || Settings { model: Some(model.clone()), ..settings() };
    drop(block_on(Directory::create(&path, &volume, &[slow], settings())).unwrap());
    drop(block_on(Directory::open(&path, &OpenOptions::default(), settings())).unwrap());
    assert_eq!(*seen.lock(), ["8 x hdd-7200", "8 x hdd-7200"]);
}

#[test]
fn a_creation_that_was_cut_short_can_be_begun_again() {
    for is_torn in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("volume");
        block_on(async { made(&folder).await.close().await.unwrap() });
        // As a stop leaves it that comes before the last step.
        std::fs::rename(path.join("volume.json"), path.join("volume.json.creating")).unwrap();
        if is_torn {
            std::fs::write(path.join("metadata"), [7; 5000]).unwrap();
        }
        let error = block_on(Directory::open(&path, &OpenOptions::default(), settings())).unwrap_err();
        assert!(
            error.kind() == ErrorKind::NotFound && error.to_string().contains("create it again"),
            "{error}"
        );
        std::fs::remove_dir_all(folder.path().join("devices")).unwrap();
        block_on(async {
            let directory = made(&folder).await;
            directory.volume().create_object("a", &Attributes::default()).unwrap();
            directory.close().await.unwrap();
            Directory::open(&path, &OpenOptions::default(), settings()).await.unwrap();
        });
        // A volume whose volume.json is lost is nobody's leftover.
        std::fs::remove_file(path.join("volume.json")).unwrap();
        std::fs::remove_dir_all(folder.path().join("devices")).unwrap();
        std::fs::create_dir(folder.path().join("devices")).unwrap();
        let classes = [ClassConfig::new("only", vec![folder.path().join("devices")], Some(16 * CHUNK))];
        let volume = VolumeSettings { id: [8; 16], chunk_bytes: CHUNK, ..VolumeSettings::default() };
        let error = block_on(Directory::create(&path, &volume, &classes, settings())).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        assert!(error.to_string().contains("metadata"), "{error}");
    }
}

#[test]
fn adopted_files_lie_on_the_disks_of_the_slowest_class() {
    use tanada_io::{ExecutorOptions, Executors, ModelledArray, Timeline, VirtualTimeOptions};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("volume");
    let files: Vec<PathBuf> = (0..2).map(|no| folder.path().join(format!("table-{no}.ibd"))).collect();
    for file in &files {
        std::fs::write(file, bytes(16 * CHUNK as usize, 1)).unwrap();
    }
    let timeline = Timeline::virtual_time(VirtualTimeOptions { cpu: false });
    let executors = Executors::start(ExecutorOptions { threads: 1, ..ExecutorOptions::default() }).unwrap();
    let (clock, models) = (timeline.clock(), timeline.clone());
    let arrays = Arc::new(parking_lot::Mutex::new(Vec::<ModelledArray>::new()));
    let made = arrays.clone();
    let model: tanada_volume::directory::ModelFn = Arc::new(move |model| {
        let array = models.array(&model.parse()?, 1);
        made.lock().push(array.clone());
        Ok(array)
    });
    let settings = Settings { method: Method::Buffered, model: Some(model), ..Settings::default() };
    let run = executors.block_on(move || async move {
        let mut slow = ClassConfig::new("slow", vec![PathBuf::from("slow")], Some(4 * CHUNK));
        slow.model = Some("hdd-7200".to_owned());
        let fast = ClassConfig::new("fast", vec![PathBuf::from("fast")], Some(4 * CHUNK));
        let volume = VolumeSettings { id: [9; 16], chunk_bytes: CHUNK, ..VolumeSettings::default() };
        let directory = Directory::create(&path, &volume, &[fast, slow], settings).await.unwrap();
        let adopt = |no: usize| {
            let name = format!("table {no}");
            directory.volume().adopt(&name, files[no].to_str().unwrap(), &Attributes::default()).unwrap()
        };
        let own = directory.volume().create_object("own", &Attributes::default()).unwrap();
        own.write_bytes(0, &bytes(4 * CHUNK as usize, 2)).await.unwrap();
        own.sync().await.unwrap();
        let tables = [adopt(0), adopt(1)];
        let array = arrays.lock()[0].clone();
        assert_eq!(arrays.lock().len(), 1, "one array for the class and both files");
        assert!(array.extent_bytes() >= 36 * CHUNK, "{}", array.extent_bytes());
        let began = clock.now();
        for chunk in [3, 11, 0, 7] {
            tables[0].read_bytes(chunk * CHUNK, 4096).await.unwrap();
        }
        let took = clock.now() - began;
        assert!(took.as_millis() > 4, "four random reads of a disk took {took:?} of its time");
        // One arm serves all: two readers of the file and one of the class's own data take as long as three do of one
        // file.
        let random = |object: &tanada_volume::Object, seed: u64| {
            let (object, clock) = (object.clone(), clock.clone());
            tanada_io::spawn_local(async move {
                let mut random = tanada_base::SplitMix64::new(seed);
                let chunks = object.size_bytes() / CHUNK;
                let began = clock.now();
                for _ in 0..40 {
                    object.read_bytes(random.below(chunks) * CHUNK, 4096).await.unwrap();
                }
                clock.now() - began
            })
        };
        let alone = random(&tables[0], 1).await;
        let beside = [random(&tables[0], 1), random(&own, 2), random(&tables[1], 3)];
        let [first, _, _] = futures::future::join_all(beside).await[..] else { panic!("three") };
        assert!(first > alone * 3 / 2, "{first:?} beside others, {alone:?} alone");
    });
    run.unwrap();
}

/// All that a program made by default had one of zeros.
#[test]
fn each_volume_that_is_made_has_an_identity_of_its_own() {
    let folder = TempDir::new().unwrap();
    let made = |name: &str| {
        let path = folder.path().join(name);
        let class = ClassConfig::new("only", vec!["data".into()], Some(16 << 20));
        let volume = VolumeSettings::default();
        let created = block_on(Directory::create(&path, &volume, &[class], settings())).unwrap();
        block_on(created.close()).unwrap();
        DirectoryConfig::load(&path).unwrap().id().unwrap()
    };
    let (first, second) = (made("first"), made("second"));
    assert!(first != [0; 16] && second != [0; 16] && first != second, "{first:?} {second:?}");
}

#[test]
fn a_creation_that_is_refused_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("volume");
    let class = |file: &str, chunks: u64| ClassConfig::new("only", vec![file.into()], Some(chunks * CHUNK));
    let volume = VolumeSettings { chunk_bytes: CHUNK, ..VolumeSettings::default() };
    let create = |classes: &[ClassConfig]| block_on(Directory::create(&path, &volume, classes, settings()));
    let refused: [&[ClassConfig]; 3] = [&[], &[class("file", 0)], &[class("one", 8), class("other", 8)]];
    for classes in refused {
        create(classes).unwrap_err();
        assert!(!path.exists(), "{classes:?}");
    }
    // What was there before stays.
    std::fs::create_dir(&path).unwrap();
    std::fs::write(path.join("mine"), b"data").unwrap();
    for classes in refused {
        create(classes).unwrap_err();
        let left = std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name());
        let mut left: Vec<_> = left.collect();
        left.sort();
        assert_eq!(left, ["lock", "mine"], "{classes:?}");
    }
    create(&[class("file", 8)]).unwrap();
}
