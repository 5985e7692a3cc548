//! Mounting a volume at a folder, and taking it away again.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use fuser::{Config, MountOption, Session, SessionACL};
use nix::mount::{MntFlags, umount2};
use tanada_io::Executors;

use super::requests::Requests;
use crate::FileSystem;

/// The name of the kernel's device.
const DEVICE: &str = "/dev/fuse";

/// What the table of mounts has before the volume's folder.
const SOURCE: &str = "tanada:";

/// How long to wait between looks whether the last requests are done.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// How to mount.
#[derive(Debug, Clone)]
pub struct MountOptions {
    /// The folder of the volume, as the table of mounts shows it.
    pub volume: PathBuf,
    /// Whether users other than the one who mounts may come in; permissions hold for all of them.
    pub allow_other: bool,
    /// Threads that read the kernel's requests. Default: 2.
    pub threads: usize,
}

impl Default for MountOptions {
    fn default() -> MountOptions {
        MountOptions { volume: PathBuf::new(), allow_other: false, threads: 2 }
    }
}

/// A file system at a folder. It ends when somebody unmounts it: [`unmount`], `umount`, or [`Mounted::unmount`].
pub struct Mounted {
    folder: PathBuf,
    system: Arc<FileSystem>,
    session: JoinHandle<io::Result<()>>,
}

impl fmt::Debug for Mounted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mounted").field("folder", &self.folder).finish_non_exhaustive()
    }
}

/// Why this machine mounts no volumes, if so.
pub fn kernel_refusal() -> Option<String> {
    let opened = fs::OpenOptions::new().read(true).write(true).open(DEVICE);
    let error = opened.err()?;
    Some(match error.kind() {
        io::ErrorKind::NotFound => {
            format!("there is no {DEVICE}: load the kernel's module fuse, or give the container that device")
        }
        _ => format!("{DEVICE} cannot be opened ({error}): that takes root, or membership in its group"),
    })
}

impl Mounted {
    /// Mounts a file system at `folder`, which has to be there. Its I/O is done on `executors`.
    ///
    /// # Errors
    /// If the kernel refuses; the message says what to do where that is known.
    pub fn mount(
        system: Arc<FileSystem>,
        executors: &Arc<Executors>,
        folder: &Path,
        options: &MountOptions,
    ) -> io::Result<Mounted> {
        let refuse = |why: String| io::Error::new(io::ErrorKind::InvalidInput, why);
        if let Some(why) = kernel_refusal() {
            return Err(refuse(why));
        }
        match fs::metadata(folder) {
            Err(error) if error.raw_os_error() == Some(libc::ENOTCONN) => {
                let name = folder.display();
                let why = format!(
                    "{name} is a stale mount, whose process is gone: run `tanada umount {name}` first"
                );
                return Err(refuse(why));
            }
            Err(error) => return Err(refuse(format!("{}: {error}", folder.display()))),
            Ok(found) if !found.is_dir() => {
                return Err(refuse(format!("{} is no folder", folder.display())));
            }
            Ok(_) => {}
        }
        if let Some(volume) = mounted_volume(folder) {
            return Err(refuse(format!("{} has the volume {} already", folder.display(), volume.display())));
        }
        let mut config = Config::default();
        let source = format!("{SOURCE}{}", options.volume.display());
        config.mount_options = vec![
            MountOption::FSName(source),
            MountOption::Subtype("tanada".to_owned()),
            MountOption::DefaultPermissions,
            MountOption::NoSuid,
            MountOption::NoDev,
            MountOption::NoAtime,
        ];
        if system.is_read_only() {
            config.mount_options.push(MountOption::RO);
        }
        config.acl = if options.allow_other { SessionACL::All } else { SessionACL::Owner };
        config.n_threads = Some(options.threads.max(1));
        config.clone_fd = true;
        let requests = Requests::new(system.clone(), executors.clone());
        let session = Session::new(requests, folder, &config)?;
        let run = move || session.run();
        let session = std::thread::Builder::new().name("tanada-mount".to_owned()).spawn(run)?;
        Ok(Mounted { folder: folder.to_owned(), system, session })
    }

    /// Whether it was unmounted.
    pub fn is_over(&self) -> bool {
        self.session.is_finished()
    }

    /// Waits until it is unmounted and all requests are answered; the file system, which nobody uses any more.
    ///
    /// # Errors
    /// If the connection to the kernel failed.
    pub fn wait(self) -> io::Result<Arc<FileSystem>> {
        let ended = self.session.join();
        // Tasks have a share in it as long as they run.
        while Arc::strong_count(&self.system) > 1 {
            std::thread::sleep(LOOK_EVERY);
        }
        ended.unwrap_or_else(|_| Err(io::Error::other("a thread that reads requests panicked")))?;
        Ok(self.system)
    }

    /// Unmounts it; with `is_forced` also where files are open, which give errors then.
    ///
    /// # Errors
    /// If files are open and it is not forced: it stays mounted.
    pub fn unmount(&self, is_forced: bool) -> io::Result<()> {
        unmount(&self.folder, is_forced)
    }
}

/// Takes the mount at `folder` away; with `is_forced` also where files are open, which give errors then.
///
/// # Errors
/// If files are open, or nothing is mounted there.
pub fn unmount(folder: &Path, is_forced: bool) -> io::Result<()> {
    if is_forced {
        // First the connection, so that those who wait for an answer get one; then the name, unless that took it away.
        if umount2(folder, MntFlags::MNT_FORCE).is_ok() {
            return Ok(());
        }
        return Ok(umount2(folder, MntFlags::MNT_DETACH)?);
    }
    Ok(umount2(folder, MntFlags::empty())?)
}

/// The folders at which a volume is mounted, seen from this process.
pub fn mount_points(volume: &Path) -> Vec<PathBuf> {
    let volume = volume.canonicalize().unwrap_or_else(|_| volume.to_owned());
    let table = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let points = table.lines().filter_map(|line| {
        let mut fields = line.split(' ');
        let (source, target, kind) = (fields.next()?, fields.next()?, fields.next()?);
        let source = unescaped(source);
        let is_it = kind.starts_with("fuse") && source.strip_prefix(SOURCE).map(Path::new) == Some(&volume);
        is_it.then(|| PathBuf::from(unescaped(target)))
    });
    points.collect()
}

/// The folder of the volume that is mounted at `folder`, if one is, even if its process is gone.
pub fn mounted_volume(folder: &Path) -> Option<PathBuf> {
    // A stale mount cannot be looked at, but what is above it can.
    let absolute = match folder.canonicalize() {
        Ok(absolute) => absolute,
        Err(_) => folder.parent()?.canonicalize().ok()?.join(folder.file_name()?),
    };
    let table = fs::read_to_string("/proc/self/mounts").ok()?;
    let mut mounts = table.lines().filter_map(|line| {
        let mut fields = line.split(' ');
        let (source, target, kind) = (fields.next()?, fields.next()?, fields.next()?);
        let is_here = kind.starts_with("fuse") && Path::new(&unescaped(target)) == absolute;
        is_here.then(|| unescaped(source).strip_prefix(SOURCE).map(PathBuf::from)).flatten()
    });
    mounts.next_back()
}

/// A field of the table of mounts: some characters are octal numbers behind a backslash.
fn unescaped(field: &str) -> String {
    let mut out = Vec::new();
    let mut rest = field.as_bytes();
    while let Some((first, others)) = rest.split_first() {
        let digits = others.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        let number = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match (first, number) {
            (b'\\', Some(byte)) => {
                out.push(byte);
                rest = &others[3..];
            }
            _ => {
                out.push(*first);
                rest = others;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_fields_of_the_table_of_mounts_are_read() {
        assert_eq!(unescaped("/a\\040b\\134c"), "/a b\\c");
        assert_eq!(unescaped("plain\\"), "plain\\");
    }
}
