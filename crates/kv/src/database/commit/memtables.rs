//! Closing memtables that are full, or that hold back the log, under the commit lock.

use crate::tuning::space::MEMORY;
use crate::tuning::writes::STALLS;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::database::commit::committer::Committer;
use crate::database::shared::Writing;
use crate::database::state::store_state::StoreState;
use crate::log::Lsn;
use crate::manifest::{LogRecord, Record};
use crate::memory::Memtable;

impl Committer {
    /// Closes tables that are full, under the commit lock.
    pub(crate) fn make_room(&self, writing: &Writing, stores: &[Arc<StoreState>], end: Lsn) {
        let table_bytes = self.space.table_bytes();
        let mut has_deletes = false;
        let is_full = |store: &&Arc<StoreState>| {
            let view = store.view.read();
            has_deletes |= view.active.tells_of_deletes();
            view.active.bytes() >= table_bytes
        };
        self.close_tables(writing, stores.iter().filter(is_full));
        if has_deletes {
            // Should nobody write any more, what they hide is to go.
            self.shared.background.work.notify();
        }
        if end >= self.shared.counters.next_look.get() {
            self.look_around(writing, end);
        }
    }

    /// Now and then: closes tables of stores that nobody writes to any more, if they hold back the log, and the largest
    /// as long as all of them together take up too much.
    fn look_around(&self, writing: &Writing, end: Lsn) {
        let table_bytes = self.space.table_bytes();
        self.shared.counters.next_look.set(end + table_bytes / MEMORY.memtable_budget_checks_per_table);
        // The cache has to give way.
        self.shared.background.work.notify();
        let stores = self.shared.stores.read().clone();
        let mut active: Vec<(Arc<Memtable>, &Arc<StoreState>)> =
            stores.iter().map(|store| (store.view.read().active.clone(), store)).collect();
        active.retain(|(table, _)| !table.is_empty());
        let oldest = end.saturating_sub(self.shared.settings().log_replay_bytes);
        let held_back = active.extract_if(.., |(table, _)| table.start < oldest);
        let mut due: Vec<&Arc<StoreState>> = held_back.map(|(_, store)| store).collect();
        let mut total: u64 = active.iter().map(|(table, _)| table.bytes()).sum();
        active.sort_unstable_by_key(|(table, _)| table.bytes());
        while total > STALLS.max_active_memtables * table_bytes
            && let Some((table, store)) = active.pop()
        {
            total = total.saturating_sub(table.bytes());
            due.push(store);
        }
        self.close_tables(writing, due);
    }

    /// Gives stores new tables, those that have anything in theirs. Under the commit lock.
    pub(crate) fn close_tables<'a>(
        &self,
        writing: &Writing,
        stores: impl IntoIterator<Item = &'a Arc<StoreState>>,
    ) {
        let closes = |store: &&Arc<StoreState>| self.close_table(writing, store);
        let closed: Vec<&Arc<StoreState>> = stores.into_iter().filter(closes).collect();
        if !closed.is_empty() {
            self.update_pressure(closed);
            self.shared.background.work.notify();
        }
    }

    /// Returns whether there was anything in the store's table.
    fn close_table(&self, writing: &Writing, store: &StoreState) -> bool {
        let mut view = store.view.write();
        if view.active.is_empty() {
            return false;
        }
        let end = writing.log.cut();
        let no = self.next_table.fetch_add(1, Ordering::Relaxed);
        let full = std::mem::replace(&mut view.active, Arc::new(Memtable::new(no, end, &self.memory.blocks)));
        full.close(end);
        view.waiting.insert(0, full);
        true
    }

    /// Returns the manifest records of the log when `without` has become a kvset: from where on each store needs it,
    /// and from where on a replay does. Must be made when nothing can be appended before it, since an older record is
    /// then outdated.
    pub(crate) fn log_records(
        &self,
        writing: &Writing,
        without: Option<(&Arc<StoreState>, &Arc<Memtable>)>,
    ) -> (Vec<Record>, Lsn) {
        let commit = self.commit.lock();
        let end = writing.log.cut();
        let mut records = Vec::new();
        let mut begin = end;
        for store in &*self.shared.stores.read() {
            let mut view = store.view.write();
            let is_left = |table: &&Arc<Memtable>| {
                without
                    .is_none_or(|(other, written)| !Arc::ptr_eq(other, store) || !Arc::ptr_eq(written, table))
            };
            let oldest = view.waiting.iter().rev().find(is_left).map(|table| table.start);
            if oldest.is_none() && view.active.is_empty() {
                let no = view.active.no;
                view.active = Arc::new(Memtable::new(no, end, &self.memory.blocks));
            }
            let lsn = oldest.unwrap_or(view.active.start);
            begin = begin.min(lsn);
            // The manifest's records of other stores are older, but no store has flushed since.
            if without.is_none_or(|(written, _)| Arc::ptr_eq(written, store)) {
                records.push(Record::Flushed { store: store.no, lsn });
            }
        }
        records.push(Record::Log(LogRecord {
            begin,
            segment: writing.log.segment_at(begin),
            durable: writing.log.durable(),
            sequence: commit.sequence,
        }));
        (records, begin)
    }
}
