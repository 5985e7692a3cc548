//! Writes that are made together.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use crate::database::state::store_state::StoreState;
use crate::entry::{Codec, LONGEST_KEY, LONGEST_VALUE, expiry};
use crate::log::frame::{
    MAX_PAYLOAD_BYTES, NewOperation, OPERATION_HEADER, Operation, OperationKind, Payload, PayloadBuilder,
    StoreNo,
};
use crate::settings::{Compression, WriteOptions};
use crate::value::codec;
use crate::{Error, Result};

/// Writes that are made together: all of them, or none. Of two on the same key the later one counts.
///
/// What is wrong with a key or a value is said when the batch is written.
///
/// ```
/// use tanada_kv::{Batch, WriteOptions};
///
/// # let folder = tempfile::tempdir().unwrap();
/// # tanada_kv::example::run(folder.path(), async |database, store| {
/// let mut batch = Batch::new();
/// batch.delete_prefix(&store, b"old/");
/// batch.put(&store, b"new/1", b"value");
/// assert_eq!(batch.len(), 2);
/// database.write(batch, &WriteOptions::default()).await?;
/// # Ok(()) }).unwrap();
/// ```
#[derive(Debug, Default)]
pub struct Batch {
    payload: PayloadBuilder,
    stores: Vec<Arc<StoreState>>,
    error: Option<Error>,
    operations: usize,
    /// The batch has range deletes, which may hide operations before them.
    has_ranges: bool,
}

/// The first key behind all that begin with `prefix`; `None` if there is none.
pub(crate) fn behind_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let kept = prefix.iter().rposition(|byte| *byte < u8::MAX)?;
    let mut end = prefix[..=kept].to_vec();
    end[kept] += 1;
    Some(end)
}

impl Batch {
    /// An empty one.
    pub fn new() -> Batch {
        Batch::default()
    }

    /// An empty one that takes this many bytes of keys and values without growing.
    pub fn with_capacity(bytes: usize) -> Batch {
        Batch { payload: PayloadBuilder::with_capacity(bytes), ..Batch::default() }
    }

    /// Creates a batch with capacity for one operation.
    pub(crate) fn for_one(key: &[u8], value: &[u8]) -> Batch {
        Batch::with_capacity(OPERATION_HEADER + key.len() + value.len())
    }

    /// Returns whether nothing is in it.
    ///
    /// ```
    /// use tanada_kv::Batch;
    ///
    /// assert!(Batch::new().is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.operations == 0
    }

    /// Operations in it, those that are to be hidden by a later range among them.
    pub fn len(&self) -> usize {
        self.operations
    }

    pub(crate) fn add(
        &mut self,
        store: &Arc<StoreState>,
        kind: OperationKind,
        key: &[u8],
        value: &[u8],
        expires_s: Option<u32>,
    ) {
        if key.len() > LONGEST_KEY || value.len() > LONGEST_VALUE {
            self.refuse(|| match key.len() > LONGEST_KEY {
                true => format!("a key of {} bytes: at most {LONGEST_KEY} are possible", key.len()),
                false => format!("a value of {} bytes: at most {LONGEST_VALUE} are possible", value.len()),
            });
            return;
        }
        if self.payload.len() + OPERATION_HEADER + key.len() + value.len() > MAX_PAYLOAD_BYTES {
            self.refuse(|| format!("a batch of more than {MAX_PAYLOAD_BYTES} bytes"));
            return;
        }
        if !self.stores.iter().any(|known| Arc::ptr_eq(known, store)) {
            if self.stores.first().is_some_and(|first| first.database != store.database) {
                self.refuse(|| "a batch over several databases".to_owned());
                return;
            }
            self.stores.push(store.clone());
        }
        self.payload.push(&NewOperation {
            store: store.no,
            kind,
            key,
            value,
            value_len: value.len() as u32,
            codec: Codec::None,
            expires_s,
        });
        self.operations += 1;
        self.has_ranges |= is_range(kind);
    }

    fn refuse(&mut self, why: impl FnOnce() -> String) {
        self.error.get_or_insert_with(|| Error::invalid(why()));
    }

    /// Returns whether no operation was refused.
    ///
    /// # Errors
    /// Why one was.
    pub(crate) fn accepted(self) -> Result<()> {
        self.error.map_or(Ok(()), Err)
    }

    /// Returns the payload for the log and the stores that it writes to.
    ///
    /// # Errors
    /// If an operation was refused.
    pub(crate) fn finish(
        self,
        options: &WriteOptions,
        now_s: u64,
    ) -> Result<(Payload, Vec<Arc<StoreState>>)> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let payload = self.payload.finish();
        let payload = if self.has_ranges { without_hidden(payload) } else { payload };
        let compresses = |store: &Arc<StoreState>| match options.compression {
            Some(compression) => compression != Compression::None,
            None => store.live.compresses(),
        };
        if options.time_to_live_s.is_none() && !self.stores.iter().any(compresses) {
            return Ok((payload, self.stores));
        }
        let settings: Vec<_> = self.stores.iter().map(|store| (store.no, store.settings())).collect();
        let mut builder = PayloadBuilder::with_capacity(payload.bytes.len());
        for mut operation in payload.operations().flatten() {
            let store = settings.iter().find(|(no, _)| *no == operation.store);
            let Some((_, settings)) = store.filter(|_| operation.kind == OperationKind::Put) else {
                builder.push(&operation.as_new());
                continue;
            };
            if let Some(time_to_live_s) = options.time_to_live_s {
                operation.expires_s = expiry(now_s, time_to_live_s);
            }
            let compression = options.compression.unwrap_or(settings.compression);
            let value = operation.pair.value();
            let is_long = value.len() >= settings.separate_from_bytes as usize;
            let compressed = if is_long { compress(compression, value) } else { None };
            match &compressed {
                Some((codec, stored)) => {
                    builder.push(&NewOperation { codec: *codec, value: stored, ..operation.as_new() });
                }
                None => builder.push(&operation.as_new()),
            }
        }
        Ok((builder.finish(), self.stores))
    }
}

fn is_range(kind: OperationKind) -> bool {
    matches!(kind, OperationKind::DeleteRange | OperationKind::DeleteFrom)
}

/// The payload without what a later range of it is to hide: all operations of a batch have one sequence number, and a
/// range hides smaller ones only.
fn without_hidden(payload: Payload) -> Payload {
    let operations: Vec<Operation> = payload.operations().flatten().collect();
    let mut deleted: HashMap<StoreNo, Deleted<'_>> = HashMap::new();
    let mut is_hidden = vec![false; operations.len()];
    for (operation, is_hidden) in operations.iter().zip(&mut is_hidden).rev() {
        let (key, value) = (operation.pair.key(), operation.pair.value());
        match operation.kind {
            OperationKind::DeleteRange => deleted.entry(operation.store).or_default().add(key, Some(value)),
            OperationKind::DeleteFrom => deleted.entry(operation.store).or_default().add(key, None),
            OperationKind::Put | OperationKind::Delete => {
                *is_hidden = deleted.get(&operation.store).is_some_and(|deleted| deleted.has(key));
            }
        }
    }
    if !is_hidden.contains(&true) {
        return payload;
    }
    let mut builder = PayloadBuilder::with_capacity(payload.bytes.len());
    for (operation, _) in operations.iter().zip(is_hidden).filter(|(_, is_hidden)| !is_hidden) {
        builder.push(&operation.as_new());
    }
    builder.finish()
}

/// Ranges of keys, those that overlap or touch made one: where each begins, and its end, if it has one.
#[derive(Debug, Default)]
struct Deleted<'a>(BTreeMap<&'a [u8], Option<&'a [u8]>>);

impl<'a> Deleted<'a> {
    fn has(&self, key: &[u8]) -> bool {
        let before = self.0.range::<[u8], _>((Bound::Unbounded, Bound::Included(key))).next_back();
        before.is_some_and(|(_, end)| end.is_none_or(|end| key < end))
    }

    fn add(&mut self, mut start: &'a [u8], mut end: Option<&'a [u8]>) {
        loop {
            // The last one that begins within it or at its end, or before it.
            let up_to = end.map_or(Bound::Unbounded, Bound::Included);
            let other = self.0.range::<[u8], _>((Bound::Unbounded, up_to)).next_back();
            let Some((&first, &behind)) = other.filter(|(_, behind)| behind.is_none_or(|it| it >= start))
            else {
                break;
            };
            self.0.remove(first);
            start = start.min(first);
            end = end.zip(behind).map(|(end, behind)| end.max(behind));
        }
        self.0.insert(start, end);
    }
}

/// The value in fewer bytes, if it takes an eighth less.
fn compress(compression: Compression, value: &[u8]) -> Option<(Codec, Vec<u8>)> {
    let codec = Codec::from(compression);
    let stored = codec::compress(codec, value)?;
    (stored.len() + stored.len() / 8 <= value.len()).then_some((codec, stored))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_successor_of_a_prefix_is_computed() {
        assert_eq!(behind_prefix(b"ab"), Some(b"ac".to_vec()));
        assert_eq!(behind_prefix(b"a\xff\xff"), Some(b"b".to_vec()));
        assert_eq!(behind_prefix(b"\xff"), None);
        assert_eq!(behind_prefix(b""), None);
    }

    #[test]
    fn ranges_that_touch_are_one() {
        let mut deleted = Deleted::default();
        deleted.add(b"c", Some(b"e"));
        deleted.add(b"g", Some(b"i"));
        deleted.add(b"k", None);
        let has = |deleted: &Deleted<'_>| -> String {
            ('a'..='n').filter(|key| deleted.has(key.to_string().as_bytes())).collect()
        };
        assert_eq!(has(&deleted), "cdghklmn");
        deleted.add(b"e", Some(b"f"));
        assert_eq!((has(&deleted).as_str(), deleted.0.len()), ("cdeghklmn", 3));
        deleted.add(b"b", Some(b"h"));
        assert_eq!((has(&deleted).as_str(), deleted.0.len()), ("bcdefghklmn", 2));
        deleted.add(b"d", Some(b"e"));
        deleted.add(b"l", Some(b"m"));
        assert_eq!((has(&deleted).as_str(), deleted.0.len()), ("bcdefghklmn", 2));
        deleted.add(b"a", None);
        assert_eq!((has(&deleted).as_str(), deleted.0.len()), ("abcdefghijklmn", 1));
    }

    /// Each range went through all that was in the batch before.
    #[test]
    fn operations_hidden_by_a_later_range_of_the_batch_are_dropped() {
        let put = |store, key| NewOperation {
            store,
            kind: OperationKind::Put,
            key,
            value: b"v",
            value_len: 1,
            codec: Codec::None,
            expires_s: None,
        };
        let range = |store, start, end| NewOperation {
            kind: OperationKind::DeleteRange,
            value: end,
            value_len: 1,
            ..put(store, start)
        };
        let mut builder = PayloadBuilder::with_capacity(0);
        let all: [NewOperation<'_>; 7] = [
            put(1, b"a"),
            put(1, b"b"),
            put(2, b"b"),
            NewOperation { kind: OperationKind::Delete, value: b"", value_len: 0, ..put(1, b"c") },
            range(1, b"b", b"d"),
            put(1, b"b"),
            range(2, b"c", b"d"),
        ];
        all.iter().for_each(|operation| builder.push(operation));
        let payload = without_hidden(builder.finish());
        let left = payload.operations().flatten();
        let left = left.map(|operation| (operation.store, operation.kind, operation.pair.key().to_vec()));
        let expected = [0, 2, 4, 5, 6].map(|at: usize| (all[at].store, all[at].kind, all[at].key.to_vec()));
        assert_eq!(left.collect::<Vec<_>>(), expected);
        assert_eq!(payload.operations, 5);
    }
}
