//! Random operations on a file of the volume and on a plain file: both say the same.
//!
//! `TANADA_LONG=1` makes it a million of them.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, SeekFrom, fallocate, seek};
use tanada_base::SplitMix64;

use crate::Mount;

const LARGEST_FILE: u64 = 1 << 20;
const LARGEST_TRANSFER: u64 = 96 << 10;

/// A file of the volume and a plain one that went through the same.
struct Pair {
    paths: [PathBuf; 2],
    files: [File; 2],
    flags: i32,
    random: SplitMix64,
    log: Vec<String>,
}

fn open(path: &Path, flags: i32) -> File {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).custom_flags(flags).open(path).unwrap()
}

impl Pair {
    fn new(mounted: &Path, plain: &Path, flags: i32, seed: u64) -> Pair {
        let paths = [mounted.to_owned(), plain.to_owned()];
        let files = [open(mounted, flags), open(plain, 0)];
        Pair { paths, files, flags, random: SplitMix64::new(seed), log: Vec::new() }
    }

    fn size(&self) -> u64 {
        self.files[1].metadata().unwrap().len()
    }

    /// An offset, often on the boundary of something, and a length.
    fn range(&mut self) -> (u64, u64) {
        let unit = [1, 512, 4096, 16384][self.random.below(4) as usize];
        let offset = self.random.below(LARGEST_FILE / unit) * unit;
        let len = 1 + self.random.below((LARGEST_TRANSFER / unit).max(1)) * unit;
        (offset, if unit == 1 { len } else { (len - 1).max(unit) })
    }

    fn both(&self, work: impl Fn(&File)) {
        self.files.iter().for_each(work);
    }

    fn compare(&self, offset: u64, len: u64) {
        let read = |file: &File| {
            let mut bytes = vec![0; len as usize];
            let mut at = 0;
            while at < bytes.len() {
                let count = file.read_at(&mut bytes[at..], offset + at as u64).unwrap();
                if count == 0 {
                    break;
                }
                at += count;
            }
            bytes.truncate(at);
            bytes
        };
        let [ours, plain] = [read(&self.files[0]), read(&self.files[1])];
        if ours != plain {
            let place = ours.iter().zip(&plain).position(|(one, other)| one != other);
            let last = &self.log[self.log.len().saturating_sub(40)..];
            panic!(
                "{} and {} bytes at {offset}, the first difference at {place:?} of them, after\n{}",
                ours.len(),
                plain.len(),
                last.join("\n")
            );
        }
    }

    fn step(&mut self) {
        let (offset, len) = self.range();
        let size = self.size();
        let end = offset + len;
        let kind = self.random.below(100);
        self.log.push(format!("{kind} at {offset}, {len} bytes, of {size}"));
        match kind {
            0..35 => self.compare(offset, len),
            35..65 => {
                let mut bytes = vec![0; len as usize];
                match self.random.below(3) {
                    0 => self.random.fill(&mut bytes),
                    1 => bytes.fill(self.random.below(4) as u8),
                    _ => bytes.iter_mut().enumerate().for_each(|(i, byte)| *byte = (i / 7 % 50) as u8),
                }
                self.both(|file| file.write_all_at(&bytes, offset).unwrap());
            }
            65..72 => {
                let size = self.random.below(LARGEST_FILE);
                self.both(|file| file.set_len(size).unwrap());
            }
            72..79 => self.allocate(FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, offset, len),
            79..82 => self.allocate(FallocateFlags::ZERO_RANGE, offset, len),
            82..84 => self.allocate(FallocateFlags::ZERO_RANGE | FallocateFlags::KEEP_SIZE, offset, len),
            84..87 => self.allocate(FallocateFlags::empty(), offset, len),
            87..89 => self.both(|file| file.sync_all().unwrap()),
            89..90 => self.both(|file| file.sync_data().unwrap()),
            90..93 => {
                self.files = [open(&self.paths[0], self.flags), open(&self.paths[1], 0)];
            }
            93..95 => {
                let bytes = [kind as u8; 700];
                for (no, path) in self.paths.iter().enumerate() {
                    let flags = if no == 0 { self.flags } else { 0 };
                    let mut file = OpenOptions::new().append(true).custom_flags(flags).open(path).unwrap();
                    std::io::Write::write_all(&mut file, &bytes).unwrap();
                }
            }
            95..97 => {
                for path in &self.paths {
                    let other = path.with_extension("other");
                    fs::write(&other, b"it is replaced").unwrap();
                    fs::rename(path, &other).unwrap();
                    fs::rename(&other, path).unwrap();
                }
            }
            _ => self.check_holes(offset, end),
        }
        assert_eq!(self.files[0].metadata().unwrap().len(), self.size(), "{:?}", self.log.last());
    }

    fn allocate(&self, flags: FallocateFlags, offset: u64, len: u64) {
        fallocate(&self.files[0], flags, offset, len).unwrap();
        // A plain file system need not know how to make zeros.
        if !flags.contains(FallocateFlags::ZERO_RANGE) {
            return fallocate(&self.files[1], flags, offset, len).unwrap();
        }
        let (size, end) = (self.size(), offset + len);
        let is_longer = end > size && !flags.contains(FallocateFlags::KEEP_SIZE);
        let last = if is_longer { end } else { end.min(size) };
        if last > offset {
            self.files[1].write_all_at(&vec![0; (last - offset) as usize], offset).unwrap();
        }
    }

    /// What is said to be a hole reads as zeros.
    fn check_holes(&self, offset: u64, end: u64) {
        let end = end.min(self.size());
        let mut at = offset;
        while at < end {
            let data = seek(&self.files[0], SeekFrom::Data(at)).unwrap_or(end).min(end);
            let mut bytes = vec![1; (data - at) as usize];
            self.files[1].read_exact_at(&mut bytes, at).unwrap();
            assert!(bytes.iter().all(|byte| *byte == 0), "a hole from {at} to {data} has data");
            at = if data < end { seek(&self.files[0], SeekFrom::Hole(data)).unwrap() } else { end };
            assert!(at > data || data == end);
        }
    }
}

#[test]
fn random_operations_give_what_a_plain_file_gives() {
    let Some(mut mount) = Mount::new() else { return };
    let plain = tempfile::tempdir().unwrap();
    let count = if std::env::var_os("TANADA_LONG").is_some() { 1_000_000 } else { 20_000 };
    let kinds = [("none", 0), ("lz4", 0), ("zstd:1", libc::O_DIRECT), ("none", libc::O_DIRECT)];
    for (no, (compression, flags)) in kinds.into_iter().enumerate() {
        let folder = mount.root().join(format!("of {no}"));
        fs::create_dir(&folder).unwrap();
        let (name, value) = ("user.tanada.compression", compression.as_bytes());
        rustix::fs::setxattr(&folder, name, value, rustix::fs::XattrFlags::empty()).unwrap();
        let paths = [folder.join("file"), plain.path().join(no.to_string())];
        let mut pair = Pair::new(&paths[0], &paths[1], flags, no as u64);
        for _ in 0..count / kinds.len() {
            pair.step();
        }
        pair.compare(0, LARGEST_FILE * 2);
        drop(pair);
        mount.again();
        Pair::new(&paths[0], &paths[1], flags, 0).compare(0, LARGEST_FILE * 2);
    }
}
