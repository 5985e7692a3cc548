//! A map in memory as an engine: for tests, and to see what the benchmark itself costs.

use std::collections::BTreeMap;

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::RwLock;

use super::{Change, Engine, EngineStatistics};
use crate::Result;

/// Keeps everything in memory, nothing durably.
#[derive(Debug, Default)]
pub struct OrderedMap {
    records: RwLock<BTreeMap<Bytes, Bytes>>,
}

#[async_trait]
impl Engine for OrderedMap {
    async fn insert(&self, key: Bytes, value: Bytes) -> Result<()> {
        self.records.write().insert(key, value);
        Ok(())
    }

    async fn update(&self, key: Bytes, value: Bytes) -> Result<()> {
        self.insert(key, value).await
    }

    async fn read(&self, key: &[u8]) -> Result<Option<Bytes>> {
        Ok(self.records.read().get(key).cloned())
    }

    async fn scan(&self, key: &[u8], count: usize) -> Result<usize> {
        Ok(self.records.read().range(Bytes::copy_from_slice(key)..).take(count).count())
    }

    async fn read_modify_write(&self, key: Bytes, change: Change<'_>) -> Result<bool> {
        match self.records.write().get_mut(&key) {
            Some(value) => *value = change(value),
            None => return Ok(false),
        }
        Ok(true)
    }

    async fn settle(&self) -> Result<()> {
        Ok(())
    }

    async fn catch_up(&self) -> Result<f64> {
        Ok(0.0)
    }

    async fn close(&self) -> Result<()> {
        Ok(())
    }

    fn statistics(&self) -> EngineStatistics {
        let records = self.records.read();
        let memory = records.iter().map(|(key, value)| (key.len() + value.len()) as u64).sum();
        EngineStatistics { memory_bytes: memory, ..EngineStatistics::default() }
    }
}
