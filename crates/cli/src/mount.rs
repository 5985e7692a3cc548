//! `tanada mount` and `tanada umount`: a volume as a file system.
//!
//! Without `--foreground` the program starts itself again as the process that serves the mount, waits until it serves,
//! and ends. What that process has to say later goes to `mount.log` in the volume's folder.
//!
//! A signal to end unmounts and closes the volume in order. Where files are still open it stays mounted, and a second
//! signal takes it away under them: what they had synced is kept.

use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use tanada_advisor::{Guide, Listening};
use tanada_base::ByteSize;
use tanada_io::{ExecutorOptions, Executors};
use tanada_mount::{FileSystem, MountOptions, Mounted, kernel_refusal, mounted_volume};
use tanada_volume::ErrorKind;
use tanada_volume::directory::{Directory, DirectoryConfig, DirectoryLock, Settings};
use tokio::signal::unix::{SignalKind, signal};

use crate::failure::{Failure, Outcome};

/// How often to look whether somebody has unmounted it.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Where the serving process writes what it has to say.
const LOG: &str = "mount.log";

/// Arguments of `tanada mount`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tanada mount vol /mnt/vol --allow-other
  setfattr -n user.tanada.compression -v lz4 /mnt/vol/mysql
  tanada mount vol /mnt/vol --allow-other --policy benefit
  tanada umount /mnt/vol

Files are objects of the volume. What fsync has returned for is durable. Attributes of files and folders:
user.tanada.compression, .page_size, .encryption, .class and .pin; those of a folder hold for what is made in it.")]
pub struct MountArguments {
    /// The volume's folder
    #[arg(value_name = "DIR")]
    volume: PathBuf,
    /// The folder where it appears
    #[arg(value_name = "MOUNTPOINT")]
    folder: PathBuf,
    /// Let other users in, as the permissions of files say
    #[arg(long)]
    allow_other: bool,
    /// Change nothing
    #[arg(long)]
    read_only: bool,
    /// Serve in this process, until a signal ends it or it is unmounted
    #[arg(long)]
    foreground: bool,
    /// Place chunks by this policy (see docs/placement.md), and take announcements of `tanada advise`
    #[arg(long, value_name = "POLICY")]
    policy: Option<String>,
    /// Bytes a second that placement may copy, like 20MB; without it there is no limit
    #[arg(long, value_name = "SIZE", requires = "policy")]
    bytes_per_second: Option<ByteSize>,
    /// Threads that read requests of the kernel
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=64))]
    threads: u8,
    /// Threads that compress and encrypt pages and store them behind the back of who writes them; fsync waits for
    /// them. 0: who writes does it
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=64))]
    cleaners: u8,
}

/// Arguments of `tanada umount`.
#[derive(Debug, Args)]
pub struct UmountArguments {
    /// The folder where a volume is mounted
    #[arg(value_name = "MOUNTPOINT")]
    folder: PathBuf,
    /// Also if files are open: they give errors from then on
    #[arg(long)]
    force: bool,
}

/// Runs `tanada mount`.
pub fn run(runtime: &tokio::runtime::Runtime, arguments: &MountArguments) -> Outcome {
    if let Some(why) = kernel_refusal() {
        return Err(Failure::failed(format!("volumes cannot be mounted here: {why}")));
    }
    if arguments.foreground { serve(runtime, arguments) } else { start(arguments) }
}

/// Starts the process that serves the mount, and waits until it does.
fn start(arguments: &MountArguments) -> Outcome {
    DirectoryConfig::load(&arguments.volume)?;
    let path = arguments.volume.join(LOG);
    let failed =
        |what: &str, error: &std::io::Error| Failure::failed(format!("{}: {what}: {error}", path.display()));
    let mut options = OpenOptions::new();
    let log =
        options.create(true).append(true).open(&path).map_err(|error| failed("cannot open it", &error))?;
    let before = log.metadata().map_or(0, |log| log.len());
    let program = std::env::current_exe().map_err(|error| failed("cannot find this program", &error))?;
    let mut command = Command::new(program);
    command.arg("mount").arg(&arguments.volume).arg(&arguments.folder).arg("--foreground");
    command.arg("--threads").arg(arguments.threads.to_string());
    command.arg("--cleaners").arg(arguments.cleaners.to_string());
    command.args(arguments.allow_other.then_some("--allow-other"));
    command.args(arguments.read_only.then_some("--read-only"));
    command.args(arguments.policy.iter().flat_map(|policy| ["--policy", policy]));
    if let Some(limit) = &arguments.bytes_per_second {
        command.arg("--bytes-per-second").arg(limit.bytes().to_string());
    }
    // It outlives the terminal's signals.
    command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
    let mut child = command.spawn().map_err(|error| failed("cannot start the serving process", &error))?;
    let mut line = String::new();
    if let Some(out) = child.stdout.take() {
        let _ = BufReader::new(out).read_line(&mut line);
    }
    if !line.is_empty() {
        print!("{line}");
        return Ok(());
    }
    let _ = child.wait();
    let said = fs::read(&path).unwrap_or_default();
    let said = said.get(usize::try_from(before).unwrap_or(0)..).unwrap_or_default();
    let said = String::from_utf8_lossy(said);
    let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
    Err(Failure::failed(last.trim_start_matches("tanada: ").trim_start_matches("error: ").to_owned()))
}

/// Serves the mount until it is taken away.
fn serve(runtime: &tokio::runtime::Runtime, arguments: &MountArguments) -> Outcome {
    let executors = Executors::start(ExecutorOptions::default()).map_err(Failure::failed)?;
    let settings =
        Settings { cleaners: usize::from(arguments.cleaners), ..tanada_query::volume::settings(&executors) };
    let (folder, buffers) = (arguments.volume.clone(), executors.buffers().clone());
    let options = tanada_volume::OpenOptions { read_only: arguments.read_only, ..Default::default() };
    let open = move || async move {
        let directory = Directory::open(&folder, &options, settings).await?;
        let system = FileSystem::open(directory.volume().clone(), buffers).await;
        Ok::<_, Failure>((directory, system.map_err(Failure::failed)?))
    };
    let (directory, system) = executors.block_on(open).map_err(Failure::failed)??;
    let options = MountOptions {
        volume: arguments.volume.canonicalize().unwrap_or_else(|_| arguments.volume.clone()),
        allow_other: arguments.allow_other,
        threads: usize::from(arguments.threads),
    };
    let begun = Placement::start(runtime, arguments, &directory, &executors).and_then(|placement| {
        if let Some(placement) = &placement {
            system.observe(placement.guide.clone());
        }
        let mounted = Mounted::mount(system, &executors, &arguments.folder, &options);
        Ok((placement, mounted.map_err(Failure::failed)?))
    });
    let (placement, mounted) = match begun {
        Ok(begun) => begun,
        Err(failure) => {
            close(&executors, directory, None)?;
            return Err(failure);
        }
    };
    let said = format!("{} is mounted at {}", arguments.volume.display(), arguments.folder.display());
    let mut out = std::io::stdout();
    let _ = writeln!(out, "{said}").and_then(|()| out.flush());
    runtime.block_on(until_over(&mounted, &arguments.folder))?;
    let ended = mounted.wait();
    let (system, ended) = match ended {
        Ok(system) => (Some(system), Ok(())),
        Err(error) => (None, Err(Failure::failed(format!("the connection to the kernel failed: {error}")))),
    };
    let kept = placement.map_or(Ok(()), |placement| placement.stop(runtime, &executors));
    close(&executors, directory, system)?;
    ended.and(kept)
}

/// Placement beside the mount.
struct Placement {
    guide: Arc<Guide>,
    listening: Listening,
}

impl Placement {
    /// Begins, if it is wanted.
    fn start(
        runtime: &tokio::runtime::Runtime,
        arguments: &MountArguments,
        directory: &Directory,
        executors: &Arc<Executors>,
    ) -> Outcome<Option<Placement>> {
        let Some(policy) = &arguments.policy else { return Ok(None) };
        let limit = arguments.bytes_per_second.map(|limit| limit.bytes());
        let begin = async {
            let guide = Guide::start(directory, policy, limit, executors).await?;
            let listening = tanada_advisor::listen(&arguments.volume, guide.clone())?;
            Ok::<_, tanada_advisor::Error>(Placement { guide, listening })
        };
        runtime.block_on(begin).map(Some).map_err(Failure::failed)
    }

    /// Ends, and keeps what was learned.
    fn stop(self, runtime: &tokio::runtime::Runtime, executors: &Arc<Executors>) -> Outcome {
        drop(self.listening);
        runtime.block_on(self.guide.stop(executors)).map_err(Failure::failed)
    }
}

/// Waits until the mount is gone; signals take it away.
async fn until_over(mounted: &Mounted, folder: &Path) -> Outcome {
    let listen =
        |kind| signal(kind).map_err(|error| Failure::failed(format!("cannot listen for signals: {error}")));
    let (mut terminated, mut interrupted) =
        (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?);
    let mut is_asked = false;
    while !mounted.is_over() {
        tokio::select! {
            _ = terminated.recv() => {}
            _ = interrupted.recv() => {}
            () = tokio::time::sleep(LOOK_EVERY) => continue,
        }
        if let Err(error) = mounted.unmount(is_asked) {
            let folder = folder.display();
            eprintln!(
                "tanada: {folder} stays mounted: {error}; close its files, or send the signal once more"
            );
        }
        is_asked = true;
    }
    Ok(())
}

/// Closes the volume in order.
fn close(executors: &Arc<Executors>, directory: Directory, system: Option<Arc<FileSystem>>) -> Outcome {
    let work = move || async move {
        if let Some(system) = system {
            system.sync().await.map_err(Failure::failed)?;
        }
        directory.close().await.map_err(Failure::failed)
    };
    executors.block_on(work).map_err(Failure::failed)?
}

/// Runs `tanada umount`.
pub fn unmount(arguments: &UmountArguments) -> Outcome {
    let folder = arguments.folder.display();
    let Some(volume) = mounted_volume(&arguments.folder) else {
        return Err(Failure::failed(format!("no volume is mounted at {folder}")));
    };
    tanada_mount::unmount(&arguments.folder, arguments.force).map_err(|error| {
        let hint = match error.kind() {
            std::io::ErrorKind::ResourceBusy => {
                "; close its files, or use --force, after which they give errors"
            }
            _ => "",
        };
        Failure::failed(format!("{folder} stays mounted: {error}{hint}"))
    })?;
    // The process that served it is closing the volume.
    loop {
        match DirectoryLock::shared(&volume) {
            Err(error) if error.kind() == ErrorKind::Locked => std::thread::sleep(LOOK_EVERY),
            Err(error) => return Err(Failure::failed(error)),
            Ok(_) => return Ok(()),
        }
    }
}
