//! Errors say what failed, where and why.

use tanada_io::{Device, DeviceOptions, ErrorKind, Method};

use crate::{METHODS, executors, on_and_off_executors, open, random_file};

#[test]
fn a_path_that_cannot_be_opened_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let options = DeviceOptions::default();
    let missing = folder.path().join("missing");
    let error = Device::open(&missing, &options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains(missing.to_str().unwrap()), "{error}");
    assert!(error.to_string().contains("No such file"), "{error}");

    let error = Device::open(folder.path(), &options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("neither a file nor a block device"), "{error}");
    assert_eq!(Device::open("/dev/null", &options).unwrap_err().kind(), ErrorKind::InvalidInput);
}

#[test]
fn misaligned_direct_io_is_refused_in_words() {
    let executors = executors(1);
    let (_folder, path, _) = random_file(65536, 1);
    let device = open(&path, Method::Uring, true);
    if device.alignment() == 1 {
        return eprintln!("skipped: no direct I/O here");
    }
    let pool = executors.buffers().clone();
    on_and_off_executors(&executors, move || {
        let (device, pool) = (device.clone(), pool.clone());
        async move {
            for (offset, len) in [(1, 4096), (4096, 100)] {
                let error = device.read(offset, pool.allocate(len)).await.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::InvalidInput);
                let text = error.to_string();
                assert!(text.contains(&format!("cannot read {len} bytes at offset {offset} of /")), "{text}");
                assert!(text.contains(&format!("multiples of {}", device.alignment())), "{text}");
            }
            let error = device.write(7, pool.allocate(4096)).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            // It never reached the device, so it does not spoil it.
            device.write(0, pool.allocate(4096)).await.unwrap();
        }
    });
}

#[test]
fn buffered_devices_take_any_range() {
    let (_folder, path, bytes) = random_file(65536, 2);
    let device = open(&path, Method::Buffered, false);
    let pool = executors(1).buffers().clone();
    let read = futures::executor::block_on(device.read(777, pool.allocate(1001))).unwrap();
    assert_eq!(*read, bytes[777..1778]);
}

#[test]
fn writing_to_a_device_opened_for_reading_fails() {
    let executors = executors(1);
    let (_folder, path, bytes) = random_file(65536, 3);
    for method in METHODS {
        let (device, pool) = (open(&path, method, false), executors.buffers().clone());
        on_and_off_executors(&executors, move || {
            let (device, pool) = (device.clone(), pool.clone());
            async move {
                let error = device.write(0, pool.allocate(4096)).await.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
                assert!(error.to_string().contains("cannot write 4096 bytes at offset 0"), "{error}");
                assert!(device.punch(0, 4096).await.is_err());
            }
        });
    }
    assert!(std::fs::read(&path).unwrap() == bytes);
}

#[test]
fn ranges_beyond_what_files_can_hold_are_refused() {
    let (_folder, path, _) = random_file(4096, 4);
    let device = open(&path, Method::Uring, true);
    let pool = executors(1).buffers().clone();
    futures::executor::block_on(async {
        for offset in [!4095, i64::MAX as u64 & !4095] {
            let error = device.read(offset, pool.allocate(8192)).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(device.punch(offset, 8192).await.is_err());
        }
    });
}

#[test]
fn a_full_device_says_so_and_stays_readable() {
    let folder = tempfile::tempdir().unwrap();
    let mut mount = std::process::Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"]).arg(folder.path());
    if !mount.status().is_ok_and(|status| status.success()) {
        return eprintln!("skipped: mounting is not allowed here");
    }
    let executors = executors(1);
    for method in METHODS {
        let path = folder.path().join("file");
        let device = Device::open(&path, &DeviceOptions { method, create: true, writable: true }).unwrap();
        let pool = executors.buffers().clone();
        executors
            .block_on(move || async move {
                let mut first = pool.allocate(4096);
                first.fill(5);
                device.write(0, first).await.unwrap();
                let error = device.write(4096, pool.allocate(2 << 20)).await.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
                assert_eq!(device.read(0, pool.allocate(4096)).await.unwrap()[0], 5);
                // Space that is freed can be used: a full device is not a broken one.
                device.punch(4096, 1 << 20).await.unwrap();
                device.write(4096, pool.allocate(4096)).await.unwrap();
            })
            .unwrap();
        std::fs::remove_file(&path).unwrap();
    }
    std::process::Command::new("umount").arg(folder.path()).status().unwrap();
}
