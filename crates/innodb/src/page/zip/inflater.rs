//! The zlib stream of a compressed page. The server flushes it behind the description of the fields, which leaves an
//! empty stored block there: where the bytes 00 00 FF FF come first, the description ends.

use std::cell::RefCell;

use flate2::{Decompress, FlushDecompress, Status};

use super::{Fault, STREAM};

/// What an empty stored block ends with.
const FLUSH_MARK: [u8; 4] = [0, 0, 0xff, 0xff];
/// More bytes than a description of fields has.
const DESCRIPTION_BYTES: usize = 4096;

/// Memory that is used again for page after page.
struct Workspace {
    stream: Decompress,
    output: Vec<u8>,
}

thread_local! {
    static WORKSPACE: RefCell<Workspace> =
        RefCell::new(Workspace { stream: Decompress::new(true), output: Vec::new() });
}

/// Inflates the stream of `image`, which ends before `limit`, and gives `take` the description of the fields, the heap
/// of a page of at most `size` bytes, and where the stream ended.
pub(super) fn with_heap<T>(
    image: &[u8],
    limit: usize,
    size: usize,
    take: impl FnOnce(&[u8], &[u8], usize) -> Result<T, Fault>,
) -> Result<T, Fault> {
    let input = image.get(STREAM..limit).unwrap_or_default();
    let mark = input.windows(FLUSH_MARK.len()).position(|bytes| bytes == FLUSH_MARK);
    let mark = mark.ok_or("its stream has no description of the fields")? + FLUSH_MARK.len();
    WORKSPACE.with(|workspace| {
        let workspace = &mut *workspace.borrow_mut();
        workspace.stream.reset(true);
        workspace.output.resize(DESCRIPTION_BYTES + size, 0);
        let Workspace { stream, output } = workspace;
        run(stream, &input[..mark], &mut output[..DESCRIPTION_BYTES])?;
        let described = stream.total_out() as usize;
        if stream.total_in() as usize != mark || described == DESCRIPTION_BYTES {
            return Err("its stream does not begin with a description of the fields");
        }
        if !run(stream, &input[mark..], &mut output[described..described + size])? {
            return Err("its stream does not end within the page");
        }
        let (description, heap) = output[..stream.total_out() as usize].split_at(described);
        take(description, heap, STREAM + stream.total_in() as usize)
    })
}

/// Inflates until the stream ends, which it tells, or input or output do.
fn run(stream: &mut Decompress, mut input: &[u8], mut output: &mut [u8]) -> Result<bool, Fault> {
    loop {
        let (taken, given) = (stream.total_in(), stream.total_out());
        let status = stream.decompress(input, output, FlushDecompress::None);
        let status = status.map_err(|_| "its stream does not inflate")?;
        let (taken, given) = ((stream.total_in() - taken) as usize, (stream.total_out() - given) as usize);
        if status == Status::StreamEnd {
            return Ok(true);
        }
        input = input.get(taken..).unwrap_or_default();
        output = output.get_mut(given..).unwrap_or_default();
        if taken == 0 && given == 0 || output.is_empty() {
            return Ok(false);
        }
    }
}
