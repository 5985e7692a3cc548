//! Writing a memtable's versions to a key file, and what was looked up in it to the cache.

use crate::tuning::writes::FLUSHES;
use std::sync::Arc;

use crate::cache::{Newest, VersionId};
use crate::crash::PlantedBug;
use crate::database::flush::flusher::Flusher;
use crate::database::flush::packing::{Kept, Packing};
use crate::database::state::store_state::StoreState;
use crate::entry::SequenceNo;
use crate::keyfile::{KeyFileOptions, KeyFileWriter};
use crate::memory::{MemoryContent, Memtable, TableSource};
use crate::merge::{Groups, Retention};
use crate::notify::yield_now;
use crate::objects::{Lease, ObjectKind};
use crate::tree::{KvsetKind, KvsetRecord};
use crate::value::codec::plain_value;
use crate::written::Purpose;
use crate::{ErrorKind, Result};

impl Flusher {
    /// Puts into the cache what was looked up while it was in memory, and what takes the place of a version in the
    /// cache: it will be looked up again. No other table has numbers up to the table's last one.
    pub(crate) async fn keep_values(&self, store: &StoreState, table: &Memtable, last: SequenceNo) {
        let cache = &self.shared.opener.cache;
        let holds_values = !cache.never_had_values();
        if !holds_values && !table.was_read() {
            return;
        }
        let has_older = |key: &[u8], sequence| {
            holds_values && cache.has_older(&VersionId::new(store.owner, key, sequence))
        };
        let has_tombstones = table.has_tombstones();
        let (mut keys, mut bytes_kept) = (0, 0);
        for used in table.used_values(has_older) {
            keys += 1;
            if let Some((key, version)) = used
                && !self.shared.is_expired(version.expires_s)
                && let MemoryContent::Value { home: Some(home) } = version.content
            {
                let newest =
                    (!has_tombstones).then_some(Newest { up_to: last, expires_s: version.expires_s });
                let id = VersionId { newest, ..VersionId::new(store.owner, key.key(), key.sequence) };
                let is_kept = cache.takes_value(&id, home.len as usize);
                // A reader of a value that does not decompress gets an error; here there is no reader.
                if let Some(value) =
                    is_kept.then(|| plain_value(key.pair.shared_value(), Some(&home)).ok()).flatten()
                {
                    cache.keep_value(&id, &value);
                    bytes_kept += value.len();
                }
            }
            if keys >= FLUSHES.keys_per_slice || bytes_kept >= FLUSHES.copied_bytes_per_slice {
                (keys, bytes_kept) = (0, 0);
                yield_now().await;
            }
        }
    }

    /// Writes a table's key file, and its values if they are packed; `None` if nothing in it has to be kept.
    pub(crate) async fn write_table(
        &self,
        store: &StoreState,
        table: &Arc<Memtable>,
    ) -> Result<(Option<KvsetRecord>, Option<Lease>)> {
        // Values that cannot be packed stay in the log.
        if let Some(packing) = self.packing(store, table).await.unwrap_or_default() {
            match self.write_keys(store, table, Some(packing)).await {
                Err(error) if error.kind() == ErrorKind::NoSpace => self.space.delete_retired().await?,
                written => return written,
            }
        }
        self.write_keys(store, table, None).await
    }

    pub(crate) async fn write_keys(
        &self,
        store: &StoreState,
        table: &Arc<Memtable>,
        packing: Option<Packing<'_>>,
    ) -> Result<(Option<KvsetRecord>, Option<Lease>)> {
        let placement = self.shared.classes.placement(&store.policy())?;
        let (lease, object) = self.shared.objects.create(ObjectKind::Keys, Some(&placement.root_keys))?;
        let no = lease.no();
        let written = self.write_versions(store, table, packing, (no, object)).await;
        match written {
            Ok((None, _)) => self.shared.objects.delete(ObjectKind::Keys, no).await.map(|()| (None, None)),
            Ok(written) => Ok(written),
            Err(error) => {
                // An object that cannot be deleted is an orphan.
                let _ = self.shared.objects.delete(ObjectKind::Keys, no).await;
                Err(error)
            }
        }
    }

    pub(crate) async fn write_versions(
        &self,
        store: &StoreState,
        table: &Arc<Memtable>,
        mut packing: Option<Packing<'_>>,
        (no, object): (u64, tanada_volume::Object),
    ) -> Result<(Option<KvsetRecord>, Option<Lease>)> {
        let settings = store.settings();
        let options = KeyFileOptions {
            page_bytes: settings.page_bytes,
            filter_bits_per_key: settings.filter_bits_per_key,
            pieces: self.memory.pieces_of(table.bytes()),
        };
        let mut writer = KeyFileWriter::new(no, object, self.shared.objects.buffers(), options);
        let retention = Retention {
            readers: self.shared.snapshots.to_keep(),
            now_s: self.shared.environment.wall_time_s(),
            is_bottom: self.shared.crash.has(PlantedBug::DropDeletes),
        };
        let tombstones = table.tombstones();
        let kept = retention.tombstones_within(&tombstones, b"", None);
        let mut groups = Groups::new(vec![TableSource::new(table)], tombstones, None).await?;
        let (mut keys, mut versions_kept) = (0u64, 0);
        while groups.next(&retention).await? {
            keys += 1;
            if keys.is_multiple_of(FLUSHES.keys_per_slice) {
                yield_now().await;
            }
            let (key, versions) = groups.group();
            versions_kept += versions.len() as u64;
            for version in versions.iter() {
                match &mut packing {
                    Some(packing) => writer.add(key, &packing.pack(key, version).await?).await?,
                    None => writer.add(key, version).await?,
                }
            }
        }
        store.tasks.of::<Kept>().note(groups.merged(), versions_kept);
        if writer.is_empty() && kept.is_empty() {
            return Ok((None, None));
        }
        kept.into_iter().for_each(|tombstone| writer.add_range_tombstone(tombstone));
        let (info, object) = writer.finish().await?;
        self.shared.objects.note_written(Purpose::FlushKeys, &object, 0, object.size_bytes());
        let packed = match packing {
            Some(packing) => packing.finish(&self.shared.objects).await?,
            None => None,
        };
        Ok((Some(KvsetRecord { no, kind: KvsetKind::Data, info }), packed))
    }
}
