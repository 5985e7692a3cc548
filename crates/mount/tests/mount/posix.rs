//! What programs rely on: a case each.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, SystemTime};

use rustix::fs::{XattrFlags, getxattr, listxattr, removexattr, setxattr};
use rustix::io::Errno;

use crate::{CLASS_BYTES, Mount};

fn number(error: std::io::Error) -> i32 {
    error.raw_os_error().unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn renames_replace_files_and_empty_folders_and_open_files_stay_readable() {
    let Some(mut mount) = Mount::new() else { return };
    let root = mount.root();
    fs::write(root.join("old"), "old").unwrap();
    fs::write(root.join("new"), "new").unwrap();
    let mut open = File::open(root.join("old")).unwrap();
    fs::rename(root.join("new"), root.join("old")).unwrap();
    assert_eq!(fs::read_to_string(root.join("old")).unwrap(), "new");
    let mut text = String::new();
    open.read_to_string(&mut text).unwrap();
    assert_eq!((text.as_str(), open.metadata().unwrap().nlink()), ("old", 0));
    drop(open);
    for folder in ["a", "a/b", "empty", "full"] {
        fs::create_dir(root.join(folder)).unwrap();
    }
    fs::write(root.join("a/b/file"), "x").unwrap();
    fs::write(root.join("full/file"), "y").unwrap();
    let rename = |from: &str, to: &str| fs::rename(root.join(from), root.join(to));
    rename("a", "empty").unwrap();
    assert_eq!(number(rename("empty", "full").unwrap_err()), libc::ENOTEMPTY);
    assert_eq!(number(rename("empty", "empty/b/c").unwrap_err()), libc::EINVAL);
    assert_eq!(number(rename("old", "full").unwrap_err()), libc::EISDIR);
    assert_eq!(number(rename("full", "old").unwrap_err()), libc::ENOTDIR);
    assert_eq!(number(rename("nothing", "x").unwrap_err()), libc::ENOENT);
    let (from, to) = (root.join("old"), root.join("full/file"));
    let noreplace = rustix::fs::RenameFlags::NOREPLACE;
    let renamed = rustix::fs::renameat_with(rustix::fs::CWD, &from, rustix::fs::CWD, &to, noreplace);
    assert_eq!(renamed.unwrap_err(), Errno::EXIST);
    mount.again();
    assert_eq!(names(&root), ["empty", "full", "old"]);
    assert_eq!(fs::read_to_string(root.join("empty/b/file")).unwrap(), "x");
}

#[test]
fn unlinked_files_live_until_they_are_closed() {
    let Some(mut mount) = Mount::new() else { return };
    let root = mount.root();
    let free = || rustix::fs::statvfs(&root).unwrap().f_bfree;
    let before = free();
    let path = root.join("file");
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path).unwrap();
    file.write_all_at(&[7; 1 << 20], 0).unwrap();
    file.sync_all().unwrap();
    fs::remove_file(&path).unwrap();
    assert_eq!(fs::metadata(&path).unwrap_err().kind(), ErrorKind::NotFound);
    fs::write(&path, "another").unwrap();
    file.write_all_at(&[8; 10], 5 << 20).unwrap();
    file.sync_all().unwrap();
    let mut bytes = [0; 12];
    assert_eq!(file.read_at(&mut bytes, (5 << 20) - 2).unwrap(), 12);
    assert_eq!(bytes, [0, 0, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8]);
    drop(file);
    fs::remove_file(&path).unwrap();
    assert!(names(&root).is_empty());
    mount.again();
    assert_eq!(free(), before);
}

#[test]
fn appends_go_to_the_end_whoever_made_it() {
    let Some(mount) = Mount::new() else { return };
    let path = mount.root().join("log");
    let append =
        |flags: i32| OpenOptions::new().append(true).create(true).custom_flags(flags).open(&path).unwrap();
    let mut writers = [append(0), append(libc::O_DIRECT), append(libc::O_DSYNC)];
    for round in 0..20_u8 {
        for writer in &mut writers {
            writer.write_all(&[round; 100]).unwrap();
        }
    }
    let expected: Vec<u8> = (0..20).flat_map(|round| [round; 300]).collect();
    assert_eq!(fs::read(&path).unwrap(), expected);
}

#[test]
fn threads_that_append_at_once_lose_nothing() {
    let Some(mount) = Mount::new() else { return };
    let path = mount.root().join("log");
    std::thread::scope(|scope| {
        for thread in 0..4_u8 {
            let path = &path;
            scope.spawn(move || {
                let mut file = OpenOptions::new().append(true).create(true).open(path).unwrap();
                (0..100).for_each(|_| file.write_all(&[thread; 64]).unwrap());
            });
        }
    });
    let bytes = fs::read(&path).unwrap();
    assert_eq!(bytes.len(), 4 * 100 * 64);
    for thread in 0..4 {
        let whole = bytes.chunks(64).filter(|chunk| chunk.iter().all(|byte| *byte == thread)).count();
        assert_eq!(whole, 100);
    }
}

#[test]
fn names_have_limits_and_links_are_refused() {
    let Some(mount) = Mount::new() else { return };
    let root = mount.root();
    fs::write(root.join("n".repeat(255)), "").unwrap();
    assert_eq!(number(fs::write(root.join("n".repeat(256)), "").unwrap_err()), libc::ENAMETOOLONG);
    let mut deep = root.clone();
    let mut made = 0;
    let refused = loop {
        deep.push("d".repeat(100));
        match fs::create_dir(&deep) {
            Ok(()) => made += 1,
            Err(error) => break error,
        }
    };
    assert_eq!((made, number(refused)), (10, libc::ENAMETOOLONG));
    fs::write(root.join("水と油"), "x").unwrap();
    assert!(names(&root).contains(&"水と油".to_owned()));
    fs::write(root.join("file"), "x").unwrap();
    assert_eq!(number(fs::hard_link(root.join("file"), root.join("link")).unwrap_err()), libc::EPERM);
    let symlink = std::os::unix::fs::symlink("file", root.join("link"));
    assert_eq!(number(symlink.unwrap_err()), libc::EPERM);
    assert_eq!(number(fs::write(root.join("tanada.placement"), "x").unwrap_err()), libc::EPERM);
    let create_new = OpenOptions::new().write(true).create_new(true).open(root.join("file"));
    assert_eq!(number(create_new.unwrap_err()), libc::EEXIST);
    assert_eq!(number(fs::remove_file(root.join("nothing")).unwrap_err()), libc::ENOENT);
    assert_eq!(number(File::open(root.join("file/below")).unwrap_err()), libc::ENOTDIR);
}

#[test]
fn folders_with_many_files_are_listed_as_a_whole_and_removed_when_empty() {
    let Some(mut mount) = Mount::new() else { return };
    let folder = mount.root().join("many");
    fs::create_dir(&folder).unwrap();
    let expected: Vec<String> = (0..2000).map(|no| format!("{no:04}")).collect();
    expected.iter().for_each(|name| fs::write(folder.join(name), name).unwrap());
    assert_eq!(names(&folder), expected);
    assert_eq!(number(fs::remove_dir(&folder).unwrap_err()), libc::ENOTEMPTY);
    mount.again();
    assert_eq!(names(&folder), expected);
    fs::remove_dir_all(&folder).unwrap();
    assert!(names(&mount.root()).is_empty());
}

#[test]
fn owners_permissions_and_times_are_kept() {
    let Some(mut mount) = Mount::new() else { return };
    let root = mount.root();
    let then = SystemTime::UNIX_EPOCH + Duration::new(1_000_000_007, 123_456_789);
    for (name, mode) in [("folder", 0o2750), ("file", 0o640)] {
        let path = root.join(name);
        if name == "folder" {
            fs::create_dir(&path).unwrap()
        } else {
            fs::write(&path, "x").unwrap()
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        std::os::unix::fs::chown(&path, Some(4321), Some(8765)).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        File::open(&path).unwrap().set_modified(then).unwrap();
    }
    mount.again();
    for (name, mode) in [("folder", 0o2750), ("file", 0o640)] {
        let found = fs::metadata(root.join(name)).unwrap();
        assert_eq!((found.mode() & 0o7777, found.uid(), found.gid()), (mode, 4321, 8765), "{name}");
        assert_eq!(found.modified().unwrap(), then, "{name}");
    }
    // A folder with that bit gives its group to what is made in it.
    fs::write(root.join("folder/inside"), "x").unwrap();
    assert_eq!(fs::metadata(root.join("folder/inside")).unwrap().gid(), 8765);
    let before = fs::metadata(root.join("file")).unwrap().modified().unwrap();
    fs::write(root.join("file"), "y").unwrap();
    assert!(fs::metadata(root.join("file")).unwrap().modified().unwrap() > before);
}

#[test]
fn extended_attributes_set_compression_and_classes_and_are_inherited() {
    let Some(mut mount) = Mount::new() else { return };
    let root = mount.root();
    let set =
        |path: &Path, name: &str, value: &str| setxattr(path, name, value.as_bytes(), XattrFlags::empty());
    let get = |path: &Path, name: &str| {
        let mut bytes = [0; 64];
        getxattr(path, name, &mut bytes).map(|len| String::from_utf8(bytes[..len].to_vec()).unwrap())
    };
    let folder = root.join("folder");
    fs::create_dir(&folder).unwrap();
    set(&folder, "user.tanada.compression", "lz4").unwrap();
    set(&folder, "user.tanada.class", "fast").unwrap();
    assert_eq!(set(&folder, "user.tanada.compression", "rot13").unwrap_err(), Errno::INVAL);
    assert_eq!(set(&folder, "user.tanada.pin", "nowhere").unwrap_err(), Errno::NOENT);
    assert_eq!(set(&folder, "user.colour", "red").unwrap_err(), Errno::OPNOTSUPP);
    fs::create_dir(folder.join("below")).unwrap();
    let path = folder.join("below/file");
    fs::write(&path, vec![b'x'; 1 << 20]).unwrap();
    File::open(&path).unwrap().sync_all().unwrap();
    mount.again();
    assert_eq!(get(&path, "user.tanada.compression").unwrap(), "lz4");
    assert_eq!(get(&folder.join("below"), "user.tanada.class").unwrap(), "fast");
    let found = fs::metadata(&path).unwrap();
    assert!(found.blocks() * 512 < found.len(), "{} blocks of {} bytes", found.blocks(), found.len());
    set(&path, "user.tanada.compression", "zstd:5").unwrap();
    assert_eq!(get(&path, "user.tanada.compression").unwrap(), "zstd:5");
    let mut list = [0; 256];
    let len = listxattr(&path, &mut list).unwrap();
    assert!(String::from_utf8_lossy(&list[..len]).contains("user.tanada.compression\0"));
    removexattr(&path, "user.tanada.compression").unwrap();
    assert_eq!(get(&path, "user.tanada.compression").unwrap_err(), Errno::NODATA);
    assert_eq!(fs::read(&path).unwrap(), vec![b'x'; 1 << 20]);
}

/// The attribute was kept, and the chunks stayed where they were.
#[test]
fn a_file_that_is_pinned_moves_to_its_class() {
    let Some(mount) = Mount::new() else { return };
    let path = mount.root().join("file");
    fs::write(&path, vec![b'x'; 3 << 20]).unwrap();
    File::open(&path).unwrap().sync_all().unwrap();
    let pin = |class: &str| setxattr(&path, "user.tanada.pin", class.as_bytes(), XattrFlags::empty());
    for class in ["fast", "slow", "fast"] {
        pin(class).unwrap();
        assert_eq!(mount.classes_of("file"), [class]);
    }
    assert_eq!(fs::read(&path).unwrap(), vec![b'x'; 3 << 20]);
    // More than the other class has left: the pin stays as it was.
    let large = mount.root().join("large");
    fs::write(&large, vec![b'y'; 150 << 20]).unwrap();
    let other = mount.root().join("other");
    setxattr(&large, "user.tanada.pin", b"slow", XattrFlags::empty()).unwrap();
    fs::write(&other, vec![b'z'; 150 << 20]).unwrap();
    let full = setxattr(&other, "user.tanada.pin", b"slow", XattrFlags::empty());
    assert_eq!(full.unwrap_err(), Errno::NOSPC);
    assert_eq!(getxattr(&other, "user.tanada.pin", &mut [0; 64]).unwrap_err(), Errno::NODATA);
    assert_eq!(fs::read(&other).unwrap(), vec![b'z'; 150 << 20]);
}

#[test]
fn locks_keep_others_out() {
    let Some(mount) = Mount::new() else { return };
    let path = mount.root().join("file");
    fs::write(&path, "x").unwrap();
    let (first, second) = (File::open(&path).unwrap(), File::open(&path).unwrap());
    first.lock().unwrap();
    assert!(second.try_lock().is_err());
    first.unlock().unwrap();
    second.try_lock_shared().unwrap();
    first.try_lock_shared().unwrap();
}

#[test]
fn a_full_volume_refuses_and_goes_on_when_space_is_free_again() {
    let Some(mount) = Mount::new() else { return };
    let root = mount.root();
    let space = rustix::fs::statvfs(&root).unwrap();
    assert!(space.f_blocks * space.f_frsize <= 2 * CLASS_BYTES);
    let file = File::create(root.join("small")).unwrap();
    let allocated = rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, 4 * CLASS_BYTES);
    assert_eq!(allocated.unwrap_err(), Errno::NOSPC);
    let mut big = File::create(root.join("big")).unwrap();
    let piece = vec![1; 4 << 20];
    let refused = loop {
        if let Err(error) = big.write_all(&piece) {
            break error;
        }
        assert!(big.stream_position().unwrap() <= 2 * CLASS_BYTES);
    };
    assert_eq!(number(refused), libc::ENOSPC);
    drop(big);
    fs::remove_file(root.join("big")).unwrap();
    fs::write(root.join("small"), &piece).unwrap();
    assert_eq!(fs::read(root.join("small")).unwrap(), piece);
}

#[test]
fn open_files_keep_a_volume_mounted() {
    let Some(mut mount) = Mount::new() else { return };
    let root = mount.root();
    fs::write(root.join("file"), "x").unwrap();
    let file = File::open(root.join("file")).unwrap();
    let (mounted, _) = mount.served.as_ref().unwrap();
    assert_eq!(mounted.unmount(false).unwrap_err().kind(), ErrorKind::ResourceBusy);
    assert_eq!(tanada_mount::mounted_volume(&root), Some(root.with_file_name("volume")));
    drop(file);
    mount.again();
    assert_eq!(fs::read_to_string(root.join("file")).unwrap(), "x");
}
