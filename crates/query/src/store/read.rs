//! Reads of a file's ranges: each span is one buffer, filled by pieces that are in flight at once.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use tanada_io::{Buffer, BufferPool, IoContext, Task, spawn_local};

use super::Opened;
use super::ranges::spans;
use crate::{Error, ErrorKind, Result};

/// Bytes of a piece: some of them in flight saturate a device.
const PIECE_BYTES: usize = 1 << 20;

/// A buffer as shared bytes.
struct Owned(Buffer);

impl AsRef<[u8]> for Owned {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// Reads `ranges`, which lie in the file, on an executor's thread.
pub(super) async fn ranges(
    file: &Arc<Opened>,
    ranges: &[Range<u64>],
    buffers: &Arc<BufferPool>,
    io: &IoContext,
) -> Result<Vec<Bytes>> {
    let spans = spans(ranges);
    let reads: Vec<Task<Result<(u64, Bytes)>>> = spans
        .iter()
        .map(|span| {
            let (file, buffers, io) = (Arc::clone(file), Arc::clone(buffers), io.clone());
            let bytes = span.bytes.clone();
            spawn_local(async move { span_bytes(&file, bytes, &buffers, &io).await })
        })
        .collect();
    let mut found = vec![Bytes::new(); ranges.len()];
    for (span, read) in spans.iter().zip(reads) {
        let (start, bytes) = read.await?;
        for no in &span.ranges {
            let range = &ranges[*no];
            let part = usize::try_from(range.start - start)
                .ok()
                .zip(usize::try_from(range.end - start).ok())
                .filter(|(_, end)| *end <= bytes.len());
            let Some((begin, end)) = part else { return Err(cut_off(file, range.end)) };
            found[*no] = bytes.slice(begin..end);
        }
    }
    Ok(found)
}

fn cut_off(file: &Opened, end: u64) -> Error {
    let message = format!("{} ends before byte {end}: it was cut off while it was read", file.path.display());
    Error::new(ErrorKind::Data, message)
}

/// Reads a span; gives the offset of the first byte, which is on a boundary of the device.
async fn span_bytes(
    file: &Arc<Opened>,
    bytes: Range<u64>,
    buffers: &Arc<BufferPool>,
    io: &IoContext,
) -> Result<(u64, Bytes)> {
    let alignment = (file.device.alignment() as u64).max(1);
    let start = bytes.start / alignment * alignment;
    let len = (bytes.end - start).next_multiple_of(alignment);
    let too_large = || Error::new(ErrorKind::Resources, "a read does not fit the memory");
    let mut rest = buffers.allocate(usize::try_from(len).map_err(|_| too_large())?);
    let mut pieces: Vec<Task<Result<Buffer>>> = Vec::new();
    let mut offset = start;
    loop {
        let is_last = rest.len() <= PIECE_BYTES;
        let (piece, next) = match is_last {
            true => (rest, None),
            false => {
                let next = rest.split_off(PIECE_BYTES);
                (rest, Some(next))
            }
        };
        let (file, io) = (Arc::clone(file), io.clone());
        let at = offset;
        offset += piece.len() as u64;
        pieces.push(spawn_local(async move {
            let permit = io.admit(piece.len()).await;
            let read = file.device.read(at, piece).await?;
            io.observe(&permit, &file.path, at, read.len() as u64);
            Ok(read)
        }));
        match next {
            Some(next) => rest = next,
            None => break,
        }
    }
    let mut whole: Option<Buffer> = None;
    for piece in pieces {
        let piece = piece.await?;
        whole = Some(match whole {
            None => piece,
            Some(mut whole) => {
                // What was read short has no successor.
                if !whole.len().is_multiple_of(PIECE_BYTES) || whole.unsplit(piece).is_err() {
                    return Err(cut_off(file, bytes.end));
                }
                whole
            }
        });
    }
    Ok((start, whole.map(|buffer| Bytes::from_owner(Owned(buffer))).unwrap_or_default()))
}
