//! Operations that a teller has begun: the oracle knows of them, and is told how they end, also when nobody waits for
//! the answer any more.

use tanada_volume::Object;

use super::book::Book;
use crate::oracle::{ChangeNo, NameSync, ReadNote, SyncNote, Tag};

/// A sync of everything.
pub(super) struct SyncAll {
    pub(super) objects: Vec<(Tag, SyncNote)>,
    pub(super) names: NameSync,
}

impl SyncAll {
    pub(super) fn done(&self, book: &Book) {
        let oracle = &mut book.open().oracle;
        for (tag, note) in &self.objects {
            if let Some(model) = oracle.model(*tag) {
                model.synced(note);
            }
        }
        oracle.names_synced(&self.names);
    }
}

/// A change that was begun; failed, unless it is said to be done.
pub(super) struct Begun {
    pub(super) book: Book,
    pub(super) tag: Tag,
    pub(super) no: ChangeNo,
    pub(super) object: Option<Object>,
}

impl Begun {
    pub(super) fn done(mut self) {
        self.object = None;
        if let Some(model) = self.book.open().oracle.model(self.tag) {
            model.done(self.no);
        }
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        let Some(object) = self.object.take() else { return };
        let size = object.size_bytes();
        if let Some(model) = self.book.open().oracle.model(self.tag) {
            model.failed(self.no, Some(size));
        }
    }
}

/// A read that was begun.
pub(super) struct Reading {
    pub(super) book: Book,
    pub(super) tag: Tag,
    pub(super) note: Option<ReadNote>,
}

impl Reading {
    pub(super) fn end(&mut self, bytes: Option<&[u8]>, is_in_doubt: bool) {
        let Some(note) = self.note.take() else { return };
        let mut pages = self.book.open();
        let Some(model) = pages.oracle.model(self.tag) else { return };
        if let Err(why) = model.end_read(&note, bytes, is_in_doubt) {
            let tag = self.tag;
            pages.failure.get_or_insert_with(|| format!("object {tag}: {why}"));
        }
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.end(None, true);
    }
}
