//! Spill files of all lengths, read while they grow, bounded, and gone afterwards.

use std::io::Write;
use std::sync::Arc;

use datafusion::execution::{SpillFile, TempFileFactory};
use futures::StreamExt;
use tanada_io::{ExecutorOptions, Executors, Method};

use super::{BLOCK_BYTES, Place, SpillSpace};
use crate::{Error, ErrorKind};

fn space_in(folder: &std::path::Path) -> SpillSpace {
    let executors = Executors::start(ExecutorOptions { threads: 2, ..ExecutorOptions::default() }).unwrap();
    SpillSpace::new(executors, Place::folder(folder, Method::Uring).unwrap(), 64 << 20)
}

fn bytes_of(file: &Arc<dyn SpillFile>) -> Vec<u8> {
    let mut stream = file.read_stream().unwrap();
    futures::executor::block_on(async {
        let mut all = Vec::new();
        while let Some(bytes) = stream.next().await {
            all.extend_from_slice(&bytes.unwrap());
        }
        all
    })
}

fn numbered(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31 + at / 4096) as u8).collect()
}

#[test]
fn files_of_all_lengths_read_as_written() {
    let folder = tempfile::tempdir().unwrap();
    let space = space_in(folder.path());
    let block = BLOCK_BYTES;
    for len in [0, 1, 4095, block - 1, block, block + 1, 5 * block + 17, 12 * block] {
        let written = numbered(len);
        let file = space.create_temp_file("a test").unwrap();
        let mut writer = file.open_writer().unwrap();
        for piece in written.chunks(100_003) {
            writer.write_all(piece).unwrap();
        }
        writer.finish().unwrap();
        drop(writer);
        assert_eq!(file.size(), Some(len as u64));
        assert!(bytes_of(&file) == written, "{len} bytes");
        // A second reader begins anew.
        assert!(bytes_of(&file) == written, "{len} bytes again");
    }
    assert_eq!(space.used_bytes(), 0);
    assert!(space.peak_bytes() >= 12 * block as u64);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_file_is_read_while_it_grows() {
    let folder = tempfile::tempdir().unwrap();
    let space = space_in(folder.path());
    let file = space.create_temp_file("a test").unwrap();
    let mut writer = file.open_writer().unwrap();
    let mut stream = file.read_stream().unwrap();
    let written = numbered(3 * BLOCK_BYTES + 5);
    let mut read = Vec::new();
    for piece in written.chunks(70_001) {
        writer.write_all(piece).unwrap();
        writer.flush().unwrap();
        let wanted = read.len() + piece.len();
        futures::executor::block_on(async {
            while read.len() < wanted {
                read.extend_from_slice(&stream.next().await.unwrap().unwrap());
            }
        });
    }
    writer.finish().unwrap();
    drop(writer);
    assert!(futures::executor::block_on(stream.next()).is_none());
    assert!(read == written);
}

#[test]
fn spills_over_the_limit_are_refused_and_leave_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let space = space_in(folder.path());
    space.set_limit(2 * BLOCK_BYTES as u64);
    let file = space.create_temp_file("a test").unwrap();
    let mut writer = file.open_writer().unwrap();
    let error = writer.write_all(&numbered(3 * BLOCK_BYTES)).unwrap_err();
    let error = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()).unwrap();
    assert_eq!(error.kind(), ErrorKind::Resources);
    assert!(error.to_string().contains("tanada.spill_bytes"), "{error}");
    drop((writer, file));
    wait_until(|| space.used_bytes() == 0);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn files_that_a_killed_process_left_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let left = folder.path().join("tanada-spill-4294967295-7");
    let own = folder.path().join(format!("tanada-spill-{}-0", std::process::id()));
    let foreign = folder.path().join("tanada-spill-notes");
    for path in [&left, &own, &foreign] {
        std::fs::write(path, b"").unwrap();
    }
    space_in(folder.path());
    assert!(!left.exists() && own.exists() && foreign.exists());
    let error = Place::folder(&folder.path().join("missing"), Method::Uring).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
}

/// Waits for writes that were under way when their file was dropped.
fn wait_until(is_so: impl Fn() -> bool) {
    for _ in 0..1000 {
        if is_so() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    panic!("it never came to be");
}
