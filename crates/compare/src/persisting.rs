//! Durability within some milliseconds, for engines that know only "now" and "some time": a thread that makes them
//! durable that often.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use tanada_ycsb::{Error, Result};

/// A thread that calls the same thing again and again until it is stopped.
#[derive(Debug)]
pub struct Persisting {
    is_over: Arc<AtomicBool>,
    thread: Mutex<Option<JoinHandle<Result<()>>>>,
}

impl Persisting {
    /// Calls `persist` every `ms` milliseconds; never if that is 0, where each write is durable by itself.
    pub fn every(ms: u16, persist: impl Fn() -> Result<()> + Send + 'static) -> Result<Persisting> {
        let is_over = Arc::new(AtomicBool::new(ms == 0));
        let over = is_over.clone();
        let work = move || {
            while !over.load(Ordering::Relaxed) {
                std::thread::park_timeout(Duration::from_millis(u64::from(ms)));
                persist()?;
            }
            Ok(())
        };
        let thread = std::thread::Builder::new().name("persisting".to_owned()).spawn(work);
        Ok(Persisting { is_over, thread: Mutex::new(Some(thread.map_err(Error::failed)?)) })
    }

    /// Ends it; what failed since it began.
    pub fn stop(&self) -> Result<()> {
        self.is_over.store(true, Ordering::Relaxed);
        let Some(thread) = self.thread.lock().take() else { return Ok(()) };
        thread.thread().unpark();
        thread.join().map_err(|_| Error::failed("the thread that makes writes durable panicked"))?
    }
}

impl Drop for Persisting {
    fn drop(&mut self) {
        let _ = self.stop();
    }
}
