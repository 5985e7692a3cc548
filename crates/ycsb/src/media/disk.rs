//! A file system of its own on a loop device.
//!
//! 1. A file is allocated (staging, and all in memory, on a tmpfs: made sparse), attached to a loop device with direct
//!    I/O, formatted (ext4), mounted.
//! 2. Its name is removed and the device told to detach when it is no longer mounted: so what is left when a benchmark
//!    is killed is one mount.
//! 3. Limits are applied. At the end it is unmounted, and everything goes with that.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tanada_base::ByteSize;

use super::Limits;
use crate::measure::BlockDevice;
use crate::{Error, ErrorKind, Result};

/// What an engine uses of a disk, at least, for which all were made large enough.
const USED_PART: u64 = 8;

/// A mounted file system on a loop device.
#[derive(Debug)]
pub struct LoopDisk {
    mounted: PathBuf,
    device: BlockDevice,
}

impl LoopDisk {
    /// Makes one of `size_bytes` in `directory`, mounted there as `name`; empty. With `limits`, if any.
    ///
    /// # Errors
    /// `Missing` if the machine, the user's rights or the programs (`losetup`, `mkfs.ext4`, `mount`) do not allow it.
    pub fn create(
        directory: &Path,
        name: &str,
        size_bytes: u64,
        limits: Option<&Limits>,
    ) -> Result<LoopDisk> {
        let mounted = directory.join(name);
        let file = directory.join(format!("{name}.image"));
        fs::create_dir_all(&mounted).map_err(|error| Error::at_path("make", &mounted, &error))?;
        // What is allocated in memory is taken from it at once; and staging is made larger than it is used.
        let room = free_room(directory);
        let (program, option) = match room {
            Some(Room { is_memory: true, free_bytes }) if free_bytes < size_bytes / USED_PART => {
                let message = format!(
                    "{} has {} free, and {name} takes {} or more: choose a folder with more room, or fewer records",
                    directory.display(),
                    ByteSize::new(free_bytes),
                    ByteSize::new(size_bytes / USED_PART),
                );
                return Err(Error::new(ErrorKind::Missing, message));
            }
            Some(Room { is_memory: true, .. }) => ("truncate", "-s"),
            _ if name == "staging" => ("truncate", "-s"),
            _ => ("fallocate", "-l"),
        };
        run(program, &[option.as_ref(), size_bytes.to_string().as_ref(), file.as_os_str()])?;
        let attach = ["--find".as_ref(), "--show".as_ref(), "--direct-io=on".as_ref(), file.as_os_str()];
        let attached = run("losetup", &attach);
        // The device holds the file as long as it needs it.
        let node = attached.map(|node| PathBuf::from(node.trim()));
        let made = node.and_then(|node| {
            let made = format_and_mount(&node, &mounted);
            let detached = run("losetup", &["--detach".as_ref(), node.as_os_str()]);
            made.and(detached).map(|_| node)
        });
        let _ = fs::remove_file(&file);
        let node = made?;
        let device = BlockDevice::of_path(&mounted);
        let device = device.ok_or_else(|| Error::failed(format!("{} is no block device", node.display())))?;
        let disk = LoopDisk { mounted, device };
        match limits {
            Some(limits) => limits.apply(device)?,
            // Those of whoever had it before.
            None => Limits::remove(device),
        }
        Ok(disk)
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        &self.mounted
    }

    /// The loop device.
    pub fn device(&self) -> BlockDevice {
        self.device
    }
}

impl Drop for LoopDisk {
    fn drop(&mut self) {
        Limits::remove(self.device);
        // What a process just closed may be busy for a moment; a lazy unmount goes as soon as it is not.
        if run("umount", &[self.mounted.as_os_str()]).is_err() {
            let _ = run("umount", &["--lazy".as_ref(), self.mounted.as_os_str()]);
        }
        let _ = fs::remove_dir(&self.mounted);
    }
}

fn format_and_mount(node: &Path, mounted: &Path) -> Result<()> {
    let at_once = "lazy_itable_init=0,lazy_journal_init=0,nodiscard";
    run("mkfs.ext4", &["-q".as_ref(), "-m0".as_ref(), "-E".as_ref(), at_once.as_ref(), node.as_os_str()])?;
    run("mount", &["-o".as_ref(), "noatime".as_ref(), node.as_os_str(), mounted.as_os_str()])?;
    let _ = fs::remove_dir(mounted.join("lost+found"));
    Ok(())
}

/// What is free in a folder.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    /// It lies in memory, on a tmpfs.
    pub is_memory: bool,
    /// Bytes.
    pub free_bytes: u64,
}

/// What is free in `directory`, where the system tells.
pub(crate) fn free_room(directory: &Path) -> Option<Room> {
    let told =
        run("stat", &["-f".as_ref(), "-c".as_ref(), "%T %a %S".as_ref(), directory.as_os_str()]).ok()?;
    let mut words = told.split_whitespace();
    let is_memory = words.next()? == "tmpfs";
    let (blocks, block_bytes): (u64, u64) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    Some(Room { is_memory, free_bytes: blocks.saturating_mul(block_bytes) })
}

/// Whether loop devices can be had: by whoever owns `/dev/loop-control`.
pub(super) fn is_possible() -> bool {
    let control = fs::OpenOptions::new().read(true).write(true).open("/dev/loop-control");
    control.is_ok() && ["losetup", "mkfs.ext4", "mount", "fallocate"].into_iter().all(is_installed)
}

fn is_installed(program: &str) -> bool {
    let command = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    // Some answer with an error, but they are there.
    command.is_ok()
}

fn run(program: &str, arguments: &[&std::ffi::OsStr]) -> Result<String> {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let output =
        output.map_err(|error| Error::new(ErrorKind::Missing, format!("cannot start {program}: {error}")))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(Error::new(ErrorKind::Missing, format!("{program} failed: {why}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media::MediaKind;

    #[test]
    fn loop_disks_count_writes_and_clean_up() {
        let kind = MediaKind::available();
        if kind == MediaKind::Folder {
            eprintln!("no loop devices here");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let limits = (kind == MediaKind::Limited).then_some(Limits::STAGING);
        let disk = LoopDisk::create(folder.path(), "disk", 64 << 20, limits.as_ref()).unwrap();
        let before = disk.device().counters("x").unwrap();
        let file = fs::File::create(disk.path().join("file")).unwrap();
        std::io::Write::write_all(&mut &file, &vec![7; 8 << 20]).unwrap();
        file.sync_all().unwrap();
        drop(file);
        let written = disk.device().counters("x").unwrap().since(&before).bytes_written;
        assert!((8 << 20..12 << 20).contains(&written), "{written}");
        drop(disk);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
