//! A device in memory that takes up what is not zero in it, and no room for the rest.
//!
//! Enough for values that are all zeros: they are written, read and moved like any others, and terabytes of them take a
//! few megabytes. Nobody opens a database any faster by it, for an opening reads no values; the bytes that were read
//! say so.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use tanada_io::{Backend, Completion, Method, Operation, Request, Ticket};

const BLOCK: usize = 4096;
const ZEROS: [u8; BLOCK] = [0; BLOCK];

/// See the module's head.
#[derive(Debug)]
pub(super) struct Sparse {
    size_bytes: u64,
    /// Blocks by number, without the zeros at their ends; those that are all zeros are not there.
    blocks: Mutex<HashMap<u64, Box<[u8]>>>,
}

impl Sparse {
    /// A device of this many bytes, all of them zeros.
    pub(super) fn new(size_bytes: u64) -> Sparse {
        Sparse { size_bytes, blocks: Mutex::default() }
    }

    /// Writes it to a file, with holes where all is zeros.
    pub(super) fn save(&self, path: &Path) -> io::Result<()> {
        let file = File::create(path)?;
        file.set_len(self.size_bytes)?;
        let blocks = self.blocks.lock();
        let mut numbers: Vec<&u64> = blocks.keys().collect();
        numbers.sort_unstable();
        for no in numbers {
            file.write_all_at(&blocks[no], no * BLOCK as u64)?;
        }
        file.sync_all()
    }

    fn transfer(&self, request: &mut Request) -> usize {
        let len = request.len.min(self.size_bytes.saturating_sub(request.offset)) as usize;
        let first = request.offset / BLOCK as u64;
        let mut blocks = self.blocks.lock();
        match (request.operation, &mut request.buffer) {
            (Operation::Read, Some(buffer)) => {
                let bytes = &mut buffer[request.from..request.from + len];
                for (no, bytes) in (first..).zip(bytes.chunks_mut(BLOCK)) {
                    let kept = blocks.get(&no).map(|block| &**block).unwrap_or_default();
                    let kept = &kept[..kept.len().min(bytes.len())];
                    bytes[..kept.len()].copy_from_slice(kept);
                    bytes[kept.len()..].fill(0);
                }
            }
            (Operation::Write, Some(buffer)) => {
                for (no, bytes) in (first..).zip(buffer[request.from..request.from + len].chunks(BLOCK)) {
                    if bytes == &ZEROS[..bytes.len()] {
                        blocks.remove(&no);
                    } else {
                        let len = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
                        blocks.insert(no, bytes[..len].into());
                    }
                }
            }
            (Operation::Punch, _) => {
                (first..first + (len / BLOCK) as u64).for_each(|no| drop(blocks.remove(&no)));
            }
            _ => {}
        }
        len
    }
}

/// A device that is looked at from elsewhere, too.
#[derive(Debug)]
pub(super) struct Shared(pub(super) Arc<Sparse>);

impl Backend for Shared {
    fn path(&self) -> &Path {
        Path::new("sparse memory")
    }

    fn size_bytes(&self) -> io::Result<u64> {
        Ok(self.0.size_bytes)
    }

    fn method(&self) -> Method {
        Method::Buffered
    }

    fn alignment(&self) -> usize {
        BLOCK
    }

    fn start(&self, mut request: Request, completion: Completion) -> Ticket {
        let len = self.0.transfer(&mut request);
        completion.complete(Ok(len), request.buffer);
        Ticket::default()
    }
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;
    use tanada_io::{BufferPool, Device};

    use super::*;

    #[test]
    fn sparse_files_return_written_bytes_and_store_no_zeros() {
        let sparse = Arc::new(Sparse::new(1 << 40));
        let device = Device::from_backend(Shared(sparse.clone()));
        let pool = BufferPool::new(0);
        let write = |offset: u64, byte: u8| {
            let mut buffer = pool.allocate(3 * BLOCK);
            buffer.fill(0);
            buffer[BLOCK..BLOCK + 100].fill(byte);
            block_on(device.write(offset, buffer)).unwrap();
        };
        let read = |offset: u64| block_on(device.read(offset, pool.allocate(BLOCK))).unwrap().to_vec();
        let far = (1 << 40) - 16 * BLOCK as u64;
        write(far, 7);
        let expected = [vec![7; 100], vec![0; BLOCK - 100]].concat();
        assert_eq!((read(far), read(far + BLOCK as u64)), (vec![0; BLOCK], expected.clone()));
        assert_eq!(sparse.blocks.lock().values().map(|block| block.len()).sum::<usize>(), 100);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("saved");
        sparse.save(&path).unwrap();
        let mut saved = vec![1; BLOCK];
        File::open(&path).unwrap().read_exact_at(&mut saved, far + BLOCK as u64).unwrap();
        assert_eq!((saved, path.metadata().unwrap().len()), (expected, 1 << 40));
        write(far, 0);
        assert!(sparse.blocks.lock().is_empty());
        assert_eq!(read(far + BLOCK as u64), vec![0; BLOCK]);
    }
}
