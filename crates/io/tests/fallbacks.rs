//! What the machine lacks is answered by the next best way, with exactly one warning.
//!
//! Warnings are once a process and sandboxes are for good, so each case runs in a process of its own: the test starts
//! itself again with the case's name in the environment, and reads the warnings from its output.

#![allow(clippy::unwrap_used)]

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use futures::future::join_all;
use tanada_io::{
    Device, DeviceOptions, ExecutorOptions, Executors, Fallback, Method, force_fallback, set_warning_sink,
};

const CASE: &str = "TANADA_FALLBACK_CASE";
const WARNING: &str = "WARNING: ";

/// Runs `case` in a new process; its warnings.
fn warnings_of(
    name: &str,
    case: impl FnOnce(),
    prepare: impl FnOnce(&Path) -> Command,
) -> Option<Vec<String>> {
    if std::env::var(CASE).is_ok_and(|case| case == name) {
        set_warning_sink(|message| println!("\n{WARNING}{message}"));
        case();
        return None;
    }
    let program = std::env::current_exe().unwrap();
    let output = prepare(&program).args([name, "--exact", "--nocapture"]).env(CASE, name).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {} {text}{errors}", output.status);
    assert!(text.contains("1 passed"), "{text}");
    Some(text.lines().filter_map(|line| line.strip_prefix(WARNING)).map(str::to_owned).collect())
}

fn plainly(program: &Path) -> Command {
    Command::new(program)
}

/// One warning, with these words.
fn assert_one(warnings: Option<Vec<String>>, words: &[&str]) {
    let Some(warnings) = warnings else { return };
    let [warning] = &warnings[..] else { panic!("one warning expected: {warnings:?}") };
    for word in words {
        assert!(warning.contains(word), "{word:?} is not in {warning:?}");
    }
}

/// Reads a file through executors and without them, twice over, and writes; the method that was used.
fn exercise(method: Method) -> Method {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    std::fs::write(&path, vec![7; 1 << 20]).unwrap();
    let mut used = method;
    for _ in 0..2 {
        let options = ExecutorOptions { threads: 2, method, registered_bytes: 16 << 20, buffer_bytes: 0 };
        let executors = Executors::start(options).unwrap();
        let device = Device::open(&path, &DeviceOptions { method, writable: true, create: false }).unwrap();
        read_everywhere(&executors, &device);
        used = device.method();
    }
    used
}

fn read_everywhere(executors: &Executors, device: &Device) {
    for no in 0..executors.threads() {
        let (device, pool) = (device.clone(), executors.buffers().clone());
        let all = executors.spawn_on(no, move || async move {
            let reads = (0..64).map(|page| device.read(page * 16384, pool.allocate(16384)));
            for read in join_all(reads).await {
                assert!(read.unwrap().iter().all(|byte| *byte == 7));
            }
            let mut page = pool.allocate(4096);
            page.fill(7);
            device.write(0, page).await.unwrap();
            device.sync().await.unwrap();
        });
        futures::executor::block_on(all).unwrap();
    }
    let read = futures::executor::block_on(device.read(4096, executors.buffers().allocate(4096))).unwrap();
    assert_eq!(read[0], 7);
}

#[test]
fn nothing_lacking_nothing_said() {
    // Where this machine does lack something, the other cases are what counts.
    let warnings = warnings_of(
        "nothing_lacking_nothing_said",
        || {
            exercise(Method::Uring);
        },
        plainly,
    );
    assert!(warnings.is_none_or(|warnings| warnings.len() <= 3));
}

#[test]
fn no_direct_io_forced() {
    let case = || {
        force_fallback(Fallback::NoDirect, true);
        assert_eq!(exercise(Method::Uring), Method::Buffered);
        assert_eq!(exercise(Method::Threads), Method::Buffered);
    };
    assert_one(warnings_of("no_direct_io_forced", case, plainly), &["no direct I/O", "page cache"]);
}

#[test]
fn no_direct_io_on_this_file_system() {
    let case = || {
        for _ in 0..2 {
            let device = Device::open("/proc/version", &DeviceOptions::default()).unwrap();
            assert_eq!((device.method(), device.alignment()), (Method::Buffered, 1));
            let pool = tanada_io::BufferPool::new(0);
            let read = futures::executor::block_on(device.read(0, pool.allocate(5))).unwrap();
            assert_eq!(&*read, b"Linux");
        }
    };
    let warnings = warnings_of("no_direct_io_on_this_file_system", case, plainly);
    assert_one(warnings, &["/proc/version has no direct I/O"]);
}

#[test]
fn no_uring_forced() {
    let case = || {
        force_fallback(Fallback::NoUring, true);
        assert_ne!(exercise(Method::Uring), Method::Uring);
    };
    assert_one(warnings_of("no_uring_forced", case, plainly), &["io_uring", "threads instead"]);
}

#[test]
fn no_uring_in_a_sandbox() {
    let case = || {
        sandbox::forbid(libc::SYS_io_uring_setup);
        assert_ne!(exercise(Method::Uring), Method::Uring);
    };
    let warnings = warnings_of("no_uring_in_a_sandbox", case, plainly);
    assert_one(warnings, &["io_uring", "Operation not permitted", "threads instead"]);
}

#[test]
fn no_aio_forced() {
    let case = || {
        force_fallback(Fallback::NoAio, true);
        assert_eq!(exercise(Method::Aio), Method::Threads);
    };
    assert_one(warnings_of("no_aio_forced", case, plainly), &["native AIO", "threads instead"]);
}

#[test]
fn no_aio_in_a_sandbox() {
    let case = || {
        sandbox::forbid(libc::SYS_io_setup);
        assert_eq!(exercise(Method::Aio), Method::Threads);
    };
    let warnings = warnings_of("no_aio_in_a_sandbox", case, plainly);
    assert_one(warnings, &["native AIO", "Operation not permitted", "threads instead"]);
}

#[test]
fn submissions_of_aio_that_are_refused_are_errors() {
    let case = || {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, vec![7; 1 << 20]).unwrap();
        let options = DeviceOptions { method: Method::Aio, ..DeviceOptions::default() };
        let device = Device::open(&path, &options).unwrap();
        let pool = tanada_io::BufferPool::new(0);
        let read = || futures::executor::block_on(device.read(4096, pool.allocate(4096)));
        assert_eq!(read().unwrap()[0], 7);
        sandbox::forbid(libc::SYS_io_submit);
        let message = read().unwrap_err().to_string();
        assert!(message.contains("Operation not permitted"), "{message}");
    };
    let warnings = warnings_of("submissions_of_aio_that_are_refused_are_errors", case, plainly);
    assert!(warnings.is_none_or(|warnings| warnings.is_empty()));
}

#[test]
fn a_sandbox_that_closes_later() {
    let case = || {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, vec![7; 1 << 20]).unwrap();
        let executors =
            Executors::start(ExecutorOptions { threads: 1, ..ExecutorOptions::default() }).unwrap();
        let device =
            Device::open(&path, &DeviceOptions { writable: true, ..DeviceOptions::default() }).unwrap();
        read_everywhere(&executors, &device);
        let (waiting, pool) = (device.clone(), executors.buffers().clone());
        let read_waiting = move || {
            let reads = (0..8).map(|page| waiting.read(page * 4096, pool.allocate(4096)));
            let all = tanada_io::wait(futures::future::join_all(reads));
            all.into_iter().map(|read| read.map(|page| page[0])).collect::<Result<Vec<u8>, _>>()
        };
        assert_eq!(read_waiting().unwrap(), [7; 8]);
        sandbox::forbid(libc::SYS_io_uring_enter);
        // So it is with the ring of a thread that waits.
        if executors.method() == Method::Uring {
            let message = read_waiting().unwrap_err().to_string();
            assert!(message.contains("Operation not permitted"), "{message}");
        }
        (0..20).for_each(|_| assert_eq!(read_waiting().unwrap(), [7; 8]));
        let (lost, pool) = (device.clone(), executors.buffers().clone());
        let read =
            executors.block_on(move || async move { lost.read(0, pool.allocate(4096)).await }).unwrap();
        if executors.method() == Method::Uring {
            // What was in flight is lost, and said so; what comes after goes another way.
            let message = read.unwrap_err().to_string();
            assert!(message.contains("Operation not permitted"), "{message}");
        } else {
            println!("\n{WARNING}Operation not permitted, threads instead");
        }
        read_everywhere(&executors, &device);
    };
    let warnings = warnings_of("a_sandbox_that_closes_later", case, plainly);
    assert_one(warnings, &["Operation not permitted", "threads instead"]);
}

#[test]
fn low_memlock_forced() {
    let case = || {
        force_fallback(Fallback::LowMemlock, true);
        exercise(Method::Uring);
    };
    let Some(warnings) = warnings_of("low_memlock_forced", case, plainly) else { return };
    // Without io_uring nothing is registered at all.
    let warnings: Vec<_> =
        warnings.into_iter().filter(|warning| !warning.contains("io_uring is not")).collect();
    assert!(
        warnings.len() <= 1 && warnings.iter().all(|warning| warning.contains("ulimit -l")),
        "{warnings:?}"
    );
}

/// As somebody without privileges, who may lock 1 MiB (then: nothing).
#[test]
fn low_memlock_of_an_ordinary_user() {
    for (limit_kib, registered) in [("1024", &["0 of 16 MiB", "1 of 16 MiB"][..]), ("0", &["0 of 16 MiB"])] {
        let name = "low_memlock_of_an_ordinary_user";
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        let as_ordinary_user = |program: &Path| {
            let copy = folder.path().join("program");
            std::fs::copy(program, &copy).unwrap();
            let mut command = Command::new("sh");
            command.args(["-c", &format!("ulimit -l {limit_kib} && exec \"$@\""), "sh"]);
            if rustix::process::geteuid().is_root() {
                command.args([
                    "setpriv",
                    "--reuid=65534",
                    "--regid=65534",
                    "--clear-groups",
                    "--inh-caps=-all",
                ]);
            }
            command.arg(copy).current_dir("/");
            command
        };
        let Some(warnings) = warnings_of(
            name,
            || {
                exercise(Method::Uring);
            },
            as_ordinary_user,
        ) else {
            return;
        };
        eprintln!("limit {limit_kib} KiB: {warnings:?}");
        let warnings: Vec<_> =
            warnings.into_iter().filter(|warning| !warning.contains("io_uring is not")).collect();
        assert!(warnings.len() <= 1, "{warnings:?}");
        for warning in warnings {
            assert!(registered.iter().any(|words| warning.starts_with(words)), "{warning:?}");
        }
    }
}

/// A system call filter, which needs no privileges.
mod sandbox {
    /// From now on, `call` fails with EPERM in every thread of this process.
    pub(super) fn forbid(call: libc::c_long) {
        let statement = |code: u32, jt, jf, k| libc::sock_filter { code: code as u16, jt, jf, k };
        let mut filter = [
            statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0), // the call's number comes first
            statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, call as u32),
            statement(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
            statement(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
        ];
        let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
        // SAFETY: the program lives through the calls and its length is right.
        let refused = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
            let (mode, flags) = (libc::SECCOMP_SET_MODE_FILTER, libc::SECCOMP_FILTER_FLAG_TSYNC);
            libc::syscall(libc::SYS_seccomp, mode, flags, &program)
        };
        assert_eq!(refused, 0, "{}", std::io::Error::last_os_error());
    }
}
