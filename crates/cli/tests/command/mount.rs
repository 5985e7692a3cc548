//! `tanada mount` and `tanada umount`, as people and scripts meet them.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::tanada;

/// Why nothing can be mounted here, if so; said where a test is left out.
pub fn refusal() -> Option<String> {
    let device = fs::OpenOptions::new().read(true).write(true).open("/dev/fuse");
    let why = device.err()?;
    eprintln!("skipped: /dev/fuse: {why}");
    Some(why.to_string())
}

/// A volume and the process that serves it at a folder.
pub struct Served {
    folder: TempDir,
    process: Option<Child>,
    policy: Option<&'static str>,
    /// Cleaners of its pages.
    cleaners: u8,
}

impl Served {
    /// A new volume with this chunk size, mounted.
    pub fn new(size: &str) -> Served {
        Served::with_cleaners(size, 0)
    }

    /// The same with so many cleaners.
    pub fn with_cleaners(size: &str, cleaners: u8) -> Served {
        Served::with_classes(&[&format!("disk=VOLUME,size={size}")], None, cleaners)
    }

    /// A new volume of a fast and a slow class, whose chunks are placed.
    pub fn with_policy(policy: &'static str) -> Served {
        Served::with_classes(&["fast=VOLUME,size=64MiB", "slow=VOLUME,size=256MiB"], Some(policy), 0)
    }

    /// A new volume of these classes, `VOLUME` being its folder; its chunks are placed if there is a policy.
    pub fn with_classes(classes: &[&str], policy: Option<&'static str>, cleaners: u8) -> Served {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let mut served = Served { folder, process: None, policy, cleaners };
        // Servers that run as another user pass through.
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(served.folder.path(), open).unwrap();
        fs::create_dir(served.root()).unwrap();
        let volume = served.volume();
        let classes: Vec<String> = classes.iter().map(|class| class.replace("VOLUME", &volume)).collect();
        let classes = classes.iter().flat_map(|class| ["--class", class.as_str()]);
        let create: Vec<&str> = ["volume", "create", &volume].into_iter().chain(classes).collect();
        tanada(&create).output();
        served.mount();
        served
    }

    pub fn volume(&self) -> String {
        self.folder.path().join("volume").display().to_string()
    }

    /// Where it is mounted.
    pub fn root(&self) -> PathBuf {
        self.folder.path().join("mount")
    }

    /// Mounts it and waits until it is served.
    pub fn mount(&mut self) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tanada"));
        command.args(["mount", &self.volume()]).arg(self.root()).args(["--foreground", "--allow-other"]);
        command.args(["--cleaners", &self.cleaners.to_string()]);
        command.args(self.policy.iter().flat_map(|policy| ["--policy", policy]));
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut said = String::new();
        let out = process.stdout.take().unwrap();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut said).unwrap();
        assert!(said.contains(" is mounted at "), "{said:?}");
        self.process = Some(process);
    }

    /// Kills the process that serves it, and takes the stale mount away.
    pub fn kill(&mut self) {
        let mut process = self.process.take().unwrap();
        process.kill().unwrap();
        process.wait().unwrap();
        self.unmount(&["--force"]);
    }

    /// Unmounts it; the process that served it ends well.
    pub fn end(&mut self) {
        self.unmount(&[]);
        assert!(self.process.take().unwrap().wait().unwrap().success());
    }

    fn unmount(&self, options: &[&str]) {
        let root = self.root().display().to_string();
        tanada(&[&["umount", &root], options].concat()).output();
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
            let _ = Command::new("umount").arg("-l").arg(self.root()).status();
        }
    }
}

#[test]
fn a_volume_is_mounted_by_a_process_of_its_own_and_closed_by_umount() {
    if refusal().is_some() {
        return;
    }
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (volume, root) = (folder.path().join("volume"), folder.path().join("mount"));
    fs::create_dir(&root).unwrap();
    let (volume, root) = (volume.display().to_string(), root.display().to_string());
    tanada(&["volume", "create", &volume, "--class", &format!("disk={volume},size=64MiB")]).output();
    let said = tanada(&["mount", &volume, &root]).output();
    assert_eq!(said, format!("{volume} is mounted at {root}\n"));
    fs::create_dir(format!("{root}/shop")).unwrap();
    fs::write(format!("{root}/shop/orders"), "rice").unwrap();
    let error = tanada(&["mount", &volume, &root]).error(1);
    assert!(error.contains("in use"), "{error}");
    let file = fs::File::open(format!("{root}/shop/orders")).unwrap();
    let error = tanada(&["umount", &root]).error(1);
    assert!(error.contains("--force"), "{error}");
    drop(file);
    assert_eq!(tanada(&["umount", &root]).output(), "");
    let error = tanada(&["umount", &root]).error(1);
    assert!(error.contains("no volume is mounted"), "{error}");
    // It was closed in order, and its files are objects.
    let listed = tanada(&["volume", "ls", &volume]).output();
    assert!(listed.contains("shop/orders"), "{listed}");
    let checked = tanada(&["volume", "check", &volume]).output();
    assert!(!checked.contains("unclean"), "{checked}");
}

#[test]
fn a_signal_ends_a_mount_in_order() {
    if refusal().is_some() {
        return;
    }
    let mut served = Served::new("64MiB");
    fs::write(served.root().join("file"), "rice").unwrap();
    let mut process = served.process.take().unwrap();
    let id = process.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    assert!(process.wait().unwrap().success());
    assert!(!served.root().join("file").exists());
    served.mount();
    assert_eq!(fs::read_to_string(served.root().join("file")).unwrap(), "rice");
    served.end();
}

#[test]
fn a_stale_mount_is_named_and_can_be_taken_away() {
    if refusal().is_some() {
        return;
    }
    let mut served = Served::new("64MiB");
    fs::write(served.root().join("synced"), "rice").unwrap();
    fs::File::open(served.root().join("synced")).unwrap().sync_all().unwrap();
    let mut process = served.process.take().unwrap();
    process.kill().unwrap();
    process.wait().unwrap();
    let root = served.root().display().to_string();
    let error = tanada(&["mount", &served.volume(), &root]).error(1);
    assert!(error.contains("stale mount") && error.contains("tanada umount"), "{error}");
    tanada(&["umount", &root]).output();
    served.mount();
    assert_eq!(fs::read_to_string(served.root().join("synced")).unwrap(), "rice");
    served.end();
}

#[test]
fn a_folder_that_is_missing_and_one_without_a_volume_are_refused() {
    if refusal().is_some() {
        return;
    }
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    tanada(&["volume", "create", &path("volume"), "--class", &format!("disk={},size=8MiB", path("volume"))])
        .output();
    let error = tanada(&["mount", &path("volume"), &path("nowhere")]).error(1);
    assert!(error.contains("nowhere"), "{error}");
    let error = tanada(&["mount", &path("nothing"), &path("volume")]).error(1);
    assert!(error.contains("nothing holds no volume"), "{error}");
}
