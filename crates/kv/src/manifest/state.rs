//! What records say, taken together.

use std::collections::BTreeMap;

use super::record::{FORMAT, LogRecord, Record};
use crate::database::Activity;
use crate::log::Lsn;
use crate::log::frame::StoreNo;
use crate::settings::{DatabaseSettings, StoreSettings};
use crate::tree::{Edit, TreeRecord};
use crate::{Error, ErrorKind, Result};

/// A store, as the manifest knows it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StoreRecord {
    pub(crate) name: String,
    pub(crate) settings: StoreSettings,
    pub(crate) tree: TreeRecord,
    /// Writes before are in its kvsets.
    pub(crate) flushed: Lsn,
}

/// A database, as the manifest knows it.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct DatabaseRecord {
    pub(crate) identity: u64,
    pub(crate) settings: DatabaseSettings,
    pub(crate) stores: BTreeMap<StoreNo, StoreRecord>,
    pub(crate) next_store: StoreNo,
    pub(crate) log: LogRecord,
    pub(crate) epoch: u64,
    pub(crate) next_object: u64,
    pub(crate) activity: Activity,
    /// Whether it is a copy that is being made: not yet a database.
    pub(crate) is_unfinished: bool,
    /// Whether a snapshot has ends.
    pub(crate) is_whole: bool,
}

impl DatabaseRecord {
    fn store(&mut self, no: StoreNo) -> Result<&mut StoreRecord> {
        let store = self.stores.get_mut(&no);
        store.ok_or_else(|| Error::corrupted(format!("the manifest changes store {no}, which is not there")))
    }

    /// Applies a record. After an error it is neither what it was nor what it should be.
    ///
    /// # Errors
    /// `Corrupted` if it does not fit to what is there; `FutureFormat`.
    pub(crate) fn apply(&mut self, record: &Record) -> Result<()> {
        match record {
            Record::Database { format, identity, next_store } => {
                if *format > FORMAT {
                    return Err(Error::new(
                        ErrorKind::FutureFormat,
                        format!("the manifest has format {format}, and this program knows {FORMAT} at most"),
                    ));
                }
                *self = DatabaseRecord {
                    identity: *identity,
                    next_store: *next_store,
                    ..DatabaseRecord::default()
                };
            }
            Record::Settings(settings) => self.settings = (**settings).clone(),
            Record::Store { no, name } => {
                if self.stores.values().any(|store| store.name == *name) {
                    let message = format!("there is a store {name:?} already");
                    return Err(Error::new(ErrorKind::AlreadyExists, message));
                }
                let store = StoreRecord {
                    name: name.clone(),
                    settings: StoreSettings::default(),
                    tree: TreeRecord::default(),
                    flushed: 0,
                };
                if self.stores.insert(*no, store).is_some() {
                    return Err(Error::corrupted(format!("the manifest makes store {no} twice")));
                }
                self.next_store = self.next_store.max(no + 1);
            }
            Record::StoreSettings { no, settings } => self.store(*no)?.settings = (**settings).clone(),
            Record::StoreDropped { no } => {
                self.store(*no)?;
                self.stores.remove(no);
            }
            Record::Edit { store, edit } => {
                let store = self.store(*store)?;
                store.tree.change(edit, |kvset| Ok(kvset.clone()))?;
            }
            Record::Flushed { store, lsn } => {
                let store = self.store(*store)?;
                store.flushed = store.flushed.max(*lsn);
            }
            Record::Log(log) => self.log = *log,
            Record::Epoch(epoch) => self.epoch = *epoch,
            Record::NextObject(next) => self.next_object = self.next_object.max(*next),
            Record::SnapshotEnd => self.is_whole = true,
            Record::Activity(activity) => self.activity = (**activity).clone(),
            Record::Unfinished(is_unfinished) => self.is_unfinished = *is_unfinished,
        }
        Ok(())
    }

    /// Records that build the same from nothing.
    pub(crate) fn snapshot(&self) -> Vec<Record> {
        let mut records = vec![
            Record::Database { format: FORMAT, identity: self.identity, next_store: self.next_store },
            Record::Settings(Box::new(self.settings.clone())),
            Record::Log(self.log),
            Record::Epoch(self.epoch),
            Record::NextObject(self.next_object),
            Record::Activity(Box::new(self.activity.clone())),
            Record::Unfinished(self.is_unfinished),
        ];
        for (no, store) in &self.stores {
            records.push(Record::Store { no: *no, name: store.name.clone() });
            records.push(Record::StoreSettings { no: *no, settings: Box::new(store.settings.clone()) });
            // One change a record, so that no record is large.
            for change in store.tree.to_edit().changes {
                records.push(Record::Edit { store: *no, edit: Edit { changes: vec![change] } });
            }
            records.push(Record::Flushed { store: *no, lsn: store.flushed });
        }
        records.push(Record::SnapshotEnd);
        records
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::keyfile::{KeyFileInfo, SegmentReferences};
    use crate::tree::edit::SegmentRecord;
    use crate::tree::{Change, KvsetRecord, Place, Position};

    /// A manifest has a record for each leaf, segment and kvset. This takes a second with checks on; looking at the
    /// whole tree for each record takes minutes.
    #[test]
    fn edit_records_grow_with_their_changes_only() {
        const RECORDS: u64 = 50_000;
        let began = std::time::Instant::now();
        let mut state = DatabaseRecord::default();
        state.apply(&Record::Store { no: 1, name: "lines".to_owned() }).unwrap();
        let mut change = |change: Change| {
            state.apply(&Record::Edit { store: 1, edit: Edit { changes: vec![change] } }).unwrap();
        };
        let kvset = |no, segment| {
            let references = vec![SegmentReferences { segment, values: 1, stored_bytes: 10 }];
            let info = KeyFileInfo { references, ..KeyFileInfo::default() };
            KvsetRecord { no, info, ..KvsetRecord::default() }
        };
        let add = |leaf, kvset| Change::AddKvset { place: Place::Leaf(leaf), position: Position::Top, kvset };
        for no in 0..RECORDS {
            let start = if no == 0 { Bytes::new() } else { Bytes::copy_from_slice(&no.to_be_bytes()) };
            change(Change::AddLeaf { leaf: no, start });
            let segment = SegmentRecord { no: RECORDS + no, stored_bytes: 10, class: None };
            change(Change::AddSegment { segment });
        }
        for no in 0..RECORDS {
            change(add(no, kvset(no, RECORDS + no)));
        }
        for no in 0..RECORDS {
            change(add(no, kvset(2 * RECORDS + no, RECORDS + no)));
            change(Change::RemoveKvset { place: Place::Leaf(no), kvset: no });
        }
        assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
        let tree = &state.stores[&1].tree;
        assert_eq!((tree.kvsets().count() as u64, tree.segments.len() as u64), (RECORDS, RECORDS));
    }
}
