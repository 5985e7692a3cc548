//! Lookups: in memtables, in what the cache holds, and in the tree.
//!
//! A read for the latest takes the newest visible number while it holds the lock of the store's view: so no write that
//! it has to see is in a memtable that it does not know, and nothing that it has to see was dropped by a merge.
//!
//! A version that was found in the tree is the newest up to the number of that lookup, and is held with the value
//! ([`crate::cache`]). The next read of the key looks at memtables, and then only at what the tree has that is newer.
//! Merges that may have dropped a delete along with what it hides, and bulk loads, whose numbers are from when they
//! began, are seen by [`View::known_since`](super::state::store_state::View): what was found before that is looked for
//! again.

use crate::tuning::maintenance::PROMOTION;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;

use crate::Result;
use crate::cache::HeldValue;
use crate::database::shared::Shared;
use crate::database::state::store_state::StoreState;
use crate::database::stats::counters::Counters;
use crate::entry::SequenceNo;
use crate::keyfile::KeyHash;
use crate::memory::{Found, MemoryContent, MemtableVersion};
use crate::transaction::Scan;
use crate::tree::{FoundVersion, TreeState};
use crate::value::codec::plain_value;

/// Reads keys of an open database.
#[derive(Debug)]
pub(crate) struct Reader {
    pub(crate) shared: Arc<Shared>,
}

impl Reader {
    /// Looks up a key, at the given snapshot or at the latest.
    pub(crate) async fn get(
        &self,
        store: &StoreState,
        key: &[u8],
        snapshot: Option<SequenceNo>,
    ) -> Result<Option<Bytes>> {
        self.get_with_number(store, key, snapshot).await.map(|(value, _)| value)
    }

    /// The same, and the number it was read at.
    pub(crate) async fn get_with_number(
        &self,
        store: &StoreState,
        key: &[u8],
        snapshot: Option<SequenceNo>,
    ) -> Result<(Option<Bytes>, SequenceNo)> {
        let measured =
            Counters::is_measured(&self.shared.counters.gets).then(|| self.shared.environment.now());
        self.shared.turns.read().await;
        let value = self.look_up(store, key, snapshot).await;
        if let Some(began) = measured {
            self.shared.counters.reads.add(self.shared.environment.now().saturating_sub(began));
        }
        value
    }

    async fn look_up(
        &self,
        store: &StoreState,
        key: &[u8],
        at: Option<SequenceNo>,
    ) -> Result<(Option<Bytes>, SequenceNo)> {
        self.shared.check_open()?;
        store.check_there()?;
        self.shared.counters.gets.add(1);
        let hash = KeyHash::of(key);
        let (tree, known_since, snapshot) = {
            let view = store.view.read();
            let snapshot = at.unwrap_or_else(|| self.shared.snapshots.visible());
            let mut tables = std::iter::once(&view.active).chain(&view.waiting);
            if let Some(found) = tables.find_map(|table| table.get(key, hash, snapshot)) {
                drop(view);
                self.shared.counters.gets_from_memory.add(1);
                return Ok((self.value_of(found)?, snapshot));
            }
            (view.tree.clone(), view.known_since, snapshot)
        };
        let held = self.shared.opener.cache.held(store.owner, key, hash);
        // Asked for behind the tree and the cache: a load that these have was noted before.
        let unseen = at.map(|at| self.shared.snapshots.unseen_at(at)).unwrap_or_default();
        if let Some(held) = held.as_ref().filter(|_| unseen.is_empty())
            && let Some(newest) = tree.still_newest(held, (key, hash), snapshot, known_since)
        {
            return Ok(((!self.shared.is_expired(newest.expires_s)).then(|| held.value()), snapshot));
        }
        // From here on it may have to wait.
        let _chain = tanada_io::begin_chain();
        let found = tree.get(key, hash, snapshot, &unseen).await?;
        // A lookup is a use of what is held: what was deleted, or came before what lies in pages, would stay for as
        // long as its key is looked up.
        let is_obsolete = |held: &HeldValue| match &found {
            Some(found) => !found.is_apart() && held.is_older_than(found.version.sequence),
            None => at.is_none(),
        };
        if held.as_ref().is_some_and(is_obsolete) {
            self.shared.opener.cache.forget_value(store.owner, hash);
        }
        let Some(found) = found.filter(|found| !self.shared.is_expired(found.version.expires_s)) else {
            return Ok((None, snapshot));
        };
        Ok((self.value_counting(store, &tree, key, held.as_ref(), &found).await?, snapshot))
    }

    pub(crate) fn value_of(&self, found: Found) -> Result<Option<Bytes>> {
        match found {
            Found::Version(MemtableVersion { content: MemoryContent::Value { home }, expires_s }, bytes) => {
                if self.shared.is_expired(expires_s) {
                    return Ok(None);
                }
                plain_value(bytes, home.as_ref()).map(Some)
            }
            Found::Version(..) | Found::Hidden(_) => Ok(None),
        }
    }

    /// The value, which may be `held`, counted if it came from a value segment's device.
    pub(crate) async fn value_counting(
        &self,
        store: &StoreState,
        tree: &TreeState,
        key: &[u8],
        held: Option<&HeldValue>,
        found: &FoundVersion,
    ) -> Result<Option<Bytes>> {
        let (value, from) = found.value(key, held, store.owner, tree).await?;
        let Some(segment) = from else { return Ok(value) };
        if !self.shared.classes.has_faster_than(segment.class.as_deref()) {
            return Ok(value);
        }
        if let Some(leaf) = tree.leaf(key)
            && store.unmirrored.note_read(leaf.no, found.stored_bytes())
        {
            self.shared.background.work.notify();
        }
        if store.hot.counts() {
            store.hot.note(key, found.stored_bytes());
            if store.promotion.reads.fetch_add(1, Ordering::Relaxed) % PROMOTION.reads_per_check
                == PROMOTION.reads_per_check - 1
            {
                self.shared.background.work.notify();
            }
        }
        Ok(value)
    }

    /// Notes what a scan had to read piece by piece.
    pub(crate) fn note_scan(&self, store: &StoreState, scan: Scan) {
        let Scan { first: Some(first), mut pointers, loaded: 2.. } = scan else { return };
        let tree = store.view.read().tree.clone();
        // Values in the log are spilled in any case.
        pointers.retain(|pointer| tree.segments.contains_key(&pointer.segment));
        let Some(leaf) = tree.leaf(&first).map(|leaf| leaf.no) else { return };
        if store.scattered.note(leaf, tree.value_bytes(leaf), &mut pointers, scan.loaded) {
            self.shared.background.work.notify();
        }
    }
}
