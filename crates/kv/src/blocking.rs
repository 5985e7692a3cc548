//! For threads that wait: runs a future of the engine to its end on the calling thread.
//!
//! A read that memory or the cache serves, and a write that need not wait for a device, cost nothing more here than they do elsewhere.

use std::future::Future;

/// Waits for the future on this thread; never on an executor's own thread, which would wait for itself.
pub fn wait<F: Future>(future: F) -> F::Output {
    crate::environment::wait_for(future)
}
