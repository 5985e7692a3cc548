//! A device that keeps its first blocks and nothing else: what is written behind them is gone, and reads as zeros.
//!
//! Enough for a class of whose data only the places matter: the label that opening looks at is kept.

use std::io;
use std::path::Path;

use parking_lot::Mutex;
use tanada_io::{Backend, Completion, Method, Operation, Request, Ticket};

const KEPT: usize = 64 << 10;

/// See the module's head.
#[derive(Debug)]
pub struct Blank {
    size_bytes: u64,
    start: Mutex<Vec<u8>>,
}

impl Blank {
    /// A device of this many bytes.
    pub fn new(size_bytes: u64) -> Blank {
        Blank { size_bytes, start: Mutex::new(vec![0; KEPT]) }
    }

    fn transfer(&self, request: &mut Request) -> usize {
        let left = self.size_bytes.saturating_sub(request.offset);
        let len = request.len.min(left) as usize;
        let Some(buffer) = &mut request.buffer else { return len };
        let bytes = &mut buffer[request.from..request.from + len];
        let kept =
            (request.offset as usize).min(KEPT)..(request.offset as usize).saturating_add(len).min(KEPT);
        let mut start = self.start.lock();
        match request.operation {
            Operation::Read => {
                bytes[kept.len()..].fill(0);
                bytes[..kept.len()].copy_from_slice(&start[kept]);
            }
            Operation::Write => {
                let part = kept.len();
                start[kept].copy_from_slice(&bytes[..part]);
            }
            Operation::Sync | Operation::Punch => {}
        }
        len
    }
}

impl Backend for Blank {
    fn path(&self) -> &Path {
        Path::new("blank")
    }

    fn size_bytes(&self) -> io::Result<u64> {
        Ok(self.size_bytes)
    }

    fn method(&self) -> Method {
        Method::Buffered
    }

    fn alignment(&self) -> usize {
        1
    }

    fn start(&self, mut request: Request, completion: Completion) -> Ticket {
        let len = self.transfer(&mut request);
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
    fn the_start_is_kept_and_the_rest_is_zeros() {
        let device = Device::from_backend(Blank::new(1 << 20));
        let pool = BufferPool::new(0);
        let write = |offset| {
            let mut buffer = pool.allocate(4096);
            buffer.fill(7);
            block_on(device.write(offset, buffer)).unwrap();
        };
        write(4096);
        write(KEPT as u64 - 2048);
        let read = |offset| block_on(device.read(offset, pool.allocate(4096))).unwrap().to_vec();
        assert_eq!((read(4096), read(0)), (vec![7; 4096], vec![0; 4096]));
        let last = read(KEPT as u64 - 2048);
        assert_eq!((&last[..2048], &last[2048..]), (&[7; 2048][..], &[0; 2048][..]));
        assert_eq!(block_on(device.read((1 << 20) - 1024, pool.allocate(4096))).unwrap().len(), 1024);
    }
}
