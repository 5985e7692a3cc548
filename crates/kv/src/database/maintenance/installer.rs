//! Installing edits of a store's tree, and taking the whole of it away.
//!
//! 1. What an edit adds is opened.
//! 2. The edit goes to the manifest, and when it is durable to the store's view.
//! 3. What the new tree does not reference is retired: it is deleted when nobody reads it any more.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::database::shared::{Shared, Writing};
use crate::database::space::account::SpaceManager;
use crate::database::state::store_state::StoreState;
use crate::entry::SequenceNo;
use crate::manifest::{DatabaseRecord, Record};
use crate::objects::Lease;
use crate::tree::{Edit, JobOutput, TreeState};
use crate::{Error, ErrorKind, Result};

/// Installs edits of trees.
#[derive(Debug)]
pub(crate) struct TreeInstaller {
    pub(crate) shared: Arc<Shared>,
    pub(crate) space: Arc<SpaceManager>,
}

impl TreeInstaller {
    /// Makes an edit of a store's tree, and what else there is to say then, durable and visible.
    pub(crate) async fn install(
        &self,
        writing: &Writing,
        store: &Arc<StoreState>,
        edit: &Edit,
        others: impl FnOnce() -> Vec<Record>,
    ) -> Result<()> {
        self.install_between(writing, store, (edit, &[]), others, false, || || ()).await
    }

    /// The same for what a job wrote, whose objects are kept then. If the future is dropped before the edit is being
    /// written, they go with the output; behind, the manifest has them until it is known which of the two it is.
    pub(crate) async fn install_output(
        &self,
        writing: &Writing,
        store: &Arc<StoreState>,
        output: &JobOutput,
    ) -> Result<()> {
        let added = (&output.edit, &*output.made);
        self.install_between(writing, store, added, Vec::new, false, || || ()).await
    }

    /// As [`install`](Self::install) of an edit that adds the drafts `made`, where `begin` is called before, and what
    /// that gives when it is there and before anybody finds it. What it adds may have smaller numbers than what was
    /// looked up so far, if it `is_loaded`.
    pub(crate) async fn install_between<E: FnOnce()>(
        &self,
        writing: &Writing,
        store: &Arc<StoreState>,
        (edit, made): (&Edit, &[Lease]),
        others: impl FnOnce() -> Vec<Record>,
        is_loaded: bool,
        begin: impl FnOnce() -> E,
    ) -> Result<()> {
        let tree = store.view.read().tree.clone();
        let opened = self.shared.opener.holding(store.settings().filters).open_added(&tree, edit).await?;
        // The kvsets that it removes are durable already.
        let may_forget = is_loaded || tree.may_forget(edit);
        drop(tree);
        let install = |_: &DatabaseRecord| -> Result<()> {
            let end = begin();
            let (before, after) = {
                let mut view = store.view.write();
                let after = Arc::new(view.tree.apply_opened(edit, &opened)?);
                let before = std::mem::replace(&mut view.tree, after.clone());
                end();
                if may_forget {
                    view.known_since = self.shared.snapshots.visible();
                }
                (before, after)
            };
            // At once: the caller may be dropped while the manifest is rewritten.
            let dropped = before.retire_dropped(&after);
            self.space.release_segments(writing, &dropped);
            Ok(())
        };
        let make = || {
            let edit = Record::Edit { store: store.no, edit: edit.clone() };
            Some([edit].into_iter().chain(others()).collect())
        };
        match writing.manifest.append_made(made, make, install).await? {
            Some(installed) => installed,
            None => Ok(()),
        }
    }

    /// Takes a store out of the database: it is there until that is durable, and gone for everybody from then on.
    ///
    /// # Errors
    /// `NotFound` if somebody else was first; `NoSpace`, `Device`.
    pub(crate) async fn drop_store(&self, writing: &Writing, store: &StoreState) -> Result<()> {
        let is_there = || store.check_there().is_ok().then(|| vec![Record::StoreDropped { no: store.no }]);
        let remove = |_: &DatabaseRecord| {
            store.is_dropped.store(true, Ordering::Release);
            self.shared.stores.write().retain(|other| other.no != store.no);
            let tree = {
                let mut view = store.view.write();
                view.waiting.clear();
                // Readers of the old view find nothing in the cache either.
                view.known_since = SequenceNo::MAX;
                std::mem::take(&mut view.tree)
            };
            let dropped = tree.retire_dropped(&TreeState::default());
            self.space.release_segments(writing, &dropped);
        };
        if writing.manifest.append_made(&[], is_there, remove).await?.is_none() {
            return Err(Error::new(ErrorKind::NotFound, format!("there is no store {:?}", store.name)));
        }
        self.shared.background.progress.notify();
        self.space.delete_retired().await
    }
}
