//! Segments of the log: objects of a size that is fixed before the first byte is written, so that writing to them
//! changes no metadata.

use std::sync::Arc;

use tanada_volume::Object;

use super::{BLOCK, Lsn};
use crate::entry::SegmentNo;
use crate::objects::{Lease, ObjectKind, Objects};
use crate::value::Segment;
use crate::{Error, Result};

/// A segment that groups are written to.
#[derive(Debug, Clone)]
pub(crate) struct LogSegment {
    pub(crate) no: SegmentNo,
    pub(crate) object: Object,
    pub(crate) lease: Lease,
    /// Bytes that fit in.
    pub(crate) capacity: u64,
}

impl LogSegment {
    /// Makes a segment for at least `bytes`: all its chunks are there, all zeros, and that is durable.
    ///
    /// # Errors
    /// `NoSpace`, `Device`.
    pub(crate) async fn prepare(
        objects: &Arc<Objects>,
        class: Option<&str>,
        bytes: u64,
    ) -> Result<LogSegment> {
        let chunk_bytes = objects.volume().chunk_bytes();
        let capacity = bytes.next_multiple_of(chunk_bytes.max(BLOCK));
        let (lease, object) = objects.create(ObjectKind::Segment, class)?;
        let prepared = LogSegment::fill(objects, &object, capacity).await;
        if let Err(error) = prepared {
            let deleted = objects.delete(ObjectKind::Segment, lease.no()).await;
            // The rest of it is deleted by the next opening.
            drop(deleted);
            return Err(Error::volume("cannot prepare a log segment", &error));
        }
        Ok(LogSegment { no: lease.no(), object, lease, capacity })
    }

    async fn fill(objects: &Objects, object: &Object, capacity: u64) -> Result<(), tanada_volume::Error> {
        object.resize(capacity).await?;
        for chunk in 0..capacity / objects.volume().chunk_bytes() {
            let mut block = objects.buffers().allocate(BLOCK as usize);
            block.fill(0);
            object.write(chunk * objects.volume().chunk_bytes(), block).await?;
        }
        object.sync().await
    }
}

/// A segment that is part of the log.
#[derive(Debug, Clone)]
pub(crate) struct PlacedSegment {
    pub(crate) no: SegmentNo,
    /// The segment, as values are read from it.
    pub(crate) segment: Segment,
    /// The LSN of its first byte.
    pub(crate) start: Lsn,
}
