//! Reading values of several segments together, through the cache.

use std::collections::HashMap;

use bytes::Bytes;

use super::batched_read::{Damaged, have_few_neighbours, read_stored};
use super::permits::Room;
use super::segment::{Segment, Segments};
use crate::Result;
use crate::cache::VersionId;
use crate::entry::{FirstHome, Pointer, SegmentNo};
use crate::pace::Pace;

/// A value to be read with others: whose it is, where it lies, and where the log wrote it.
#[derive(Debug)]
pub(crate) struct Wanted<'a> {
    pub(crate) id: VersionId<'a>,
    pub(crate) pointer: Pointer,
    pub(crate) first_home: Option<FirstHome>,
}

/// Values to be read together.
#[derive(Debug, Default)]
struct Gathered {
    indices: Vec<usize>,
    pointers: Vec<Pointer>,
    segments: HashMap<SegmentNo, Segment>,
}

impl Gathered {
    fn add(&mut self, index: usize, segment: Segment, pointer: Pointer) {
        self.indices.push(index);
        self.pointers.push(pointer);
        self.segments.insert(pointer.segment, segment);
    }

    /// The values, in their order.
    async fn read(&self) -> Result<Vec<Bytes>> {
        let (stored, _) = read_stored(
            &self.pointers,
            &self.segments,
            (&Pace::unbounded(), &Room::unlimited()),
            Damaged::Fails,
        )
        .await?;
        let all = self.pointers.iter().zip(stored).filter_map(|(pointer, stored)| {
            let segment = self.segments.get(&pointer.segment)?;
            Some(segment.decompressed(pointer, &stored))
        });
        all.collect()
    }
}

impl Segments {
    /// The values of versions, in their order, through the cache; neighbours are read together. What has few neighbours
    /// is read where `mirror` says, if it says so; if that fails, where it lies. And how many of them came from a
    /// device.
    ///
    /// # Errors
    /// As [`Segment::read_by`], for any of them.
    pub(crate) async fn read_all(
        &self,
        wanted: &[Wanted<'_>],
        mirror: impl Fn(FirstHome, &Pointer) -> Option<(Segment, Pointer)>,
    ) -> Result<(Vec<Bytes>, usize)> {
        let mut values = vec![Bytes::new(); wanted.len()];
        let mut missing = Vec::new();
        for (index, Wanted { id, .. }) in wanted.iter().enumerate() {
            match self.cache.value(id) {
                Some(value) => values[index] = value,
                None => missing.push(index),
            }
        }
        self.cache.note_values(missing.len());
        let pointers: Vec<Pointer> = missing.iter().map(|index| wanted[*index].pointer).collect();
        let mut homes = Gathered::default();
        let mut mirrors = Gathered::default();
        for (index, has_few) in missing.into_iter().zip(have_few_neighbours(&pointers).await) {
            let Wanted { pointer, first_home, .. } = &wanted[index];
            match first_home.filter(|_| has_few).and_then(|first| mirror(first, pointer)) {
                Some((segment, pointer)) => mirrors.add(index, segment, pointer),
                None => homes.add(index, self.open(pointer.segment)?, *pointer),
            }
        }
        let (at_homes, in_mirrors) = futures::join!(homes.read(), mirrors.read());
        let in_mirrors = match in_mirrors {
            Ok(values) => values,
            Err(_) => {
                let mut instead = Gathered::default();
                for index in mirrors.indices {
                    let pointer = wanted[index].pointer;
                    instead.add(index, self.open(pointer.segment)?, pointer);
                }
                mirrors = instead;
                mirrors.read().await?
            }
        };
        let read = homes.indices.iter().zip(at_homes?).chain(mirrors.indices.iter().zip(in_mirrors));
        for (index, value) in read {
            self.cache.keep_value(&wanted[*index].id, &value);
            // A copy, which does not hold on to what was read beside it.
            values[*index] = Bytes::copy_from_slice(&value);
        }
        Ok((values, homes.indices.len() + mirrors.indices.len()))
    }
}
