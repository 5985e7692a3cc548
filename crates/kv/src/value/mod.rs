//! Values that are kept apart from their keys: written to value segments (the log writes its own), read from segments
//! of both kinds.
//!
//! - [`codec`]: compression of single values;
//! - [`header`]: the header of a value segment;
//! - [`writer`]: writes one segment from its beginning to its end;
//! - [`segment`]: reads one value in one I/O;
//! - [`batched_read`]: reads many values, neighbours together; [`permits`]: bounds their memory;
//! - [`replicas`]: chooses the copy that a value is read from; [`read_limiter`]: paces the reads of a class.

mod batched_read;
pub(crate) mod codec;
mod gathered;
mod header;
mod permits;
mod read_limiter;
mod replicas;
mod segment;
mod writer;

pub(crate) use batched_read::{Damaged, Reading, largest_read, read_each, read_stored};
pub(crate) use gathered::Wanted;
#[cfg(test)]
pub(crate) use header::FORMAT as SEGMENT_FORMAT;
pub(crate) use header::HEADER_BYTES;
pub(crate) use permits::Room;
#[cfg(doc)]
pub(crate) use replicas::ReplicaSelector;
pub(crate) use segment::{Segment, Segments};
pub(crate) use writer::SegmentWriter;

// As `super::sync` and `super::notify`, for modules that are built with others, too.
use crate::{notify, sync};

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use futures::executor::block_on;
    use proptest::prelude::*;

    use super::*;
    use crate::ErrorKind;
    use crate::entry::Codec;
    use crate::objects::ObjectKind;
    use crate::pace::Pace;
    use crate::stream::Pieces;
    use crate::testing::Bench;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn values_come_back_or_the_damage_is_found(
            values in proptest::collection::vec((proptest::collection::vec(0u8..5, 0..9000), 0usize..3), 1..40),
            at in any::<prop::sample::Index>(),
        ) {
            block_on(async {
                let bench = Bench::new().await;
                let segments = Segments::new(&bench.objects, &bench.cache, None);
                let (lease, object) = bench.objects.create(ObjectKind::Segment, Some("fast")).unwrap();
                let mut writer = SegmentWriter::new(lease.no(), object, bench.objects.buffers(), Pieces::default()).await.unwrap();
                let mut pointers = Vec::new();
                for (value, codec) in &values {
                    let codec = [Codec::None, Codec::Lz4, Codec::Zstd][*codec];
                    pointers.push(writer.append(value, codec).await.unwrap());
                }
                let stored = writer.stored_bytes();
                assert_eq!(stored, pointers.iter().map(|pointer| u64::from(pointer.stored_len)).sum::<u64>());
                let object = writer.finish().await.unwrap();
                let segment = segments.add(lease, object.clone());
                for _ in 0..2 {
                    for (pointer, (value, _)) in pointers.iter().zip(&values) {
                        assert_eq!(&segments.open(segment.no()).unwrap().read_uncached(pointer).await.unwrap(), value);
                    }
                }
                let damaged = &pointers[at.index(pointers.len())];
                if damaged.stored_len > 0 {
                    let byte = object.read_bytes(damaged.offset, 1).await.unwrap()[0];
                    object.write_bytes(damaged.offset, &[!byte]).await.unwrap();
                    let error = segment.read_uncached(damaged).await.unwrap_err();
                    assert_eq!(error.kind(), ErrorKind::Corrupted);
                    assert!(error.to_string().contains(&format!("offset {}", damaged.offset)), "{error}");
                }
            });
        }
    }

    #[test]
    fn reads_beyond_the_budget_wait_for_free_memory() {
        block_on(async {
            let bench = Bench::new().await;
            let segments = Segments::new(&bench.objects, &bench.cache, None);
            let (lease, object) = bench.objects.create(ObjectKind::Segment, Some("fast")).unwrap();
            let mut writer =
                SegmentWriter::new(lease.no(), object, bench.objects.buffers(), Pieces::default())
                    .await
                    .unwrap();
            let values: Vec<Vec<u8>> = (0..8u8).map(|no| vec![no; 60_000]).collect();
            let mut pointers = Vec::new();
            for value in &values {
                pointers.push(writer.append(value, Codec::None).await.unwrap());
            }
            let segment = segments.add(lease, writer.finish().await.unwrap());
            let open = HashMap::from([(segment.no(), segment)]);
            let room = Room::of(130_000);
            let pace = Pace::unbounded();
            let mut read = std::pin::pin!(read_stored(&pointers, &open, (&pace, &room), Damaged::Fails));
            for _ in 0..20 {
                assert!(futures::poll!(&mut read).is_pending());
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            // Two of them took what there was, but for a rest.
            assert!(!room.take(10_001) && room.take(10_000));
            // What leaves makes space for what is read, one for another.
            let leave = async {
                for _ in 2..8 {
                    room.give(60_000);
                    crate::notify::yield_now().await;
                }
            };
            let (read, ()) = futures::join!(read, leave);
            assert_eq!(read.unwrap().0, values);
            assert!(!room.take(1));
            // Nor is anything read for one who has failed meanwhile.
            let room = Room::of(60_000);
            let mut read = std::pin::pin!(read_stored(&pointers, &open, (&pace, &room), Damaged::Fails));
            assert!(futures::poll!(&mut read).is_pending());
            room.close();
            let (stored, _) = read.await.unwrap();
            assert_eq!(stored[0], values[0]);
            assert!(stored[1..].iter().all(|value| value.is_empty()));
        });
    }

    #[test]
    fn retired_segments_are_deleted_after_their_last_reader() {
        block_on(async {
            let bench = Bench::new().await;
            let segments = Segments::new(&bench.objects, &bench.cache, None);
            let (lease, object) = bench.objects.create(ObjectKind::Segment, None).unwrap();
            let no = lease.no();
            let writer =
                SegmentWriter::new(no, object, bench.objects.buffers(), Pieces::default()).await.unwrap();
            let segment = segments.add(lease, writer.finish().await.unwrap());
            let reader = segments.open(no).unwrap();
            drop(segment);
            drop(reader);
            assert_eq!(bench.objects.take_retired(), None, "not retired");
            let segment = segments.open(no).unwrap();
            segment.retire();
            assert_eq!(bench.objects.take_retired(), None, "still read");
            drop(segment);
            assert_eq!(bench.objects.take_retired(), Some((ObjectKind::Segment, no)));
            bench.objects.delete(ObjectKind::Segment, no).await.unwrap();
            assert_eq!(segments.open(no).unwrap_err().kind(), ErrorKind::NotFound);
            assert_eq!(bench.objects.list(), []);
        });
    }
}
