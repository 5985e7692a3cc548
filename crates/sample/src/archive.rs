//! Finding an archive, and unpacking it to a work folder.
//!
//! 1. A folder whose marker names this very archive is complete: nothing to do.
//! 2. Otherwise the files go to a new folder beside it, each synced to the device (later direct reads must not wait for
//!    this write-back), holes kept.
//! 3. The marker is written last, and the folder takes its name in one step. Two processes may do this at once: one of
//!    them wins, both find it complete.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Component, Path, PathBuf};

use tar::{Archive, EntryType};

use crate::{Error, ErrorKind, Result};

/// Where packages put what belongs to the program, seen from the program's folder.
const SHARED: &str = "../share/tanada";

/// Where the sources have the archives.
const FIXTURES: &str = "fixtures";

const MARKER: &str = "complete";

/// Blocks of zeros of this size stay holes.
const HOLE_BYTES: usize = 4096;

/// The archive called `file`: beside this program, in [`SHARED`], or in the sources that the program was built in.
///
/// # Errors
/// When it lies in none of these, or cannot be read.
pub fn read(file: &str) -> Result<Vec<u8>> {
    let own = std::env::current_exe()
        .map_err(|error| Error::failed(format!("the path of this program cannot be told: {error}")))?;
    let folder = own.parent().unwrap_or(&own);
    // What cargo starts knows where its sources are, wherever it was built.
    let package = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).unwrap_or_default();
    let sources =
        folder.ancestors().chain(package.ancestors()).filter(|above| above.join("Cargo.toml").is_file());
    let folders = [folder.to_owned(), folder.join(SHARED)];
    let all = folders.into_iter().chain(sources.map(|above| above.join(FIXTURES)));
    let Some(path) = all.map(|folder| folder.join(file)).find(|path| path.is_file()) else {
        let folder = folder.display();
        return Err(Error::new(
            ErrorKind::Missing,
            format!(
                "the sample {file} is not in {folder}: put it there; releases and the sources (fixtures) have it"
            ),
        ));
    };
    fs::read(&path).map_err(|error| Error::at_path("read", &path, &error))
}

/// Unpacks `archive` (tar in zstd) to a folder for `directory` under `folder`; gives the path of `directory` in it.
///
/// # Errors
/// When the folder cannot be written, or the archive holds anything but files and folders below its own root.
pub fn unpack(archive: &[u8], directory: &str, folder: &Path) -> Result<PathBuf> {
    let stamp = stamp(archive);
    let target = folder.join(format!("sample-{directory}"));
    if is_complete(&target, &stamp) {
        return Ok(target.join(directory));
    }
    fs::create_dir_all(folder).map_err(|error| Error::at_path("create", folder, &error))?;
    let work = tempfile::Builder::new()
        .prefix(&format!(".sample-{directory}-"))
        .tempdir_in(folder)
        .map_err(|error| Error::at_path("create a folder in", folder, &error))?;
    let decoder = zstd::Decoder::new(archive)
        .map_err(|error| Error::failed(format!("the sample is damaged: {error}")))?;
    unpack_files(&mut Archive::new(decoder), work.path())?;
    let marker = work.path().join(MARKER);
    fs::write(&marker, &stamp).map_err(|error| Error::at_path("write", &marker, &error))?;
    // CRASH: a work folder without its final name is never used.
    put_in_place(&work.keep(), &target, &stamp)?;
    Ok(target.join(directory))
}

/// What the marker of a folder with the files of `archive` holds.
fn stamp(archive: &[u8]) -> String {
    format!("{:08x} {}\n", crc32c::crc32c(archive), archive.len())
}

/// Whether `path` is `directory` as [`unpack`] made it of `archive`.
pub fn is_unpacked(archive: &[u8], directory: &str, path: &Path) -> bool {
    path.ends_with(directory) && path.parent().is_some_and(|target| is_complete(target, &stamp(archive)))
}

fn is_complete(target: &Path, stamp: &str) -> bool {
    fs::read_to_string(target.join(MARKER)).is_ok_and(|found| found == stamp)
}

fn put_in_place(work: &Path, target: &Path, stamp: &str) -> Result<()> {
    if target.exists() && !is_complete(target, stamp) {
        fs::remove_dir_all(target).map_err(|error| Error::at_path("replace", target, &error))?;
    }
    match fs::rename(work, target) {
        Ok(()) => Ok(()),
        // Another process was first.
        Err(_) if is_complete(target, stamp) => {
            fs::remove_dir_all(work).map_err(|error| Error::at_path("remove", work, &error))
        }
        Err(error) => Err(Error::at_path("write", target, &error)),
    }
}

fn unpack_files<R: Read>(archive: &mut Archive<R>, folder: &Path) -> Result<()> {
    let damaged = |error: io::Error| Error::failed(format!("the sample is damaged: {error}"));
    for entry in archive.entries().map_err(damaged)? {
        let mut entry = entry.map_err(damaged)?;
        let inside = entry.path().map_err(damaged)?.into_owned();
        let path = folder.join(checked(&inside)?);
        match entry.header().entry_type() {
            EntryType::Directory => {
                fs::create_dir_all(&path).map_err(|error| Error::at_path("create", &path, &error))?;
            }
            EntryType::Regular | EntryType::GNUSparse => {
                let parent = path.parent().unwrap_or(folder);
                fs::create_dir_all(parent).map_err(|error| Error::at_path("create", parent, &error))?;
                write_sparse(&mut entry, &path).map_err(|error| Error::at_path("write", &path, &error))?;
            }
            other => {
                return Err(Error::new(
                    ErrorKind::InvalidInput,
                    format!(
                        "the archive holds {} of type {other:?}; only files and folders are unpacked",
                        inside.display()
                    ),
                ));
            }
        }
    }
    Ok(())
}

/// `path` if it stays below the folder it is unpacked to.
fn checked(path: &Path) -> Result<&Path> {
    if path.components().all(|component| matches!(component, Component::Normal(_) | Component::CurDir)) {
        Ok(path)
    } else {
        Err(Error::new(
            ErrorKind::InvalidInput,
            format!("the archive names {}, outside of its folder", path.display()),
        ))
    }
}

/// Copies `from` to a new file, skipping blocks of zeros, and syncs it.
fn write_sparse(from: &mut impl Read, path: &Path) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    let mut block = vec![0; HOLE_BYTES];
    let mut size_bytes = 0;
    loop {
        let mut filled = 0;
        while filled < block.len() {
            match from.read(&mut block[filled..])? {
                0 => break,
                count => filled += count,
            }
        }
        if block[..filled].iter().any(|byte| *byte != 0) {
            file.write_all(&block[..filled])?;
        } else {
            file.seek(SeekFrom::Current(filled as i64))?;
        }
        size_bytes += filled as u64;
        if filled < block.len() {
            break;
        }
    }
    file.set_len(size_bytes)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An archive of `files`.
    fn packed(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut builder = tar::Builder::new(zstd::Encoder::new(Vec::new(), 1).unwrap());
        for (name, bytes) in files {
            let mut header = tar::Header::new_gnu();
            // The name is put in as it is: the crate itself refuses to write bad ones.
            header.as_gnu_mut().unwrap().name[..name.len()].copy_from_slice(name.as_bytes());
            header.set_size(bytes.len() as u64);
            header.set_mode(0o600);
            header.set_cksum();
            builder.append(&header, *bytes).unwrap();
        }
        builder.into_inner().unwrap().finish().unwrap()
    }

    #[test]
    fn files_come_out_as_they_went_in_and_only_once() {
        let folder = tempfile::tempdir().unwrap();
        let mut content = vec![0; 20_000];
        content[9000] = 7;
        let archive = packed(&[("data/a/file", &content), ("data/empty", b"")]);
        let data = unpack(&archive, "data", folder.path()).unwrap();
        assert!(is_unpacked(&archive, "data", &data));
        assert!(!is_unpacked(&archive[1..], "data", &data) && !is_unpacked(&archive, "data", folder.path()));
        assert_eq!(fs::read(data.join("a/file")).unwrap(), content);
        assert_eq!(fs::read(data.join("empty")).unwrap(), b"");
        fs::write(data.join("mine"), b"kept").unwrap();
        unpack(&archive, "data", folder.path()).unwrap();
        assert!(data.join("mine").exists(), "a complete folder is left alone");
    }

    #[test]
    fn an_unfinished_or_older_folder_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let data = unpack(&packed(&[("data/old", b"1")]), "data", folder.path()).unwrap();
        unpack(&packed(&[("data/new", b"2")]), "data", folder.path()).unwrap();
        assert!(!data.join("old").exists());
        fs::remove_file(folder.path().join("sample-data").join(MARKER)).unwrap();
        fs::remove_file(data.join("new")).unwrap();
        unpack(&packed(&[("data/new", b"2")]), "data", folder.path()).unwrap();
        assert!(data.join("new").exists());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no work folder is left behind");
    }

    #[test]
    fn nothing_is_written_outside_of_the_folder() {
        for name in ["../evil", "/tmp/evil", "data/../../evil"] {
            let folder = tempfile::tempdir().unwrap();
            let inner = folder.path().join("inner");
            let error = unpack(&packed(&[(name, b"x")]), "data", &inner).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{name}: {error}");
            assert!(!folder.path().join("evil").exists());
        }
    }

    #[test]
    fn a_damaged_archive_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let archive = packed(&[("data/a", &[1; 5000])]);
        assert!(unpack(&archive[..archive.len() / 2], "data", folder.path()).is_err());
        assert!(unpack(b"no archive", "data", folder.path()).is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
