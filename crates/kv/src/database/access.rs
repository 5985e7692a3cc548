//! What users do with a store: reads, writes, settings and compactions.

use crate::tuning::writes::COMMITS;
use bytes::Bytes;

use crate::database::commit::batch::{Batch, behind_prefix};
use crate::database::commit::committer::{Check, OpenTransaction};
use crate::database::maintenance::manual::compact;
use crate::database::snapshot::Snapshot;
use crate::database::store::Store;
use crate::entry::LONGEST_KEY;
use crate::log::frame::OperationKind;
use crate::settings::WriteOptions;
use crate::transaction::{Cursor, CursorOptions};
use crate::tree::policy::MediaPolicy;
use crate::{ErrorKind, Result, StoreOverrides};

impl Batch {
    /// Writes a key.
    ///
    /// ```
    /// use tanada_kv::{Batch, WriteOptions};
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # tanada_kv::example::run(folder.path(), async |database, store| {
    /// let mut batch = Batch::new();
    /// batch.put(&store, b"key", b"first");
    /// batch.put(&store, b"key", b"second"); // the later one counts
    /// database.write(batch, &WriteOptions::default()).await?;
    /// assert_eq!(store.get(b"key").await?.as_deref(), Some(&b"second"[..]));
    /// # Ok(()) }).unwrap();
    /// ```
    pub fn put(&mut self, store: &Store, key: &[u8], value: &[u8]) {
        let expires_s = store.state().default_expiry(&*store.core().shared.environment);
        self.add(store.state(), OperationKind::Put, key, value, expires_s);
    }

    /// Deletes a key.
    pub fn delete(&mut self, store: &Store, key: &[u8]) {
        self.add(store.state(), OperationKind::Delete, key, b"", None);
    }

    /// Deletes the keys from `start` on that are smaller than `end`; all from `start` on without an end.
    pub fn delete_range(&mut self, store: &Store, start: &[u8], end: Option<&[u8]>) {
        if end.is_some_and(|end| end <= start) {
            return;
        }
        let kind = if end.is_some() { OperationKind::DeleteRange } else { OperationKind::DeleteFrom };
        // Behind that it makes no difference to any key.
        let end = end.map(|end| &end[..end.len().min(LONGEST_KEY + 1)]);
        self.add(store.state(), kind, start, end.unwrap_or_default(), None);
    }

    /// Deletes all keys that begin with `prefix`.
    pub fn delete_prefix(&mut self, store: &Store, prefix: &[u8]) {
        self.delete_range(store, prefix, behind_prefix(prefix).as_deref());
    }
}

impl Store {
    /// Changes settings, for good and while the store is in use; what is not named stays. Entries that are written and
    /// files that are made from now on follow them; jobs bring what is there to what limits and policies say, beside
    /// other work, and [`compact`](Self::compact) does so at once.
    ///
    /// ```
    /// use tanada_kv::{Compression, StoreOverrides};
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # tanada_kv::example::run(folder.path(), async |database, store| {
    /// let change = StoreOverrides { compression: Some(Compression::Zstd), ..StoreOverrides::default() };
    /// store.set_settings(&change).await?;
    /// assert_eq!(store.settings().compression, Compression::Zstd);
    /// # Ok(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// `InvalidInput`, or `NotFound` if a policy names a class that the volume has not; then nothing is changed.
    /// `ReadOnly`, `Device`.
    pub async fn set_settings(&self, changes: &StoreOverrides) -> Result<()> {
        self.core().set_store_settings(self.state(), changes).await
    }

    /// Changes which classes keys and values go to, for good. What is written from now on goes where the policy says;
    /// what lies elsewhere is moved beside other work, as long as the fastest class has space to spare, and by
    /// [`compact`](Self::compact) at once.
    ///
    /// ```
    /// use tanada_kv::PolicyTemplate;
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # tanada_kv::example::run(folder.path(), async |database, store| {
    /// store.set_policy(&PolicyTemplate::CapacityOnly.into()).await?;
    /// # Ok(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// `NotFound` if it names a class that the volume has not; `InvalidInput` if its `root.values` is not the log's
    /// class; `ReadOnly`, `Device`.
    pub async fn set_policy(&self, policy: &MediaPolicy) -> Result<()> {
        let changes = StoreOverrides { policy: Some(policy.clone()), ..StoreOverrides::default() };
        self.set_settings(&changes).await
    }

    /// Writes a key as the settings say.
    ///
    /// # Errors
    /// As [`Database::write`](crate::Database::write).
    pub async fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.put_with(key, value, &WriteOptions::default()).await
    }

    /// Writes a key.
    ///
    /// ```
    /// use tanada_kv::WriteOptions;
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # tanada_kv::example::run(folder.path(), async |database, store| {
    /// let for_a_minute = WriteOptions { time_to_live_s: Some(60), ..WriteOptions::default() };
    /// store.put_with(b"session", b"open", &for_a_minute).await?;
    /// # Ok(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`Database::write`](crate::Database::write).
    pub async fn put_with(&self, key: &[u8], value: &[u8], options: &WriteOptions) -> Result<()> {
        let mut batch = Batch::for_one(key, value);
        batch.put(self, key, value);
        self.core().committer.write(batch, options).await
    }

    /// The value of a key.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # tanada_kv::example::run(folder.path(), async |database, store| {
    /// assert_eq!(store.get(b"missing").await?, None);
    /// # Ok(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// `Corrupted`, `Device`.
    pub async fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        self.core().reader.get(self.state(), key, None).await
    }

    /// The value that a key had.
    ///
    /// # Errors
    /// As [`get`](Self::get); `InvalidInput` if the snapshot is another database's.
    pub async fn get_at(&self, snapshot: &Snapshot, key: &[u8]) -> Result<Option<Bytes>> {
        let sequence = self.sequence_of(snapshot)?;
        self.core().reader.get(self.state(), key, Some(sequence)).await
    }

    /// Deletes a key.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # tanada_kv::example::run(folder.path(), async |database, store| {
    /// store.put(b"key", b"value").await?;
    /// store.delete(b"key").await?;
    /// assert_eq!(store.get(b"key").await?, None);
    /// # Ok(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`Database::write`](crate::Database::write).
    pub async fn delete(&self, key: &[u8]) -> Result<()> {
        self.delete_with(key, &WriteOptions::default()).await
    }

    /// Deletes a key.
    ///
    /// # Errors
    /// As [`Database::write`](crate::Database::write).
    pub async fn delete_with(&self, key: &[u8], options: &WriteOptions) -> Result<()> {
        let mut batch = Batch::for_one(key, b"");
        batch.delete(self, key);
        self.core().committer.write(batch, options).await
    }

    /// Deletes all keys that begin with `prefix`, in time that does not depend on how many they are.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # tanada_kv::example::run(folder.path(), async |database, store| {
    /// store.put(b"2026-01-01/1", b"rice").await?;
    /// store.put(b"2026-01-02/1", b"tea").await?;
    /// store.delete_prefix(b"2026-01-01/").await?;
    /// assert_eq!(store.get(b"2026-01-01/1").await?, None);
    /// assert!(store.get(b"2026-01-02/1").await?.is_some());
    /// # Ok(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`Database::write`](crate::Database::write).
    pub async fn delete_prefix(&self, prefix: &[u8]) -> Result<()> {
        self.delete_range(prefix, behind_prefix(prefix).as_deref()).await
    }

    /// Deletes the keys from `start` on that are smaller than `end`; all from `start` on without an end. In time that
    /// does not depend on how many they are.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # tanada_kv::example::run(folder.path(), async |database, store| {
    /// for key in [b"a", b"b", b"c"] {
    ///     store.put(key, b"value").await?;
    /// }
    /// store.delete_range(b"a", Some(b"c")).await?; // without the end
    /// assert!(store.get(b"b").await?.is_none() && store.get(b"c").await?.is_some());
    /// # Ok(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`Database::write`](crate::Database::write).
    pub async fn delete_range(&self, start: &[u8], end: Option<&[u8]>) -> Result<()> {
        let mut batch = Batch::new();
        batch.delete_range(self, start, end);
        self.core().committer.write(batch, &WriteOptions::default()).await
    }

    /// Reads, changes and writes a key, so that no other write to it comes between; `change` may be called more than
    /// once. `None` deletes. What was written.
    ///
    /// ```
    /// use bytes::Bytes;
    /// use tanada_kv::WriteOptions;
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # tanada_kv::example::run(folder.path(), async |database, store| {
    /// let count = |old: Option<&Bytes>| {
    ///     let old = old.map_or(0, |bytes| bytes[0]);
    ///     Some(Bytes::copy_from_slice(&[old + 1]))
    /// };
    /// store.update(b"visits", count, &WriteOptions::default()).await?;
    /// store.update(b"visits", count, &WriteOptions::default()).await?;
    /// assert_eq!(store.get(b"visits").await?.as_deref(), Some(&[2][..]));
    /// # Ok(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`get`](Self::get) and [`Database::write`](crate::Database::write).
    pub async fn update(
        &self,
        key: &[u8],
        change: impl Fn(Option<&Bytes>) -> Option<Bytes>,
        options: &WriteOptions,
    ) -> Result<Option<Bytes>> {
        let mut tries = 0;
        loop {
            // Writes of others are noted for a transaction, also across flushes.
            let open =
                (tries >= COMMITS.max_update_attempts).then(|| self.core().committer.open_transaction());
            let at = open.as_ref().map(OpenTransaction::sequence);
            let (old, read_at) = self.core().reader.get_with_number(self.state(), key, at).await?;
            let new = change(old.as_ref());
            let mut batch = Batch::for_one(key, new.as_deref().unwrap_or_default());
            match &new {
                Some(value) => batch.put(self, key, value),
                None => batch.add(self.state(), OperationKind::Delete, key, b"", None),
            }
            let check =
                open.as_ref().map_or(Check::Unchanged(read_at), |open| Check::Transaction(open, None));
            match self.core().committer.commit(batch, options, Some(check)).await {
                // Another writer was faster; or a flush came between, and it is not known whether one was.
                Err(error) if error.kind() == ErrorKind::Conflict => tries += 1,
                Err(error) => return Err(error),
                Ok(()) => return Ok(new),
            }
        }
    }

    /// Writes out what is in memory, and does all jobs of the tree, those included that could wait: afterwards a key is
    /// in one place. What is written meanwhile is not waited for. If the future is dropped, what it has done stays
    /// done, and what the job under way has written is deleted soon.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # tanada_kv::example::run(folder.path(), async |database, store| {
    /// store.put(b"key", b"value").await?;
    /// store.compact().await?;
    /// assert_eq!(database.statistics().stores[0].leaf_kvsets, 1);
    /// # Ok(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// `NoSpace`, `Corrupted`, `Device`; `NotFound` if the store is dropped.
    pub async fn compact(&self) -> Result<()> {
        compact(&self.core().jobs, self.state()).await
    }

    /// A cursor before the first key.
    ///
    /// ```
    /// use tanada_kv::CursorOptions;
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # tanada_kv::example::run(folder.path(), async |database, store| {
    /// for key in [b"a1", b"b1", b"b2"] {
    ///     store.put(key, b"value").await?;
    /// }
    /// let mut cursor = store.cursor(CursorOptions::prefix(b"b"));
    /// let (key, _) = cursor.next().await?.unwrap();
    /// assert_eq!(&key[..], b"b1");
    /// # Ok(()) }).unwrap();
    /// ```
    pub fn cursor(&self, options: CursorOptions) -> Cursor {
        Cursor::new(self, options)
    }
}
