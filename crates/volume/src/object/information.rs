//! What there is to know about an object and its chunks.

use std::ops::Range;
use std::sync::atomic::Ordering;

use super::Object;
use crate::chunk::Place;
use crate::statistics::{ChunkStatistics, IoStatistics};

/// A chunk as it is.
///
/// ```
/// use tanada_volume::Attributes;
///
/// # let folder = tempfile::tempdir().unwrap();
/// # tanada_volume::example::run(folder.path(), async |volume| {
/// let object = volume.create_object("a", &Attributes::default())?;
/// object.write_bytes(0, b"rice").await?;
/// let chunk = &object.chunks(0..1)[0];
/// assert!(chunk.home.is_some() && chunk.mirror.is_none());
/// # Ok(()) }).unwrap();
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChunkInfo {
    /// Its number in the object.
    pub no: u64,
    /// Its home; `None` if it was never written, or is part of an adopted file.
    pub home: Option<Place>,
    /// Its mirror.
    pub mirror: Option<Place>,
    /// What was done to it.
    pub statistics: ChunkStatistics,
}

impl ChunkInfo {
    /// Whether its home or its mirror is in the class of this number.
    pub fn lies_in(&self, class: u8) -> bool {
        [self.home, self.mirror].into_iter().flatten().any(|place| place.class == class)
    }
}

impl Object {
    /// Those of `chunks` that have a home, a mirror or statistics.
    pub fn chunks(&self, chunks: Range<u64>) -> Vec<ChunkInfo> {
        let now = self.core.now();
        let table = self.state.table.read();
        let known = table.iter_from(chunks.start).take_while(|(no, _)| *no < chunks.end);
        known
            .filter(|(_, chunk)| {
                chunk.home.get().is_some() || chunk.mirror.get().is_some() || !chunk.is_unused()
            })
            .map(|(no, chunk)| ChunkInfo {
                no,
                home: chunk.home.get(),
                mirror: chunk.mirror.get(),
                statistics: chunk.statistics(now, self.core.half_life_s),
            })
            .collect()
    }

    /// I/Os of the object since the volume was opened, each device I/O for itself.
    ///
    /// ```
    /// use tanada_volume::Attributes;
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # tanada_volume::example::run(folder.path(), async |volume| {
    /// let object = volume.create_object("a", &Attributes::default())?;
    /// object.write_bytes(0, &[7; 4096]).await?;
    /// assert_eq!(object.statistics().written.bytes, 4096);
    /// # Ok(()) }).unwrap();
    /// ```
    pub fn statistics(&self) -> IoStatistics {
        self.state.counters.snapshot()
    }

    /// Whether an earlier write or sync failed, so that the object takes no more of them.
    pub fn is_poisoned(&self) -> bool {
        self.state.is_poisoned.load(Ordering::SeqCst)
    }
}
