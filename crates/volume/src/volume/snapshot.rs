//! A checkpoint's records: all that there is, as the metadata may know it.
//!
//! Chunks whose data are not durable yet (*fresh*) are left out: their records follow when the data are.
//! So a checkpoint may be taken at any time.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::chunk::Place;
use crate::chunk::table::ChunkTable;
use crate::metadata::{FileRecord, Queue, Record, Rest, Snapshot};
use crate::object::ObjectState;

use super::core::Core;

impl Snapshot for Core {
    fn snapshot(&self, queue: &mut Queue) -> Rest {
        for (rank, class) in self.class_list().ranked().iter().enumerate() {
            push(
                queue,
                &Record::Class {
                    id: class.id,
                    rank: rank as u8,
                    segment_bytes: class.segment_bytes,
                    chunks: class.allocator.lock().chunks(),
                    devices: class.devices.len() as u16,
                    is_draining: class.is_draining(),
                    name: class.name.clone(),
                },
            );
        }
        if let Some(wall) = self.wall_time() {
            push(queue, &Record::WallTime { ms: wall.as_millis() as u64 });
        }
        for (key, check) in &*self.key_checks.lock() {
            push(queue, &Record::Key { key: key.get(), check: *check });
        }
        let namespace = self.namespace.lock();
        push(queue, &Record::NextObject { id: namespace.next_id });
        for (name, folder) in &namespace.folders {
            let (name, folder) = (name.clone(), *folder);
            push(queue, &Record::File(FileRecord::Folder { name, folder }));
        }
        let mut tables = Vec::with_capacity(namespace.objects.len());
        for object in namespace.objects.values() {
            self.snapshot_object(object, queue);
            tables.push((object.id, object.table.read().clone()));
        }
        let (now, half_life_s) = (self.now(), self.half_life_s);
        Box::new(move |queue| {
            for (id, table) in tables {
                push_statistics(id, &table, now, half_life_s, queue);
            }
        })
    }
}

/// The statistics of all chunks that were used.
fn push_statistics(id: u64, table: &ChunkTable, now: Duration, half_life_s: f32, queue: &mut Queue) {
    for (no, chunk) in table.iter_from(0).filter(|(_, chunk)| !chunk.is_unused()) {
        let statistics = chunk.statistics(now, half_life_s);
        push(queue, &Record::Statistics { id, chunk: no, statistics });
    }
}

fn push(queue: &mut Queue, record: &Record) {
    queue.push(record);
    queue.end_group();
}

/// Neighbouring chunks that lie in one piece.
struct Run {
    first: u64,
    count: u32,
    place: Place,
}

impl Run {
    fn goes_on_with(&self, chunk: u64, place: Place) -> bool {
        chunk == self.first + u64::from(self.count)
            && place.class == self.place.class
            && Some(place.no) == self.place.no.checked_add(self.count)
    }
}

/// Makes records of mappings, one for each run.
pub(crate) struct MappingRuns {
    id: u64,
    run: Option<Run>,
}

impl MappingRuns {
    pub(crate) fn new(id: u64) -> MappingRuns {
        MappingRuns { id, run: None }
    }

    /// Adds a mapping; the record of a run that ended with it.
    pub(crate) fn add(&mut self, chunk: u64, place: Place) -> Option<Record> {
        if let Some(run) = &mut self.run
            && run.goes_on_with(chunk, place)
            && run.count < u32::MAX
        {
            run.count += 1;
            return None;
        }
        let ended = self.end();
        self.run = Some(Run { first: chunk, count: 1, place });
        ended
    }

    /// The record of the last run.
    pub(crate) fn end(&mut self) -> Option<Record> {
        let Run { first, count, place } = self.run.take()?;
        Some(Record::Mapped { id: self.id, first, count, place })
    }
}

impl Core {
    fn snapshot_object(&self, object: &ObjectState, queue: &mut Queue) {
        let id = object.id;
        let adopted = object.adopted.as_ref().map(|file| (file.path.clone(), file.identity()));
        push(queue, &Record::Object { id, name: object.name.read().clone(), adopted });
        let size_bytes = object.journaled_size.load(Ordering::SeqCst);
        let tail_is_stale = object.tail_is_stale.load(Ordering::SeqCst);
        push(queue, &Record::Size { id, size_bytes, tail_is_stale });
        let attributes = *object.attributes.lock();
        if attributes != Default::default() {
            push(queue, &Record::Attributes { id, attributes });
        }
        if let Some(file) = *object.file.lock() {
            push(queue, &Record::File(FileRecord::Attributes { id, file }));
        }
        let mut words = Vec::new();
        if let Some(pages) = object.pages.get() {
            push(queue, &Record::Paged { id, shift: pages.shift as u8, pages: 0 });
            let state = pages.state.lock();
            push(queue, &Record::LogicalSize { id, size_bytes: state.journaled_size });
            words = state.journaled(id);
            drop(state);
            self.settings_records(id, *pages.settings.lock()).iter().for_each(|record| push(queue, record));
        }
        let table = object.table.read();
        let mut runs = MappingRuns::new(id);
        for (no, chunk) in table.iter_from(0) {
            if let Some(place) = chunk.home.get_journaled()
                && let Some(record) = runs.add(no, place)
            {
                push(queue, &record);
            }
        }
        if let Some(record) = runs.end() {
            push(queue, &record);
        }
        for (no, chunk) in table.iter_from(0) {
            if let Some(place) = chunk.mirror.get() {
                push(queue, &Record::Mirrored { id, chunk: no, place });
            }
        }
        words.iter().for_each(|record| push(queue, record));
    }
}
