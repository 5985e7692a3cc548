//! Engines whose calls block.

use std::fmt;

use async_trait::async_trait;
use bytes::Bytes;

use super::{Change, Engine, EngineStatistics};
use crate::Result;

/// The blocking face of [`Engine`]; see there.
#[allow(missing_docs, reason = "each is as in Engine")]
pub trait BlockingEngine: Send + Sync + fmt::Debug {
    fn insert(&self, key: &[u8], value: &[u8]) -> Result<()>;
    fn update(&self, key: &[u8], value: &[u8]) -> Result<()>;
    fn read(&self, key: &[u8]) -> Result<Option<Bytes>>;
    fn scan(&self, key: &[u8], count: usize) -> Result<usize>;
    fn read_modify_write(&self, key: &[u8], change: Change<'_>) -> Result<bool>;
    fn settle(&self) -> Result<()>;
    fn catch_up(&self) -> Result<f64>;
    fn close(&self) -> Result<()>;
    fn statistics(&self) -> EngineStatistics;
}

/// A blocking engine as an [`Engine`]: its futures block when they are polled, so clients belong on threads.
#[derive(Debug)]
pub struct FromBlocking<E>(pub E);

#[async_trait]
impl<E: BlockingEngine> Engine for FromBlocking<E> {
    async fn insert(&self, key: Bytes, value: Bytes) -> Result<()> {
        self.0.insert(&key, &value)
    }

    async fn update(&self, key: Bytes, value: Bytes) -> Result<()> {
        self.0.update(&key, &value)
    }

    async fn read(&self, key: &[u8]) -> Result<Option<Bytes>> {
        self.0.read(key)
    }

    async fn scan(&self, key: &[u8], count: usize) -> Result<usize> {
        self.0.scan(key, count)
    }

    async fn read_modify_write(&self, key: Bytes, change: Change<'_>) -> Result<bool> {
        self.0.read_modify_write(&key, change)
    }

    async fn settle(&self) -> Result<()> {
        self.0.settle()
    }

    async fn catch_up(&self) -> Result<f64> {
        self.0.catch_up()
    }

    async fn close(&self) -> Result<()> {
        self.0.close()
    }

    fn statistics(&self) -> EngineStatistics {
        self.0.statistics()
    }
}
